/*
 * view.h: shows a training's attention to an observer outside of train/ (--watch-attention).
 */
#ifndef TFM_TRAIN_VIEW_H
#define TFM_TRAIN_VIEW_H

#include "train/training.h"

/* Lets the callback look at the judged net and reports what it found as `event`, which has kind and place
 * filled in. What cannot be drawn is a note, and the training goes on. */
enum tfm_status view_attention(const struct training *training, const struct train_callbacks *callbacks,
                               struct tfm_train_event *event, struct tfm_error *err);

#endif
