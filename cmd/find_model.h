/*
 * find_model.h: which model a command uses when none was named.
 */
#ifndef TFM_CMD_FIND_MODEL_H
#define TFM_CMD_FIND_MODEL_H

#include <limits.h>

#include "cmd.h"

struct model_path {
    char text[PATH_MAX];
};

/* The folder: `named` if not NULL, else the environment's TFM_MODEL, else the model that comes with tfm. */
enum tfm_status find_model(struct model_path *path, const char *named, struct tfm_error *err);

#endif
