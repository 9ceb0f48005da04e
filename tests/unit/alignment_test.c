/*
 * alignment_test.c: alignments out of cross-attention: they change no translation, do not depend on batches and
 * threads, are the weights that an observer sees, over pieces and over words, of parts, of given pairs; and
 * source text in place of unknown pieces.
 */
#include <string.h>

#include "decode/translator.h"
#include "tiny_model.h"

#define N_LINES 12

static struct str texts[N_LINES];
static const char *lines[N_LINES];

static void make_lines(void)
{
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&texts[i], rng_key(31, (uint64_t)i, 0, 0), 1 + i);
        lines[i] = texts[i].data != NULL ? texts[i].data : "";
    }
}

static struct tfm_translate_options defaults(void)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.threads = 1;
    o.max_length_factor = 1;
    o.n_best = 2;
    return o;
}

static struct tfm_translator *open_translator(const struct tfm_model *model,
                                              const struct tfm_translate_options *options)
{
    struct tfm_translator *t;
    struct tfm_error err;
    if (tfm_translator_new(&t, model, options, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a translator can be made");
        exit(check_done());
    }
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *some, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    if (tfm_translate(t, some, n, &result, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "translation works");
        exit(check_done());
    }
    return result;
}

static bool same_alignment(const struct tfm_hypothesis *a, const struct tfm_hypothesis *b)
{
    size_t size = (size_t)a->n_target_units * (size_t)a->n_source_units * sizeof(float);
    return a->n_target_units == b->n_target_units && a->n_source_units == b->n_source_units &&
           (size == 0 || memcmp(a->alignment, b->alignment, size) == 0);
}

/* The greatest distance of a row's sum from 1. */
static double worst_sum(const struct tfm_hypothesis *h)
{
    double worst = 0;
    for (int t = 0; t < h->n_target_units; t++) {
        double sum = 0;
        for (int s = 0; s < h->n_source_units; s++)
            sum += (double)h->alignment[t * h->n_source_units + s];
        worst = check_worse(worst, fabs(sum - 1));
    }
    return worst;
}

static int count_words(const char *text)
{
    int n = *text != '\0' && *text != ' ';
    for (; *text != '\0'; text++)
        n += *text == ' ' && text[1] != ' ' && text[1] != '\0';
    return n;
}

static void test_laws(const struct tfm_model *model, enum tfm_align unit)
{
    struct tfm_translate_options plain = defaults(), o = defaults(), other = defaults();
    o.alignment = other.alignment = unit;
    other.threads = 2;
    other.mini_batch = 2;
    struct tfm_translator *a = open_translator(model, &plain), *b = open_translator(model, &o),
                          *c = open_translator(model, &other);
    const struct tfm_translation *without = translate(a, lines, N_LINES),
                                 *found = translate(b, lines, N_LINES), *again = translate(c, lines, N_LINES);
    int changed = 0, differ = 0, missing = 0, n_words = 0;
    double worst = 0;
    for (int i = 0; i < N_LINES; i++) {
        for (int h = 0; h < found[i].n_hypotheses; h++) {
            const struct tfm_hypothesis *x = &found[i].hypotheses[h];
            changed += strcmp(x->text, without[i].hypotheses[h].text) != 0 ||
                       x->score != without[i].hypotheses[h].score;
            differ += !same_alignment(x, &again[i].hypotheses[h]);
            missing += (x->alignment == NULL) != (i == 5);
            worst = check_worse(worst, worst_sum(x));
            n_words += unit == TFM_ALIGN_WORDS && i != 5 && x->n_source_units != count_words(lines[i]);
        }
    }
    CHECK(changed == 0 && without[0].hypotheses[0].alignment == NULL, "alignments change no translation");
    CHECK_INT(differ, 0, "they do not depend on batches and threads");
    CHECK_INT(missing, 0, "each hypothesis has one but of a blank line");
    CHECK_NEAR(worst, 0, 1e-5, "rows sum to 1");
    CHECK_INT(n_words, 0, "a source has its words");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
}

/* ---- what an observer sees ---- */

struct seen {
    float mean[64][64]; /* of the heads of the last layer's cross-attention */
    int heads;
};

static void see(void *user, const struct tfm_value *value)
{
    struct seen *seen = user;
    if (strcmp(value->name, "decoder.layers.1.encoder_attn.weights") != 0)
        return;
    seen->heads++;
    for (int i = 0; i < value->rows && i < 64; i++)
        for (int j = 0; j < value->cols && j < 64; j++)
            seen->mean[i][j] += value->data[i * value->stride + j];
}

/* The pair of line i and its translation, scored and observed. */
static void test_observed(const struct tfm_model *model, int i)
{
    static struct seen seen;
    struct tfm_translate_options o = defaults();
    o.alignment = TFM_ALIGN_PIECES;
    struct tfm_translator *t = open_translator(model, &o);
    struct tfm_error err;
    const char *target = "bado kile mur.";
    const struct tfm_translation *result;
    memset(&seen, 0, sizeof(seen));
    if (!CHECK(tfm_observe(model, lines[i], target, see, &seen, &err) == TFM_OK &&
                   tfm_score(t, &lines[i], &target, 1, &result, &err) == TFM_OK,
               "a pair is observed and scored"))
        return;
    const struct tfm_hypothesis *h = &result[0].hypotheses[0];
    CHECK_INT(h->n_target_units, h->n_pieces - 1, "a row for each piece but </s>");
    double worst = 0;
    for (int r = 0; r < h->n_target_units; r++) {
        double sum = 0;
        for (int s = 0; s < h->n_source_units; s++)
            sum += (double)seen.mean[r][s];
        for (int s = 0; s < h->n_source_units; s++)
            worst = check_worse(worst, fabs((double)h->alignment[r * h->n_source_units + s] -
                                            (double)seen.mean[r][s] / sum));
    }
    CHECK(seen.heads == model->config.heads, "the observer saw %d heads", seen.heads);
    CHECK_NEAR(worst, 0, 1e-5, "the alignment is the mean of what it saw, without </s>");
    tfm_translator_free(t);
}

static void test_parts(const struct tfm_model *model)
{
    struct tfm_translate_options o = defaults();
    o.max_length = 8;
    o.min_length = 4;
    o.alignment = TFM_ALIGN_WORDS;
    struct tfm_translator *t = open_translator(model, &o);
    const struct tfm_translation *found = translate(t, &lines[N_LINES - 1], 1);
    const struct tfm_hypothesis *h = &found[0].hypotheses[0];
    CHECK(found[0].n_parts > 1 && h->n_source_units == count_words(lines[N_LINES - 1]),
          "a line in %d parts has the words of the whole", found[0].n_parts);
    CHECK_NEAR(worst_sum(h), 0, 1e-5, "its rows sum to 1");
    int across = h->alignment[h->n_source_units - 1] != 0;
    CHECK_INT(across, 0, "the first word does not look into the last part");
    tfm_translator_free(t);
}

static void test_layers(const struct tfm_model *model)
{
    struct tfm_translate_options o = defaults();
    struct tfm_error err;
    struct tfm_translator *t;
    o.alignment_layer = 2;
    CHECK(tfm_translator_new(&t, model, &o, &err) == TFM_EINVAL && strstr(err.message, "from 0 to 1") != NULL,
          "a layer that is not there: %s", err.message);
    o.alignment = TFM_ALIGN_PIECES;
    o.alignment_layer = -1;
    o.min_length = 4;
    struct tfm_translator *a = open_translator(model, &o);
    o.alignment_layer = 1;
    struct tfm_translator *b = open_translator(model, &o);
    o.alignment_layer = 0;
    struct tfm_translator *c = open_translator(model, &o);
    const struct tfm_hypothesis *last = translate(a, &lines[4], 1)->hypotheses,
                                *second = translate(b, &lines[4], 1)->hypotheses,
                                *first = translate(c, &lines[4], 1)->hypotheses;
    CHECK(same_alignment(last, second) && !same_alignment(last, first), "the default is the last layer");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
}

/* ---- unknown pieces ---- */

/* The only piece of a source that is no known piece is what all unknown pieces of the translation become; else
 * whole words. */
static void test_unknown(const struct tfm_model *unknowing)
{
    struct tfm_translate_options o = defaults();
    o.replace_unk = true;
    o.no_repeat_ngram_size = 1; /* one of them */
    struct tfm_translator *t = open_translator(unknowing, &o);
    const char *sources[] = { "\xc5\xb9\xc4\x99", "bado", "bado kile \xc5\xb9 mur." };
    const struct tfm_translation *found = translate(t, sources, 3);
    CHECK(strstr(found[0].hypotheses[0].text, "\xe2\x81\x87") == NULL, "no mark is left: %s",
          found[0].hypotheses[0].text);
    CHECK(strstr(found[1].hypotheses[0].text, "bado") != NULL, "a word is copied: %s",
          found[1].hypotheses[0].text);
    CHECK(strstr(found[2].hypotheses[0].text, "\xe2\x81\x87") == NULL, "one of several is: %s",
          found[2].hypotheses[0].text);
    int unk = 0;
    for (int i = 0; i < found[1].hypotheses[0].n_pieces; i++)
        unk += found[1].hypotheses[0].pieces[i] == unknowing->config.unk_token_id;
    CHECK_INT(unk, 1, "the pieces are as they were found");
    tfm_translator_free(t);
}

static void test_surface(const struct tfm_model *model)
{
    struct str out = { 0 };
    struct ints ids = { 0 };
    struct tfm_error err;
    static const char text[] = "bado \xc5\xb9\xc4\x99k mur";
    spm_encode(model->source, text, strlen(text), &ids, &err);
    CHECK(spm_surface(model->source, text, strlen(text), 0, ids.n, &out, &err) == TFM_OK, "surfaces");
    CHECK_STR(out.data, "bado\xc5\xb9\xc4\x99kmur", "all of them are the text without spaces");
    size_t unk = 0;
    while (unk < ids.n && ids.data[unk] != model->config.unk_token_id)
        unk++;
    str_clear(&out);
    spm_surface(model->source, text, strlen(text), unk, 1, &out, &err);
    CHECK_STR(out.data, "\xc5\xb9\xc4\x99", "that of the unknown piece has its characters");
    str_release(&out);
    ints_release(&ids);
}

int main(void)
{
    struct tfm_model *model = tiny_open("usual", &(struct tiny_options){ .eos_bias = 3, .seed = 1 });
    struct tfm_model *unknowing =
        tiny_open("unknowing", &(struct tiny_options){ .unk_bias = 20, .eos_bias = 5, .seed = 3 });
    make_lines();
    test_laws(model, TFM_ALIGN_PIECES);
    test_laws(model, TFM_ALIGN_WORDS);
    test_observed(model, 3);
    test_observed(model, 8);
    test_parts(model);
    test_layers(model);
    test_unknown(unknowing);
    test_surface(model);
    tfm_model_free(model);
    tfm_model_free(unknowing);
    for (int i = 0; i < N_LINES; i++)
        str_release(&texts[i]);
    return check_done();
}
