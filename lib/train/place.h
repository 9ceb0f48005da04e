/*
 * place.h: where a training stands in its epochs, and what comes next.
 */
#ifndef TFM_TRAIN_PLACE_H
#define TFM_TRAIN_PLACE_H

#include "train/training.h"

/* Loads the window of a new training's state. A corpus without any pair to train on is an error, here or when
 * the first pass comes to its last window. */
enum tfm_status place_begin(struct training *training, struct tfm_error *err);

/* The same for a state that was read from a checkpoint, whose place may lie outside; sets the point that the
 * place amounts to. */
enum tfm_status place_find(struct training *training, struct tfm_error *err);

/* Replaces pairs by those of the next update's batches, of the next window or epoch where need be; and that n
 * pairs were trained on. */
enum tfm_status place_next_pairs(struct training *training, struct ints *pairs, struct tfm_error *err);
void place_count_pairs(struct training *training, int n);

/* Tells how many pairs of the first pass were left out, and why. */
void place_report_tally(const struct training *training);

#endif
