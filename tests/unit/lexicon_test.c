/*
 * lexicon_test.c: IBM model 1 on corpora with known answers: one iteration by hand, two words that only the
 * iterations can tell apart, the likelihood that never falls, rows that are cut, and threads that change no
 * digit.
 */
#include "train/lexicon.h"

#include "tiny_model.h"

#define N_PAIRS 300

static struct spm *spm;

static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err->message, "", "a step that must work");
    exit(check_done());
}

/* A corpus of pairs whose ids are given, as corpus_add would have made it. */
static void make_corpus(struct corpus *corpus, int n, const int source[][3], const int target[][3])
{
    struct tfm_error err;
    must(corpus_init(corpus, spm, spm, 100, 0, &err), &err);
    for (int s = 0; s < 2; s++) {
        struct corpus_side *side = s == 0 ? &corpus->source : &corpus->target;
        mem_free(side->start);
        side->start = mem_alloc(((size_t)n + 1) * sizeof(*side->start), NULL);
        uint16_t *ids = mem_alloc((size_t)n * 3 * sizeof(*ids), NULL);
        side->ids = (char *)ids;
        for (int i = 0; i < n; i++) {
            const int *pieces = s == 0 ? source[i] : target[i];
            side->start[i + 1] = side->start[i];
            for (int j = 0; j < 3 && pieces[j] > 0; j++)
                ids[side->start[i + 1]++] = (uint16_t)pieces[j];
        }
    }
    corpus->n = n;
}

static void train(struct lexicon *lexicon, const struct corpus *corpus, int n_iterations, int most,
                  int threads)
{
    struct tfm_error err;
    struct pool *pool;
    struct lexicon_options options = { .n_iterations = n_iterations, .most = most };
    must(pool_new(&pool, threads, &err), &err);
    must(lexicon_train(lexicon, corpus, &options, pool, &err), &err);
    pool_free(pool);
}

/* das Haus - the house, das Buch - the book, ein Buch - a book. */
static void test_by_hand(void)
{
    enum {
        DAS = 2,
        HAUS,
        BUCH,
        EIN,
        THE,
        HOUSE,
        BOOK,
        A
    };
    static const int source[][3] = { { DAS, HAUS }, { DAS, BUCH }, { EIN, BUCH } };
    static const int target[][3] = { { THE, HOUSE }, { THE, BOOK }, { A, BOOK } };
    struct corpus corpus;
    struct lexicon l;
    make_corpus(&corpus, 3, source, target);
    int empty = spm_size(spm);

    train(&l, &corpus, 0, 100, 1);
    CHECK_INT(l.rows[DAS].n, 3, "a row holds what stands in the same pairs");
    CHECK_NEAR((double)lexicon_probability(&l, DAS, THE), 1 / 3.0, 1e-7, "at first all are alike");
    CHECK_NEAR((double)lexicon_probability(&l, empty, A), 1 / 4.0, 1e-7, "also for the empty word");
    CHECK(lexicon_probability(&l, DAS, A) == 0, "what never stands in the same pair has no probability");
    CHECK_INT((int)l.frequency[THE], 2, "the frequency of a target piece");
    lexicon_release(&l);

    /* 1 / z is 12/13 for the words of pair 1 and 3 (1/4 + 1/3 + 1/2) and 12/11 for those of pair 2 (1/4 + 1/3
     * + 1/3): t(the | das) = (1/z1 + 1/z2) / (2/z1 + 2/z2) = 1/2, t(house | das) = 1/z1 / (2/z1 + 2/z2) =
     * 11/48. */
    train(&l, &corpus, 1, 100, 1);
    CHECK_NEAR((double)lexicon_probability(&l, DAS, THE), 0.5, 1e-6, "one iteration by hand");
    CHECK_NEAR((double)lexicon_probability(&l, DAS, HOUSE), 11 / 48.0, 1e-6,
               "a word that stands beside it once");
    CHECK_NEAR((double)lexicon_probability(&l, DAS, BOOK), 13 / 48.0, 1e-6,
               "and one that stands in the other pair");
    CHECK_NEAR((double)lexicon_probability(&l, HAUS, HOUSE), 0.5, 1e-6, "what is seen once");
    CHECK_NEAR((double)lexicon_probability(&l, empty, THE), 12 / 35.0, 1e-6, "the empty word's");
    lexicon_release(&l);

    train(&l, &corpus, 60, 100, 1);
    CHECK(lexicon_probability(&l, DAS, THE) > 0.95F && lexicon_probability(&l, BUCH, BOOK) > 0.95F,
          "words that come often become sure: %g, %g", (double)lexicon_probability(&l, DAS, THE),
          (double)lexicon_probability(&l, BUCH, BOOK));
    CHECK(lexicon_probability(&l, HAUS, HOUSE) > 0.95F && lexicon_probability(&l, EIN, A) > 0.95F,
          "and so do the others: %g, %g", (double)lexicon_probability(&l, HAUS, HOUSE),
          (double)lexicon_probability(&l, EIN, A));
    lexicon_release(&l);

    train(&l, &corpus, 3, 2, 1);
    CHECK(l.rows[DAS].n == 2 && l.rows[DAS].target[0] == THE && l.rows[DAS].target[1] == HOUSE,
          "a row of two keeps the best by Dice's coefficient");
    CHECK(lexicon_probability(&l, DAS, BOOK) == 0, "and not the third");
    lexicon_release(&l);
    corpus_release(&corpus);
}

