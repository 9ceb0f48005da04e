/*
 * kern.h: the table of CPU kernels. kern_body.h states each once, in plain C, with its order of summation; it
 * is compiled once a tier (kern_ref.c, kern_avx2.c, kern_vnni.c, kern_amx.c) over that tier's vector of 16 lanes. All
 * tiers give the same bits: sums run over 16 interleaved partial sums joined by a fixed tree, products are
 * fused (fmaf), and exp is the kernel's own. kern_ref.c is the specification.
 *
 * Letters: rows n, columns d; x [n, d] rows lie `d` apart unless a stride (ld) is given.
 */
#ifndef TFM_NUM_KERN_H
#define TFM_NUM_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/real.h"
#include "num/cpu.h"

#define KERN_PANEL 16 /* columns of a packed panel: the lanes of a vector */

enum kern_act {
    ACT_NONE,
    ACT_RELU,      /* max(x, 0) */
    ACT_GELU,      /* x Phi(x), Phi the normal distribution (Hendrycks and Gimpel 2016) */
    ACT_GELU_TANH, /* their formula with tanh that comes near to it */
    ACT_SWISH      /* x sigmoid(x) (Ramachandran et al. 2017); also named SiLU */
};

/* A factor of a product: its element (i, j) at x[i * row + j * col]; one of both strides is 1. */
struct factor {
    const real *x;
    int row, col;
};

/* Blocks of a product, and the reals of scratch that it takes. */
#define PRODUCT_ROWS    512
#define PRODUCT_COLS    128
#define PRODUCT_DEPTH   256
#define PRODUCT_ALIAS   1024 /* rows so many reals apart, or a multiple of it, contend for the first cache */
#define PRODUCT_SCRATCH ((PRODUCT_ROWS + PRODUCT_COLS) * PRODUCT_DEPTH)

struct kern {
    /* c [m, n] (row stride ldc) = or += a b: a's element (i, l) at a[i*rsa + l*csa], b's row l at b + l*ldb.
     * Each element is one chain of fma over l = 0..k-1, starting from 0 or from c. */
    void (*gemm)(real *c, int ldc, const real *a, int rsa, int csa, const real *b, int ldb, int m, int n,
                 int k, bool add);
    /* c [m, n] (row stride ldc) = or += a [m, k] b [k, n] of any size and either order; the same chains of fma. scratch
     * [PRODUCT_SCRATCH], 64-byte aligned. */
    void (*product)(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add,
                    real *scratch);
    /* The same on numbers cut to bf16: terms = 1, or 3 for nearly the accuracy of float (num/kern_bf16.h). NULL where
     * the processor has no such products. */
    void (*product_bf16)(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add,
                         int terms, real *scratch);
    /* y [n, out] = x [n, in] times packed panels (nn/linear.h); the same chains of fma. */
    void (*linear)(real *y, const real *x, const real *packed, int n, int out, int in);
    /* y [cols, rows] of the rows 0.. of x, or of those that index [rows] names. */
    void (*transpose)(real *y, int ldy, const real *x, int ldx, const int *index, int rows, int cols);
    /* y [d] = p [n] times the rows of x that index names: the chains of gemm. */
    void (*mix)(real *y, const real *p, const real *x, int ldx, const int *index, int n, int d);

    double (*sum_squares)(const real *x, size_t n); /* in double: of a gradient block */
    void (*add)(real *y, const real *x, size_t n);      /* y += x */
    void (*multiply)(real *y, const real *x, size_t n); /* y *= x */
    void (*scale)(real *y, real a, size_t n);           /* y *= a */

    /* Softmax over one row of n >= 1 in place: x = exp(scale * (x - max)) / sum, scale > 0. */
    void (*softmax)(real *x, int n, real scale);
    /* dx = scale * p * (dp - sum(p * dp)), in place of dp. */
    void (*softmax_backward)(real *dp, const real *p, int n, real scale);
    /* log(sum(exp(x))) */
    real (*logsumexp)(const real *x, int n);
    /* Label-smoothed cross-entropy of one row of logits (Szegedy et al. 2016): the label weighs 1 -
     * smoothing, and smoothing is spread over all n. Returns the loss; *nll gets -log p(label). With
     * gradient, x becomes dloss/dx. */
    double (*xent)(real *x, int n, int label, real smoothing, bool gradient, double *nll);
    /* R-Drop (Liang et al. 2021) of one row of logits from two passes, a and b: the mean of both label-smoothed
     * cross-entropies, and r_drop / 4 times KL(a || b) + KL(b || a). Returns the loss; *nll gets the mean of
     * both -log p(label); a and b become their gradients. scratch [n]. */
    double (*xent_twins)(real *a, real *b, real *scratch, int n, int label, real smoothing, real r_drop,
                         double *nll);

