/*
 * rnn_encoder.h: a stack of recurrent layers that read the source in both ways (Bahdanau et al. 2015), in
 * place of the Transformer's layers.
 */
#ifndef TFM_MODEL_RNN_ENCODER_H
#define TFM_MODEL_RNN_ENCODER_H

#include "model/rnn_layer.h"

struct rnn_encoder {
    int n_layers;
    struct rnn_layer layers[CONFIG_MAX_LAYERS];
};

struct rnn_encoder_acts {
    struct rnn_steps steps[2];
    struct rnn_layer_acts *layers;
};

void rnn_encoder_bind(struct rnn_encoder *encoder, const struct config *config,
                      const struct weights *weights);
void rnn_encoder_each(struct rnn_encoder *encoder, linear_visit *visit, void *arg);

/* memory [N, D] from embeddings x [N, D], which stay as they are. */
void rnn_encoder_forward(real *memory, struct rnn_encoder_acts *acts, const real *x,
                         const struct tokens *source, const uint64_t *keys, const struct rnn_encoder *encoder,
                         const struct run *run);
/* dx [N, D] overwritten; dmemory is used up. */
void rnn_encoder_backward(real *dx, struct weights *grad, real *dmemory, const struct rnn_encoder_acts *acts,
                          const uint64_t *keys, const struct rnn_encoder *encoder, const struct run *run);

#endif
