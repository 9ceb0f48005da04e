/*
 * block.h: one layer of encoder or decoder: self-attention, cross-attention (decoder only), feed-forward,
 * each with residual connection and norm. Only block.c knows post-norm (y = norm(x + f(x)), Vaswani et al.
 * 2017) from pre-norm (y = x + f(norm(x)), Xiong et al. 2020).
 */
#ifndef TFM_MODEL_BLOCK_H
#define TFM_MODEL_BLOCK_H

#include "model/params.h"
#include "nn/attn.h"
#include "nn/dropout.h"
#include "nn/ffn.h"
#include "nn/norm.h"

struct block {
    bool pre_norm, has_cross;
    int d;
    real dropout; /* of each sublayer's output */
    int place;    /* first dropout place of this layer */
    struct norm self_norm, cross_norm, ffn_norm;
    struct linear self_qkv, self_out; /* [3D, D], [D, D] */
    struct linear cross_q, cross_kv, cross_out; /* [D, D], [2D, D], [D, D] */
    struct attn self, cross;
    struct ffn ffn;
};

/* The places of dropout in a layer, counted from block.place. The numbers decide which columns a training
 * drops. */
enum block_place {
    BLOCK_PLACE_SELF,
    BLOCK_PLACE_SELF_WEIGHTS,
    BLOCK_PLACE_CROSS,
    BLOCK_PLACE_CROSS_WEIGHTS,
    BLOCK_PLACE_FFN,
    BLOCK_PLACE_HIDDEN,
    BLOCK_PLACES = 8 /* from one layer's first to the next one's */
};

/* Where a decoding step keeps the keys and values of earlier steps: rows [cap, 2D], key then value. */
struct block_cache {
    real *kv;
    int n_rows; /* in use; block_forward puts its n new rows behind them */
};

/* What a layer looks at, the same for all layers of a pass. */
struct block_input {
    int n;                                 /* rows: N */
    const uint64_t *keys;                  /* [N] dropout keys, or NULL */
    const struct attn_segment *self;       /* key rows count in x, or in the cache where there is one */
    int n_self;
    const struct attn_segment *cross;      /* key rows count in the encoder's output */
    int n_cross;
};

struct sublayer_acts {
    const real *norm_in; /* [n, D] what its norm saw: x (pre) or x + f(x) (post) */
    real *stats;         /* [n, 2] */
    const real *f_in;    /* [n, D] what the sublayer saw */
};

struct block_acts { /* kept for the backward pass */
    struct sublayer_acts self, cross, ffn;
    real *qkv, *self_weights, *self_mix;   /* [n, 3D], all weights, [n, D] before self_out */
    real *cross_q, *cross_weights, *cross_mix;
    const real *cross_kv;                  /* [Ns, 2D] */
    struct ffn_acts ffn_hidden;
};

/* y [n, D] from x [n, D]; y may not be x. cross_kv [Ns, 2D]: keys and values of the encoder's output; cache
 * NULL: self-attention over x itself. */
void block_forward(real *y, struct block_acts *acts, const real *x, const struct block_input *in,
                   const real *cross_kv, struct block_cache *cache, const struct block *block,
                   const struct run *run);

/* dx [n, D] overwritten; dcross_kv [Ns, 2D] += (decoder). */
void block_backward(real *dx, real *dcross_kv, struct layer_weights *grad, const real *dy,
                    const struct block_acts *acts, const struct block_input *in,
                    const struct block *block, const struct run *run);

#endif
