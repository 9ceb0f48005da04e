/*
 * checkpoint.h: MODEL/checkpoints/: all that a training needs to go on, on disk. checkpoint-N is the state after update N;
 * the links `last` and `best-<metric>` name the ones that are kept (tfm-model(5)).
 */
#ifndef TFM_TRAIN_CHECKPOINT_H
#define TFM_TRAIN_CHECKPOINT_H

#include "model/safetensors.h"
#include "train/optimizer.h"
#include "train/state.h"

struct checkpoints {
    struct str folder; /* MODEL/checkpoints */
    int lock;          /* held so that two trainings do not share a folder */
};

/* Makes the folder, locks it and removes what a killed training left half-written. */
enum tfm_status checkpoint_open(struct checkpoints *checkpoints, const char *model, struct tfm_error *err);
void checkpoint_close(struct checkpoints *checkpoints);

bool checkpoint_exists(const struct checkpoints *checkpoints, const char *link);

/* Writes checkpoint-N and lets `last` name it. When N is there already as the last one (is_rewrite), only the state is
 * written anew: the weights after update N are the same. */
enum tfm_status checkpoint_write(const struct checkpoints *checkpoints, const struct train_state *state,
                                 const struct settings *settings, const struct params *params,
                                 const struct optimizer *optimizer, bool is_rewrite, struct pool *pool,
                                 struct tfm_error *err);

/* Lets a link name checkpoint-N; then removes the checkpoints that no link names any more. */
enum tfm_status checkpoint_link(const struct checkpoints *checkpoints, const char *link, long update,
                                struct tfm_error *err);

/* Reads what a link names. Settings that are not those it was written with are an error. */
enum tfm_status checkpoint_read_state(const struct checkpoints *checkpoints, const char *link,
                                      struct train_state *state, const struct settings *settings,
                                      struct tfm_error *err);
enum tfm_status checkpoint_read_blocks(const struct checkpoints *checkpoints, const char *link,
                                       const struct params *params, struct optimizer *optimizer, struct pool *pool,
                                       struct tfm_error *err);

#endif
