/*
 * search.h: beam search for a batch of sentences, on one thread: encoder once, then a decoder step for all
 * live hypotheses of all sentences together, until each sentence is done. A sentence that is done leaves
 * the batch at once. What is found for a sentence depends on that sentence alone.
 */
#ifndef TFM_DECODE_SEARCH_H
#define TFM_DECODE_SEARCH_H

#include "decode/candidates.h"
#include "model/shortlist.h"

struct search_options {
    int beam_size, n_best; /* 1 <= n_best <= beam_size; equal when tokens are drawn: so many samples */
    double normalize;      /* hypotheses are ranked by score / pieces^normalize */
    double max_length_factor;
    int max_text; /* pieces of a language model's text; 0: of a translation, for which the factor tells */
    bool align; /* keep the attention paid to the source, in layer align_layer, the mean of its heads */
    int align_layer;
    struct candidate_options candidates; /* its n is set to the beam size */
    const struct shortlist *shortlist;   /* what may come in a sentence's translation; NULL: anything */
    int n_more;                          /* members of an ensemble beside the net given to search_batch ... */
    const struct net *const *more;       /* ... [n_more], of the same vocabularies and start symbol */
    const float *weights;                /* [1 + n_more] of the members' log-probabilities, 1 in sum */
    int most_term_pieces;                /* that a sentence may have to hold */
};

struct search_hypothesis {
    int n_pieces;              /* </s> included, unless limited */
    const int *pieces;         /* [n_pieces] */
    const float *piece_scores; /* [n_pieces] log-probabilities */
    const float *attention;    /* [n_pieces, source pieces + 1], </s> last; NULL unless asked for */
    double score, normalized_score;
    bool limited;  /* the length limit ended it */
    int n_missing; /* terms that it lacks */
};

struct search_sentence {
    const int *pieces; /* [n_pieces] source pieces without </s> */
    int n_pieces;
    const int *forced; /* [n_forced] what the translation begins with; with </s> at its end, all of it */
    int n_forced;
    const struct terms *terms;            /* what the translation has to hold; NULL: nothing */
    uint64_t key;                         /* of what is drawn */
    int n_hypotheses;                     /* found: 1 .. n_best */
    struct search_hypothesis *hypotheses; /* best first; in the results arena */
};

/* Of a sentence, n_pieces and n_forced are those of its struct, n_terms the pieces of its terms. */

/* Upper bounds, so that nobody asks an arena for more than it has: scratch for a batch is
 * search_scratch_base and for each sentence search_scratch more; its results take search_results. */
size_t search_scratch_base(const struct search_options *options, const struct net *net);
size_t search_scratch(const struct search_options *options, const struct net *net, int n_pieces, int n_forced,
                      int n_terms);
size_t search_results(const struct search_options *options, int n_pieces, int n_forced, int n_terms);
/* The part of search_scratch that grows less than the pieces do: of a shortlist. */
size_t search_list_scratch(const struct search_options *options, const struct net *net, int n_pieces,
                           int n_forced, int n_terms);

static inline int search_term_pieces(const struct search_sentence *sentence)
{
    return sentence->terms != NULL ? sentence->terms->n_pieces : 0;
}

/* Rows of the decoder's cache that a sentence may take. */
size_t search_rows(const struct search_options *options, const struct search_sentence *sentence);

/* Translates the n sentences of a batch. Scratch comes from the run's arena and is given back; hypotheses
 * are taken from `results`. The net must be packed. Attention is that of the net, not of other members. */
void search_batch(struct search_sentence *const *sentences, int n, const struct search_options *options,
                  const struct net *net, struct arena *results, const struct run *run);

#endif
