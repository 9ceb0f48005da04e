/*
 * search.c: beam search for a batch. On the sentence's way: tfm_translate hands batches to search_batch,
 * which calls encoder_forward once and then, step by step,
 *     hidden = decoder_step(last tokens)      logits = hidden E^T + b
 *     log p = logits - logsumexp(logits)      beam_step(the best of log p)
 * The rows of a step are the live hypotheses, those of one sentence side by side: each is a self-attention
 * segment of its own over the cache rows of its history; together they are one cross-attention segment over
 * their source. Of the logits of each row only a few candidates are kept (scores.c). With a shortlist, a
 * sentence has an unembedding of its own, of the rows of E that it lists.
 * An ensemble takes each step with all its members, and log p = sum_m w_m log p_m, as Marian has it.
 * Whatever is computed for a row depends on that row alone, so neither batch nor threads change a digit.
 */
#include "decode/search.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/rng.h"
#include "decode/scores.h"
#include "model/decoder.h"

#define ENCODER_ROWS 128   /* source pieces that are encoded together, or one sentence's */
#define LEAST_WEIGHT 0.01f /* of a term that is begun where the model looks elsewhere */

struct live_sentence {
    struct search_sentence *sentence;
    struct beam beam;
    int source_start, n_source; /* rows of the encoder's output */
    real *attention;            /* [nodes of the beam, n_source] that of the piece behind a node, or NULL */
    int *tokens;                /* [unembed[0].out] its shortlist, or NULL */
    struct linear *unembed;     /* [n_members] their rows, of each member */
};

struct member { /* of an ensemble, or the only net */
    const struct net *net;
    struct decoder_cache cache;
    real *hidden; /* [n, D] of a step */
};

struct search {
    const struct search_options *options;
    const struct net *net;
    const struct run *run;
    int n_members;
    struct member *members; /* [n_members]; the first is the net */
    bool keeps_attention;   /* of some sentence */
    int n_live;
    struct live_sentence *live; /* [n_live] still searched for, in order */
};

/* Target pieces at most: max_text or max_length_factor * n_pieces, or as many as are forced and in terms; and 10
 * more. */
static int target_limit(const struct search_options *options, int n_pieces, int n_forced, int n_terms)
{
    int limit = options->max_text > 0 ? options->max_text : (int)(options->max_length_factor * n_pieces);
    int given = n_forced + n_terms;
    return (limit > given ? limit : given) + 10;
}

static int sentence_limit(const struct search_options *options, const struct search_sentence *sentence)
{
    return target_limit(options, sentence->n_pieces, sentence->n_forced, search_term_pieces(sentence));
}

/* Terms make the beam wider. */
static int sentence_beam(const struct search_options *options, const struct search_sentence *sentence)
{
    return options->beam_size + terms_places(search_term_pieces(sentence));
}

size_t search_rows(const struct search_options *options, const struct search_sentence *sentence)
{
    return (size_t)sentence_beam(options, sentence) * (size_t)sentence_limit(options, sentence);
}

/* ---- sizes ---- */

#define ROUNDING ((size_t)64 * 64) /* an arena rounds each block up to 64 bytes */

/* Member m of the ensemble, the net itself or one of the others. */
static const struct net *nth_net(const struct search_options *options, const struct net *net, int m)
{
    return m == 0 ? net : options->more[m - 1];
}

/* The widest rows that the members multiply. */
static int widest(const struct search_options *options, const struct net *net)
{
    int most = 0;
    for (int m = 0; m <= options->n_more; m++) {
        const struct config *config = nth_net(options, net, m)->config;
        int width = config->d_model > config->ffn_dim ? config->d_model : config->ffn_dim;
        most = width > most ? width : most;
    }
    return most;
}

/* What the scores of a step take: where tokens are drawn, for a few rows, whoever's they are. */
static size_t scores_size(const struct search_options *options, const struct net *net, int n)
{
    return scores_scratch(&options->candidates, n, net->unembed.out, widest(options, net),
                          1 + options->n_more);
}

