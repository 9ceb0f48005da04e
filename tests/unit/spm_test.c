/*
 * spm_test.c: vocabularies trained on text that the test makes (and, where there is shared data, on real
 * text): ids, there and back, the same bytes run after run, sizes that do not fit, odd lines, files that are
 * no models, many threads, and silence on stderr.
 */
#include "text/spm.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/file.h"
#include "base/line.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"

#define SPACE "\xe2\x96\x81"
#define REPLACED "\xef\xbf\xbd"

enum { N_LINES = 600 };

static struct tfm_error err;
static char *lines[N_LINES];

/* Words of two to four syllables, frequent ones more often. */
static void make_lines(void)
{
    static const char *const syllables[] = { "ka", "lo", "mi", "ter", "sun", "ö", "ble", "na", "vier", "pu" };
    for (uint64_t i = 0; i < N_LINES; i++) {
        struct str line = { 0 };
        int words = 3 + (int)rng_below(rng_key(1, i, 0, 0), 8);
        for (int w = 0; w < words; w++) {
            uint64_t u = rng_below(rng_key(1, i, (uint64_t)w, 1), 400);
            uint64_t word = u * u;
            for (uint64_t s = 0; s < 2 + word % 3; s++)
                str_printf(&line, &err, "%s", syllables[rng_below(rng_key(2, word, s, 0), 10)]);
            str_add(&line, w + 1 < words ? " " : ".", 1, &err);
        }
        lines[i] = line.data;
    }
}

static const char *write_lines(const char *name, int first, int end)
{
    struct str text = { 0 };
    for (int i = first; i < end; i++)
        str_printf(&text, &err, "%s\n", lines[i]);
    const char *path = check_path("%s", name);
    CHECK_INT(file_write(path, text.data, text.len, &err), TFM_OK, "writes %s", name);
    str_release(&text);
    return path;
}

static const char *write_text(const char *name, const char *text, size_t len)
{
    const char *path = check_path("%s", name);
    file_write(path, text, len, &err);
    return path;
}

static enum tfm_status train(const char *file, const char *model, const char *type, int size)
{
    struct spm_train_options options = {
        .files = &file, .n_files = 1, .model_path = model, .vocab_size = size, .type = type
    };
    err.message[0] = '\0';
    return spm_train(&options, &err);
}

/* Number of lines that do not come back as they were, or have a piece that is no text. */
static int count_changed(const struct spm *spm, char *const *text, int n)
{
    struct ints ids = { 0 };
    struct str back = { 0 };
    int changed = 0;
    for (int i = 0; i < n; i++) {
        ids.n = 0;
        str_clear(&back);
        bool same = spm_encode(spm, text[i], strlen(text[i]), &ids, &err) == TFM_OK && ids.n > 0 &&
                    spm_decode(spm, ids.data, ids.n, &back, &err) == TFM_OK &&
                    strcmp(back.data, text[i]) == 0;
        for (size_t k = 0; k < ids.n; k++)
            same = same && ids.data[k] > 1 && ids.data[k] < spm_size(spm);
        changed += !same;
    }
    ints_release(&ids);
    str_release(&back);
    return changed;
}

