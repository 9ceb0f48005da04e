/*
 * batch.c: the order of a window. Its pairs are shuffled as a whole; stretches of about a hundred batches'
 * worth of pairs are sorted by length, so that a batch holds sentences of a kind; each stretch is cut into
 * batches by target tokens, and its batches are shuffled. Every choice comes from a key of (seed, epoch,
 * window, place).
 */
#include "train/batch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

#define STRETCH_BATCHES 100

struct batch_key {
    int target, source, pair;
};

enum tfm_status batch_plan_init(struct batch_plan *plan, int n_pairs, struct tfm_error *err)
{
    size_t n = (size_t)n_pairs;
    *plan = (struct batch_plan){ .n_pairs = n_pairs };
    plan->pairs = mem_alloc(n * sizeof(*plan->pairs), err);
    plan->start = mem_alloc((n + 1) * sizeof(*plan->start), err);
    plan->turn = mem_alloc(n * sizeof(*plan->turn), err);
    plan->keys = mem_alloc(n * sizeof(*plan->keys), err);
    if (plan->pairs != NULL && plan->start != NULL && plan->turn != NULL && plan->keys != NULL)
        return TFM_OK;
    batch_plan_release(plan);
    return TFM_ENOMEM;
}

void batch_plan_release(struct batch_plan *plan)
{
    mem_free(plan->pairs);
    mem_free(plan->start);
    mem_free(plan->turn);
    mem_free(plan->keys);
    *plan = (struct batch_plan){ 0 };
}

/* By target length, then source length; the pair's number makes the order total. */
static int compare_keys(const void *a, const void *b)
{
    const struct batch_key *x = a, *y = b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return (x->pair > y->pair) - (x->pair < y->pair);
}

static struct batch_key key_of(const struct corpus *corpus, int pair)
{
    return (struct batch_key){ corpus_length(&corpus->target, pair), corpus_length(&corpus->source, pair),
                               pair };
}

/* The end of the stretch that begins at `from`: enough pairs for STRETCH_BATCHES batches. Fills in their
 * keys. */
static int fill_stretch(struct batch_plan *plan, const struct corpus *corpus, int from, int words)
{
    double room = (double)words * STRETCH_BATCHES;
    int to = from;
    for (; to < plan->n_pairs && room > 0; to++) {
        plan->keys[to] = key_of(corpus, plan->pairs[to]);
        room -= plan->keys[to].target;
    }
    return to;
}

/* Cuts the sorted keys from .. to into batches. */
static void cut_stretch(struct batch_plan *plan, int from, int to, int words)
{
    int room = 0;
    for (int i = from; i < to; i++) {
        if (i == from || plan->keys[i].target > room) {
            plan->turn[plan->n] = plan->n;
            plan->start[plan->n++] = i;
            room = words;
        }
        room -= plan->keys[i].target;
        plan->pairs[i] = plan->keys[i].pair;
    }
}

void batch_plan_make(struct batch_plan *plan, const struct corpus *corpus, uint64_t seed, int epoch,
                     int window, int words)
{
    for (int i = 0; i < plan->n_pairs; i++)
        plan->pairs[i] = i;
    rng_shuffle(rng_key(seed, (uint64_t)epoch, (uint64_t)window, RANDOM_ORDER), plan->pairs, plan->n_pairs);
    plan->n = 0;
    for (int from = 0; from < plan->n_pairs;) {
        int to = fill_stretch(plan, corpus, from, words), first = plan->n;
        qsort(plan->keys + from, (size_t)(to - from), sizeof(*plan->keys), compare_keys);
        cut_stretch(plan, from, to, words);
        uint64_t place = ((uint64_t)window << 32) + (uint64_t)from;
        rng_shuffle(rng_key(seed, (uint64_t)epoch, place, RANDOM_STRETCH), plan->turn + first,
                    plan->n - first);
        from = to;
    }
    plan->start[plan->n] = plan->n_pairs;
}

enum tfm_status batch_join(struct ints *pairs, struct batch_plan *plan, const struct corpus *corpus, int i,
                           int n, struct tfm_error *err)
{
    pairs->n = 0;
    for (int b = i; b < i + n; b++) {
        int n_pairs;
        const int *batch = batch_pairs(plan, b, &n_pairs);
        TRY(ints_add(pairs, batch, (size_t)n_pairs, err));
    }
    if (n == 1)
        return TFM_OK;
    for (size_t p = 0; p < pairs->n; p++)
        plan->keys[p] = key_of(corpus, pairs->data[p]);
    qsort(plan->keys, pairs->n, sizeof(*plan->keys), compare_keys);
    for (size_t p = 0; p < pairs->n; p++)
        pairs->data[p] = plan->keys[p].pair;
    return TFM_OK;
}

static void take_side(struct tokens *tokens, const struct corpus_side *side, const int *pairs, int n,
                      int copies, const uint64_t *key, struct arena *arena)
{
    int *start = ARENA_TAKE(arena, int, n *copies + 1);
    start[0] = 0;
    for (int i = 0; i < n * copies; i++)
        start[i + 1] = start[i] + corpus_length(side, pairs[i % n]);
    int *ids = ARENA_TAKE(arena, int, start[n * copies]);
    for (int i = 0; i < n * copies; i++)
        corpus_copy(ids + start[i], side, pairs[i % n]);
    *tokens = (struct tokens){
        .n_sentences = n * copies, .n = start[n * copies], .ids = ids, .start = start, .key = key
    };
}

void batch_take(struct tokens *source, struct tokens *target, const struct corpus *corpus, const int *pairs,
                int n, int copies, uint64_t seed, struct arena *arena)
{
    uint64_t *key = ARENA_TAKE(arena, uint64_t, n * copies);
    for (int i = 0; i < n * copies; i++)
        key[i] = rng_key(seed, corpus->place[pairs[i % n]], (uint64_t)(i / n), RANDOM_SENTENCE);
    take_side(source, &corpus->source, pairs, n, copies, key, arena);
    take_side(target, &corpus->target, pairs, n, copies, key, arena);
}

void batch_empty_source(struct tokens *source, int eos, struct arena *arena)
{
    int n = source->n_sentences, *start = ARENA_TAKE(arena, int, n + 1), *ids = ARENA_TAKE(arena, int, n);
    for (int i = 0; i < n; i++) {
        start[i] = i;
        ids[i] = eos;
    }
    start[n] = source->n = n;
    source->ids = ids;
    source->start = start;
}
