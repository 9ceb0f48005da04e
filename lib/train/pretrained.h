/*
 * pretrained.h: begins a training with the weights of another model.
 */
#ifndef TFM_TRAIN_PRETRAINED_H
#define TFM_TRAIN_PRETRAINED_H

#include "base/pool.h"
#include "base/str.h"
#include "model/params.h"

/* That there is such a model. */
enum tfm_status pretrained_check(const char *folder, struct tfm_error *err);

/* Puts into weights, a block of params, each tensor of that name that the options' pretrained model has,
 * and notes which those are, and which are left; `name` becomes that of its folder. A tensor of another
 * shape, and layers that use theirs in another way, are errors. */
enum tfm_status pretrained_take(real *weights, struct str *name, const struct params *params,
                                const struct config *config, const struct tfm_train_options *options,
                                struct pool *pool, struct tfm_error *err);

#endif
