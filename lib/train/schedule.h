/*
 * schedule.h: when things happen, counted in updates, epochs, target tokens or minutes.
 */
#ifndef TFM_TRAIN_SCHEDULE_H
#define TFM_TRAIN_SCHEDULE_H

#include <stdbool.h>

#include "tfm.h"

struct schedule_point { /* how far a training has come */
    long update;
    double epochs; /* done, with the part of the running one */
    double target_tokens;
    double minutes; /* of training, all runs together */
};

double schedule_amount(const struct schedule_point *point, enum tfm_unit unit);

/* Whether a multiple of the interval was reached between two points; an interval of 0 never is. */
bool schedule_is_due(const struct tfm_interval *interval, const struct schedule_point *before,
                     const struct schedule_point *after);

/* Whether the end is reached; an end at 0 never is. */
bool schedule_is_over(const struct tfm_interval *end, const struct schedule_point *point);

/* Linear rise to the learning rate over the warm-up, and the decay (tfm.h). */
double schedule_learn_rate(const struct tfm_train_options *options, const struct schedule_point *point);

#endif
