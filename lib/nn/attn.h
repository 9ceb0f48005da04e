/*
 * attn.h: scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2):
 *     out_h = softmax(scale * q_h k_h^T + bias_h + mask) v_h
 * or additive (Bahdanau et al. 2015), with scores score_h . tanh(q_h + k_h) for each query and key.
 * One call serves the encoder, the causal decoder, cross-attention and a decoding step against a cache: the
 * caller lists segments, each saying which query rows look at which key rows. Rows hold the heads side by
 * side, K columns each; those of keys and values may have fewer heads, each of them for `share` heads of queries
 * (Ainslie et al. 2023).
 */
#ifndef TFM_NN_ATTN_H
#define TFM_NN_ATTN_H

#include "nn/run.h"
#include "tfm.h"

struct attn_segment {
    int q_start, n_q;  /* query rows q_start .. q_start + n_q - 1 */
    int k_start, n_k;  /* key rows: a range from k_start ... */
    const int *k_rows; /* ... or these n_k rows, one by one (a beam's ancestors); NULL: the range */
    bool causal;       /* query i sees keys 0 .. i + n_k - n_q */
};

struct attn {
    int heads, dim;     /* H and K = D / H */
    int share;          /* heads of queries to one of keys and values: divides H */
    int window;         /* self-attention: a query sees so many keys to each side; 0: all */
    real scale;         /* usually 1 / sqrt(K) */
    const real *score;  /* additive: [H, K]; else NULL */
    real *dscore;       /* attn_backward adds its gradient here */
    real dropout;       /* of the weights */
    int place;          /* for dropout keys */
    enum tfm_part part; /* for losses on single heads, with the layer */
    const int *rows;    /* ... which of the target's rows each query is; NULL: that of its own number */
    const char *prefix; /* for the tap: "encoder.layers" ... */
    int layer;
    const char *name; /* ... and "self_attn" or "encoder_attn" */
    const real *bias; /* self-attention: added to scores, by head and by the distance from query to key: [H, 2
                             bias_reach + 1], from -bias_reach on; NULL: none */
    real *dbias;      /* attn_backward adds the bias's gradient here; NULL: it is not wanted */
    int bias_reach;
};

/* How far apart rows of attention weights lie: whole vectors, so that work on a row need not wait for what was written to
 * the row before it, into the same vector. */
static inline size_t attn_row(int n_k)
{
    return ((size_t)n_k + KERN_PANEL - 1) / KERN_PANEL * KERN_PANEL;
}

/* Reals needed to keep all attention weights of the segments: for each segment and head [n_q, n_k], with rows of
 * attn_row(n_k), end to end. */
size_t attn_weights_size(const struct attn_segment *segments, int n_segments, int heads);

/* Keys and values of every segment as the products want them, once for many calls: those of a segment are, for
 * each of the G = H / share heads that they have, [K, n_k] and [n_k, K], from packed + 2 * k_start * G*K on. No
 * segment may name its rows. */
void attn_pack(real *packed, const real *k, int ldk, const real *v, int ldv,
               const struct attn_segment *segments, int n_segments, const struct attn *attn,
               const struct run *run);

/* out [Nq, H*K]; q, k, v with row strides; packed: what attn_pack made of k and v (which are not read then), or
 * NULL; weights (attn_weights_size reals; before dropout) or NULL when nobody needs them; keys: dropout key of
 * each query row, or NULL. */
void attn_forward(real *out, real *weights, const real *q, int ldq, const real *k, int ldk, const real *v,
                  int ldv, const real *packed, const struct attn_segment *segments, int n_segments,
                  const struct attn *attn, const uint64_t *keys, const struct run *run);

/* dq is overwritten for the query rows that segments name; dk and dv
 * are added to (segments may share key rows: the caller zeroes them). dout [Nq, H*K]. */
void attn_backward(real *dq, int lddq, real *dk, int lddk, real *dv, int lddv, const real *dout,
                   const real *weights, const real *q, int ldq, const real *k, int ldk, const real *v,
                   int ldv, const struct attn_segment *segments, int n_segments, const struct attn *attn,
                   const uint64_t *keys, const struct run *run);

#endif
