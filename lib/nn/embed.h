/*
 * embed.h: token embeddings with sinusoidal positions (Vaswani et al. 2017, section 3.5):
 *     y = scale * table[id] + position(pos)
 *     position(pos) = [sin(pos * w_0), ..., sin(pos * w_(D/2-1)), cos(pos * w_0), ...],
 *     w_i = 10000^(-i / (D/2 - 1)),
 * sines and cosines in two halves, and their divisor, as in Marian.
 */
#ifndef TFM_NN_EMBED_H
#define TFM_NN_EMBED_H

#include "nn/linear.h"
#include "nn/tokens.h"

/* rows [to - from, D]: the position vectors of from .. to-1. */
void embed_position_rows(real *rows, int from, int to, int d);

/* y [n, D] from ids [n] at positions [n]; table is a linear [V, D]; position_rows [max position + 1, D], or
 * NULL: without positions. */
void embed_forward(real *y, const int *ids, const int *positions, const struct linear *table,
                   const real *position_rows, real scale, int n, const struct run *run);
/* dtable [V, D] += scale * dy, row by row. */
void embed_backward(real *dtable, const real *dy, const int *ids, int d, real scale, int n);

/* positions [N] of a batch: 0, 1, 2, ... in each sentence; returns one more than the largest. */
int embed_positions(int *positions, const struct tokens *tokens);

#endif
