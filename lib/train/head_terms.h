/*
 * head_terms.h: the losses on single heads that a training was told to have: checked, named and reported.
 */
#ifndef TFM_TRAIN_HEAD_TERMS_H
#define TFM_TRAIN_HEAD_TERMS_H

#include "model/config.h"
#include "nn/head_loss.h"

struct head_term {
    char name[48];       /* "encoder.2.3:entropy" */
    struct head_sum sum; /* since the last report */
};

struct head_terms {
    struct head_term list[TFM_MAX_HEAD_LOSSES];
    int n;
};

/* That the config has these heads, and that alignments and what needs them come together. */
enum tfm_status head_terms_check(const struct tfm_train_options *options, const struct config *config,
                                 struct tfm_error *err);

/* Makes of the options what a pass needs, list [n_head_losses], and terms with their names and without sums. */
void head_terms_bind(struct head_loss *list, struct head_terms *terms,
                     const struct tfm_train_options *options, const struct config *config);

/* Takes the sums of terms that `from` has under the same name. */
void head_terms_resume(struct head_terms *terms, const struct head_terms *from);

void head_terms_add(struct head_terms *terms, const struct head_sum *sums);

/* Fills in reports [n] and begins the sums anew. Names are the terms' own. */
void head_terms_report(struct tfm_head_term *reports, struct head_terms *terms);

#endif
