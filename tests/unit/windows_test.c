/*
 * windows_test.c: parallel texts on disk (two files, tab-separated ones with columns, gzip, commands, with all
 * their mistakes), read in blocks; and passes through them: each pair as often as its weight says, whatever
 * the sizes, in windows of about equal size, the same with any number of threads.
 */
#include "train/windows.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/gzip.h"
#include "base/mem.h"
#include "toy_vocab.h"
#include "train/train_options.h"

static struct tfm_error err;

static const char *write_text(const char *name, const char *text, size_t len)
{
    const char *path = check_path("%s", name);
    toy_must(file_write(path, text, len, &err), &err);
    return path;
}

#define WRITE(name, text) write_text(name, text, sizeof(text) - 1)

/* All pairs of a text, by way of blocks of two lines. */
static enum tfm_status read_all(struct tfm_corpus corpus, struct columns columns, struct text_block *block)
{
    struct bitext text;
    struct spool spool = { .folder = check_tmp(), .name = "spool" };
    pairs_clear(block);
    TRY(bitext_open(&text, &corpus, &columns, 2, &spool, NULL, &err));
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < text.n_blocks && status == TFM_OK; i++)
        status = bitext_read(block, &text, i, NULL, 0, &err);
    CHECK(status != TFM_OK || block->n == text.n_pairs, "as many pairs as were counted");
    bitext_release(&text);
    return status;
}

#define READ(block, ...) read_all((struct tfm_corpus){ __VA_ARGS__ }, (struct columns){ 0, 0 }, block)

static void test_two_files(struct text_block *block)
{
    const char *a = WRITE("a", "\xef\xbb\xbfone\ntwo\r\n\nfour"), *b = WRITE("b", "eins\nzwei\ndrei\nvier\n");
    CHECK_INT(READ(block, .source = a, .target = b), TFM_OK, "two files");
    CHECK_INT((long long)block->n, 4, "the last line without a newline counts");
    CHECK_STR(pairs_source(block, 0), "one", "a byte order mark goes");
    CHECK_STR(pairs_source(block, 1), "two", "a CR goes");
    CHECK_STR(pairs_source(block, 2), "", "an empty line stays");
    CHECK_STR(pairs_target(block, 3), "vier", "the last target");
    CHECK_INT((long long)block->place[3], 3, "its place");
    const char *mark = WRITE("mark", "\xef\xbb\xbf"), *none = WRITE("none", "");
    CHECK_INT(READ(block, .source = mark, .target = none), TFM_OK, "a byte order mark is no line");
    CHECK_INT((long long)block->n, 0, "and so there is no pair");

    CHECK_INT(READ(block, .source = a, .target = WRITE("c", "1\n2\n")), TFM_EFORMAT,
              "files of unequal length");
    CHECK(strstr(err.message, "/c has 2 lines") && strstr(err.message, "/a has 4"), "both counts: %s",
          err.message);
    CHECK_INT(READ(block, .source = none, .target = b), TFM_EFORMAT, "an empty file against four lines");
    CHECK(strstr(err.message, "/none has 0 lines") && strstr(err.message, "/b has 4"), "both counts: %s",
          err.message);
    CHECK_INT(READ(block, .source = a, .target = check_path("nowhere")), TFM_EIO, "a missing file");
    CHECK(strstr(err.message, "cannot open") && strstr(err.message, "/nowhere"), "its name: %s", err.message);
}

