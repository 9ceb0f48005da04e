/*
 * laws_test.c: laws that translation obeys whatever the weights are: nothing depends on batch, order,
 * threads, processor or observers; a decoding step gives the same bits as the whole target at once; beam 1
 * is greedy search; a translation's score is the one that scoring the pair gives; what comes later changes
 * nothing before it.
 */
#include <string.h>

#include "decode/translator.h"
#include "model/loss.h"
#include "same_translations.h"
#include "tiny_model.h"

#define N_LINES 24

static struct str line_texts[N_LINES];
static const char *lines[N_LINES];
static struct arena arena;

static void make_lines(void)
{
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&line_texts[i], rng_key(77, (uint64_t)(i == 9 ? 8 : i), 0, 0),
                          i == 9 ? 9 : 1 + i % 13);
        lines[i] = line_texts[i].data != NULL ? line_texts[i].data : "";
    }
}

static struct tfm_translate_options with(int beam_size, int n_best, int mini_batch, int threads)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.beam_size = beam_size;
    o.n_best = n_best;
    o.mini_batch = mini_batch;
    o.threads = threads;
    o.max_length = 60; /* no line has more, and so long may a language model go on */
    return o;
}

static struct tfm_translator *open_translator(const struct tfm_model *model,
                                              const struct tfm_translate_options *options,
                                              const struct kern *kern)
{
    struct tfm_translator *t;
    struct tfm_error err;
    if (translator_new(&t, &model->net, model->source, model->target, kern, options, NULL, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a translator can be made");
        exit(check_done());
    }
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *texts, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    if (tfm_translate(t, texts, n, &result, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "translation works");
        exit(check_done());
    }
    return result;
}

/* ---- the way of translating does not matter ---- */

static void test_batches(const struct tfm_model *model)
{
    struct tfm_translate_options whole = with(4, 3, 64, 1), small = with(4, 3, 5, 1),
                                 three = with(4, 3, 4, 3);
    struct tfm_translator *a = open_translator(model, &whole, model->kern);
    struct tfm_translator *b = open_translator(model, &small, model->kern);
    struct tfm_translator *c = open_translator(model, &three, model->kern);
    const struct tfm_translation *all = translate(a, lines, N_LINES);
    CHECK_INT(differences(all, translate(b, lines, N_LINES), N_LINES), 0,
              "batches of 5 give what one batch gives");
    CHECK_INT(differences(all, translate(c, lines, N_LINES), N_LINES), 0,
              "three threads give what one gives");

    int wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&all[i], translate(b, &lines[i], 1));
    CHECK_INT(wrong, 0, "a batch of n gives what n single lines give");

    const char *shuffled[N_LINES];
    int order[N_LINES];
    for (int i = 0; i < N_LINES; i++)
        order[i] = i;
    rng_shuffle(3, order, N_LINES);
    for (int i = 0; i < N_LINES; i++)
        shuffled[i] = lines[order[i]];
    const struct tfm_translation *other = translate(c, shuffled, N_LINES);
    wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&all[order[i]], &other[i]);
    CHECK_INT(wrong, 0, "the order of lines does not matter");
    CHECK(same(&all[8], &all[9]), "the same line gives the same translation");

    struct tfm_translate_options one = with(4, 1, 64, 1);
    struct tfm_translator *d = open_translator(model, &one, model->kern);
    const struct tfm_translation *best = translate(d, lines, N_LINES);
    wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += strcmp(best[i].hypotheses[0].text, all[i].hypotheses[0].text) != 0 ||
                 best[i].hypotheses[0].score != all[i].hypotheses[0].score;
    CHECK_INT(wrong, 0, "the best of an n-best list is what is printed without one");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
    tfm_translator_free(d);
}

