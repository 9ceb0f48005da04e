/*
 * pairs.h: pairs of lines in memory.
 */
#ifndef TFM_TRAIN_PAIRS_H
#define TFM_TRAIN_PAIRS_H

#include "base/str.h"

struct link { /* between two words of a pair, from 0 */
    int source, target;
};

struct linked_pair {
    size_t start, n; /* in the list */
    int n_words[2];  /* of source and target */
};

struct links { /* of some pairs, which have numbers (links.h) */
    struct link *list;
    size_t n, cap;
    struct linked_pair *pairs;
    size_t n_pairs, cap_pairs; /* pairs from n_pairs on have no links */
};

/* Each text is ended by a NUL; NULs inside became spaces. */
struct text_block {
    struct str text;
    size_t *start;   /* [2n]: source i begins at text.data + start[2i], its target at start[2i + 1] */
    uint64_t *place; /* [n]: which pair of the whole corpus each is */
    size_t n, cap;
    struct links links; /* of the pairs that have an alignment */
};

struct span { /* of bytes */
    const char *data;
    size_t len;
};

enum tfm_status pairs_add(struct text_block *block, struct span source, struct span target, uint64_t place,
                          struct tfm_error *err);
void pairs_clear(struct text_block *block);
void pairs_release(struct text_block *block);

static inline const char *pairs_source(const struct text_block *block, size_t i)
{
    return block->text.data + block->start[2 * i];
}

static inline const char *pairs_target(const struct text_block *block, size_t i)
{
    return block->text.data + block->start[2 * i + 1];
}

#endif
