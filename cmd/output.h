/*
 * output.h: where a command's result goes: standard output, a file that appears whole or not at all, or a
 * pipe or device.
 */
#ifndef TFM_CMD_OUTPUT_H
#define TFM_CMD_OUTPUT_H

#include "cmd.h"

struct output {
    FILE *file;
    char *path;      /* of the target; NULL: standard output */
    char *temporary; /* what is written until output_commit; NULL where the target is no regular file */
};

/* path NULL or "-": standard output. A file is written under a temporary name beside the target. */
enum tfm_status output_open(struct output *out, const char *path, struct tfm_error *err);

/* Hands over to the reader what was written so far. */
enum tfm_status output_flush(struct output *out, struct tfm_error *err);

/* Puts the file in its place, and ends the output, also on failure. */
enum tfm_status output_commit(struct output *out, struct tfm_error *err);

/* Ends the output and leaves the target as it was. Fine on an output that has ended. */
void output_abandon(struct output *out);

/* True where writing to path (NULL or "-": standard output) would write into the file `input` ("-": standard
 * input). */
bool output_is_input(const char *path, const char *input);

#endif