static void test_tsv(struct text_block *block)
{
    CHECK_INT(READ(block, .tsv = WRITE("t", "one\teins\n\tzwei\nth\0ree\tdrei")), TFM_OK,
              "tab-separated pairs");
    CHECK_INT((long long)block->n, 3, "all pairs");
    CHECK_STR(pairs_source(block, 1), "", "an empty side");
    CHECK_STR(pairs_source(block, 2), "th ree", "a NUL is a space");
    CHECK_INT(READ(block, .tsv = WRITE("u", "a\tb\nc\n")), TFM_EFORMAT, "no tab");
    CHECK(strstr(err.message, "/u, line 2:") != NULL, "file and line: %s", err.message);
    CHECK_INT(READ(block, .tsv = WRITE("v", "a\tb\tc\n")), TFM_EFORMAT, "two tabs");
    CHECK(strstr(err.message, "/v, line 1:") != NULL, "file and line: %s", err.message);

    struct tfm_corpus wide = { .tsv = WRITE("w", "0.9\teins\tx\tone\n0.8\tzwei\ty\ttwo\r\n0.7\tdrei\tz\n") };
    CHECK_INT(read_all(wide, (struct columns){ 2, 1 }, block), TFM_OK, "columns 2 and 1");
    CHECK_STR(pairs_source(block, 2), "drei", "the source");
    CHECK_STR(pairs_target(block, 2), "0.7", "the target");
    CHECK_INT(read_all(wide, (struct columns){ 4, 2 }, block), TFM_EFORMAT, "too few columns");
    CHECK(strstr(err.message, "/w, line 3: found 3 columns, expected at least 4") != NULL, "all is told: %s",
          err.message);
    wide.tsv = WRITE("x", "a\tone\r\nb\ttwo");
    CHECK_INT(read_all(wide, (struct columns){ 2, 2 }, block), TFM_OK, "one column twice");
    CHECK_STR(pairs_target(block, 0), "one", "a CR is no part of the last column");
}

static void test_text(struct text_block *block)
{
    const char *a = WRITE("text", "one\ttwo\n\nthree");
    CHECK_INT(READ(block, .source = a), TFM_OK, "a text alone");
    CHECK_INT((long long)block->n, 3, "all lines");
    CHECK_STR(pairs_source(block, 0), "one\ttwo", "a tab is a part of a line");
    CHECK_STR(pairs_target(block, 0), "", "there is no target");
    CHECK_STR(pairs_source(block, 2), "three", "the last line without a newline counts");
    struct tfm_corpus wide = { .tsv = WRITE("y", "0.9\teins\tx\n0.8\tzwei\n") };
    CHECK_INT(read_all(wide, (struct columns){ 2, 0 }, block), TFM_OK, "a column alone");
    CHECK(block->n == 2 && strcmp(pairs_source(block, 1), "zwei") == 0 && *pairs_target(block, 1) == '\0',
          "its lines");
    CHECK_INT(read_all(wide, (struct columns){ 3, 0 }, block), TFM_EFORMAT, "too few columns");
    CHECK(strstr(err.message, "line 2: found 2 columns, expected at least 3 (--tsv-fields 3)") != NULL,
          "all is told: %s", err.message);
}

static void test_gzip(struct text_block *block)
{
    const char *path = check_path("pairs.gz"), text[] = "one\teins\ntwo\tzwei\nthree\tdrei\n";
    toy_must(gzip_write(path, text, sizeof(text) - 1, 0, NULL, &err), &err);
    CHECK_INT(READ(block, .tsv = path), TFM_OK, "a gzip file");
    CHECK(block->n == 3 && strcmp(pairs_target(block, 2), "drei") == 0, "its pairs");
    char *data;
    size_t size;
    toy_must(file_read(path, &data, &size, &err), &err);
    toy_must(file_write(path, data, size - 4, &err), &err);
    CHECK_INT(READ(block, .tsv = path), TFM_EFORMAT, "without its end");
    CHECK(strstr(err.message, "pairs.gz: line 4: the gzip data ends early") != NULL, "file and line: %s",
          err.message);
    mem_free(data);
}

