/*
 * search.c: beam search for a batch. On the sentence's way: tfm_translate hands batches to search_batch,
 * which calls encoder_forward once and then, step by step,
 *     hidden = decoder_step(last tokens)      logits = hidden E^T + b
 *     log p = logits - logsumexp(logits)      beam_step(the best of log p)
 * The rows of a step are the live hypotheses, those of one sentence side by side: each is a self-attention
 * segment of its own over the cache rows of its history; together they are one cross-attention segment over
 * their source. Logits are made for a few rows at a time, and of each row only a few candidates are kept
 * (candidates.c). With a shortlist, a sentence has an unembedding of its own, of the rows of E that it lists.
 * Whatever is computed for a row depends on that row alone, so neither batch nor threads change a digit.
 */
#include "decode/search.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/rng.h"
#include "model/decoder.h"

#define TILE 32 /* rows whose logits are in memory together */

struct live_sentence {
    struct search_sentence *sentence;
    struct beam beam;
    int source_start, n_source; /* rows of the encoder's output */
    real *attention;            /* [nodes of the beam, n_source] that of the piece behind a node, or NULL */
    int *tokens;                /* [unembed.out] its shortlist, or NULL */
    struct linear unembed;      /* their rows */
};

struct search {
    const struct search_options *options;
    const struct net *net;
    const struct run *run;
    struct decoder_cache cache;
    int n_live;
    struct live_sentence *live; /* [n_live] still searched for, in order */
};

int search_limit(const struct search_options *options, int n_pieces, int n_forced)
{
    int limit = (int)(options->max_length_factor * n_pieces);
    return (limit > n_forced ? limit : n_forced) + 10;
}

static int sentence_limit(const struct search_options *options, const struct search_sentence *sentence)
{
    return search_limit(options, sentence->n_pieces, sentence->n_forced);
}

/* ---- sizes ---- */

#define ROUNDING ((size_t)64 * 64) /* an arena rounds each block up to 64 bytes */

size_t search_scratch_base(const struct search_options *options, const struct net *net)
{
    int d = net->config->d_model, f = config_inner_dim(net->config);
    return sizeof(real) * TILE * (size_t)net->unembed.out + linear_scratch(d > f ? d : f) +
           candidates_bytes(&options->candidates, net->unembed.out) + ROUNDING;
}

size_t search_scratch(const struct search_options *options, const struct net *net, int n_pieces, int n_forced)
{
    const struct config *c = net->config;
    size_t d = (size_t)c->d_model, source = (size_t)n_pieces + 1;
    size_t limit = (size_t)search_limit(options, n_pieces, n_forced), beam = (size_t)options->beam_size;
    size_t cache = decoder_cache_size(net, beam * limit, beam, source);
    /* A layer takes about 15 rows of D and one of F for each token, and for each query the weights of one
     * head. */
    size_t rows = (source + beam) * (24 * d + 2 * (size_t)config_inner_dim(c));
    size_t attention = source * (source + 3 * d) + beam * (limit + source) * (1 + d);
    size_t lists = sizeof(int) * (4 * source + 2 * beam * (limit + 16)) +
                   beam * (sizeof(struct attn_segment) + sizeof(struct candidate_row) +
                           beam * sizeof(struct beam_candidate));
    if (options->align) /* of each node, and of each head in a step */
        attention += source * (1 + beam * limit + beam * (size_t)c->heads);
    return sizeof(real) * (cache + rows + attention) + lists + beam_bytes(options->beam_size, (int)limit) +
           sizeof(struct live_sentence) + search_list_scratch(options, net, n_pieces, n_forced) + ROUNDING;
}

/* Ids, rows (16 to a panel, with a scale and a bias each), and for a moment what is listed beyond the list,
 * and the bits of the vocabulary. */
size_t search_list_scratch(const struct search_options *options, const struct net *net, int n_pieces,
                           int n_forced)
{
    if (options->shortlist == NULL)
        return 0;
    size_t n = (size_t)shortlist_most(options->shortlist, n_pieces, n_forced + 2) + KERN_PANEL;
    return n * (sizeof(int) + sizeof(real) * ((size_t)net->config->d_model + 3)) +
           sizeof(int) * ((size_t)n_forced + 2) + (size_t)net->unembed.out / 8 + ROUNDING;
}

