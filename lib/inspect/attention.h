/*
 * attention.h: the attention weights of one pair of sentences, with the pieces that they join.
 */
#ifndef TFM_INSPECT_ATTENTION_H
#define TFM_INSPECT_ATTENTION_H

#include "model/model.h"

struct attention {
    enum tfm_part part;
    bool is_joint;       /* of a decoder alone: both axes have the source before the target */
    int layer, n_layers; /* layers layer .. layer + n_layers - 1 of the model */
    int head, n_heads;
    /* the pieces, each side with its </s> */
    int n_source, n_target;
    const char **source, **target;
    /* the axes: queries of the decoder are the target pieces being predicted; keys of its self-attention are
     * the pieces read, the start symbol and then the target but its last; is_joint: behind the source's */
    int n_queries, n_keys;
    const char **queries, **keys;
    const char **inputs, **outputs; /* what the decoder reads, and what it predicts from there */
    float *weights;                 /* [n_layers, n_heads, n_queries, n_keys]; each row sums to 1 */
};

/* The weights [n_queries, n_keys] of one layer and head, counted from the first that is there. */
const float *attention_map(const struct attention *a, int layer, int head);

/* Runs the model over a pair of sentences, each with </s>, and fills in the pieces and the weights of the
 * part, layers and heads that `a` names. It is to be released also after a failure. */
enum tfm_status attention_collect(struct attention *a, const struct tfm_model *model,
                                  const struct ints *source, const struct ints *target,
                                  struct tfm_error *err);
void attention_release(struct attention *a);

#endif
