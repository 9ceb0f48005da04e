/*
 * watch.h: attention while a model is trained (--watch-attention): statistics of every head for the log, and
 * heat maps of some sentences as files.
 */
#ifndef TFM_INSPECT_WATCH_H
#define TFM_INSPECT_WATCH_H

#include "train/trainer.h"

struct watch;

/* sentences: a file of lines to draw, source<TAB>target or (is_text) each a text alone; or "": the first pairs
 * of the validation set. */
enum tfm_status watch_new(struct watch **watch, const char *sentences, bool is_text, struct tfm_error *err);
void watch_free(struct watch *watch);

/* A struct train_callbacks' watch; user is the struct watch. */
enum tfm_status watch_view(void *user, const struct train_view *view, const struct tfm_head **heads,
                           int *n_heads, struct tfm_error *err);

#endif
