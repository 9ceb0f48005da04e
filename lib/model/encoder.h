/*
 * encoder.h: the stack of encoder layers over source tokens.
 */
#ifndef TFM_MODEL_ENCODER_H
#define TFM_MODEL_ENCODER_H

#include "model/net.h"
#include "nn/tokens.h"

struct encoder_acts {
    const struct tokens *tokens;
    struct block_input in;
    struct block_acts *layers;
    struct rnn_encoder_acts rnn; /* in their place where the net is recurrent */
    const real *norm_in;         /* pre-norm's final norm */
    real *norm_stats;
};

/* A segment a sentence, over itself. */
struct attn_segment *encoder_segments(const struct tokens *tokens, struct arena *arena);

/* memory [N, D]. With run->keep, acts must be there and its parts come from run->arena; else acts may be
 * NULL. */
void encoder_forward(real *memory, struct encoder_acts *acts, const struct tokens *source,
                     const struct net *net, const struct run *run);
/* dmemory [N, D] is used up. */
void encoder_backward(struct weights *grad, real *dmemory, const struct encoder_acts *acts,
                      const struct net *net, const struct run *run);

#endif
