/*
 * plan.h: from lines to batches. A line of more than max_length pieces is cut into parts, each a sentence of
 * its own: behind the end of a sentence if there is one, else behind that of a clause, else between words.
 * The sentences of all lines are sorted, longest first, so that those searched
 * together are about as long as each other, and cut into batches.
 */
#ifndef TFM_DECODE_PLAN_H
#define TFM_DECODE_PLAN_H

#include "decode/search.h"
#include "text/spm.h"

struct plan_line {
    const int *pieces; /* [n_pieces] */
    int n_pieces;
    const int *forced; /* [n_forced] what the translation of the first part begins with */
    int n_forced;
    bool is_whole; /* a pair to score, or the text of a language model: never cut, and never blank */
    bool is_cropped;               /* more pieces than max_length were left out */
    bool is_too_long;              /* to be translated with what is forced */
    uint64_t key;                  /* of what is drawn */
    int n_terms_left;              /* of a glossary, that are too many to ask for */
    int n_parts;                   /* 0: blank */
    struct search_sentence *parts; /* [n_parts] */
};

struct plan_batch {
    struct search_sentence **sentences; /* [n] */
    int n;
};

struct plan_limits {
    int mini_batch; /* sentences of a batch at most */
    int n_workers;  /* who share the work */
    size_t scratch; /* bytes that each has; at least what one sentence of max_length takes */
};

struct plan {
    int max_length;
    size_t n_sentences;
    int n_batches;
    size_t results; /* bytes that all results take at most */
    struct search_sentence *sentences, **sorted;
    struct plan_batch *batches;
    size_t sentences_cap, sorted_cap, batches_cap; /* they grow where a plan is larger than all before */
    int *count;                                    /* [max_length + 1] for sorting */
};

enum tfm_status plan_init(struct plan *plan, int max_length, struct tfm_error *err);
void plan_release(struct plan *plan);

/* Scratch with which no batch has to be smaller than it might: what the costliest batch takes. */
size_t plan_scratch(int max_length, int mini_batch, const struct search_options *options,
                    const struct net *net);

/* Fills in the parts of the n lines, whose pieces are given. */
enum tfm_status plan_cut(struct plan *plan, struct plan_line *lines, size_t n, const struct spm *spm,
                         struct tfm_error *err);
/* Sorts and cuts the sentences of all parts into batches. */
enum tfm_status plan_batches(struct plan *plan, const struct plan_limits *limits,
                             const struct search_options *options, const struct net *net,
                             struct tfm_error *err);

/* Room for n elements in a growing array (a pointer to its pointer). */
enum tfm_status plan_reserve(void *array, size_t *cap, size_t n, size_t element, struct tfm_error *err);

#endif
