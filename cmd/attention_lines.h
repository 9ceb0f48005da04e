/*
 * attention_lines.h: what the attention heads of a model in training do (--watch-attention), as log lines and
 * as fields of JSON.
 */
#ifndef TFM_CMD_ATTENTION_LINES_H
#define TFM_CMD_ATTENTION_LINES_H

#include "cmd.h"

/* Hands a line for each part of the model to `line`, without line ends. */
void attention_lines(const struct tfm_train_event *event, void (*line)(void *user, const char *text),
                     void *user);

/* The fields of an object that is open. */
void attention_json(FILE *file, const struct tfm_train_event *event);

#endif
