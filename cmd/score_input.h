/*
 * score_input.h: the pairs that `tfm score` scores: from two files, from one with tabs, or from a list of
 * hypotheses with its sources.
 */
#ifndef TFM_CMD_SCORE_INPUT_H
#define TFM_CMD_SCORE_INPUT_H

#include "cmd.h"

struct score_input {
    const char *source_path, *target_path; /* with tabs: the target path is that of both */
    bool is_tsv, is_n_best;
    struct tfm_lines *source, *target;
    char *text; /* n-best: the source line of `id` */
    long id;    /* -1: none yet */
};

struct score_pair {
    char *source, *target;
    char *line;  /* n-best: the whole line; else NULL */
    long number; /* of the line in the target's file */
};

/* source_path NULL: target_path has source<TAB>target a line. is_n_best: target_path has "id ||| text |||
 * ...", where id counts the source's lines from 0. */
enum tfm_status score_input_open(struct score_input *input, const char *source_path, const char *target_path,
                                 bool is_n_best, struct tfm_error *err);
/* *more is false at the end. The pair's strings are the caller's. */
enum tfm_status score_input_next(struct score_input *input, struct score_pair *pair, bool *more,
                                 struct tfm_error *err);
void score_input_close(struct score_input *input);

void score_pair_release(struct score_pair *pair);

#endif
