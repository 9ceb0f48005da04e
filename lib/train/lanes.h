/*
 * lanes.h: a batch cut into lanes, each with a gradient of its own. The lanes are a part of the training's
 * definition: any number of threads runs them, with the same digits.
 */
#ifndef TFM_TRAIN_LANES_H
#define TFM_TRAIN_LANES_H

#include "model/loss.h"
#include "train/batch.h"

struct lane {
    struct ints pairs;
    long n_rows;         /* tokens, the longer side of each pair counted */
    real *gradient;      /* block */
    struct weights grad; /* into gradient */
    struct xent_sum sum; /* of the last run */
};

struct lanes {
    int n;
    struct lane *lane;
    int n_arenas;
    struct arena *arena; /* one a thread */
};

/* For pairs of at most `longest` tokens a side, each trained `copies` times (2: R-Drop). */
enum tfm_status lanes_init(struct lanes *lanes, int n, int threads, int longest, int copies,
                           const struct config *config, size_t block_size, struct tfm_error *err);
void lanes_release(struct lanes *lanes);

/* Deals the pairs out so that the lanes have about equally many tokens. */
enum tfm_status lanes_split(struct lanes *lanes, const struct corpus *corpus, const int *pairs, int n,
                            struct tfm_error *err);

struct lanes_run { /* what a pass over the lanes needs */
    const struct corpus *corpus;
    const struct net *net;
    const struct kern *kern;
    struct pool *pool;
    struct criterion criterion;
    uint64_t seed;            /* of the training: for the sentences' keys */
    uint64_t update_seed;     /* of this update's dropout */
    struct profile *profiles; /* a stopwatch a thread, or NULL */
};

/* The loss of the split batch: with gradients (added to each lane's) and dropout, or without both. Each
 * lane's sum is set; the return value is their sum in order. */
struct xent_sum lanes_forward_backward(struct lanes *lanes, const struct lanes_run *how);
struct xent_sum lanes_forward(struct lanes *lanes, const struct lanes_run *how);

/* The loss of pairs 0 .. corpus->n - 1 without gradient and dropout; *n_target gets the number of target
 * tokens. */
enum tfm_status lanes_evaluate(struct xent_sum *sum, double *n_target, struct lanes *lanes,
                               const struct lanes_run *how, struct tfm_error *err);

#endif
