/*
 * kern_amx.c: the tier of AMX (Sapphire Rapids and later): AVX-512 for reals, tiles of 16 x 64 bytes for int8 and, in
 * training, for bf16.
 */
#include "num/kern_avx512.h"

#define KERN_TABLE kern_amx
#define INT8_AMX
#define PRODUCT_BF16

/* Tiles multiply signed by signed: activations are stored as they are. */
static inline void Q_store(int8_t *p, V x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}

static inline V V_of_sums(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }

/* Lane i holds two bf16, each rounded to nearest (a tie upwards); and what they are as floats. */
static inline V V_bf16_pair(V even, V odd)
{
    const __m512i half = _mm512_set1_epi32(0x8000);
    __m512i low = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(even), half), 16);
    __m512i high = _mm512_add_epi32(_mm512_castps_si512(odd), half);
    return _mm512_castsi512_ps(_mm512_mask_blend_epi16(0xaaaaaaaau, low, high));
}

static inline V V_bf16_even(V pair) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pair), 16)); }

static inline V V_bf16_odd(V pair)
{
    return _mm512_castsi512_ps(_mm512_maskz_mov_epi16(0xaaaaaaaau, _mm512_castps_si512(pair)));
}

#include "num/kern_body.h"