static void check_type(const char *text, const char *type)
{
    char model[32], again[32];
    snprintf(model, sizeof(model), "%s.spm", type);
    snprintf(again, sizeof(again), "%s-again.spm", type);
    CHECK_INT(train(text, check_path("%s", model), type, 120), TFM_OK, "%s: trains", type);
    CHECK_INT(train(text, check_path("%s", again), type, 120), TFM_OK, "%s: trains again", type);
    CHECK(check_same_files(check_path("%s", model), check_path("%s", again)),
          "%s: the same bytes run after run", type);

    struct spm *spm;
    if (!CHECK(spm_open(&spm, check_path("%s", model), &err) == TFM_OK, "%s: opens", type))
        return;
    CHECK_INT(spm_size(spm), 120, "%s: has the size asked for", type);
    CHECK(spm_eos(spm) == 0 && spm_unk(spm) == 1, "%s: </s> is 0, <unk> is 1", type);
    CHECK(strcmp(spm_piece(spm, 0), "</s>") == 0 && strcmp(spm_piece(spm, 1), "<unk>") == 0,
          "%s: and named so", type);
    CHECK_INT(count_changed(spm, lines, N_LINES), 0, "%s: lines come back", type);
    int starts = 0, expected = 0;
    for (int i = 0; i < spm_size(spm); i++) {
        starts += spm_is_word_start(spm, i);
        expected += strncmp(spm_piece(spm, i), SPACE, 3) == 0;
    }
    CHECK(starts == expected && starts > 10, "%s: %d pieces start a word", type, starts);
    spm_free(spm);

    CHECK_INT(train(text, check_path("%s", again), type, 50000), TFM_OK,
              "%s: a size that the text cannot fill", type);
    CHECK_INT(spm_open(&spm, check_path("%s", again), &err), TFM_OK, "%s: gives a model", type);
    CHECK(spm_size(spm) > 120 && spm_size(spm) < 50000, "%s: of %d pieces", type, spm_size(spm));
    CHECK_INT(count_changed(spm, lines, N_LINES), 0, "%s: and lines come back", type);
    spm_free(spm);
}

/* A symbol of a vocabulary's own, trained with it or added to it, is a piece wherever it is written out. */
static void check_symbol(const char *text, const char *type)
{
    struct spm_train_options options = { .files = &text,
                                         .n_files = 1,
                                         .model_path = check_path("symbol.spm"),
                                         .vocab_size = 120,
                                         .type = type,
                                         .symbol = "<gap>" };
    struct str bytes = { 0 };
    char *data = NULL;
    size_t size;
    CHECK(spm_train(&options, &err) == TFM_OK, "%s: trains with a symbol", type);
    CHECK(train(text, check_path("plain.spm"), type, 120) == TFM_OK &&
              file_read(check_path("plain.spm"), &data, &size, &err) == TFM_OK &&
              str_add(&bytes, data, size, &err) == TFM_OK &&
              spm_add_symbol(&bytes, "<gap>", &err) == TFM_OK &&
              file_write(check_path("added.spm"), bytes.data, bytes.len, &err) == TFM_OK,
          "%s: adds a symbol", type);
    mem_free(data);
    str_release(&bytes);
    static const char *const files[] = { "symbol.spm", "added.spm" };
    for (int i = 0; i < 2; i++) {
        struct spm *spm;
        struct ints ids = { 0 };
        struct str back = { 0 };
        if (!CHECK(spm_open(&spm, check_path("%s", files[i]), &err) == TFM_OK, "%s: opens %s", type,
                   files[i]))
            return;
        int symbol = spm_piece_id(spm, "<gap>", 5), n = 0;
        CHECK_INT(symbol, i == 0 ? 2 : 120, "%s: the symbol's id in %s", type, files[i]);
        CHECK_INT(spm_size(spm), 120 + i, "%s: one of the pieces, or one more", type);
        CHECK_INT(count_changed(spm, lines, N_LINES), 0, "%s: lines come back", type);
        spm_encode(spm, "kalo <gap> mi<gap>.", 19, &ids, &err);
        for (size_t k = 0; k < ids.n; k++)
            n += ids.data[k] == symbol;
        CHECK_INT(n, 2, "%s: it is found between words and in one", type);
        spm_decode(spm, ids.data, ids.n, &back, &err);
        CHECK_STR(back.data, "kalo <gap> mi<gap>.", "and comes back");
        ints_release(&ids);
        str_release(&back);
        spm_free(spm);
    }
}

