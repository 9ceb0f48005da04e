/*
 * kern_body.h: every kernel, once, over a vector V of 16 lanes that the including file defines (kern_ref.c,
 * kern_avx2.c, kern_vnni.c). The order of each sum is written here and is the same in all tiers: lane l of a
 * vector adds the elements l, l + 16, l + 32, ..., and V_sum joins the lanes by halves. See kern.h for what
 * each kernel computes.
 */

/* exp by 2^n * e^r, |r| <= ln(2)/2, ln(2) in two parts (Cody and Waite 1980), a polynomial of degree 6 by
 * Taylor's coefficients; relative error below 2e-7. In double: libm's. */
static inline V V_exp(V x)
{
#ifdef REAL_IS_DOUBLE
    LANES x.v[l] = exp(x.v[l]);
    return x;
#else
    x = V_max(V_min(x, V_set(88.0f)), V_set(-87.0f));
    V n = V_round(V_mul(x, V_set(1.44269504f)));
    V r = V_fma(n, V_set(-0.693359375f), x);
    r = V_fma(n, V_set(2.12194440e-4f), r);
    V p = V_set(1.0f / 720);
    p = V_fma(p, r, V_set(1.0f / 120));
    p = V_fma(p, r, V_set(1.0f / 24));
    p = V_fma(p, r, V_set(1.0f / 6));
    p = V_fma(p, r, V_set(0.5f));
    p = V_fma(p, r, V_set(1.0f));
    p = V_fma(p, r, V_set(1.0f));
    return V_mul(p, V_pow2(n));
#endif
}

/* ---- matrix products ---- */

/* A tile of `rows` x (16 * cols) sums in registers: column block v of b's row l at b + l*ldb + v*bstep. The
 * last block has `tail` lanes. rows and cols are constants where this is called. */
static inline __attribute__((always_inline)) void tile(real *c, int ldc, const real *a, int rsa, int csa,
                                                       const real *b, int ldb, size_t bstep, int k, bool add,
                                                       int tail, const int rows, const int cols)
{
    V sum[8][4];
#define FOR_TILE                   \
    for (int i = 0; i < rows; i++) \
        for (int v = 0; v < cols; v++)
#define LANES_OF(v) ((v) == cols - 1 ? tail : 16)
    FOR_TILE
    {
        if (add)
            sum[i][v] = V_load_n(c + (size_t)i * ldc + 16 * v, LANES_OF(v));
        else
            sum[i][v] = V_set(0);
    }
    /* Twice the same loop: with the question for the tail inside, translation took 2 to 3 % longer. */
    if (tail == 16) {
        for (int l = 0; l < k; l++) {
            V row[4];
            for (int v = 0; v < cols; v++)
                row[v] = V_load(b + (size_t)l * ldb + v * bstep);
            for (int i = 0; i < rows; i++) {
                V x = V_set(a[(size_t)i * rsa + (size_t)l * csa]);
                for (int v = 0; v < cols; v++)
                    sum[i][v] = V_fma(x, row[v], sum[i][v]);
            }
        }
    } else {
        for (int l = 0; l < k; l++) {
            V row[4];
            for (int v = 0; v < cols; v++)
                row[v] = V_load_n(b + (size_t)l * ldb + v * bstep, LANES_OF(v));
            for (int i = 0; i < rows; i++) {
                V x = V_set(a[(size_t)i * rsa + (size_t)l * csa]);
                for (int v = 0; v < cols; v++)
                    sum[i][v] = V_fma(x, row[v], sum[i][v]);
            }
        }
    }
    FOR_TILE V_store_n(c + (size_t)i * ldc + 16 * v, sum[i][v], LANES_OF(v));
#undef FOR_TILE
#undef LANES_OF
}

