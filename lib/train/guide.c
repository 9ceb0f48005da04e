/*
 * guide.c: from links between words to weights between pieces. Of the words S(t) that target word t is linked
 * with, a row of t's pieces should look at piece j of word s with
 *     a = 1 / |S(t)| / |pieces of s|
 * so that a row sums to 1. Rows of words without a link, and that of </s>, are left to the training. Row t of a
 * target is the one that predicts piece t.
 */
#include "train/guide.h"

#include "train/links.h"

static bool starts_word(const struct spm *spm, const int *ids, size_t i)
{
    return i == 0 || spm_is_word_start(spm, ids[i]);
}

static int count_words(const struct spm *spm, const int *ids, size_t n)
{
    int words = 0;
    for (size_t i = 0; i < n; i++)
        words += starts_word(spm, ids, i);
    return words;
}

bool guide_fits(const struct linked_pair *pair, const int *source, size_t n_source,
                const struct spm *source_spm, const int *target, size_t n_target,
                const struct spm *target_spm)
{
    return count_words(source_spm, source, n_source) == pair->n_words[0] &&
           count_words(target_spm, target, n_target) == pair->n_words[1];
}

/* first [n_words + 1]: where each word of ids [n] begins, and the end. */
static int *first_pieces(const struct spm *spm, const int *ids, int n, struct arena *arena)
{
    int *first = ARENA_TAKE(arena, int, n + 1), words = 0;
    for (int i = 0; i < n; i++) {
        if (starts_word(spm, ids, (size_t)i))
            first[words++] = i;
    }
    first[words] = n;
    return first;
}

/* The row of a target word with links [n], which is all of them. */
static struct guide_row row_of(const struct link *links, size_t n, const int *first, struct arena *arena)
{
    struct guide_row row = { 0 };
    for (size_t l = 0; l < n; l++)
        row.n += first[links[l].source + 1] - first[links[l].source];
    struct guide_link *to = ARENA_TAKE(arena, struct guide_link, row.n);
    row.links = to;
    for (size_t l = 0; l < n; l++) {
        int from = first[links[l].source], end = first[links[l].source + 1];
        for (int j = from; j < end; j++)
            *to++ = (struct guide_link){ j, (real)(1.0 / (double)n / (end - from)) };
    }
    return row;
}

const struct guide_row *guide_take(const struct tokens *source, const struct tokens *target,
                                   const struct corpus *corpus, const int *pairs, int n, struct arena *arena)
{
    struct guide_row *rows = ARENA_TAKE(arena, struct guide_row, target->n), *row = rows;
    for (int s = 0; s < target->n_sentences; s++) {
        const int *ids = target->ids + target->start[s];
        int n_source = source->start[s + 1] - source->start[s] - 1; /* without </s> */
        int n_target = target->start[s + 1] - target->start[s] - 1, word = -1;
        size_t n_links;
        const struct link *links = links_of(&corpus->links, (size_t)pairs[s % n], &n_links);
        const int *first = NULL;
        if (n_links > 0)
            first = first_pieces(corpus->source.spm, source->ids + source->start[s], n_source, arena);
        size_t at = 0;
        for (int i = 0; i < n_target; i++, row++) {
            if (!starts_word(corpus->target.spm, ids, (size_t)i)) {
                *row = row[-1];
                continue;
            }
            size_t from = at;
            for (word++; at < n_links && links[at].target == word;)
                at++;
            *row = at > from ? row_of(links + from, at - from, first, arena) : (struct guide_row){ 0 };
        }
        *row++ = (struct guide_row){ 0 }; /* </s> */
    }
    return rows;
}
