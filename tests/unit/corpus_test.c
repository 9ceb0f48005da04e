/*
 * corpus_test.c: pairs read from two files and from tab-separated ones, with their mistakes; the ids in
 * memory are those of the tokenizer, the same with any number of threads; pairs left out are counted; failing
 * allocations are survived.
 */
#include "train/corpus.h"

#include "base/mem.h"
#include "toy_vocab.h"

static struct tfm_error err;

static const char *write_text(const char *name, const char *text, size_t len)
{
    const char *path = check_path("%s", name);
    toy_must(file_write(path, text, len, &err), &err);
    return path;
}

#define WRITE(name, text) write_text(name, text, sizeof(text) - 1)

static enum tfm_status read_all(const char *source, const char *target, const char *tsv,
                                struct text_block *block)
{
    struct pair_reader *reader;
    enum tfm_status status = pairs_open(&reader, source, target, tsv, &err);
    if (status != TFM_OK)
        return status;
    status = pairs_read_block(reader, block, 1000, &err);
    pairs_free(reader);
    return status;
}

static void test_pairs(void)
{
    struct text_block block = { 0 };
    const char *a = WRITE("a", "one\ntwo\r\n\nfour"), *b = WRITE("b", "eins\nzwei\ndrei\nvier\n");
    CHECK_INT(read_all(a, b, NULL, &block), TFM_OK, "two files");
    CHECK_INT((long long)block.n, 4, "the last line without a newline counts");
    CHECK_STR(pairs_source(&block, 1), "two", "a CR goes");
    CHECK_STR(pairs_source(&block, 2), "", "an empty line stays");
    CHECK_STR(pairs_target(&block, 3), "vier", "the last target");

    const char *t = WRITE("t", "one\teins\n\tzwei\nth\0ree\tdrei");
    CHECK_INT(read_all(NULL, NULL, t, &block), TFM_OK, "tab-separated pairs");
    CHECK_INT((long long)block.n, 3, "all pairs");
    CHECK_STR(pairs_source(&block, 1), "", "an empty side");
    CHECK_STR(pairs_source(&block, 2), "th ree", "a NUL is a space");

    CHECK_INT(read_all(a, WRITE("c", "1\n2\n"), NULL, &block), TFM_EFORMAT, "files of unequal length");
    CHECK(strstr(err.message, "/c has 2 lines") && strstr(err.message, "/a has 4"), "both counts: %s",
          err.message);
    CHECK_INT(read_all(WRITE("e", ""), b, NULL, &block), TFM_EFORMAT, "an empty file against four lines");
    CHECK(strstr(err.message, "/e has 0 lines") && strstr(err.message, "/b has 4"), "both counts: %s",
          err.message);
    CHECK_INT(read_all(NULL, NULL, WRITE("u", "a\tb\nc\n"), &block), TFM_EFORMAT, "no tab");
    CHECK(strstr(err.message, "/u, line 2:") != NULL, "file and line: %s", err.message);
    CHECK_INT(read_all(NULL, NULL, WRITE("v", "a\tb\tc\n"), &block), TFM_EFORMAT, "two tabs");
    CHECK(strstr(err.message, "/v, line 1:") != NULL, "file and line: %s", err.message);
    CHECK_INT(read_all("-", "-", NULL, &block), TFM_EINVAL, "both sides from standard input");
    pairs_release_block(&block);
}

static enum tfm_status read_corpus(struct corpus *corpus, const struct spm *spm, int max_length, int threads,
                                   const char *source, const char *target)
{
    struct pool *pool;
    struct pair_reader *reader = NULL;
    TRY(pool_new(&pool, threads, &err));
    enum tfm_status status = corpus_init(corpus, spm, spm, max_length, &err);
    if (status == TFM_OK)
        status = pairs_open(&reader, source, target, NULL, &err);
    if (status == TFM_OK)
        status = corpus_read(corpus, reader, pool, &err);
    pairs_free(reader);
    pool_free(pool);
    return status;
}

static bool is_pair(const struct corpus *corpus, int pair, const struct spm *spm, int line)
{
    struct str text = { 0 };
    struct ints ids = { 0 };
    int found[256];
    toy_line(&text, line, 2);
    toy_must(spm_encode(spm, text.data, text.len, &ids, &err), &err);
    bool same = corpus_length(&corpus->target, pair) == (int)ids.n + 1;
    if (same) {
        corpus_copy(found, &corpus->target, pair);
        same = memcmp(found, ids.data, ids.n * sizeof(int)) == 0 && found[ids.n] == spm_eos(spm);
    }
    str_release(&text);
    ints_release(&ids);
    return same;
}

static void test_ids(const struct spm *spm)
{
    enum {
        N = 700
    };
    const char *source = toy_file("source", N, 1), *target = toy_file("target", N, 2);
    struct corpus one, three;
    toy_must(read_corpus(&one, spm, 1000, 1, source, target), &err);
    toy_must(read_corpus(&three, spm, 1000, 3, source, target), &err);
    CHECK_INT(one.n, N, "all pairs are kept");
    CHECK_INT(one.target.width, 2, "two bytes an id");
    int n_same = 0;
    for (int i = 0; i < one.n; i++)
        n_same += is_pair(&one, i, spm, i);
    CHECK_INT(n_same, N, "ids are the tokenizer's, with </s>");
    CHECK(one.fingerprint == three.fingerprint && one.fingerprint != 0, "three threads give the same corpus");

    struct corpus few;
    toy_must(read_corpus(&few, spm, 8, 2, source, target), &err);
    CHECK(few.n > 0 && few.n_long > 0 && few.n + few.n_long == N, "%d kept, %ld too long", few.n, few.n_long);
    int longest = 0;
    for (int i = 0; i < few.n; i++) {
        longest = corpus_length(&few.source, i) > longest ? corpus_length(&few.source, i) : longest;
        longest = corpus_length(&few.target, i) > longest ? corpus_length(&few.target, i) : longest;
    }
    CHECK_INT(longest, 9, "none over 8 pieces and </s>");
    CHECK(few.fingerprint != one.fingerprint, "another corpus, another fingerprint");
    corpus_release(&one);
    corpus_release(&three);
    corpus_release(&few);

    struct corpus odd;
    toy_must(
        read_corpus(&odd, spm, 100, 1, WRITE("odd1", "ka\n\nka\n \nna\n"), WRITE("odd2", "na\nna\n\n\nka\n")),
        &err);
    CHECK_INT(odd.n, 2, "pairs with both sides");
    CHECK_INT(odd.n_empty, 3, "pairs without");
    corpus_release(&odd);
}

static void test_memory(const struct spm *spm)
{
    const char *source = toy_file("source", 50, 1), *target = toy_file("target", 50, 2);
    enum tfm_status status = TFM_ENOMEM;
    int n = 0;
    bool told = true;
    for (; status != TFM_OK && n < 5000; n++) {
        struct corpus corpus = { 0 };
        mem_fail_after(n);
        status = read_corpus(&corpus, spm, 100, 1, source, target);
        mem_fail_after(-1);
        told = told && (status == TFM_OK || status == TFM_ENOMEM);
        corpus_release(&corpus);
    }
    CHECK(told && status == TFM_OK && n > 10, "each of %d allocations may fail", n - 1);
}

int main(void)
{
    struct spm *spm = toy_vocab();
    test_pairs();
    test_ids(spm);
    test_memory(spm);
    spm_free(spm);
    return check_done();
}
