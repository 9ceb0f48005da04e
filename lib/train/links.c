/*
 * links.c: reads alignments in the form that aligners write (Pharaoh's): a line for each pair of sentences,
 * "0-0 1-2" for two links, each a source word and a target word. The links of all pairs lie end to end.
 */
#include "train/links.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/mem.h"

static bool is_space(char c)
{
    return isspace((unsigned char)c) || c == '\0'; /* a NUL becomes a space in the text */
}

/* Takes the next word off the front; false at the end. */
static bool next_word(struct span *word, struct span *rest)
{
    while (rest->len > 0 && is_space(*rest->data)) {
        rest->data++;
        rest->len--;
    }
    *word = (struct span){ rest->data, 0 };
    while (word->len < rest->len && !is_space(word->data[word->len]))
        word->len++;
    rest->data += word->len;
    rest->len -= word->len;
    return word->len > 0;
}

static int count_words(struct span text)
{
    struct span word;
    int n = 0;
    while (next_word(&word, &text))
        n++;
    return n;
}

/* Reads digits off the front of a word. */
static bool read_number(int *number, struct span *word)
{
    size_t len = word->len;
    for (*number = 0; word->len > 0 && isdigit((unsigned char)*word->data) && *number < INT_MAX / 10 - 1;) {
        *number = 10 * *number + (*word->data - '0');
        word->data++;
        word->len--;
    }
    return word->len < len;
}

static bool read_link(struct link *link, struct span word)
{
    if (!read_number(&link->source, &word) || word.len == 0 || *word.data != '-')
        return false;
    word = (struct span){ word.data + 1, word.len - 1 };
    return read_number(&link->target, &word) && word.len == 0;
}

static int compare_links(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return (x->source > y->source) - (x->source < y->source);
}

/* ---- a list ---- */

static enum tfm_status reserve_links(struct links *links, size_t n, struct tfm_error *err)
{
    if (links->n + n <= links->cap)
        return TFM_OK;
    size_t cap = 2 * links->cap > links->n + n ? 2 * links->cap : links->n + n + 1024;
    struct link *list = mem_grow(links->list, links->cap, cap, sizeof(*list), err);
    if (list == NULL)
        return TFM_ENOMEM;
    links->list = list;
    links->cap = cap;
    return TFM_OK;
}

/* Makes pair the last one, still without links. */
static enum tfm_status reserve_pair(struct links *links, size_t pair, struct tfm_error *err)
{
    if (pair >= links->cap_pairs) {
        size_t cap = 2 * links->cap_pairs > pair ? 2 * links->cap_pairs : pair + 1024;
        struct linked_pair *pairs = mem_grow(links->pairs, links->cap_pairs, cap, sizeof(*pairs), err);
        if (pairs == NULL)
            return TFM_ENOMEM;
        links->pairs = pairs;
        links->cap_pairs = cap;
    }
    while (links->n_pairs <= pair)
        links->pairs[links->n_pairs++] = (struct linked_pair){ .start = links->n };
    return TFM_OK;
}

static void set_pair(struct links *links, size_t pair, size_t n, const int n_words[2])
{
    links->n += n;
    links->pairs[pair].n = n;
    links->pairs[pair].n_words[0] = n_words[0];
    links->pairs[pair].n_words[1] = n_words[1];
}

enum tfm_status links_add(struct links *links, size_t pair, const struct link *list, size_t n,
                          const int n_words[2], struct tfm_error *err)
{
    TRY(reserve_pair(links, pair, err));
    TRY(reserve_links(links, n, err));
    for (size_t i = 0; i < n; i++)
        links->list[links->n + i] = list[i];
    set_pair(links, pair, n, n_words);
    return TFM_OK;
}

void links_clear(struct links *links)
{
    links->n = links->n_pairs = 0;
}

void links_release(struct links *links)
{
    mem_free(links->list);
    mem_free(links->pairs);
    *links = (struct links){ 0 };
}

const struct link *links_of(const struct links *links, size_t pair, size_t *n)
{
    *n = pair < links->n_pairs ? links->pairs[pair].n : 0;
    return *n > 0 ? links->list + links->pairs[pair].start : NULL;
}

/* ---- a line ---- */

static enum tfm_status wrong_link(struct span word, const int n_words[2], bool is_link, const char *file,
                                  uint64_t number, struct tfm_error *err)
{
    int shown = word.len < 40 ? (int)word.len : 40;
    if (!is_link)
        return err_set(
            err, TFM_EFORMAT,
            "%s, line %" PRIu64
            ": found \"%.*s\", expected links such as 0-0 or 3-2: a source word and a target word, "
            "counted from 0",
            file, number, shown, word.data);
    return err_set(err, TFM_EFORMAT,
                   "%s, line %" PRIu64 ": found %.*s, but the pair of line %" PRIu64
                   " has %d source and %d target words, counted from 0; is this its alignment?",
                   file, number, shown, word.data, number, n_words[0], n_words[1]);
}

enum tfm_status links_parse(struct links *links, size_t pair, struct span line, const struct span texts[2],
                            const char *file, uint64_t number, struct tfm_error *err)
{
    int n_words[2] = { count_words(texts[0]), count_words(texts[1]) };
    TRY(reserve_pair(links, pair, err));
    TRY(reserve_links(links, line.len / 3 + 1, err)); /* "0-0" is the shortest link */
    struct link *list = links->list + links->n, link;
    struct span word;
    size_t n = 0, n_kept = 0;
    while (next_word(&word, &line)) {
        bool is_link = read_link(&link, word);
        if (!is_link || link.source >= n_words[0] || link.target >= n_words[1])
            return wrong_link(word, n_words, is_link, file, number, err);
        list[n++] = link;
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), compare_links);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || compare_links(&list[i], &list[i - 1]) != 0)
            list[n_kept++] = list[i];
    }
    set_pair(links, pair, n_kept, n_words);
    return TFM_OK;
}
