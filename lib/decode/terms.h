/*
 * terms.h: what the translation of a sentence has to hold: a number of terms, each a row of target pieces.
 * Which of them a hypothesis holds already, and how far it has come with the next, is a small state that is
 * carried along from piece to piece. It also sums up what speaks for the places where its terms were begun.
 */
#ifndef TFM_DECODE_TERMS_H
#define TFM_DECODE_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#define TERMS_PIECES 64 /* of all terms of a sentence, at most */
#define TERMS_PLACES 16 /* by which they make its beam wider, at most */

static inline int terms_places(int n_pieces)
{
    return n_pieces < TERMS_PLACES ? n_pieces : TERMS_PLACES;
}

struct term {
    const char *text;
    const int *pieces; /* [n] */
    int n;
    const int *bare; /* [n_bare] the same without the space before it */
    int n_bare;      /* <= n; 0: there is no such form */
};

struct terms_place { /* where a term stands in the source: pieces first .. end - 1 */
    int first, end;
};

struct terms {
    const struct term *const *list;   /* [n], which may hold a term several times */
    const struct terms_place *places; /* [n] */
    int n, n_pieces;                  /* <= TERMS_PIECES */
    const bool *ends_word;            /* [V] whether a bare form may follow a piece */
    const bool *goes_on;              /* [V] whether a piece goes on with the word before it */
};

struct terms_state {
    uint64_t met;   /* bit i: term i was found */
    int n_met;      /* pieces of these terms */
    int term, done; /* the last `done` pieces are the begin of this term ... */
    bool is_bare;   /* ... in its bare form */
    bool was_open;  /* before them a bare form might begin */
    bool is_open;   /* now it might */
    double bias;    /* of the terms met: 0 where all were begun where they belong, else less ... */
    double pending; /* ... and of the one that is begun */
    bool is_closed; /* a term was just met, and its last word must not go on */
};

/* From the state of a hypothesis, all zero at its begin, to that with one piece more. weights [n]: how much, from
 * 0 to 1, the model looks at the source of a term that this piece begins; NULL: 1. */
struct terms_state terms_next(const struct terms *terms, const struct terms_state *state, int piece,
                              const float *weights);

/* The pieces, each once, with which the hypothesis goes on with a term or, between terms, begins one: at most
 * 2 * n into `pieces`; returns how many. */
int terms_wanted(int *pieces, const struct terms *terms, const struct terms_state *state);

/* How far it is, from 0 to n_pieces, where all terms are met. */
int terms_progress(const struct terms_state *state);
int terms_missing(const struct terms *terms, const struct terms_state *state); /* terms not met */

#endif