size_t search_scratch_base(const struct search_options *options, const struct net *net)
{
    int n = candidates_need_all(&options->candidates) ? INT_MAX : 0;
    return scores_size(options, net, n) + linear_scratch(widest(options, net)) + ROUNDING;
}

/* Of one net, and of what there is once for all. */
static size_t scratch_of(const struct search_options *options, const struct net *net, int n_pieces,
                         int n_forced, int n_terms)
{
    const struct config *c = net->config;
    const struct terms most = { .n = n_terms, .n_pieces = n_terms }, *terms = n_terms > 0 ? &most : NULL;
    size_t d = (size_t)c->d_model, source = (size_t)n_pieces + 1;
    size_t limit = (size_t)target_limit(options, n_pieces, n_forced, n_terms);
    int size = options->beam_size + terms_places(n_terms);
    size_t beam = (size_t)size;
    size_t cache = decoder_cache_size(net, beam * limit, beam, source);
    /* A layer takes about 15 rows of D and what it has inside for each token, and for each query the weights
     * of one head. */
    size_t rows = (source + beam) * (24 * d + config_inner_size(c));
    size_t packed = 2 * d / (size_t)c->heads; /* a key and a value of one head */
    size_t source_row = attn_row((int)source), limit_row = attn_row((int)limit);
    size_t columns = beam * d > packed ? beam * d : packed;
    size_t attention = source_row * (source + packed) + (limit_row + source_row) * (beam + columns);
    attention += 2 * (size_t)c->heads * (source + limit); /* biases of distances */
    size_t lists = sizeof(int) * (4 * source + beam * (source + 3 * limit + 48)) +
                   2 * (source + beam) * sizeof(struct attn_segment) +
                   beam * (sizeof(struct candidate_row) +
                           (size_t)beam_width(size, terms) * sizeof(struct beam_candidate) +
                           2 * (size_t)n_terms * sizeof(int));
    if (options->align || n_terms > 0) /* of each node */
        attention += source * (1 + beam * limit);
    if (options->align || options->most_term_pieces > 0) /* of each head in a step, of all of a batch */
        attention += (2 * source_row + limit_row) * beam * (size_t)c->heads;
    return sizeof(real) * (cache + rows + attention) + lists + beam_bytes(size, (int)limit, terms) +
           sizeof(struct live_sentence) + sizeof(struct linear) + ROUNDING;
}

size_t search_scratch(const struct search_options *options, const struct net *net, int n_pieces, int n_forced,
                      int n_terms)
{
    size_t sum = search_list_scratch(options, net, n_pieces, n_forced, n_terms);
    if (!candidates_need_all(&options->candidates))
        sum += scores_size(options, net, options->beam_size + terms_places(n_terms));
    for (int m = 0; m <= options->n_more; m++)
        sum += scratch_of(options, nth_net(options, net, m), n_pieces, n_forced, n_terms);
    return sum;
}

/* Ids, rows of each net (16 to a panel, with a scale and a bias each), and for a moment what is listed beyond
 * the list, and the bits of the vocabulary. */
size_t search_list_scratch(const struct search_options *options, const struct net *net, int n_pieces,
                           int n_forced, int n_terms)
{
    if (options->shortlist == NULL)
        return 0;
    int n_more = n_forced + 2 * n_terms + 2;
    size_t n = (size_t)shortlist_most(options->shortlist, n_pieces, n_more) + KERN_PANEL;
    size_t sum = n * sizeof(int) + sizeof(int) * (size_t)n_more + (size_t)net->unembed.out / 8;
    for (int m = 0; m <= options->n_more; m++)
        sum += n * sizeof(real) * ((size_t)nth_net(options, net, m)->config->d_model + 3) + ROUNDING;
    return sum;
}

size_t search_results(const struct search_options *options, int n_pieces, int n_forced, int n_terms)
{
    size_t limit = (size_t)target_limit(options, n_pieces, n_forced, n_terms);
    size_t row = sizeof(int) + sizeof(float) * (options->align ? (size_t)n_pieces + 2 : 1);
    return (size_t)options->n_best * (sizeof(struct search_hypothesis) + limit * row + (size_t)3 * 64) + 64;
}

/* ---- start ---- */

