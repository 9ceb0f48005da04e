/*
 * corpus_test.c: the ids in memory are those of the tokenizer, the same with any number of threads; pairs left
 * out are counted by reason; a text alone is its own target; failing allocations are survived.
 */
#include "train/corpus.h"

#include "base/mem.h"
#include "toy_vocab.h"

static struct tfm_error err;

static void add_pair(struct text_block *text, const char *source, const char *target)
{
    toy_must(pairs_add(text, (struct span){ source, strlen(source) }, (struct span){ target, strlen(target) },
                       text->n + 1000, &err),
             &err);
}

static struct text_block toy_text(int n)
{
    struct text_block text = { 0 };
    struct str source = { 0 }, target = { 0 };
    for (int i = 0; i < n; i++) {
        toy_line(&source, i, 1);
        toy_line(&target, i, 2);
        add_pair(&text, source.data, target.data);
    }
    str_release(&source);
    str_release(&target);
    return text;
}

/* An empty corpus, to be released also after a failure, and the text in it. */
static enum tfm_status encode(struct corpus *corpus, const struct spm *spm, int max_length, double max_ratio,
                              int threads, const struct text_block *text)
{
    struct pool *pool;
    *corpus = (struct corpus){ 0 };
    TRY(pool_new(&pool, threads, &err));
    enum tfm_status status = corpus_init(corpus, spm, spm, max_length, max_ratio, &err);
    if (status == TFM_OK)
        status = corpus_add(corpus, text, pool, &err);
    pool_free(pool);
    return status;
}

static bool same_side(const struct corpus_side *a, const struct corpus_side *b, int n)
{
    return memcmp(a->start, b->start, ((size_t)n + 1) * sizeof(*a->start)) == 0 &&
           memcmp(a->ids, b->ids, a->start[n] * (size_t)a->width) == 0;
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
    struct text_block text = toy_text(N);
    struct corpus one, three;
    toy_must(encode(&one, spm, 1000, 0, 1, &text), &err);
    toy_must(encode(&three, spm, 1000, 0, 3, &text), &err);
    CHECK_INT(one.n, N, "all pairs are kept");
    CHECK_INT(one.target.width, 2, "two bytes an id");
    int n_same = 0;
    for (int i = 0; i < one.n; i++)
        n_same += is_pair(&one, i, spm, i) && one.place[i] == (uint64_t)i + 1000;
    CHECK_INT(n_same, N, "ids are the tokenizer's, with </s>, and places are kept");
    CHECK(same_side(&one.source, &three.source, N) && same_side(&one.target, &three.target, N),
          "three threads give the same corpus");
    corpus_clear(&three);
    CHECK_INT(three.n, 0, "a corpus is cleared");
    toy_must(corpus_add(&three, &text, NULL, &err), &err);
    CHECK(three.n == N && same_side(&one.target, &three.target, N), "and filled anew");
    corpus_release(&one);
    corpus_release(&three);

    struct corpus few;
    toy_must(encode(&few, spm, 8, 0, 2, &text), &err);
    CHECK(few.n > 0 && few.n_long > 0 && few.n + few.n_long == N, "%d kept, %ld too long", few.n, few.n_long);
    CHECK_INT(corpus_longest(&few), 9, "none over 8 pieces and </s>");
    corpus_release(&few);
    pairs_release(&text);
}

static void test_left_out(const struct spm *spm)
{
    struct text_block text = { 0 };
    add_pair(&text, "ka", "na");
    add_pair(&text, "", "na");
    add_pair(&text, "ka", "");
    add_pair(&text, " ", "  ");
    add_pair(&text, "ka ka ka ka ka ka", "na na");
    add_pair(&text, "ka ka", "na na na na na na na");
    struct corpus corpus;
    toy_must(encode(&corpus, spm, 100, 3, 1, &text), &err);
    CHECK_INT(corpus.n_empty, 3, "pairs without a side");
    CHECK_INT(corpus.n_unequal, 1, "a side of over three times as many pieces");
    CHECK_INT(corpus.n, 2, "of just three times as many it may be");
    CHECK(corpus.n == 2 && corpus.place[1] == 1004, "places are those of the pairs that are kept");
    corpus_release(&corpus);
    toy_must(encode(&corpus, spm, 100, 0, 1, &text), &err);
    CHECK_INT(corpus.n, 3, "without a limit all that are not empty");
    corpus_release(&corpus);
    pairs_release(&text);
}

/* Its target is not looked at. */
static void test_text(const struct spm *spm)
{
    const float alpha[] = { 0.1f, 0 };
    struct text_block text = { 0 };
    add_pair(&text, "ka lomi tersun", "na");
    add_pair(&text, " ", "na");
    add_pair(&text, "ble vierpu", "");
    struct corpus corpus, sampled;
    toy_must(corpus_init(&corpus, spm, NULL, 100, 3, &err), &err);
    toy_must(corpus_init(&sampled, spm, NULL, 100, 0, &err), &err);
    CHECK_INT(corpus_longest(&corpus), 0, "an empty text");
    toy_must(corpus_add(&corpus, &text, NULL, &err), &err);
    CHECK(corpus.n == 2 && corpus.n_empty == 1 && corpus.n_unequal == 0, "lines without text are left out");
    CHECK(corpus.target.ids == corpus.source.ids && corpus.target.start == corpus.source.start,
          "both sides are the same");
    int more = 0;
    for (uint64_t key = 0; key < 20; key++) {
        toy_must(corpus_sample(&sampled, &corpus, alpha, key, NULL, &err), &err);
        more += corpus_length(&sampled.target, 0) > corpus_length(&corpus.target, 0);
        if (sampled.n != 2 || sampled.target.ids != sampled.source.ids)
            more = -100;
    }
    CHECK(more > 5, "and so they are in other segmentations, %d of which are longer", more);
    corpus_release(&corpus);
    corpus_release(&sampled);
    pairs_release(&text);
}

static void test_memory(const struct spm *spm)
{
    struct text_block text = toy_text(50);
    enum tfm_status status = TFM_ENOMEM;
    int n = 0;
    bool told = true;
    for (; status != TFM_OK && n < 5000; n++) {
        struct corpus corpus;
        mem_fail_after(n);
        status = encode(&corpus, spm, 100, 0, 1, &text);
        mem_fail_after(-1);
        told = told && (status == TFM_OK || status == TFM_ENOMEM);
        corpus_release(&corpus);
    }
    CHECK(told && status == TFM_OK && n > 10, "each of %d allocations may fail", n - 1);
    pairs_release(&text);
}

int main(void)
{
    struct spm *spm = toy_vocab();
    test_ids(spm);
    test_left_out(spm);
    test_text(spm);
    test_memory(spm);
    spm_free(spm);
    return check_done();
}
