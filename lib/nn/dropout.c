/*
 * dropout.c: the keys of dropout, and dropout of rows. A row's key mixes the run's seed (which knows the
 * update) with side, sentence and position; the place in the network is mixed in last, so that every use of a
 * row drops other columns.
 */
#include "nn/dropout.h"

#include "base/rng.h"

void dropout_keys(uint64_t *keys, const struct tokens *tokens, int side, const struct run *run)
{
    for (int s = 0; s < tokens->n_sentences; s++) {
        uint64_t sentence = rng_key(run->seed, (uint64_t)side, tokens->key[s], 0);
        for (int i = tokens->start[s]; i < tokens->start[s + 1]; i++)
            keys[i] = rng_mix(sentence ^ (uint64_t)(i - tokens->start[s]));
    }
}

uint32_t dropout_row_key(uint64_t key, int place)
{
    return (uint32_t)(rng_mix(key + (uint64_t)place) >> 32);
}

void dropout_apply(real *x, const uint64_t *keys, int place, int n, int d, real p, const struct run *run)
{
    if (!run->dropout || p <= 0)
        return;
    for (int i = 0; i < n; i++, x += d)
        run->kern->dropout(x, x, d, dropout_row_key(keys[i], place), p);
}
