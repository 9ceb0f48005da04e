/*
 * limit.c: what a caller gives as a number, against its range. A comparison with NaN is false, so a value is
 * in its range where both comparisons are true, and outside in all other cases; infinity is never inside.
 */
#include "base/limit.h"

#include <math.h>

#include "base/err.h"

enum tfm_status limit_check(const struct limit *limits, size_t n, struct tfm_error *err)
{
    for (const struct limit *l = limits; l < limits + n; l++) {
        if (l->value >= l->min && l->value <= l->max && isfinite(l->value))
            continue;
        if (l->max == HUGE_VAL)
            return err_set(err, TFM_EINVAL, "%s is %g; it can be a number from %g up", l->name, l->value,
                           l->min);
        return err_set(err, TFM_EINVAL, "%s is %g; it can be from %g to %g", l->name, l->value, l->min,
                       l->max);
    }
    return TFM_OK;
}
