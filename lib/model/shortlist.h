/*
 * shortlist.h: a lexical shortlist: the target pieces that may come in the translation of a sentence, so that
 * logits are needed for them alone (Jean et al. 2015; Devlin et al. 2014). It holds the most frequent target
 * pieces and, for each source piece, those that are probable translations of it; a sentence gets what is
 * listed for its own pieces, whatever else is in its batch.
 *
 * The file is gzip. Inside, little-endian: "TFM-LIST"; version, source pieces, target pieces (4 bytes each);
 * a fingerprint of both vocabularies (8 bytes); then 1 + source pieces lists, the frequent ones first. A list
 * is the number of its pieces and, ascending, the difference of each to the one before it (the first: its id
 * + 1). These numbers are written 7 bits a byte, the low ones first, 128 added to all bytes but the last.
 */
#ifndef TFM_MODEL_SHORTLIST_H
#define TFM_MODEL_SHORTLIST_H

#include "base/arena.h"
#include "text/spm.h"

#define SHORTLIST_FILE "shortlist.gz" /* in a model folder */

struct shortlist {
    int n_source, n_target; /* pieces of the vocabularies */
    size_t *start;          /* [n_source + 2]: list i is ids[start[i]] .. ids[start[i + 1] - 1] */
    int *ids;    /* each list ascending; list 0: the frequent ones, list 1 + e: of source piece e */
    int longest; /* pieces of the longest list but the first */
    uint64_t fingerprint; /* of the vocabularies, as the file has it */
};

/* What was made for other vocabularies is refused. */
enum tfm_status shortlist_read(struct shortlist **shortlist, const char *path, const struct spm *source,
                               const struct spm *target, struct tfm_error *err);
/* The same in two steps, the first of which needs no more than the numbers of pieces. */
enum tfm_status shortlist_read_sized(struct shortlist **shortlist, const char *path, int n_source,
                                     int n_target, struct tfm_error *err);
enum tfm_status shortlist_check(const struct shortlist *shortlist, const char *path, const struct spm *source,
                                const struct spm *target, struct tfm_error *err);
enum tfm_status shortlist_write(const struct shortlist *shortlist, const char *path, const struct spm *source,
                                const struct spm *target, struct tfm_error *err);
void shortlist_free(struct shortlist *shortlist);

static inline int shortlist_length(const struct shortlist *shortlist, int list)
{
    return (int)(shortlist->start[list + 1] - shortlist->start[list]);
}

/* The pieces for a sentence and those in `more`, ascending, each once. ids has room for shortlist_most. The
 * arena lends the bits of all pieces. */
int shortlist_select(int *ids, const struct shortlist *shortlist, const int *pieces, int n, const int *more,
                     int n_more, struct arena *arena);
/* Where a piece stands in such a choice [n], or -1. */
int shortlist_find(const int *ids, int n, int piece);
/* At most, for n_pieces of source and n_more others. */
int shortlist_most(const struct shortlist *shortlist, int n_pieces, int n_more);

#endif