static void test_commands(struct text_block *block)
{
    char seq[700], fails[] = "printf 'a\\tb\\n'; exit 3 |", killed[] = "kill -9 $$ |";
    snprintf(seq, sizeof(seq), "cat %s %s |", WRITE("one", "a\n"), WRITE("two", "b\n"));
    CHECK_INT(READ(block, .source = seq, .target = "printf '1\\n2' |"), TFM_OK, "two commands");
    CHECK(block->n == 2 && strcmp(pairs_source(block, 1), "b") == 0 &&
              strcmp(pairs_target(block, 1), "2") == 0,
          "their lines");
    CHECK_INT(READ(block, .tsv = fails), TFM_EIO, "a command that fails");
    CHECK(strstr(err.message, "exit 3 |\" failed with exit status 3") != NULL, "its status: %s", err.message);
    CHECK_INT(READ(block, .tsv = killed), TFM_EIO, "a command that is killed");
    CHECK(strstr(err.message, "ended by signal 9") != NULL, "its signal: %s", err.message);
    CHECK_INT(READ(block, .tsv = "exec no-such-program 2>/dev/null |"), TFM_EIO,
              "a program that is not there");
    CHECK(strstr(err.message, "exit status 127") != NULL, "the shell's status: %s", err.message);
    CHECK(access(check_path("spool.tsv"), F_OK) != 0, "nothing is left of them");
}

static void test_change(void)
{
    struct tfm_corpus corpus = { .tsv = WRITE("changing", "a\tb\nc\td\ne\tf\n") };
    struct columns columns = { 0, 0 };
    struct spool spool = { .folder = check_tmp(), .name = "spool" };
    struct text_block block = { 0 };
    struct bitext text;
    toy_must(bitext_open(&text, &corpus, &columns, 2, &spool, NULL, &err), &err);
    int fd = open(corpus.tsv, O_WRONLY);
    CHECK(pwrite(fd, "x", 1, 3) == 1, "a line end is written over");
    CHECK_INT(bitext_read(&block, &text, 0, NULL, 0, &err), TFM_EIO, "a change is noticed");
    CHECK(strstr(err.message, "changing was changed") != NULL, "and told: %s", err.message);
    CHECK_INT(bitext_read(&block, &text, 1, NULL, 0, &err), TFM_OK, "the other block is as it was");
    CHECK(ftruncate(fd, 10) == 0, "the file is cut");
    CHECK_INT(bitext_read(&block, &text, 1, NULL, 0, &err), TFM_EIO, "that is noticed, too");
    close(fd);
    bitext_release(&text);
    pairs_release(&block);
}

/* The first line of a text alone that is no UTF-8. */
static uint64_t malformed_line(const char *text, size_t size)
{
    struct tfm_corpus corpus = { .source = write_text("utf8", text, size) };
    struct columns columns = { 0, 0 };
    struct spool spool = { .folder = check_tmp(), .name = "spool" };
    struct bitext bitext;
    toy_must(bitext_open(&bitext, &corpus, &columns, 2, &spool, NULL, &err), &err);
    uint64_t line = bitext.not_utf8[0];
    bitext_release(&bitext);
    return line;
}

static void test_utf8(void)
{
    static char text[(1 << 20) + 100]; /* the file is read in parts of a MiB */
    CHECK_INT((int)malformed_line("\xc3\xa4\nb\n", 5), 0, "a text in UTF-8");
    CHECK_INT((int)malformed_line("a\n\xe4\nb\xff\n", 8), 2, "the first malformed line");
    CHECK_INT((int)malformed_line("a\nb\n\xc3", 5), 3, "the last one, without a line end");
    CHECK_INT((int)malformed_line("\xc3\n\xa4\n", 4), 1, "no character goes on in the next line");
    for (int shift = 0; shift < 3; shift++) {
        size_t at = (1 << 20) - 2 + (size_t)shift;
        memset(text, 'x', sizeof(text));
        text[10] = '\n';
        memcpy(text + at, "\xe2\x96\x81", 3);
        CHECK_INT((int)malformed_line(text, sizeof(text)), 0, "a character %d bytes before a part's end",
                  2 - shift);
        text[at + 1] = 'x';
        CHECK_INT((int)malformed_line(text, sizeof(text)), 2, "what is none there");
    }
}

