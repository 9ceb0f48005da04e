/*
 * ensemble_test.c: laws of models that translate together: twice a model is that model; the order of models
 * does not matter; batches, threads and processors change nothing; a score is the mean of the models' scores;
 * models that do not go together are refused.
 */
#include <string.h>

#include "decode/translator.h"
#include "decode/worker.h"
#include "tiny_model.h"

#define N_LINES 20

static struct str texts[N_LINES];
static const char *lines[N_LINES], *prefixes[N_LINES];

static void make_lines(void)
{
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&texts[i], rng_key(19, (uint64_t)i, 0, 0), 1 + i % 11);
        lines[i] = texts[i].data != NULL ? texts[i].data : "";
        prefixes[i] = i % 4 == 3 ? "verzo mur" : NULL;
    }
}

static struct tfm_translate_options defaults(void)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.threads = 1;
    o.max_length_factor = 1;
    o.beam_size = 4;
    o.n_best = 3;
    return o;
}

static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err->message, "", "translation works");
    exit(check_done());
}

static struct tfm_translator *open_translator(const struct tfm_model *const *models, const float *weights,
                                              int n, const struct tfm_translate_options *o)
{
    struct tfm_translator *t;
    struct tfm_error err;
    enum tfm_status status = tfm_translator_new_ensemble(&t, models, weights, n, o, &err);
    must(status, &err);
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t, int first, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    enum tfm_status status = tfm_translate_forced(t, lines + first, prefixes + first, n, &result, &err);
    must(status, &err);
    return result;
}

/* Whether pieces and texts are the same, and scores (alignments, too) differ by `tolerance` at most. */
static bool same(const struct tfm_translation *a, const struct tfm_translation *b, double tolerance)
{
    if (a->n_hypotheses != b->n_hypotheses)
        return false;
    for (int h = 0; h < a->n_hypotheses; h++) {
        const struct tfm_hypothesis *x = &a->hypotheses[h], *y = &b->hypotheses[h];
        if (x->n_pieces != y->n_pieces || strcmp(x->text, y->text) != 0 ||
            memcmp(x->pieces, y->pieces, (size_t)x->n_pieces * sizeof(int)) != 0 ||
            fabs(x->score - y->score) > tolerance * x->n_pieces)
            return false;
        for (int i = 0; i < x->n_pieces; i++)
            if ((double)fabsf(x->piece_scores[i] - y->piece_scores[i]) > tolerance)
                return false;
        if (tolerance == 0 && x->alignment != NULL &&
            memcmp(x->alignment, y->alignment,
                   (size_t)(x->n_target_units * x->n_source_units) * sizeof(float)) != 0)
            return false;
    }
    return true;
}

static int differences(const struct tfm_translation *a, const struct tfm_translation *b, int n,
                       double tolerance)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += !same(&a[i], &b[i], tolerance);
    return found;
}

static void test_twice(const struct tfm_model *const *models, const struct tfm_translate_options *o,
                       const char *name)
{
    const struct tfm_model *twice[] = { models[0], models[0] },
                           *four[] = { models[0], models[0], models[0], models[0] };
    struct tfm_translator *a = open_translator(models, NULL, 1, o), *b = open_translator(twice, NULL, 2, o);
    struct tfm_translator *c = open_translator(four, (float[]){ 8, 2, 4, 2 }, 4, o);
    const struct tfm_translation *expected = translate(a, 0, N_LINES);
    CHECK_INT(differences(expected, translate(b, 0, N_LINES), N_LINES, 0), 0,
              "twice the same model is that model, %s", name);
    CHECK_INT(differences(expected, translate(c, 0, N_LINES), N_LINES, 1e-5), 0,
              "four times with weights, too, %s", name);
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
}

static void test_ways(const struct tfm_model *const *models)
{
    struct tfm_translate_options o = defaults();
    const struct tfm_model *turned[] = { models[2], models[0], models[1] };
    static const float weights[] = { 1, 2, 0.5f }, turned_weights[] = { 1, 2, 4 };
    struct tfm_translator *a = open_translator(models, weights, 3, &o);
    const struct tfm_translation *expected = translate(a, 0, N_LINES);
    struct tfm_translator *b = open_translator(turned, turned_weights, 3, &o);
    CHECK_INT(differences(expected, translate(b, 0, N_LINES), N_LINES, 1e-5), 0,
              "the order of models does not matter, nor what their weights are in sum");
    struct tfm_translator *alone = open_translator(models, NULL, 1, &o);
    CHECK(differences(expected, translate(alone, 0, N_LINES), N_LINES, 1e-3) > N_LINES / 2,
          "another model changes the translations");
    o.mini_batch = 3;
    o.threads = 3;
    struct tfm_translator *c = open_translator(models, weights, 3, &o);
    CHECK_INT(differences(expected, translate(c, 0, N_LINES), N_LINES, 0), 0,
              "batches and threads change no bit");
    int wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&expected[i], translate(c, i, 1), 0);
    CHECK_INT(wrong, 0, "a batch is its singles");
    struct ensemble ensemble;
    struct tfm_error err;
    struct tfm_translator *d;
    must(ensemble_init(&ensemble, models, weights, 3, &err), &err);
    must(translator_new_ensemble(&d, &ensemble, models[0]->source, models[0]->target, kern_for(CPU_REF), &o,
                                 NULL, &err),
         &err);
    CHECK_INT(differences(expected, translate(d, 0, N_LINES), N_LINES, 0), 0, "nor does the processor");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
    tfm_translator_free(d);
    tfm_translator_free(alone);
}

