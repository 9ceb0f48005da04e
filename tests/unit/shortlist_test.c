/*
 * shortlist_test.c: the file of a shortlist (as written, damaged in every way, of other vocabularies), the
 * choice for a sentence against a plain one, and translation with a shortlist: only listed pieces come, with
 * the scores that the whole vocabulary gives them after the others are taken away; a list of everything
 * changes no bit; and neither batches nor threads nor the kernels' tier matter.
 */
#include "model/shortlist.h"

#include <unistd.h>

#include "base/gzip.h"
#include "decode/translator.h"
#include "tiny_model.h"

#define N_LINES 20

static struct str line_texts[N_LINES];
static const char *lines[N_LINES];

static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err->message, "", "a step that must work");
    exit(check_done());
}

/* A list with random pieces: each is frequent with probability 1/16 and listed for another with `part`. */
static struct shortlist *make_list(const struct spm *spm, double part)
{
    int v = spm_size(spm);
    struct shortlist *list = mem_alloc(sizeof(*list), NULL);
    *list = (struct shortlist){ .n_source = v, .n_target = v };
    list->start = mem_alloc(((size_t)v + 2) * sizeof(*list->start), NULL);
    list->ids = mem_alloc((size_t)(v + 1) * (size_t)v * sizeof(*list->ids), NULL);
    size_t n = 0;
    for (int i = 0; i <= v; i++) {
        for (int f = 0; f < v; f++)
            if (rng_unit(rng_key(3, (uint64_t)i, (uint64_t)f, 0)) < (i == 0 && part < 1 ? 1 / 16.0 : part))
                list->ids[n++] = f;
        list->start[i + 1] = n;
        if (i > 0 && shortlist_length(list, i) > list->longest)
            list->longest = shortlist_length(list, i);
    }
    return list;
}

static bool same_list(const struct shortlist *a, const struct shortlist *b)
{
    size_t n = (size_t)a->n_source + 2;
    return a->n_source == b->n_source && a->n_target == b->n_target && a->longest == b->longest &&
           memcmp(a->start, b->start, n * sizeof(*a->start)) == 0 &&
           memcmp(a->ids, b->ids, a->start[n - 1] * sizeof(*a->ids)) == 0;
}

/* ---- the file ---- */

static void check_file(const char *data, size_t size, const struct spm *spm, const char *message,
                       const char *name)
{
    struct tfm_error err = { 0 };
    struct shortlist *list;
    const char *path = check_path("damaged.gz");
    must(gzip_write(path, data, size, 0, NULL, &err), &err);
    CHECK(shortlist_read(&list, path, spm, spm, &err) == TFM_EFORMAT && list == NULL, "%s is refused", name);
    CHECK(strstr(err.message, path) != NULL && strstr(err.message, message) != NULL, "and told: %s",
          err.message);
}

static void check_change(const char *data, size_t size, size_t at, char byte, const struct spm *spm,
                         const char *message, const char *name)
{
    char *copy = mem_alloc(size + 1, NULL);
    memcpy(copy, data, size);
    copy[at] = byte;
    check_file(copy, at == size ? size + 1 : size, spm, message, name);
    mem_free(copy);
}

static void test_file(const struct spm *spm, const struct shortlist *list)
{
    struct tfm_error err = { 0 };
    struct shortlist *read;
    char *data;
    size_t size;
    const char *path = check_path("list.gz");
    must(shortlist_write(list, path, spm, spm, &err), &err);
    must(shortlist_read(&read, path, spm, spm, &err), &err);
    CHECK(same_list(list, read), "a file gives back the list that was written");
    shortlist_free(read);

    must(gzip_read(path, (size_t)1 << 20, &data, &size, NULL, &err), &err);
    int cuts = 0;
    for (size_t n = 0; n < size; n += 7) {
        must(gzip_write(path, data, n, 0, NULL, &err), &err);
        cuts += shortlist_read(&read, path, spm, spm, &err) != TFM_EFORMAT;
    }
    CHECK_INT(cuts, 0, "one that is cut short is refused, wherever it is");
    check_file(data, size / 2, spm, "it ends within a list", "half of one");
    check_file("hello", 5, spm, "is no shortlist", "something else");
    check_change(data, size, 0, 't', spm, "is no shortlist", "another beginning");
    check_change(data, size, 8, 2, spm, "has format version 2, and this tfm reads 1", "a newer version");
    check_change(data, size, 12, (char)(data[12] + 1), spm, "is for vocabularies of", "another size");
    check_change(data, size, 20, (char)(data[20] + 1), spm, "with other vocabularies", "another fingerprint");
    check_change(data, size, 29, 0, spm, "holds what is no piece", "a piece twice");
    check_change(data, size, 29, 127, spm, "holds what is no piece", "a piece behind the last");
    check_change(data, size, size, 0, spm, "something follows", "one byte too many");
    mem_free(data);

    static const char bytes[] = "no gzip";
    must(file_write(path, bytes, sizeof(bytes), &err), &err);
    CHECK(shortlist_read(&read, path, spm, spm, &err) == TFM_EFORMAT, "what is no gzip file: %s",
          err.message);
    CHECK(shortlist_read(&read, check_path("nowhere"), spm, spm, &err) == TFM_EIO, "no file: %s",
          err.message);
}

