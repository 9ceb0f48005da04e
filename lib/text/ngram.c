/*
 * ngram.c: n-grams in common, in time linear in the lengths. An n-gram is the pair of its first n-1 symbols,
 * given by their number, and its last symbol; the number is the place of the pair in an open hash table. So
 * each order takes one step per position from the order before, and equal numbers mean equal n-grams:
 * nothing rests on the hash being free of collisions. The same table numbers words when it is fed their
 * bytes.
 */
#include "text/ngram.h"

#include "base/mem.h"
#include "base/rng.h"

/* So that a number, 1 + the place in a table twice to four times as large, fits an int. */
#define MAX_SYMBOLS ((size_t)1 << 29)

struct ngram_slot {
    uint64_t key, round;
    long count;
};

void ngram_release(struct ngrams *ngrams)
{
    mem_free(ngrams->slots);
    ints_release(&ngrams->prefix);
    *ngrams = (struct ngrams){ 0 };
}

enum tfm_status ngram_start(struct ngrams *ngrams, size_t n, struct tfm_error *err)
{
    if (n > MAX_SYMBOLS)
        return err_set(err, TFM_EINVAL,
                       "a line and its reference have %zu characters, more than the %zu that can be scored; "
                       "check the line ends of both files",
                       n, MAX_SYMBOLS);
    size_t size = 64;
    while (size < 2 * n)
        size *= 2;
    if (size > ngrams->n_slots) {
        struct ngram_slot *slots = mem_alloc(size * sizeof(*slots), err);
        if (slots == NULL)
            return TFM_ENOMEM;
        mem_free(ngrams->slots);
        ngrams->slots = slots;
        ngrams->n_slots = size;
    }
    ngrams->mask = size - 1;
    ngrams->round++;
    return TFM_OK;
}

static size_t find(struct ngrams *ngrams, int prefix, int symbol)
{
    uint64_t key = (uint64_t)(uint32_t)prefix << 32 | (uint32_t)symbol;
    size_t i = rng_mix(key) & ngrams->mask;
    while (ngrams->slots[i].round == ngrams->round && ngrams->slots[i].key != key)
        i = (i + 1) & ngrams->mask;
    if (ngrams->slots[i].round != ngrams->round)
        ngrams->slots[i] = (struct ngram_slot){ .key = key, .round = ngrams->round };
    return i;
}

int ngram_extend(struct ngrams *ngrams, int prefix, int symbol)
{
    return (int)find(ngrams, prefix, symbol) + 1;
}

enum tfm_status ngram_match(struct ngrams *ngrams, const struct ints *hypothesis,
                            const struct ints *reference, int order, struct ngram_counts *counts,
                            struct tfm_error *err)
{
    size_t n_both = hypothesis->n + reference->n;
    *counts = (struct ngram_counts){ 0 };
    if (n_both == 0)
        return TFM_OK;
    ngrams->prefix.n = 0;
    TRY(ints_reserve(&ngrams->prefix, n_both, err));
    int *hypothesis_prefix = ngrams->prefix.data; /* number of the (n-1)-gram that starts here */
    int *reference_prefix = hypothesis_prefix + hypothesis->n;
    for (int o = 0; o < order; o++) {
        TRY(ngram_start(ngrams, n_both, err));
        for (size_t i = 0; i + (size_t)o < reference->n; i++) {
            size_t slot = find(ngrams, o > 0 ? reference_prefix[i] : 0, reference->data[i + (size_t)o]);
            ngrams->slots[slot].count++;
            reference_prefix[i] = (int)slot + 1;
            counts->reference[o]++;
        }
        for (size_t i = 0; i + (size_t)o < hypothesis->n; i++) {
            size_t slot = find(ngrams, o > 0 ? hypothesis_prefix[i] : 0, hypothesis->data[i + (size_t)o]);
            if (ngrams->slots[slot].count > 0) {
                ngrams->slots[slot].count--;
                counts->match[o]++;
            }
            hypothesis_prefix[i] = (int)slot + 1;
            counts->hypothesis[o]++;
        }
    }
    return TFM_OK;
}
