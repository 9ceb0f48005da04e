/*
 * activation.h: what stands between the two matrices of a feed-forward layer: a function, or a function and a
 * gate. With a gate the first matrix has two outputs, a and g, side by side:
 *     y = act(a)        gated: y = act(a) * g (GLU variants, Shazeer 2020)
 */
#ifndef TFM_NN_ACTIVATION_H
#define TFM_NN_ACTIVATION_H

#include "nn/run.h"
#include "tfm.h"

struct activation {
    enum kern_act act;
    bool is_gated;
};

struct activation activation_of(enum tfm_activation name);

/* Columns of x for one of y: 1, or 2 with a gate. */
int activation_width(enum tfm_activation name);

/* y [n, f] from x [n, width * f]; without a gate y may be x. */
void activation_forward(real *y, const real *x, const struct activation *activation, int n, int f,
                        const struct run *run);
/* dx [n, width * f] overwritten from dy [n, f]; without a gate dx may be dy. */
void activation_backward(real *dx, const real *dy, const real *x, const struct activation *activation, int n,
                         int f, const struct run *run);

#endif
