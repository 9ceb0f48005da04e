/*
 * train_options.h: the options of a training, checked and with the preset's values filled in.
 */
#ifndef TFM_TRAIN_TRAIN_OPTIONS_H
#define TFM_TRAIN_TRAIN_OPTIONS_H

#include "model/config.h"

enum metric {
    METRIC_CE,
    METRIC_PERPLEXITY,
    METRIC_ACCURACY,
    METRIC_BLEU,
    METRIC_CHRF,
    N_METRICS
};

struct metric_list {
    enum metric list[N_METRICS];
    int n; /* the last one decides early stopping and which model is exported */
};

const char *train_options_metric(enum metric metric); /* "ce", "perplexity", "accuracy", "bleu", "chrf" */
bool train_options_is_of_translations(enum metric metric); /* rather than of probabilities */

const char *train_options_arch(const struct config *config); /* "transformer", "rnn", "decoder", "encoder" */

/* Whether corpora are texts alone rather than pairs: those of an encoder alone; with a decoder alone the first
 * corpus tells, and then it is a language model. */
bool train_options_is_text(const struct tfm_train_options *options);

/* Copies the options, checks what the trainer relies on and puts the preset's batch size, learning rate and
 * warm-up, and the number of cores, in the place of zeros; `metrics` is empty without validation sets. */
enum tfm_status train_options_resolve(struct tfm_train_options *resolved, struct metric_list *metrics,
                                      const struct tfm_train_options *options, struct tfm_error *err);

/* The architecture: the preset's, with the parts that options name replaced. Sizes of vocabularies are not
 * its matter. */
void train_options_config(struct config *config, const struct tfm_train_options *options);

#endif
