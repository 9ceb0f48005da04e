/*
 * kern_ref.c: the reference tier: 16 lanes in plain C, any machine, float or double. It is the specification
 * that every other tier is compared with, bit for bit.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "num/int8.h"
#include "num/kern.h"

#ifndef KERN_TABLE /* a test builds it with other int8 products */
#define KERN_TABLE kern_ref
#endif
#define KERN_ROWS 2 /* rows of a tile of the matrix product */

#ifdef REAL_IS_DOUBLE
#define FMA fma
#define SQRT sqrt
#else
#define FMA fmaf
#define SQRT sqrtf
#endif

typedef struct {
    real v[16];
} V;

#define LANES for (int l = 0; l < 16; l++)

static inline V V_load(const real *p)
{
    V r;
    memcpy(&r, p, sizeof(r));
    return r;
}

static inline void V_store(real *p, V a) { memcpy(p, &a, sizeof(a)); }

/* The first n lanes; the others are zero, or left alone in memory. */
static inline V V_load_n(const real *p, int n)
{
    V r;
    LANES r.v[l] = l < n ? p[l] : 0;
    return r;
}

static inline void V_store_n(real *p, V a, int n)
{
    for (int l = 0; l < n; l++)
        p[l] = a.v[l];
}

/* Lanes of `other` behind the first n. */
static inline V V_load_over(V other, const real *p, int n)
{
    for (int l = 0; l < n; l++)
        other.v[l] = p[l];
    return other;
}

/* x with all lanes but the first n zero */
static inline V V_first(V x, int n)
{
    LANES x.v[l] = l < n ? x.v[l] : 0;
    return x;
}

static inline V V_set(real x)
{
    V r;
    LANES r.v[l] = x;
    return r;
}

#define V_BINARY(name, expression)      \
    static inline V name(V a, V b)      \
    {                                   \
        V r;                            \
        LANES r.v[l] = expression;      \
        return r;                       \
    }
V_BINARY(V_add, a.v[l] + b.v[l])
V_BINARY(V_sub, a.v[l] - b.v[l])
V_BINARY(V_mul, a.v[l] * b.v[l])
V_BINARY(V_div, a.v[l] / b.v[l])
V_BINARY(V_max, a.v[l] > b.v[l] ? a.v[l] : b.v[l])
V_BINARY(V_min, a.v[l] < b.v[l] ? a.v[l] : b.v[l])

static inline V V_fma(V a, V b, V c)
{
    V r;
    LANES r.v[l] = FMA(a.v[l], b.v[l], c.v[l]);
    return r;
}

static inline V V_sqrt(V a)
{
    LANES a.v[l] = SQRT(a.v[l]);
    return a;
}

#ifdef PRODUCT_BF16 /* a test builds it with products of bf16 */
/* Lane i holds two bf16, each rounded to nearest (a tie upwards); and what they are as floats. */
static inline V V_bf16_pair(V even, V odd)
{
    uint32_t low[16], high[16];
    memcpy(low, &even, sizeof(low));
    memcpy(high, &odd, sizeof(high));
    LANES low[l] = (low[l] + 0x8000) >> 16 | ((high[l] + 0x8000) & 0xffff0000u);
    memcpy(&even, low, sizeof(low));
    return even;
}

static inline V V_bf16_even(V pair)
{
    uint32_t bits[16];
    memcpy(bits, &pair, sizeof(bits));
    LANES bits[l] <<= 16;
    memcpy(&pair, bits, sizeof(bits));
    return pair;
}

static inline V V_bf16_odd(V pair)
{
    uint32_t bits[16];
    memcpy(bits, &pair, sizeof(bits));
    LANES bits[l] &= 0xffff0000u;
    memcpy(&pair, bits, sizeof(bits));
    return pair;
}
#endif

#ifndef REAL_IS_DOUBLE /* for V_exp, which is libm's in double */
static inline V V_round(V a)
{
    LANES a.v[l] = (real)rint((double)a.v[l]);
    return a;
}

/* 2^a for whole a in [-126, 127] */
static inline V V_pow2(V a)
{
    LANES a.v[l] = (real)ldexp(1.0, (int)a.v[l]);
    return a;
}
#endif

/* x where rng_at(key, j + lane) >= limit, else 0 */
static inline V V_drop(V x, uint32_t key, uint32_t j, uint32_t limit)
{
    LANES x.v[l] = rng_at(key, j + (uint32_t)l) >= limit ? x.v[l] : 0;
    return x;
}

/* Rows and columns of 16 vectors change places. */
static inline void V_transpose(V *rows)
{
    for (int i = 0; i < 16; i++)
        for (int l = 0; l < i; l++) {
            real swap = rows[i].v[l];
            rows[i].v[l] = rows[l].v[i];
            rows[l].v[i] = swap;
        }
}

static inline real V_sum(V a)
{
    for (int step = 8; step > 0; step /= 2)
        for (int l = 0; l < step; l++)
            a.v[l] += a.v[l + step];
    return a.v[0];
}

static inline real V_most(V a)
{
    real most = a.v[0];
    for (int l = 1; l < 16; l++)
        most = a.v[l] > most ? a.v[l] : most;
    return most;
}

/* ---- int8 ---- */

#define INT8_ROWS 2
#define INT8_COLS 1
#define INT8_MAX_ROWS 2
#define INT8_MAX_COLS 1

typedef struct {
    int32_t v[16];
} I;

typedef struct {
    int8_t v[16][4];
} W;

typedef struct {
    int8_t v[4];
} X;

static inline I I_start(const int8_t *panel)
{
    (void)panel;
    I zero = { { 0 } };
    return zero;
}

static inline W W_load(const int8_t *p)
{
    W w;
    memcpy(&w, p, sizeof(w));
    return w;
}

static inline X X_load(const int8_t *p)
{
    X x;
    memcpy(&x, p, sizeof(x));
    return x;
}

static inline I I_dot(I sum, X x, W w)
{
    LANES for (int j = 0; j < 4; j++)
        sum.v[l] += x.v[j] * w.v[l][j];
    return sum;
}

static inline V V_of(I sum)
{
    V r;
    LANES r.v[l] = (real)sum.v[l];
    return r;
}

static inline void Q_store(int8_t *p, V a)
{
    for (int l = 0; l < 16; l++)
        p[l] = (int8_t)rint((double)a.v[l]);
}

#include "num/kern_body.h"
