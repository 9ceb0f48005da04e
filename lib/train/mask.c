/*
 * mask.c: the task of a masked language model (Devlin et al. 2019, section 3.1): some pieces of a sentence
 * are to be predicted from the whole of it, where
 *     80 % of them are replaced by the mask, 10 % by any piece of the vocabulary, and 10 % stay.
 * Each piece has a number u in [0, 1), and is chosen where u < rate or where no other of its sentence has a
 * smaller one, so that each sentence gives a loss. The </s> is never chosen. The numbers are keyed by (seed,
 * update, sentence, position): there is nothing to be saved of them, and both passes of R-Drop mask alike.
 */
#include "train/mask.h"

#include "base/rng.h"

#define SHARE_MASKED 0.8
#define SHARE_DRAWN  0.1

enum { /* last coordinate of a piece's keys */
    CHOICE,
    SHARE,
    PIECE
};

static uint64_t key_of(const struct corpus *corpus, int pair, const struct mask *mask, int position, int use)
{
    return rng_key(mask->seed, corpus->place[pair], (uint64_t)position, (uint64_t)use);
}

static double number_of(const struct corpus *corpus, int pair, const struct mask *mask, int position)
{
    return rng_unit(key_of(corpus, pair, mask, position, CHOICE));
}

/* The smallest number of a line's pieces. */
static double least_number(const struct corpus *corpus, int pair, const struct mask *mask)
{
    double least = 1;
    int n = corpus_length(&corpus->source, pair) - 1;
    for (int i = 0; i < n; i++) {
        double number = number_of(corpus, pair, mask, i);
        least = number < least ? number : least;
    }
    return least;
}

static bool is_chosen(const struct corpus *corpus, int pair, const struct mask *mask, int position,
                      double least)
{
    double number = number_of(corpus, pair, mask, position);
    return number < mask->rate || number == least;
}

int mask_count(const struct corpus *corpus, int pair, const struct mask *mask)
{
    double least = least_number(corpus, pair, mask);
    int count = 0, n = corpus_length(&corpus->source, pair) - 1;
    for (int i = 0; i < n; i++)
        count += is_chosen(corpus, pair, mask, i, least);
    return count;
}

/* What the model reads in place of a chosen piece. */
static int replacement(const struct corpus *corpus, int pair, const struct mask *mask, int position, int id)
{
    double share = rng_unit(key_of(corpus, pair, mask, position, SHARE));
    if (share < SHARE_MASKED)
        return mask->id;
    if (share < SHARE_MASKED + SHARE_DRAWN)
        return (int)rng_below(key_of(corpus, pair, mask, position, PIECE), (uint64_t)mask->vocab_size);
    return id;
}

void mask_take(struct tokens *source, struct tokens *target, const struct corpus *corpus, const int *pairs,
               int n, const struct mask *mask, struct arena *arena)
{
    int *read = ARENA_TAKE(arena, int, source->n), *labels = ARENA_TAKE(arena, int, source->n);
    int *rows = ARENA_TAKE(arena, int, source->n), *start = ARENA_TAKE(arena, int, source->n_sentences + 1);
    int count = 0;
    for (int s = 0; s < source->n_sentences; s++) {
        int pair = pairs[s % n], end = source->start[s + 1] - 1; /* the </s> */
        double least = least_number(corpus, pair, mask);
        start[s] = count;
        for (int row = source->start[s], i = 0; row < end; row++, i++) {
            int id = source->ids[row];
            read[row] = id;
            if (!is_chosen(corpus, pair, mask, i, least))
                continue;
            read[row] = replacement(corpus, pair, mask, i, id);
            labels[count] = id;
            rows[count++] = row;
        }
        read[end] = source->ids[end];
    }
    start[source->n_sentences] = count;
    source->ids = read;
    *target = (struct tokens){ .n_sentences = source->n_sentences,
                               .n = count,
                               .ids = labels,
                               .start = start,
                               .key = source->key,
                               .rows = rows };
}
