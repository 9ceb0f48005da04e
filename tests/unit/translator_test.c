/*
 * translator_test.c: tfm_translate with odd input (blank, endless, malformed), long lines in parts, the
 * length limit, n-best lists, unknown pieces, options, broken weights; that a warm translator allocates
 * nothing, that it survives each failing allocation, and that a search takes no more memory than it says.
 * What holds for every model is in laws_test.c.
 */
#include "decode/translator.h"

#include "decode/plan.h"
#include "text/utf8.h"
#include "tiny_model.h"

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

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *lines, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    if (tfm_translate(t, lines, n, &result, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "translation works");
        exit(check_done());
    }
    return result;
}

static struct tfm_translate_options defaults(void)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.threads = 1;
    return o;
}

static int source_pieces(const struct tfm_model *model, const char *text)
{
    struct ints ids = { 0 };
    struct tfm_error err;
    spm_encode(model->source, text, strlen(text), &ids, &err);
    int n = (int)ids.n;
    ints_release(&ids);
    return n;
}

/* ---- options ---- */

static void check_refused(const struct tfm_model *model, const struct tfm_translate_options *o,
                          const char *message)
{
    struct tfm_translator *t;
    struct tfm_error err = { 0 };
    CHECK(tfm_translator_new(&t, model, o, &err) == TFM_EINVAL && t == NULL, "refused: %s", message);
    CHECK_STR(err.message, message, "its message");
}

static void test_options(const struct tfm_model *model)
{
    struct tfm_translate_options o = defaults();
    o.beam_size = 0;
    check_refused(model, &o, "the beam size is 0; it must be from 1 to 64");
    o = defaults();
    o.n_best = 6;
    check_refused(model, &o,
                  "the number of hypotheses wanted a line is 6; it must be from 1 to the beam size, 5");
    o = defaults();
    o.max_length = 10001;
    check_refused(model, &o,
                  "the maximal length (of a line, in pieces) is 10001; it must be from 1 to 10000");
    o = defaults();
    o.mini_batch = 0;
    check_refused(model, &o, "the batch size (in sentences) is 0; it must be from 1 to 10000");
    o = defaults();
    o.threads = -1;
    check_refused(model, &o, "the number of threads (0: one a core) is -1; it must be from 0 to 1024");
    o = defaults();
    o.normalize = NAN;
    check_refused(model, &o, "the exponent of length normalization is nan; it must be from 0 to 10");
    o = defaults();
    o.max_length_factor = -0.5f;
    check_refused(model, &o, "the maximal length factor is -0.5; it must be from 0 to 100");
}

/* ---- odd lines ---- */

static void test_odd_lines(const struct tfm_model *model)
{
    static char endless[5001];
    memset(endless, 'a', 5000);
    static const char *const lines[] = {
        "",
        "bado kile.",
        "   \t",
        "\xC2\xA0\xE3\x80\x80",
        "\xEF\xBB\xBF",
        "ok\xC3( bad \xFF end",
        "cut \xE2\x82",
        "The bus \xF0\x9F\x9A\x8C.",
        "zumbrel",
        "- - - - - -",
        "ha ha ha ha",
        endless,
        "Price | total ||| net",
        "left\tright",
        "a\rb",
        "\xEF\xBF\xBD",
        "<s> </s> <unk>",
    };
    enum {
        N = sizeof(lines) / sizeof(*lines)
    };
    static const bool blank[N] = { [0] = true, [2] = true, [3] = true, [4] = true, [15] = true };
    struct tfm_translate_options o = defaults();
    o.max_length_factor = 0.1f;
    struct tfm_translator *t = open_translator(model, &o);
    const struct tfm_translation *found = translate(t, lines, N);
    for (int i = 0; i < N; i++) {
        const struct tfm_hypothesis *h = &found[i].hypotheses[0];
        CHECK(found[i].n_hypotheses == 1 && utf8_is_valid(h->text, strlen(h->text)),
              "line %d has one valid text", i);
        CHECK(strpbrk(h->text, "\r\n") == NULL, "and no line end in it");
        if (blank[i])
            CHECK(h->text[0] == '\0' && h->n_pieces == 0 && h->score == 0 && !found[i].limited,
                  "line %d is blank", i);
        else
            CHECK(h->n_pieces > 0 && h->score < 0, "line %d was translated", i);
    }
    int pieces = source_pieces(model, endless);
    CHECK_INT(found[11].n_parts, (pieces + 499) / 500, "an endless word of %d pieces is cut where need be",
              pieces);
    CHECK_INT(found[1].n_parts, 1, "a short line has one part");

    const struct tfm_translation *none = translate(t, lines, 0);
    CHECK(none == NULL, "no lines, no result");
    const struct tfm_translation *blanks = translate(t, lines + 2, 2);
    CHECK(blanks[0].hypotheses[0].text[0] == '\0' && blanks[1].hypotheses[0].text[0] == '\0',
          "only blank lines");
    tfm_translator_free(t);
}

