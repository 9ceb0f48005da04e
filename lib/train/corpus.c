/*
 * corpus.c: tokenises pairs of lines on all threads and keeps the ids. A block of pairs is cut into slices
 * that are encoded side by side, each into lists of its own, and appended in order; so the corpus is the same
 * whatever the number of threads. Pairs that are empty on a side, too long or too unequal are counted and
 * left out. </s> is not stored: corpus_copy adds it.
 */
#include "train/corpus.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "text/sample.h"
#include "train/guide.h"
#include "train/links.h"

#define N_SLICES 64

struct slice {
    struct ints source, target; /* ids of all its pairs */
    struct ints lengths;        /* source and target pieces, pair by pair */
    enum tfm_status status;
    struct tfm_error err;
};

struct encoding {
    const struct corpus *corpus;
    const struct text_block *block;
    struct slice slices[N_SLICES];
};

static enum tfm_status side_init(struct corpus_side *side, const struct spm *spm, struct tfm_error *err)
{
    *side = (struct corpus_side){ .spm = spm, .eos = spm_eos(spm), .width = spm_size(spm) < 65536 ? 2 : 4 };
    side->start = mem_alloc(sizeof(*side->start), err);
    return side->start != NULL ? TFM_OK : TFM_ENOMEM;
}

/* After each change of the source. */
static void share_side(struct corpus *corpus)
{
    if (corpus->is_text)
        corpus->target = corpus->source;
}

enum tfm_status corpus_init(struct corpus *corpus, const struct spm *source, const struct spm *target,
                            int max_length, double max_ratio, struct tfm_error *err)
{
    *corpus = (struct corpus){ .is_text = target == NULL, .max_length = max_length, .max_ratio = max_ratio };
    enum tfm_status status = side_init(&corpus->source, source, err);
    if (status == TFM_OK && !corpus->is_text)
        status = side_init(&corpus->target, target, err);
    if (status != TFM_OK)
        corpus_release(corpus);
    else
        share_side(corpus);
    return status;
}

void corpus_release(struct corpus *corpus)
{
    mem_free(corpus->source.ids);
    mem_free(corpus->source.start);
    if (!corpus->is_text) {
        mem_free(corpus->target.ids);
        mem_free(corpus->target.start);
    }
    mem_free(corpus->place);
    links_release(&corpus->links);
    *corpus = (struct corpus){ 0 };
}

void corpus_clear(struct corpus *corpus)
{
    corpus->n = 0;
    corpus->n_empty = corpus->n_long = corpus->n_unequal = corpus->n_unguided = 0;
    links_clear(&corpus->links);
}

void corpus_copy(int *ids, const struct corpus_side *side, int pair)
{
    size_t from = side->start[pair], n = side->start[pair + 1] - from;
    for (size_t i = 0; i < n; i++)
        ids[i] = side->width == 2 ? ((const uint16_t *)side->ids)[from + i]
                                  : ((const int32_t *)side->ids)[from + i];
    ids[n] = side->eos;
}

int corpus_longest(const struct corpus *corpus)
{
    int longest = 0;
    for (int i = 0; i < corpus->n; i++) {
        int source = corpus_length(&corpus->source, i), target = corpus_length(&corpus->target, i);
        longest = source > longest ? source : longest;
        longest = target > longest ? target : longest;
    }
    return longest;
}

/* Encodes one text behind `ids`; *length gets its number of pieces. */
static enum tfm_status encode_text(struct ints *ids, int *length, const struct spm *spm, const char *text,
                                   struct tfm_error *err)
{
    size_t before = ids->n;
    TRY(spm_encode(spm, text, strlen(text), ids, err));
    *length = (int)(ids->n - before);
    return TFM_OK;
}

static void encode_slice(void *arg, int i, int worker)
{
    (void)worker;
    struct encoding *e = arg;
    struct slice *slice = &e->slices[i];
    size_t from = e->block->n * (size_t)i / N_SLICES, to = e->block->n * ((size_t)i + 1) / N_SLICES;
    slice->source.n = slice->target.n = slice->lengths.n = 0;
    slice->status = TFM_OK;
    for (size_t p = from; p < to && slice->status == TFM_OK; p++) {
        int length[2];
        slice->status = encode_text(&slice->source, &length[0], e->corpus->source.spm,
                                    pairs_source(e->block, p), &slice->err);
        length[1] = length[0];
        if (slice->status == TFM_OK && !e->corpus->is_text)
            slice->status = encode_text(&slice->target, &length[1], e->corpus->target.spm,
                                        pairs_target(e->block, p), &slice->err);
        if (slice->status == TFM_OK)
            slice->status = ints_add(&slice->lengths, length, 2, &slice->err);
    }
}