static uint64_t fingerprint_of(const char *text)
{
    struct tfm_corpus corpus = { .tsv = write_text("finger", text, strlen(text)) };
    struct columns columns = { 0, 0 };
    struct spool spool = { .folder = check_tmp(), .name = "spool" };
    struct bitext bitext;
    toy_must(bitext_open(&bitext, &corpus, &columns, 2, &spool, NULL, &err), &err);
    uint64_t fingerprint = bitext.fingerprint;
    bitext_release(&bitext);
    return fingerprint;
}

static void test_fingerprint(void)
{
    char text[200];
    memset(text, 'x', sizeof(text));
    text[50] = '\t';
    text[199] = '\0';
    uint64_t whole = fingerprint_of(text);
    int n_same = 0;
    for (int i = 0; i < 199; i++) {
        if (i == 50)
            continue;
        text[i] = 'y';
        n_same += fingerprint_of(text) == whole;
        text[i] = 'x';
    }
    CHECK_INT(n_same, 0, "every byte counts");
    CHECK(fingerprint_of(text) == whole, "the same text has the same fingerprint");
}

/* ---- passes ---- */

enum {
    WINDOW = 640, /* blocks of 10 */
    MOST = 4000
};

static const char *numbered_tsv(const char *name, int n)
{
    struct str text = { 0 };
    toy_must(str_add(&text, "", 0, &err), &err);
    for (int i = 0; i < n; i++) {
        struct str line = { 0 };
        toy_line(&line, i, 1);
        toy_must(str_printf(&text, &err, "%s\t%s\n", line.data, line.data), &err);
        str_release(&line);
    }
    const char *path = write_text(name, text.data, text.len);
    str_release(&text);
    return path;
}

struct pass {
    int seen[MOST * 4]; /* by place */
    int n, longest_window, shortest_window;
    uint64_t order; /* what was seen, and when */
    bool in_step;   /* windows lie end to end */
};

static void run_pass(struct pass *pass, const struct tfm_corpus *corpora, int n_corpora, int epoch,
                     int threads, const struct spm *spm)
{
    struct tfm_train_options o;
    struct windows w;
    struct corpus corpus;
    struct pool *pool;
    tfm_train_options_init(&o);
    o.corpora = corpora;
    o.n_corpora = n_corpora;
    o.shuffle_window = WINDOW;
    *pass = (struct pass){ .shortest_window = INT32_MAX, .in_step = true };
    toy_must(pool_new(&pool, threads, &err), &err);
    toy_must(windows_open(&w, &o, check_tmp(), false, pool, &err), &err);
    toy_must(corpus_init(&corpus, spm, spm, 1000, 0, &err), &err);
    uint64_t end = 0;
    for (int i = 0; i < w.n; i++) {
        uint64_t begin, n;
        toy_must(windows_load(&w, &corpus, epoch, i, &begin, &n, pool, &err), &err);
        pass->in_step = pass->in_step && begin == end && n == (uint64_t)corpus.n;
        end = begin + n;
        pass->longest_window = corpus.n > pass->longest_window ? corpus.n : pass->longest_window;
        pass->shortest_window = corpus.n < pass->shortest_window ? corpus.n : pass->shortest_window;
        for (int p = 0; p < corpus.n; p++) {
            pass->seen[corpus.place[p]]++;
            pass->order = rng_mix(pass->order ^ corpus.place[p]);
            pass->order = rng_mix(pass->order ^ corpus.source.start[p + 1]);
        }
        pass->n += corpus.n;
    }
    pass->in_step = pass->in_step && end == w.pass_pairs;
    windows_release(&w);
    corpus_release(&corpus);
    pool_free(pool);
}

