/*
 * state.h: where a training stands, and what it was begun with: state.json of a checkpoint.
 */
#ifndef TFM_TRAIN_STATE_H
#define TFM_TRAIN_STATE_H

#include "train/head_terms.h"
#include "train/train_options.h"

struct score { /* of one metric */
    bool has_best;
    double best;
    int stalled; /* validations since the best */
};

struct tally { /* of the pairs of a first pass */
    long kept, source_pieces, target_pieces;
    long empty, too_long, unequal; /* left out */
};

struct train_state { /* where a training stands; weights and moments apart */
    long update;
    int epoch;            /* the running one, from 1 */
    int window;           /* the running one of the epoch's windows */
    int batch;            /* the next of the window's batches */
    long epoch_pairs;     /* trained on in this epoch */
    double target_tokens; /* in all */
    int n_lanes;
    double loss_sum;         /* since the last progress report ... */
    double loss_tokens;      /* ... over so many target tokens */
    struct head_terms terms; /* likewise, of losses on heads */
    bool valid_is_due;       /* stopped before a validation that was due */
    bool has_average;        /* a running mean of the weights lies beside them */
    bool is_ended;           /* came to its end, with all that belongs to that */
    struct score scores[N_METRICS];
    struct tally tally; /* of the first epoch's windows up to this one */
    char pretrained[256]; /* the model that it began with; "": none */
    double seconds;       /* of training; the only value that differs from run to run */
};

#define STATE_MAX_SETTINGS 40
#define STATE_MAX_VALUE    64 /* bytes of one, with its end */

/* What must not change when a training goes on, as the user would say it. */
struct setting {
    const char *name; /* "--seed" */
    char value[STATE_MAX_VALUE];
    bool is_late; /* trainings of an earlier tfm do not have it */
};

struct settings {
    struct setting list[STATE_MAX_SETTINGS];
    int n;
};

/* Appends a setting, whose value must fit. */
void state_set(struct settings *settings, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Settings that are not those the file was written with are an error. */
enum tfm_status state_read(struct train_state *state, const struct settings *settings, const char *path,
                           struct tfm_error *err);
enum tfm_status state_write(const struct train_state *state, const struct settings *settings,
                            const char *path, struct tfm_error *err);

#endif