/* ---- other segmentations ---- */

struct sampling {
    const struct corpus *base;
    const float *alpha; /* [2] */
    uint64_t key;
    struct slice slices[N_SLICES];
};

/* Appends one side of a pair, drawn anew, to `ids`; *length gets its number of pieces. */
static enum tfm_status sample_side(struct ints *ids, int *length, struct ints *plain, struct sampler *sampler,
                                   const struct corpus *base, const struct corpus_side *side, int pair,
                                   uint64_t key, struct tfm_error *err)
{
    size_t before = ids->n, n = (size_t)corpus_length(side, pair) - 1;
    plain->n = 0;
    TRY(ints_reserve(plain, n + 1, err));
    corpus_copy(plain->data, side, pair);
    if (sampler->alpha > 0)
        TRY(sampler_draw(sampler, ids, plain->data, n, key, err));
    if (!(sampler->alpha > 0) || ids->n - before > (size_t)base->max_length) {
        ids->n = before;
        TRY(ints_add(ids, plain->data, n, err));
    }
    *length = (int)(ids->n - before);
    return TFM_OK;
}

static void sample_slice(void *arg, int i, int worker)
{
    (void)worker;
    struct sampling *s = arg;
    struct slice *slice = &s->slices[i];
    const struct corpus *base = s->base;
    struct sampler source, target;
    struct ints plain = { 0 };
    int from = (int)((long)base->n * i / N_SLICES), to = (int)((long)base->n * (i + 1) / N_SLICES);
    sampler_init(&source, base->source.spm, (double)s->alpha[0]);
    sampler_init(&target, base->target.spm, (double)s->alpha[1]);
    for (int p = from; p < to && slice->status == TFM_OK; p++) {
        int length[2];
        slice->status = sample_side(&slice->source, &length[0], &plain, &source, base, &base->source, p,
                                    rng_key(s->key, base->place[p], 0, 0), &slice->err);
        length[1] = length[0];
        if (slice->status == TFM_OK && !base->is_text)
            slice->status = sample_side(&slice->target, &length[1], &plain, &target, base, &base->target, p,
                                        rng_key(s->key, base->place[p], 1, 0), &slice->err);
        if (slice->status == TFM_OK)
            slice->status = ints_add(&slice->lengths, length, 2, &slice->err);
    }
    sampler_release(&source);
    sampler_release(&target);
    ints_release(&plain);
}

/* ---- appending ---- */

static enum tfm_status reserve_pair(struct corpus *corpus, struct tfm_error *err)
{
    if (corpus->n < corpus->cap)
        return TFM_OK;
    if (corpus->n > INT_MAX / 2)
        return err_set(err, TFM_EINVAL, "a corpus of more than %d pairs is more than can be numbered",
                       INT_MAX / 2);
    int cap = corpus->cap > 0 ? 2 * corpus->cap : 4096;
    for (int s = 0; s < (corpus->is_text ? 1 : 2); s++) {
        struct corpus_side *side = s == 0 ? &corpus->source : &corpus->target;
        size_t *start = mem_grow(side->start, (size_t)corpus->cap + 1, (size_t)cap + 1, sizeof(*start), err);
        if (start == NULL)
            return TFM_ENOMEM;
        side->start = start;
    }
    uint64_t *place = mem_grow(corpus->place, (size_t)corpus->cap, (size_t)cap, sizeof(*place), err);
    if (place == NULL)
        return TFM_ENOMEM;
    corpus->place = place;
    corpus->cap = cap;
    return TFM_OK;
}

/* Appends the ids of pair number `pair`, the last one so far. */
static enum tfm_status append(struct corpus_side *side, int pair, const int *ids, int n,
                              struct tfm_error *err)
{
    size_t from = side->start[pair], need = from + (size_t)n;
    if (need > side->cap) {
        size_t cap = 2 * side->cap > need ? 2 * side->cap : need + 65536;
        char *grown = mem_grow(side->ids, side->cap, cap, (size_t)side->width, err);
        if (grown == NULL)
            return TFM_ENOMEM;
        side->ids = grown;
        side->cap = cap;
    }
    for (int i = 0; i < n; i++) {
        if (side->width == 2)
            ((uint16_t *)side->ids)[from + (size_t)i] = (uint16_t)ids[i];
        else
            ((int32_t *)side->ids)[from + (size_t)i] = ids[i];
    }
    side->start[pair + 1] = need;
    return TFM_OK;
}