static void check_encode(const struct spm *spm)
{
    struct ints a = { 0 }, b = { 0 };
    struct str text = { 0 };
    CHECK(spm_encode(spm, "", 0, &a, &err) == TFM_OK && spm_encode(spm, NULL, 0, &a, &err) == TFM_OK &&
              a.n == 0,
          "an empty line has no pieces");
    CHECK(spm_encode(spm, " \t \xc2\xa0", 5, &a, &err) == TFM_OK && a.n == 0, "nor has a blank one");
    spm_encode(spm, "kalo\xff mi\xe2\x82 \xc0\x80na", 15, &a, &err);
    spm_encode(spm, "kalo" REPLACED " mi" REPLACED " " REPLACED REPLACED "na", 22, &b, &err);
    CHECK(a.n > 0 && a.n == b.n && memcmp(a.data, b.data, a.n * sizeof(int)) == 0,
          "malformed UTF-8 is U+FFFD");
    a.n = b.n = 0;
    spm_encode(spm, "\0kalo\0mi", 8, &a, &err);
    spm_encode(spm, "kalo mi", 7, &b, &err);
    CHECK(a.n > 0 && a.n == b.n && memcmp(a.data, b.data, a.n * sizeof(int)) == 0, "a NUL byte is a space");

    size_t n = a.n;
    CHECK(spm_encode(spm, "kalo mi", 7, &a, &err) == TFM_OK && a.n == 2 * n &&
              memcmp(a.data + n, b.data, n * sizeof(int)) == 0,
          "ids are appended");
    a.n = 0;
    spm_encode(spm, "kalo \xe6\x97\xa5\xe6\x9c\xac mi", 14, &a, &err);
    n = 0;
    for (size_t i = 0; i < a.n; i++)
        n += a.data[i] == spm_unk(spm);
    CHECK_INT(n, 1, "unknown characters in a row are one <unk>");
    str_add(&text, "> ", 2, &err);
    CHECK(spm_decode(spm, a.data, a.n, &text, &err) == TFM_OK, "<unk> can be decoded");
    CHECK(strstr(text.data, "\xe2\x81\x87") != NULL && strncmp(text.data, "> kalo ", 7) == 0,
          "as U+2047, appended");

    str_clear(&text);
    b.data[b.n - 1] = spm_eos(spm);
    CHECK(spm_decode(spm, b.data + b.n - 1, 1, &text, &err) == TFM_OK && text.len == 0, "</s> has no text");
    CHECK(spm_decode(spm, NULL, 0, &text, &err) == TFM_OK && text.len == 0, "nor has no piece at all");

    a.n = 0;
    enum { LONG = 1 << 20 };
    char *line = mem_alloc(LONG, &err);
    for (int i = 0; i < LONG; i++)
        line[i] = "kalomiterna"[rng_below((uint64_t)i, 11)];
    CHECK(spm_encode(spm, line, LONG, &a, &err) == TFM_OK && a.n > LONG / 20, "a word of 1 MiB");
    mem_free(line);
    /* A line that is encoded in stretches has the pieces of its words. */
    static const char words[] = "kalo mi  terna kalomi ";
    enum { TIMES = 20000 };
    str_clear(&text);
    for (int i = 0; i < TIMES; i++)
        str_add(&text, words, strlen(words), &err);
    a.n = b.n = 0;
    spm_encode(spm, words, strlen(words), &b, &err);
    CHECK(spm_encode(spm, text.data, text.len, &a, &err) == TFM_OK && a.n == TIMES * b.n, "a line of 440 kB");
    n = 0;
    for (size_t i = 0; i < a.n; i++)
        n += a.data[i] != b.data[i % b.n];
    CHECK_INT(n, 0, "  its pieces are those of its words");
    CHECK_INT(spm_encode(spm, "", ((size_t)64 << 20) + 1, &a, &err), TFM_EINVAL, "a line that is too long");

    mem_fail_after(0);
    enum tfm_status status = spm_encode(spm, "kalo\xff", 5, &b, &err);
    mem_fail_after(-1);
    CHECK_INT(status, TFM_ENOMEM, "no memory to repair a line");
    ints_release(&a);
    ints_release(&b);
    str_release(&text);
}

struct work {
    const struct spm *spm;
    int changed;
};

static void *encode_all(void *arg)
{
    struct work *work = arg;
    work->changed = count_changed(work->spm, lines, N_LINES);
    return NULL;
}

static void check_threads(const struct spm *spm)
{
    enum { N = 4 };
    pthread_t threads[N];
    struct work works[N];
    int changed = 0;
    for (int i = 0; i < N; i++) {
        works[i] = (struct work){ spm, -1 };
        pthread_create(&threads[i], NULL, encode_all, &works[i]);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        changed += works[i].changed;
    }
    CHECK_INT(changed, 0, "%d threads share a model", N);
}