static int add_pieces(int *more, int n, const int *pieces, int n_pieces)
{
    if (n_pieces > 0)
        memcpy(more + n, pieces, sizeof(int) * (size_t)n_pieces);
    return n + n_pieces;
}

/* What may come: what the list says, </s>, what is forced, terms, and the unknown piece where it is allowed. */
static void start_list(struct live_sentence *live, const struct search *search)
{
    const struct search_sentence *sentence = live->sentence;
    const struct shortlist *list = search->options->shortlist;
    const struct config *config = search->net->config;
    struct arena *arena = search->run->arena;
    int most = sentence->n_forced + 2 * search_term_pieces(sentence) + 2;
    live->tokens = ARENA_TAKE(arena, int, shortlist_most(list, sentence->n_pieces, most));
    size_t mark = arena_mark(arena);
    int *more = ARENA_TAKE(arena, int, most),
        n_more = add_pieces(more, 0, sentence->forced, sentence->n_forced);
    for (int i = 0; sentence->terms != NULL && i < sentence->terms->n; i++) {
        const struct term *term = sentence->terms->list[i];
        n_more = add_pieces(more, n_more, term->pieces, term->n);
        n_more = add_pieces(more, n_more, term->bare, term->n_bare);
    }
    more[n_more++] = config->eos_token_id;
    if (search->options->candidates.allow_unk && config->unk_token_id >= 0)
        more[n_more++] = config->unk_token_id;
    int n = shortlist_select(live->tokens, list, sentence->pieces, sentence->n_pieces, more, n_more, arena);
    arena_reset(arena, mark);
    live->unembed = ARENA_TAKE(arena, struct linear, search->n_members);
    for (int m = 0; m < search->n_members; m++)
        linear_select(&live->unembed[m], &search->members[m].net->unembed, live->tokens, n, search->run);
}

/* A few sentences at a time, so that what the layers hand each other stays in the second cache. */
static void encode_sources(real *memory, const struct tokens *source, const struct net *net,
                           const struct run *run)
{
    for (int from = 0, to; from < source->n_sentences; from = to) {
        int first = source->start[from];
        for (to = from + 1; to < source->n_sentences && source->start[to + 1] - first <= ENCODER_ROWS;)
            to++;
        int *start = ARENA_TAKE(run->arena, int, to - from + 1);
        for (int i = from; i <= to; i++)
            start[i - from] = source->start[i] - first;
        struct tokens part = {
            .n_sentences = to - from, .n = start[to - from], .ids = source->ids + first, .start = start
        };
        encoder_forward(memory + (size_t)first * (size_t)net->config->d_model, NULL, &part, net, run);
    }
}

/* Encodes the sources and starts the decoder, for each member. */
static void start_members(struct search *search, const struct tokens *source, int capacity, int width)
{
    const struct run *run = search->run;
    search->n_members = 1 + search->options->n_more;
    search->members = ARENA_TAKE(run->arena, struct member, search->n_members);
    for (int m = 0; m < search->n_members; m++) {
        struct member *member = &search->members[m];
        member->net = nth_net(search->options, search->net, m);
        real *memory = ARENA_TAKE(run->arena, real, (size_t)source->n * (size_t)member->net->config->d_model);
        encode_sources(memory, source, member->net, run);
        decoder_start(&member->cache, memory, source, capacity, width, member->net, run);
    }
}

