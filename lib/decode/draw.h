/*
 * draw.h: tokens drawn at random from the distribution of one step: from all tokens, from the k most probable
 * (Fan et al. 2018) or from the fewest whose probabilities reach p in sum (nucleus sampling, Holtzman et al.
 * 2020), each after logits were divided by a temperature. A draw is a function of its key and of the logits,
 * and of nothing else.
 */
#ifndef TFM_DECODE_DRAW_H
#define TFM_DECODE_DRAW_H

#include "nn/run.h"

struct draw_options {
    enum tfm_sampling kind; /* TFM_SAMPLING_NONE: nothing is drawn */
    int top_k;
    double top_p, temperature;
};

/* tokens [n]: the j-th is drawn by rng_key(key, j, 0, 0) from logits [v], where -infinity forbids; -1 where
 * nothing can be drawn. Takes draw_bytes(v) of the run's arena and gives it back. */
void draw_tokens(int *tokens, int n, const real *logits, int v, const struct draw_options *options,
                 uint64_t key, const struct run *run);
size_t draw_bytes(int v);

#endif
