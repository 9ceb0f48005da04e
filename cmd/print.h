/*
 * print.h: the forms in which `tfm translate` prints a translation; see tfm-translate(1).
 */
#ifndef TFM_CMD_PRINT_H
#define TFM_CMD_PRINT_H

#include "tfm.h"

enum print_format {
    PRINT_TEXT,
    PRINT_JSON
};

enum print_alignment {
    PRINT_NO_ALIGNMENT,
    PRINT_HARD,     /* for each target word the source word that it looks at most */
    PRINT_SOFT,     /* all weights */
    PRINT_THRESHOLD /* all pairs above a weight */
};

struct print_style {
    enum print_format format;
    bool n_best; /* all hypotheses, in text with their scores */
    bool word_scores;
    enum print_alignment alignment;
    float threshold;
};

/* Reads "hard", "soft" or a number from 0 to 1; false where text is none of them. */
bool print_parse_alignment(struct print_style *style, const char *text);

/* Prints an alignment, "0-0 1-2" or, soft, "0.9,0.1 0.2,0.8". */
void print_alignment(FILE *out, const struct print_style *style, const struct tfm_hypothesis *hypothesis);

/* Prints the translation of line number `id` (from 0). The model names the pieces. */
void print_translation(FILE *out, const struct print_style *style, const struct tfm_model *model, long id,
                       const struct tfm_translation *translation);

#endif
