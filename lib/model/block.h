/*
 * block.h: one layer of encoder or decoder: self-attention or, in a decoder, a recurrent unit in its place;
 * cross-attention (decoder only); feed-forward; each with residual connection and norm. Only block.c knows
 * self-attention from the recurrent unit, and post-norm (y = norm(x + f(x)), Vaswani et al. 2017) from pre-norm
 * (y = x + f(norm(x)), Xiong et al. 2020).
 */
#ifndef TFM_MODEL_BLOCK_H
#define TFM_MODEL_BLOCK_H

#include "model/params.h"
#include "nn/attn.h"
#include "nn/dropout.h"
#include "nn/ffn.h"
#include "nn/norm.h"
#include "nn/position.h"
#include "nn/ssru.h"

struct block {
    bool pre_norm, has_cross, has_ssru;
    int d, kv;         /* D, and the columns of keys: K for each of their heads */
    real dropout;      /* of each sublayer's output */
    double layer_drop; /* probability that an update of a training leaves the layer out: y = x (Fan et al. 2019) */
    int place;         /* first dropout place of this layer */
    struct norm self_norm, cross_norm, ffn_norm;
    struct linear self_qkv, self_out;           /* [D + 2 kv, D], [D, D] */
    struct linear cross_q, cross_kv, cross_out; /* [D, D], [2 kv, D], [D, D] */
    struct attn self, cross;
    struct ssru ssru; /* with has_ssru in place of self_qkv, self_out and self */
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

/* What a decoding step knows of earlier ones. Rows are numbered through all steps; block_forward adds its n
 * new ones. */
struct block_cache {
    int n_rows;   /* so far */
    real *kv;     /* self-attention: [capacity, 2 kv] of all rows, key then value */
    real *states; /* recurrent unit: [width, D] of the last step's rows, from number `first` on ... */
    real *spare;  /* ... and as many for the next step's */
    int first;
    const real *cross; /* [Ns, 2 kv] the source's keys and values, from attn_pack: cross_kv is not needed then */
};

/* Takes an empty cache from the run's arena: for `capacity` rows in all, `width` of them in a step at most.
 * block_cache_size is the reals that it takes. */
void block_cache_init(struct block_cache *cache, const struct block *block, int capacity, int width,
                      const struct run *run);
size_t block_cache_size(const struct block *block, size_t capacity, size_t width);

/* What a layer looks at, the same for all layers of a pass. */
struct block_input {
    int n;                           /* rows: N */
    const uint64_t *keys;            /* [N] dropout keys, or NULL */
    const struct attn_segment *self; /* key rows count in x, or in the cache where there is one */
    int n_self;
    struct placement place; /* of the rows */
    const struct attn_segment *cross; /* key rows count in the encoder's output */
    int n_cross;
    real *cross_weights; /* attn_weights_size of the cross segments, for those of layer cross_layer; or NULL */
    real *self_weights; /* or of the self segments */
    int cross_layer;
};

struct sublayer_acts {
    const real *norm_in; /* [n, D] what its norm saw: x (pre) or x + f(x) (post) */
    real *stats;         /* [n, 2] */
    const real *f_in;    /* [n, D] what the sublayer saw */
};

struct block_acts { /* kept for the backward pass */
    struct sublayer_acts self, cross, ffn;
    real *qkv, *self_weights, *self_mix; /* [n, D + 2 kv], all weights, [n, D] before self_out */
    struct ssru_acts ssru;
    real *cross_q, *cross_weights, *cross_mix;
    const real *cross_kv; /* [Ns, 2 kv] */
    struct ffn_acts ffn_hidden;
};

/* y [n, D] from x [n, D]; y may not be x. cross_kv [Ns, 2 kv]: keys and values of the encoder's output; cache
 * NULL: the past is in x itself. */
void block_forward(real *y, struct block_acts *acts, const real *x, const struct block_input *in,
                   const real *cross_kv, struct block_cache *cache, const struct block *block,
                   const struct run *run);

/* dx [n, D] overwritten; dcross_kv [Ns, 2 kv] += (decoder). */
void block_backward(real *dx, real *dcross_kv, struct layer_weights *grad, const real *dy,
                    const struct block_acts *acts, const struct block_input *in, const struct block *block,
                    const struct run *run);

#endif
