/*
 * vocab.h: the vocabularies of a training: taken over, trained on the corpora, or those that the model folder
 * has.
 */
#ifndef TFM_TRAIN_VOCAB_H
#define TFM_TRAIN_VOCAB_H

#include "text/spm.h"
#include "train/windows.h"

struct vocab {
    struct spm *source, *target; /* the same object when there is one vocabulary */
    uint64_t fingerprint;        /* of all bytes */
};

/* Puts vocab.spm, or source.spm and target.spm, into the model folder and opens them. The files stay as they
 * are where a training goes on. */
enum tfm_status vocab_init(struct vocab *vocab, const struct tfm_train_options *options,
                           const struct windows *windows, bool goes_on, struct tfm_error *err);
void vocab_release(struct vocab *vocab);

#endif
