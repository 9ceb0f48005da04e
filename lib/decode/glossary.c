/*
 * glossary.c: reads a glossary and finds its terms in text. On the sentence's way: tfm_translate looks for terms
 * between spm_encode and search_batch. Terms and text are compared as the vocabulary normalises them and, if so
 * wanted, in small letters. From each place where a word begins, the sorted source terms are narrowed down
 * byte by byte to those that go on as the text does. Of what is found, longest first, all is taken that
 * overlaps with nothing taken before.
 */
#include "decode/glossary.h"

#include <stdlib.h>
#include <string.h>

#include "base/line.h"
#include "base/mem.h"
#include "text/utf8.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581, a space in a piece */

struct glossary_entry {
    const char *source;          /* plain text */
    size_t source_at, target_at; /* of the terms in `text` */
    long line;                   /* of the file */
};

void glossary_free(struct glossary *g)
{
    if (g == NULL)
        return;
    mem_free(g->entries);
    mem_free(g->terms);
    mem_free(g->ends_word);
    str_release(&g->text);
    ints_release(&g->pieces);
    mem_free(g);
}

/* ---- plain text ---- */

/* Replaces out by the text in small letters. */
static enum tfm_status lower_text(struct str *out, const char *text, size_t n, struct tfm_error *err)
{
    str_clear(out);
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0xfffd;
        int len = utf8_next(text + i, n - i, &cp);
        i += len > 0 ? (size_t)len : 1;
        TRY(utf8_add(out, utf8_lower(cp), err));
    }
    return TFM_OK;
}

/* Replaces finds->plain by the text that terms are compared with, finds->ends by where its pieces end. */
static enum tfm_status make_plain(struct glossary_finds *finds, const struct glossary *g, const char *text,
                                  size_t n, const struct spm *source, struct tfm_error *err)
{
    struct str *plain = &finds->plain;
    str_clear(plain);
    finds->ends.n = 0;
    TRY(spm_plain(source, text, n, plain, &finds->ends, err));
    size_t from = 0, to = 0;
    for (size_t i = 0; i < finds->ends.n && g->ignore_case;
         i++) { /* no small letter is longer (utf8_lower) */
        size_t end = (size_t)finds->ends.data[i];
        TRY(lower_text(&finds->lower, plain->data + from, end - from, err));
        memcpy(plain->data + to, finds->lower.data, finds->lower.len);
        from = end;
        to += finds->lower.len;
        finds->ends.data[i] = (int)to;
    }
    if (g->ignore_case && plain->len > 0) {
        plain->len = to;
        plain->data[to] = '\0';
    }
    return TFM_OK;
}

/* The character that ends before byte `at`. */
static uint32_t char_before(const char *text, size_t at)
{
    uint32_t cp = ' ';
    size_t start = at;
    while (start > 0 && (text[--start] & 0xc0) == 0x80) {
    }
    utf8_next(text + start, at - start, &cp);
    return cp;
}

/* Whether byte `at` of a plain text of n bytes is between two words, or at the edge of one. */
static bool is_edge(const char *text, size_t n, size_t at)
{
    uint32_t after = ' ';
    if (at < n && utf8_next(text + at, n - at, &after) == 0)
        return false; /* inside a character */
    return at == 0 || !utf8_is_joined(after) || !utf8_is_joined(char_before(text, at));
}

/* ---- reading ---- */

struct reading {
    struct line_reader *reader;
    const struct spm *source, *target;
    struct glossary_finds *finds; /* for scratch */
    size_t cap;                   /* of entries */
};

/* Appends text without spaces at its ends and with a NUL behind it; *at is where. */
static enum tfm_status add_text(struct glossary *g, size_t *at, const char *text, size_t n,
                                struct tfm_error *err)
{
    for (; n > 0 && text[0] == ' '; n--)
        text++;
    while (n > 0 && text[n - 1] == ' ')
        n--;
    *at = g->text.len;
    TRY(str_add(&g->text, text, n, err));
    return str_add(&g->text, "", 1, err);
}