/* ---- the choice for a sentence ---- */

static void test_select(const struct shortlist *list)
{
    struct arena arena;
    struct tfm_error err;
    int v = list->n_target, wrong = 0, over = 0;
    must(arena_init(&arena, 1 << 20, &err), &err);
    int *ids = ARENA_TAKE(&arena, int, v);
    for (uint64_t c = 0; c < 50; c++) {
        int pieces[8], more[2], n = (int)(c % 8), n_more = (int)(c % 3), n_expected = 0;
        for (int i = 0; i < n; i++)
            pieces[i] = (int)rng_below(rng_key(c, (uint64_t)i, 1, 0), (uint64_t)v);
        for (int i = 0; i < n_more; i++)
            more[i] = (int)rng_below(rng_key(c, (uint64_t)i, 2, 0), (uint64_t)v);
        int found = shortlist_select(ids, list, pieces, n, more, n_more, &arena);
        for (int f = 0; f < v; f++) {
            bool is_in = shortlist_find(list->ids, shortlist_length(list, 0), f) >= 0;
            for (int i = 0; i < n; i++)
                is_in = is_in || shortlist_find(list->ids + list->start[pieces[i] + 1],
                                                shortlist_length(list, pieces[i] + 1), f) >= 0;
            for (int i = 0; i < n_more; i++)
                is_in = is_in || more[i] == f;
            wrong += is_in && (n_expected >= found || ids[n_expected] != f);
            n_expected += is_in;
        }
        wrong += found != n_expected;
        over += found > shortlist_most(list, n, n_more);
    }
    CHECK_INT(wrong, 0, "a sentence has the frequent pieces, those of its own and the others asked for");
    CHECK_INT(over, 0, "never more than shortlist_most says");
    static const int few[] = { 2, 5, 9 };
    CHECK(shortlist_find(few, 3, 5) == 1 && shortlist_find(few, 3, 4) == -1 &&
              shortlist_find(few, 3, 1) == -1 && shortlist_find(few, 3, 10) == -1 &&
              shortlist_find(few, 0, 2) == -1,
          "a piece is found in a choice, or not");
    arena_release(&arena);
}

/* ---- translation ---- */

static struct tfm_translator *open_translator(const struct tfm_model *model, const struct shortlist *list,
                                              const struct kern *kern, const struct tfm_translate_options *o)
{
    struct tfm_translator *t;
    struct tfm_error err;
    must(translator_new(&t, &model->net, model->source, model->target, kern, o, list, &err), &err);
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t, const char *const *texts, size_t n)
{
    struct tfm_error err;
    const struct tfm_translation *result;
    must(tfm_translate(t, texts, n, &result, &err), &err);
    return result;
}

static struct tfm_translate_options with(int mini_batch, int threads)
{
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.beam_size = 4;
    o.n_best = 3;
    o.max_length_factor = 0.5F;
    o.mini_batch = mini_batch;
    o.threads = threads;
    return o;
}

static bool same(const struct tfm_translation *a, const struct tfm_translation *b)
{
    bool all = a->n_hypotheses == b->n_hypotheses;
    for (int h = 0; h < a->n_hypotheses && all; h++) {
        const struct tfm_hypothesis *x = &a->hypotheses[h], *y = &b->hypotheses[h];
        size_t n = (size_t)x->n_pieces;
        all = x->n_pieces == y->n_pieces && x->score == y->score &&
              memcmp(x->pieces, y->pieces, n * sizeof(*x->pieces)) == 0 &&
              memcmp(x->piece_scores, y->piece_scores, n * sizeof(*x->piece_scores)) == 0;
    }
    return all;
}

static int differences(const struct tfm_translation *a, const struct tfm_translation *b, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += !same(&a[i], &b[i]);
    return found;
}

