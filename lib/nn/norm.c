/*
 * norm.c: layer and RMS normalisation. The arithmetic is the kernels' (num/kern_body.h); here the parameters
 * meet it.
 */
#include "nn/norm.h"

void norm_forward(real *y, real *stats, const real *x, const struct norm *norm, int n, const struct run *run)
{
    run->kern->norm(y, stats, x, norm->gamma, norm->beta, n, norm->d, norm->eps);
}

void norm_backward(real *dx, real *dgamma, real *dbeta, const real *dy, const real *x, const real *stats,
                   const struct norm *norm, int n, const struct run *run)
{
    run->kern->norm_backward(dx, dgamma, dbeta, dy, x, stats, norm->gamma, n, norm->d);
}
