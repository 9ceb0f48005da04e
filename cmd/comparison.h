/*
 * comparison.h: what `tfm convert --valid-sets` shows: how the translations of the new model differ from
 * those of the one before.
 */
#ifndef TFM_CMD_COMPARISON_H
#define TFM_CMD_COMPARISON_H

#include "line_list.h"

struct comparison {
    struct line_list sources, references; /* as many of both */
    struct tfm_model *before;
};

/* Reads the parallel text and the model as it is before the new one is written: what is wrong with either is
 * known then, and the new model may take the other's place. Release it also on failure. */
enum tfm_status comparison_open(struct comparison *c, const char *source_path, const char *target_path,
                                const char *folder, struct tfm_error *err);
/* Translates with both models and prints a table to standard output. */
enum tfm_status comparison_print(const struct comparison *c, const char *new_folder, volatile const int *stop,
                                 struct tfm_error *err);
void comparison_release(struct comparison *c);

#endif
