/*
 * xent.h: unembedding, softmax and label-smoothed cross-entropy, fused over tiles of rows so that no [N, V]
 * matrix is ever stored; the gradient is made on the way.
 */
#ifndef TFM_NN_XENT_H
#define TFM_NN_XENT_H

#include "nn/linear.h"

#define XENT_ROWS 128 /* rows of a tile: their logits are in memory together */

struct xent_sum {
    double loss; /* label-smoothed, summed over rows (nats) */
    double nll;  /* -log p(label), summed */
};

/* x [n, D], labels [n], unembed [V, D] with bias. With dx [n, D] (overwritten), also dw [V, D] += and db [V]
 * += of the summed loss. With row_nll [n] (may be NULL), each row's -log p(label). */
void xent(struct xent_sum *sum, real *row_nll, real *dx, real *dw, real *db, const real *x, const int *labels,
          const struct linear *unembed, real smoothing, int n, const struct run *run);

#endif
