/*
 * kern_vnni.c: the tier of AVX-512 with VNNI.
 */
#include "num/kern_avx512.h"

#define KERN_TABLE kern_vnni

/* ---- int8: vpdpbusd multiplies unsigned by signed, so activations are stored with 128 added ---- */

#define INT8_ROWS 8
#define INT8_COLS 2
#define INT8_MAX_ROWS 8
#define INT8_MAX_COLS 4

typedef __m512i I;
typedef __m512i W;
typedef __m512i X;

static inline I I_start(const int8_t *panel) { return _mm512_loadu_si512(panel); }
static inline W W_load(const int8_t *p) { return _mm512_loadu_si512(p); }

static inline X X_load(const int8_t *p)
{
    int32_t x;
    memcpy(&x, p, sizeof(x));
    return _mm512_set1_epi32(x);
}

/* Not _mm512_dpbusd_epi32: gcc 12 copies each sum twice around it, which makes products a third slower. */
static inline I I_dot(I sum, X x, W w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}

static inline V V_of(I sum) { return _mm512_cvtepi32_ps(sum); }

/* To nearest even, as the control register has it. */
static inline void Q_store(int8_t *p, V x)
{
    __m128i q = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x));
    _mm_storeu_si128((__m128i *)p, _mm_xor_si128(q, _mm_set1_epi8(-128)));
}

#include "num/kern_body.h"
