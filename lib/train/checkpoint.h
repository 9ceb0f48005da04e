/*
 * checkpoint.h: MODEL/checkpoints/: all that a training needs to go on, on disk. checkpoint-N is the state
 * after update N; the links `last` and `best-<metric>` name the ones that are kept (tfm-model(5)).
 */
#ifndef TFM_TRAIN_CHECKPOINT_H
#define TFM_TRAIN_CHECKPOINT_H

#include "model/safetensors.h"
#include "train/optimizer.h"
#include "train/state.h"

/* The files of a checkpoint. */
#define CHECKPOINT_STATE   "state.json"
#define CHECKPOINT_WEIGHTS "weights.safetensors"
#define CHECKPOINT_AVERAGE "ema.safetensors"
#define CHECKPOINT_MOMENT1 "moment1.safetensors"
#define CHECKPOINT_MOMENT2 "moment2.safetensors"

struct checkpoints {
    struct str folder; /* MODEL/checkpoints */
    int lock;          /* held so that two trainings do not share a folder */
    unsigned made;     /* what was not there before: a bit for each of what a start makes */
};

/* Makes both folders, locks the inner one and removes what a killed training left half-written. Checkpoints
 * without the name `last` among them are an error. */
enum tfm_status checkpoint_init(struct checkpoints *checkpoints, const char *model, struct tfm_error *err);
/* Only the lock, where there is a folder: nothing is made or removed. */
enum tfm_status checkpoint_lock(struct checkpoints *checkpoints, const char *model, struct tfm_error *err);
void checkpoint_release(struct checkpoints *checkpoints);

/* Removes what a start has made, folders and vocabularies, where it has come to no checkpoint. */
void checkpoint_abandon(const struct checkpoints *checkpoints, const char *model);

bool checkpoint_exists(const struct checkpoints *checkpoints, const char *link);

/* Before the first files of checkpoint-N: a save that ends before `last` names one, the first of a training, is
 * known by this, and checkpoint_init removes what it left. */
enum tfm_status checkpoint_announce(const struct checkpoints *checkpoints, long update, struct tfm_error *err);

/* Writes checkpoint-N, still without a name. */
enum tfm_status checkpoint_write(const struct checkpoints *checkpoints, const struct train_state *state,
                                 const struct settings *settings, const struct params *params,
                                 const struct optimizer *optimizer, struct pool *pool, struct tfm_error *err);

/* Writes the state of checkpoint-N anew. */
enum tfm_status checkpoint_rewrite(const struct checkpoints *checkpoints, const struct train_state *state,
                                   const struct settings *settings, struct tfm_error *err);

/* Lets a link name checkpoint-N. */
enum tfm_status checkpoint_link(const struct checkpoints *checkpoints, const char *link, long update,
                                struct tfm_error *err);

/* Removes the checkpoints that no link names, but for the n_newest of those up to `last`. */
enum tfm_status checkpoint_prune(const struct checkpoints *checkpoints, int n_newest, struct tfm_error *err);

/* Reads what a link names. Settings that are not those it was written with are an error. */
enum tfm_status checkpoint_read_state(const struct checkpoints *checkpoints, const char *link,
                                      struct train_state *state, const struct settings *settings,
                                      struct tfm_error *err);
/* Without a running mean in the checkpoint, as its state has it, the mean begins with the weights. */
enum tfm_status checkpoint_read_blocks(const struct checkpoints *checkpoints, const char *link,
                                       const struct train_state *state, const struct params *params,
                                       struct optimizer *optimizer, struct pool *pool, struct tfm_error *err);

#endif
