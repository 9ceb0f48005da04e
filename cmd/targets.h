/*
 * targets.h: the files of `tfm translate --output-dir`, one for each input.
 */
#ifndef TFM_CMD_TARGETS_H
#define TFM_CMD_TARGETS_H

#include "cmd.h"

struct targets {
    char **path; /* [n], in the order of the inputs */
    int n;
};

/* Names the target of each input: the input's name without folder and .gz, in `folder`, with `suffix` (or
 * NULL) added. TFM_EINVAL where one would be written over: an input, or another input's target. */
enum tfm_status targets_init(struct targets *targets, const char *folder, const char *suffix, char **inputs,
                             int n, struct tfm_error *err);
void targets_release(struct targets *targets);

/* Makes the folder of the targets, with its parents; fine if it is there. */
enum tfm_status targets_make_folder(const char *folder, struct tfm_error *err);

#endif
