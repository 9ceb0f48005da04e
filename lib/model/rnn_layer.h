/*
 * rnn_layer.h: a layer of recurrent cells, with one way over the sentence or two, whose states stand side by
 * side:
 *     y = dropout(h) + x      (without x in the first layer)
 * h [D] being the states of one cell, or [D/2] each of one that reads forwards and one that reads backwards
 * (Schuster and Paliwal 1997). Residual connections as in Wu et al. 2016.
 */
#ifndef TFM_MODEL_RNN_LAYER_H
#define TFM_MODEL_RNN_LAYER_H

#include "model/block.h"
#include "nn/rnn.h"

struct rnn_layer {
    int d, n_ways;
    bool is_residual;
    real dropout;            /* of h */
    int place;               /* of that dropout */
    struct linear input;     /* [gates * D, D] of both ways */
    struct rnn_cell cell[2]; /* forwards, backwards: their states have D / n_ways numbers */
    const char *prefix;      /* for the tap */
    int layer;
};

struct rnn_layer_acts { /* kept for the backward pass */
    const real *x;      /* [n, D] */
    real *gates;        /* [n, gates * D] */
    struct rnn_pass pass[2];
};

void rnn_layer_bind(struct rnn_layer *layer, const struct config *config, const struct layer_weights *weights,
                    int n_ways, int number);

/* y [n, D] from x [n, D]; steps [n_ways]; keys: dropout key of each row, or NULL. cache: the states that rows
 * of a decoding step go on from, and then theirs (one way); NULL: the past is in the pass itself. */
void rnn_layer_forward(real *y, struct rnn_layer_acts *acts, const real *x, const struct rnn_steps *steps,
                       const uint64_t *keys, struct block_cache *cache, const struct rnn_layer *layer,
                       const struct run *run);
/* dx [n, D] overwritten. */
void rnn_layer_backward(real *dx, struct layer_weights *grad, const real *dy,
                        const struct rnn_layer_acts *acts, const uint64_t *keys,
                        const struct rnn_layer *layer, const struct run *run);

/* The parts of both, for who has something to do between the steps of the cell: between open and close stand
 * its steps. dh [n, D] is the gradient of h, dgates [n, gates * D] that of the input's products. */
void rnn_layer_open(struct rnn_layer_acts *acts, real *y, const real *x, const struct rnn_steps *steps,
                    struct block_cache *cache, const struct rnn_layer *layer, const struct run *run);
void rnn_layer_close(real *y, struct rnn_layer_acts *acts, const uint64_t *keys, struct block_cache *cache,
                     const struct rnn_layer *layer, const struct run *run);
real *rnn_layer_dh(const real *dy, const struct rnn_layer_acts *acts, const uint64_t *keys,
                   const struct rnn_layer *layer, const struct run *run);
void rnn_layer_dx(real *dx, struct layer_weights *grad, const real *dgates, const real *dy,
                  const struct rnn_layer_acts *acts, const struct rnn_layer *layer, const struct run *run);

/* An empty cache from the run's arena, of `width` rows a step at most, and the reals that it takes. */
void rnn_layer_cache_init(struct block_cache *cache, const struct rnn_layer *layer, int width,
                          const struct run *run);
size_t rnn_layer_cache_size(const struct rnn_layer *layer, size_t width);

void rnn_layer_each(struct rnn_layer *layer, linear_visit *visit, void *arg);

#endif
