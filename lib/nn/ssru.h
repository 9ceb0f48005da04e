/*
 * ssru.h: the simpler simple recurrent unit (Kim et al. 2019, "From Research to Production and
 * Back"), which can stand in place of a decoder's self-attention:
 *     f_t = sigmoid(x_t Wf^T + bf)     c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W^T)     y_t = relu(c_t)
 * The state c [D], zero before the first token, is all that a layer knows of the past, so that a step of
 * decoding costs the same however long the sentence is.
 */
#ifndef TFM_NN_SSRU_H
#define TFM_NN_SSRU_H

#include "nn/attn.h"
#include "nn/linear.h"

struct ssru {
    struct linear forget, input; /* Wf with bf, and W without: [D, D] */
    const char *prefix;          /* for the tap */
    int layer;
};

struct ssru_grad {
    real *forget_w, *forget_b, *input_w;
};

struct ssru_acts { /* kept for the backward pass */
    real *forget;  /* [n, D] f */
    real *input;   /* [n, D] x W^T */
    real *state;   /* [n, D] c */
    int *before;   /* [n] */
};

/* What segments of self-attention mean to a recurrence: before[q] is the number of the last key that query q
 * sees before its own, counted from row `first`; -1: there is none. */
void ssru_chain(int *before, const struct attn_segment *segments, int n_segments, int first);

/* y [n, D] and state [n, D] from x [n, D]. Row i goes on from row before[i] of `old`, or from zero. `old` may
 * be `state` itself, where each row stands behind the one it goes on from. acts is filled when run->keep. */
void ssru_forward(real *y, real *state, struct ssru_acts *acts, const real *x, const real *old, int *before,
                  const struct ssru *ssru, int n, const struct run *run);
/* dx [n, D] overwritten; it may be dy. For a pass whose `old` was its own state. */
void ssru_backward(real *dx, struct ssru_grad *grad, const real *dy, const real *x,
                   const struct ssru_acts *acts, const struct ssru *ssru, int n, const struct run *run);

#endif
