/*
 * translate_file.h: translates the lines of one file into an output.
 */
#ifndef TFM_CMD_TRANSLATE_FILE_H
#define TFM_CMD_TRANSLATE_FILE_H

#include "output.h"
#include "print.h"
#include "record.h"

struct translate_style {
    struct print_style print;
    struct record_style record;
    bool progress;     /* show on the terminal how far a file is */
    bool quiet;        /* no notes about single lines */
    bool verbose;      /* also the length limits that were met */
    bool force_decode; /* lines hold, behind a tab, what their translation begins with */
    int maxi_batch;
    size_t window_lines; /* read in one go, at most */
};

struct translation_job {
    const char *command; /* for notes */
    const struct translate_style *style;
    const struct tfm_model *model;
    struct tfm_translator *translator;
    long n_lines;    /* translated so far */
    long first_line; /* of them, before the output that is being written */
    long n_words;    /* of their sources */
    double ready;    /* seconds from the start of the command until the first line could be translated */
};

/* Translates a file ("-": standard input), one line of output a line. When reading fails, what was read
 * before is translated first. */
enum tfm_status translate_file(struct translation_job *job, const char *path, struct output *out,
                               struct tfm_error *err);

/* Prints how many lines were translated, how fast and in how much memory, and which part took which share. */
void translation_report(const struct translation_job *job);

#endif
