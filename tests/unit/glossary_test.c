/*
 * glossary_test.c: files of terms, where their terms are found, and the laws of translations that have to hold
 * them: every hypothesis does; a line without terms is as without a glossary; nothing depends on batches, threads
 * or processors; scores are the model's.
 */
#include <string.h>

#include "decode/glossary.h"
#include "decode/translator.h"
#include "same_translations.h"
#include "tiny_model.h"

#define N_LINES 20

static const char *write_glossary(const char *text)
{
    static int n;
    struct tfm_error err;
    const char *path = check_path("glossary%d", n++);
    if (file_write(path, text, strlen(text), &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a file can be written");
        exit(check_done());
    }
    return path;
}

/* ---- files ---- */

static void check_refused(const struct tfm_model *model, const char *text, const char *message)
{
    struct glossary *g;
    struct tfm_error err = { 0 };
    enum tfm_status status =
        glossary_read(&g, write_glossary(text), false, model->source, model->target, &err);
    CHECK(status == TFM_EFORMAT && g == NULL && strstr(err.message, message) != NULL, "refused: %s",
          err.message);
}

static void test_files(const struct tfm_model *model)
{
    check_refused(model, "ba\tdo\nki\n",
                  ": line 2: found no tab, expected a term, a tab and its translation");
    check_refused(model, "# a\n\n \tdo\n", ": line 3: found nothing before the tab, expected a term");
    check_refused(model, "ba\t \tdo\n", ": line 1: found nothing behind the tab, expected a term");
    check_refused(model, "ba\tdo\xff\n", ": line 1: found bytes that are no UTF-8");
    check_refused(model, "\xe2\x80\x8b\tdo\n", ": line 1: found nothing before the tab");
    check_refused(model, "ba\tdo\nki\tle\nba\tna\n",
                  ": line 3: found 'na' as the translation of 'ba', expected 'do' as in line 1");
    char longest[600] = "x\n# x\nba\t";
    for (int i = 0; i < 65; i++)
        strcat(longest, "ba zo ");
    check_refused(model, longest + 2, "pieces, expected 1 to 64");
    struct glossary *g;
    struct tfm_error err;
    CHECK(glossary_read(&g,
                        write_glossary("\xef\xbb\xbf"
                                       "ba\tdo\r\n\n#ki\tle\nle\tna\tmore\n  ba \t do \n"),
                        false, model->source, model->target, &err) == TFM_OK &&
              g->n == 2,
          "comments, blank lines, more columns, spaces, and a line twice");
    glossary_free(g);
    CHECK(glossary_read(&g, write_glossary(""), false, model->source, model->target, &err) == TFM_OK &&
              g->n == 0,
          "an empty file");
    glossary_free(g);
    CHECK_INT(glossary_read(&g, "/nonexistent/glossary", false, model->source, model->target, &err), TFM_EIO,
              "no file");
}

/* ---- finding ---- */

/* Expected: the target terms found, with spaces between. */
static void check_found(const struct tfm_model *model, const struct glossary *g, const char *text,
                        const char *expected)
{
    static struct glossary_finds finds;
    const struct glossary_match *matches;
    struct tfm_error err;
    char found[200] = "";
    int n = 0, last = 0;
    CHECK_INT(glossary_find(&finds, &matches, &n, g, text, model->source, &err), TFM_OK,
              "looking into \"%s\"", text);
    for (int i = 0; i < n; i++) {
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i > 0 ? " " : "",
                 g->terms[matches[i].term].text);
        if (matches[i].first < last || matches[i].end <= matches[i].first)
            strcat(found, " (in wrong order)");
        last = matches[i].first;
    }
    CHECK_STR(found, expected, "  finds its terms");
    glossary_release(&finds);
    finds = (struct glossary_finds){ 0 };
}

