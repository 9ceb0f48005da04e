/*
 * dropout.h: inverted dropout (Srivastava et al. 2014). Whether an element is kept is a function of (seed,
 * update, place, sentence, position, column): nothing is stored, and the backward pass decides the same
 * again.
 */
#ifndef TFM_NN_DROPOUT_H
#define TFM_NN_DROPOUT_H

#include "nn/run.h"
#include "nn/tokens.h"

/* keys [N]: one a token of the batch, from the run's seed, the sentence and the position; side keeps source
 * and target apart. */
void dropout_keys(uint64_t *keys, const struct tokens *tokens, int side, const struct run *run);

/* x [n, d] in place; no-op unless run->dropout and p > 0. The same call serves forward (x) and backward
 * (dx). */
void dropout_apply(real *x, const uint64_t *keys, int place, int n, int d, real p, const struct run *run);

/* The 32-bit key of one row at one place, for callers that drop parts of a row themselves (attention
 * weights). */
uint32_t dropout_row_key(uint64_t key, int place);

#endif
