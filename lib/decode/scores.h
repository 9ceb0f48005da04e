/*
 * scores.h: the candidates of the rows of a step, from the decoder's output. The logits
 *     x = hidden E^T + b
 * are made part by part, some rows by some columns that stay in the second cache, and of each part only the best
 * candidates and the logarithm of the sum of exp(x) are kept. So the unembedding E passes by once for many rows, and all
 * logits of a row are never in memory together, unless tokens are drawn from them.
 */
#ifndef TFM_DECODE_SCORES_H
#define TFM_DECODE_SCORES_H

#include "decode/candidates.h"
#include "nn/linear.h"

struct scores_member { /* of an ensemble, or the only net */
    const struct linear *unembed;
    const real *hidden; /* [n, D] */
};

/* Fills in rows[i].found for n rows, whose logits have the same columns. What holds for logits and their logarithmic sums
 * holds for log-probabilities: log p = sum_m weights_m log p_m. */
void scores_find(const struct candidate_row *rows, int n, const struct scores_member *members, int n_members,
                 const float *weights, const struct candidate_options *options, const struct config *config,
                 const struct run *run);

/* Bytes of the arena that it takes for n rows at most and gives back: hidden rows of d numbers, logits of v columns.
 * From a number of rows on it does not grow. */
size_t scores_scratch(const struct candidate_options *options, int n, int v, int d, int n_members);

#endif