static void test_finding(const struct tfm_model *model)
{
    struct glossary *g;
    struct tfm_error err;
    const char *path =
        write_glossary("train\tA\ntrain station\tB\nold\tC\nold train\tD\nstation hall\tE\nC++\tF\nTrain\tG\n"
                       "\xe7\x8c\xab\tH\nCaf\xc3\x89\tI\n.NET\tJ\nrobot \xf0\x9f\xa4\x96\tK\n");
    if (!CHECK(glossary_read(&g, path, false, model->source, model->target, &err) == TFM_OK, "a glossary"))
        return;
    check_found(model, g, "the train, a train", "A A");
    check_found(model, g, "a train station", "B");
    check_found(model, g, "a  train\tstation", "B");
    check_found(model, g, "trains and restrain, train9 train_x", "");
    check_found(model, g, "\"train\" train-old (old)", "A A C C");
    check_found(model, g, "old train station", "C B");
    check_found(model, g, "train station hall", "B");
    check_found(model, g, "the station hall", "E");
    check_found(model, g, "C++ and C+++ and C", "F F");
    check_found(model, g, "Train train TRAIN", "G A");
    check_found(model, g, "\xe5\xa4\xa7\xe7\x8c\xab\xe3\x81\xa8", "H");
    check_found(model, g, "ASP.NET, .NET", "J J");
    check_found(model, g, "the robot \xf0\x9f\xa4\x96.", "K");
    check_found(model, g, "caf\xc3\xa9", "");
    check_found(model, g, "", "");
    glossary_free(g);
    path = write_glossary("Train\tA\nCAF\xc3\x89\tB\n\xd0\x96\xd0\x98\tC\n");
    if (!CHECK(glossary_read(&g, path, true, model->source, model->target, &err) == TFM_OK,
               "one that ignores case"))
        return;
    check_found(model, g, "TRAIN tRain Caf\xc3\xa9 \xd0\xb6\xd0\x98", "A A B C");
    glossary_free(g);
}

/* ---- translating ---- */

static struct str texts[N_LINES];
static const char *lines[N_LINES];

static void make_lines(void)
{
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&texts[i], rng_key(41, (uint64_t)i, 0, 0), 1 + i % 11);
        lines[i] = texts[i].data != NULL ? texts[i].data : "";
    }
}

static struct tfm_translate_options defaults(int beam_size, const char *glossary)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.threads = 1;
    o.beam_size = beam_size;
    o.max_length_factor = 2;
    o.n_best = beam_size < 3 ? beam_size : 3;
    o.glossary = glossary;
    return o;
}

static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err->message, "", "translation works");
    exit(check_done());
}

static struct tfm_translator *open_translator(const struct tfm_model *model,
                                              const struct tfm_translate_options *o, const struct kern *kern)
{
    struct tfm_translator *t;
    struct tfm_error err;
    must(translator_new(&t, &model->net, model->source, model->target, kern, o, NULL, &err), &err);
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *some, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    must(tfm_translate(t, some, n, &result, &err), &err);
    return result;
}

/* How often a word stands in a text, between characters that are no letters. */
static int count_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        n += (at == text || strchr(" .", at[-1]) != NULL) &&
             (at[len] == '\0' || strchr(" .", at[len]) != NULL);
    return n;
}

/* Words of the lines become these, one of several pieces and one with a character that no vocabulary has. */
static const char *const sources[] = { "do", "mur", "tü", "ver" };
static const char *const targets[] = { "poverzo nado", "stazo", "rile\xf0\x9f\xa4\x96mur", "baba" };
static struct str glossary_text;

static void make_glossary(void)
{
    struct tfm_error err;
    for (int i = 0; i < N_LINES; i++) { /* the first word of every other line, if it has not come before */
        char word[60] = "\n";
        if (i % 2 == 0)
            continue;
        size_t len = strcspn(lines[i], " .");
        snprintf(word + 1, sizeof(word) - 2, "%.*s\t", (int)len, lines[i]);
        if (len == 0 || strstr(glossary_text.data != NULL ? glossary_text.data : "", word) != NULL)
            continue;
        str_printf(&glossary_text, &err, "%s%s", word, targets[(i / 2) % 4]);
    }
    for (int i = 0; i < 4; i++)
        str_printf(&glossary_text, &err, "\n%sxx\t%s", sources[i], targets[i]);
    str_add(&glossary_text, "\n", 1, &err);
}