static void test_tiers(const struct tfm_model *model)
{
    struct tfm_translate_options options = with(3, 3, 16, 1);
    struct tfm_translator *reference = open_translator(model, &options, kern_for(CPU_REF));
    const struct tfm_translation *expected = translate(reference, lines, N_LINES);
    for (int tier = CPU_REF + 1; tier < CPU_N_TIERS; tier++) {
        const char *name = cpu_tier_name((enum cpu_tier)tier);
        enum cpu_tier chosen;
        struct tfm_error err;
        if (cpu_choose(name, &chosen, &err) != TFM_OK) {
            SKIP("this machine has no %s", name);
            continue;
        }
        struct tfm_translator *t = open_translator(model, &options, kern_for(chosen));
        CHECK_INT(differences(expected, translate(t, lines, N_LINES), N_LINES), 0,
                  "the tier %s gives the same bits as ref", name);
        tfm_translator_free(t);
    }
    tfm_translator_free(reference);
}

/* ---- the network ---- */

struct pair { /* a batch of pairs, as struct tokens for both sides */
    struct tokens source, target;
    struct ints source_ids, target_ids;
    int source_start[N_LINES + 1], target_start[N_LINES + 1];
};

static void add_side(struct tokens *tokens, struct ints *ids, int *start, int i, const int *pieces, size_t n,
                     int eos)
{
    struct tfm_error err;
    ints_add(ids, pieces, n, &err);
    if (n == 0 || pieces[n - 1] != eos)
        ints_add(ids, &eos, 1, &err);
    start[i + 1] = (int)ids->n;
    *tokens = (struct tokens){ .n_sentences = i + 1, .n = (int)ids->n, .ids = ids->data, .start = start };
}

/* A line is all that a model translates, or the beginning of what a language model writes. */
static bool is_beginning(const struct tfm_model *model)
{
    return tfm_model_is_language_model(model);
}

static void add_pair(struct pair *pair, const struct tfm_model *model, int i, const char *text,
                     const int *pieces, int n)
{
    struct tfm_error err;
    struct ints source = { 0 };
    if (!is_beginning(model))
        spm_encode(model->source, text, strlen(text), &source, &err);
    int eos = model->config.eos_token_id;
    add_side(&pair->source, &pair->source_ids, pair->source_start, i, source.data, source.n, eos);
    add_side(&pair->target, &pair->target_ids, pair->target_start, i, pieces, (size_t)n, eos);
    ints_release(&source);
}

static void pair_release(struct pair *pair)
{
    ints_release(&pair->source_ids);
    ints_release(&pair->target_ids);
}

/* Pairs of different lengths; the targets are sources of other lines. */
static void make_pairs(struct pair *pair, const struct tfm_model *model, int n)
{
    struct tfm_error err;
    *pair = (struct pair){ 0 };
    for (int i = 0; i < n; i++) {
        struct ints target = { 0 };
        spm_encode(model->target, lines[n + i], strlen(lines[n + i]), &target, &err);
        add_pair(pair, model, i, lines[i], target.data, (int)target.n);
        ints_release(&target);
    }
}

/* hidden [Nt, D] of whole targets. */
static real *whole_forward(const struct tfm_model *model, const struct pair *pair, const struct tap *tap)
{
    struct run run = { .arena = &arena, .kern = model->kern, .tap = tap };
    size_t d = (size_t)model->config.d_model;
    real *memory = ARENA_TAKE(&arena, real, (size_t)pair->source.n * d);
    real *hidden = ARENA_TAKE(&arena, real, (size_t)pair->target.n * d);
    encoder_forward(memory, NULL, &pair->source, &model->net, &run);
    decoder_forward(hidden, NULL, &pair->target, &pair->source, memory, &model->net, &run);
    return hidden;
}

/* Step t of all sentences whose target has one: their rows, in order of sentences. Returns how many there
 * are. */
