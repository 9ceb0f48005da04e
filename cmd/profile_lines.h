/*
 * profile_lines.h: the profile of a training (--profile) as a table and as fields of JSON.
 */
#ifndef TFM_CMD_PROFILE_LINES_H
#define TFM_CMD_PROFILE_LINES_H

#include "cmd.h"

/* Hands the table to `line` one by one, without line ends. */
void profile_lines(const struct tfm_profile *profile, void (*line)(void *user, const char *text), void *user);

/* The fields of an object that is open. */
void profile_json(FILE *file, const struct tfm_profile *profile);

#endif
