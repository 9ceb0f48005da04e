/*
 * xent.c: unembedding, softmax and label-smoothed cross-entropy (Szegedy et al. 2016, section 7) over tiles
 * of rows:
 *     logits = x W^T + b     loss = sum over rows of -(1 - s) log p(label) - s * mean(log p)
 *     dlogits = p - s/V - (1 - s) [label]     dx = dlogits W     dW += dlogits^T x     db += sum of dlogits
 * A tile's logits stay in the cache between its three uses. With R-Drop a tile holds rows of the first half
 * and their twins of the second.
 */
#include "nn/xent.h"

#include <assert.h>

static bool is_right(const real *logits, int label, int vocab)
{
    real best = logits[0];
    for (int j = 1; j < vocab; j++)
        best = logits[j] > best ? logits[j] : best;
    return logits[label] == best;
}

/* A tile of rows, or (twins) of XENT_ROWS / 2 rows and as many twins behind them. */
static void tile_loss(struct xent_sum *sum, real *row_nll, real *logits, const int *labels, int rows,
                      int vocab, const struct criterion *criterion, bool gradient, const struct run *run)
{
    for (int i = 0; i < rows; i++) {
        double nll;
        if (!gradient)
            sum->right += is_right(logits + (size_t)i * vocab, labels[i], vocab);
        sum->loss += run->kern->xent(logits + (size_t)i * vocab, vocab, labels[i], criterion->smoothing,
                                     gradient, &nll);
        sum->nll += nll;
        if (row_nll)
            row_nll[i] = (real)nll;
    }
}

static void tile_loss_twins(struct xent_sum *sum, real *logits, const int *labels, int rows, int vocab,
                            const struct criterion *criterion, const struct run *run)
{
    size_t mark = arena_mark(run->arena), v = (size_t)vocab;
    real *scratch = ARENA_TAKE(run->arena, real, v);
    for (int i = 0; i < rows; i++) {
        double nll;
        sum->loss += run->kern->xent_twins(logits + (size_t)i * v, logits + (size_t)(rows + i) * v, scratch,
                                           vocab, labels[i], criterion->smoothing, criterion->r_drop, &nll);
        sum->nll += nll;
    }
    arena_reset(run->arena, mark);
}

void xent(struct xent_sum *sum, real *row_nll, real *dx, real *dw, real *db, const real *x, const int *labels,
          const struct linear *unembed, const struct criterion *criterion, int n, const struct run *run)
{
    size_t mark = arena_mark(run->arena), d = (size_t)unembed->in, v = (size_t)unembed->out;
    int copies = criterion->r_drop > 0 ? 2 : 1, n_once = n / copies, most = XENT_ROWS / copies;
    assert(copies == 1 || (row_nll == NULL && n % 2 == 0));
    real *logits = ARENA_TAKE(run->arena, real, (size_t)(n_once < most ? n_once : most) * (size_t)copies * v);
    for (int from = 0; from < n_once; from += most) {
        int rows = n_once - from < most ? n_once - from : most;
        for (int c = 0; c < copies; c++)
            linear_forward(logits + (size_t)(c * rows) * v, x + (size_t)(c * n_once + from) * d, unembed,
                           rows, run);
        if (copies == 1)
            tile_loss(sum, row_nll ? row_nll + from : NULL, logits, labels + from, rows, unembed->out,
                      criterion, dx != NULL, run);
        else
            tile_loss_twins(sum, logits, labels + from, rows, unembed->out, criterion, run);
        for (int c = 0; dx != NULL && c < copies; c++) {
            size_t at = (size_t)(c * n_once + from) * d;
            linear_backward(dx + at, false, dw, db, logits + (size_t)(c * rows) * v, x + at, unembed, rows,
                            run);
        }
    }
    arena_reset(run->arena, mark);
}
