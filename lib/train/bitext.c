/*
 * bitext.c: reads blocks of a parallel text. A side's bytes of a block lie between two offsets; its lines are
 * cut as base/line.h cuts them: without a CR before the line end and without a byte order mark at the start.
 * What scan.c has proved of the file is not believed a second time, since files change.
 */
#include "train/bitext.h"

#include <string.h>

#include "base/mem.h"
#include "train/scan.h"

enum tfm_status bitext_name(struct str *name, const struct tfm_corpus *corpus, struct tfm_error *err)
{
    str_clear(name);
    return corpus->tsv != NULL ? str_printf(name, err, "%s", corpus->tsv)
                               : str_printf(name, err, "%s and %s", corpus->source, corpus->target);
}

static enum tfm_status scan(struct bitext *b, struct pool *pool, struct tfm_error *err)
{
    struct scan scans[2];
    for (int i = 0; i < b->n_sides; i++)
        scans[i] = (struct scan){ .source = &b->side[i],
                                  .columns = b->n_sides == 1 ? &b->columns : NULL,
                                  .block_lines = b->block_lines };
    enum tfm_status status = scan_run(scans, b->n_sides, pool, err);
    for (int i = 0; i < b->n_sides; i++)
        b->offset[i] = scans[i].offset;
    TRY(status);
    b->n_pairs = scans[0].n_lines;
    b->n_blocks = scans[0].n_blocks;
    b->fingerprint = scan_fingerprint(scans, b->n_sides);
    return TFM_OK;
}

enum tfm_status bitext_open(struct bitext *b, const struct tfm_corpus *corpus, const struct columns *columns,
                            int block_lines, const struct spool *spool, struct pool *pool,
                            struct tfm_error *err)
{
    const char *const sides[] = { corpus->source, corpus->target };
    *b = (struct bitext){ .n_sides = corpus->tsv != NULL ? 1 : 2,
                          .columns = *columns,
                          .block_lines = block_lines };
    TRY(source_open(b->side, corpus->tsv != NULL ? &corpus->tsv : sides, b->n_sides, spool, err));
    enum tfm_status status = scan(b, pool, err);
    if (status != TFM_OK)
        bitext_release(b);
    return status;
}

void bitext_release(struct bitext *b)
{
    for (int i = 0; i < b->n_sides; i++) {
        source_release(&b->side[i]);
        mem_free(b->offset[i]);
    }
    *b = (struct bitext){ 0 };
}

/* ---- blocks ---- */

struct text { /* of a block, on one side: what is left of it */
    char *bytes;
    struct span rest;
};

static enum tfm_status has_changed(const struct bitext *b, int side, struct tfm_error *err)
{
    return err_set(
        err, TFM_EIO,
        "%s was changed while it was trained on: the same command goes on from the last checkpoint "
        "when the file is again as it was",
        b->side[side].name);
}

static enum tfm_status read_text(struct text *text, const struct bitext *b, int side, int block,
                                 struct tfm_error *err)
{
    uint64_t from = b->offset[side][block];
    size_t size = (size_t)(b->offset[side][block + 1] - from), n;
    text->bytes = mem_alloc(size + 1, err);
    if (text->bytes == NULL)
        return TFM_ENOMEM;
    TRY(source_read(&b->side[side], text->bytes, size, from, &n, err));
    if (n < size)
        return has_changed(b, side, err);
    text->rest = (struct span){ text->bytes, size };
    if (block == 0 && size >= 3 && memcmp(text->bytes, "\xef\xbb\xbf", 3) == 0)
        text->rest = (struct span){ text->bytes + 3, size - 3 };
    return TFM_OK;
}

/* Takes a line off the front; false where there is none. */
static bool cut_line(struct span *line, struct span *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->data, '\n', rest->len) : NULL;
    size_t len = end != NULL ? (size_t)(end - rest->data) : rest->len, taken = len + (end != NULL);
    *line = (struct span){ rest->data, len };
    if (end != NULL && len > 0 && end[-1] == '\r')
        line->len--;
    rest->data += taken;
    rest->len -= taken;
    return taken > 0;
}

/* The n-th column, from 1; false where there is none. */
static bool find_column(struct span *column, struct span line, int n)
{
    for (;; n--) {
        const char *tab = line.len > 0 ? memchr(line.data, '\t', line.len) : NULL;
        size_t len = tab != NULL ? (size_t)(tab - line.data) : line.len;
        *column = (struct span){ line.data, len };
        if (n == 1)
            return true;
        if (tab == NULL)
            return false;
        line = (struct span){ tab + 1, line.len - len - 1 };
    }
}

/* The next pair of a block; *side tells on which one it is missing. */
static bool next_pair(struct span *pair, const struct bitext *b, struct text *texts, int *side)
{
    struct span line;
    int source = b->columns.source > 0 ? b->columns.source : 1;
    int target = b->columns.target > 0 ? b->columns.target : 2;
    for (*side = 0; *side < b->n_sides; ++*side) {
        if (!cut_line(&pair[*side], &texts[*side].rest))
            return false;
    }
    *side = 0;
    line = pair[0];
    return b->n_sides == 2 || (find_column(&pair[0], line, source) && find_column(&pair[1], line, target));
}

static enum tfm_status read_pairs(struct text_block *out, const struct bitext *b, int block,
                                  struct text *texts, const bool *chosen, uint64_t place,
                                  struct tfm_error *err)
{
    struct span pair[2];
    int n = bitext_block_pairs(b, block), side;
    place += (uint64_t)block * (uint64_t)b->block_lines;
    for (int i = 0; i < n; i++) {
        if (!next_pair(pair, b, texts, &side))
            return has_changed(b, side, err);
        if (chosen == NULL || chosen[i])
            TRY(pairs_add(out, pair[0], pair[1], place + (uint64_t)i, err));
    }
    for (side = 0; side < b->n_sides; side++) {
        if (texts[side].rest.len > 0)
            return has_changed(b, side, err);
    }
    return TFM_OK;
}

enum tfm_status bitext_read(struct text_block *out, const struct bitext *b, int block, const bool *chosen,
                            uint64_t place, struct tfm_error *err)
{
    struct text texts[2] = { { 0 }, { 0 } };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < b->n_sides && status == TFM_OK; i++)
        status = read_text(&texts[i], b, i, block, err);
    if (status == TFM_OK)
        status = read_pairs(out, b, block, texts, chosen, place, err);
    for (int i = 0; i < b->n_sides; i++)
        mem_free(texts[i].bytes);
    return status;
}
