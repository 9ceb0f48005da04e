/*
 * embed.h: token embeddings with sinusoidal positions (Vaswani et al. 2017, section 3.5):
 *     y = scale * table[id] + position(pos),  position = [sin(pos / 10000^(i/(D/2-1))) | cos(...)], i = 0..D/2-1,
 * the two halves as Marian lays them out (also its divisor D/2 - 1).
 */
#ifndef TFM_NN_EMBED_H
#define TFM_NN_EMBED_H

#include "nn/linear.h"

/* y [n, D] from ids [n] at positions [n]; table is a linear [V, D]. */
void embed_forward(real *y, const int *ids, const int *positions, const struct linear *table, real scale, int n,
                   const struct run *run);
/* dtable [V, D] += scale * dy, row by row. */
void embed_backward(real *dtable, const real *dy, const int *ids, int d, real scale, int n, const struct run *run);

/* positions [N] of a batch: 0, 1, 2, ... in each sentence. */
struct tokens;
void embed_positions(int *positions, const struct tokens *tokens);

#endif
