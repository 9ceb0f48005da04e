/*
 * xent.h: unembedding, softmax and label-smoothed cross-entropy, fused over tiles of rows so that no [N, V]
 * matrix is ever stored; the gradient is made on the way.
 */
#ifndef TFM_NN_XENT_H
#define TFM_NN_XENT_H

#include "nn/linear.h"

#define XENT_ROWS 256 /* rows of a tile: their logits are in memory together */

struct criterion {
    real smoothing; /* of the label, 0 <= smoothing < 1 (Szegedy et al. 2016) */
    real r_drop; /* > 0: rows n/2 + i are row i again with other dropout, and the loss is the mean over both
                       plus r_drop / 4 times KL(i || n/2 + i) + KL(n/2 + i || i): half of equation 4 of Liang et
                       al. 2021, whose alpha this is, so that the cross-entropy keeps its size */
};

struct xent_sum {
    double loss; /* summed over rows, twins counted once (nats) */
    double nll;  /* -log p(label), summed likewise */
    long right;  /* rows whose label is as probable as any, without gradients */
};

/* x [n, D], labels [n], unembed [V, D] with bias. With dx [n, D] (overwritten), also dw [V, D] += and db [V]
 * += of the summed loss. With row_nll [n] (may be NULL; not with r_drop), each row's -log p(label). */
void xent(struct xent_sum *sum, real *row_nll, real *dx, real *dw, real *db, const real *x, const int *labels,
          const struct linear *unembed, const struct criterion *criterion, int n, const struct run *run);

#endif