/* ---- parts ---- */

static void test_plan(const struct tfm_model *model)
{
    struct str text = { 0 };
    struct ints ids = { 0 };
    struct tfm_error err;
    struct plan plan;
    tiny_sentence(&text, 5, 200);
    spm_encode(model->source, text.data, text.len, &ids, &err);
    int wrong = 0, at_words = 0, parts = 0;
    for (int max_length = 1; max_length < 60; max_length++) {
        struct plan_line lines[2] = { { .pieces = ids.data, .n_pieces = (int)ids.n }, { 0 } };
        if (!CHECK(plan_init(&plan, max_length, &err) == TFM_OK, "a plan"))
            break;
        wrong += plan_cut(&plan, lines, 2, model->source, &err) != TFM_OK || lines[1].n_parts != 0;
        const int *at = ids.data;
        for (int i = 0; i < lines[0].n_parts; i++) {
            const struct search_sentence *part = &lines[0].parts[i];
            wrong += part->pieces != at || part->n_pieces < 1 || part->n_pieces > max_length;
            if (max_length >= 12) {
                parts++;
                at_words += spm_is_word_start(model->source, *at);
            }
            at += part->n_pieces;
        }
        wrong += at != ids.data + ids.n;
        plan_release(&plan);
    }
    CHECK_INT(wrong, 0, "parts are no longer than asked for and make the whole");
    CHECK_INT(at_words, parts, "parts start at words");
    str_release(&text);
    ints_release(&ids);
}

static void test_parts(const struct tfm_model *model)
{
    struct str text = { 0 };
    tiny_sentence(&text, 5, 30);
    struct tfm_translate_options o = defaults();
    o.max_length = 20;
    o.n_best = 3;
    struct tfm_translator *t = open_translator(model, &o);
    const char *line = text.data;
    const struct tfm_translation *found = translate(t, &line, 1);
    const struct tfm_hypothesis *h = &found[0].hypotheses[0];
    CHECK(found[0].n_parts > 1 && found[0].n_hypotheses == 1, "a line in %d parts has one hypothesis",
          found[0].n_parts);
    int eos = 0;
    double sum = 0;
    for (int i = 0; i < h->n_pieces; i++) {
        eos += h->pieces[i] == model->config.eos_token_id;
        sum += h->piece_scores[i];
    }
    CHECK_INT(eos, found[0].n_parts, "each part ended");
    CHECK_NEAR(h->score, sum, 1e-9, "its score is the sum of all pieces' scores");
    CHECK_NEAR(h->normalized_score, h->score / h->n_pieces, 1e-12, "its normalised score is of the whole");

    /* The text is that of the parts, each decoded for itself. */
    struct str joined = { 0 };
    struct tfm_error err;
    for (int i = 0, start = 0; i < h->n_pieces; i++) {
        if (h->pieces[i] != model->config.eos_token_id)
            continue;
        size_t before = joined.len;
        if (before > 0)
            str_add(&joined, " ", 1, &err);
        spm_decode(model->target, h->pieces + start, (size_t)(i - start), &joined, &err);
        if (before > 0 && joined.len == before + 1)
            joined.data[joined.len = before] = '\0';
        start = i + 1;
    }
    CHECK_STR(h->text, joined.len > 0 ? joined.data : "", "its text is that of the parts, joined by spaces");
    str_release(&joined);
    str_release(&text);
    tfm_translator_free(t);
}

/* ---- limit, n-best, unknown pieces ---- */

static void test_limit(const struct tfm_model *endless)
{
    static const char *const lines[] = { "bado", "kile bado mur." };
    static const float factors[] = { 0, 0.5f, 3 };
    for (int f = 0; f < 3; f++) {
        struct tfm_translate_options o = defaults();
        o.max_length_factor = factors[f];
        o.n_best = o.beam_size = 3;
        struct tfm_translator *t = open_translator(endless, &o);
        const struct tfm_translation *found = translate(t, lines, 2);
        for (int i = 0; i < 2; i++) {
            int limit = (int)(factors[f] * (float)source_pieces(endless, lines[i])) + 10;
            CHECK(found[i].limited, "factor %g, line %d: the limit is told", (double)factors[f], i);
            CHECK_INT(found[i].hypotheses[0].n_pieces, limit, "and kept");
            CHECK(found[i].hypotheses[0].pieces[limit - 1] != endless->config.eos_token_id, "without </s>");
            CHECK_INT(found[i].n_hypotheses, 3, "n-best");
        }
        tfm_translator_free(t);
    }
}

