/*
 * ffn.h: the position-wise feed-forward layer, y = act(x W1^T + b1) W2^T + b2 (Vaswani et al. 2017, section
 * 3.3), or with a gate y = (act(x W1^T + b1) * (x W3^T + b3)) W2^T + b2 (Shazeer 2020, here with biases). W3 lies
 * behind W1, so that both are one product.
 */
#ifndef TFM_NN_FFN_H
#define TFM_NN_FFN_H

#include "nn/activation.h"
#include "nn/linear.h"

struct ffn {
    struct linear fc1, fc2; /* [F, D] (gated: fc1 and fc3, [2F, D]) and [D, F] */
    struct activation activation;
    real dropout; /* of the activations */
    int place;
    const char *prefix; /* for the tap */
    int layer;
};

struct ffn_grad {
    real *fc1_w, *fc1_b, *fc2_w, *fc2_b;
};

struct ffn_acts { /* kept for the backward pass */
    real *pre;    /* [n, F] (gated: [n, 2F]) before the activation function */
    real *hidden; /* [n, F] after it and dropout */
};

/* y [n, D]. acts is filled when run->keep. */
void ffn_forward(real *y, struct ffn_acts *acts, const real *x, const struct ffn *ffn, const uint64_t *keys,
                 int n, const struct run *run);
/* dx [n, D] overwritten. */
void ffn_backward(real *dx, struct ffn_grad *grad, const real *dy, const real *x, const struct ffn_acts *acts,
                  const struct ffn *ffn, const uint64_t *keys, int n, const struct run *run);

#endif
