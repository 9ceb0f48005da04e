/*
 * corpus.h: tokenised pairs in memory, a window of the corpus or a whole validation set: ids of all pairs end
 * to end, two bytes an id where the vocabulary allows. Of a text alone the lines are their own targets.
 */
#ifndef TFM_TRAIN_CORPUS_H
#define TFM_TRAIN_CORPUS_H

#include "base/pool.h"
#include "text/spm.h"
#include "train/pairs.h"

struct corpus_side {
    const struct spm *spm;
    int eos;   /* id of </s> */
    int width; /* bytes an id takes: 2 or 4 */
    char *ids;
    size_t cap;    /* ids that there is room for */
    size_t *start; /* [n + 1]: first id of each pair */
};

struct corpus {
    struct corpus_side source, target;
    bool is_text;       /* then both sides are the same arrays */
    uint64_t *place;    /* [n]: which pair of the whole text each is */
    struct links links; /* of pairs with an alignment, between words */
    int n;              /* pairs kept */
    int cap;
    int max_length;
    double max_ratio; /* 0: any */
    long n_empty;     /* left out: nothing on one or both sides */
    long n_long;      /* left out: longer than max_length pieces on a side */
    long n_unguided;  /* kept without their alignment: their pieces make other words than spaces do */
    long n_unequal;   /* left out: one side over max_ratio times as long as the other */
};

/* An empty corpus, of a text alone where target is NULL; pairs over max_length pieces, and those whose longer
 * side has over max_ratio times as many pieces as the other (0: any), will be left out. */
enum tfm_status corpus_init(struct corpus *corpus, const struct spm *source, const struct spm *target,
                            int max_length, double max_ratio, struct tfm_error *err);
void corpus_release(struct corpus *corpus);
void corpus_clear(struct corpus *corpus); /* empty again; keeps its memory */

/* Tokenises a block of pairs on the pool and appends it. */
enum tfm_status corpus_add(struct corpus *corpus, const struct text_block *block, struct pool *pool,
                           struct tfm_error *err);

/* Replaces a corpus by another, base, with the same pairs in other segmentations (text/sample.h): side s is
 * drawn with alpha[s], and stays as it is where that is 0. Which ones is a function of the key and of the
 * pairs' places. A side that would grow beyond max_length stays as well. The corpus has no max_ratio. */
enum tfm_status corpus_sample(struct corpus *corpus, const struct corpus *base, const float alpha[2],
                              uint64_t key, struct pool *pool, struct tfm_error *err);

/* Tokens of a pair's side, </s> counted, and the tokens themselves. */
static inline int corpus_length(const struct corpus_side *side, int pair)
{
    return (int)(side->start[pair + 1] - side->start[pair]) + 1;
}
void corpus_copy(int *ids, const struct corpus_side *side, int pair);
int corpus_longest(const struct corpus *corpus); /* tokens of the longest side of all pairs */

#endif
