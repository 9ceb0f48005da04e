/*
 * ngram.h: the n-grams that two sequences of numbers have in common, for BLEU (of words) and chrF (of
 * characters).
 */
#ifndef TFM_TEXT_NGRAM_H
#define TFM_TEXT_NGRAM_H

#include "base/str.h"
#include "text/utf8.h"

enum { NGRAM_MAX = 6 }; /* longest n-gram */

/* A hash table of (prefix, symbol). Starts as all zeros, serves pair after pair, ends with ngram_release. */
struct ngrams {
    struct ngram_slot *slots;
    size_t n_slots, mask; /* allocated; those of the present round, less 1 (a power of two less 1) */
    uint64_t round;       /* slots of earlier rounds are free */
    struct ints prefix;
};

struct ngram_counts {
    long hypothesis[NGRAM_MAX], reference[NGRAM_MAX], match[NGRAM_MAX]; /* of order 1, 2, ... */
};

void ngram_release(struct ngrams *ngrams);

/* Forgets everything and makes room for n different (prefix, symbol). */
enum tfm_status ngram_start(struct ngrams *ngrams, size_t n, struct tfm_error *err);

/* The number (> 0) of the sequence numbered `prefix` (0: the empty one) with a symbol more. */
int ngram_extend(struct ngrams *ngrams, int prefix, int symbol);

/* Counts the n-grams of order 1..order of both sequences and those in common (as often as in the one that
 * has it less often). */
enum tfm_status ngram_match(struct ngrams *ngrams, const struct ints *hypothesis,
                            const struct ints *reference, int order, struct ngram_counts *counts,
                            struct tfm_error *err);

/* White space as Python's str.split sees it, which sacreBLEU uses: White_Space and U+001C..U+001F. */
static inline bool ngram_is_space(uint32_t cp)
{
    return utf8_is_space(cp) || (cp >= 0x1c && cp <= 0x1f);
}

#endif
