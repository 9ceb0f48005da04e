/*
 * ssru_test.c: the recurrent unit: which row a row goes on from, states that follow a beam whatever it chooses,
 * what an observer is shown, and the attention that such a decoder does not have. Gradients, golden values and
 * the laws of translation are in the tests of those names.
 */
#include "model/decoder.h"
#include "nn/ssru.h"
#include "tiny_model.h"

static struct arena arena;
static struct tfm_error err;

static void test_chain(void)
{
    int before[8];
    const struct attn_segment sentences[] = {
        { .q_start = 0, .n_q = 3, .k_start = 0, .n_k = 3, .causal = true },
        { .q_start = 3, .n_q = 1, .k_start = 3, .n_k = 1, .causal = true },
        { .q_start = 4, .n_q = 2, .k_start = 4, .n_k = 2, .causal = true },
    };
    ssru_chain(before, sentences, 3, 0);
    const int expected[] = { -1, 0, 1, -1, -1, 4 };
    CHECK(memcmp(before, expected, sizeof(expected)) == 0,
          "each row of a sentence goes on from the one before");

    const int first[] = { 7 }, second[] = { 3, 9, 12 };
    const struct attn_segment step[] = { { .q_start = 0, .n_q = 1, .k_rows = first, .n_k = 1 },
                                         { .q_start = 1, .n_q = 1, .k_rows = second, .n_k = 3 } };
    ssru_chain(before, step, 2, 8);
    CHECK_INT(before[0], -1, "a first row from nothing");
    CHECK_INT(before[1], 1, "a row of a step from its last ancestor");
}

/* ---- a beam ---- */

enum {
    WIDTH = 4,
    STEPS = 9
};

struct history { /* of a hypothesis */
    int ids[STEPS + 1], rows[STEPS];
};

static int random_below(int n, int step, int row)
{
    return (int)rng_below(rng_key(31, (uint64_t)n, (uint64_t)step, (uint64_t)row), (uint64_t)n);
}

/* Each hypothesis goes on from any of the step before: some die, some have several successors. */
static void choose(struct history *next, const struct history *now, int step)
{
    for (int i = 0; i < WIDTH; i++) {
        next[i] = now[random_below(WIDTH, step, i)];
        next[i].ids[step] = 2 + random_below(90, step, i);
    }
}

/* Whether the last rows of the step are those of the whole targets, bit for bit. */
static bool same_as_whole(const real *hidden, const struct history *history, int n, const real *memory,
                          const struct tokens *source, const struct tfm_model *model, const struct run *run)
{
    size_t mark = arena_mark(&arena), d = (size_t)model->config.d_model;
    real *whole = ARENA_TAKE(&arena, real, (size_t)n * d);
    bool same = true;
    for (int i = 0; i < WIDTH; i++) {
        int start[] = { 0, n };
        /* Row t reads the token before t; what it predicts takes no part. */
        struct tokens target = { 1, n, history[i].ids + 1, start, NULL, NULL };
        decoder_forward(whole, NULL, &target, source, memory, &model->net, run);
        same &= memcmp(whole + (size_t)(n - 1) * d, hidden + (size_t)i * d, d * sizeof(real)) == 0;
    }
    arena_reset(&arena, mark);
    return same;
}

static void test_beam(const struct tfm_model *model)
{
    static const int ids[] = { 5, 9, 14, 3, 0 }, start[] = { 0, 5 };
    struct tokens source = { 1, 5, ids, start, NULL, NULL };
    struct run run = { .arena = &arena, .kern = model->kern };
    size_t d = (size_t)model->config.d_model;
    real *memory = ARENA_TAKE(&arena, real, 5 * d), *hidden = ARENA_TAKE(&arena, real, WIDTH * d);
    encoder_forward(memory, NULL, &source, &model->net, &run);
    struct decoder_cache cache;
    decoder_start(&cache, memory, &source, WIDTH * STEPS, WIDTH, &model->net, &run);
    size_t used = arena_mark(&arena);
    static struct history now[WIDTH], next[WIDTH];
    bool same = true;
    for (int t = 0; t < STEPS; t++) {
        int tokens[WIDTH], positions[WIDTH];
        struct attn_segment self[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            now[i].ids[0] = model->config.decoder_start_token_id;
            now[i].rows[t] = cache.n_rows + i;
            tokens[i] = now[i].ids[t];
            positions[i] = t;
            self[i] = (struct attn_segment){ .q_start = i, .n_q = 1, .n_k = t + 1, .k_rows = now[i].rows };
        }
        struct attn_segment cross = { .n_q = WIDTH, .n_k = 5 };
        struct block_input in = { .n = WIDTH, .self = self, .n_self = WIDTH, .cross = &cross, .n_cross = 1 };
        decoder_step(hidden, &cache, tokens, positions, &in, &model->net, &run);
        same &= same_as_whole(hidden, now, t + 1, memory, &source, model, &run);
        choose(next, now, t + 1);
        memcpy(now, next, sizeof(now));
    }
    CHECK(same, "whatever a beam chooses, a step gives the bits of the whole target");
    CHECK_INT((long long)arena_mark(&arena), (long long)used, "and takes no memory to keep");
    arena_reset(&arena, 0);
}

