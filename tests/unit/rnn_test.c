/*
 * rnn_test.c: recurrent encoder and decoder: the steps of a batch, what an observer is shown and how it
 * hangs together, attention in translations, and the attention that such a model does not have. Gradients,
 * golden values, beams and the laws of translation are in the tests of those names and in ssru_test.c.
 */
#include "model/decoder.h"
#include "tiny_model.h"

static struct arena arena;
static struct tfm_error err;

static void test_steps(void)
{
    static const int start[] = { 0, 3, 4, 6 };
    struct tokens tokens = { .n_sentences = 3, .n = 6, .start = start };
    struct rnn_steps steps;
    rnn_steps_take(&steps, &tokens, false, &arena);
    const int starts[] = { 0, 3, 5, 6 };
    const int rows[] = { 0, 3, 4, 1, 5, 2 }, before[] = { -1, 0, 1, -1, -1, 4 };
    CHECK(steps.n_steps == 3 && memcmp(steps.start, starts, sizeof(starts)) == 0,
          "as many steps as the longest has");
    CHECK(memcmp(steps.row, rows, sizeof(rows)) == 0, "a step has the sentences that still run");
    CHECK(memcmp(steps.before, before, sizeof(before)) == 0, "each row goes on from the one before");
    rnn_steps_take(&steps, &tokens, true, &arena);
    const int rows_back[] = { 2, 3, 5, 1, 4, 0 }, behind[] = { 1, 2, -1, -1, 5, -1 };
    CHECK(memcmp(steps.row, rows_back, sizeof(rows_back)) == 0, "backwards a sentence begins at its end");
    CHECK(memcmp(steps.before, behind, sizeof(behind)) == 0, "and a row goes on from the one behind");
    real by_row[6] = { 10, 11, 12, 13, 14, 15 }, by_step[6], again[6] = { 0 };
    rnn_gather(by_step, by_row, 1, 1, &steps, 0, 3);
    rnn_scatter(again, 1, by_step, 1, &steps, 0, 3);
    CHECK(by_step[0] == 12 && by_step[5] == 10 && memcmp(again, by_row, sizeof(again)) == 0,
          "rows are put in the order of the steps, and back");
    arena_reset(&arena, 0);
}

/* ---- a look inside ---- */

#define SOURCE "bado kile navermur."
#define MOST   (64 * 24)

struct seen {
    struct tfm_value weights, context, memory;
    float weight[MOST], mix[MOST], source[MOST];
    int n_weights, n_self;
    bool has_gates;
};

static void keep(struct tfm_value *kept, float *copy, const struct tfm_value *value)
{
    *kept = *value;
    for (int i = 0; i < value->rows && (i + 1) * value->cols <= MOST; i++)
        memcpy(copy + (size_t)(i * value->cols), value->data + (size_t)(i * value->stride),
               (size_t)value->cols * sizeof(*copy));
}

static void look(void *user, const struct tfm_value *value)
{
    struct seen *seen = user;
    if (strcmp(value->name, "encoder.out") == 0)
        keep(&seen->memory, seen->source, value);
    if (strcmp(value->name, "decoder.layers.0.encoder_attn.out") == 0)
        keep(&seen->context, seen->mix, value);
    if (strstr(value->name, "encoder_attn.weights") != NULL) {
        keep(&seen->weights, seen->weight, value);
        seen->n_weights++;
    }
    seen->n_self += strstr(value->name, "self_attn") != NULL;
    seen->has_gates |= strcmp(value->name, "encoder.layers.1.rnn.gates") == 0 && value->cols == 4 * 24;
}