static int one_step(real *hidden, struct decoder_cache *cache, int rows[][64], int t, const struct pair *pair,
                    const struct tfm_model *model, const struct run *run)
{
    int ids[N_LINES], positions[N_LINES], n = 0, first = cache->n_rows;
    struct attn_segment self[N_LINES], cross[N_LINES];
    for (int i = 0; i < pair->target.n_sentences; i++) {
        int start = pair->target.start[i];
        if (start + t >= pair->target.start[i + 1])
            continue;
        ids[n] = t == 0 ? model->config.decoder_start_token_id : pair->target.ids[start + t - 1];
        positions[n] = t;
        rows[i][t] = first + n;
        self[n] = (struct attn_segment){ .q_start = n, .n_q = 1, .n_k = t + 1, .k_rows = rows[i] };
        cross[n] = (struct attn_segment){ .q_start = n, .n_q = 1, .k_start = pair->source.start[i] };
        cross[n].n_k = pair->source.start[i + 1] - pair->source.start[i];
        n++;
    }
    if (n > 0) {
        struct block_input in = { .n = n, .self = self, .n_self = n, .cross = cross, .n_cross = n };
        decoder_step(hidden, cache, ids, positions, &in, &model->net, run);
    }
    return n;
}

static void test_steps(const struct tfm_model *model)
{
    struct pair pair;
    make_pairs(&pair, model, 10);
    struct run run = { .arena = &arena, .kern = model->kern };
    size_t d = (size_t)model->config.d_model;
    const real *whole = whole_forward(model, &pair, NULL);
    real *memory = ARENA_TAKE(&arena, real, (size_t)pair.source.n * d),
         *hidden = ARENA_TAKE(&arena, real, N_LINES * d);
    encoder_forward(memory, NULL, &pair.source, &model->net, &run);
    struct decoder_cache cache;
    decoder_start(&cache, memory, &pair.source, pair.target.n, N_LINES, &model->net, &run);
    static int rows[N_LINES][64];
    int wrong = 0, compared = 0;
    for (int t = 0; t < 64; t++) {
        const real *row = hidden;
        int n = one_step(hidden, &cache, rows, t, &pair, model, &run);
        for (int i = 0; i < pair.target.n_sentences && n > 0; i++) {
            int at = pair.target.start[i] + t;
            if (at >= pair.target.start[i + 1])
                continue;
            wrong += memcmp(row, whole + (size_t)at * d, d * sizeof(real)) != 0;
            compared++;
            row += d;
        }
    }
    CHECK_INT(compared, pair.target.n, "all rows were compared");
    CHECK_INT(wrong, 0, "step t against the cache gives the bits of row t of the whole");
    arena_reset(&arena, 0);
    pair_release(&pair);
}

static void count_shown(void *user, const char *name, int layer, int head, const real *x, int rows, int cols,
                        int stride)
{
    (void)name, (void)layer, (void)head, (void)x, (void)rows, (void)cols, (void)stride;
    ++*(int *)user;
}

static void test_tap(const struct tfm_model *model)
{
    struct pair pair;
    make_pairs(&pair, model, 6);
    int shown = 0;
    struct tap tap = { count_shown, &shown };
    const real *without = whole_forward(model, &pair, NULL), *with_tap = whole_forward(model, &pair, &tap);
    CHECK(memcmp(without, with_tap, (size_t)(pair.target.n * model->config.d_model) * sizeof(real)) == 0,
          "an observer changes no bit");
    CHECK(shown > 20, "it was shown %d values", shown);
    arena_reset(&arena, 0);
    pair_release(&pair);
}

static void test_causality(const struct tfm_model *model)
{
    struct pair pair;
    make_pairs(&pair, model, 2);
    size_t d = (size_t)model->config.d_model;
    int last = pair.target.n - 1, start = pair.target.start[1], wrong = 0, unchanged = 0;
    const real *before = whole_forward(model, &pair, NULL);
    for (int t = start; t < last; t++) {
        size_t mark = arena_mark(&arena);
        int was = pair.target_ids.data[t];
        pair.target_ids.data[t] = was == 5 ? 6 : 5;
        const real *after = whole_forward(model, &pair, NULL);
        wrong += memcmp(before, after, (size_t)(t + 1) * d * sizeof(real)) != 0; /* row t predicts token t */
        unchanged += memcmp(before + (size_t)(t + 1) * d, after + (size_t)(t + 1) * d, d * sizeof(real)) == 0;
        pair.target_ids.data[t] = was;
        arena_reset(&arena, mark);
    }
    CHECK_INT(wrong, 0, "a target token changes nothing before it");
    CHECK_INT(unchanged, 0, "and does change what follows");
    arena_reset(&arena, 0);
    pair_release(&pair);
}