/* One text of weight 1 in many sizes. */
static void test_sizes(const struct spm *spm)
{
    static struct pass pass, again;
    const int sizes[] = { 1, 9, 10, 11, 639, 640, 641, 649, 1279, 1280, 1281, 3333 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int n = sizes[i], n_once = 0;
        struct tfm_corpus corpus = { .tsv = numbered_tsv("sized", n) };
        run_pass(&pass, &corpus, 1, 1, 1, spm);
        for (int p = 0; p < n; p++)
            n_once += pass.seen[p] == 1;
        CHECK(n_once == n && pass.n == n, "%d pairs: each is seen once", n);
        CHECK(pass.in_step && pass.longest_window <= WINDOW + 10, "in windows of up to %d",
              pass.longest_window);
        CHECK(n <= WINDOW || pass.shortest_window >= WINDOW / 2 - 10, "and at least %d",
              pass.shortest_window);
        run_pass(&again, &corpus, 1, 1, 3, spm);
        CHECK(again.order == pass.order, "three threads give the same");
        run_pass(&again, &corpus, 1, 2, 1, spm);
        CHECK((again.order == pass.order) == (n <= WINDOW),
              "another epoch another order, if there are windows");
    }
}

/* Texts of several weights: copies have places of their own, and a fraction is another part in each pass. */
static void test_weights(const struct spm *spm)
{
    static struct pass pass, again;
    enum {
        A = 1234,
        B = 333,
        ALL = A + B
    };
    const struct tfm_corpus corpora[] = { { .tsv = numbered_tsv("heavy", A), .weight = 2.5 },
                                          { .tsv = numbered_tsv("light", B), .weight = 0.25 } };
    run_pass(&pass, corpora, 2, 1, 1, spm);
    run_pass(&again, corpora, 2, 2, 1, spm);
    int n_twice = 0, n_half = 0, n_quarter = 0, n_other = 0, n_kept = 0;
    for (int p = 0; p < A; p++) {
        n_twice += pass.seen[p] == 1 && pass.seen[ALL + p] == 1;
        n_half += pass.seen[2 * ALL + p] == 1;
        n_kept += pass.seen[2 * ALL + p] == 1 && again.seen[2 * ALL + p] == 1;
        n_other += again.seen[2 * ALL + p] == 1;
    }
    for (int p = A; p < ALL; p++)
        n_quarter += pass.seen[p] == 1;
    CHECK_INT(n_twice, A, "weight 2.5: all pairs twice");
    CHECK_INT(n_half, A / 2, "and half of them once more");
    CHECK_INT(n_quarter, B / 4, "weight 0.25: a quarter");
    CHECK_INT(pass.n, n_twice * 2 + n_half + n_quarter, "and nothing else");
    CHECK(n_other == n_half && n_kept > A / 8 && n_kept < A * 3 / 8,
          "another half in another epoch: %d of %d are in both", n_kept, n_half);
}

static void test_memory(const struct spm *spm)
{
    struct tfm_corpus corpus = { .source = "printf '%s\\n' ka na ka na |",
                                 .target = toy_file("four", 4, 1),
                                 .weight = 1.5 };
    struct tfm_train_options o;
    tfm_train_options_init(&o);
    o.corpora = &corpus;
    o.n_corpora = 1;
    enum tfm_status status = TFM_ENOMEM;
    bool told = true;
    int n = 0;
    for (; status != TFM_OK && n < 1000; n++) {
        struct windows w;
        struct corpus loaded = { 0 };
        uint64_t begin, size;
        mem_fail_after(n);
        status = windows_open(&w, &o, check_tmp(), false, NULL, &err);
        if (status == TFM_OK) {
            status = corpus_init(&loaded, spm, spm, 100, 0, &err);
            if (status == TFM_OK)
                status = windows_load(&w, &loaded, 1, 0, &begin, &size, NULL, &err);
            mem_fail_after(-1);
            windows_release(&w);
            corpus_release(&loaded);
        }
        mem_fail_after(-1);
        told = told && (status == TFM_OK || status == TFM_ENOMEM);
    }
    CHECK(told && status == TFM_OK && n > 20, "each of %d allocations may fail", n - 1);
}

int main(void)
{
    struct text_block block = { 0 };
    struct spm *spm = toy_vocab();
    test_two_files(&block);
    test_text(&block);
    test_tsv(&block);
    test_gzip(&block);
    test_commands(&block);
    test_change();
    test_utf8();
    test_fingerprint();
    pairs_release(&block);
    test_sizes(spm);
    test_weights(spm);
    test_memory(spm);
    spm_free(spm);
    return check_done();
}