/* Pairs of pieces drawn at random, where piece e gives 20 + e. */
static void draw_corpus(struct corpus *corpus)
{
    static int source[N_PAIRS][3], target[N_PAIRS][3];
    for (uint64_t i = 0; i < N_PAIRS; i++)
        for (uint64_t j = 0; j < 3; j++) {
            source[i][j] = 2 + (int)rng_below(rng_key(5, i, j, 0), 15);
            target[i][2 - j] = 20 + source[i][j];
        }
    make_corpus(corpus, N_PAIRS, source, target);
}

static double log_likelihood(const struct lexicon *l, const struct corpus *corpus)
{
    double sum = 0;
    int source[101], target[101];
    for (int pair = 0; pair < corpus->n; pair++) {
        corpus_copy(source, &corpus->source, pair);
        corpus_copy(target, &corpus->target, pair);
        for (int j = 0; j < corpus_length(&corpus->target, pair) - 1; j++) {
            double z = (double)lexicon_probability(l, l->n_source, target[j]);
            for (int i = 0; i < corpus_length(&corpus->source, pair) - 1; i++)
                z += (double)lexicon_probability(l, source[i], target[j]);
            sum += log(z / corpus_length(&corpus->source, pair));
        }
    }
    return sum;
}

static void test_learning(void)
{
    struct corpus corpus;
    struct lexicon l, other;
    draw_corpus(&corpus);
    double before = -INFINITY;
    int falls = 0;
    for (int n = 0; n <= 6; n++) {
        train(&l, &corpus, n, 100, 1);
        double now = log_likelihood(&l, &corpus);
        falls += now < before - 1e-3;
        before = now;
        lexicon_release(&l);
    }
    CHECK_INT(falls, 0, "no iteration makes the corpus less likely");

    train(&l, &corpus, 5, 100, 1);
    train(&other, &corpus, 5, 100, 3);
    int wrong = 0, differences = 0;
    for (int e = 0; e <= l.n_source; e++) {
        double sum = 0;
        for (int i = 0; i < l.rows[e].n; i++) {
            sum += (double)l.rows[e].p[i];
            wrong += e >= 2 && e < 17 && l.rows[e].target[i] != 20 + e && l.rows[e].p[i] > 0.3F;
        }
        wrong += l.rows[e].n > 0 && fabs(sum - 1) > 1e-5;
        differences += l.rows[e].n != other.rows[e].n ||
                       memcmp(l.rows[e].p, other.rows[e].p, sizeof(float) * (size_t)l.rows[e].n) != 0;
    }
    CHECK_INT(wrong, 0, "each row sums up to one, and only the right translation is probable");
    CHECK(lexicon_probability(&l, 2, 22) > 0.7F, "which it is: %g", (double)lexicon_probability(&l, 2, 22));
    CHECK_INT(differences, 0, "three threads give the digits that one gives");
    lexicon_release(&l);
    lexicon_release(&other);
    corpus_release(&corpus);
}

int main(void)
{
    struct tfm_error err;
    const char *path = check_path("vocab.spm");
    must(tiny_vocabulary(path, NULL, &err), &err);
    must(spm_open(&spm, path, &err), &err);
    CHECK(spm_size(spm) > 36, "the vocabulary has the pieces that are used here");
    test_by_hand();
    test_learning();
    spm_free(spm);
    return check_done();
}
