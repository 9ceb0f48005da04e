/*
 * joint_test.c: a decoder-only model seen from outside: its sequence of source and target, what it shows of its
 * attention, alignments out of self-attention, and an ensemble with a model that has an encoder. What holds for every
 * model (batches, steps, tiers, scores) is in laws_test.c.
 */
#include <string.h>

#include "model/joint.h"
#include "tiny_model.h"

#define SOURCE "badoki le murna"

static struct tfm_error err;

/* ---- the sequence ---- */

static void test_rows(void)
{
    static const int source_start[] = { 0, 3, 4, 6 }, target_start[] = { 0, 1, 3, 6 };
    const struct tokens source = { .n_sentences = 3, .n = 6, .start = source_start };
    const struct tokens target = { .n_sentences = 3, .n = 6, .start = target_start };
    const real of_source[] = { 1, 2, 99, 99, 3, 99 }, of_target[] = { 11, 12, 13, 14, 15, 16 };
    const real expected[] = { 1, 2, 11, 12, 13, 3, 14, 15, 16 };
    real x[9], back_source[6], back_target[6];
    struct arena arena;
    struct joint joint;
    if (!CHECK(arena_init(&arena, (size_t)1 << 20, &err) == TFM_OK, "arena"))
        return;
    joint_lay(&joint, &source, &target, &arena);
    CHECK_INT(joint.tokens.n, 9, "each source gives up its </s>");
    joint_gather(x, of_source, of_target, &joint, 1);
    CHECK(memcmp(x, expected, sizeof(x)) == 0,
          "each source comes before its target; one of them is only a </s>");
    joint_scatter(back_source, back_target, x, &joint, 1);
    CHECK(memcmp(back_target, of_target, sizeof(back_target)) == 0, "the target's rows come back");
    CHECK(back_source[1] == 2 && back_source[2] == 0 && back_source[3] == 0 && back_source[4] == 3,
          "and the source's, with nothing for </s>");
    arena_release(&arena);
}

/* ---- attention ---- */

static void test_parts(const struct tfm_model *model)
{
    struct tfm_attention_options options;
    tfm_attention_options_init(&options);
    options.format = TFM_JSON;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const enum tfm_part without[] = { TFM_ENCODER, TFM_CROSS };
    for (int i = 0; i < 2; i++) {
        options.part = without[i];
        CHECK_INT(tfm_attention(model, SOURCE, NULL, &options, out, &err), TFM_EINVAL,
                  "there is one part only");
        CHECK(strstr(err.message, "it can show the part decoder") != NULL, "and the message says which: %s",
              err.message);
    }
    options.part = TFM_PART_AUTO;
    CHECK_INT(tfm_attention(model, "ba", "do", &options, out, &err), TFM_OK, "which is shown unasked");
    fclose(out);
    const char *keys = strstr(text, "\"keys\""), *queries = strstr(text, "\"queries\"");
    CHECK(keys != NULL && queries != NULL && strstr(keys, "<start>") != NULL,
          "with the start symbol among the keys");
    free(text);
}

struct seen {
    int rows, cols;
    int n_source;
    double sums;       /* how far rows are from 1 in sum, at most */
    double weight[64]; /* of the start symbol's row, the mean of the last layer's heads */
    double later;      /* weight on what comes later */
};

static void look(void *user, const struct tfm_value *value)
{
    struct seen *seen = user;
    if (strcmp(value->name, "encoder.embed") == 0)
        seen->n_source = value->rows - 1;
    if (strcmp(value->name, "decoder.layers.1.self_attn.weights") != 0)
        return;
    seen->rows = value->rows;
    seen->cols = value->cols;
    for (int i = 0; i < value->rows; i++) {
        const float *row = value->data + (size_t)i * (size_t)value->stride;
        double sum = 0;
        for (int j = 0; j < value->cols; j++) {
            sum += row[j];
            seen->later += j > i ? row[j] : 0;
        }
        seen->sums = check_worse(seen->sums, fabs(sum - 1));
    }
    const float *row = value->data + (size_t)seen->n_source * (size_t)value->stride;
    for (int j = 0; j <= seen->n_source && j < 64; j++)
        seen->weight[j] += row[j] / 3.0;
}

