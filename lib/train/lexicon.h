/*
 * lexicon.h: which target pieces translate a source piece, learnt from a parallel corpus: IBM model 1 (Brown
 * et al. 1993). t(f|e) is the probability that source piece e gives target piece f.
 */
#ifndef TFM_TRAIN_LEXICON_H
#define TFM_TRAIN_LEXICON_H

#include "train/corpus.h"

struct lexicon_row { /* of a source piece: t(.|e) where it is not 0 */
    int n;
    int *target; /* [n] ascending */
    float *p;    /* [n] */
};

struct lexicon {
    int n_source, n_target;
    struct lexicon_row *rows; /* [n_source + 1], the last of the empty word, from which any piece can come */
    uint64_t *frequency;      /* [n_target]: how often each target piece is in the corpus */
};

struct lexicon_options {
    int n_iterations;
    int most; /* pieces of a row: those most often in the same pairs, by Dice's coefficient */
};

/* The same digits for any number of threads. */
enum tfm_status lexicon_train(struct lexicon *lexicon, const struct corpus *corpus,
                              const struct lexicon_options *options, struct pool *pool,
                              struct tfm_error *err);
void lexicon_release(struct lexicon *lexicon);

float lexicon_probability(const struct lexicon *lexicon, int source, int target);

#endif
