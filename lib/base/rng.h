/*
 * rng.h: random numbers. Counter-based: rng_key mixes the coordinates of a choice into a key, rng_at gives
 * the j-th number of that key; no state, the same in any order. The mixers are the finalisers of splitmix64
 * (Steele et al. 2014) and lowbias32 (Wellons 2018). Inline because kernels use rng_at an element.
 */
#ifndef TFM_BASE_RNG_H
#define TFM_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t rng_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t rng_key(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    return rng_mix(rng_mix(rng_mix(rng_mix(seed) ^ a) ^ b) ^ c);
}

static inline uint32_t rng_at(uint32_t key, uint32_t j)
{
    uint32_t x = key ^ (j * 0x9e3779b9u);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* A uniform double in [0, 1) and an integer in [0, n) from a key. */
static inline double rng_unit(uint64_t key)
{
    return (double)(rng_mix(key) >> 11) * 0x1p-53;
}
static inline uint64_t rng_below(uint64_t key, uint64_t n)
{
    return rng_mix(key) % n;
}

/* A fingerprint of bytes that goes on from another. */
uint64_t rng_hash(uint64_t fingerprint, const void *data, size_t size);

/* Standard normal (Box and Muller 1958) from a key. */
double rng_normal(uint64_t key);

/* Shuffles index[0..n-1] (Fisher and Yates), the same for the same key. */
void rng_shuffle(uint64_t key, int *index, int n);

#endif