static void check_open_refuses(const char *path, enum tfm_status expected, const char *part, const char *name)
{
    struct spm *spm;
    err.message[0] = '\0';
    CHECK_INT(spm_open(&spm, path, &err), expected, "refuses %s", name);
    CHECK(spm == NULL && strstr(err.message, path) != NULL && strstr(err.message, part) != NULL,
          "and says so: %s", err.message);
}

/* Pieces of all types behind those of a model: field 1 of ModelProto, in which 1 is the text, 2 the score,
 * 3 the type. */
static void check_types(void)
{
    static const char added[] = "\x0a\x04\x0a\x02zq"                 /* a usual one with the score 0 */
                                "\x0a\x09\x15\0\0\x20\xc0\x0a\x02zw" /* -2.5, and the text comes last */
                                "\x0a\x0b\x0a\x02zx\x15\0\0\x80\x3f\x18\x03"  /* control, 1 */
                                "\x0a\x0b\x0a\x02zy\x15\0\0\0\x40\x18\x04"    /* defined by a user, 2 */
                                "\x0a\x0b\x0a\x02zz\x15\0\0\x40\x40\x18\x05"; /* unused, 3 */
    static const struct {
        const char *text;
        float score;
        bool is_text;
    } expected[] = {
        { "zq", 0, true }, { "zw", -2.5f, true }, { "zx", 1, false }, { "zy", 2, true }, { "zz", 3, false }
    };
    struct str model = { 0 };
    struct spm *before, *spm;
    char *data;
    size_t size;
    file_read(check_path("unigram.spm"), &data, &size, &err);
    str_add(&model, data, size, &err);
    str_add(&model, added, sizeof(added) - 1, &err);
    mem_free(data);
    if (!CHECK(spm_open(&before, check_path("unigram.spm"), &err) == TFM_OK &&
                   spm_open(&spm, write_text("types.spm", model.data, model.len), &err) == TFM_OK,
               "pieces of all types: %s", err.message))
        return;
    int n = spm_size(before);
    CHECK_INT(spm_size(spm), n + 5, "are counted");
    for (int i = 0; i < 5; i++)
        CHECK(strcmp(spm_piece(spm, n + i), expected[i].text) == 0 &&
                  spm_score(spm, n + i) == expected[i].score &&
                  spm_is_text(spm, n + i) == expected[i].is_text &&
                  spm_piece_id(spm, expected[i].text, 2) == (expected[i].is_text ? n + i : -1),
              "  %s with its score and type", expected[i].text);
    bool same = true;
    for (int id = 0; id < n; id++)
        same &= strcmp(spm_piece(before, id), spm_piece(spm, id)) == 0 &&
                spm_score(before, id) == spm_score(spm, id);
    CHECK(same && !spm_is_text(spm, spm_eos(spm)) && !spm_is_text(spm, spm_unk(spm)),
          "  and the others as before");
    spm_free(before);
    spm_free(spm);
    str_release(&model);
}

static void check_no_models(void)
{
    char *data;
    size_t size;
    check_open_refuses(check_path("missing.spm"), TFM_EIO, "No such file", "a missing file");
    check_open_refuses(check_tmp(), TFM_EIO, "directory", "a folder");
    check_open_refuses(write_text("text.spm", "a plain\ntext\n", 13), TFM_EFORMAT, "no SentencePiece",
                       "a text");
    check_open_refuses(write_text("empty.spm", "", 0), TFM_EFORMAT, "no SentencePiece", "an empty file");
    CHECK_INT(file_read(check_path("unigram.spm"), &data, &size, &err), TFM_OK, "reads a model");
    check_open_refuses(write_text("cut.spm", data, size / 2), TFM_EFORMAT, "no SentencePiece",
                       "half a model");
    mem_free(data);
}

static void check_train_refuses(const char *file, const char *type, int size, enum tfm_status expected,
                                const char *part, const char *name)
{
    CHECK_INT(train(file, check_path("none.spm"), type, size), expected, "training refuses %s", name);
    CHECK(strstr(err.message, part) != NULL && !file_exists(check_path("none.spm")), "and says so: %s",
          err.message);
}

