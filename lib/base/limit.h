/*
 * limit.h: ranges of numbers that a caller gives, in tables: each options struct has one, which one function
 * checks. Enumerations are whole numbers like others.
 */
#ifndef TFM_BASE_LIMIT_H
#define TFM_BASE_LIMIT_H

#include <stddef.h>

#include "tfm.h"

struct limit {
    const char *name;
    double value, min, max; /* max HUGE_VAL: any finite number from min on */
};

/* TFM_EINVAL, with name and number, for the first value that is outside of its range, or no number. */
enum tfm_status limit_check(const struct limit *limits, size_t n, struct tfm_error *err);

/* The same for an array. */
#define LIMIT_CHECK(limits, err) limit_check(limits, sizeof(limits) / sizeof((limits)[0]), err)

#endif
