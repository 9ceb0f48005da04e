/*
 * score_input.h: the pairs that `tfm score` scores: from two files, from one with tabs, or from a list of
 * hypotheses with its sources; or the texts of one file, for a language model.
 */
#ifndef TFM_CMD_SCORE_INPUT_H
#define TFM_CMD_SCORE_INPUT_H

#include "cmd.h"

enum score_kind {
    SCORE_FILES, /* two, with a line of each a pair */
    SCORE_TABS,  /* one, of source<TAB>target */
    SCORE_TEXT   /* one, without sources */
};

struct score_input {
    const char *source_path, *target_path; /* with tabs: the target path is that of both */
    enum score_kind kind;
    bool is_n_best;
    struct tfm_lines *source, *target;
    char *text; /* n-best: the source line of `id` */
    long id;    /* -1: none yet */
};

struct score_pair {
    char *source, *target; /* source NULL: there is none */
    char *line;  /* n-best: the whole line; else NULL */
    long number; /* of the line in the target's file */
};

/* source_path is for SCORE_FILES, and NULL else. is_n_best: target_path has "id ||| text ||| ...", where id
 * counts the source's lines from 0. */
enum tfm_status score_input_open(struct score_input *input, enum score_kind kind, const char *source_path,
                                 const char *target_path, bool is_n_best, struct tfm_error *err);
/* *more is false at the end. The pair's strings are the caller's. */
enum tfm_status score_input_next(struct score_input *input, struct score_pair *pair, bool *more,
                                 struct tfm_error *err);
void score_input_close(struct score_input *input);

void score_pair_release(struct score_pair *pair);

#endif
