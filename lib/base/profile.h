/*
 * profile.h: a stopwatch that runs for one part of the work at a time. profile_to says what the work is from
 * here on, so all of the time goes to some part and none to two. A thread has a stopwatch of its own; usually
 * the pointer is NULL, and then both calls do nothing.
 */
#ifndef TFM_BASE_PROFILE_H
#define TFM_BASE_PROFILE_H

#include <stddef.h>

enum profile_part {
    PROFILE_AWAY, /* not at work here: this time means nothing */
    /* the model, forward and back */
    PROFILE_EMBED,
    PROFILE_PROJECT, /* queries, keys, values, outputs of attention; gates, inputs of SSRU; recurrent cells */
    PROFILE_ATTEND,  /* scores, softmax and mix; the states of SSRU */
    PROFILE_FFN,     /* with --arch rnn the readout */
    PROFILE_NORM,    /* with residual connections and dropout */
    PROFILE_LOSS,    /* with the output layer */
    PROFILE_BATCH,
    /* the translation around it */
    PROFILE_TEXT, /* to pieces and back */
    PROFILE_SEARCH,
    /* the training around it */
    PROFILE_LANES, /* all of the above, on all threads */
    PROFILE_OPTIMIZE,
    PROFILE_READ,
    PROFILE_VALIDATE,
    PROFILE_SAVE,
    PROFILE_OTHER,
    N_PROFILE_PARTS
};

struct profile {
    enum profile_part part; /* running now ... */
    double since;           /* ... from this time on */
    double seconds[N_PROFILE_PARTS];
    double flop[N_PROFILE_PARTS]; /* of matrix products: 2 m n k each */
};

double profile_clock(void); /* seconds, from some time on */

void profile_to(struct profile *profile, enum profile_part part);

/* Counts a matrix product [m, k] [k, n] for the running part. */
static inline void profile_product(struct profile *profile, double m, double n, double k)
{
    if (profile != NULL)
        profile->flop[profile->part] += 2 * m * n * k;
}

#endif
