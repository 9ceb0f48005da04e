/*
 * bitext.c: reads blocks of a parallel text. A side's bytes of a block lie between two offsets; its lines are
 * cut as base/line.h cuts them: without a CR before the line end and without a byte order mark at the start.
 * What scan.c has proved of the file is not believed a second time, since files change.
 */
#include "train/bitext.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "train/links.h"
#include "train/report.h"
#include "train/scan.h"

enum tfm_status bitext_name(struct str *name, const struct tfm_corpus *corpus, struct tfm_error *err)
{
    str_clear(name);
    if (corpus->tsv == NULL && corpus->target != NULL)
        return str_printf(name, err, "%s and %s", corpus->source, corpus->target);
    return str_printf(name, err, "%s", corpus->tsv != NULL ? corpus->tsv : corpus->source);
}

static enum tfm_status scan(struct bitext *b, struct pool *pool, struct tfm_error *err)
{
    struct scan scans[SOURCE_MAX];
    int n = bitext_files(b);
    for (int i = 0; i < n; i++)
        scans[i] = (struct scan){ .source = &b->side[i],
                                  .columns = b->is_tsv && i == 0 ? &b->columns : NULL,
                                  .block_lines = b->block_lines,
                                  .is_alignment = i == b->n_sides };
    enum tfm_status status = scan_run(scans, n, pool, err);
    for (int i = 0; i < n; i++) {
        b->offset[i] = scans[i].offset;
        b->not_utf8[i] = scans[i].not_utf8;
    }
    TRY(status);
    b->n_pairs = scans[0].n_lines;
    b->n_blocks = scans[0].n_blocks;
    b->fingerprint = scan_fingerprint(scans, n);
    return TFM_OK;
}

enum tfm_status bitext_open(struct bitext *b, const struct tfm_corpus *corpus, const struct columns *columns,
                            int block_lines, const struct spool *spool, struct pool *pool,
                            struct tfm_error *err)
{
    const struct {
        const char *path, *part;
    } all[] = { { corpus->tsv, "tsv" },
                { corpus->source, "source" },
                { corpus->target, "target" },
                { corpus->alignment, "alignment" } };
    const char *paths[4], *parts[4];
    int n = 0;
    for (int i = 0; i < 4; i++) {
        paths[n] = all[i].path;
        parts[n] = all[i].part;
        n += all[i].path != NULL;
    }
    *b = (struct bitext){ .n_sides = n - (corpus->alignment != NULL),
                          .is_tsv = corpus->tsv != NULL,
                          .is_aligned = corpus->alignment != NULL,
                          .columns = *columns,
                          .block_lines = block_lines };
    TRY(source_open(b->side, paths, parts, n, spool, err));
    enum tfm_status status = scan(b, pool, err);
    if (status != TFM_OK)
        bitext_release(b);
    return status;
}

void bitext_release(struct bitext *b)
{
    for (int i = 0; i < bitext_files(b); i++) {
        source_release(&b->side[i]);
        mem_free(b->offset[i]);
    }
    *b = (struct bitext){ 0 };
}

void bitext_report(const struct bitext *b, const struct tfm_train_options *options)
{
    for (int i = 0; i < b->n_sides; i++) {
        if (b->not_utf8[i] > 0)
            report_note(options,
                        "%s: line %" PRIu64 ": not valid UTF-8, read as U+FFFD here and in later lines",
                        b->side[i].name, b->not_utf8[i]);
    }
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

/* The next pair of a block, and behind it its alignment, where there is one; *side tells on which file it is
 * missing. */
static bool next_pair(struct span *pair, const struct bitext *b, struct text *texts, int *side)
{
    struct span line[SOURCE_MAX] = { 0 };
    for (*side = 0; *side < bitext_files(b); ++*side) {
        if (!cut_line(&line[*side], &texts[*side].rest))
            return false;
    }
    *side = 0;
    pair[2] = line[b->n_sides];
    pair[0] = line[0];
    pair[1] = b->n_sides == 2 ? line[1] : (struct span){ "", 0 };
    if (!b->is_tsv)
        return true;
    int source = b->columns.source, target = b->columns.target;
    return find_column(&pair[0], line[0], source > 0 ? source : 1) &&
           ((source > 0 && target == 0) || find_column(&pair[1], line[0], target > 0 ? target : 2));
}

static enum tfm_status read_pairs(struct text_block *out, const struct bitext *b, int block,
                                  struct text *texts, const bool *chosen, uint64_t place,
                                  struct tfm_error *err)
{
    struct span pair[3];
    int n = bitext_block_pairs(b, block), side;
    uint64_t first = (uint64_t)block * (uint64_t)b->block_lines;
    for (int i = 0; i < n; i++) {
        if (!next_pair(pair, b, texts, &side))
            return has_changed(b, side, err);
        if (chosen != NULL && !chosen[i])
            continue;
        TRY(pairs_add(out, pair[0], pair[1], place + first + (uint64_t)i, err));
        if (b->is_aligned)
            TRY(links_parse(&out->links, out->n - 1, pair[2], pair, b->side[b->n_sides].name,
                            first + (uint64_t)i + 1, err));
    }
    for (side = 0; side < bitext_files(b); side++) {
        if (texts[side].rest.len > 0)
            return has_changed(b, side, err);
    }
    return TFM_OK;
}

enum tfm_status bitext_read(struct text_block *out, const struct bitext *b, int block, const bool *chosen,
                            uint64_t place, struct tfm_error *err)
{
    struct text texts[SOURCE_MAX] = { 0 };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < bitext_files(b) && status == TFM_OK; i++)
        status = read_text(&texts[i], b, i, block, err);
    if (status == TFM_OK)
        status = read_pairs(out, b, block, texts, chosen, place, err);
    for (int i = 0; i < bitext_files(b); i++)
        mem_free(texts[i].bytes);
    return status;
}
