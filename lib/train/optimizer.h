/*
 * optimizer.h: Adam over the whole parameter block, with gradient clipping and a running mean of the weights.
 */
#ifndef TFM_TRAIN_OPTIMIZER_H
#define TFM_TRAIN_OPTIMIZER_H

#include "train/lanes.h"

struct optimizer { /* parallel blocks of one layout */
    size_t size;
    real *weights;
    real *average; /* running mean of the weights, or NULL */
    real *moment1, *moment2;
    double *partial; /* sums of squares of the slices */
};

enum tfm_status optimizer_init(struct optimizer *optimizer, size_t size, bool has_average,
                               struct tfm_error *err);
void optimizer_release(struct optimizer *optimizer);

/* Adds the gradients of all lanes into lane 0's, in order; returns the norm of the sum. */
double optimizer_reduce(struct optimizer *optimizer, struct lanes *lanes, const struct kern *kern,
                        struct pool *pool);

struct optimizer_step {
    long update; /* from 1 */
    double learn_rate;
    double gradient_scale; /* the gradient is lane 0's times this */
    double average_rate;   /* the part by which the running mean moves, later on */
    double weight_decay;   /* the part of each matrix that is taken away, times the learning rate ... */
    const struct params *params; /* ... which are those; needed where there is decay */
};

/* Moves the weights and the running mean, and clears the gradients of all lanes. */
void optimizer_apply(struct optimizer *optimizer, struct lanes *lanes, const struct optimizer_step *step,
                     const struct kern *kern, struct pool *pool);

#endif