static void test_n_best(const struct tfm_model *model)
{
    static const char *const lines[] = { "bado kile.", "", "mur stado verzo namur." };
    struct tfm_translate_options o = defaults();
    o.beam_size = 8;
    o.n_best = 8;
    struct tfm_translator *t = open_translator(model, &o);
    const struct tfm_translation *found = translate(t, lines, 3);
    CHECK(found[0].n_hypotheses == 8 && found[1].n_hypotheses == 1 && found[2].n_hypotheses == 8,
          "numbers of hypotheses");
    int disordered = 0, equal = 0;
    for (int a = 0; a < 8; a++) {
        const struct tfm_hypothesis *x = &found[2].hypotheses[a];
        disordered += a > 0 && x->normalized_score > x[-1].normalized_score;
        for (int b = 0; b < a; b++) {
            const struct tfm_hypothesis *y = &found[2].hypotheses[b];
            equal += x->n_pieces == y->n_pieces &&
                     memcmp(x->pieces, y->pieces, sizeof(int) * (size_t)x->n_pieces) == 0;
        }
    }
    CHECK_INT(disordered, 0, "best first");
    CHECK_INT(equal, 0, "all different");
    tfm_translator_free(t);
}

static int count_unk(const struct tfm_model *model, bool allow)
{
    static const char *const line = "bado kile mur stado verzo.";
    struct tfm_translate_options o = defaults();
    o.allow_unk = allow;
    struct tfm_translator *t = open_translator(model, &o);
    const struct tfm_hypothesis *h = &translate(t, &line, 1)[0].hypotheses[0];
    int n = 0;
    for (int i = 0; i < h->n_pieces; i++)
        n += h->pieces[i] == model->config.unk_token_id;
    tfm_translator_free(t);
    return n;
}

static void test_broken(struct tfm_model *model)
{
    static const char *const lines[] = { "bado kile.", "mur" };
    static const float values[] = { NAN, INFINITY, -INFINITY };
    struct tfm_translate_options o = defaults();
    real was = model->weights.logits_bias[7];
    for (int i = 0; i < 3; i++) {
        model->weights.logits_bias[7] = values[i];
        struct tfm_translator *t = open_translator(model, &o);
        const struct tfm_translation *found = translate(t, lines, 2);
        CHECK(found[0].n_hypotheses == 1 && found[1].n_hypotheses == 1, "a logit of %g does no harm",
              (double)values[i]);
        tfm_translator_free(t);
    }
    model->weights.logits_bias[7] = was;
}

/* ---- memory ---- */

#define N_TEXTS 40

static void make_texts(struct str *texts, const char **lines)
{
    for (int i = 0; i < N_TEXTS; i++) {
        tiny_sentence(&texts[i], rng_key(9, (uint64_t)i, 0, 0), 1 + i % 17);
        lines[i] = texts[i].data;
    }
}

static void test_warm(const struct tfm_model *model)
{
    struct str texts[N_TEXTS] = { 0 };
    const char *lines[N_TEXTS];
    make_texts(texts, lines);
    for (int threads = 1; threads <= 2; threads++) {
        struct tfm_translate_options o = defaults();
        o.threads = threads;
        o.mini_batch = 7;
        o.n_best = 3;
        o.max_length = 20;
        struct tfm_translator *t = open_translator(model, &o);
        translate(t, lines, N_TEXTS);
        /* With two threads chance decides which worker's text buffer has met the longest line. */
        for (int i = 0; i < (threads == 1 ? 0 : 20); i++)
            translate(t, lines, N_TEXTS);
        long before = mem_allocations();
        translate(t, lines, N_TEXTS);
        translate(t, lines + 3, N_TEXTS - 10);
        CHECK_INT(mem_allocations() - before, 0, "warm, with %d threads, it allocates nothing", threads);
        tfm_translator_free(t);
    }
    for (int i = 0; i < N_TEXTS; i++)
        str_release(&texts[i]);
}

