/*
 * beam.h: beam search over one sentence, as pure bookkeeping: it is told the best continuations of each
 * live hypothesis and decides which of them live on and which have ended. It knows nothing of networks.
 *
 * The rule. Each step keeps the best `room` continuations of all live hypotheses together. One that is </s>
 * ends its hypothesis and takes its place in the room for good, so that the beam narrows by one and exactly
 * `size` hypotheses end in all (as in Marian, Junczys-Dowmunt et al. 2018). Ended ones are ranked by
 * score / pieces^normalize, </s> counted. The search is over when none lives, when the length limit is
 * reached (those still alive then end as they are, marked `limited`, and rank behind all that ended by
 * themselves), or when no live hypothesis can still come among the n_best: scores only fall, so
 * score / limit^normalize bounds what any continuation can reach (Huang et al. 2017). Ties go to the earlier
 * hypothesis, then to the smaller token. Size 1 is greedy search.
 *
 * With terms that the sentence has to hold, the room of a step is shared out in banks, one for each number of
 * their pieces that a hypothesis can have, so that those which go on with a term are not crowded out by those
 * which do without (dynamic beam allocation, Post and Vilar 2018). What a bank cannot use goes to the best of
 * all. The beam is wider by a place for each piece of a term (TERMS_PLACES at most), and over when only these
 * places are left; with more pieces the banks that hold something have a place each, those with most pieces
 * first. A hypothesis ends with all terms, and of those that the length limit ends the ones with most rank
 * first. For a term to come where it belongs, and not in addition to the model's own words, hypotheses rank by
 * their score plus a bias (terms.h). The scores themselves stay the model's.
 */
#ifndef TFM_DECODE_BEAM_H
#define TFM_DECODE_BEAM_H

#include <stdbool.h>

#include "base/arena.h"
#include "decode/terms.h"

struct beam_options {
    int size;                  /* hypotheses kept a step, >= 1, and more than terms_places */
    int n_best;                /* wanted in the end, 1 .. size */
    double normalize;          /* >= 0 */
    int eos;                   /* </s> */
    const struct terms *terms; /* what each hypothesis has to hold; NULL: nothing */
};

struct beam_candidate {
    int token;   /* -1: none, and none follows */
    float score; /* its log-probability, <= 0 */
};

struct beam_node { /* one piece of the history, which is a tree: hypotheses share their beginnings */
    int parent;    /* -1 for the start symbol */
    int token;
    int row;     /* of the cache, once the piece was fed to the decoder */
    float score; /* log-probability of the piece */
};

struct beam_hypothesis {
    int node; /* its last piece */
    double score;
};

struct beam_ending {
    int node;
    int n_pieces; /* </s> included, unless limited */
    double score, normalized_score;
    double rank; /* normalized_score, and with terms their bias */
    bool limited;
    int n_missing; /* terms, where limited */
};

struct beam {
    struct beam_options options;
    int limit;         /* pieces at most */
    double limit_norm; /* limit^normalize */
    int step;          /* pieces that each live hypothesis has */
    int n_live, n_ended, n_nodes;
    struct beam_hypothesis *live; /* [size], best first; the search is over when n_live is 0 */
    struct beam_ending *ended;    /* [size], best first; at least one once the search is over */
    struct beam_node *nodes;      /* [1 + size * limit] */
    struct beam_choice *chosen;   /* [size] scratch of a step */
    struct terms_state *states;   /* [size] of the live hypotheses; NULL without terms, as are ... */
    float *weights; /* ... [size, terms->n] of what terms_next is told, 1 unless set before a step ... */
    struct beam_option *weighed; /* ... [size * beam_width] scratch of a step */
};

/* Starts with one live hypothesis, the start symbol. The memory is taken from the arena: beam_bytes at
 * most. */
void beam_init(struct beam *beam, const struct beam_options *options, int start_token, int limit,
               struct arena *arena);
size_t beam_bytes(int size, int limit, const struct terms *terms);

/* Candidates of a live hypothesis at most: size, and the pieces that terms_wanted has. */
int beam_width(int size, const struct terms *terms);

/* The token that hypothesis h has to be fed to the decoder, and the cache rows of its history: `row` is
 * where this token will be. rows [step + 1] gets all of them from the start symbol on, `row` last. */
int beam_token(const struct beam *beam, int h);
void beam_rows(struct beam *beam, int h, int row, int *rows);

/* The pieces of hypothesis h so far: history [step]. */
void beam_history(const struct beam *beam, int h, int *history);

/* One step. candidates [n_live, beam_width]: for each live hypothesis its best continuations, best first, equal
 * ones in order of tokens; `size` of them and then those wanted, or fewer and then a token of -1. */
void beam_step(struct beam *beam, const struct beam_candidate *candidates);

/* The pieces of an ending and their log-probabilities, [n_pieces] each. */
void beam_pieces(const struct beam *beam, const struct beam_ending *ending, int *pieces, float *scores);

/* The nodes that they followed: nodes [n_pieces], from that of the start symbol on. */
void beam_nodes(const struct beam *beam, const struct beam_ending *ending, int *nodes);

#endif
