/*
 * search_options_test.c: what the options of a translation promise: samples that depend on nothing but seed,
 * line and model; scoring that gives a translation the very score it was found with; forced prefixes; no n-gram
 * twice; repetitions punished; a least length; lines cropped.
 */
#include <string.h>

#include "decode/translator.h"
#include "same_translations.h"
#include "tiny_model.h"

#define N_LINES 20

static struct str texts[N_LINES];
static const char *lines[N_LINES];

static void make_lines(void)
{
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&texts[i], rng_key(31, (uint64_t)i, 0, 0), 1 + i % 11);
        lines[i] = texts[i].data != NULL ? texts[i].data : "";
    }
}

static struct tfm_translate_options defaults(void)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.threads = 1;
    o.max_length_factor = 1;
    return o;
}

static struct tfm_translator *open_on(const struct tfm_model *model,
                                      const struct tfm_translate_options *options, const struct kern *kern)
{
    struct tfm_translator *t;
    struct tfm_error err;
    if (translator_new(&t, &model->net, model->source, model->target, kern, options, NULL, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a translator can be made");
        exit(check_done());
    }
    return t;
}

static struct tfm_translator *open_translator(const struct tfm_model *model,
                                              const struct tfm_translate_options *options)
{
    return open_on(model, options, model->kern);
}

static const struct tfm_translation *must(enum tfm_status status, const struct tfm_translation *result,
                                          const struct tfm_error *err)
{
    if (status != TFM_OK) {
        CHECK_STR(err->message, "", "translation works");
        exit(check_done());
    }
    return result;
}

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *some, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    enum tfm_status status = tfm_translate(t, some, n, &result, &err);
    return must(status, result, &err);
}

/* ---- sampling ---- */

static void test_sampling(const struct tfm_model *model, enum tfm_sampling kind)
{
    struct tfm_translate_options o = defaults();
    o.output_sampling = kind;
    o.n_best = 4;
    struct tfm_translator *a = open_translator(model, &o);
    const struct tfm_translation *expected = translate(a, lines, N_LINES);
    int repeated = 0, compared = 0;
    for (int i = 0; i < N_LINES; i++)
        for (int h = 1; h < expected[i].n_hypotheses; h++, compared++)
            repeated += strcmp(expected[i].hypotheses[h].text, expected[i].hypotheses[0].text) == 0;
    CHECK(compared == 3 * (N_LINES - 1) && repeated < compared / 2, "kind %d: %d samples, %d repeated", kind,
          compared, repeated);
    o.threads = 3;
    o.mini_batch = 3;
    struct tfm_translator *b = open_translator(model, &o), *c = open_on(model, &o, kern_for(CPU_REF));
    CHECK_INT(differences(expected, translate(b, lines, N_LINES), N_LINES), 0,
              "samples do not depend on threads and batches");
    CHECK_INT(differences(expected, translate(c, lines, N_LINES), N_LINES), 0, "nor on the processor");
    const struct tfm_translation *again = translate(b, lines, N_LINES);
    CHECK(differences(expected, again, N_LINES) > N_LINES / 2, "the second time the lines are others");
    struct tfm_translator *d = open_translator(model, &o);
    int wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&expected[i], translate(d, &lines[i], 1));
    CHECK_INT(wrong, 0, "lines one by one give what they give together");
    o.seed = 2;
    struct tfm_translator *e = open_translator(model, &o);
    CHECK(differences(expected, translate(e, lines, N_LINES), N_LINES) > N_LINES / 2, "another seed");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
    tfm_translator_free(d);
    tfm_translator_free(e);
}

static void test_top_one(const struct tfm_model *model)
{
    struct tfm_translate_options greedy = defaults(), o = defaults();
    greedy.beam_size = 1;
    o.output_sampling = TFM_SAMPLING_TOPK;
    o.sampling_top_k = 1;
    struct tfm_translator *a = open_translator(model, &greedy), *b = open_translator(model, &o);
    CHECK_INT(differences(translate(a, lines, N_LINES), translate(b, lines, N_LINES), N_LINES), 0,
              "drawing from the best piece alone is greedy search");
    tfm_translator_free(a);
    tfm_translator_free(b);
}

/* ---- scoring ---- */

/* The hypotheses that `o` finds are scored again, as text; those of other pieces than the text has are left
 * out. */
