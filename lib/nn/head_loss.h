/*
 * head_loss.h: terms of a training's loss that look at the attention of single heads. Each is a function of
 * one row of weights after the softmax, before dropout; a training adds the mean over a head's rows, times a
 * weight, to its loss. attn_forward adds up the values, attn_backward the gradients, both by these functions
 * and for heads that are named only.
 */
#ifndef TFM_NN_HEAD_LOSS_H
#define TFM_NN_HEAD_LOSS_H

#include "nn/attn.h"
#include "tfm.h"

struct head_loss { /* a term */
    enum tfm_part part;
    int layer, head; /* head -1: each of the layer */
    enum tfm_head_loss_kind kind;
    real weight;
};

struct head_sum { /* of a term over rows */
    double value, rows;
};

struct guide_link {
    int key; /* counted from the segment's first */
    real weight;
};

struct guide_row { /* what a target row should look at: n weights whose sum is 1; n 0: whatever it likes */
    const struct guide_link *links;
    int n;
};

struct head_losses { /* of a pass */
    const struct head_loss *list;
    int n;
    real row_weight[TFM_CROSS + 1]; /* of a row of each part, times a term's weight: its share in the loss */
    const struct guide_row *guide;  /* [Nt], for the kinds that need an alignment; NULL: there is none */
    struct head_sum *sums;          /* [n] values are added here */
};

/* Adds what the rows p [n_q, n_k] of one head give to the terms that name it. */
void head_loss_forward(struct head_losses *losses, const real *p, int head,
                       const struct attn_segment *segment, const struct attn *attn);
/* dp [n_q, n_k] += its gradient. */
void head_loss_backward(real *dp, const struct head_losses *losses, const real *p, int head,
                        const struct attn_segment *segment, const struct attn *attn);

#endif
