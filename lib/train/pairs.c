/*
 * pairs.c: reads a parallel text pair by pair. What would shift one side against the other is refused with
 * its place: files of unequal length (both counts are told, so the longer one is read to its end first), and
 * lines of a TSV file without a tab or with more than one. An empty side is no error here; the corpus counts
 * and leaves out such pairs.
 */
#include "train/pairs.h"

#include <string.h>

#include "base/mem.h"

struct pair_reader {
    struct line_reader *source; /* or the TSV file */
    struct line_reader *target; /* NULL: TSV */
    struct str line;
};

enum tfm_status pairs_open(struct pair_reader **reader, const char *source, const char *target,
                           const char *tsv, struct tfm_error *err)
{
    *reader = NULL;
    if (tsv == NULL && strcmp(source, "-") == 0 && strcmp(target, "-") == 0)
        return err_set(err, TFM_EINVAL,
                       "both sides of the text cannot come from standard input: use --tsv - there");
    struct pair_reader *r = mem_alloc(sizeof(*r), err);
    if (r == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = line_open(&r->source, tsv != NULL ? tsv : source, err);
    if (status == TFM_OK && tsv == NULL)
        status = line_open(&r->target, target, err);
    if (status != TFM_OK) {
        pairs_free(r);
        return status;
    }
    *reader = r;
    return TFM_OK;
}

void pairs_free(struct pair_reader *reader)
{
    if (reader == NULL)
        return;
    line_free(reader->source);
    line_free(reader->target);
    str_release(&reader->line);
    mem_free(reader);
}

static enum tfm_status split_line(struct pair_reader *r, struct str *source, struct str *target,
                                  struct tfm_error *err)
{
    const char *text = r->line.data, *end = text + r->line.len;
    const char *tab = r->line.len > 0 ? memchr(text, '\t', r->line.len) : NULL;
    if (tab == NULL)
        return err_set(err, TFM_EFORMAT, "%s, line %ld: there is no tab; each line must be source<TAB>target",
                       line_path(r->source), line_number(r->source));
    if (memchr(tab + 1, '\t', (size_t)(end - tab - 1)) != NULL)
        return err_set(
            err, TFM_EFORMAT,
            "%s, line %ld: there is more than one tab; each line must be source<TAB>target (cut the "
            "columns out first)",
            line_path(r->source), line_number(r->source));
    str_clear(source);
    str_clear(target);
    TRY(str_add(source, text, (size_t)(tab - text), err));
    return str_add(target, tab + 1, (size_t)(end - tab - 1), err);
}

/* One file has ended: counts the lines of the other for the message. */
static enum tfm_status unequal(struct pair_reader *r, bool source_goes_on, struct tfm_error *err)
{
    struct line_reader *longer = source_goes_on ? r->source : r->target;
    struct line_reader *shorter = source_goes_on ? r->target : r->source;
    long n_longer = line_number(longer), n_shorter = n_longer - 1;
    bool more = true;
    while (more) {
        TRY(line_read(longer, &r->line, &more, err));
        n_longer += more;
    }
    return err_set(
        err, TFM_EFORMAT,
        "%s has %ld line%s but %s has %ld: line n of one must be the translation of line n of the other",
        line_path(shorter), n_shorter, n_shorter == 1 ? "" : "s", line_path(longer), n_longer);
}

enum tfm_status pairs_read(struct pair_reader *reader, struct str *source, struct str *target, bool *more,
                           struct tfm_error *err)
{
    if (reader->target == NULL) {
        TRY(line_read(reader->source, &reader->line, more, err));
        return *more ? split_line(reader, source, target, err) : TFM_OK;
    }
    bool more_target;
    TRY(line_read(reader->source, source, more, err));
    TRY(line_read(reader->target, target, &more_target, err));
    return *more == more_target ? TFM_OK : unequal(reader, *more, err);
}

static enum tfm_status add_text(struct text_block *block, struct str *line, size_t place,
                                struct tfm_error *err)
{
    for (size_t i = 0; i < line->len; i++) {
        if (line->data[i] == '\0')
            line->data[i] = ' ';
    }
    block->start[place] = block->text.len;
    TRY(str_add(&block->text, line->data, line->len, err));
    return str_add(&block->text, "", 1, err);
}

static enum tfm_status grow(struct text_block *block, struct tfm_error *err)
{
    size_t cap = block->cap > 0 ? 2 * block->cap : 1024;
    size_t *start = mem_grow(block->start, 2 * block->cap, 2 * cap, sizeof(*start), err);
    if (start == NULL)
        return TFM_ENOMEM;
    block->start = start;
    block->cap = cap;
    return TFM_OK;
}

enum tfm_status pairs_read_block(struct pair_reader *reader, struct text_block *block, size_t max,
                                 struct tfm_error *err)
{
    struct str source = { 0 }, target = { 0 };
    enum tfm_status status = TFM_OK;
    bool more = true;
    str_clear(&block->text);
    block->n = 0;
    while (status == TFM_OK && block->n < max) {
        status = pairs_read(reader, &source, &target, &more, err);
        if (status != TFM_OK || !more)
            break;
        if (block->n == block->cap)
            status = grow(block, err);
        if (status == TFM_OK)
            status = add_text(block, &source, 2 * block->n, err);
        if (status == TFM_OK)
            status = add_text(block, &target, 2 * block->n + 1, err);
        block->n++;
    }
    str_release(&source);
    str_release(&target);
    return status;
}

void pairs_release_block(struct text_block *block)
{
    str_release(&block->text);
    mem_free(block->start);
    *block = (struct text_block){ 0 };
}
