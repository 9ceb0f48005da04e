/*
 * shortlist.c: the file of a shortlist and the choice for a sentence. On the sentence's way: search_batch
 * asks shortlist_select for the rows of the unembedding that a sentence is decoded with. A file is not
 * believed: counts, order and bounds are proved before a list can be used, and the fingerprint of the
 * vocabularies tells whether its ids mean the pieces of this model.
 */
#include "model/shortlist.h"

#include <assert.h>
#include <string.h>

#include "base/gzip.h"
#include "base/mem.h"
#include "base/rng.h"

#define MAGIC       "TFM-LIST"
#define VERSION     1
#define HEADER_SIZE 28
#define LARGEST     ((size_t)1 << 30) /* bytes of the inflated file at most */

void shortlist_free(struct shortlist *shortlist)
{
    if (shortlist == NULL)
        return;
    mem_free(shortlist->start);
    mem_free(shortlist->ids);
    mem_free(shortlist);
}

static uint64_t fold_pieces(uint64_t fingerprint, const struct spm *spm)
{
    int n = spm_size(spm);
    for (int i = 0; i < n; i++) {
        for (const char *c = spm_piece(spm, i); *c != '\0'; c++)
            fingerprint = rng_mix(fingerprint ^ (unsigned char)*c);
        fingerprint = rng_mix(fingerprint ^ 256); /* the end of a piece */
    }
    return fingerprint;
}

static uint64_t fingerprint_of(const struct spm *source, const struct spm *target)
{
    return fold_pieces(fold_pieces(0, source), target);
}

/* ---- writing ---- */

static enum tfm_status add_fixed(struct str *out, uint64_t value, int n, struct tfm_error *err)
{
    char bytes[8];
    for (int i = 0; i < n; i++)
        bytes[i] = (char)(unsigned char)(value >> (8 * i));
    return str_add(out, bytes, (size_t)n, err);
}

static enum tfm_status add_number(struct str *out, uint32_t value, struct tfm_error *err)
{
    char bytes[5];
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        bytes[n++] = (char)(unsigned char)(value % 128 + 128);
    bytes[n++] = (char)value;
    return str_add(out, bytes, n, err);
}

static enum tfm_status add_lists(struct str *out, const struct shortlist *s, struct tfm_error *err)
{
    for (int list = 0; list <= s->n_source; list++) {
        int before = -1;
        TRY(add_number(out, (uint32_t)shortlist_length(s, list), err));
        for (size_t i = s->start[list]; i < s->start[list + 1]; i++) {
            assert(s->ids[i] > before && s->ids[i] < s->n_target);
            TRY(add_number(out, (uint32_t)(s->ids[i] - before), err));
            before = s->ids[i];
        }
    }
    return TFM_OK;
}

static enum tfm_status build_file(struct str *out, const struct shortlist *s, uint64_t fingerprint,
                                  struct tfm_error *err)
{
    TRY(str_add(out, MAGIC, 8, err));
    TRY(add_fixed(out, VERSION, 4, err));
    TRY(add_fixed(out, (uint64_t)s->n_source, 4, err));
    TRY(add_fixed(out, (uint64_t)s->n_target, 4, err));
    TRY(add_fixed(out, fingerprint, 8, err));
    return add_lists(out, s, err);
}

enum tfm_status shortlist_write(const struct shortlist *shortlist, const char *path, const struct spm *source,
                                const struct spm *target, struct tfm_error *err)
{
    struct str out = { 0 };
    assert(shortlist->n_source == spm_size(source) && shortlist->n_target == spm_size(target));
    enum tfm_status status = build_file(&out, shortlist, fingerprint_of(source, target), err);
    if (status == TFM_OK)
        status = gzip_write(path, out.data, out.len, 0, NULL, err);
    str_release(&out);
    return status;
}

/* ---- reading ---- */

struct reader {
    const char *path;
    const unsigned char *at, *end;
};

static uint64_t get_fixed(struct reader *r, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)*r->at++ << (8 * i);
    return value;
}

static enum tfm_status damaged(const struct reader *r, const char *what, struct tfm_error *err)
{
    return err_set(err, TFM_EFORMAT, "%s: the shortlist is damaged (%s): make it anew with tfm shortlist",
                   r->path, what);
}

/* A number from `least` to `most`. */
static inline enum tfm_status get_number(struct reader *r, int *value, int least, int most,
                                         struct tfm_error *err)
{
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        if (r->at == r->end)
            return damaged(r, "it ends within a list", err);
        unsigned byte = *r->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
        if (shift >= 28)
            return damaged(r, "a number is too large", err);
    }
    if (number < (uint64_t)least || number > (uint64_t)most)
        return damaged(r, "a list holds what is no piece", err);
    *value = (int)number;
    return TFM_OK;
}

