/*
 * cmd.h: the commands of tfm. Each takes its own arguments (argv[0] is its name) and returns the exit status.
 */
#ifndef TFM_CMD_CMD_H
#define TFM_CMD_CMD_H

#include "tfm.h"

/* 0 done, 1 failed (EXIT_SUCCESS and EXIT_FAILURE of libc), 2 wrong usage, 128 + n ended by signal n. */
enum { EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

int cmd_train(int argc, char **argv);
int cmd_translate(int argc, char **argv);
int cmd_score(int argc, char **argv);
int cmd_shortlist(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_convert(int argc, char **argv);

/* Writes the sentence that says what went wrong and returns `status`, as functions of the library do. */
enum tfm_status cmd_error(struct tfm_error *err, enum tfm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prints "<command>: <sentence>" and returns the exit status that fits the error. */
int cmd_failed(const char *command, const struct tfm_error *err);

/* Where temporary files go: TMPDIR, or /tmp. */
const char *cmd_scratch_folder(void);

/* A path as messages name it: "-" is standard input. */
const char *cmd_shown_path(const char *path);

/* Flushes stdout. Where that fails (a full disk) after all went well, says so and returns EXIT_FAILURE; else
 * `status`. */
int cmd_flush(const char *command, int status);

#endif