/* Lays the sources end to end, each with its </s>, encodes them and starts a beam for each. */
static void start_search(struct search *search, struct search_sentence *const *sentences, int n)
{
    const struct net *net = search->net;
    struct arena *arena = search->run->arena;
    int *start = ARENA_TAKE(arena, int, (size_t)n + 1);
    start[0] = 0;
    size_t capacity = 0;
    int width = 0;
    for (int i = 0; i < n; i++) {
        start[i + 1] = start[i] + sentences[i]->n_pieces + 1;
        capacity += search_rows(search->options, sentences[i]);
        width += sentence_beam(search->options, sentences[i]);
    }
    assert(capacity <= INT_MAX);
    int *ids = ARENA_TAKE(arena, int, start[n]);
    for (int i = 0; i < n; i++) {
        if (sentences[i]->n_pieces > 0)
            memcpy(ids + start[i], sentences[i]->pieces, sizeof(int) * (size_t)sentences[i]->n_pieces);
        ids[start[i + 1] - 1] = net->config->eos_token_id;
    }
    struct tokens source = { .n_sentences = n, .n = start[n], .ids = ids, .start = start };
    start_members(search, &source, (int)capacity, width);
    profile_to(search->run->profile, PROFILE_SEARCH);

    struct beam_options options = {
        .n_best = search->options->n_best,
        .normalize = search->options->normalize,
        .eos = net->config->eos_token_id,
    };
    search->live = ARENA_TAKE(arena, struct live_sentence, n);
    search->n_live = n;
    for (int i = 0; i < n; i++) {
        struct live_sentence *live = &search->live[i];
        *live = (struct live_sentence){ .sentence = sentences[i], .source_start = start[i] };
        live->n_source = start[i + 1] - start[i];
        options.size = sentence_beam(search->options, sentences[i]);
        options.terms = sentences[i]->terms;
        beam_init(&live->beam, &options, net->config->decoder_start_token_id,
                  sentence_limit(search->options, sentences[i]), arena);
        if (search->options->align || options.terms != NULL) {
            size_t n_nodes = 1 + (size_t)options.size * (size_t)live->beam.limit;
            live->attention = ARENA_TAKE(arena, real, n_nodes * (size_t)live->n_source);
            search->keeps_attention = true;
        }
        if (search->options->shortlist != NULL)
            start_list(live, search);
    }
}

/* ---- one step ---- */

/* Keeps, for each live hypothesis, what its next piece looks at. weights: for each live sentence and head
 * [hypotheses, n_source], with rows of attn_row. */
static void keep_attention(struct search *search, const real *weights)
{
    int heads = search->net->config->heads;
    for (int i = 0; i < search->n_live; i++) {
        struct live_sentence *live = &search->live[i];
        size_t n_q = (size_t)live->beam.n_live, n_k = (size_t)live->n_source, row = attn_row(live->n_source);
        for (size_t h = 0; h < n_q && live->attention != NULL; h++) {
            real *mean = live->attention + (size_t)live->beam.live[h].node * n_k;
            for (size_t j = 0; j < n_k; j++) {
                real sum = 0;
                for (int head = 0; head < heads; head++)
                    sum += weights[((size_t)head * n_q + h) * row + j];
                mean[j] = sum / (real)heads;
            }
        }
        weights += (size_t)heads * n_q * row;
    }
}

/* Feeds the last token of every live hypothesis to each member's decoder. */
static void decode_rows(struct search *search, int n)
{
    struct arena *arena = search->run->arena;
    int *ids = ARENA_TAKE(arena, int, n), *positions = ARENA_TAKE(arena, int, n);
    struct attn_segment *self = ARENA_TAKE(arena, struct attn_segment, n);
    struct attn_segment *cross = ARENA_TAKE(arena, struct attn_segment, search->n_live);
    int first_new = search->members[0].cache.n_rows, row = 0; /* alike in all */
    for (int i = 0; i < search->n_live; i++) {
        struct live_sentence *live = &search->live[i];
        int n_keys = live->beam.step + 1;
        cross[i] = (struct attn_segment){
            .q_start = row, .n_q = live->beam.n_live, .k_start = live->source_start, .n_k = live->n_source
        };
        for (int h = 0; h < live->beam.n_live; h++, row++) {
            int *k_rows = ARENA_TAKE(arena, int, n_keys);
            beam_rows(&live->beam, h, first_new + row, k_rows);
            self[row] = (struct attn_segment){ .q_start = row, .n_q = 1, .n_k = n_keys, .k_rows = k_rows };
            ids[row] = beam_token(&live->beam, h);
            positions[row] = live->beam.step;
        }
    }
    struct block_input in = { .n = n, .self = self, .n_self = n, .cross = cross, .n_cross = search->n_live };
    if (search->keeps_attention) {
        in.cross_layer = search->options->align_layer;
        in.cross_weights =
            ARENA_TAKE(arena, real, attn_weights_size(cross, search->n_live, search->net->config->heads));
    }
    for (int m = 0; m < search->n_members; m++) {
        struct member *member = &search->members[m];
        member->hidden = ARENA_TAKE(arena, real, (size_t)n * (size_t)member->net->config->d_model);
        decoder_step(member->hidden, &member->cache, ids, positions, &in, member->net, search->run);
        if (in.cross_weights != NULL)
            keep_attention(search, in.cross_weights);
        in.cross_weights = NULL; /* that of the first member is kept */
    }
}

