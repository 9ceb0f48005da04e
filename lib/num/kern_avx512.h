/*
 * kern_avx512.h: 16 lanes of reals as one register of AVX-512 (F, BW, VL, DQ), for the tiers that have it: kern_vnni.c
 * and kern_amx.c, which add their int8 products.
 */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "num/int8.h"
#include "num/kern.h"

#define KERN_ROWS 8
#define KERN_COLS 2 /* 16 sums of 32 registers */

typedef __m512 V;

static inline V V_load(const real *p) { return _mm512_loadu_ps(p); }
static inline void V_store(real *p, V x) { _mm512_storeu_ps(p, x); }

static inline __mmask16 V_mask(int n) { return (__mmask16)((1u << n) - 1); } /* n <= 16 */

/* The first n lanes; the others are zero, or left alone in memory. */
static inline V V_load_n(const real *p, int n) { return _mm512_maskz_loadu_ps(V_mask(n), p); }
/* Lanes of `other` behind the first n. */
static inline V V_load_over(V other, const real *p, int n) { return _mm512_mask_loadu_ps(other, V_mask(n), p); }
static inline void V_store_n(real *p, V x, int n) { _mm512_mask_storeu_ps(p, V_mask(n), x); }

/* x with all lanes but the first n zero */
static inline V V_first(V x, int n) { return _mm512_maskz_mov_ps(V_mask(n), x); }

static inline V V_set(real x) { return _mm512_set1_ps(x); }
static inline V V_add(V x, V y) { return _mm512_add_ps(x, y); }
static inline V V_sub(V x, V y) { return _mm512_sub_ps(x, y); }
static inline V V_mul(V x, V y) { return _mm512_mul_ps(x, y); }
static inline V V_div(V x, V y) { return _mm512_div_ps(x, y); }
static inline V V_max(V x, V y) { return _mm512_max_ps(x, y); }
static inline V V_min(V x, V y) { return _mm512_min_ps(x, y); }
static inline V V_fma(V x, V y, V z) { return _mm512_fmadd_ps(x, y, z); }
static inline V V_sqrt(V x) { return _mm512_sqrt_ps(x); }

static inline V V_round(V x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* 2^x for whole x in [-126, 127] */
static inline V V_pow2(V x)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(127)), 23));
}

/* x where rng_at(key, j + lane) >= limit, else 0 */
static inline V V_drop(V x, uint32_t key, uint32_t j, uint32_t limit)
{
    __m512i lane = _mm512_add_epi32(_mm512_set1_epi32((int)j),
                                    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    __m512i h = _mm512_xor_si512(_mm512_set1_epi32((int)key),
                                 _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)0x9e3779b9u)));
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 16)), _mm512_set1_epi32(0x7feb352d));
    h = _mm512_mullo_epi32(_mm512_xor_si512(h, _mm512_srli_epi32(h, 15)),
                           _mm512_set1_epi32((int)0x846ca68bu));
    h = _mm512_xor_si512(h, _mm512_srli_epi32(h, 16));
    return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(h, _mm512_set1_epi32((int)limit)), x);
}

/* Rows and columns of 16 vectors change places: pairs, then fours within each quarter of a register, then the
 * quarters, first of registers 4 apart, then of those 8 apart. */
static inline void V_transpose(V *rows)
{
    V pair[16], four[16];
    for (int i = 0; i < 16; i += 2) {
        pair[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        pair[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int k = 0; k < 2; k++) {
            four[i + 2 * k] = _mm512_shuffle_ps(pair[i + k], pair[i + 2 + k], 0x44);
            four[i + 2 * k + 1] = _mm512_shuffle_ps(pair[i + k], pair[i + 2 + k], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        V even_low = _mm512_shuffle_f32x4(four[i], four[i + 4], 0x88);
        V odd_low = _mm512_shuffle_f32x4(four[i], four[i + 4], 0xdd);
        V even_high = _mm512_shuffle_f32x4(four[i + 8], four[i + 12], 0x88);
        V odd_high = _mm512_shuffle_f32x4(four[i + 8], four[i + 12], 0xdd);
        rows[i] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
        rows[i + 4] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(even_low, even_high, 0xdd);
        rows[i + 12] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd);
    }
}

static inline real V_sum(V x)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

static inline real V_most(V x) { return _mm512_reduce_max_ps(x); }
