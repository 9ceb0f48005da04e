/*
 * schedule.c: intervals and the learning rate. All are functions of the point reached, so nothing about them
 * needs to be saved, and an interval may change from one run of a training to the next.
 */
#include "train/schedule.h"

#include <math.h>

double schedule_amount(const struct schedule_point *point, enum tfm_unit unit)
{
    switch (unit) {
    case TFM_EPOCHS: return point->epochs;
    case TFM_TARGET_TOKENS: return point->target_tokens;
    case TFM_MINUTES: return point->minutes;
    case TFM_UPDATES: break;
    }
    return (double)point->update;
}

bool schedule_is_due(const struct tfm_interval *interval, const struct schedule_point *before,
                     const struct schedule_point *after)
{
    if (!(interval->amount > 0))
        return false;
    return floor(schedule_amount(after, interval->unit) / interval->amount) >
           floor(schedule_amount(before, interval->unit) / interval->amount);
}

bool schedule_is_over(const struct tfm_interval *end, const struct schedule_point *point)
{
    return end->amount > 0 && schedule_amount(point, end->unit) >= end->amount;
}

double schedule_learn_rate(const struct tfm_train_options *o, const struct schedule_point *point)
{
    double warmup = o->lr_warmup.amount, done = schedule_amount(point, o->lr_warmup.unit);
    double rise = warmup > 0 ? fmin(1, done / warmup) : 1;
    double part = o->after.amount > 0 ? fmin(1, schedule_amount(point, o->after.unit) / o->after.amount) : 0;
    switch (o->lr_decay) {
    case TFM_DECAY_COSINE: return o->learn_rate * rise * (1 + cos(acos(-1.0) * part)) / 2;
    case TFM_DECAY_LINEAR: return o->learn_rate * rise * (1 - part);
    case TFM_DECAY_NONE: return o->learn_rate * rise;
    case TFM_DECAY_INV_SQRT: break;
    }
    return o->learn_rate * (warmup > 0 ? fmin(done / warmup, sqrt(warmup / done)) : 1);
}
