/*
 * candidates.h: from the logits of one hypothesis to the tokens that may follow it: those forbidden are left
 * out, repetitions are punished, and what remains is searched for the best, drawn from, or forced.
 */
#ifndef TFM_DECODE_CANDIDATES_H
#define TFM_DECODE_CANDIDATES_H

#include "decode/beam.h"
#include "decode/draw.h"
#include "model/net.h"

struct candidate_options {
    int n; /* of each hypothesis */
    bool allow_unk;
    int min_length;            /* pieces before </s> at least */
    int no_repeat_ngram_size;  /* 0: off */
    double repetition_penalty; /* 1: off */
    struct draw_options draw;
};

/* The hypothesis. */
struct candidate_row {
    const int *history; /* [step] its pieces; NULL where no option asks for them */
    int step;
    int forced;        /* the only token that may follow, or -1 */
    const int *tokens; /* [n_tokens] what the logits are of, ascending; NULL: all of the vocabulary */
    int n_tokens;
    int n_draws;       /* when drawing: candidates asked for, <= n */
    uint64_t key;      /* of its draws */
    const int *wanted; /* [n_wanted] tokens that are candidates in any case */
    int n_wanted;
    bool is_unfinished;           /* </s> may not follow */
    bool is_late;                 /* nor anything but what is wanted */
    const bool *barred;           /* [V] other tokens that may not; or NULL */
    int n;                        /* the best candidates asked for */
    int width;                    /* >= n + n_wanted */
    struct beam_candidate *found; /* [width] where they go */
};

bool candidates_need_history(const struct candidate_options *options);

/* The logits of one hypothesis come part by part: those of the tokens `from` .. from + n - 1 of the
 * vocabulary or of the list. When drawing, all have to come at once. */
struct candidate_part {
    real *logits; /* [n] */
    int from, n;
};

bool candidates_need_all(const struct candidate_options *options);

/* Empties row->found. */
void candidates_start(const struct candidate_row *row);

/* For each part in turn: punishes repetitions and returns the logarithm of the sum of exp(logits). Several
 * models' logits can then be put together, and their sums over all parts in the same way. */
real candidates_sum(const struct candidate_part *part, const struct candidate_row *row,
                    const struct candidate_options *options, const struct run *run);

/* Then takes the best of the part, or draws, and what is forced or wanted. The logits are changed. */
void candidates_take(const struct candidate_part *part, const struct candidate_row *row,
                     const struct candidate_options *options, const struct config *config,
                     const struct run *run);

/* After the last part: row->found holds the n best (or those drawn, in their order), then those wanted that
 * are not among them, then tokens of -1; scores are log-probabilities, logits - sum. */
void candidates_end(const struct candidate_row *row, real sum);
size_t candidates_bytes(const struct candidate_options *options, int v); /* of the arena, given back */

#endif
