/*
 * rnn_encoder.c: source embeddings to memory through recurrent layers. A row of memory is the states of both
 * ways at its token, D/2 numbers each, in the last layer: what stands around the token, seen from it.
 * On the sentence's way with --arch rnn: encoder_forward calls rnn_encoder_forward.
 */
#include "model/rnn_encoder.h"

#include <string.h>

void rnn_encoder_bind(struct rnn_encoder *encoder, const struct config *config, const struct weights *weights)
{
    encoder->n_layers = config->encoder_layers;
    for (int l = 0; l < encoder->n_layers; l++)
        rnn_layer_bind(&encoder->layers[l], config, &weights->encoder[l], 2, l);
}

void rnn_encoder_each(struct rnn_encoder *encoder, linear_visit *visit, void *arg)
{
    for (int l = 0; l < encoder->n_layers; l++)
        rnn_layer_each(&encoder->layers[l], visit, arg);
}

void rnn_encoder_forward(real *memory, struct rnn_encoder_acts *acts, const real *x,
                         const struct tokens *source, const uint64_t *keys, const struct rnn_encoder *encoder,
                         const struct run *run)
{
    size_t size = (size_t)source->n * encoder->layers[0].d;
    rnn_steps_take(&acts->steps[0], source, false, run->arena);
    rnn_steps_take(&acts->steps[1], source, true, run->arena);
    acts->layers = ARENA_TAKE(run->arena, struct rnn_layer_acts, encoder->n_layers);
    real *spare[2] = { NULL, NULL }; /* the outputs of layers whose activations nobody keeps */
    for (int i = 0; i < 2 && !run->keep; i++)
        spare[i] = ARENA_TAKE(run->arena, real, size);
    for (int l = 0; l < encoder->n_layers; l++) {
        real *y = l == encoder->n_layers - 1 ? memory
                  : run->keep                ? ARENA_TAKE(run->arena, real, size)
                                             : spare[l % 2];
        rnn_layer_forward(y, &acts->layers[l], x, acts->steps, keys, NULL, &encoder->layers[l], run);
        x = y;
    }
}

void rnn_encoder_backward(real *dx, struct weights *grad, real *dmemory, const struct rnn_encoder_acts *acts,
                          const uint64_t *keys, const struct rnn_encoder *encoder, const struct run *run)
{
    size_t size = sizeof(real) * (size_t)acts->steps[0].n * (size_t)encoder->layers[0].d;
    for (int l = encoder->n_layers - 1; l >= 0; l--) {
        rnn_layer_backward(dx, &grad->encoder[l], dmemory, &acts->layers[l], keys, &encoder->layers[l], run);
        if (l > 0)
            memcpy(dmemory, dx, size);
    }
}
