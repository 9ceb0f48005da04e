/*
 * kern_avx2.c: the tier of AVX2 and FMA: 16 lanes are two registers of 8. Compiled with -mavx2 -mfma.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "num/int8.h"
#include "num/kern.h"

#define KERN_TABLE kern_avx2
#define KERN_ROWS 6 /* 12 sums, 2 of b, 1 of a: 15 of 16 registers */

typedef struct {
    __m256 a, b;
} V;

static inline V V_pair(__m256 a, __m256 b)
{
    V r = { a, b };
    return r;
}

static inline V V_load(const real *p) { return V_pair(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }

static inline void V_store(real *p, V x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

static inline __m256i V_mask(int n) /* lanes 0..n-1 of 8 */
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* The first n lanes; the others are zero, or left alone in memory. Masked stores are slow on some processors:
 * a full vector goes without. */
static inline V V_load_n(const real *p, int n)
{
    if (n >= 16)
        return V_load(p);
    return V_pair(_mm256_maskload_ps(p, V_mask(n)), _mm256_maskload_ps(p + 8, V_mask(n - 8)));
}

static inline void V_store_n(real *p, V x, int n)
{
    if (n >= 16) {
        V_store(p, x);
        return;
    }
    _mm256_maskstore_ps(p, V_mask(n), x.a);
    _mm256_maskstore_ps(p + 8, V_mask(n - 8), x.b);
}

/* Lanes of `other` behind the first n. */
static inline V V_load_over(V other, const real *p, int n)
{
    V x = V_load_n(p, n);
    return V_pair(_mm256_blendv_ps(other.a, x.a, _mm256_castsi256_ps(V_mask(n))),
                  _mm256_blendv_ps(other.b, x.b, _mm256_castsi256_ps(V_mask(n - 8))));
}

/* x with all lanes but the first n zero */
static inline V V_first(V x, int n)
{
    return V_pair(_mm256_and_ps(x.a, _mm256_castsi256_ps(V_mask(n))),
                  _mm256_and_ps(x.b, _mm256_castsi256_ps(V_mask(n - 8))));
}

static inline V V_set(real x) { return V_pair(_mm256_set1_ps(x), _mm256_set1_ps(x)); }

#define V_BINARY(name, instruction)                                          \
    static inline V name(V x, V y)                                           \
    {                                                                        \
        return V_pair(instruction(x.a, y.a), instruction(x.b, y.b));         \
    }
V_BINARY(V_add, _mm256_add_ps)
V_BINARY(V_sub, _mm256_sub_ps)
V_BINARY(V_mul, _mm256_mul_ps)
V_BINARY(V_div, _mm256_div_ps)
V_BINARY(V_max, _mm256_max_ps)
V_BINARY(V_min, _mm256_min_ps)

static inline V V_fma(V x, V y, V z)
{
    return V_pair(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}

static inline V V_sqrt(V x) { return V_pair(_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)); }

static inline V V_round(V x)
{
    return V_pair(_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                  _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* 2^x for whole x in [-126, 127] */
static inline V V_pow2(V x)
{
    __m256i bias = _mm256_set1_epi32(127);
    return V_pair(
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(x.a), bias), 23)),
        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(x.b), bias), 23)));
}

/* All ones where rng_at(key, j + lane) >= limit, 8 lanes */
static inline __m256 V_keep(uint32_t key, uint32_t j, uint32_t limit)
{
    __m256i lane = _mm256_add_epi32(_mm256_set1_epi32((int)j), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i x = _mm256_xor_si256(_mm256_set1_epi32((int)key),
                                 _mm256_mullo_epi32(lane, _mm256_set1_epi32((int)0x9e3779b9u)));
    x = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32(x, 16)), _mm256_set1_epi32(0x7feb352d));
    x = _mm256_mullo_epi32(_mm256_xor_si256(x, _mm256_srli_epi32(x, 15)),
                           _mm256_set1_epi32((int)0x846ca68bu));
    x = _mm256_xor_si256(x, _mm256_srli_epi32(x, 16));
    __m256i l = _mm256_set1_epi32((int)limit); /* unsigned x >= l: max(x, l) == x */
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_max_epu32(x, l), x));
}

static inline V V_drop(V x, uint32_t key, uint32_t j, uint32_t limit)
{
    return V_pair(_mm256_and_ps(x.a, V_keep(key, j, limit)), _mm256_and_ps(x.b, V_keep(key, j + 8, limit)));
}

/* Rows and columns of 8 registers change places: pairs, then fours, then halves. */
static inline void transpose_8(__m256 *r)
{
    __m256 pair[8], four[8];
    for (int i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            four[i + 2 * k] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0x44);
            four[i + 2 * k + 1] = _mm256_shuffle_ps(pair[i + k], pair[i + 2 + k], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(four[i], four[i + 4], 0x31);
    }
}

/* Rows and columns of 16 vectors change places: each quarter, and two quarters with each other. */
static inline void V_transpose(V *rows)
{
    __m256 block[4][8];
    for (int i = 0; i < 8; i++) {
        block[0][i] = rows[i].a;
        block[1][i] = rows[i + 8].a;
        block[2][i] = rows[i].b;
        block[3][i] = rows[i + 8].b;
    }
    for (int k = 0; k < 4; k++)
        transpose_8(block[k]);
    for (int i = 0; i < 8; i++) {
        rows[i] = V_pair(block[0][i], block[1][i]);
        rows[i + 8] = V_pair(block[2][i], block[3][i]);
    }
}

static inline real V_sum(V x)
{
    __m256 s8 = _mm256_add_ps(x.a, x.b);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

static inline real V_most(V x)
{
    __m256 m8 = _mm256_max_ps(x.a, x.b);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}

/* ---- int8: vpmaddubsw multiplies unsigned by signed, so the weight's sign goes to the activation; two products
 * are at most 2 * 127^2, which 16 bits hold ---- */

#define INT8_ROWS 4
#define INT8_COLS 1
#define INT8_MAX_ROWS 4
#define INT8_MAX_COLS 4

typedef struct {
    __m256i a, b;
} I;

typedef struct {
    __m256i a, b;
} W;

typedef __m256i X;

static inline I I_start(const int8_t *panel)
{
    (void)panel;
    I zero = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    return zero;
}

static inline W W_load(const int8_t *p)
{
    W w = { _mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 32)) };
    return w;
}

static inline X X_load(const int8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof(x));
    return _mm256_set1_epi32(x);
}

static inline __m256i dot_8(__m256i sum, __m256i x, __m256i w)
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

static inline I I_dot(I sum, X x, W w)
{
    I r = { dot_8(sum.a, x, w.a), dot_8(sum.b, x, w.b) };
    return r;
}

static inline V V_of(I sum) { return V_pair(_mm256_cvtepi32_ps(sum.a), _mm256_cvtepi32_ps(sum.b)); }

/* To nearest even, as the control register has it. */
static inline void Q_store(int8_t *p, V x)
{
    __m256i q = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    q = _mm256_permute4x64_epi64(q, 0xd8);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1)));
}

#include "num/kern_body.h"
