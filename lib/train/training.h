/*
 * training.h: all the parts of a training, opened and put together; the loop over them is in trainer.c.
 */
#ifndef TFM_TRAIN_TRAINING_H
#define TFM_TRAIN_TRAINING_H

#include "train/breakdown.h"
#include "train/checkpoint.h"
#include "train/schedule.h"
#include "train/validate.h"

struct training {
    struct tfm_train_options options;
    struct metric_list metrics;
    struct pool *pool;
    const struct kern *kern;
    struct breakdown *breakdown; /* NULL: not wanted */

    /* what it learns from */
    struct windows windows;
    struct vocab vocab;
    struct corpus corpus;                /* the running window */
    struct corpus sampled;               /* the same pairs in the running epoch's own segmentations */
    const struct corpus *seen;           /* what is trained on: one of the two */
    struct batch_plan plan;              /* of it */
    uint64_t window_begin, window_pairs; /* the window's place in the pass, before any pair is left out */
    long trained_pairs;                  /* of its pairs, in this epoch */
    struct validate validate;

    /* what it learns */
    struct config config;
    struct params params;
    struct optimizer optimizer;
    struct weights weights;
    struct net net;
    struct weights judged_weights; /* validated and exported: the running mean, where there is one */
    struct net judged_net;
    struct lanes lanes;
    struct head_loss head_losses[TFM_MAX_HEAD_LOSSES]; /* [options.n_head_losses] */

    /* where it stands */
    struct checkpoints checkpoints;
    struct settings settings;
    struct train_state state;
    struct schedule_point point;
    bool has_resumed;
    long saved_update;     /* of the last checkpoint; -1: none */
    double seconds_before; /* of training, in earlier runs */
    double started;        /* clock */
};

/* Opens everything, fresh or as the model folder's last checkpoint has it. `training` is zeroed memory; it is
 * to be released also after a failure. */
enum tfm_status training_init(struct training *training, const struct tfm_train_options *options,
                              struct tfm_error *err);
void training_release(struct training *training);

/* The weights that are validated and exported. */
const real *training_judged(const struct training *training);

/* How a pass over the lanes runs at an update. */
struct lanes_run training_lanes_run(const struct training *training, const struct net *net, long update);

double training_clock(void);                              /* seconds */
double training_seconds(const struct training *training); /* of training, all runs together */

#endif
