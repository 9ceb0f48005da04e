/*
 * lstm.c: long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate (Gers et al. 2000).
 * With a = x Wx^T + bx + h_before Wh^T + bh in four parts, in PyTorch's order i, f, g, o:
 *     i, f, o = sigmoid(a)    g = tanh(a_g)    c = f c_before + i g    h = o tanh(c)
 * and back:
 *     do = dh tanh(c)    dc += dh o (1 - tanh(c)^2)
 *     df = dc c_before    di = dc g    dg = dc i    dc_before = dc f
 */
#include "nn/rnn.h"

#include <string.h>

static void lstm_forward(real *h, real *c, real *gates, const real *recurrent, const real *old_h,
                         const real *old_c, int d, const struct kern *kern)
{
    (void)old_h;
    size_t n = (size_t)d;
    real *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
    kern->add(gates, recurrent, 4 * n);
    kern->sigmoid(gates, gates, 2 * n);
    kern->gate_tanh(g, g, n);
    kern->sigmoid(o, o, n);
    for (size_t j = 0; j < n; j++)
        c[j] = f[j] * old_c[j] + gates[j] * g[j];
    kern->gate_tanh(h, c, n);
    for (size_t j = 0; j < n; j++)
        h[j] *= o[j];
}

static void lstm_backward(real *dgates, real *drecurrent, real *dold_h, real *dold_c, const real *dh,
                          real *dc, const real *gates, const real *recurrent, const real *old_h,
                          const real *old_c, const real *c, int d, const struct kern *kern)
{
    (void)recurrent, (void)old_h;
    size_t n = (size_t)d;
    const real *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
    real *di = dgates, *df = dgates + n, *dg = dgates + 2 * n, *d_o = dgates + 3 * n;
    /* h = o tanh(c): dold_h, which gets nothing from here, holds tanh(c) and then the way through it */
    kern->gate_tanh(dold_h, c, n);
    for (size_t j = 0; j < n; j++) {
        real t = dold_h[j];
        d_o[j] = dh[j] * t;
        dc[j] += dh[j] * o[j] * (1 - t * t);
    }
    memset(dold_h, 0, sizeof(real) * n);
    /* c = f c_before + i g */
    for (size_t j = 0; j < n; j++) {
        di[j] = dc[j] * g[j];
        df[j] = dc[j] * old_c[j];
        dg[j] = dc[j] * i[j];
        dold_c[j] = dc[j] * f[j];
    }
    kern->sigmoid_backward(dgates, gates, 2 * n);
    kern->gate_tanh_backward(dg, g, n);
    kern->sigmoid_backward(d_o, o, n);
    memcpy(drecurrent, dgates, sizeof(real) * 4 * n);
}

const struct rnn_formula lstm_formula = {
    .n_gates = 4, .has_memory = true, .forward = lstm_forward, .backward = lstm_backward
};