/* Greedy search without cache: the whole target anew for each piece behind the n that are there. */
static int greedy(int *pieces, int n, const struct tfm_model *model, const char *text, int limit)
{
    struct run run = { .arena = &arena, .kern = model->kern };
    int eos = model->config.eos_token_id, v = model->config.vocab_size;
    size_t d = (size_t)model->config.d_model;
    while (n < limit) {
        struct pair pair = { 0 };
        pieces[n] = 5; /* any: row n does not see it */
        add_pair(&pair, model, 0, text, pieces, n + 1);
        const real *hidden = whole_forward(model, &pair, NULL);
        real *logits = ARENA_TAKE(&arena, real, v);
        linear_forward(logits, hidden + (size_t)n * d, &model->net.unembed, 1, &run);
        int best = eos;
        for (int i = 0; i < v; i++)
            if (i != model->config.unk_token_id &&
                (logits[i] > logits[best] || (logits[i] == logits[best] && i < best)))
                best = i;
        pieces[n++] = best;
        arena_reset(&arena, 0);
        pair_release(&pair);
        if (best == eos)
            break;
    }
    return n;
}

static void test_greedy(const struct tfm_model *model)
{
    struct tfm_translate_options options = with(1, 1, 8, 1);
    if (!is_beginning(model))
        options.max_length_factor = 1;
    struct tfm_translator *t = open_translator(model, &options, model->kern);
    const struct tfm_translation *found = translate(t, lines, N_LINES);
    int wrong = 0;
    for (int i = 0; i < N_LINES; i++) {
        int pieces[128];
        const struct tfm_hypothesis *h = &found[i].hypotheses[0];
        if (lines[i][0] == '\0' && !is_beginning(model))
            continue;
        struct ints source = { 0 };
        struct tfm_error err;
        spm_encode(model->source, lines[i], strlen(lines[i]), &source, &err);
        int n = (int)source.n, n_begun = is_beginning(model) ? n : 0;
        for (int j = 0; j < n_begun; j++)
            pieces[j] = source.data[j];
        n = greedy(pieces, n_begun, model, lines[i], (is_beginning(model) ? options.max_length : n) + 10);
        wrong += n != h->n_pieces || memcmp(pieces, h->pieces, (size_t)n * sizeof(int)) != 0;
        ints_release(&source);
    }
    CHECK_INT(wrong, 0, "a beam of 1 is greedy search");
    tfm_translator_free(t);
}

static void test_scores(const struct tfm_model *model)
{
    struct tfm_translate_options options = with(4, 4, 8, 1);
    struct tfm_translator *t = open_translator(model, &options, model->kern);
    const struct tfm_translation *found = translate(t, lines, N_LINES);
    struct run run = { .arena = &arena, .kern = model->kern };
    double worst = 0;
    int compared = 0, wrong_sums = 0;
    for (int i = 0; i < N_LINES; i++) {
        for (int h = 0; h < found[i].n_hypotheses && found[i].n_parts > 0; h++) {
            const struct tfm_hypothesis *hypothesis = &found[i].hypotheses[h];
            int n = hypothesis->n_pieces;
            struct pair pair = { 0 };
            add_pair(&pair, model, 0, lines[i], hypothesis->pieces, n);
            real *nll = ARENA_TAKE(&arena, real, n + 1);
            struct xent_sum sum = { 0 };
            loss_batch(&sum, nll, NULL, &pair.source, &pair.target, &(struct criterion){ 0 }, &model->net,
                       &run);
            double total = 0, sum_found = 0;
            for (int j = 0; j < n; j++) {
                worst = check_worse(worst, fabs((double)nll[j] + hypothesis->piece_scores[j]));
                total -= nll[j];
                sum_found += hypothesis->piece_scores[j];
                compared++;
            }
            worst = check_worse(worst, fabs(total - hypothesis->score));
            wrong_sums +=
                sum_found != hypothesis->score || hypothesis->normalized_score != hypothesis->score / n;
            arena_reset(&arena, 0);
            pair_release(&pair);
        }
    }
    CHECK(compared > 100, "%d pieces were scored again", compared);
    CHECK_NEAR(worst, 0, 1e-4, "scoring a translation gives the score it was found with");
    CHECK_INT(wrong_sums, 0, "a score is the sum of the pieces' scores");
    tfm_translator_free(t);
}

