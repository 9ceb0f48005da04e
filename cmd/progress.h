/*
 * progress.h: shows the events of a training: a line rewritten in place on a terminal, log lines elsewhere
 * and in a file, JSON lines in another, numbers for TensorBoard in a third; see tfm-train(1).
 */
#ifndef TFM_CMD_PROGRESS_H
#define TFM_CMD_PROGRESS_H

#include <time.h>

#include "cmd.h"

struct progress {
    bool quiet;
    char shown[200]; /* the progress line on the terminal; "" while there is none */
    FILE *log, *json, *scalars;
    const char *log_path, *json_path;
    char scalars_path[4096];
    struct timespec last; /* time of the last progress event */
};

struct progress_files {      /* NULL: none */
    const char *log, *json;  /* appended to */
    const char *tensorboard; /* a folder that gets a new file */
};

/* Opens the files, with the folders they are to lie in. */
enum tfm_status progress_init(struct progress *progress, bool quiet, const struct progress_files *files,
                              struct tfm_error *err);

/* A struct tfm_train_options' event; user is the struct progress. */
void progress_event(void *user, const struct tfm_train_event *event);

/* Ends the progress line and closes the files. */
void progress_release(struct progress *progress);

#endif
