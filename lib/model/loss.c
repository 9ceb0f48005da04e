/*
 * loss.c: the whole model over a batch, forward and back, in the order that a reader would draw it.
 */
#include "model/loss.h"

void loss_batch(struct xent_sum *sum, real *row_nll, struct weights *grad, const struct tokens *source,
                const struct tokens *target, const struct criterion *criterion, const struct net *net,
                const struct run *run)
{
    const struct config *c = net->config;
    size_t mark = arena_mark(run->arena), d = (size_t)c->d_model;
    struct encoder_acts encoder;
    struct decoder_acts decoder;
    real *memory = ARENA_TAKE(run->arena, real, (size_t)source->n * d);
    real *hidden = ARENA_TAKE(run->arena, real, (size_t)target->n * d);
    encoder_forward(memory, &encoder, source, net, run);
    decoder_forward(hidden, &decoder, target, source, memory, net, run);
    profile_to(run->profile, PROFILE_LOSS);
    if (!grad) {
        xent(sum, row_nll, NULL, NULL, NULL, hidden, target->ids, &net->unembed, criterion, target->n, run);
    } else {
        real *dhidden = ARENA_TAKE(run->arena, real, (size_t)target->n * d);
        real *dmemory = ARENA_TAKE(run->arena, real, (size_t)source->n * d);
        real *unembed_w = c->tie == TFM_TIE_ALL      ? grad->shared
                          : c->tie == TFM_TIE_TARGET ? grad->decoder_embed
                                                     : grad->lm_head;
        xent(sum, row_nll, dhidden, unembed_w, grad->logits_bias, hidden, target->ids, &net->unembed,
             criterion, target->n, run);
        decoder_backward(dmemory, grad, dhidden, &decoder, net, run);
        encoder_backward(grad, dmemory, &encoder, net, run);
    }
    arena_reset(run->arena, mark);
}
