/*
 * validate.h: the quality of a model on held-out pairs, or lines of plain text: cross-entropy, perplexity and
 * accuracy of target tokens; BLEU and chrF of real translations.
 */
#ifndef TFM_TRAIN_VALIDATE_H
#define TFM_TRAIN_VALIDATE_H

#include "train/lanes.h"
#include "train/train_options.h"
#include "train/trainer.h"
#include "train/vocab.h"

struct validate {
    struct metric_list metrics;
    struct text_block text; /* all pairs, for BLEU and chrF */
    struct corpus corpus;   /* those that can be scored, for the others */
};

/* Reads the validation set, by way of a file in `folder` where it must be; without metrics there is none. */
enum tfm_status validate_init(struct validate *validate, const struct metric_list *metrics,
                              const struct vocab *vocab, const struct tfm_train_options *options,
                              const char *folder, struct pool *pool, struct tfm_error *err);
void validate_release(struct validate *validate);

/* values [N_METRICS]: those of the metrics asked for. `how` holds the net to be judged, plain; its weights
 * are bound anew and packed for translating. */
enum tfm_status validate_run(double *values, const struct validate *validate, struct lanes *lanes,
                             const struct lanes_run *how, const struct config *config,
                             const struct weights *weights, const struct vocab *vocab,
                             const struct train_callbacks *callbacks, struct tfm_error *err);

bool validate_is_better(enum metric metric, double value, double than);

#endif