static void test_laws(const struct tfm_model *model, const char *path, int beam_size, const char *name)
{
    struct tfm_translate_options o = defaults(beam_size, path), plain = defaults(beam_size, NULL);
    struct tfm_translator *a = open_translator(model, &o, model->kern),
                          *b = open_translator(model, &plain, model->kern);
    const struct tfm_translation *found = translate(a, lines, N_LINES),
                                 *without = translate(b, lines, N_LINES);
    struct glossary *g;
    struct tfm_error err;
    must(glossary_read(&g, path, false, model->source, model->target, &err), &err);
    int missing = 0, terms = 0, changed = 0, lines_with = 0;
    for (int i = 0; i < N_LINES; i++) {
        struct glossary_finds finds = { 0 };
        const struct glossary_match *matches;
        int n;
        must(glossary_find(&finds, &matches, &n, g, lines[i], model->source, &err), &err);
        for (int m = 0; m < n; m++) {
            int wanted = 0;
            for (int other = 0; other < n; other++)
                wanted += matches[other].term == matches[m].term;
            for (int h = 0; h < found[i].n_hypotheses; h++, terms++)
                missing += count_word(found[i].hypotheses[h].text, g->terms[matches[m].term].text) < wanted;
        }
        missing += found[i].n_terms_missing;
        changed += n == 0 && !same(&found[i], &without[i]);
        lines_with += n > 0;
        glossary_release(&finds);
    }
    glossary_free(g);
    CHECK(terms > 20 && missing == 0, "%s: %d terms in hypotheses, %d missing", name, terms, missing);
    CHECK(lines_with > 5 && lines_with < N_LINES - 3 && changed == 0,
          "%s: lines without terms (all but %d) are as without a glossary", name, lines_with);
    o.threads = 3;
    o.mini_batch = 3;
    struct tfm_translator *c = open_translator(model, &o, kern_for(CPU_REF));
    CHECK_INT(differences(found, translate(c, lines, N_LINES), N_LINES), 0,
              "%s: batches, threads and the processor change nothing", name);
    int wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&found[i], translate(c, &lines[i], 1));
    CHECK_INT(wrong, 0, "%s: a batch is its singles", name);

    const struct tfm_translation *scored;
    const char *best[N_LINES];
    for (int i = 0; i < N_LINES; i++)
        best[i] = found[i].hypotheses[0].text;
    must(tfm_score(c, lines, best, N_LINES, &scored, &err), &err);
    int compared = 0, other = 0;
    for (int i = 0; i < N_LINES; i++) {
        const struct tfm_hypothesis *x = &found[i].hypotheses[0], *y = &scored[i].hypotheses[0];
        if (x->n_pieces != y->n_pieces || x->n_pieces == 0 ||
            memcmp(x->pieces, y->pieces, (size_t)x->n_pieces * sizeof(int)) != 0)
            continue;
        compared++;
        other += x->score != y->score;
    }
    CHECK(compared > 3 && other == 0, "%s: %d translations have the score that scoring gives", name,
          compared);

    translate(a, lines, N_LINES);
    long before = mem_allocations();
    translate(a, lines, N_LINES);
    CHECK_INT(mem_allocations() - before, 0, "%s: a warm translator allocates nothing", name);
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
}

/* ---- odd cases ---- */

static void test_odd(const struct tfm_model *model, const struct tfm_model *endless)
{
    struct tfm_translate_options o =
        defaults(4, write_glossary("bado\tpoverzo nado\nmur\tpoverzo nado baba\n"));
    struct tfm_error err;
    const struct tfm_translation *result;
    struct tfm_translator *t = open_translator(endless, &o, endless->kern);
    result = translate(t, (const char *const[]){ "bado mur." }, 1);
    CHECK(result[0].limited && result[0].n_terms_missing == 0 &&
              count_word(result[0].hypotheses[0].text, "poverzo nado baba") == 1,
          "a model without an end still says its terms, also one that begins as another does");
    tfm_translator_free(t);

    t = open_translator(model, &o, model->kern);
    must(tfm_translate_forced(t, (const char *const[]){ "bado" }, (const char *const[]){ "zo poverzo nado" },
                              1, &result, &err),
         &err);
    CHECK(result[0].n_terms_missing == 0 &&
              count_word(result[0].hypotheses[result[0].n_hypotheses - 1].text, "nado") >= 1 &&
              strncmp(result[0].hypotheses[0].text, "zo poverzo nado", 15) == 0,
          "what is forced may hold the term");
    struct str many = { 0 };
    for (int i = 0; i < 60; i++)
        str_add(&many, "bado ", 5, &err);
    result = translate(t, (const char *const[]){ many.data }, 1);
    int n = count_word(result[0].hypotheses[0].text, "poverzo nado");
    CHECK(result[0].n_terms_missing > 0 && n + result[0].n_terms_missing >= 60,
          "more terms than may be: %d come, %d are missing", n, result[0].n_terms_missing);
    tfm_translator_free(t);

    o.max_length = 20;
    t = open_translator(model, &o, model->kern);
    result = translate(t, (const char *const[]){ many.data }, 1);
    n = count_word(result[0].hypotheses[0].text, "poverzo nado");
    CHECK(result[0].n_parts > 1 && result[0].n_terms_missing == 0 && n >= 60,
          "in %d parts each has its own: %d come", result[0].n_parts, n);
    tfm_translator_free(t);
    str_release(&many);

    o.output_sampling = TFM_SAMPLING_FULL;
    CHECK(translator_new(&t, &model->net, model->source, model->target, model->kern, &o, NULL, &err) ==
              TFM_EINVAL,
          "refused: %s", err.message);
}

