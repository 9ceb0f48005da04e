/*
 * rng.c: the random numbers that are not needed an element at a time, made from the counter-based mixers of
 * rng.h: the same key gives the same result, in any order and on any thread.
 */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

/* Box and Muller: sqrt(-2 ln u) cos(2 pi v), with u in (0, 1] so that the logarithm is finite. */
double rng_normal(uint64_t key)
{
    double u = 1.0 - rng_unit(rng_key(key, 0, 0, 0));
    double v = rng_unit(rng_key(key, 1, 0, 0));
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void rng_shuffle(uint64_t key, int *index, int n)
{
    assert(n >= 0);
    for (int i = n - 1; i > 0; i--) {
        int j = (int)rng_below(rng_key(key, (uint64_t)i, 0, 0), (uint64_t)i + 1);
        int swapped = index[i];
        index[i] = index[j];
        index[j] = swapped;
    }
}

uint64_t rng_hash(uint64_t fingerprint, const void *data, size_t size)
{
    for (const unsigned char *byte = data, *end = byte + size; byte < end; byte++)
        fingerprint = rng_mix(fingerprint ^ *byte);
    return fingerprint;
}