static void test_scores(const struct tfm_model *model, const struct tfm_translate_options *o,
                        const char *name)
{
    struct tfm_translator *a = open_translator(model, o);
    struct tfm_translate_options plain = defaults();
    plain.mini_batch = 3;
    struct tfm_translator *b = open_translator(model, &plain);
    const struct tfm_translation *found = translate(a, lines, N_LINES), *scored;
    const char *targets[N_LINES];
    struct tfm_error err;
    for (int i = 0; i < N_LINES; i++)
        targets[i] = found[i].hypotheses[0].text;
    enum tfm_status status = tfm_score(b, lines, targets, N_LINES, &scored, &err);
    must(status, scored, &err);
    int compared = 0, wrong = 0;
    for (int i = 0; i < N_LINES; i++) {
        const struct tfm_hypothesis *x = &found[i].hypotheses[0], *y = &scored[i].hypotheses[0];
        wrong += scored[i].n_hypotheses != 1 || scored[i].limited;
        if (x->n_pieces != y->n_pieces || x->n_pieces == 0 ||
            memcmp(x->pieces, y->pieces, (size_t)x->n_pieces * sizeof(int)) != 0)
            continue;
        compared++;
        wrong += x->score != y->score || x->normalized_score != y->normalized_score ||
                 memcmp(x->piece_scores, y->piece_scores, (size_t)x->n_pieces * sizeof(float)) != 0;
    }
    CHECK(compared >= 3 && wrong == 0, "%s: %d translations scored again have the same scores, bit for bit",
          name, compared);
    CHECK(scored[5].hypotheses[0].n_pieces == 1 && scored[5].hypotheses[0].score < 0,
          "a blank pair has the score of </s>");
    tfm_translator_free(a);
    tfm_translator_free(b);
}

static void test_scoring(const struct tfm_model *model)
{
    struct tfm_translate_options beam = defaults(), draws = defaults();
    test_scores(model, &beam, "beam search");
    draws.output_sampling = TFM_SAMPLING_TOPK;
    draws.sampling_top_k = 2;
    draws.temperature = 0.5f;
    test_scores(model, &draws, "sampling");

    struct tfm_translate_options small = defaults();
    small.max_length = 12;
    struct tfm_translator *t = open_translator(model, &small);
    struct str longer = { 0 };
    struct tfm_error err;
    tiny_sentence(&longer, 3, 30);
    const char *sources[] = { longer.data, "bado", "bado", "", "bado" };
    const char *targets[] = { "mur", longer.data, "mur \xFF", "mur", "" };
    const struct tfm_translation *result;
    enum tfm_status status = tfm_score(t, sources, targets, 5, &result, &err);
    must(status, result, &err);
    CHECK(result[0].n_hypotheses == 0 && result[1].n_hypotheses == 0, "a pair that is too long has no score");
    CHECK(result[2].n_hypotheses == 1 && result[3].n_hypotheses == 1 && result[4].n_hypotheses == 1,
          "odd pairs have one");
    CHECK(result[4].hypotheses[0].n_pieces == 1, "of an empty target only </s> is scored");
    status = tfm_translate_forced(t, sources, targets, 5, &result, &err);
    must(status, result, &err);
    CHECK(result[1].n_hypotheses == 0 && result[0].n_hypotheses == 1 && result[0].n_parts > 1,
          "a prefix may be too long, the line behind it not");
    tfm_translator_free(t);
    str_release(&longer);
}

/* ---- prefixes ---- */

static void test_prefixes(const struct tfm_model *model)
{
    struct tfm_translate_options o = defaults();
    o.n_best = 3;
    struct tfm_translator *t = open_translator(model, &o), *alone = open_translator(model, &o);
    const char *prefixes[N_LINES];
    for (int i = 0; i < N_LINES; i++)
        prefixes[i] = i % 3 == 0 ? NULL : i % 3 == 1 ? "verzo mur" : "";
    struct tfm_error err;
    const struct tfm_translation *result, *plain = translate(alone, lines, N_LINES);
    enum tfm_status status = tfm_translate_forced(t, lines, prefixes, N_LINES, &result, &err);
    must(status, result, &err);
    int wrong = 0, changed = 0;
    for (int i = 0; i < N_LINES; i++) {
        if (i % 3 != 1 || i == 5) {
            changed += !same(&result[i], &plain[i]);
            continue;
        }
        for (int h = 0; h < result[i].n_hypotheses; h++)
            wrong += strncmp(result[i].hypotheses[h].text, "verzo mur", 9) != 0;
    }
    CHECK_INT(wrong, 0, "each hypothesis begins with its prefix");
    CHECK_INT(changed, 0, "lines without a prefix are translated as ever");
    tfm_translator_free(t);
    tfm_translator_free(alone);
}

/* ---- repetitions and lengths ---- */

static int repeated_ngrams(const struct tfm_hypothesis *h, int n)
{
    int found = 0;
    for (int i = 0; i + n <= h->n_pieces; i++)
        for (int j = 0; j < i; j++)
            found += memcmp(h->pieces + i, h->pieces + j, (size_t)n * sizeof(int)) == 0;
    return found;
}

static int count_repeated(const struct tfm_model *model, const struct tfm_translate_options *o, int n)
{
    struct tfm_translator *t = open_translator(model, o);
    const struct tfm_translation *found = translate(t, lines, N_LINES);
    int sum = 0;
    for (int i = 0; i < N_LINES; i++)
        sum += repeated_ngrams(&found[i].hypotheses[0], n);
    tfm_translator_free(t);
    return sum;
}