/* What its terms ask of hypothesis h of a sentence (there is room for them: target_limit), and how much
 * this hypothesis looks at the source of each. */
static void ask_terms(struct candidate_row *row, const struct live_sentence *live, int h, struct arena *arena)
{
    const struct beam *beam = &live->beam;
    const struct terms *terms = beam->options.terms;
    const real *attention = live->attention + (size_t)beam->live[h].node * (size_t)live->n_source;
    real sum = 0;
    for (int j = 0; j < live->n_source - 1; j++) /* without </s> */
        sum += attention[j];
    for (int i = 0; i < terms->n; i++) {
        real here = 0;
        for (int j = terms->places[i].first; j < terms->places[i].end; j++)
            here += attention[j];
        float weight = sum > 0 ? (float)(here / sum) : 0;
        beam->weights[h * terms->n + i] = weight > LEAST_WEIGHT ? weight : LEAST_WEIGHT;
    }
    int *wanted = ARENA_TAKE(arena, int, 2 * terms->n);
    row->n_wanted = terms_wanted(wanted, terms, &beam->states[h]);
    row->wanted = wanted;
    row->barred = beam->states[h].is_closed ? terms->goes_on : NULL;
    row->is_unfinished = terms_missing(terms, &beam->states[h]) > 0;
    /* Where the pieces of the terms, and </s>, have just room before the limit. */
    row->is_late = row->is_unfinished &&
                   beam->limit - beam->step <= terms->n_pieces - terms_progress(&beam->states[h]) + 1;
}

/* The live hypotheses as what decides their candidates, in the order of the rows: rows [n]. */
static struct candidate_row *list_rows(struct search *search, int n)
{
    struct arena *arena = search->run->arena;
    struct candidate_row *rows = ARENA_TAKE(arena, struct candidate_row, n), *row = rows;
    bool need_history = candidates_need_history(&search->options->candidates);
    for (int i = 0; i < search->n_live; i++) {
        const struct live_sentence *live = &search->live[i];
        const struct search_sentence *sentence = live->sentence;
        const struct beam *beam = &live->beam;
        int step = beam->step, width = beam_width(beam->options.size, sentence->terms);
        struct beam_candidate *found =
            ARENA_TAKE(arena, struct beam_candidate, (size_t)width * (size_t)beam->n_live);
        for (int h = 0; h < beam->n_live; h++, row++) {
            *row = (struct candidate_row){ .step = step, .forced = -1, .n = beam->options.size };
            row->found = found + (size_t)h * (size_t)width;
            row->width = width;
            row->tokens = live->tokens;
            row->n_tokens = live->tokens != NULL ? live->unembed->out : 0;
            if (step < sentence->n_forced)
                row->forced = sentence->forced[step];
            /* All samples begin at the first piece that is not forced. */
            row->n_draws = step == sentence->n_forced ? beam->options.size : 1;
            row->key = rng_key(sentence->key, (uint64_t)step, (uint64_t)h, 0);
            if (need_history) {
                int *history = ARENA_TAKE(arena, int, step);
                beam_history(beam, h, history);
                row->history = history;
            }
            if (sentence->terms != NULL)
                ask_terms(row, live, h, arena);
        }
    }
    return rows;
}