/* The model's lines, with lists of which a sentence has about half of the vocabulary. */
static void test_laws(const struct tfm_model *model, const struct shortlist *list)
{
    struct tfm_translate_options whole = with(64, 1), three = with(4, 3);
    struct tfm_translator *a = open_translator(model, list, model->kern, &whole);
    struct tfm_translator *b = open_translator(model, list, model->kern, &three);
    struct tfm_translator *c = open_translator(model, list, kern_for(CPU_REF), &whole);
    const struct tfm_translation *all = translate(a, lines, N_LINES);
    CHECK_INT(differences(all, translate(b, lines, N_LINES), N_LINES), 0,
              "with a list, too, batches and threads do not matter");
    CHECK_INT(differences(all, translate(c, lines, N_LINES), N_LINES), 0, "nor does the tier of the kernels");
    int wrong = 0;
    for (int i = 0; i < N_LINES; i++)
        wrong += !same(&all[i], translate(b, &lines[i], 1));
    CHECK_INT(wrong, 0, "a line alone has the translation that it has among others");
    long before = mem_allocations();
    translate(a, lines, N_LINES);
    CHECK_INT(mem_allocations() - before, 0, "a warm translator allocates nothing");
    tfm_translator_free(a);
    tfm_translator_free(b);
    tfm_translator_free(c);
}

static void test_pieces(const struct tfm_model *model, const struct shortlist *list)
{
    struct tfm_translate_options o = with(64, 1);
    struct tfm_translator *t = open_translator(model, list, model->kern, &o);
    struct tfm_translator *plain = open_translator(model, NULL, model->kern, &o);
    const struct tfm_translation *all = translate(t, lines, N_LINES),
                                 *free_ones = translate(plain, lines, N_LINES);
    struct arena arena;
    struct tfm_error err;
    struct ints pieces = { 0 };
    must(arena_init(&arena, 1 << 20, &err), &err);
    int *ids = ARENA_TAKE(&arena, int, list->n_target), foreign = 0, unlisted = 0,
        eos = model->config.eos_token_id;
    for (int i = 0; i < N_LINES; i++) {
        pieces.n = 0;
        must(spm_encode(model->source, lines[i], strlen(lines[i]), &pieces, &err), &err);
        int n = shortlist_select(ids, list, pieces.data, (int)pieces.n, &eos, 1, &arena);
        for (int h = 0; h < all[i].n_hypotheses; h++)
            for (int j = 0; j < all[i].hypotheses[h].n_pieces; j++)
                foreign += shortlist_find(ids, n, all[i].hypotheses[h].pieces[j]) < 0;
        for (int j = 0; j < free_ones[i].hypotheses[0].n_pieces; j++)
            unlisted += shortlist_find(ids, n, free_ones[i].hypotheses[0].pieces[j]) < 0;
    }
    CHECK_INT(foreign, 0, "only listed pieces come");
    CHECK(unlisted > 0, "without the list %d others come, too", unlisted);

    static const char *const forced[] = { "zo zo ki", "murna zo ki" };
    const struct tfm_translation *begun;
    must(tfm_translate_forced(t, lines, forced, 2, &begun, &err), &err);
    CHECK(strncmp(begun[0].hypotheses[0].text, forced[0], strlen(forced[0])) == 0 &&
              strncmp(begun[1].hypotheses[0].text, forced[1], strlen(forced[1])) == 0,
          "what is forced need not be listed: %s", begun[1].hypotheses[0].text);
    const struct tfm_translation *scored, *expected;
    must(tfm_score(t, lines, forced, 2, &scored, &err), &err);
    must(tfm_score(plain, lines, forced, 2, &expected, &err), &err);
    CHECK_INT(differences(scored, expected, 2), 0, "scores of given pairs are those of the whole vocabulary");
    ints_release(&pieces);
    arena_release(&arena);
    tfm_translator_free(t);
    tfm_translator_free(plain);
}

/* With repetitions punished and forbidden, so that places in the list are looked for. */
static void test_everything(const struct tfm_model *model, const struct shortlist *everything)
{
    struct tfm_translate_options o = with(8, 2);
    o.no_repeat_ngram_size = 2;
    o.repetition_penalty = 1.3F;
    o.min_length = 3;
    struct tfm_translator *a = open_translator(model, everything, model->kern, &o);
    struct tfm_translator *b = open_translator(model, NULL, model->kern, &o);
    CHECK_INT(differences(translate(a, lines, N_LINES), translate(b, lines, N_LINES), N_LINES), 0,
              "a list of everything changes no bit");
    tfm_translator_free(a);
    tfm_translator_free(b);
}