/* The scores of a translation by each model, and by all. */
static void test_scores(const struct tfm_model *const *models)
{
    struct tfm_translate_options o = defaults();
    static const float weights[] = { 3, 1, 1 };
    struct tfm_translator *all = open_translator(models, weights, 3, &o);
    struct tfm_error err;
    const struct tfm_translation *together, *alone;
    const char *targets[N_LINES];
    double mean[N_LINES] = { 0 }, worst = 0;
    for (int i = 0; i < N_LINES; i++)
        targets[i] = lines[(i + 7) % N_LINES];
    for (int m = 0; m < 3; m++) {
        struct tfm_translator *one = open_translator(models + m, NULL, 1, &o);
        must(tfm_score(one, lines, targets, N_LINES, &alone, &err), &err);
        for (int i = 0; i < N_LINES; i++)
            mean[i] += (double)weights[m] / 5 * alone[i].hypotheses[0].score;
        tfm_translator_free(one);
    }
    must(tfm_score(all, lines, targets, N_LINES, &together, &err), &err);
    for (int i = 0; i < N_LINES; i++)
        worst = check_worse(worst, fabs(mean[i] - together[i].hypotheses[0].score));
    CHECK_NEAR(worst, 0, 1e-4, "a score is the mean of the models' scores");
    tfm_translator_free(all);
}

/* A call takes no memory that the first did not. */
static void test_warm(const struct tfm_model *const *models)
{
    struct tfm_translate_options o = defaults();
    struct tfm_translator *t = open_translator(models, NULL, 3, &o);
    translate(t, 0, N_LINES);
    long before = mem_allocations();
    translate(t, 0, N_LINES);
    CHECK_INT(mem_allocations() - before, 0, "a warm translator allocates nothing");
    tfm_translator_free(t);
}

static void test_refused(const struct tfm_model *const *models)
{
    struct tfm_translate_options o = defaults();
    static const float weights[][2] = { { 1, 0 }, { -1, 2 }, { NAN, 1 }, { 1, INFINITY } };
    for (int i = 0; i < 4; i++) {
        struct tfm_translator *t;
        struct tfm_error err = { 0 };
        CHECK(tfm_translator_new_ensemble(&t, models, weights[i], 2, &o, &err) == TFM_EINVAL && t == NULL,
              "refused: %s", err.message);
    }
    const struct tfm_model *many[TFM_MAX_MODELS + 1];
    for (int i = 0; i <= TFM_MAX_MODELS; i++)
        many[i] = models[0];
    for (int n = 0; n <= TFM_MAX_MODELS + 1; n += TFM_MAX_MODELS + 1) {
        struct tfm_translator *t;
        struct tfm_error err = { 0 };
        CHECK(tfm_translator_new_ensemble(&t, many, NULL, n, &o, &err) == TFM_EINVAL, "refused: %s",
              err.message);
    }
}

int main(void)
{
    static const struct tiny_options variants[] = {
        { .eos_bias = 2.5f, .seed = 3, .tie = TFM_TIE_ALL },
        { .eos_bias = 2.5f, .seed = 4, .tie = TFM_TIE_NONE, .pre_norm = true, .d_model = 36 },
        { .eos_bias = 2.5f, .seed = 5, .tie = TFM_TIE_ALL, .cell = TFM_CELL_SSRU, .d_model = 12 },
    };
    struct tfm_model *models[3];
    make_lines();
    for (int i = 0; i < 3; i++)
        models[i] = tiny_open((const char *const[]){ "a", "b", "c" }[i], &variants[i]);
    const struct tfm_model *const *given = (const struct tfm_model *const *)models;
    struct tfm_translate_options o = defaults();
    o.alignment = TFM_ALIGN_WORDS;
    test_twice(given, &o, "beam search with alignments");
    o.repetition_penalty = 1.3f;
    o.no_repeat_ngram_size = 2;
    test_twice(given + 1, &o, "with penalties");
    o = defaults();
    o.output_sampling = TFM_SAMPLING_TOPK;
    test_twice(given + 2, &o, "sampling");
    test_ways(given);
    test_scores(given);
    test_warm(given);
    test_refused(given);
    for (int i = 0; i < 3; i++)
        tfm_model_free(models[i]);
    for (int i = 0; i < N_LINES; i++)
        str_release(&texts[i]);
    return check_done();
}