static void check_no_training(const char *text)
{
    check_train_refuses(text, "unigram", 12, TFM_EINVAL, "at least 2", "fewer pieces than characters");
    check_train_refuses(text, "bpe", 12, TFM_EINVAL, "at least 2", "fewer pieces than characters");
    check_train_refuses(text, "unigram", 2, TFM_EINVAL, "2 pieces", "two pieces");
    check_train_refuses(text, "word", 100, TFM_EINVAL, "\"word\"", "another type");
    check_train_refuses(check_path("missing"), "bpe", 100, TFM_EIO, "No such file", "a missing file");
    check_train_refuses(write_text("empty", "", 0), "unigram", 100, TFM_EFORMAT, "no text",
                        "an empty file");
    static const char blank[] =
        " \n\t\n\x01\x02\n\0\n" SPACE "\n" REPLACED "\n\xff\n\xe2\x80\x8b\n\xe2\x96\x85 x\n";
    check_train_refuses(write_text("blank", blank, sizeof(blank) - 1), "unigram", 100, TFM_EFORMAT, "no text",
                        "lines without text");
    CHECK_INT(train(text, check_path("missing/none.spm"), "bpe", 100), TFM_EIO, "a folder that is not there");
}

static void check_small_texts(void)
{
    static const char *const texts[] = { "a",        "a\0b",       "a a",
                                         "ab ab ab", "</s> <unk>", "\xf0\x9f\x98\x80",
                                         "x\ny\nx" };
    static const size_t sizes[] = { 1, 3, 3, 8, 10, 4, 5 };
    int failed = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const char *file = write_text("small", texts[i], sizes[i]);
        for (int bpe = 0; bpe < 2; bpe++) {
            struct spm *spm = NULL;
            failed += train(file, check_path("small.spm"), bpe ? "bpe" : "unigram", 8000) != TFM_OK ||
                      spm_open(&spm, check_path("small.spm"), &err) != TFM_OK || spm_size(spm) < 3;
            spm_free(spm);
        }
    }
    CHECK_INT(failed, 0, "very small texts");
}

/* Two files and one with the lines of both, with other line ends and a byte order mark, give the same
 * pieces. */
static void check_two_files(void)
{
    const char *files[] = { write_lines("first", 0, N_LINES / 2),
                            write_lines("second", N_LINES / 2, N_LINES) };
    struct spm_train_options options = { .files = files,
                                         .n_files = 2,
                                         .model_path = check_path("two.spm"),
                                         .vocab_size = 120,
                                         .type = "unigram" };
    CHECK_INT(spm_train(&options, &err), TFM_OK, "two files");
    CHECK(check_same_files(check_path("two.spm"), check_path("unigram.spm")), "are as one");

    struct str crlf = { 0 };
    str_add(&crlf, "\xef\xbb\xbf", 3, &err);
    for (int i = 0; i < N_LINES; i++)
        str_printf(&crlf, &err, "%s\r\n\r\n", lines[i]);
    write_text("crlf", crlf.data, crlf.len);
    str_release(&crlf);
    CHECK_INT(train(check_path("crlf"), check_path("crlf.spm"), "unigram", 120), TFM_OK,
              "a file from Windows");
    CHECK(check_same_files(check_path("crlf.spm"), check_path("unigram.spm")), "is as any other");
}

/* The n-th allocation fails: an error and no more. */
static void check_memory(void)
{
    char file[700];
    snprintf(file, sizeof(file), "%s", write_text("little", "kalo miter\nna\xff\n", 15));
    int failures = 0;
    bool clean = true;
    for (int n = 0; n < 60; n++) {
        mem_fail_after(n);
        enum tfm_status status = train(file, check_path("none.spm"), "unigram", 100);
        mem_fail_after(-1);
        if (status == TFM_OK)
            break;
        failures++;
        clean = clean && status == TFM_ENOMEM;
    }
    CHECK(failures > 3 && clean, "training: every allocation may fail (%d did)", failures);
    clean = true;
    for (int n = 0; n < 60; n++) {
        struct spm *spm;
        mem_fail_after(n);
        enum tfm_status status = spm_open(&spm, check_path("unigram.spm"), &err);
        mem_fail_after(-1);
        clean = clean && (status == TFM_OK) == (spm != NULL) && (status == TFM_OK || status == TFM_ENOMEM);
        spm_free(spm);
        if (status == TFM_OK)
            break;
    }
    CHECK(clean, "opening: every allocation may fail");
}

