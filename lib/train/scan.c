/*
 * scan.c: the first pass over a parallel text. What would shift one side against the other is refused with
 * its place: files of unequal length, and lines of a tab-separated file that lack a column or, where no
 * columns are named, have more than two. The first line that is no UTF-8 is noted. The fingerprint is of all
 * bytes: four lanes of eight bytes each, mixed by base/rng.h, so that the processor works on four at a time.
 */
#include "train/scan.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/line.h"
#include "base/mem.h"
#include "base/rng.h"
#include "text/utf8.h"

#define CHUNK ((size_t)1 << 20) /* bytes read at a time: a part of the fingerprint's definition */

static uint64_t fold_chunk(uint64_t fingerprint, const char *data, size_t n)
{
    uint64_t lane[4] = { 1, 2, 3, 4 }, word[4];
    size_t i = 0;
    for (; i + sizeof(word) <= n; i += sizeof(word)) {
        memcpy(word, data + i, sizeof(word));
        for (int l = 0; l < 4; l++)
            lane[l] = rng_mix(lane[l] ^ word[l]);
    }
    memset(word, 0, sizeof(word));
    memcpy(word, data + i, n - i);
    fingerprint = rng_mix(fingerprint ^ n);
    for (int l = 0; l < 4; l++)
        fingerprint = rng_mix(fingerprint ^ rng_mix(lane[l] ^ word[l]));
    return fingerprint;
}

static enum tfm_status note_offset(struct scan *s, uint64_t offset, struct tfm_error *err)
{
    if (s->n_blocks >= s->cap) {
        if (s->cap > INT_MAX / 4)
            return err_set(err, TFM_EINVAL,
                           "%s has more lines than can be numbered in blocks of %d; raise --shuffle-window",
                           s->source->name, s->block_lines);
        int cap = s->cap > 0 ? 2 * s->cap : 64;
        uint64_t *grown = mem_grow(s->offset, (size_t)s->cap, (size_t)cap, sizeof(*grown), err);
        if (grown == NULL)
            return TFM_ENOMEM;
        s->offset = grown;
        s->cap = cap;
    }
    s->offset[s->n_blocks] = offset;
    return TFM_OK;
}

static enum tfm_status check_columns(const struct scan *s, struct tfm_error *err)
{
    const char *name = s->source->name;
    uint64_t number = s->n_lines + 1;
    int need = s->columns->source > s->columns->target ? s->columns->source : s->columns->target;
    if (need > s->n_tabs + 1) {
        char target[16] = "";
        if (s->columns->target > 0)
            snprintf(target, sizeof(target), ",%d", s->columns->target);
        return err_set(err, TFM_EFORMAT,
                       "%s, line %" PRIu64 ": found %d column%s, expected at least %d (--tsv-fields %d%s)",
                       name, number, s->n_tabs + 1, s->n_tabs == 0 ? "" : "s", need, s->columns->source,
                       target);
    }
    if (need == 0 && s->n_tabs == 0)
        return err_set(err, TFM_EFORMAT,
                       "%s, line %" PRIu64 ": there is no tab; each line must be source<TAB>target", name,
                       number);
    if (need == 0 && s->n_tabs > 1)
        return err_set(
            err, TFM_EFORMAT,
            "%s, line %" PRIu64
            ": there is more than one tab; each line must be source<TAB>target (--tsv-fields chooses "
            "among columns)",
            name, number);
    return TFM_OK;
}

static enum tfm_status check_length(const struct scan *s, uint64_t end, struct tfm_error *err)
{
    if (end - s->line_begin <= LINE_LONGEST)
        return TFM_OK;
    return err_set(err, TFM_EFORMAT, "%s: line %" PRIu64 " is longer than %zu MiB; is this a text file?",
                   s->source->name, s->n_lines + 1, LINE_LONGEST >> 20);
}