/* All m rows against one or more column blocks. */
static inline __attribute__((always_inline)) void column(real *c, int ldc, const real *a, int rsa, int csa,
                                                         const real *b, int ldb, size_t bstep, int m, int k,
                                                         bool add, int tail, const int cols)
{
#define TILE(rows) tile(c, ldc, a, rsa, csa, b, ldb, bstep, k, add, tail, rows, cols)
    for (; m >= KERN_ROWS; m -= KERN_ROWS, a += (size_t)KERN_ROWS * rsa, c += (size_t)KERN_ROWS * ldc) {
        for (int i = KERN_ROWS; i < 2 * KERN_ROWS && i < m; i++) /* the sums of the next tile */
            for (int v = 0; v < cols; v++)
                __builtin_prefetch(c + (size_t)i * ldc + 16 * v, 1);
        TILE(KERN_ROWS);
    }
#define LAST(rows)            \
    case rows:                \
        if (rows < KERN_ROWS) \
            TILE(rows);       \
        break
    switch (m) {
        LAST(1);
        LAST(2);
        LAST(3);
        LAST(4);
        LAST(5);
        LAST(6);
        LAST(7);
    }
#undef LAST
#undef TILE
}

/* Column blocks go by KERN_COLS where many rows share them, and by 4 where a single row would leave the
 * multipliers waiting for each other. */
#ifndef KERN_COLS
#define KERN_COLS 1
#endif

static void columns(real *c, int ldc, const real *a, int rsa, int csa, const real *b, int ldb, size_t bstep,
                    int m, int n, int k, bool add)
{
    if (m == 1)
        for (; n >= 64; n -= 64, b += 4 * bstep, c += 64)
            tile(c, ldc, a, rsa, csa, b, ldb, bstep, k, add, 16, 1, 4);
    for (; n >= 16 * KERN_COLS; n -= 16 * KERN_COLS, b += KERN_COLS * bstep, c += 16 * KERN_COLS)
        column(c, ldc, a, rsa, csa, b, ldb, bstep, m, k, add, 16, KERN_COLS);
    for (; n > 0; n -= 16, b += bstep, c += 16)
        if (n >= 16)
            column(c, ldc, a, rsa, csa, b, ldb, bstep, m, k, add, 16, 1);
        else
            column(c, ldc, a, rsa, csa, b, ldb, bstep, m, k, add, n, 1);
}

static void body_gemm(real *c, int ldc, const real *a, int rsa, int csa, const real *b, int ldb, int m, int n,
                      int k, bool add)
{
    columns(c, ldc, a, rsa, csa, b, ldb, 16, m, n, k, add);
}

static void body_linear(real *y, const real *x, const real *packed, int n, int out, int in)
{
    columns(y, out, x, in, 1, packed, 16, (size_t)in * 16, n, out, in, false);
}

static void body_transpose(real *y, int ldy, const real *x, int ldx, const int *index, int rows, int cols)
{
    for (int i = 0; i < rows; i += 16) {
        int height = rows - i < 16 ? rows - i : 16;
        const real *row[16];
        for (int l = 0; l < height; l++)
            row[l] = x + (size_t)(index ? index[i + l] : i + l) * ldx;
        for (int j = 0; j < cols; j += 16) {
            int width = cols - j < 16 ? cols - j : 16;
            V square[16];
            for (int l = 0; l < 16; l++)
                square[l] = l < height ? V_load_n(row[l] + j, width) : V_set(0);
            V_transpose(square);
            for (int l = 0; l < width; l++)
                V_store_n(y + (size_t)(j + l) * ldy + i, square[l], height);
        }
    }
}

#include "num/kern_product.h"

/* As many columns as there are registers to hide that each sum waits for itself. */
static void body_mix(real *y, const real *p, const real *x, int ldx, const int *index, int n, int d)
{
    for (int j = 0; j < d; j += 64, x += 64, y += 64) {
        int width = d - j < 64 ? d - j : 64, n_vectors = (width + 15) / 16;
        V sum[4];
        for (int v = 0; v < 4; v++)
            sum[v] = V_set(0);
        for (int l = 0; l < n; l++) {
            const real *row = x + (size_t)index[l] * ldx;
            V weight = V_set(p[l]);
            for (int v = 0; v < n_vectors; v++)
                sum[v] =
                    V_fma(weight, V_load_n(row + 16 * v, width - 16 * v < 16 ? width - 16 * v : 16), sum[v]);
        }
        for (int v = 0; v < n_vectors; v++)
            V_store_n(y + 16 * v, sum[v], width - 16 * v < 16 ? width - 16 * v : 16);
    }
}