    /* Layer norm of rows (Ba et al. 2016): y = (x - mean) * rstd * gamma + beta; stats [n, 2] = mean, rstd
     * (may be NULL). With beta NULL the RMS norm (Zhang and Sennrich 2019), whose mean is taken to be 0. */
    void (*norm)(real *y, real *stats, const real *x, const real *gamma, const real *beta, int n, int d,
                 real eps);
    /* dx = (overwritten), dgamma and dbeta +=; dbeta NULL: of the RMS norm. */
    void (*norm_backward)(real *dx, real *dgamma, real *dbeta, const real *dy, const real *x,
                          const real *stats, const real *gamma, int n, int d);

    void (*bias)(real *y, const real *b, int n, int d);            /* y += b, row by row */
    void (*bias_backward)(real *db, const real *dy, int n, int d); /* db += column sums */
    void (*act)(real *y, const real *x, size_t n, enum kern_act act);
    void (*act_backward)(real *dx, const real *x, size_t n, enum kern_act act); /* dx *= act'(x) */

    void (*sigmoid)(real *y, const real *x, size_t n);           /* y = 1 / (1 + exp(-x)); x may be y */
    void (*sigmoid_backward)(real *dx, const real *y, size_t n); /* dx *= y (1 - y) */
    /* A gate between two rows (nn/ssru.h): y = f * a + (1 - f) * b. */
    void (*gate)(real *y, const real *f, const real *a, const real *b, int n);
    /* df and db overwritten, da +=. */
    void (*gate_backward)(real *df, real *da, real *db, const real *dy, const real *f, const real *a,
                          const real *b, int n);

    void (*gate_tanh)(real *y, const real *x, size_t n);           /* y = tanh(x); x may be y */
    void (*gate_tanh_backward)(real *dx, const real *y, size_t n); /* dx *= 1 - y^2 */
    /* Scores of a query q [d] with n keys that lie transposed, kt [d, n] (row stride ldk): y_j = sum over c of v_c
     * tanh(q_c + kt_cj). */
    void (*additive)(real *y, const real *q, const real *kt, int ldk, const real *v, int n, int d);
    /* dq overwritten, dkt (of kt's shape and stride) and dv +=. */
    void (*additive_backward)(real *dq, real *dkt, real *dv, const real *dy, const real *q, const real *kt,
                              int ldk, const real *v, int n, int d);

    /* y = keep(j) ? x / (1 - p) : 0, keep decided by rng_at(key, j); for one row. x may be y. */
    void (*dropout)(real *y, const real *x, int n, uint32_t key, real p);

    /* Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019), g scaled by g_scale
     * first: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, w = (1 - decay) w - step * m /
     * (sqrt(v) + eps); both bias corrections are in step, and eps is added to the uncorrected root (the
     * paper's section 2, at its end). */
    void (*adam)(real *w, real *m, real *v, const real *g, size_t n, real g_scale, real beta1, real beta2,
                 real step, real eps, real decay);

    /* Quantises rows: q [n, int8_stride(d)] in [-127, 127] as this tier stores them, x = scale * q; scale = max|x| /
     * 127 row by row, or `fixed` where that is not 0. */
    void (*quantise)(int8_t *q, real *scales, const real *x, int n, int d, real fixed);
    /* y [n, out] = act(q_scale * scale * (q [n, in] times packed panels (num/int8.h)) + bias). scales [out]; bias
     * [out] or NULL. */
    void (*linear8)(real *y, const int8_t *q, const real *q_scales, const int8_t *panels, const real *scales,
                    const real *bias, int n, int out, int in, enum kern_act act);
};

extern const struct kern kern_ref, kern_avx2, kern_vnni, kern_amx;
const struct kern *kern_for(enum cpu_tier tier); /* a tier that cpu_choose gave */

#endif
