/*
 * batch.h: which pairs of a window are trained together, and in which order: a function of the seed and the
 * numbers of epoch and window alone, so that (epoch, window, batch) is all there is to a position in the
 * training.
 */
#ifndef TFM_TRAIN_BATCH_H
#define TFM_TRAIN_BATCH_H

#include "base/arena.h"
#include "nn/tokens.h"
#include "train/corpus.h"

/* What a random number is for: the last coordinate of its key. */
enum random_use {
    RANDOM_DROPOUT,
    RANDOM_SENTENCE,
    RANDOM_ORDER,
    RANDOM_STRETCH,
    RANDOM_PIECES,
    RANDOM_BLOCKS,
    RANDOM_LINES,
    RANDOM_MASK,
};

struct batch_plan { /* the batches of a window */
    int n_pairs;
    int n;                  /* batches */
    int *pairs;             /* [n_pairs]: the window, batch after batch */
    int *start;             /* [n + 1]: where in pairs each batch begins ... */
    int *turn;              /* [n]: ... and the order in which they are trained */
    struct batch_key *keys; /* for sorting */
};

enum tfm_status batch_plan_init(struct batch_plan *plan, int n_pairs, struct tfm_error *err);
void batch_plan_release(struct batch_plan *plan);

/* Plans a window (from 0) of an epoch (from 1) with at most `words` target tokens a batch (a longer pair is
 * alone). */
void batch_plan_make(struct batch_plan *plan, const struct corpus *corpus, uint64_t seed, int epoch,
                     int window, int words);

/* The pairs of the plan's i-th batch. */
static inline const int *batch_pairs(const struct batch_plan *plan, int i, int *n)
{
    const int *start = &plan->start[plan->turn[i]];
    *n = start[1] - start[0];
    return plan->pairs + start[0];
}

/* Replaces pairs by those of n batches, from the plan's i-th on, sorted as those of one batch are. */
enum tfm_status batch_join(struct ints *pairs, struct batch_plan *plan, const struct corpus *corpus, int i,
                           int n, struct tfm_error *err);

/* Lays n pairs end to end, each side closed by </s>, and that `copies` times over with keys of their own;
 * memory comes from the arena. */
void batch_take(struct tokens *source, struct tokens *target, const struct corpus *corpus, const int *pairs,
                int n, int copies, uint64_t seed, struct arena *arena);

/* Leaves nothing of a source but the </s> of each sentence: a language model reads no more. */
void batch_empty_source(struct tokens *source, int eos, struct arena *arena);

#endif
