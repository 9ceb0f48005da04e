/*
 * embed.h: token embeddings (Vaswani et al. 2017, section 3.4): y = scale * table[id]. Positions come on top of
 * them (nn/position.h).
 */
#ifndef TFM_NN_EMBED_H
#define TFM_NN_EMBED_H

#include "nn/linear.h"

/* y [n, D] from ids [n]; table is a linear [V, D]. */
void embed_forward(real *y, const int *ids, const struct linear *table, real scale, int n,
                   const struct run *run);
/* dtable [V, D] += scale * dy, row by row. */
void embed_backward(real *dtable, const real *dy, const int *ids, int d, real scale, int n);

#endif
