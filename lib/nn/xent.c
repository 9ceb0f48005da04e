/*
 * xent.c: unembedding, softmax and label-smoothed cross-entropy (Szegedy et al. 2016, section 7) over tiles
 * of rows:
 *     logits = x W^T + b     loss = sum over rows of -(1 - s) log p(label) - s * mean(log p)
 *     dlogits = p - s/V - (1 - s) [label]     dx = dlogits W     dW += dlogits^T x     db += sum of dlogits
 * A tile's logits stay in the cache between its three uses.
 */
#include "nn/xent.h"

void xent(struct xent_sum *sum, real *row_nll, real *dx, real *dw, real *db, const real *x, const int *labels,
          const struct linear *unembed, real smoothing, int n, const struct run *run)
{
    int d = unembed->in, vocab = unembed->out;
    size_t mark = arena_mark(run->arena);
    real *logits = ARENA_TAKE(run->arena, real, (size_t)(n < XENT_ROWS ? n : XENT_ROWS) * vocab);
    for (int from = 0; from < n; from += XENT_ROWS) {
        int rows = n - from < XENT_ROWS ? n - from : XENT_ROWS;
        const real *x_tile = x + (size_t)from * d;
        linear_forward(logits, x_tile, unembed, rows, run);
        for (int i = 0; i < rows; i++) {
            double nll;
            sum->loss += run->kern->xent(logits + (size_t)i * vocab, vocab, labels[from + i], smoothing,
                                         dx != NULL, &nll);
            sum->nll += nll;
            if (row_nll)
                row_nll[from + i] = (real)nll;
        }
        if (dx)
            linear_backward(dx + (size_t)from * d, false, dw, db, logits, x_tile, unembed, rows, run);
    }
    arena_reset(run->arena, mark);
}