static bool is_unequal(const struct corpus *corpus, int n_source, int n_target)
{
    int longer = n_source > n_target ? n_source : n_target;
    return corpus->max_ratio > 0 && longer > corpus->max_ratio * (n_source + n_target - longer);
}

/* Where the pairs come from that are appended, number `first` and those behind it. */
struct origin {
    const uint64_t *place;
    const struct links *links;
    size_t first;
};

/* The alignment of pair `from` of the origin for the corpus's last pair. */
static enum tfm_status append_links(struct corpus *corpus, const struct origin *origin, size_t from,
                                    const int *source, int n_source, const int *target, int n_target,
                                    struct tfm_error *err)
{
    size_t n;
    const struct link *list = links_of(origin->links, from, &n);
    if (n == 0)
        return TFM_OK;
    const struct linked_pair *pair = &origin->links->pairs[from];
    if (!guide_fits(pair, source, (size_t)n_source, corpus->source.spm, target, (size_t)n_target,
                    corpus->target.spm)) {
        corpus->n_unguided++;
        return TFM_OK;
    }
    return links_add(&corpus->links, (size_t)corpus->n - 1, list, n, pair->n_words, err);
}

static enum tfm_status append_slice(struct corpus *corpus, const struct slice *slice,
                                    const struct origin *origin, struct tfm_error *err)
{
    size_t source = 0, target = 0;
    for (size_t p = 0; p < slice->lengths.n; p += 2) {
        int n_source = slice->lengths.data[p], n_target = slice->lengths.data[p + 1];
        if (n_source == 0 || n_target == 0) {
            corpus->n_empty++;
        } else if (n_source > corpus->max_length || n_target > corpus->max_length) {
            corpus->n_long++;
        } else if (is_unequal(corpus, n_source, n_target)) {
            corpus->n_unequal++;
        } else {
            TRY(reserve_pair(corpus, err));
            TRY(append(&corpus->source, corpus->n, slice->source.data + source, n_source, err));
            if (!corpus->is_text)
                TRY(append(&corpus->target, corpus->n, slice->target.data + target, n_target, err));
            corpus->place[corpus->n++] = origin->place[origin->first + p / 2];
            TRY(append_links(corpus, origin, origin->first + p / 2, slice->source.data + source, n_source,
                             slice->target.data + target, n_target, err));
        }
        source += (size_t)n_source;
        target += (size_t)n_target;
    }
    return TFM_OK;
}

static enum tfm_status append_slices(struct corpus *corpus, const struct slice *slices, const uint64_t *place,
                                     const struct links *links, struct tfm_error *err)
{
    struct origin origin = { .place = place, .links = links };
    for (int i = 0; i < N_SLICES; i++) {
        if (slices[i].status != TFM_OK)
            return err_set(err, slices[i].status, "%s", slices[i].err.message);
        TRY(append_slice(corpus, &slices[i], &origin, err));
        origin.first += slices[i].lengths.n / 2;
    }
    share_side(corpus);
    return TFM_OK;
}

static enum tfm_status encode_block(struct encoding *e, struct corpus *corpus, const struct text_block *block,
                                    struct pool *pool, struct tfm_error *err)
{
    e->corpus = corpus;
    e->block = block;
    pool_run(pool, N_SLICES, encode_slice, e);
    return append_slices(corpus, e->slices, block->place, &block->links, err);
}

static void release_slices(struct slice *slices)
{
    for (int i = 0; i < N_SLICES; i++) {
        ints_release(&slices[i].source);
        ints_release(&slices[i].target);
        ints_release(&slices[i].lengths);
    }
}

static void encoding_free(struct encoding *e)
{
    release_slices(e->slices);
    mem_free(e);
}

enum tfm_status corpus_sample(struct corpus *corpus, const struct corpus *base, const float alpha[2],
                              uint64_t key, struct pool *pool, struct tfm_error *err)
{
    struct sampling *s = mem_alloc(sizeof(*s), err);
    if (s == NULL)
        return TFM_ENOMEM;
    s->base = base;
    s->alpha = alpha;
    s->key = key;
    corpus_clear(corpus);
    pool_run(pool, N_SLICES, sample_slice, s);
    enum tfm_status status = append_slices(corpus, s->slices, base->place, &base->links, err);
    release_slices(s->slices);
    mem_free(s);
    return status;
}

enum tfm_status corpus_add(struct corpus *corpus, const struct text_block *block, struct pool *pool,
                           struct tfm_error *err)
{
    struct encoding *e = mem_alloc(sizeof(*e), err);
    if (e == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = encode_block(e, corpus, block, pool, err);
    encoding_free(e);
    return status;
}