/* The candidates of all rows: together, or sentence by sentence where each has its own list. */
static const struct candidate_row *score_rows(struct search *search, int n)
{
    const struct candidate_row *rows = list_rows(search, n);
    const struct search_options *options = search->options;
    struct scores_member *members = ARENA_TAKE(search->run->arena, struct scores_member, search->n_members);
    for (int i = 0, first = 0, n_here; first < n; first += n_here, i++) {
        const struct live_sentence *live = &search->live[i];
        n_here = live->unembed != NULL ? live->beam.n_live : n;
        for (int m = 0; m < search->n_members; m++) {
            const struct member *member = &search->members[m];
            const struct linear *unembed = live->unembed != NULL ? &live->unembed[m] : &member->net->unembed;
            members[m] =
                (struct scores_member){ unembed, member->hidden + (size_t)first * (size_t)unembed->in };
        }
        scores_find(rows + first, n_here, members, search->n_members, options->weights, &options->candidates,
                    search->net->config, search->run);
    }
    return rows;
}

/* The attention of an ending's pieces: [n_pieces, n_source]. */
static float *copy_attention(const struct live_sentence *live, const struct beam_ending *ending,
                             struct arena *results, struct arena *scratch)
{
    size_t mark = arena_mark(scratch), n_source = (size_t)live->n_source;
    int *nodes = ARENA_TAKE(scratch, int, ending->n_pieces);
    float *attention = ARENA_TAKE(results, float, (size_t)ending->n_pieces *n_source);
    beam_nodes(&live->beam, ending, nodes);
    for (size_t i = 0; i < (size_t)ending->n_pieces; i++)
        for (size_t j = 0; j < n_source; j++)
            attention[i * n_source + j] = (float)live->attention[(size_t)nodes[i] * n_source + j];
    arena_reset(scratch, mark);
    return attention;
}

/* Copies the n_best of a finished beam to where they outlive the batch. */
static void keep_results(const struct search *search, const struct live_sentence *live, struct arena *results)
{
    const struct beam *beam = &live->beam;
    struct search_sentence *sentence = live->sentence;
    int n = beam->n_ended < beam->options.n_best ? beam->n_ended : beam->options.n_best;
    struct search_hypothesis *hypotheses = ARENA_TAKE(results, struct search_hypothesis, n);
    for (int i = 0; i < n; i++) {
        const struct beam_ending *ending = &beam->ended[i];
        int *pieces = ARENA_TAKE(results, int, ending->n_pieces);
        float *scores = ARENA_TAKE(results, float, ending->n_pieces);
        beam_pieces(beam, ending, pieces, scores);
        hypotheses[i] = (struct search_hypothesis){ .n_pieces = ending->n_pieces,
                                                    .pieces = pieces,
                                                    .piece_scores = scores,
                                                    .score = ending->score,
                                                    .normalized_score = ending->normalized_score,
                                                    .limited = ending->limited,
                                                    .n_missing = ending->n_missing };
        if (search->options->align)
            hypotheses[i].attention = copy_attention(live, ending, results, search->run->arena);
    }
    sentence->hypotheses = hypotheses;
    sentence->n_hypotheses = n;
}

static void step(struct search *search, struct arena *results)
{
    size_t mark = arena_mark(search->run->arena);
    int n = 0;
    for (int i = 0; i < search->n_live; i++)
        n += search->live[i].beam.n_live;
    decode_rows(search, n);
    profile_to(search->run->profile, PROFILE_SEARCH);
    const struct candidate_row *rows = score_rows(search, n);
    int n_live = 0;
    for (int i = 0; i < search->n_live; i++) {
        struct live_sentence *live = &search->live[i];
        const struct beam_candidate *candidates = rows->found;
        rows += live->beam.n_live;
        beam_step(&live->beam, candidates);
        if (live->beam.n_live == 0)
            keep_results(search, live, results);
        else
            search->live[n_live++] = *live;
    }
    search->n_live = n_live;
    arena_reset(search->run->arena, mark);
}

void search_batch(struct search_sentence *const *sentences, int n, const struct search_options *options,
                  const struct net *net, struct arena *results, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    struct search search = { .options = options, .net = net, .run = run };
    profile_to(run->profile, PROFILE_SEARCH);
    start_search(&search, sentences, n);
    while (search.n_live > 0)
        step(&search, results);
    arena_reset(run->arena, mark);
}