static enum tfm_status add_terms(struct glossary *g, struct reading *reading, const char *source,
                                 size_t n_source, const char *target, size_t n_target, struct tfm_error *err)
{
    const char *path = line_path(reading->reader);
    struct str *plain = &reading->finds->plain;
    long line = line_number(reading->reader);
    TRY(make_plain(reading->finds, g, source, n_source, reading->source, err));
    if (utf8_is_blank(plain->data, plain->len) || utf8_is_blank(target, n_target))
        return err_set(err, TFM_EFORMAT, "%s: line %ld: found nothing %s the tab, expected a term", path,
                       line, utf8_is_blank(plain->data, plain->len) ? "before" : "behind");
    if ((size_t)g->n == reading->cap) {
        size_t grown = reading->cap > 0 ? 2 * reading->cap : 64;
        void *entries = mem_grow(g->entries, reading->cap, grown, sizeof(*g->entries), err);
        if (entries == NULL)
            return TFM_ENOMEM;
        g->entries = entries;
        reading->cap = grown;
    }
    struct glossary_entry *entry = &g->entries[g->n++];
    entry->line = line;
    TRY(add_text(g, &entry->source_at, plain->data, plain->len, err));
    return add_text(g, &entry->target_at, target, n_target, err);
}

static enum tfm_status add_line(struct glossary *g, struct reading *reading, const struct str *line,
                                struct tfm_error *err)
{
    const char *path = line_path(reading->reader), *end = line->data + line->len;
    const char *tab = memchr(line->data, '\t', line->len);
    long number = line_number(reading->reader);
    if (!utf8_is_valid(line->data, line->len) || memchr(line->data, '\0', line->len) != NULL)
        return err_set(err, TFM_EFORMAT, "%s: line %ld: found bytes that are no UTF-8 text, expected a term",
                       path, number);
    if (tab == NULL)
        return err_set(err, TFM_EFORMAT,
                       "%s: line %ld: found no tab, expected a term, a tab and its translation", path,
                       number);
    const char *more = memchr(tab + 1, '\t', (size_t)(end - tab - 1));
    return add_terms(g, reading, line->data, (size_t)(tab - line->data), tab + 1,
                     (size_t)((more != NULL ? more : end) - tab - 1), err);
}

static enum tfm_status read_lines(struct glossary *g, struct reading *reading, struct tfm_error *err)
{
    struct str line = { 0 };
    bool more = true;
    enum tfm_status status = TFM_OK;
    while (status == TFM_OK && (status = line_read(reading->reader, &line, &more, err)) == TFM_OK && more)
        if (line.len > 0 && line.data[0] != '#' && !utf8_is_blank(line.data, line.len))
            status = add_line(g, reading, &line, err);
    str_release(&line);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    const struct glossary_entry *x = a, *y = b;
    int order = strcmp(x->source, y->source);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Sorts the entries; those that are there twice are left once. */
static enum tfm_status sort_entries(struct glossary *g, const char *path, struct tfm_error *err)
{
    for (int i = 0; i < g->n; i++)
        g->entries[i].source = g->text.data + g->entries[i].source_at;
    if (g->n > 0)
        qsort(g->entries, (size_t)g->n, sizeof(*g->entries), compare_entries);
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        const struct glossary_entry *entry = &g->entries[i], *last = n > 0 ? &g->entries[n - 1] : NULL;
        if (last == NULL || strcmp(last->source, entry->source) != 0) {
            g->entries[n++] = *entry;
            continue;
        }
        const char *was = g->text.data + last->target_at, *is = g->text.data + entry->target_at;
        if (strcmp(was, is) != 0)
            return err_set(
                err, TFM_EFORMAT,
                "%s: line %ld: found '%s' as the translation of '%s', expected '%s' as in line %ld", path,
                entry->line, is, entry->source, was, last->line);
    }
    g->n = n;
    return TFM_OK;
}

