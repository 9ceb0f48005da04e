/*
 * pairs.h: a parallel text as a stream of pairs of lines: two files read in step, or one file with
 * source<TAB>target a line. Files are plain, gzip, pipes or "-" (base/line.h).
 */
#ifndef TFM_TRAIN_PAIRS_H
#define TFM_TRAIN_PAIRS_H

#include "base/line.h"

struct pair_reader;

/* tsv NULL: source and target; else they are not looked at. */
enum tfm_status pairs_open(struct pair_reader **reader, const char *source, const char *target,
                           const char *tsv, struct tfm_error *err);
void pairs_free(struct pair_reader *reader);

/* The next pair, replacing both strings; *more is false at the end. Two files of unequal length and a line
 * without just one tab are errors. */
enum tfm_status pairs_read(struct pair_reader *reader, struct str *source, struct str *target, bool *more,
                           struct tfm_error *err);

/* Many pairs in memory: each text is ended by a NUL; NULs inside became spaces. */
struct text_block {
    struct str text;
    size_t *start; /* [2n]: source i begins at text.data + start[2i], its target at start[2i + 1] */
    size_t n, cap;
};

/* Replaces the block by the next pairs, at most `max`; n is 0 at the end. */
enum tfm_status pairs_read_block(struct pair_reader *reader, struct text_block *block, size_t max,
                                 struct tfm_error *err);
void pairs_release_block(struct text_block *block);

static inline const char *pairs_source(const struct text_block *block, size_t i)
{
    return block->text.data + block->start[2 * i];
}

static inline const char *pairs_target(const struct text_block *block, size_t i)
{
    return block->text.data + block->start[2 * i + 1];
}

#endif