size_t search_results(const struct search_options *options, int n_pieces, int n_forced)
{
    size_t limit = (size_t)search_limit(options, n_pieces, n_forced);
    size_t row = sizeof(int) + sizeof(float) * (options->align ? (size_t)n_pieces + 2 : 1);
    return (size_t)options->n_best * (sizeof(struct search_hypothesis) + limit * row + (size_t)3 * 64) + 64;
}

/* ---- start ---- */

/* What may come: what the list says, </s>, what is forced, and the unknown piece where it is allowed. */
static void start_list(struct live_sentence *live, const struct search *search)
{
    const struct search_sentence *sentence = live->sentence;
    const struct shortlist *list = search->options->shortlist;
    const struct config *config = search->net->config;
    struct arena *arena = search->run->arena;
    live->tokens = ARENA_TAKE(arena, int, shortlist_most(list, sentence->n_pieces, sentence->n_forced + 2));
    size_t mark = arena_mark(arena);
    int *more = ARENA_TAKE(arena, int, sentence->n_forced + 2), n_more = sentence->n_forced;
    if (n_more > 0)
        memcpy(more, sentence->forced, sizeof(int) * (size_t)n_more);
    more[n_more++] = config->eos_token_id;
    if (search->options->candidates.allow_unk && config->unk_token_id >= 0)
        more[n_more++] = config->unk_token_id;
    int n = shortlist_select(live->tokens, list, sentence->pieces, sentence->n_pieces, more, n_more, arena);
    arena_reset(arena, mark);
    linear_select(&live->unembed, &search->net->unembed, live->tokens, n, search->run);
}

/* Lays the sources end to end, each with its </s>, encodes them and starts a beam for each. */
static void start_search(struct search *search, struct search_sentence *const *sentences, int n)
{
    const struct net *net = search->net;
    struct arena *arena = search->run->arena;
    int *start = ARENA_TAKE(arena, int, (size_t)n + 1);
    start[0] = 0;
    size_t capacity = 0;
    for (int i = 0; i < n; i++) {
        start[i + 1] = start[i] + sentences[i]->n_pieces + 1;
        capacity +=
            (size_t)search->options->beam_size * (size_t)sentence_limit(search->options, sentences[i]);
    }
    assert(capacity <= INT_MAX);
    int *ids = ARENA_TAKE(arena, int, start[n]);
    for (int i = 0; i < n; i++) {
        if (sentences[i]->n_pieces > 0)
            memcpy(ids + start[i], sentences[i]->pieces, sizeof(int) * (size_t)sentences[i]->n_pieces);
        ids[start[i + 1] - 1] = net->config->eos_token_id;
    }
    struct tokens source = { .n_sentences = n, .n = start[n], .ids = ids, .start = start };
    real *memory = ARENA_TAKE(arena, real, (size_t)source.n * (size_t)net->config->d_model);
    encoder_forward(memory, NULL, &source, net, search->run);
    decoder_start(&search->cache, memory, source.n, (int)capacity, n * search->options->beam_size, net,
                  search->run);

    struct beam_options options = {
        .size = search->options->beam_size,
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
        beam_init(&live->beam, &options, net->config->decoder_start_token_id,
                  sentence_limit(search->options, sentences[i]), arena);
        if (search->options->align)
            live->attention = ARENA_TAKE(
                arena, real, (1 + (size_t)options.size * (size_t)live->beam.limit) * (size_t)live->n_source);
        if (search->options->shortlist != NULL)
            start_list(live, search);
    }
}

/* ---- one step ---- */

/* Keeps, for each live hypothesis, what its next piece looks at. weights: for each live sentence and head
 * [hypotheses, n_source]. */
static void keep_attention(struct search *search, const real *weights)
{
    int heads = search->net->config->heads;
    for (int i = 0; i < search->n_live; i++) {
        struct live_sentence *live = &search->live[i];
        size_t n_q = (size_t)live->beam.n_live, n_k = (size_t)live->n_source;
        for (size_t h = 0; h < n_q; h++) {
            real *mean = live->attention + (size_t)live->beam.live[h].node * n_k;
            for (size_t j = 0; j < n_k; j++) {
                real sum = 0;
                for (int head = 0; head < heads; head++)
                    sum += weights[((size_t)head * n_q + h) * n_k + j];
                mean[j] = sum / (real)heads;
            }
        }
        weights += (size_t)heads * n_q * n_k;
    }
}