/* Real text: the first 5,000 lines of both languages, one vocabulary. */
static void check_real(const char *shared)
{
    enum { N = 5000 };
    static const char *const languages[] = { "en", "de" };
    static char *text[2 * N];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        char path[1000];
        snprintf(path, sizeof(path), "%s/data/multi30k/train.%s.gz", shared, languages[i]);
        struct line_reader *reader;
        struct str line = { 0 };
        bool more = true;
        if (line_open(&reader, path, &err) != TFM_OK) {
            SKIP("%s", err.message);
            return;
        }
        for (int k = 0; k < N && line_read(reader, &line, &more, &err) == TFM_OK && more; k++)
            text[n++] = mem_strdup(line.data, &err);
        line_free(reader);
        str_release(&line);
    }
    struct str all = { 0 };
    for (int i = 0; i < n; i++)
        str_printf(&all, &err, "%s\n", text[i]);
    char file[700];
    snprintf(file, sizeof(file), "%s", write_text("real", all.data, all.len));
    str_release(&all);
    for (int bpe = 0; bpe < 2; bpe++) {
        const char *type = bpe ? "bpe" : "unigram";
        struct spm *spm;
        CHECK_INT(train(file, check_path("real.spm"), type, 4000), TFM_OK, "real text: %s", type);
        if (!CHECK(spm_open(&spm, check_path("real.spm"), &err) == TFM_OK, "opens"))
            continue;
        CHECK_INT(spm_size(spm), 4000, "has its size");
        /* Doubled and trailing spaces, ellipses and the like are not what they were after normalisation. */
        int changed = count_changed(spm, text, n);
        CHECK(changed < n / 100, "%d of %d lines are normalised", changed, n);
        spm_free(spm);
    }
    for (int i = 0; i < n; i++)
        mem_free(text[i]);
}

/* A vocabulary of Marian's kind that others have trained. */
static void check_foreign(const char *shared)
{
    char path[1000];
    struct spm *spm;
    snprintf(path, sizeof(path), "%s/models/firefox-en-pt/vocab.enpt.spm", shared);
    if (!file_exists(path)) {
        SKIP("needs %s", path);
        return;
    }
    CHECK_INT(spm_open(&spm, path, &err), TFM_OK, "a vocabulary of Firefox");
    CHECK(spm_eos(spm) == 0 && spm_unk(spm) == 1 && spm_size(spm) == 32000, "has Marian's ids");
    spm_free(spm);
}

int main(void)
{
    char noise[16];
    int saved = dup(STDERR_FILENO),
        log = open(check_path("stderr"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(log, STDERR_FILENO);

    make_lines();
    char text[700];
    snprintf(text, sizeof(text), "%s", write_lines("text", 0, N_LINES));
    check_type(text, "unigram");
    check_type(text, "bpe");
    check_symbol(text, "unigram");
    check_symbol(text, "bpe");
    struct spm *spm;
    if (CHECK(spm_open(&spm, check_path("unigram.spm"), &err) == TFM_OK, "opens")) {
        check_encode(spm);
        check_threads(spm);
        spm_free(spm);
    }
    check_types();
    check_no_models();
    check_no_training(text);
    check_small_texts();
    check_two_files();
    check_memory();
    const char *shared = getenv("TFM_SHARED");
    if (shared != NULL) {
        check_real(shared);
        check_foreign(shared);
    } else {
        SKIP("real text needs TFM_SHARED");
    }

    dup2(saved, STDERR_FILENO);
    CHECK_INT(pread(log, noise, sizeof(noise), 0), 0, "nothing was printed on stderr");
    close(saved);
    close(log);
    for (int i = 0; i < N_LINES; i++)
        mem_free(lines[i]);
    return check_done();
}
