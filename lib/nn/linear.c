/*
 * linear.c: y = x w^T + b, and back:
 *     dx = dy w        dw += dy^T x        db += sum over rows of dy
 * On the sentence's way: every layer multiplies by its weights here.
 */
#include "nn/linear.h"

#include "num/gemm.h"

void linear_forward(real *y, const real *x, const struct linear *l, int n, const struct run *run)
{
    if (l->packed)
        run->kern->linear(y, x, l->packed, n, l->out, l->in);
    else
        gemm(y, l->out, x, l->in, 0, l->w, l->in, 1, n, l->out, l->in, 0);
    if (l->b)
        run->kern->bias(y, l->b, n, l->out);
    profile_product(run->profile, n, l->out, l->in);
}

void linear_backward(real *dx, bool add_dx, real *dw, real *db, const real *dy, const real *x,
                     const struct linear *l, int n, const struct run *run)
{
    if (dx)
        gemm(dx, l->in, dy, l->out, 0, l->w, l->in, 0, n, l->in, l->out, add_dx ? 1 : 0);
    gemm(dw, l->in, dy, l->out, 1, x, l->in, 0, l->out, l->in, n, 1);
    if (db)
        run->kern->bias_backward(db, dy, n, l->out);
    profile_product(run->profile, n, l->in, dx ? 2.0 * l->out : l->out);
}

void linear_row(real *row, const struct linear *l, int out)
{
    if (!l->packed) {
        const real *w = l->w + (size_t)out * l->in;
        for (int j = 0; j < l->in; j++)
            row[j] = w[j];
        return;
    }
    const real *panel = l->packed + (size_t)(out / KERN_PANEL) * l->in * KERN_PANEL + out % KERN_PANEL;
    for (int j = 0; j < l->in; j++)
        row[j] = panel[(size_t)j * KERN_PANEL];
}

size_t linear_packed_size(int out, int in)
{
    return (size_t)((out + KERN_PANEL - 1) / KERN_PANEL) * KERN_PANEL * (size_t)in;
}

void linear_pack(real *packed, const real *w, int out, int in)
{
    for (int p = 0; p < out; p += KERN_PANEL)
        for (int j = 0; j < in; j++)
            for (int l = 0; l < KERN_PANEL; l++)
                *packed++ = p + l < out ? w[(size_t)(p + l) * in + j] : 0;
}
