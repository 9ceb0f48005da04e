/*
 * tokens.h: a batch of sentences laid end to end, without padding.
 */
#ifndef TFM_NN_TOKENS_H
#define TFM_NN_TOKENS_H

#include <stdint.h>

struct tokens {
    int n_sentences;
    int n;               /* tokens in all: N */
    const int *ids;      /* [N] */
    const int *start;    /* [B+1]: sentence i is ids[start[i]] .. ids[start[i+1]-1] */
    const uint64_t *key; /* [B] identity of each sentence for dropout; NULL without dropout */
    const int *rows; /* [N] of a masked language model: the row of the source that predicts each; else NULL */
};

#endif
