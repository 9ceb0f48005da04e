/*
 * sample.c: random segmentations. The text of the given pieces is cut where a piece begins a word, and each
 * stretch is split anew on its own.
 *     Byte-pair encoding (BPE-dropout, Provilkov et al. 2020): characters are joined by the best merge there
 * is, again and again, but each merge is left out with probability alpha when its turn comes, as SentencePiece
 * does it.
 *     Unigram language model (subword regularisation, Kudo 2018): a segmentation is drawn with a probability
 * in proportion to P(pieces)^alpha, forward filtering and backward sampling over the lattice of all pieces.
 *     Neither keeps a generator: the j-th choice for a sentence is rng_unit(key + j).
 */
#include "text/sample.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "text/utf8.h"

void sampler_init(struct sampler *sampler, const struct spm *spm, double alpha)
{
    *sampler = (struct sampler){ .spm = spm, .alpha = alpha };
    for (int id = 0; id < spm_size(spm); id++) {
        int length = (int)strlen(spm_piece(spm, id));
        sampler->longest = length > sampler->longest ? length : sampler->longest;
    }
}

void sampler_release(struct sampler *sampler)
{
    str_release(&sampler->word);
    ints_release(&sampler->at);
    mem_free(sampler->value);
    *sampler = (struct sampler){ 0 };
}

static int piece_between(const struct sampler *s, size_t i, size_t j)
{
    int from = s->at.data[i], to = s->at.data[j];
    return spm_piece_id(s->spm, s->word.data + from, (size_t)(to - from));
}

/* Lays out the word's characters: at[0 .. n], n characters. */
static enum tfm_status find_characters(struct sampler *s, size_t *n, struct tfm_error *err)
{
    s->at.n = 0;
    uint32_t cp;
    for (int i = 0; i < (int)s->word.len; i += utf8_next(s->word.data + i, s->word.len - (size_t)i, &cp))
        TRY(ints_add(&s->at, &i, 1, err));
    *n = s->at.n;
    int end = (int)s->word.len;
    TRY(ints_add(&s->at, &end, 1, err));
    if (s->at.n > s->value_cap) {
        double *grown = mem_grow(s->value, s->value_cap, 2 * s->at.n, sizeof(*grown), err);
        if (grown == NULL)
            return TFM_ENOMEM;
        s->value = grown;
        s->value_cap = 2 * s->at.n;
    }
    return TFM_OK;
}

/* ---- byte-pair encoding ---- */

static void rate_merge(struct sampler *s, size_t i, size_t n)
{
    int id = i + 2 <= n ? piece_between(s, i, i + 2) : -1;
    s->value[i] = id >= 0 ? (double)spm_score(s->spm, id) : -HUGE_VAL;
}

/* Joins symbols i and i + 1 of n. */
static void merge(struct sampler *s, size_t i, size_t n)
{
    memmove(s->at.data + i + 1, s->at.data + i + 2, (n - i - 1) * sizeof(*s->at.data));
    memmove(s->value + i + 1, s->value + i + 2, (n - i - 2) * sizeof(*s->value));
    rate_merge(s, i, n - 1);
    if (i > 0)
        rate_merge(s, i - 1, n - 1);
}

/* Leaves the symbols in at[0 .. *n]. */
static void merge_at_random(struct sampler *s, size_t *n, uint64_t *key)
{
    for (size_t i = 0; i < *n; i++)
        rate_merge(s, i, *n);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < *n; i++)
            best = s->value[i] > s->value[best] ? i : best;
        if (s->value[best] == -HUGE_VAL)
            return;
        if (rng_unit((*key)++) < s->alpha)
            s->value[best] = -HUGE_VAL;
        else
            merge(s, best, (*n)--);
    }
}

/* ---- unigram ---- */

static bool is_possible(const struct sampler *s, size_t i, size_t j)
{
    return s->at.data[j] - s->at.data[i] <= s->longest;
}

static double log_add(double a, double b)
{
    double most = a > b ? a : b;
    return most == -HUGE_VAL ? most : most + log1p(exp(-fabs(a - b)));
}

/* value[j] = log of the sum, over segmentations of the first j characters, of P^alpha. */
static void filter_forward(struct sampler *s, size_t n)
{
    s->value[0] = 0;
    for (size_t j = 1; j <= n; j++) {
        s->value[j] = -HUGE_VAL;
        for (size_t i = j; i-- > 0 && is_possible(s, i, j);) {
            int id = piece_between(s, i, j);
            if (id >= 0)
                s->value[j] = log_add(s->value[j], s->value[i] + s->alpha * (double)spm_score(s->spm, id));
        }
    }
}

/* Leaves the drawn segmentation in at[0 .. *n]: from the end, the last piece is drawn among all that end
 * there, and so on to the left. */
static void sample_backward(struct sampler *s, size_t *n, uint64_t *key)
{
    size_t j = *n, first = *n; /* at[first ..] holds the drawn ends */
    while (j > 0) {
        double u = rng_unit((*key)++);
        size_t chosen = j - 1;
        for (size_t i = j; i-- > 0 && is_possible(s, i, j);) {
            int id = piece_between(s, i, j);
            if (id < 0 || s->value[i] == -HUGE_VAL)
                continue;
            chosen = i;
            u -= exp(s->value[i] + s->alpha * (double)spm_score(s->spm, id) - s->value[j]);
            if (u < 0)
                break;
        }
        j = chosen;
        s->at.data[--first] = s->at.data[j];
    }
    memmove(s->at.data, s->at.data + first, (*n + 1 - first) * sizeof(*s->at.data));
    *n -= first;
}

/* ---- words ---- */

/* Splits the word, whose pieces were ids [n], anew. Where characters are no pieces of their own a random
 * choice may leave some that have no piece: then it stays as it was. */
static enum tfm_status draw_word(struct sampler *s, struct ints *out, const int *ids, size_t n, uint64_t *key,
                                 struct tfm_error *err)
{
    size_t n_symbols, before = out->n;
    str_clear(&s->word);
    for (size_t i = 0; i < n; i++)
        TRY(str_add(&s->word, spm_piece(s->spm, ids[i]), strlen(spm_piece(s->spm, ids[i])), err));
    TRY(find_characters(s, &n_symbols, err));
    if (spm_is_bpe(s->spm)) {
        merge_at_random(s, &n_symbols, key);
    } else {
        filter_forward(s, n_symbols);
        sample_backward(s, &n_symbols, key);
    }
    for (size_t i = 0; i < n_symbols; i++) {
        int id = piece_between(s, i, i + 1);
        if (id < 0) {
            out->n = before;
            return ints_add(out, ids, n, err);
        }
        TRY(ints_add(out, &id, 1, err));
    }
    return TFM_OK;
}

enum tfm_status sampler_draw(struct sampler *sampler, struct ints *out, const int *ids, size_t n,
                             uint64_t key, struct tfm_error *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (!spm_is_text(sampler->spm, ids[i])) {
            TRY(ints_add(out, &ids[i], 1, err));
            continue;
        }
        while (end < n && spm_is_text(sampler->spm, ids[end]) && !spm_is_word_start(sampler->spm, ids[end]))
            end++;
        TRY(draw_word(sampler, out, ids + i, end - i, &key, err));
    }
    return TFM_OK;
}