/* The list beside the model is used unless told otherwise. */
static void test_option(const struct tfm_model *model, const struct shortlist *list)
{
    struct tfm_error err;
    struct str path = { 0 };
    struct tfm_translate_options o = with(64, 1);
    struct tfm_translator *t[3], *with_list = open_translator(model, list, model->kern, &o);
    struct tfm_translator *without = open_translator(model, NULL, model->kern, &o);
    const struct tfm_translation *listed = translate(with_list, lines, N_LINES);
    const struct tfm_translation *plain = translate(without, lines, N_LINES);
    CHECK(differences(listed, plain, N_LINES) > 0, "the list makes a difference");
    must(path_join(&path, model->folder, SHORTLIST_FILE, &err), &err);
    must(tfm_translator_new(&t[0], model, &o, &err), &err);
    CHECK_INT(differences(translate(t[0], lines, N_LINES), plain, N_LINES), 0, "auto: no list, none is used");
    must(shortlist_write(list, path.data, model->source, model->target, &err), &err);
    must(tfm_translator_new(&t[1], model, &o, &err), &err);
    CHECK_INT(differences(translate(t[1], lines, N_LINES), listed, N_LINES), 0, "auto: the model's own is");
    o.shortlist = "off";
    must(tfm_translator_new(&t[2], model, &o, &err), &err);
    CHECK_INT(differences(translate(t[2], lines, N_LINES), plain, N_LINES), 0, "off: it is not");
    for (int i = 0; i < 3; i++)
        tfm_translator_free(t[i]);
    o.shortlist = check_path("nowhere");
    CHECK(tfm_translator_new(&t[0], model, &o, &err) == TFM_EIO && t[0] == NULL,
          "a file that is not there: %s", err.message);
    tfm_translator_free(with_list);
    tfm_translator_free(without);
    str_release(&path);
}

/* Read with the model, it serves all translators that ask for it. */
static void test_with_model(const struct tfm_model *model, const struct shortlist *list)
{
    struct tfm_error err = { 0 };
    struct str path = { 0 };
    struct tfm_model *other;
    struct tfm_open_options open;
    struct tfm_translate_options o = with(64, 1);
    struct tfm_translator *t[2], *with_list = open_translator(model, list, model->kern, &o);
    struct tfm_translator *without = open_translator(model, NULL, model->kern, &o);
    tfm_open_options_init(&open);
    open.shortlist = true;
    must(path_join(&path, model->folder, SHORTLIST_FILE, &err), &err);
    must(shortlist_write(list, path.data, model->source, model->target, &err), &err);
    must(tfm_model_open_with(&other, model->folder, &open, &err), &err);
    unlink(path.data);
    must(tfm_translator_new(&t[0], other, &o, &err), &err);
    o.shortlist = "off";
    must(tfm_translator_new(&t[1], other, &o, &err), &err);
    CHECK_INT(differences(translate(t[0], lines, N_LINES), translate(with_list, lines, N_LINES), N_LINES), 0,
              "a list that was read with the model is used");
    CHECK_INT(differences(translate(t[1], lines, N_LINES), translate(without, lines, N_LINES), N_LINES), 0,
              "  but where it is off");
    tfm_translator_free(t[0]);
    tfm_translator_free(t[1]);
    tfm_translator_free(with_list);
    tfm_translator_free(without);
    tfm_model_free(other);
    must(tfm_model_open_with(&other, model->folder, &open, &err), &err);
    CHECK(other->shortlist == NULL, "where there is none, none is read");
    tfm_model_free(other);

    char *data;
    size_t size;
    must(shortlist_write(list, path.data, model->source, model->target, &err), &err);
    must(gzip_read(path.data, (size_t)1 << 20, &data, &size, NULL, &err), &err);
    data[20]++; /* the fingerprint */
    must(gzip_write(path.data, data, size, 0, NULL, &err), &err);
    CHECK(tfm_model_open_with(&other, model->folder, &open, &err) == TFM_EFORMAT && other == NULL &&
              strstr(err.message, "with other vocabularies") != NULL,
          "one of other vocabularies is refused with the model: %s", err.message);
    must(gzip_write(path.data, data, size / 2, 0, NULL, &err), &err);
    CHECK(tfm_model_open_with(&other, model->folder, &open, &err) == TFM_EFORMAT && other == NULL &&
              strstr(err.message, "ends within a list") != NULL,
          "and a damaged one: %s", err.message);
    CHECK_INT(tfm_model_open(&other, model->folder, &err), TFM_OK, "but where it is not asked for");
    tfm_model_free(other);
    unlink(path.data);
    mem_free(data);
    str_release(&path);
}

int main(void)
{
    static const struct tiny_options options = {
        .pre_norm = true, .tie = TFM_TIE_ALL, .eos_bias = 2, .seed = 5
    };
    struct tfm_model *model = tiny_open("tiny", &options);
    struct shortlist *list = make_list(model->source, 0.03), *everything = make_list(model->source, 1);
    for (int i = 0; i < N_LINES; i++) {
        if (i != 5)
            tiny_sentence(&line_texts[i], rng_key(77, (uint64_t)i, 0, 0), 1 + i % 7);
        lines[i] = line_texts[i].data != NULL ? line_texts[i].data : "";
    }
    test_file(model->source, list);
    test_select(list);
    test_laws(model, list);
    test_pieces(model, list);
    test_everything(model, everything);
    test_option(model, list);
    test_with_model(model, list);
    for (int i = 0; i < N_LINES; i++)
        str_release(&line_texts[i]);
    shortlist_free(list);
    shortlist_free(everything);
    tfm_model_free(model);
    return check_done();
}
