/*
 * print.h: the forms in which `tfm translate` prints a translation; see tfm-translate(1).
 */
#ifndef TFM_CMD_PRINT_H
#define TFM_CMD_PRINT_H

#include "tfm.h"

enum print_format { PRINT_TEXT, PRINT_JSON };

struct print_style {
    enum print_format format;
    bool n_best; /* all hypotheses, in text with their scores */
    bool word_scores;
};

/* Prints the translation of line number `id` (from 0). The model names the pieces. */
void print_translation(FILE *out, const struct print_style *style, const struct tfm_model *model, long id,
                       const struct tfm_translation *translation);

#endif
