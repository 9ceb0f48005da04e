/*
 * scan.h: reads the files of a parallel text through, once, at the speed of memory: counts lines, looks for
 * mistakes, and notes where blocks of lines begin.
 */
#ifndef TFM_TRAIN_SCAN_H
#define TFM_TRAIN_SCAN_H

#include "train/bitext.h"

struct scan { /* of one file */
    const struct source *source;
    const struct columns *columns; /* NULL: its lines are not looked into */
    int block_lines;
    bool is_alignment; /* of the others' lines: it is no text */
    /* what is found */
    uint64_t n_lines;
    int n_blocks;
    uint64_t *offset; /* [n_blocks + 1]: first byte of each block, and the size; mem_free it */
    uint64_t fingerprint;
    uint64_t not_utf8; /* the first line that is malformed; 0: none */
    /* on the way */
    uint64_t line_begin; /* of the running line */
    int n_tabs;          /* in it so far */
    int cap;             /* of offset */
    enum tfm_status status;
    struct tfm_error err;
};

/* Scans the files of a corpus side by side; unequal lengths are an error. */
enum tfm_status scan_run(struct scan *scans, int n, struct pool *pool, struct tfm_error *err);
uint64_t scan_fingerprint(const struct scan *scans, int n);

#endif