/* ---- a look inside ---- */

struct seen { /* of decoder layer 1 */
    struct tfm_value forget, input, state;
    float values[3][64 * 24];
    int n_self;
};

static void keep(struct tfm_value *kept, float *copy, const struct tfm_value *value)
{
    *kept = *value;
    for (int i = 0; i < value->rows && i < 64; i++)
        memcpy(copy + (size_t)(i * value->cols), value->data + (size_t)(i * value->stride),
               (size_t)value->cols * sizeof(*copy));
}

static void look(void *user, const struct tfm_value *value)
{
    struct seen *seen = user;
    if (strcmp(value->name, "decoder.layers.1.ssru.forget") == 0)
        keep(&seen->forget, seen->values[0], value);
    if (strcmp(value->name, "decoder.layers.1.ssru.input") == 0)
        keep(&seen->input, seen->values[1], value);
    if (strcmp(value->name, "decoder.layers.1.ssru.state") == 0)
        keep(&seen->state, seen->values[2], value);
    seen->n_self += strncmp(value->name, "decoder.", 8) == 0 && strstr(value->name, "self_attn") != NULL;
}

static void test_observe(const struct tfm_model *model)
{
    static struct seen seen;
    CHECK_INT(tfm_observe(model, "bado kile navermur.", "kile bado", look, &seen, &err), TFM_OK,
              "a pair is observed");
    CHECK(seen.forget.rows > 2 && seen.forget.rows == seen.state.rows && seen.input.rows == seen.state.rows &&
              seen.state.cols == 24 && seen.state.layer == 1,
          "gate, input and state of each position are shown");
    double worst = 0;
    for (int i = 0; i < seen.state.rows * 24; i++) {
        double f = (double)seen.values[0][i], before = i < 24 ? 0 : (double)seen.values[2][i - 24];
        double state = f * before + (1 - f) * (double)seen.values[1][i];
        worst = check_worse(worst, fabs(state - (double)seen.values[2][i]));
    }
    CHECK_NEAR(worst, 0, 1e-6, "and hold to c = f c + (1 - f) u");
    CHECK_INT(seen.n_self, 0, "there is no self-attention in the decoder");
}

static void test_attention(const struct tfm_model *model)
{
    struct tfm_attention_options options;
    tfm_attention_options_init(&options);
    options.format = TFM_JSON;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    options.part = TFM_DECODER;
    CHECK_INT(tfm_attention(model, "bado", NULL, &options, out, &err), TFM_EINVAL,
              "self-attention of the decoder is refused");
    CHECK(strstr(err.message, "no self-attention") != NULL, "and the message says why: %s", err.message);
    for (int part = 0; part < 2; part++) {
        options.part = part == 0 ? TFM_ENCODER : TFM_CROSS;
        CHECK_INT(tfm_attention(model, "bado", NULL, &options, out, &err), TFM_OK,
                  "other attention is shown");
    }
    fclose(out);
    free(text);
}

int main(void)
{
    if (!CHECK(arena_init(&arena, (size_t)64 << 20, &err) == TFM_OK, "arena"))
        return check_done();
    test_chain();
    struct tfm_model *attention = tiny_open("attention", &(struct tiny_options){ .seed = 8, .eos_bias = 2 });
    struct tfm_model *ssru =
        tiny_open("ssru", &(struct tiny_options){ .seed = 9, .eos_bias = 2, .cell = TFM_CELL_SSRU });
    test_beam(attention); /* the same law for keys and values */
    test_beam(ssru);
    struct tfm_model *gru =
        tiny_open("gru", &(struct tiny_options){ .seed = 10, .eos_bias = 2, .is_rnn = true });
    struct tfm_model *lstm = tiny_open("lstm", &(struct tiny_options){ .seed = 11,
                                                                       .eos_bias = 2,
                                                                       .is_rnn = true,
                                                                       .rnn_cell = TFM_RNN_LSTM,
                                                                       .rnn_attention = TFM_RNN_GENERAL });
    test_beam(gru);
    test_beam(lstm);
    tfm_model_free(gru);
    tfm_model_free(lstm);
    CHECK(block_cache_size(&ssru->net.decoder[0], 1000, 10) ==
              block_cache_size(&ssru->net.decoder[0], 100, 10),
          "what a search keeps does not grow with the length");
    test_observe(ssru);
    test_attention(ssru);
    tfm_model_free(ssru);
    tfm_model_free(attention);
    arena_release(&arena);
    return check_done();
}
