/*
 * norm.h: layer normalisation with gain and bias (Ba et al. 2016), y = (x - mean) / std * gamma + beta, or RMS
 * normalisation (Zhang and Sennrich 2019), y = x / sqrt(mean(x^2)) * gamma, which takes the mean to be 0 and
 * has no bias.
 */
#ifndef TFM_NN_NORM_H
#define TFM_NN_NORM_H

#include "nn/run.h"

struct norm {
    int d;
    real eps;
    const real *gamma, *beta; /* [d]; beta NULL: RMS */
};

/* y [n, d]; stats [n, 2] (mean or 0, 1/std) for the backward pass, or NULL. */
void norm_forward(real *y, real *stats, const real *x, const struct norm *norm, int n, const struct run *run);
void norm_backward(real *dx, real *dgamma, real *dbeta, const real *dy, const real *x, const real *stats,
                   const struct norm *norm, int n, const struct run *run);

#endif