/* ---- loops over one row: full vectors, then the rest ---- */

#define FOR_VECTORS(n) for (int j = 0, n_ = 0; j < (n) && (n_ = (n)-j < 16 ? (n)-j : 16); j += 16)

static real row_dot(const real *x, const real *y, int n)
{
    V sum = V_set(0);
    FOR_VECTORS(n) sum = V_fma(V_load_n(x + j, n_), V_load_n(y + j, n_), sum);
    return V_sum(sum);
}

static double body_sum_squares(const real *x, size_t n)
{
    double sum[8] = { 0 };
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int l = 0; l < 8; l++)
            sum[l] += (double)x[i + l] * (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        sum[l] += (double)x[i] * (double)x[i];
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

static void body_add(real *y, const real *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void body_multiply(real *y, const real *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= x[i];
}

static void body_scale(real *y, real a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= a;
}

static real row_sum(const real *x, int n)
{
    V sum = V_set(0);
    FOR_VECTORS(n) sum = V_add(sum, V_load_n(x + j, n_));
    return V_sum(sum);
}

static real row_max(const real *x, int n)
{
    V most = V_set(x[0]);
    int j = 0;
    for (; j + 16 <= n; j += 16)
        most = V_max(V_load(x + j), most);
    if (j < n)
        most = V_max(V_load_over(most, x + j, n - j), most);
    return V_most(most);
}

#define SHORT_VECTORS 4 /* of a row that softmax keeps in registers */

/* x = exp(scale * (x - max)), the sum returned */
static real row_exp(real *y, const real *x, int n, real max, real scale)
{
    V sum = V_set(0), m = V_set(max), s = V_set(scale);
    int j = 0;
    for (; j + 16 <= n; j += 16) {
        V e = V_exp(V_mul(V_sub(V_load(x + j), m), s));
        if (y)
            V_store(y + j, e);
        sum = V_add(sum, e);
    }
    if (j < n) {
        V e = V_first(V_exp(V_mul(V_sub(V_load_n(x + j, n - j), m), s)), n - j);
        if (y)
            V_store_n(y + j, e, n - j);
        sum = V_add(sum, e);
    }
    return V_sum(sum);
}

static void row_scale(real *x, int n, real a)
{
    V s = V_set(a);
    FOR_VECTORS(n) V_store_n(x + j, V_mul(V_load_n(x + j, n_), s), n_);
}

/* A row of so many vectors, a constant where this is called, that stays in registers. */
static inline __attribute__((always_inline)) void short_softmax(real *x, int n, real scale, const int vectors)
{
    V e[SHORT_VECTORS], most = V_set(x[0]), sum = V_set(0);
    int last = n - 16 * (vectors - 1);
#define LANES_OF(v) ((v) < vectors - 1 ? 16 : last)
    for (int v = 0; v < vectors; v++) {
        e[v] = V_load_over(most, x + 16 * v, LANES_OF(v));
        most = V_max(e[v], most);
    }
    most = V_set(V_most(most));
    for (int v = 0; v < vectors; v++) {
        e[v] = V_first(V_exp(V_mul(V_sub(e[v], most), V_set(scale))), LANES_OF(v));
        sum = V_add(sum, e[v]);
    }
    V inverse = V_set(1 / V_sum(sum));
    for (int v = 0; v < vectors; v++)
        V_store_n(x + 16 * v, V_mul(e[v], inverse), LANES_OF(v));
#undef LANES_OF
}

static void body_softmax(real *x, int n, real scale)
{
    switch ((n + 15) / 16) {
    case 1: short_softmax(x, n, scale, 1); return;
    case 2: short_softmax(x, n, scale, 2); return;
    case 3: short_softmax(x, n, scale, 3); return;
    case SHORT_VECTORS: short_softmax(x, n, scale, SHORT_VECTORS); return;
    }
    real sum = row_exp(x, x, n, row_max(x, n), scale);
    row_scale(x, n, 1 / sum);
}

static void body_softmax_backward(real *dp, const real *p, int n, real scale)
{
    V mean = V_set(row_dot(dp, p, n)), s = V_set(scale);
    FOR_VECTORS(n)
    {
        V d = V_sub(V_load_n(dp + j, n_), mean);
        V_store_n(dp + j, V_mul(V_mul(V_load_n(p + j, n_), d), s), n_);
    }
}

/* The logarithm is libm's in double, rounded once: its last bit is beyond a float's. */
static real body_logsumexp(const real *x, int n)
{
    real max = row_max(x, n);
    return (real)((double)max + log((double)row_exp(NULL, x, n, max, 1)));
}

static double body_xent(real *x, int n, int label, real smoothing, bool gradient, double *nll)
{
    double mean = (double)row_sum(x, n) / n, at_label = (double)x[label];
    real max = row_max(x, n);
    real total = row_exp(gradient ? x : NULL, x, n, max, 1);
    double lse = (double)max + log((double)total);
    if (gradient) {
        V scale = V_set(1 / total), spread = V_set(-smoothing / (real)n);
        FOR_VECTORS(n) V_store_n(x + j, V_fma(V_load_n(x + j, n_), scale, spread), n_);
        x[label] -= 1 - smoothing;
    }
    *nll = lse - at_label;
    return lse - (1 - (double)smoothing) * at_label - (double)smoothing * mean;
}

/* With d = a - b, c = lse(a) - lse(b), p and q the softmax of a and b:
 *     KL(p || q) = sum(p d) - c          d(KL(p || q) + KL(q || p))/da = p (d - c - KL(p || q)) + p - q
 * and the same with the names exchanged. */
static double body_xent_twins(real *a, real *b, real *scratch, int n, int label, real smoothing, real r_drop,
                              double *nll)
{
    double mean = ((double)row_sum(a, n) + (double)row_sum(b, n)) / (2 * (double)n);
    double at_label = ((double)a[label] + (double)b[label]) / 2;
    FOR_VECTORS(n) V_store_n(scratch + j, V_sub(V_load_n(a + j, n_), V_load_n(b + j, n_)), n_);
    real max_a = row_max(a, n), max_b = row_max(b, n);
    real total_a = row_exp(a, a, n, max_a, 1), total_b = row_exp(b, b, n, max_b, 1);
    double lse_a = (double)max_a + log((double)total_a), lse_b = (double)max_b + log((double)total_b);
    double c = lse_a - lse_b;
    real kl_a = (real)((double)row_dot(a, scratch, n) / (double)total_a - c);
    real kl_b = (real)(c - (double)row_dot(b, scratch, n) / (double)total_b);

    V half = V_set((real)0.5), spread = V_set(-smoothing / (2 * (real)n)), weight = V_set(r_drop / 4);
    V scale_a = V_set(1 / total_a), scale_b = V_set(1 / total_b);
    V shift_a = V_set((real)(1 - c) - kl_a), shift_b = V_set((real)(1 + c) - kl_b);
    FOR_VECTORS(n)
    {
        V d = V_load_n(scratch + j, n_);
        V p = V_mul(V_load_n(a + j, n_), scale_a), q = V_mul(V_load_n(b + j, n_), scale_b);
        V da = V_sub(V_mul(p, V_add(d, shift_a)), q), db = V_sub(V_mul(q, V_sub(shift_b, d)), p);
        V_store_n(a + j, V_fma(da, weight, V_fma(p, half, spread)), n_);
        V_store_n(b + j, V_fma(db, weight, V_fma(q, half, spread)), n_);
    }
    a[label] -= (1 - smoothing) / 2;
    b[label] -= (1 - smoothing) / 2;
    double lse = (lse_a + lse_b) / 2;
    *nll = lse - at_label;
    return lse - (1 - (double)smoothing) * at_label - (double)smoothing * mean +
           (double)r_drop / 4 * ((double)kl_a + (double)kl_b);
}

/* ---- norms ---- */

/* All rows; rms is a constant where this is called. */
static inline __attribute__((always_inline)) void norm_rows(real *y, real *stats, const real *x,
                                                            const real *gamma, const real *beta, int n, int d,
                                                            real eps, const bool rms)
{
    for (int i = 0; i < n; i++, x += d, y += d) {
        V sum = V_set(0);
        if (!rms)
            FOR_VECTORS(d) sum = V_add(sum, V_load_n(x + j, n_));
        real mean = V_sum(sum) / (real)d;
        V m = V_set(mean);
        sum = V_set(0);
        int full = d & ~15;
        for (int j = 0; j < full; j += 16) {
            V c = V_sub(V_load(x + j), m);
            sum = V_fma(c, c, sum);
        }
        if (full < d) {
            V c = V_first(V_sub(V_load_n(x + full, d - full), m), d - full);
            sum = V_fma(c, c, sum);
        }
        real variance = V_sum(sum) / (real)d;
        real rstd = (real)1 / (real)sqrt((double)variance + (double)eps);
        V r = V_set(rstd);
        FOR_VECTORS(d)
        {
            V c = V_mul(V_sub(V_load_n(x + j, n_), m), r), g = V_load_n(gamma + j, n_);
            V_store_n(y + j, rms ? V_mul(c, g) : V_fma(c, g, V_load_n(beta + j, n_)), n_);
        }
        if (stats) {
            stats[2 * i] = mean;
            stats[2 * i + 1] = rstd;
        }
    }
}

static void body_norm(real *y, real *stats, const real *x, const real *gamma, const real *beta, int n, int d,
                      real eps)
{
    if (beta)
        norm_rows(y, stats, x, gamma, beta, n, d, eps, false);
    else
        norm_rows(y, stats, x, gamma, NULL, n, d, eps, true);
}

/* y = xhat * gamma + beta, xhat = (x - mean) * rstd:
 * dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * gamma; the RMS norm has no mean(g). */
static inline __attribute__((always_inline)) void
norm_rows_backward(real *dx, real *dgamma, real *dbeta, const real *dy, const real *x, const real *stats,
                   const real *gamma, int n, int d, const bool rms)
{
    for (int i = 0; i < n; i++, x += d, dy += d, dx += d) {
        V m = V_set(stats[2 * i]), r = V_set(stats[2 * i + 1]), sum_g = V_set(0), sum_gx = V_set(0);
        FOR_VECTORS(d)
        {
            V xhat = V_mul(V_sub(V_load_n(x + j, n_), m), r), up = V_load_n(dy + j, n_);
            V g = V_mul(up, V_load_n(gamma + j, n_));
            sum_gx = V_fma(g, xhat, sum_gx);
            V_store_n(dgamma + j, V_fma(up, xhat, V_load_n(dgamma + j, n_)), n_);
            if (!rms) {
                sum_g = V_add(sum_g, g);
                V_store_n(dbeta + j, V_add(up, V_load_n(dbeta + j, n_)), n_);
            }
        }
        V mean_g = V_set(V_sum(sum_g) / (real)d), mean_gx = V_set(V_sum(sum_gx) / (real)d);
        FOR_VECTORS(d)
        {
            V xhat = V_mul(V_sub(V_load_n(x + j, n_), m), r);
            V g = V_sub(V_mul(V_load_n(dy + j, n_), V_load_n(gamma + j, n_)), mean_g);
            V_store_n(dx + j, V_mul(r, V_sub(g, V_mul(xhat, mean_gx))), n_);
        }
    }
}

static void body_norm_backward(real *dx, real *dgamma, real *dbeta, const real *dy, const real *x,
                               const real *stats, const real *gamma, int n, int d)
{
    if (dbeta)
        norm_rows_backward(dx, dgamma, dbeta, dy, x, stats, gamma, n, d, false);
    else
        norm_rows_backward(dx, dgamma, NULL, dy, x, stats, gamma, n, d, true);
}

/* ---- element by element ---- */

static void body_bias(real *y, const real *b, int n, int d)
{
    for (int i = 0; i < n; i++, y += d)
        FOR_VECTORS(d) V_store_n(y + j, V_add(V_load_n(y + j, n_), V_load_n(b + j, n_)), n_);
}

static void body_bias_backward(real *db, const real *dy, int n, int d)
{
    for (int i = 0; i < n; i++, dy += d)
        FOR_VECTORS(d) V_store_n(db + j, V_add(V_load_n(db + j, n_), V_load_n(dy + j, n_)), n_);
}

#include "num/kern_act.h"

static void body_sigmoid(real *y, const real *x, size_t n)
{
    each(y, x, n, V_sigmoid);
}

static void body_sigmoid_backward(real *dx, const real *y, size_t n)
{
    V one = V_set(1);
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V s = V_load_n(y + i, n_);
        V_store_n(dx + i, V_mul(V_load_n(dx + i, n_), V_mul(s, V_sub(one, s))), n_);
    }
}

/* As b + f * (a - b). */
static void body_gate(real *y, const real *f, const real *a, const real *b, int n)
{
    FOR_VECTORS(n)
    {
        V v = V_load_n(b + j, n_);
        V_store_n(y + j, V_fma(V_load_n(f + j, n_), V_sub(V_load_n(a + j, n_), v), v), n_);
    }
}

static void body_gate_backward(real *df, real *da, real *db, const real *dy, const real *f, const real *a,
                               const real *b, int n)
{
    V one = V_set(1);
    FOR_VECTORS(n)
    {
        V up = V_load_n(dy + j, n_), g = V_load_n(f + j, n_);
        V_store_n(df + j, V_mul(up, V_sub(V_load_n(a + j, n_), V_load_n(b + j, n_))), n_);
        V_store_n(da + j, V_fma(up, g, V_load_n(da + j, n_)), n_);
        V_store_n(db + j, V_mul(up, V_sub(one, g)), n_);
    }
}

static void body_dropout(real *y, const real *x, int n, uint32_t key, real p)
{
    uint32_t limit = (uint32_t)((double)p * 4294967296.0);
    V scale = V_set(1 / (1 - p));
    FOR_VECTORS(n) V_store_n(y + j, V_drop(V_mul(V_load_n(x + j, n_), scale), key, (uint32_t)j, limit), n_);
}

static void body_adam(real *w, real *m, real *v, const real *g, size_t n, real g_scale, real beta1,
                      real beta2, real step, real eps, real decay)
{
    V gs = V_set(g_scale), b1 = V_set(beta1), b2 = V_set(beta2), c1 = V_set(1 - beta1), c2 = V_set(1 - beta2);
    V st = V_set(-step), e = V_set(eps), keep = V_set(1 - decay);
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V x = V_mul(V_load_n(g + i, n_), gs);
        V first = V_fma(V_load_n(m + i, n_), b1, V_mul(x, c1));
        V second = V_fma(V_load_n(v + i, n_), b2, V_mul(V_mul(x, x), c2));
        V_store_n(m + i, first, n_);
        V_store_n(v + i, second, n_);
        V old = V_mul(V_load_n(w + i, n_), keep);
        V_store_n(w + i, V_fma(st, V_div(first, V_add(V_sqrt(second), e)), old), n_);
    }
}

