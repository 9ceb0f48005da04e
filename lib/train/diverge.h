/*
 * diverge.h: whether a training has gone astray.
 */
#ifndef TFM_TRAIN_DIVERGE_H
#define TFM_TRAIN_DIVERGE_H

#include "train/optimizer.h"

struct diverge { /* what a message needs to say */
    long update;
    double loss;          /* a target token */
    double gradient_norm; /* 0 where there is no gradient */
    double learn_rate;    /* --learn-rate */
    int vocab_size;
    const char *saved; /* the last checkpoint, or NULL */
};

/* TFM_EDIVERGED, with the first tensor that broke, when the loss or the norm is not finite or the loss is far
 * above what guessing gives. gradient may be NULL. */
enum tfm_status diverge_check(const struct diverge *found, const struct params *params, const real *weights,
                              const real *gradient, struct tfm_error *err);

#endif
