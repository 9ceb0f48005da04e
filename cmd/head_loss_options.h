/*
 * head_loss_options.h: the options of `tfm train` for losses on single attention heads.
 */
#ifndef TFM_CMD_HEAD_LOSS_OPTIONS_H
#define TFM_CMD_HEAD_LOSS_OPTIONS_H

#include "options.h"

#define HEAD_LOSS_GUIDED_WEIGHT 0.1 /* the default */

struct head_loss_options {
    struct option_names losses; /* --head-loss: "encoder.2.3:entropy=0.01" */
    struct option_names files;  /* --guided-alignment, in the order of the corpora */
    const char *guided_head;    /* "2.3"; NULL: the first of the last layer */
    unsigned guided_cost;       /* 0: cross-entropy, 1: mean squared error */
    double guided_weight;
};

/* Fills in list [TFM_MAX_HEAD_LOSSES] and the corpora's alignments. Returns OPTIONS_GO_ON, or the exit status
 * after wrong usage was reported. */
int head_loss_options_read(struct tfm_head_loss *list, int *n, struct corpus_list *corpora,
                           const struct head_loss_options *given, const struct option_table *table);

#endif
