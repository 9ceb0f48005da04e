/*
 * kern_amx.c: the tier of AMX (Sapphire Rapids and later): AVX-512 for reals, tiles of 16 x 64 bytes for int8.
 */
#include "num/kern_avx512.h"

#define KERN_TABLE kern_amx
#define INT8_AMX

/* Tiles multiply signed by signed: activations are stored as they are. */
static inline void Q_store(int8_t *p, V x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
}

static inline V V_of_sums(const int32_t *p) { return _mm512_cvtepi32_ps(_mm512_loadu_si512(p)); }

#include "num/kern_body.h"
