/*
 * export.h: the model that comes out of a training.
 */
#ifndef TFM_TRAIN_EXPORT_H
#define TFM_TRAIN_EXPORT_H

#include "model/model.h"
#include "train/checkpoint.h"
#include "train/schedule.h"

/* Writes config.json and the weights into the model folder; config.json tells how they were made, of
 * n_pairs pairs. */
enum tfm_status export_model(const struct tfm_train_options *options, const struct config *config,
                             const struct params *params, const real *weights,
                             const struct train_state *state, const struct schedule_point *point,
                             uint64_t n_pairs, struct pool *pool, struct tfm_error *err);

#endif