static void test_alignment(const struct tfm_model *model)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator = NULL;
    const struct tfm_translation *result;
    const char *line = SOURCE, *forced = "kile bado";
    tfm_translate_options_init(&options);
    options.alignment = TFM_ALIGN_PIECES;
    if (!CHECK(tfm_translator_new(&translator, model, &options, &err) == TFM_OK &&
                   tfm_translate_forced(translator, &line, &forced, 1, &result, &err) == TFM_OK,
               "a translation with its alignment"))
        return;
    const struct tfm_hypothesis *h = &result->hypotheses[0];
    struct seen seen = { 0 };
    tfm_observe(model, SOURCE, h->text, look, &seen, &err);
    CHECK_INT(seen.cols, seen.rows, "one sequence looks at itself");
    CHECK(seen.rows >= seen.n_source + h->n_pieces - 1, "with source and target (%d rows)", seen.rows);
    CHECK(seen.sums < 1e-5 && seen.later == 0, "rows sum to 1 and see nothing that comes later");
    double worst = 0, rest = 0;
    for (int j = 0; j < seen.n_source; j++)
        rest += seen.weight[j];
    for (int j = 0; j < h->n_source_units; j++)
        worst = check_worse(worst, fabs((double)h->alignment[j] - seen.weight[j] / rest));
    CHECK_INT(h->n_source_units, seen.n_source, "the alignment has all source pieces");
    CHECK(worst < 1e-5, "that of the first piece is the attention of the start symbol's row (%.1e)", worst);
    tfm_translator_free(translator);
}

/* ---- with others ---- */

static double ensemble_score(const struct tfm_model *const *models, const float *weights,
                             const char *const *lines, size_t n, int mini_batch)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator = NULL;
    const struct tfm_translation *result;
    double sum = 0;
    tfm_translate_options_init(&options);
    options.mini_batch = mini_batch;
    options.threads = 1;
    if (!CHECK(tfm_translator_new_ensemble(&translator, models, weights, 2, &options, &err) == TFM_OK &&
                   tfm_translate(translator, lines, n, &result, &err) == TFM_OK,
               "an ensemble translates"))
        return NAN;
    for (size_t i = 0; i < n; i++)
        sum += result[i].hypotheses[0].score * (double)(i + 1);
    tfm_translator_free(translator);
    return sum;
}

/* The members number the rows of a search alike, though one of them has the source before. */
static void test_ensemble(const struct tfm_model *alone, const struct tfm_model *pair)
{
    static const char *const lines[] = { SOURCE, "ba", "do ki le mur na po ri sta" };
    const struct tfm_model *ab[] = { alone, pair }, *ba[] = { pair, alone }, *aa[] = { alone, alone },
                           *bb[] = { pair, pair };
    const float first[] = { 1, 1e-6f };
    double of_alone = ensemble_score(aa, NULL, lines, 3, 64),
           of_pair = ensemble_score(bb, NULL, lines, 3, 64);
    CHECK_NEAR(ensemble_score(ab, first, lines, 3, 64), of_alone, 1e-2, "all weight on the decoder alone");
    CHECK_NEAR(ensemble_score(ba, first, lines, 3, 64), of_pair, 1e-2, "all weight on the other");
    CHECK_NEAR(ensemble_score(ab, NULL, lines, 3, 1), ensemble_score(ab, NULL, lines, 3, 64), 0,
               "a batch of both gives what single lines give");
}

int main(void)
{
    test_rows();
    struct tfm_model *alone = tiny_open(
        "alone", &(struct tiny_options){ .seed = 9, .eos_bias = 2, .pre_norm = true, .is_decoder = true });
    struct tfm_model *pair = tiny_open("pair", &(struct tiny_options){ .seed = 10, .eos_bias = 2 });
    test_parts(alone);
    test_alignment(alone);
    test_ensemble(alone, pair);
    tfm_model_free(alone);
    tfm_model_free(pair);
    return check_done();
}
