/*
 * loss.h: the whole model over a batch: encoder, decoder, cross-entropy, and back.
 */
#ifndef TFM_MODEL_LOSS_H
#define TFM_MODEL_LOSS_H

#include "model/decoder.h"
#include "nn/xent.h"

/* Adds the batch's loss to sum, and its gradient to grad unless grad is NULL (then run->keep may be false).
 * With R-Drop the second half of the sentences is the first again, under other dropout keys.
 * row_nll [Nt] (may be NULL) gets -log p of each target token. The scratch is given back. */
void loss_batch(struct xent_sum *sum, real *row_nll, struct weights *grad, const struct tokens *source,
                const struct tokens *target, const struct criterion *criterion, const struct net *net,
                const struct run *run);

#endif