static enum tfm_status check_text_again(struct scan *s, size_t size, struct tfm_error *err)
{
    size_t n;
    char *line = mem_alloc(size, err);
    if (line == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = source_read(s->source, line, size, s->line_begin, &n, err);
    if (status == TFM_OK && !utf8_is_valid(line, n))
        s->not_utf8 = s->n_lines + 1;
    mem_free(line);
    return status;
}

/* A line that begins before the chunk at `place` is read again as a whole. */
static enum tfm_status check_text(struct scan *s, uint64_t end, const char *chunk, uint64_t place,
                                  struct tfm_error *err)
{
    size_t size = (size_t)(end - s->line_begin);
    if (s->is_alignment || s->not_utf8 != 0 || size == 0)
        return TFM_OK;
    if (s->line_begin < place)
        return check_text_again(s, size, err);
    if (!utf8_is_valid(chunk + (s->line_begin - place), size))
        s->not_utf8 = s->n_lines + 1;
    return TFM_OK;
}

/* A line ends before `end`, in the chunk at `place`. */
static enum tfm_status end_line(struct scan *s, uint64_t end, const char *chunk, uint64_t place,
                                struct tfm_error *err)
{
    TRY(check_length(s, end, err));
    TRY(check_text(s, end, chunk, place, err));
    if (s->columns != NULL)
        TRY(check_columns(s, err));
    if (s->n_lines % (uint64_t)s->block_lines == 0) {
        TRY(note_offset(s, s->line_begin, err));
        s->n_blocks++;
    }
    s->n_lines++;
    s->n_tabs = 0;
    s->line_begin = end + 1;
    return TFM_OK;
}

static void count_tabs(struct scan *s, const char *text, const char *end)
{
    while (text < end && (text = memchr(text, '\t', (size_t)(end - text))) != NULL) {
        s->n_tabs += s->n_tabs < INT_MAX;
        text++;
    }
}

static enum tfm_status scan_chunk(struct scan *s, const char *data, size_t n, uint64_t place,
                                  struct tfm_error *err)
{
    const char *end = data + n;
    for (const char *text = data; text < end;) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        if (s->columns != NULL)
            count_tabs(s, text, line_end != NULL ? line_end : end);
        if (line_end == NULL)
            return check_length(s, place + n, err);
        TRY(end_line(s, place + (uint64_t)(line_end - data), data, place, err));
        text = line_end + 1;
    }
    return TFM_OK;
}

/* The last line may lack its line end; a byte order mark alone is no line. */
static enum tfm_status end_file(struct scan *s, uint64_t size, bool is_mark, struct tfm_error *err)
{
    if (size > s->line_begin && !is_mark)
        TRY(end_line(s, size, NULL, size, err));
    return note_offset(s, size, err);
}

static enum tfm_status scan_file(struct scan *s, char *chunk, struct tfm_error *err)
{
    bool is_mark = false;
    size_t n;
    for (uint64_t place = 0;; place += n) {
        TRY(source_read(s->source, chunk, CHUNK, place, &n, err));
        if (n == 0)
            return end_file(s, place, is_mark, err);
        is_mark = place == 0 && n == 3 && memcmp(chunk, "\xef\xbb\xbf", 3) == 0;
        s->fingerprint = fold_chunk(s->fingerprint, chunk, n);
        TRY(scan_chunk(s, chunk, n, place, err));
    }
}

static void scan_task(void *arg, int i, int worker)
{
    struct scan *s = (struct scan *)arg + i;
    (void)worker;
    char *chunk = mem_alloc(CHUNK, &s->err);
    s->status = chunk != NULL ? scan_file(s, chunk, &s->err) : TFM_ENOMEM;
    mem_free(chunk);
}

static enum tfm_status compare_lengths(const struct scan *a, const struct scan *b, struct tfm_error *err)
{
    if (a->n_lines == b->n_lines)
        return TFM_OK;
    const struct scan *longer = a->n_lines > b->n_lines ? a : b, *shorter = longer == a ? b : a;
    return err_set(err, TFM_EFORMAT,
                   "%s has %" PRIu64 " line%s but %s has %" PRIu64
                   ": line n of one must be the %s of line n of the other",
                   shorter->source->name, shorter->n_lines, shorter->n_lines == 1 ? "" : "s",
                   longer->source->name, longer->n_lines, b->is_alignment ? "alignment" : "translation");
}

enum tfm_status scan_run(struct scan *scans, int n, struct pool *pool, struct tfm_error *err)
{
    pool_run(pool, n, scan_task, scans);
    for (int i = 0; i < n; i++) {
        if (scans[i].status != TFM_OK)
            return err_set(err, scans[i].status, "%s", scans[i].err.message);
    }
    for (int i = 1; i < n; i++)
        TRY(compare_lengths(&scans[0], &scans[i], err));
    return TFM_OK;
}

uint64_t scan_fingerprint(const struct scan *scans, int n)
{
    uint64_t fingerprint = (uint64_t)n;
    for (int i = 0; i < n; i++)
        fingerprint = rng_mix(fingerprint ^ scans[i].fingerprint);
    return fingerprint;
}