#include "num/kern_gates.h"
#include "num/kern_additive.h"
#include "num/kern_int8.h"
#ifdef PRODUCT_BF16
#include "num/kern_bf16.h"
#endif

const struct kern KERN_TABLE = {
    .gemm = body_gemm,
    .linear = body_linear,
    .product = body_product,
#ifdef PRODUCT_BF16
    .product_bf16 = body_product_bf16,
#endif
    .transpose = body_transpose,
    .mix = body_mix,
    .sum_squares = body_sum_squares,
    .add = body_add,
    .multiply = body_multiply,
    .scale = body_scale,
    .softmax = body_softmax,
    .softmax_backward = body_softmax_backward,
    .logsumexp = body_logsumexp,
    .xent = body_xent,
    .xent_twins = body_xent_twins,
    .norm = body_norm,
    .norm_backward = body_norm_backward,
    .bias = body_bias,
    .bias_backward = body_bias_backward,
    .act = body_act,
    .act_backward = body_act_backward,
    .sigmoid = body_sigmoid,
    .sigmoid_backward = body_sigmoid_backward,
    .gate = body_gate,
    .gate_backward = body_gate_backward,
    .gate_tanh = body_gate_tanh,
    .gate_tanh_backward = body_gate_tanh_backward,
    .additive = body_additive,
    .additive_backward = body_additive_backward,
    .dropout = body_dropout,
    .adam = body_adam,
    .quantise = body_quantise,
    .linear8 = body_linear8,
};
