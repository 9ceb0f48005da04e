/*
 * ensemble.h: models that translate together: at each step, the log-probability of a piece is the weighted
 * mean of those that they give it (log-linear, as in Marian). They share both vocabularies; architectures and
 * sizes may differ.
 */
#ifndef TFM_DECODE_ENSEMBLE_H
#define TFM_DECODE_ENSEMBLE_H

#include "model/model.h"

struct ensemble {
    int n;
    const struct net *nets[TFM_MAX_MODELS];
    float weights[TFM_MAX_MODELS]; /* their sum is 1 */
};

/* Proves that the models go together. weights NULL: equal ones. */
enum tfm_status ensemble_init(struct ensemble *ensemble, const struct tfm_model *const *models,
                              const float *weights, int n, struct tfm_error *err);

#endif
