/*
 * bitext.h: a parallel text on disk, which may have an alignment, or a text alone, whose pairs have an empty
 * target: opened, read through once to prove it, and from then on readable in blocks of lines.
 */
#ifndef TFM_TRAIN_BITEXT_H
#define TFM_TRAIN_BITEXT_H

#include "base/pool.h"
#include "train/pairs.h"
#include "train/source.h"

struct columns { /* of a tab-separated file, from 1; both 0: it has two; only target 0: a text alone */
    int source, target;
};

struct bitext {
    struct source side[SOURCE_MAX]; /* source and target, or one with tabs or of text; then the alignment */
    int n_sides;                    /* 1 or 2 */
    bool is_tsv, is_aligned;
    struct columns columns;
    uint64_t n_pairs;
    int block_lines; /* pairs a block; the last may have fewer */
    int n_blocks;
    uint64_t *offset[SOURCE_MAX];  /* [n_blocks + 1]: where in its side each block begins */
    uint64_t fingerprint;          /* of all bytes */
    uint64_t not_utf8[SOURCE_MAX]; /* [n_sides]: the first line that is malformed; 0: none */
};

/* Names the corpus in messages: "a and b", or "c.tsv", or "text". */
enum tfm_status bitext_name(struct str *name, const struct tfm_corpus *corpus, struct tfm_error *err);

/* Files of unequal length, a line of a tab-separated file without the columns, and damaged gzip data are
 * errors, with their place. On failure there is nothing to be released. */
enum tfm_status bitext_open(struct bitext *bitext, const struct tfm_corpus *corpus,
                            const struct columns *columns, int block_lines, const struct spool *spool,
                            struct pool *pool, struct tfm_error *err);
void bitext_release(struct bitext *bitext);

/* Notes which files hold what is no UTF-8, and where it begins. */
void bitext_report(const struct bitext *bitext, const struct tfm_train_options *options);

static inline int bitext_block_pairs(const struct bitext *bitext, int block)
{
    uint64_t left = bitext->n_pairs - (uint64_t)block * (uint64_t)bitext->block_lines;
    return left < (uint64_t)bitext->block_lines ? (int)left : bitext->block_lines;
}

static inline int bitext_files(const struct bitext *bitext)
{
    return bitext->n_sides + bitext->is_aligned;
}

/* Appends the pairs of a block, or those of them that are `chosen` (NULL: all); the first one of the text is
 * at `place` in the corpus. */
enum tfm_status bitext_read(struct text_block *out, const struct bitext *bitext, int block,
                            const bool *chosen, uint64_t place, struct tfm_error *err);

#endif
