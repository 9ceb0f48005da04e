/*
 * gru.c: the gated recurrent unit (Cho et al. 2014), as cuDNN and PyTorch have it: the reset gate stands
 * behind the product. With x' = x Wx^T + bx and h' = h_before Wh^T + bh, each of three parts r, z, n:
 *     r = sigmoid(x'_r + h'_r)    z = sigmoid(x'_z + h'_z)    n = tanh(x'_n + r h'_n)
 *     h = z h_before + (1 - z) n
 * and back:
 *     dz = dh (h_before - n)    dn = dh (1 - z)    dh_before = dh z    dr = dn' h'_n    dh'_n = dn' r
 * where dn' is dn in front of tanh.
 */
#include "nn/rnn.h"

#include <string.h>

static void gru_forward(real *h, real *c, real *gates, const real *recurrent, const real *old_h,
                        const real *old_c, int d, const struct kern *kern)
{
    (void)c, (void)old_c;
    const real *r = gates, *z = gates + d, *h_n = recurrent + 2 * d;
    real *n = gates + 2 * d;
    kern->add(gates, recurrent, 2 * (size_t)d);
    kern->sigmoid(gates, gates, 2 * (size_t)d);
    for (int j = 0; j < d; j++)
        n[j] += r[j] * h_n[j];
    kern->gate_tanh(n, n, (size_t)d);
    kern->gate(h, z, old_h, n, d);
}

static void gru_backward(real *dgates, real *drecurrent, real *dold_h, real *dold_c, const real *dh, real *dc,
                         const real *gates, const real *recurrent, const real *old_h, const real *old_c,
                         const real *c, int d, const struct kern *kern)
{
    (void)dold_c, (void)dc, (void)old_c, (void)c;
    const real *r = gates, *z = gates + d, *n = gates + 2 * d, *h_n = recurrent + 2 * d;
    real *dr = dgates, *dz = dgates + d, *dn = dgates + 2 * d;
    memset(dold_h, 0, sizeof(real) * (size_t)d);
    /* h = z h_before + (1 - z) n */
    kern->gate_backward(dz, dold_h, dn, dh, z, old_h, n, d);
    /* n = tanh(x'_n + r h'_n) */
    kern->gate_tanh_backward(dn, n, (size_t)d);
    for (int j = 0; j < d; j++) {
        dr[j] = dn[j] * h_n[j];
        drecurrent[2 * d + j] = dn[j] * r[j];
    }
    /* r, z = sigmoid(x' + h') */
    kern->sigmoid_backward(dgates, gates, 2 * (size_t)d);
    memcpy(drecurrent, dgates, sizeof(real) * 2 * (size_t)d);
}

const struct rnn_formula gru_formula = { .n_gates = 3, .forward = gru_forward, .backward = gru_backward };
