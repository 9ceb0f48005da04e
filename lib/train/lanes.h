/*
 * lanes.h: a batch cut into lanes, each with a gradient of its own. The lanes are a part of the training's
 * definition: any number of threads runs them, with the same digits.
 */
#ifndef TFM_TRAIN_LANES_H
#define TFM_TRAIN_LANES_H

#include "model/loss.h"
#include "nn/head_loss.h"
#include "train/mask.h"

struct lane {
    struct ints pairs;
    long n_rows;         /* tokens, the longer side of each pair counted */
    real *gradient;      /* block */
    struct weights grad; /* into gradient */
    struct xent_sum sum; /* of the last run */
    struct head_sum heads[TFM_MAX_HEAD_LOSSES];
};

struct lanes {
    int n;
    struct lane *lane;
    int n_arenas;
    struct arena *arena; /* one a thread */
};

struct lanes_size { /* of what lanes are made for */
    int n, threads;
    int longest;    /* tokens of a side, at most */
    int copies;     /* each pair is trained so many times (2: R-Drop) */
    bool is_guided; /* by alignments */
};

enum tfm_status lanes_init(struct lanes *lanes, const struct lanes_size *size, const struct config *config,
                           size_t block_size, struct tfm_error *err);
void lanes_release(struct lanes *lanes);

/* Deals the pairs out so that the lanes have about equally many tokens. */
enum tfm_status lanes_split(struct lanes *lanes, const struct corpus *corpus, const int *pairs, int n,
                            struct tfm_error *err);

struct lanes_run { /* what a pass over the lanes needs */
    const struct corpus *corpus;
    const struct net *net;
    const struct kern *kern;
    enum tfm_gemm gemm;
    struct pool *pool;
    struct criterion criterion;
    struct mask mask;         /* of a masked language model */
    struct head_losses heads; /* list, n and row_weight: for passes with gradients */
    uint64_t seed;            /* of the training: for the sentences' keys */
    uint64_t update_seed;     /* of this update's dropout */
    struct profile *profiles; /* a stopwatch a thread, or NULL */
};

/* Adds what the losses on heads gave in the last run with gradients, lane by lane: sums [n of them]. */
void lanes_add_heads(struct head_sum *sums, const struct lanes *lanes, int n);

/* The target tokens of the split batch that have a loss: all, or those that are masked. */
double lanes_labels(const struct lanes *lanes, const struct lanes_run *how);

/* The loss of the split batch: with gradients (added to each lane's) and dropout, or without both. Each
 * lane's sum is set; the return value is their sum in order. */
struct xent_sum lanes_forward_backward(struct lanes *lanes, const struct lanes_run *how);
struct xent_sum lanes_forward(struct lanes *lanes, const struct lanes_run *how);

/* The loss of pairs 0 .. corpus->n - 1 without gradient and dropout; *n_labels gets the number of target
 * tokens that have one. */
enum tfm_status lanes_evaluate(struct xent_sum *sum, double *n_labels, struct lanes *lanes,
                               const struct lanes_run *how, struct tfm_error *err);

#endif