static enum tfm_status read_header(struct reader *r, struct shortlist *s, struct tfm_error *err)
{
    size_t size = (size_t)(r->end - r->at);
    if (size < HEADER_SIZE || memcmp(r->at, MAGIC, 8) != 0)
        return err_set(err, TFM_EFORMAT, "%s: is no shortlist of tfm (see tfm-shortlist(1))", r->path);
    r->at += 8;
    unsigned version = (unsigned)get_fixed(r, 4);
    if (version != VERSION)
        return err_set(err, TFM_EFORMAT, "%s: the shortlist has format version %u, and this tfm reads %d",
                       r->path, version, VERSION);
    unsigned source = (unsigned)get_fixed(r, 4), target = (unsigned)get_fixed(r, 4);
    if (source != (unsigned)s->n_source || target != (unsigned)s->n_target)
        return err_set(
            err, TFM_EFORMAT,
            "%s: the shortlist is for vocabularies of %u and %u pieces, those of the model have %d and %d",
            r->path, source, target, s->n_source, s->n_target);
    s->fingerprint = get_fixed(r, 8);
    return TFM_OK;
}

/* Each number ends with a byte below 128. */
static size_t count_numbers(const struct reader *r)
{
    size_t n = 0;
    for (const unsigned char *at = r->at; at < r->end; at++)
        n += *at < 128;
    return n;
}

static enum tfm_status read_lists(struct shortlist *s, struct reader *r, struct tfm_error *err)
{
    s->start = mem_alloc(((size_t)s->n_source + 2) * sizeof(*s->start), err);
    s->ids = mem_alloc_unset((count_numbers(r) + 1) * sizeof(*s->ids), err);
    if (s->start == NULL || s->ids == NULL)
        return TFM_ENOMEM;
    size_t n = 0;
    for (int list = 0; list <= s->n_source; list++) {
        int length = 0, step = 0, id = -1;
        TRY(get_number(r, &length, 0, s->n_target, err));
        for (int i = 0; i < length; i++) {
            TRY(get_number(r, &step, 1, s->n_target - 1 - id, err));
            s->ids[n++] = id += step;
        }
        s->start[list + 1] = n;
        if (list > 0 && length > s->longest)
            s->longest = length;
    }
    return r->at == r->end ? TFM_OK : damaged(r, "something follows its lists", err);
}

enum tfm_status shortlist_check(const struct shortlist *s, const char *path, const struct spm *source,
                                const struct spm *target, struct tfm_error *err)
{
    if (s->fingerprint == fingerprint_of(source, target))
        return TFM_OK;
    return err_set(
        err, TFM_EFORMAT,
        "%s: the shortlist was made for a model with other vocabularies: make one with tfm shortlist", path);
}

enum tfm_status shortlist_read(struct shortlist **shortlist, const char *path, const struct spm *source,
                               const struct spm *target, struct tfm_error *err)
{
    TRY(shortlist_read_sized(shortlist, path, spm_size(source), spm_size(target), err));
    enum tfm_status status = shortlist_check(*shortlist, path, source, target, err);
    if (status != TFM_OK) {
        shortlist_free(*shortlist);
        *shortlist = NULL;
    }
    return status;
}

enum tfm_status shortlist_read_sized(struct shortlist **shortlist, const char *path, int n_source,
                                     int n_target, struct tfm_error *err)
{
    char *data;
    size_t size;
    *shortlist = NULL;
    TRY(gzip_read(path, LARGEST, &data, &size, NULL, err));
    struct reader r = { path, (const unsigned char *)data, (const unsigned char *)data + size };
    struct shortlist *s = mem_alloc(sizeof(*s), err);
    enum tfm_status status = s != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK) {
        *s = (struct shortlist){ .n_source = n_source, .n_target = n_target };
        status = read_header(&r, s, err);
    }
    if (status == TFM_OK)
        status = read_lists(s, &r, err);
    mem_free(data);
    if (status != TFM_OK) {
        shortlist_free(s);
        return status;
    }
    *shortlist = s;
    return TFM_OK;
}

/* ---- the choice for a sentence ---- */

int shortlist_most(const struct shortlist *s, int n_pieces, int n_more)
{
    double most = shortlist_length(s, 0) + (double)n_pieces * s->longest + n_more;
    return most < s->n_target ? (int)most : s->n_target;
}

static void mark(uint64_t *bits, const int *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bits[ids[i] / 64] |= (uint64_t)1 << (ids[i] % 64);
}

int shortlist_select(int *ids, const struct shortlist *s, const int *pieces, int n, const int *more,
                     int n_more, struct arena *arena)
{
    size_t taken = arena_mark(arena);
    int n_words = (s->n_target + 63) / 64, n_ids = 0;
    uint64_t *bits = ARENA_TAKE(arena, uint64_t, n_words);
    memset(bits, 0, sizeof(*bits) * (size_t)n_words);
    mark(bits, s->ids, s->start[1]);
    for (int i = 0; i < n; i++)
        mark(bits, s->ids + s->start[pieces[i] + 1], (size_t)shortlist_length(s, pieces[i] + 1));
    mark(bits, more, (size_t)n_more);
    for (int w = 0; w < n_words; w++) {
        for (uint64_t left = bits[w]; left != 0; left &= left - 1)
            ids[n_ids++] = w * 64 + __builtin_ctzll(left);
    }
    arena_reset(arena, taken);
    return n_ids;
}

int shortlist_find(const int *ids, int n, int piece)
{
    int from = 0, to = n; /* the place is in [from, to) if there is one */
    while (to - from > 1) {
        int middle = from + (to - from) / 2;
        if (ids[middle] <= piece)
            from = middle;
        else
            to = middle;
    }
    return from < to && ids[from] == piece ? from : -1;
}