/* The pieces of a term without the space that its first piece begins with, where there are such. */
static enum tfm_status add_bare(struct glossary *g, struct term *term, size_t from, const struct spm *target,
                                struct tfm_error *err)
{
    const char *first = spm_piece(target, g->pieces.data[from]);
    size_t mark = strlen(SPACE_MARK);
    if (strncmp(first, SPACE_MARK, mark) != 0)
        return TFM_OK;
    int id = first[mark] != '\0' ? spm_piece_id(target, first + mark, strlen(first + mark)) : -1;
    if (first[mark] != '\0' && id < 0)
        return TFM_OK;
    TRY(ints_reserve(&g->pieces, (size_t)term->n, err)); /* so that what is added does not move */
    if (id >= 0)
        TRY(ints_add(&g->pieces, &id, 1, err));
    TRY(ints_add(&g->pieces, g->pieces.data + from + 1, (size_t)term->n - 1, err));
    term->n_bare = (int)(g->pieces.n - from) - term->n;
    return TFM_OK;
}

static enum tfm_status cut_terms(struct glossary *g, const char *path, const struct spm *target,
                                 struct tfm_error *err)
{
    g->terms = mem_alloc(((size_t)g->n + 1) * sizeof(*g->terms), err);
    if (g->terms == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < g->n; i++) {
        struct term *term = &g->terms[i];
        size_t from = g->pieces.n;
        term->text = g->text.data + g->entries[i].target_at;
        TRY(spm_encode(target, term->text, strlen(term->text), &g->pieces, err));
        size_t n = g->pieces.n - from;
        if (n < 1 || n > TERMS_PIECES)
            return err_set(err, TFM_EFORMAT,
                           "%s: line %ld: found a translation of %zu pieces, expected 1 to %d", path,
                           g->entries[i].line, n, TERMS_PIECES);
        term->n = (int)n;
        TRY(add_bare(g, term, from, target, err));
    }
    const int *pieces = g->pieces.data;
    for (int i = 0; i < g->n; i++) {
        struct term *term = &g->terms[i];
        term->pieces = pieces;
        term->bare = pieces + term->n;
        pieces = term->bare + term->n_bare;
    }
    return TFM_OK;
}

static enum tfm_status find_edges(struct glossary *g, const struct spm *target, struct tfm_error *err)
{
    int n = spm_size(target);
    g->ends_word = mem_alloc(2 * (size_t)n * sizeof(*g->ends_word), err);
    if (g->ends_word == NULL)
        return TFM_ENOMEM;
    g->goes_on = g->ends_word + n;
    for (int i = 0; i < n; i++) {
        const char *piece = spm_piece(target, i);
        uint32_t first = ' ';
        utf8_next(piece, strlen(piece), &first);
        bool is_text = spm_is_text(target, i);
        g->ends_word[i] = is_text && !utf8_is_joined(char_before(piece, strlen(piece)));
        g->goes_on[i] = is_text ? utf8_is_joined(first) : i != spm_eos(target);
    }
    return TFM_OK;
}

static enum tfm_status fill(struct glossary *g, struct reading *reading, struct tfm_error *err)
{
    const char *path = line_path(reading->reader);
    TRY(read_lines(g, reading, err));
    TRY(sort_entries(g, path, err));
    TRY(cut_terms(g, path, reading->target, err));
    return find_edges(g, reading->target, err);
}

enum tfm_status glossary_read(struct glossary **glossary, const char *path, bool ignore_case,
                              const struct spm *source, const struct spm *target, struct tfm_error *err)
{
    struct glossary_finds finds = { 0 };
    struct reading reading = { .source = source, .target = target, .finds = &finds };
    *glossary = NULL;
    TRY(line_open(&reading.reader, path, err));
    struct glossary *g = mem_alloc(sizeof(*g), err);
    enum tfm_status status = g != NULL ? TFM_OK : TFM_ENOMEM;
    if (g != NULL) {
        g->ignore_case = ignore_case;
        status = fill(g, &reading, err);
    }
    glossary_release(&finds);
    line_free(reading.reader);
    if (status == TFM_OK)
        *glossary = g;
    else
        glossary_free(g);
    return status;
}

