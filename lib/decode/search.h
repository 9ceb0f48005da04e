/*
 * search.h: beam search for a batch of sentences, on one thread: encoder once, then a decoder step for all
 * live hypotheses of all sentences together, until each sentence is done. A sentence that is done leaves
 * the batch at once. What is found for a sentence depends on that sentence alone.
 */
#ifndef TFM_DECODE_SEARCH_H
#define TFM_DECODE_SEARCH_H

#include "model/net.h"

struct search_options {
    int beam_size, n_best; /* 1 <= n_best <= beam_size */
    double normalize;      /* hypotheses are ranked by score / pieces^normalize */
    double max_length_factor;
    bool allow_unk;
};

struct search_hypothesis {
    int n_pieces;              /* </s> included, unless limited */
    const int *pieces;         /* [n_pieces] */
    const float *piece_scores; /* [n_pieces] log-probabilities */
    double score, normalized_score;
    bool limited; /* the length limit ended it */
};

struct search_sentence {
    const int *pieces; /* [n_pieces] source pieces without </s>, at least one */
    int n_pieces;
    int n_hypotheses;                     /* found: 1 .. n_best */
    struct search_hypothesis *hypotheses; /* best first; in the results arena */
};

/* Target pieces at most for a source of n_pieces: max_length_factor * n_pieces + 10. */
int search_limit(const struct search_options *options, int n_pieces);

/* Upper bounds, so that nobody asks an arena for more than it has: scratch for a batch is
 * search_scratch_base and for each sentence search_scratch more; its results take search_results. */
size_t search_scratch_base(const struct net *net);
size_t search_scratch(const struct search_options *options, const struct net *net, int n_pieces);
size_t search_results(const struct search_options *options, int n_pieces);

/* Translates the n sentences of a batch. Scratch comes from the run's arena and is given back; hypotheses
 * are taken from `results`. The net must be packed. */
void search_batch(struct search_sentence *const *sentences, int n, const struct search_options *options,
                  const struct net *net, struct arena *results, const struct run *run);

#endif
