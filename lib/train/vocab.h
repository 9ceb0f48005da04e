/*
 * vocab.h: the vocabularies of a training: taken over, trained on the corpus, or those that the model folder
 * has.
 */
#ifndef TFM_TRAIN_VOCAB_H
#define TFM_TRAIN_VOCAB_H

#include "text/spm.h"

struct vocab {
    struct spm *source, *target;     /* the same object when there is one vocabulary */
    char *source_text, *target_text; /* names of plain text files: the corpus ... */
    bool has_text;                   /* ... if it was written out to train vocabularies on */
};

/* Puts vocab.spm, or source.spm and target.spm, into the model folder and opens them. The files stay as they
 * are where a training goes on. Text written on the way serves for reading the corpus (which may be a
 * pipe). */
enum tfm_status vocab_init(struct vocab *vocab, const struct tfm_train_options *options, bool goes_on,
                           struct tfm_error *err);
void vocab_release(struct vocab *vocab);

void vocab_remove_text(struct vocab *vocab); /* once it was read */

#endif
