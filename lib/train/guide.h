/*
 * guide.h: the alignments of a batch: what each target row should look at.
 */
#ifndef TFM_TRAIN_GUIDE_H
#define TFM_TRAIN_GUIDE_H

#include "nn/head_loss.h"
#include "train/batch.h"

/* [target->n] rows for what batch_take laid out of n pairs, with weights that sum to 1 where the row's word has
 * links: its source words count alike, and so do the pieces of a word. Memory comes from the arena. */
const struct guide_row *guide_take(const struct tokens *source, const struct tokens *target,
                                   const struct corpus *corpus, const int *pairs, int n, struct arena *arena);

/* True where the pieces of both sides make as many words, each of which begins with a piece that begins with
 * a space, as spaces separate in the text. Where they do not, words cannot be told from pieces. */
bool guide_fits(const struct linked_pair *pair, const int *source, size_t n_source,
                const struct spm *source_spm, const int *target, size_t n_target,
                const struct spm *target_spm);

#endif