static void test_model(const struct tfm_model *model)
{
    test_batches(model);
    test_tiers(model);
    test_steps(model);
    test_tap(model);
    test_causality(model);
    test_greedy(model);
    test_scores(model);
}

/* What int8 computes is what fp32 does, nearly: the deviation is measured against what the rows are like. */
static void test_near(const struct tfm_model *model, const struct tfm_model *int8)
{
    struct pair pair;
    make_pairs(&pair, model, 10);
    const real *x = whole_forward(model, &pair, NULL), *y = whole_forward(int8, &pair, NULL);
    double error = 0, size = 0;
    for (int i = 0; i < pair.target.n * model->config.d_model; i++) {
        error += (double)(x[i] - y[i]) * (double)(x[i] - y[i]);
        size += (double)x[i] * (double)x[i];
    }
    CHECK(error > 0 && sqrt(error / size) < 0.03, "int8 is near to fp32 (%.4f)", sqrt(error / size));
    arena_reset(&arena, 0);
    pair_release(&pair);
}

int main(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct tiny_options options;
    } variants[] = {
        { "post-norm, all tied", { .eos_bias = 2.5f, .seed = 3, .tie = TFM_TIE_ALL } },
        { "pre-norm, nothing tied", { .eos_bias = 2.5f, .seed = 4, .tie = TFM_TIE_NONE, .pre_norm = true } },
        { "SSRU, post-norm, all tied", { .eos_bias = 2.5f, .seed = 5, .tie = TFM_TIE_ALL, .cell = TFM_CELL_SSRU } },
        { "SSRU, pre-norm, nothing tied",
          { .eos_bias = 2.5f, .seed = 6, .tie = TFM_TIE_NONE, .cell = TFM_CELL_SSRU, .pre_norm = true } },
        { "RMS, pre-norm, SwiGLU",
          { .eos_bias = 2.5f, .seed = 7, .pre_norm = true, .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_SWIGLU } },
        { "RMS, post-norm, GELU",
          { .eos_bias = 2.5f, .seed = 8, .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_GELU } },
        { "SSRU, GELU by tanh",
          { .eos_bias = 2.5f, .seed = 9, .cell = TFM_CELL_SSRU, .activation = TFM_ACTIVATION_GELU_TANH } },
        { "interleaved sinusoids", { .eos_bias = 2.5f, .seed = 7, .positions = TFM_POSITIONS_INTERLEAVED } },
        { "learned positions, some lines longer",
          { .eos_bias = 2.5f, .seed = 8, .positions = TFM_POSITIONS_LEARNED, .max_positions = 10 } },
        { "RoPE", { .eos_bias = 2.5f, .seed = 9, .positions = TFM_POSITIONS_ROPE } },
        { "ALiBi", { .eos_bias = 2.5f, .seed = 10, .positions = TFM_POSITIONS_ALIBI, .pre_norm = true } },
        { "relative biases", { .eos_bias = 2.5f, .seed = 11, .positions = TFM_POSITIONS_RELATIVE } },
        { "one head", { .eos_bias = 2.5f, .seed = 13, .heads = 1 } },
        { "heads of one column", { .eos_bias = 2.5f, .seed = 14, .heads = 24, .pre_norm = true } },
        { "multi-query attention, not scaled",
          { .eos_bias = 2.5f, .seed = 15, .kv_heads = 1, .scale = TFM_SCALE_NONE, .pre_norm = true } },
        { "grouped queries, RoPE, a window",
          { .eos_bias = 2.5f, .seed = 16, .heads = 6, .kv_heads = 2, .positions = TFM_POSITIONS_ROPE, .window = 3 } },
        { "a window, ALiBi",
          { .eos_bias = 2.5f, .seed = 17, .positions = TFM_POSITIONS_ALIBI, .window = 2, .pre_norm = true } },
        { "additive attention", { .eos_bias = 2.5f, .seed = 18, .function = TFM_ATTENTION_ADDITIVE } },
        { "additive attention, grouped, relative, a window",
          { .eos_bias = 2.5f, .seed = 19, .heads = 6, .kv_heads = 3, .function = TFM_ATTENTION_ADDITIVE,
            .positions = TFM_POSITIONS_RELATIVE, .window = 4, .pre_norm = true } },
        { "no positions", { .eos_bias = 2.5f, .seed = 12, .positions = TFM_POSITIONS_NONE, .pre_norm = true } },
        { "a decoder alone, post-norm", { .eos_bias = 2.5f, .seed = 20, .is_decoder = true } },
        { "a decoder alone, pre-norm, nothing tied, relative",
          { .eos_bias = 2.5f, .seed = 21, .tie = TFM_TIE_NONE, .pre_norm = true, .is_decoder = true,
            .positions = TFM_POSITIONS_RELATIVE } },
        { "a decoder alone, RoPE, grouped queries, RMS, SwiGLU",
          { .eos_bias = 2.5f, .seed = 22, .pre_norm = true, .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_SWIGLU,
            .heads = 6, .kv_heads = 2, .positions = TFM_POSITIONS_ROPE, .is_decoder = true } },
        { "a decoder alone, ALiBi, additive",
          { .eos_bias = 2.5f, .seed = 23, .positions = TFM_POSITIONS_ALIBI, .function = TFM_ATTENTION_ADDITIVE,
            .is_decoder = true } },
        { "a decoder alone, learned positions, some lines longer",
          { .eos_bias = 2.5f, .seed = 24, .positions = TFM_POSITIONS_LEARNED, .max_positions = 10, .is_decoder = true } },
        { "a language model, post-norm", { .eos_bias = 2.5f, .seed = 25, .is_decoder = true, .is_language = true } },
        { "a language model, pre-norm, RoPE",
          { .eos_bias = 2.5f, .seed = 26, .pre_norm = true, .positions = TFM_POSITIONS_ROPE, .is_decoder = true,
            .is_language = true } },
        { "a language model, learned positions, some lines longer",
          { .eos_bias = 2.5f, .seed = 27, .positions = TFM_POSITIONS_LEARNED, .max_positions = 10, .is_decoder = true,
            .is_language = true } },
        { "GRU, all tied", { .eos_bias = 2.5f, .seed = 7, .tie = TFM_TIE_ALL, .is_rnn = true } },
        { "LSTM, nothing tied",
          { .eos_bias = 2.5f, .seed = 8, .tie = TFM_TIE_NONE, .is_rnn = true, .rnn_cell = TFM_RNN_LSTM,
            .rnn_attention = TFM_RNN_DOT } },
    };
    /* clang-format on */
    struct tfm_error err;
    if (!CHECK(arena_init(&arena, (size_t)1 << 30, &err) == TFM_OK, "arena"))
        return check_done();
    make_lines();
    for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
        const char *name = variants[i].name;
        check_note("%s", name);
        char folder[8];
        snprintf(folder, sizeof(folder), "%zu", i);
        struct tfm_model *model = tiny_open(folder, &variants[i].options), *int8 = NULL;
        test_model(model);
        check_note("%s, in int8", name);
        if (CHECK(tfm_model_open_as(&int8, model->folder, TFM_PRECISION_INT8, &err) == TFM_OK &&
                      tfm_model_precision(int8) == TFM_PRECISION_INT8,
                  "opened as int8"))
            test_model(int8);
        test_near(model, int8);
        tfm_model_free(int8);
        tfm_model_free(model);
    }
    for (int i = 0; i < N_LINES; i++)
        str_release(&line_texts[i]);
    arena_release(&arena);
    return check_done();
}