/* Feeds the last token of every live hypothesis to the decoder: hidden [n, D]. */
static real *decode_rows(struct search *search, int n)
{
    struct arena *arena = search->run->arena;
    real *hidden = ARENA_TAKE(arena, real, (size_t)n * (size_t)search->net->config->d_model);
    int *ids = ARENA_TAKE(arena, int, n), *positions = ARENA_TAKE(arena, int, n);
    struct attn_segment *self = ARENA_TAKE(arena, struct attn_segment, n);
    struct attn_segment *cross = ARENA_TAKE(arena, struct attn_segment, search->n_live);
    int first_new = search->cache.self[0].n_rows, row = 0;
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
    if (search->options->align) {
        in.cross_layer = search->options->align_layer;
        in.cross_weights =
            ARENA_TAKE(arena, real, attn_weights_size(cross, search->n_live, search->net->config->heads));
    }
    decoder_step(hidden, &search->cache, ids, positions, &in, search->net, search->run);
    if (search->options->align)
        keep_attention(search, in.cross_weights);
    return hidden;
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
        int step = beam->step;
        for (int h = 0; h < beam->n_live; h++, row++) {
            *row = (struct candidate_row){ .step = step, .forced = -1 };
            row->tokens = live->tokens;
            row->n_tokens = live->unembed.out;
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
        }
    }
    return rows;
}

/* candidates [n, beam_size] of n rows that have an unembedding in common. */
static void score_part(struct beam_candidate *candidates, const real *hidden,
                       const struct candidate_row *rows, int n, const struct linear *unembed,
                       const struct search *search)
{
    struct arena *arena = search->run->arena;
    size_t mark = arena_mark(arena), d = (size_t)unembed->in, v = (size_t)unembed->out;
    size_t k = (size_t)search->options->beam_size;
    real *logits = ARENA_TAKE(arena, real, TILE * v);
    for (int start = 0; start < n; start += TILE) {
        int n_here = n - start < TILE ? n - start : TILE;
        linear_forward(logits, hidden + (size_t)start * d, unembed, n_here, search->run);
        for (int i = 0; i < n_here; i++)
            candidates_find(candidates + (size_t)(start + i) * k, logits + (size_t)i * v, &rows[start + i],
                            &search->options->candidates, search->net->config, search->run);
    }
    arena_reset(arena, mark);
}

/* candidates [n, beam_size] of all rows: together, or sentence by sentence where each has its own list. */
static struct beam_candidate *score_rows(struct search *search, const real *hidden, int n)
{
    size_t d = (size_t)search->net->config->d_model, k = (size_t)search->options->beam_size;
    struct beam_candidate *candidates = ARENA_TAKE(search->run->arena, struct beam_candidate, (size_t)n * k);
    const struct candidate_row *rows = list_rows(search, n);
    if (search->options->shortlist == NULL)
        score_part(candidates, hidden, rows, n, &search->net->unembed, search);
    for (int i = 0, row = 0; i < search->n_live && search->options->shortlist != NULL; i++) {
        const struct live_sentence *live = &search->live[i];
        score_part(candidates + (size_t)row * k, hidden + (size_t)row * d, rows + row, live->beam.n_live,
                   &live->unembed, search);
        row += live->beam.n_live;
    }
    return candidates;
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
static void keep_results(const struct live_sentence *live, struct arena *results, struct arena *scratch)
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
                                                    .limited = ending->limited };
        if (live->attention != NULL)
            hypotheses[i].attention = copy_attention(live, ending, results, scratch);
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
    const real *hidden = decode_rows(search, n);
    const struct beam_candidate *candidates = score_rows(search, hidden, n);
    int n_live = 0;
    for (int i = 0; i < search->n_live; i++) {
        struct live_sentence *live = &search->live[i];
        int rows = live->beam.n_live;
        beam_step(&live->beam, candidates);
        candidates += (size_t)rows * (size_t)search->options->beam_size;
        if (live->beam.n_live == 0)
            keep_results(live, results, search->run->arena);
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
    start_search(&search, sentences, n);
    while (search.n_live > 0)
        step(&search, results);
    arena_reset(run->arena, mark);
}