/* ---- finding ---- */

void glossary_release(struct glossary_finds *finds)
{
    ints_release(&finds->matches);
    ints_release(&finds->ends);
    str_release(&finds->plain);
    str_release(&finds->lower);
}

#define MATCH_INTS (sizeof(struct glossary_match) / sizeof(int))

/* The first of the entries low .. high-1, alike in their first `depth` bytes, whose next byte is `byte` or
 * more. */
static int first_with(const struct glossary *g, int low, int high, size_t depth, int byte)
{
    while (low < high) {
        int mid = low + (high - low) / 2;
        if ((unsigned char)g->entries[mid].source[depth] < byte)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Adds all terms that begin at byte `at`. */
static enum tfm_status find_at(struct ints *found, const struct glossary *g, const struct str *plain,
                               size_t at, struct tfm_error *err)
{
    int low = 0, high = g->n;
    for (size_t depth = 0; low < high; depth++) {
        if (g->entries[low].source[depth] == '\0') {
            struct glossary_match match = { low, (int)at, (int)(at + depth) }; /* in bytes for now */
            if (is_edge(plain->data, plain->len, at + depth))
                TRY(ints_add(found, (const int *)&match, MATCH_INTS, err));
            low++;
        }
        if (at + depth == plain->len)
            break;
        int byte = (unsigned char)plain->data[at + depth];
        low = first_with(g, low, high, depth, byte);
        high = first_with(g, low, high, depth, byte + 1);
    }
    return TFM_OK;
}

/* Keeps the longest matches, of equal ones the first, that overlap with none kept before; returns how many.
 * taken: a byte for each of the text, all zero. */
static int keep_longest(struct glossary_match *matches, int n, char *taken)
{
    int longest = 0, n_kept = 0;
    for (int i = 0; i < n; i++)
        if (matches[i].end - matches[i].first > longest)
            longest = matches[i].end - matches[i].first;
    for (int length = longest; length > 0; length--) {
        for (int i = 0; i < n; i++) {
            struct glossary_match *match = &matches[i];
            if (match->end - match->first != length)
                continue;
            if (memchr(taken + match->first, 1, (size_t)length) != NULL)
                match->term = -1;
            else
                memset(taken + match->first, 1, (size_t)length);
        }
    }
    for (int i = 0; i < n; i++)
        if (matches[i].term >= 0)
            matches[n_kept++] = matches[i];
    return n_kept;
}

enum tfm_status glossary_find(struct glossary_finds *finds, const struct glossary_match **matches, int *n,
                              const struct glossary *g, const char *text, const struct spm *source,
                              struct tfm_error *err)
{
    const struct str *plain = &finds->plain;
    TRY(make_plain(finds, g, text, strlen(text), source, err));
    finds->matches.n = 0;
    for (size_t at = 0; at < plain->len; at++)
        if (is_edge(plain->data, plain->len, at))
            TRY(find_at(&finds->matches, g, plain, at, err));
    struct glossary_match *list = (struct glossary_match *)(void *)finds->matches.data;
    str_clear(&finds->lower);
    TRY(str_reserve(&finds->lower, plain->len + 1, err));
    memset(finds->lower.data, 0, plain->len);
    *n = keep_longest(list, (int)(finds->matches.n / MATCH_INTS), finds->lower.data);
    *matches = list;
    const int *ends = finds->ends.data;
    for (int i = 0, piece = 0; i < *n; i++) { /* from bytes to pieces */
        while (ends[piece] <= list[i].first)
            piece++;
        list[i].first = piece;
        while (ends[piece] < list[i].end)
            piece++;
        list[i].end = piece + 1;
    }
    return TFM_OK;
}
