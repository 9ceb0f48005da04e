/*
 * rnn_decoder.h: a recurrent decoder with attention (Bahdanau et al. 2015). At target position t, with the
 * state s of the first layer and the memory m of the source,
 *     context_t = attention(s_(t-1), m)     s_t = cell([y_(t-1), context_t], s_(t-1))
 * then the other layers, and hidden_t = tanh(W [top layer's output, context_t] + b), from which logits are
 * made. All states begin at zero. Attention is additive, or the product s.m ("dot"; Luong et al. 2015), or
 * (W s).m ("general").
 */
#ifndef TFM_MODEL_RNN_DECODER_H
#define TFM_MODEL_RNN_DECODER_H

#include "model/rnn_layer.h"

struct rnn_decoder {
    int n_layers;
    struct rnn_layer layers[CONFIG_MAX_LAYERS];
    struct linear context; /* [gates * D, D]: the first cell's input products of the context */
    bool has_query, has_key;
    struct linear query, key; /* [D, D], without has_* the identity */
    struct attn attn;
    struct linear readout_state, readout_context; /* [D, D] */
    real readout_dropout;
    int readout_place;
};

struct rnn_decoder_acts {
    struct rnn_steps steps;
    struct rnn_layer_acts *layers;
    const real *memory, *keys; /* [Ns, D]; keys is what attention compares with */
    const real *packed;        /* [Ns, 2D] both as attn_pack makes them */
    uint64_t *drop_keys;       /* [n] by step, or NULL */
    real *query, *mix;         /* [n, D] by step: what looks at the source, and the context it gets */
    real *weights;             /* of attention, step by step ... */
    size_t *weights_at;        /* ... from here on: [n_steps] */
    real *context, *top;       /* [n, D] by row: what the readout sees */
    real *readout;             /* [n, D] before dropout */
};

void rnn_decoder_bind(struct rnn_decoder *decoder, const struct config *config,
                      const struct weights *weights);
void rnn_decoder_each(struct rnn_decoder *decoder, linear_visit *visit, void *arg);

/* hidden [n, D] from embeddings x [n, D] of whole targets; in gives dropout keys and, as cross segments,
 * which rows of memory [Ns, D] each target looks at. */
void rnn_decoder_forward(real *hidden, struct rnn_decoder_acts *acts, const real *x,
                         const struct tokens *target, const struct block_input *in, const real *memory,
                         int n_source, const struct rnn_decoder *decoder, const struct run *run);
/* dx [n, D] and dmemory [Ns, D] overwritten; dhidden is used up. */
void rnn_decoder_backward(real *dx, real *dmemory, struct weights *grad, real *dhidden,
                          const struct rnn_decoder_acts *acts, const struct block_input *in, int n_source,
                          const struct rnn_decoder *decoder, const struct run *run);

/* One step of many hypotheses: see decoder_step. caches [n_layers]; the first's `cross` is rnn_decoder_pack's. */
void rnn_decoder_step(real *hidden, const real *x, const struct block_input *in, struct block_cache *caches,
                      const struct rnn_decoder *decoder, const struct run *run);
/* What a search looks at, once: [Ns, 2D] from the run's arena. */
const real *rnn_decoder_pack(const real *memory, int n_source, const struct attn_segment *segments,
                             int n_segments, const struct rnn_decoder *decoder, const struct run *run);

#endif
