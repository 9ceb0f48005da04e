/*
 * language_model_test.c: a language model, the decoder-only model whose source is empty, seen from outside: it
 * scores a text as that model does behind nothing, goes on with a line, also with an empty one, shows its
 * attention, and refuses what needs a source. What holds for every model (batches, steps, tiers, scores) is in
 * laws_test.c.
 */
#include <string.h>

#include "same_translations.h"
#include "tiny_model.h"

static struct tfm_error err;

static struct tfm_translator *open_translator(const struct tfm_model *model,
                                              const struct tfm_translate_options *options)
{
    struct tfm_translator *t;
    if (tfm_translator_new(&t, model, options, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a translator can be made");
        exit(check_done());
    }
    return t;
}

static struct tfm_translate_options defaults(void)
{
    struct tfm_translate_options options;
    tfm_translate_options_init(&options);
    options.threads = 1;
    return options;
}

/* ---- the same model behind nothing ---- */

static void test_scores(const struct tfm_model *model, const struct tfm_model *pair)
{
    static const char *const texts[] = { "badoki le murna", "", "do ki", "na po ri sta ba do murzo." };
    static const char *const nothing[] = { "", "", "", "" };
    struct tfm_translate_options options = defaults();
    struct tfm_translator *a = open_translator(model, &options), *b = open_translator(pair, &options);
    const struct tfm_translation *of_text, *of_pair;
    if (CHECK(tfm_score(a, texts, NULL, 4, &of_text, &err) == TFM_OK &&
                  tfm_score(b, nothing, texts, 4, &of_pair, &err) == TFM_OK,
              "texts are scored"))
        CHECK_INT(differences(of_text, of_pair, 4), 0, "as translations of nothing");
    CHECK_INT(of_text[1].hypotheses[0].n_pieces, 1, "an empty text has its end");
    CHECK(tfm_score(a, nothing, texts, 4, &of_text, &err) == TFM_EINVAL &&
              strstr(err.message, "found sources, too") != NULL,
          "it scores no pairs: %s", err.message);
    CHECK(tfm_score(b, texts, NULL, 4, &of_text, &err) == TFM_EINVAL &&
              strstr(err.message, "without a source") != NULL,
          "and the other no texts: %s", err.message);
    tfm_translator_free(a);
    tfm_translator_free(b);
}

/* ---- going on ---- */

static void test_beginnings(const struct tfm_model *model)
{
    static const char *const lines[] = { "badoki le", "", " \t", "murna" };
    struct tfm_translate_options options = defaults();
    options.output_sampling = TFM_SAMPLING_FULL;
    options.n_best = 3;
    struct tfm_translator *t = open_translator(model, &options), *again = open_translator(model, &options);
    const struct tfm_translation *found, *same_found;
    if (!CHECK(tfm_translate(t, lines, 4, &found, &err) == TFM_OK &&
                   tfm_translate(again, lines, 4, &same_found, &err) == TFM_OK,
               "lines are gone on with"))
        return;
    CHECK_INT(differences(found, same_found, 4), 0, "the same seed draws the same");
    int n_begun = 0, n_empty = 0;
    for (int h = 0; h < 3; h++) {
        n_begun += strncmp(found[0].hypotheses[h].text, "badoki le", 9) == 0 &&
                   strncmp(found[3].hypotheses[h].text, "murna", 5) == 0;
        n_empty += found[1].hypotheses[h].n_pieces == 0 || found[2].hypotheses[h].n_pieces == 0;
    }
    CHECK_INT(n_begun, 3, "all begin with their line");
    CHECK(found[1].n_hypotheses == 3 && found[2].n_hypotheses == 3 && n_empty == 0,
          "a blank line is the beginning of any text");
    tfm_translator_free(t);
    tfm_translator_free(again);
}

static void test_lengths(const struct tfm_model *model)
{
    static const char *const lines[] = { "ba", "badoki le murna do ki le mur na po ri sta ba do zo ver" };
    struct tfm_translate_options options = defaults();
    const struct tfm_translation *found;
    options.max_length = 5;
    struct tfm_translator *t = open_translator(model, &options);
    CHECK(tfm_translate(t, lines, 2, &found, &err) == TFM_OK && found[1].n_hypotheses == 0,
          "a beginning longer than the maximal length is refused");
    CHECK(found[0].hypotheses[0].n_pieces <= 15 && found[0].n_parts == 1,
          "and a text has 10 pieces more at most");
    CHECK(tfm_score(t, lines, NULL, 2, &found, &err) == TFM_OK && found[1].n_hypotheses == 0,
          "a text to score may not be longer either");
    tfm_translator_free(t);
    options.max_length_crop = true;
    t = open_translator(model, &options);
    CHECK(tfm_translate(t, lines, 2, &found, &err) == TFM_OK && found[1].n_hypotheses == 1 &&
              found[1].cropped && !found[0].cropped && strncmp(found[1].hypotheses[0].text, "ba", 2) == 0,
          "or cropped");
    CHECK(tfm_score(t, lines, NULL, 2, &found, &err) == TFM_OK && found[1].n_hypotheses == 0,
          "but no text to score is");
    tfm_translator_free(t);
}

/* ---- what needs a source ---- */

static void check_refused(const struct tfm_model *model, const struct tfm_translate_options *options,
                          const char *what)
{
    struct tfm_translator *t;
    enum tfm_status status = tfm_translator_new(&t, model, options, &err);
    CHECK(status == TFM_EINVAL && strstr(err.message, what) != NULL &&
              strstr(err.message, "this model is a language model") != NULL,
          "%s: %s", what, status != TFM_OK ? err.message : "not refused");
    tfm_translator_free(t);
}

static void test_refused(const struct tfm_model *model, const struct tfm_model *pair)
{
    static const char *const line = "ba", *const prefix = "do", *const empty = "";
    const struct tfm_model *const both[] = { model, pair };
    const struct tfm_translation *found;
    struct tfm_translate_options options = defaults();
    options.alignment = TFM_ALIGN_WORDS;
    check_refused(model, &options, "an alignment");
    options = defaults();
    options.replace_unk = true;
    check_refused(model, &options, "unknown pieces");
    options = defaults();
    options.glossary = "terms";
    check_refused(model, &options, "a glossary");
    options = defaults();
    options.shortlist = "list";
    check_refused(model, &options, "a shortlist");
    options = defaults();
    options.max_length_factor = 2;
    check_refused(model, &options, "length factor");

    options = defaults();
    struct tfm_translator *t;
    CHECK(tfm_translator_new_ensemble(&t, both, NULL, 2, &options, &err) == TFM_EINVAL &&
              strstr(err.message, "it is language-model of ") != NULL,
          "one that translates beside it: %s", err.message);
    t = open_translator(model, &options);
    CHECK(tfm_translate_forced(t, &line, &prefix, 1, &found, &err) == TFM_EINVAL &&
              strstr(err.message, "nothing else can be forced on it, found \"do\"") != NULL,
          "a prefix beside the line: %s", err.message);
    CHECK(tfm_translate_forced(t, &line, &empty, 1, &found, &err) == TFM_OK, "an empty one is none");
    tfm_translator_free(t);

    struct tfm_comparison differences;
    const struct tfm_compare_options comparison = {
        .models = { pair, model }, .sources = &line, .references = &prefix, .n_lines = 1, .threads = 1
    };
    CHECK(tfm_compare(&comparison, &differences, &err) == TFM_EINVAL &&
              strstr(err.message, "makes no translations to compare") != NULL,
          "nor are there translations to compare: %s", err.message);
}

/* ---- a look inside ---- */

static void count_rows(void *user, const struct tfm_value *value)
{
    if (strcmp(value->name, "decoder.logits") == 0)
        *(int *)user = value->rows;
}

static void test_inspect(const struct tfm_model *model)
{
    struct tfm_attention_options options;
    struct ints pieces = { 0 };
    int n_rows = 0;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    spm_encode(model->target, "badoki le", 9, &pieces, &err);
    CHECK(tfm_observe(model, "badoki le", NULL, count_rows, &n_rows, &err) == TFM_OK &&
              n_rows == (int)pieces.n + 1,
          "each piece of the text and its end are predicted");
    tfm_attention_options_init(&options);
    options.format = TFM_TSV;
    CHECK_INT(tfm_attention(model, "badoki le", NULL, &options, out, &err), TFM_OK,
              "its self-attention is shown");
    CHECK(tfm_attention(model, "badoki", "le", &options, out, &err) == TFM_EINVAL &&
              strstr(err.message, "reads one text") != NULL,
          "of one text: %s", err.message);
    options.part = TFM_CROSS;
    CHECK(tfm_attention(model, "badoki", NULL, &options, out, &err) == TFM_EINVAL &&
              strstr(err.message, "looks at one text; it can show the part decoder") != NULL,
          "it has no other: %s", err.message);
    fclose(out);
    CHECK(strstr(text, "\t0\t<start>\t1\n") != NULL, "the first piece looks at the start alone");
    free(text);
    ints_release(&pieces);
}

int main(void)
{
    struct tiny_options options = { .seed = 9, .eos_bias = 2, .pre_norm = true, .is_decoder = true };
    struct tfm_model *pair = tiny_open("pair", &options);
    options.is_language = true;
    struct tfm_model *model = tiny_open("model", &options);
    CHECK(tfm_model_is_language_model(model) && !tfm_model_is_language_model(pair),
          "a model knows what it is");
    test_scores(model, pair);
    test_beginnings(model);
    test_lengths(model);
    test_refused(model, pair);
    test_inspect(model);
    tfm_model_free(pair);
    tfm_model_free(model);
    return check_done();
}
