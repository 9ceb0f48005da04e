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
    char *temporary; /* what is written until output_end; NULL where the target is no regular file */
    int fd;          /* of that, once more, to be synchronised when the stream is closed */
};

/* path NULL or "-": standard output. A file is written under a temporary name beside the target. */
enum tfm_status output_open(struct output *out, const char *path, struct tfm_error *err);

/* Hands over to the reader what was written so far. */
enum tfm_status output_flush(struct output *out, struct tfm_error *err);

/* Ends the output, and also returns a status that is not TFM_OK: with TFM_OK the file is put in its place,
 * else the target stays as it was. Fine where output_open failed, and on an output that is all zero. */
enum tfm_status output_end(struct output *out, enum tfm_status status, struct tfm_error *err);

/* True where writing to path (NULL or "-": standard output) would write into the file `input` ("-": standard
 * input). */
bool output_is_input(const char *path, const char *input);

#endif
