/*
 * breakdown.h: where the time of a training goes (--profile): one stopwatch for the training as a whole, and
 * one a thread for what it does inside the lanes.
 */
#ifndef TFM_TRAIN_BREAKDOWN_H
#define TFM_TRAIN_BREAKDOWN_H

#include "base/pool.h"
#include "base/profile.h"
#include "train/lanes.h"
#include "train/optimizer.h"

struct breakdown {
    struct profile whole;
    struct profile *lanes; /* [threads] */
    int threads;
    double peak_flops; /* of matrix products on all threads at once, a second */
    double began;
};

/* Measures the peak, for about a second, and starts. */
enum tfm_status breakdown_new(struct breakdown **breakdown, struct pool *pool, const struct kern *kern,
                              enum tfm_gemm gemm, struct tfm_error *err);
void breakdown_free(struct breakdown *breakdown);

/* What the training does from here on; NULL: nobody wants to know. */
static inline void breakdown_to(struct breakdown *breakdown, enum profile_part part)
{
    profile_to(breakdown != NULL ? &breakdown->whole : NULL, part);
}

/* Fills parts [N_PROFILE_PARTS] and the profile that points to them with what was measured up to here. */
void breakdown_sum(struct tfm_profile *profile, struct tfm_profile_part *parts, struct breakdown *breakdown,
                   const struct optimizer *optimizer, const struct lanes *lanes);

#endif