/* Where there is hardly room for more than the terms, they come all the same. */
static void test_tight(const struct tfm_model *model, const char *path)
{
    struct tfm_translate_options o = defaults(2, path);
    o.max_length_factor = 0;
    struct tfm_translator *t = open_translator(model, &o, model->kern);
    const struct tfm_translation *found = translate(t, lines, N_LINES);
    int missing = 0, most = 0;
    for (int i = 0; i < N_LINES; i++) {
        missing += found[i].n_terms_missing;
        most = found[i].hypotheses[0].n_pieces > most ? found[i].hypotheses[0].n_pieces : most;
    }
    CHECK(missing == 0 && most > 10,
          "of translations as short as can be (%d pieces at most) %d terms are missing", most, missing);
    tfm_translator_free(t);
}

/* A search with terms takes at most what it says. */
static void test_bounds(const struct tfm_model *model)
{
    struct glossary *g;
    struct tfm_error err;
    must(
        glossary_read(&g, write_glossary("ba\tpoverzo nado ki\n"), false, model->source, model->target, &err),
        &err);
    const struct term *list[10];
    struct terms_place places[10];
    for (int i = 0; i < 10; i++) {
        list[i] = &g->terms[0];
        places[i] = (struct terms_place){ i, i + 1 };
    }
    for (int n_terms = 1; n_terms * g->terms[0].n <= TERMS_PIECES && n_terms <= 10; n_terms += 2) {
        struct terms terms = { .list = list, .places = places, .n = n_terms, .ends_word = g->ends_word };
        terms.n_pieces = n_terms * g->terms[0].n;
        terms.goes_on = g->goes_on;
        struct search_options options = { .beam_size = 4,
                                          .n_best = 4,
                                          .normalize = 1,
                                          .max_length_factor = 2,
                                          .most_term_pieces = TERMS_PIECES,
                                          .align_layer = 1,
                                          .candidates = { .n = 4, .repetition_penalty = 1 } };
        static int pieces[30];
        for (int i = 0; i < 30; i++)
            pieces[i] = 3 + i % 40;
        struct search_sentence sentences[3], *batch[3];
        struct arena scratch, results;
        must(arena_init(&scratch, (size_t)4 << 30, &err), &err);
        must(arena_init(&results, (size_t)1 << 30, &err), &err);
        size_t most = search_scratch_base(&options, &model->net), most_results = 0;
        for (int i = 0; i < 3; i++) {
            sentences[i] = (struct search_sentence){ .pieces = pieces, .n_pieces = 20 + i };
            sentences[i].terms = i == 1 ? NULL : &terms;
            int n = search_term_pieces(&sentences[i]);
            batch[i] = &sentences[i];
            most += search_scratch(&options, &model->net, 20 + i, 0, n);
            most_results += search_results(&options, 20 + i, 0, n);
        }
        struct run run = { .arena = &scratch, .kern = model->kern };
        search_batch(batch, 3, &options, &model->net, &results, &run);
        CHECK(scratch.peak <= most && most < 4 * scratch.peak && results.peak <= most_results,
              "%d terms: took %zu bytes, said %zu", n_terms, scratch.peak, most);
        arena_release(&scratch);
        arena_release(&results);
    }
    glossary_free(g);
}

int main(void)
{
    struct tfm_model *model = tiny_open("usual", &(struct tiny_options){ .eos_bias = 3, .seed = 1 });
    struct tfm_model *ssru = tiny_open(
        "ssru",
        &(struct tiny_options){ .eos_bias = 3, .seed = 5, .cell = TFM_CELL_SSRU, .tie = TFM_TIE_NONE });
    struct tfm_model *endless = tiny_open("endless", &(struct tiny_options){ .eos_bias = -20, .seed = 2 });
    make_lines();
    make_glossary();
    test_files(model);
    test_finding(model);
    const char *path = write_glossary(glossary_text.data);
    test_laws(model, path, 5, "beam 5");
    test_laws(model, path, 1, "greedy");
    test_laws(ssru, path, 64, "SSRU, beam 64");
    test_tight(endless, path);
    test_odd(model, endless);
    test_bounds(model);
    tfm_model_free(model);
    tfm_model_free(ssru);
    tfm_model_free(endless);
    str_release(&glossary_text);
    for (int i = 0; i < N_LINES; i++)
        str_release(&texts[i]);
    return check_done();
}
