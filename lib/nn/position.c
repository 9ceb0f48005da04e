/*
 * position.c: how a model tells positions. Sines and cosines are libm's in double, rounded once: their last bits
 * are beyond a float's. Everything is computed row by row from a row's own place in its own sentence, so that a
 * decoding step gives the bits of the whole target.
 *     halves       [sin(pos w_0), ..., sin(pos w_(D/2-1)), cos(pos w_0), ...],  w_i = 10000^(-i / (D/2 - 1))
 *     interleaved  [sin(pos w_0), cos(pos w_0), sin(pos w_1), ...],             w_i = 10000^(-2i / D)
 *     RoPE         columns i and i + K/2 of a head turned by pos w_i,           w_i = 10000^(-2i / K)
 *     ALiBi        bias_h(m) = -2^(-8h/H) |m|,  h = 1 ... H
 *     relative     bias_h(m) = table[bucket(m), h]
 */
#include "nn/position.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DISTANCE 128 /* relative biases: from here on all are alike */

/* positions [N] of a batch: 0, 1, 2, ... in each sentence; returns one more than the largest. */
static int number_positions(int *positions, const struct tokens *tokens)
{
    int longest = 0;
    for (int s = 0; s < tokens->n_sentences; s++) {
        int length = tokens->start[s + 1] - tokens->start[s];
        for (int i = 0; i < length; i++)
            positions[tokens->start[s] + i] = i;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static bool is_sinusoidal(const struct position *p)
{
    return p->kind == TFM_POSITIONS_HALVES || p->kind == TFM_POSITIONS_INTERLEAVED;
}

static bool has_bias(const struct position *p)
{
    return p->kind == TFM_POSITIONS_ALIBI || (p->kind == TFM_POSITIONS_RELATIVE && p->table != NULL);
}

/* ---- sines and cosines ---- */

int position_width(const struct position *p)
{
    return is_sinusoidal(p) ? p->d : p->kind == TFM_POSITIONS_ROPE ? p->dim : 0;
}

/* n waves: the sine of wave i in column i * step, its cosine `cosine` columns behind; n_powers from 1 to
 * 10000. */
static void waves(real *rows, int from, int to, int n, int step, int cosine, int n_powers)
{
    double slope = log(10000.0) / n_powers;
    for (int i = 0; i < n; i++) {
        double w = exp(-i * slope);
        for (int pos = from; pos < to; pos++) {
            real *row = rows + (size_t)(pos - from) * 2 * (size_t)n + (size_t)i * (size_t)step;
            row[0] = (real)sin(pos * w);
            row[cosine] = (real)cos(pos * w);
        }
    }
}

void position_rows(real *rows, int from, int to, const struct position *p)
{
    int half = position_width(p) / 2;
    if (p->kind == TFM_POSITIONS_HALVES)
        waves(rows, from, to, half, 1, half, half > 1 ? half - 1 : 1);
    else if (half > 0)
        waves(rows, from, to, half, p->kind == TFM_POSITIONS_INTERLEAVED ? 2 : 1,
              p->kind == TFM_POSITIONS_INTERLEAVED ? 1 : half, half);
}

void position_turn(real *x, int ldx, int heads, int n, bool back, const struct placement *place)
{
    const struct position *p = place->position;
    int half = p->dim / 2;
    if (p->kind != TFM_POSITIONS_ROPE)
        return;
    for (int i = 0; i < n; i++, x += ldx) {
        const real *sines = place->rows + (size_t)place->positions[i] * p->dim, *cosines = sines + half;
        for (int h = 0; h < heads; h++) {
            real *a = x + (size_t)h * p->dim, *b = a + half;
            for (int j = 0; j < half; j++) {
                real s = back ? -sines[j] : sines[j], old = a[j];
                a[j] = old * cosines[j] - b[j] * s;
                b[j] = b[j] * cosines[j] + old * s;
            }
        }
    }
}

/* ---- learned vectors ---- */

static real *find_spots(const struct placement *place, const struct attn_segment *segments, int n_segments,
                        int n, const struct run *run)
{
    real *spots = ARENA_TAKE(run->arena, real, n);
    int length = place->position->length;
    double last = length - 1;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        double ratio = s->n_k > length ? last / (s->n_k - 1) : 1;
        for (int i = s->q_start; i < s->q_start + s->n_q; i++)
            spots[i] = (real)fmin(place->positions[i] * ratio, last);
    }
    return spots;
}

/* The row before a spot, and how far the spot is on the way to the next one: 0 <= *part < 1. */
static int split_spot(real *part, real spot)
{
    int row = (int)spot;
    *part = spot - (real)row;
    return row;
}

static void add_between(real *x, const real *a, const real *b, real part, int d)
{
    for (int j = 0; j < d; j++)
        x[j] += a[j] + part * (b[j] - a[j]);
}

static void add_learned(real *x, real spot, const struct position *p, const struct run *run)
{
    real part;
    const real *row = p->table + (size_t)split_spot(&part, spot) * p->d;
    if (part > 0)
        add_between(x, row, row + p->d, part, p->d);
    else
        run->kern->add(x, row, (size_t)p->d);
}

static void add_learned_backward(real *dtable, const real *dx, real spot, const struct position *p)
{
    real part;
    real *row = dtable + (size_t)split_spot(&part, spot) * p->d;
    for (int j = 0; j < p->d; j++)
        row[j] += (1 - part) * dx[j];
    for (int j = 0; part > 0 && j < p->d; j++)
        row[p->d + j] += part * dx[j];
}

void position_resize(real *y, int to, const real *x, int from, int d)
{
    memset(y, 0, sizeof(real) * (size_t)to * (size_t)d);
    for (int i = 0; i < to; i++, y += d) {
        double spot = to > 1 ? (double)i * (from - 1) / (to - 1) : 0;
        real part;
        const real *row = x + (size_t)split_spot(&part, (real)spot) * d;
        add_between(y, row, part > 0 ? row + d : row, part, d);
    }
}

/* ---- biases ---- */

/* Half of the buckets (of each direction, in an encoder) are for one distance each, the others for ranges that
 * grow like powers. The smallest number keeps a power that is whole from being rounded down. */
static int bucket(int distance, bool is_causal)
{
    int n = is_causal ? POSITION_BUCKETS : POSITION_BUCKETS / 2, single = n / 2;
    int first = !is_causal && distance > 0 ? n : 0, far = is_causal && distance > 0 ? 0 : abs(distance);
    if (far >= single) {
        double part = log((double)far / single) / log((double)MAX_DISTANCE / single);
        far = single + (int)(part * (n - single) + 1e-9);
    }
    return first + (far < n ? far : n - 1);
}

static real bias_of(int head, int distance, const struct position *p)
{
    if (p->kind == TFM_POSITIONS_RELATIVE)
        return p->table[bucket(distance, p->is_causal) * p->heads + head];
    return (real)(-abs(distance) * exp2(-8.0 * (head + 1) / p->heads));
}

static void take_bias(struct placement *place, const struct run *run)
{
    const struct position *p = place->position;
    assert(place->longest > 0);
    int width = 2 * place->longest - 1;
    size_t size = (size_t)p->heads * (size_t)width;
    real *bias = ARENA_TAKE(run->arena, real, size);
    place->bias = bias;
    for (int h = 0; h < p->heads; h++)
        for (int j = 0; j < width; j++)
            *bias++ = bias_of(h, j - (place->longest - 1), p);
    if (run->keep && p->table != NULL) {
        place->dbias = ARENA_TAKE(run->arena, real, size);
        memset(place->dbias, 0, sizeof(real) * size);
    }
}

static void bias_backward(real *dtable, const struct placement *place)
{
    const struct position *p = place->position;
    const real *dbias = place->dbias;
    for (int h = 0; h < p->heads; h++)
        for (int j = 0; j < 2 * place->longest - 1; j++)
            dtable[bucket(j - (place->longest - 1), p->is_causal) * p->heads + h] += *dbias++;
}

/* ---- all kinds ---- */

void position_place(struct placement *place, const struct attn_segment *segments, int n_segments, int n,
                    const struct run *run)
{
    const struct position *p = place->position;
    if (p->kind == TFM_POSITIONS_LEARNED)
        place->spots = find_spots(place, segments, n_segments, n, run);
    if (has_bias(p))
        take_bias(place, run);
}

void position_place_all(struct placement *place, const struct position *p, const struct tokens *tokens,
                        const struct attn_segment *segments, const struct run *run)
{
    int *positions = ARENA_TAKE(run->arena, int, tokens->n);
    *place = (struct placement){ .position = p, .positions = positions };
    place->longest = number_positions(positions, tokens);
    real *rows = ARENA_TAKE(run->arena, real, (size_t)place->longest * (size_t)position_width(p));
    position_rows(rows, 0, place->longest, p);
    place->rows = rows;
    position_place(place, segments, tokens->n_sentences, tokens->n, run);
}

void position_add(real *x, int n, const struct placement *place, const struct run *run)
{
    const struct position *p = place->position;
    size_t d = (size_t)p->d;
    for (int i = 0; i < n && is_sinusoidal(p); i++)
        run->kern->add(x + (size_t)i * d, place->rows + (size_t)place->positions[i] * d, d);
    for (int i = 0; i < n && place->spots != NULL; i++)
        add_learned(x + (size_t)i * d, place->spots[i], p, run);
}

void position_backward(real *dtable, const real *dx, int n, const struct placement *place)
{
    const struct position *p = place->position;
    for (int i = 0; i < n && place->spots != NULL; i++)
        add_learned_backward(dtable, dx + (size_t)i * p->d, place->spots[i], p);
    if (place->dbias != NULL)
        bias_backward(dtable, place);
}
