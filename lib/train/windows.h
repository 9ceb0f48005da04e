/*
 * windows.h: a pass through all corpora in windows, each of as many pairs as are held in memory and shuffled
 * together. Which pairs a window has is a function of (seed, epoch, window) and of the corpora alone.
 */
#ifndef TFM_TRAIN_WINDOWS_H
#define TFM_TRAIN_WINDOWS_H

#include "train/bitext.h"
#include "train/corpus.h"

struct visit { /* of a block, in a pass */
    int text, block;
    int n;    /* pairs of it that are seen: all, or some */
    int copy; /* from 0, where a weight lets the pass see pairs several times */
};

struct windows {
    int n_texts;
    struct bitext *texts;
    uint64_t *first; /* [n_texts + 1]: number, in the whole corpus, of each text's first pair */
    uint64_t seed;
    uint64_t pass_pairs;  /* pairs that a pass sees, by weight, before any is left out */
    uint64_t fingerprint; /* of all texts */
    int n;                /* windows a pass, at least 1 */
    bool is_constant;     /* the one window has the same pairs in every epoch */
    int n_visits;
    struct visit *visits;
    int *order; /* [n_visits]: of a pass */
};

/* Opens the options' corpora. Text that must be written down goes to `folder`; a training that goes on takes
 * from there what can be read only once. */
enum tfm_status windows_open(struct windows *windows, const struct tfm_train_options *options,
                             const char *folder, bool goes_on, struct pool *pool, struct tfm_error *err);
void windows_release(struct windows *windows);

bool windows_is_guided(const struct windows *windows); /* a text has an alignment */

static inline uint64_t windows_pairs(const struct windows *windows) /* of the whole corpus */
{
    return windows->first[windows->n_texts];
}

/* Replaces the corpus by a window's pairs; *begin and *n get its place among the pass's pairs, before any is
 * left out. */
enum tfm_status windows_load(struct windows *windows, struct corpus *corpus, int epoch, int window,
                             uint64_t *begin, uint64_t *n, struct pool *pool, struct tfm_error *err);

#endif