static void test_observe(const struct tfm_model *model)
{
    static struct seen seen;
    CHECK_INT(tfm_observe(model, SOURCE, "kile bado", look, &seen, &err), TFM_OK, "a pair is observed");
    CHECK(seen.n_weights == 1 && seen.weights.rows > 2 && seen.weights.rows == seen.context.rows &&
              seen.weights.cols == seen.memory.rows && seen.weights.layer == 0 && seen.weights.head == 0,
          "attention is one matrix, of the first layer");
    double sums = 0, worst = 0;
    for (int t = 0; t < seen.weights.rows; t++) {
        double sum = 0;
        for (int j = 0; j < seen.weights.cols; j++)
            sum += (double)seen.weight[t * seen.weights.cols + j];
        sums = check_worse(sums, fabs(sum - 1));
        for (int i = 0; i < 24; i++) {
            double mix = 0;
            for (int j = 0; j < seen.weights.cols; j++)
                mix += (double)seen.weight[t * seen.weights.cols + j] * (double)seen.source[j * 24 + i];
            worst = check_worse(worst, fabs(mix - (double)seen.mix[t * 24 + i]));
        }
    }
    CHECK_NEAR(sums, 0, 1e-6, "its rows sum to 1");
    CHECK_NEAR(worst, 0, 1e-6, "the context is the memory weighed by it");
    CHECK(seen.has_gates, "the gates of both ways are shown");
    CHECK_INT(seen.n_self, 0, "there is no self-attention");
}

static void test_attention(const struct tfm_model *model)
{
    struct tfm_attention_options options;
    tfm_attention_options_init(&options);
    options.format = TFM_JSON;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    for (int part = TFM_ENCODER; part <= TFM_DECODER; part++) {
        options.part = part;
        CHECK_INT(tfm_attention(model, "bado", NULL, &options, out, &err), TFM_EINVAL,
                  "self-attention is refused");
        CHECK(strstr(err.message, "no self-attention: recurrent layers stand in its place") != NULL,
              "and the message says why: %s", err.message);
    }
    options.part = TFM_CROSS;
    CHECK_INT(tfm_attention(model, "bado", NULL, &options, out, &err), TFM_OK,
              "attention to the source is shown");
    fclose(out);
    free(text);
}

/* ---- translation ---- */

static void test_alignment(const struct tfm_model *model)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator = NULL;
    const struct tfm_translation *result;
    tfm_translate_options_init(&options);
    options.alignment = TFM_ALIGN_PIECES;
    options.alignment_layer = 1;
    CHECK_INT(tfm_translator_new(&translator, model, &options, &err), TFM_EINVAL,
              "a second layer of attention");
    CHECK(strstr(err.message, "must be from 0 to 0") != NULL, "is not there: %s", err.message);
    options.alignment_layer = -1;
    const char *line = SOURCE;
    if (!CHECK(tfm_translator_new(&translator, model, &options, &err) == TFM_OK &&
                   tfm_translate_forced(translator, &line, (const char *const[]){ "kile bado" }, 1, &result,
                                        &err) == TFM_OK,
               "a translation with its alignment"))
        return;
    const struct tfm_hypothesis *h = &result->hypotheses[0];
    static struct seen seen;
    tfm_observe(model, SOURCE, h->text, look, &seen, &err);
    /* Without </s>, whose part the others get. */
    double worst = 0, rest = 1 - (double)seen.weight[seen.weights.cols - 1];
    for (int j = 0; j < h->n_source_units; j++)
        worst = check_worse(worst, fabs((double)h->alignment[j] - (double)seen.weight[j] / rest));
    CHECK(h->n_source_units == seen.weights.cols - 1 && worst < 1e-5,
          "the alignment of the first piece is the attention that an observer sees (%.1e)", worst);
    tfm_translator_free(translator);
}

int main(void)
{
    if (!CHECK(arena_init(&arena, (size_t)64 << 20, &err) == TFM_OK, "arena"))
        return check_done();
    test_steps();
    struct tfm_model *model = tiny_open(
        "lstm", &(struct tiny_options){ .seed = 9, .eos_bias = 2, .is_rnn = true, .rnn_cell = TFM_RNN_LSTM });
    test_observe(model);
    test_attention(model);
    test_alignment(model);
    CHECK(decoder_cache_size(&model->net, 1000, 10, 5) == decoder_cache_size(&model->net, 100, 10, 5),
          "what a search keeps does not grow with the length");
    tfm_model_free(model);
    arena_release(&arena);
    return check_done();
}
