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

double schedule_learn_rate(double peak, const struct tfm_interval *warmup, const struct schedule_point *point)
{
    double done = schedule_amount(point, warmup->unit);
    if (!(warmup->amount > 0))
        return peak;
    return peak * fmin(done / warmup->amount, sqrt(warmup->amount / done));
}