static void test_repetitions(const struct tfm_model *endless)
{
    for (int n = 1; n <= 3; n++) {
        struct tfm_translate_options o = defaults();
        int before = count_repeated(endless, &o, n);
        o.no_repeat_ngram_size = n;
        CHECK(before > 0 && count_repeated(endless, &o, n) == 0, "no %d-gram comes twice (%d did)", n,
              before);
    }
    struct tfm_translate_options o = defaults();
    int before = count_repeated(endless, &o, 1);
    o.repetition_penalty = 1.5f;
    int after = count_repeated(endless, &o, 1);
    CHECK(after < before, "the penalty makes repetitions fewer: %d, were %d", after, before);
}

static void test_lengths(const struct tfm_model *model)
{
    struct tfm_translate_options o = defaults();
    o.min_length = 9;
    struct tfm_translator *t = open_translator(model, &o);
    const struct tfm_translation *found = translate(t, lines, N_LINES);
    int least = 1000;
    for (int i = 0; i < N_LINES; i++)
        if (found[i].n_parts > 0 && found[i].hypotheses[0].n_pieces < least)
            least = found[i].hypotheses[0].n_pieces;
    CHECK_INT(least, 10, "at least 9 pieces and </s>");
    tfm_translator_free(t);

    o = defaults();
    o.max_length = 6;
    o.max_length_crop = true;
    t = open_translator(model, &o);
    found = translate(t, lines, N_LINES);
    int parts = 0, cropped = 0;
    for (int i = 0; i < N_LINES; i++) {
        parts += found[i].n_parts > 1;
        cropped += found[i].cropped;
    }
    CHECK(parts == 0 && cropped > 3 && !found[0].cropped, "%d long lines are cropped, none is cut", cropped);
    struct tfm_error err;
    int unscored = 0;
    CHECK(tfm_score(t, lines, lines, N_LINES, &found, &err) == TFM_OK, "scores");
    for (int i = 0; i < N_LINES; i++)
        unscored += found[i].n_hypotheses == 0;
    CHECK(unscored >= cropped, "%d pairs are too long to be scored: nothing is cropped there", unscored);
    tfm_translator_free(t);
}

static void test_refused(const struct tfm_model *model)
{
    struct tfm_translate_options o[4];
    static const char *const messages[] = { "temperature", "repetition penalty", "n-grams",
                                            "minimal length" };
    for (int i = 0; i < 4; i++)
        o[i] = defaults();
    o[0].output_sampling = TFM_SAMPLING_FULL;
    o[0].temperature = 0;
    o[1].repetition_penalty = NAN;
    o[2].no_repeat_ngram_size = -1;
    o[3].min_length = -1;
    for (int i = 0; i < 4; i++) {
        struct tfm_translator *t;
        struct tfm_error err = { 0 };
        CHECK(tfm_translator_new(&t, model, &o[i], &err) == TFM_EINVAL &&
                  strstr(err.message, messages[i]) != NULL,
              "refused: %s", err.message);
    }
}

/* The least and the most that messages name are taken themselves. */
static void test_bounds(const struct tfm_model *model)
{
    struct tfm_translate_options o[2] = { defaults(), defaults() };
    o[0].output_sampling = o[1].output_sampling = TFM_SAMPLING_TOPP;
    o[0].sampling_top_p = 1e-6f;
    o[0].temperature = o[0].repetition_penalty = 0.01f;
    o[0].normalize = o[0].max_length_factor = 0;
    o[1].sampling_top_p = 1;
    o[1].temperature = o[1].repetition_penalty = o[1].max_length_factor = 100;
    o[1].normalize = 10;
    for (int i = 0; i < 2; i++) {
        struct tfm_translator *t;
        struct tfm_error err = { 0 };
        enum tfm_status status = tfm_translator_new(&t, model, &o[i], &err);
        CHECK_INT(status, TFM_OK, "the %s of each number is taken: %s", i == 0 ? "least" : "most",
                  err.message);
        tfm_translator_free(t);
    }
}

int main(void)
{
    struct tfm_model *model = tiny_open("usual", &(struct tiny_options){ .eos_bias = 3, .seed = 1 });
    struct tfm_model *endless = tiny_open("endless", &(struct tiny_options){ .eos_bias = -20, .seed = 2 });
    make_lines();
    for (int kind = TFM_SAMPLING_FULL; kind <= TFM_SAMPLING_TOPP; kind++)
        test_sampling(model, (enum tfm_sampling)kind);
    test_top_one(model);
    test_scoring(model);
    test_prefixes(model);
    test_repetitions(endless);
    test_lengths(model);
    test_refused(model);
    test_bounds(model);
    tfm_model_free(model);
    tfm_model_free(endless);
    for (int i = 0; i < N_LINES; i++)
        str_release(&texts[i]);
    return check_done();
}