/* Creation and first call, with the n-th allocation failing. True when all went well. */
static bool works_with_failure(const struct tfm_model *model, long n, int *wrong)
{
    static const char *const lines[] = { "bado kile mur stado verzo namur bado kile.", "mur", "" };
    struct tfm_translate_options o = defaults();
    o.max_length = 6;
    struct tfm_error err = { 0 };
    struct tfm_translator *t;
    const struct tfm_translation *found;
    mem_fail_after(n);
    enum tfm_status status = tfm_translator_new(&t, model, &o, &err);
    if (status == TFM_OK)
        status = tfm_translate(t, lines, 3, &found, &err);
    mem_fail_after(-1);
    if (status != TFM_OK)
        *wrong += status != TFM_ENOMEM || err.status != TFM_ENOMEM || err.message[0] == '\0';
    if (t != NULL)
        *wrong += tfm_translate(t, lines, 3, &found, &err) != TFM_OK || found[0].n_parts < 2;
    tfm_translator_free(t);
    return status == TFM_OK;
}

static void test_failing_memory(const struct tfm_model *model)
{
    int wrong = 0;
    long n = 0;
    while (n < 200 && !works_with_failure(model, n, &wrong))
        n++;
    CHECK(n > 5 && n < 200, "each of %ld allocations can fail", n);
    CHECK_INT(wrong, 0, "it says so, and the next call works");
}

/* A search takes at most what search_scratch and search_results say. */
static void test_bounds(const struct tfm_model *model)
{
    static const struct {
        int n_pieces, n, beam_size;
        bool align;
    } cases[] = { { 1, 1, 1, false },   { 1, 12, 5, false }, { 200, 1, 5, false },
                  { 30, 6, 12, false }, { 3, 1, 64, false }, { 300, 2, 1, false },
                  { 1, 1, 1, true },    { 200, 1, 5, true }, { 30, 6, 12, true } };
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct arena scratch, results;
        struct tfm_error err;
        if (!CHECK(arena_init(&scratch, (size_t)4 << 30, &err) == TFM_OK, "scratch") ||
            !CHECK(arena_init(&results, (size_t)1 << 30, &err) == TFM_OK, "results"))
            return;
        struct search_options options = { .beam_size = cases[c].beam_size,
                                          .n_best = cases[c].beam_size,
                                          .normalize = 1,
                                          .max_length_factor = cases[c].n_pieces > 20 ? 0.2 : 3,
                                          .align = cases[c].align,
                                          .candidates = { .n = cases[c].beam_size,
                                                          .repetition_penalty = 1 } };
        static int pieces[1000];
        for (int i = 0; i < 1000; i++)
            pieces[i] = 3 + i % 40;
        struct search_sentence sentences[30], *batch[30];
        size_t most = search_scratch_base(&options, &model->net), most_results = 0;
        for (int i = 0; i < cases[c].n; i++) {
            sentences[i] = (struct search_sentence){ .pieces = pieces + i, .n_pieces = cases[c].n_pieces };
            batch[i] = &sentences[i];
            most += search_scratch(&options, &model->net, cases[c].n_pieces, 0, 0);
            most_results += search_results(&options, cases[c].n_pieces, 0, 0);
        }
        struct run run = { .arena = &scratch, .kern = model->kern };
        search_batch(batch, cases[c].n, &options, &model->net, &results, &run);
        CHECK(scratch.peak <= most && most < 4 * scratch.peak,
              "%d times %d pieces, beam %d: took %zu bytes, said %zu", cases[c].n, cases[c].n_pieces,
              cases[c].beam_size, scratch.peak, most);
        CHECK(results.peak <= most_results, "results take %zu bytes, said %zu", results.peak, most_results);
        CHECK_INT((long)scratch.used, 0, "scratch was given back");
        arena_release(&scratch);
        arena_release(&results);
    }
}

int main(void)
{
    struct tfm_model *model = tiny_open("usual", &(struct tiny_options){ .eos_bias = 3, .seed = 1 });
    struct tfm_model *endless = tiny_open("endless", &(struct tiny_options){ .eos_bias = -20, .seed = 2 });
    struct tfm_model *unknowing = tiny_open("unknowing", &(struct tiny_options){ .unk_bias = 20, .seed = 3 });
    test_options(model);
    test_odd_lines(model);
    test_plan(model);
    test_parts(model);
    test_limit(endless);
    test_n_best(model);
    CHECK_INT(count_unk(unknowing, false), 0, "the unknown piece is not produced");
    CHECK(count_unk(unknowing, true) > 0, "unless allowed");
    test_warm(model);
    test_failing_memory(model);
    test_bounds(endless);
    test_broken(model);
    tfm_model_free(model);
    tfm_model_free(endless);
    tfm_model_free(unknowing);
    return check_done();
}
