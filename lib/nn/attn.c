/*
 * attn.c: scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2), for each
 * segment and head
 *     P = softmax(scale * Q K^T + mask)     O = P V
 * and back, with D = dropout's mask / (1 - p):
 *     dV = (P D)^T dO    dP = (dO V^T) D    dS = scale * P (dP - rowsum(dP P))    dQ = dS K    dK = dS^T Q
 * The products are the kernels' own, whose results for a row depend on nothing but the row: so a decoding
 * step gives the same bits as the whole target at once. Sentence by sentence the matrices are small and stay
 * in the first cache.
 * On the sentence's way: block_forward calls attn_forward, which hands the mix to linear_forward.
 */
#include "nn/attn.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "nn/dropout.h"

size_t attn_weights_size(const struct attn_segment *segments, int n_segments, int heads)
{
    size_t size = 0;
    for (int i = 0; i < n_segments; i++)
        size += (size_t)segments[i].n_q * (size_t)segments[i].n_k * (size_t)heads;
    return size;
}

/* Keys that query i of a segment sees: the first so many. */
static int visible(const struct attn_segment *s, int i)
{
    return s->causal ? i + s->n_k - s->n_q + 1 : s->n_k;
}

static void show_weights(const real *p, int head, const struct attn_segment *s, const struct attn *attn,
                         const struct run *run)
{
    if (!run->tap)
        return;
    char name[64];
    snprintf(name, sizeof(name), "%s.weights", attn->name);
    tap_show(run->tap, attn->prefix, attn->layer, name, head, p, s->n_q, s->n_k, s->n_k);
}

/* Drops attention weights [n_q, n_k] of one head, or their gradient: y may be p. */
static void drop_weights(real *y, const real *p, int head, const struct attn_segment *s,
                         const struct attn *attn, const uint64_t *keys, const struct run *run)
{
    for (int i = 0; i < s->n_q; i++)
        run->kern->dropout(y + (size_t)i * s->n_k, p + (size_t)i * s->n_k, s->n_k,
                           dropout_row_key(keys[s->q_start + i], attn->place) + (uint32_t)head * 0x85ebca6bu,
                           attn->dropout);
}

/* One head's keys [K, n_k] and values [n_k, K], end to end: products then read few and near cache lines, which
 * rows that are a power of two apart do not allow. */
static void pack_head(real *packed, const real *k, int ldk, const real *v, int ldv, int n_k, int dim,
                      const struct kern *kern)
{
    kern->transpose(packed, n_k, k, ldk, NULL, n_k, dim);
    packed += (size_t)n_k * dim;
    for (int j = 0; j < n_k; j++)
        memcpy(packed + (size_t)j * dim, v + (size_t)j * ldv, sizeof(real) * (size_t)dim);
}

static const real *at_row(const real *x, int ldx, int row)
{
    return x + (size_t)row * (size_t)ldx;
}

void attn_pack(real *packed, const real *k, int ldk, const real *v, int ldv,
               const struct attn_segment *segments, int n_segments, const struct attn *attn,
               const struct run *run)
{
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t size = 2 * (size_t)s->n_k * attn->dim;
        real *to = packed + 2 * (size_t)s->k_start * attn->heads * attn->dim;
        for (int h = 0; h < attn->heads; h++, to += size)
            pack_head(to, at_row(k, ldk, s->k_start) + h * attn->dim, ldk,
                      at_row(v, ldv, s->k_start) + h * attn->dim, ldv, s->n_k, attn->dim, run->kern);
    }
}

/* O [n_q, K] = P V of one head; values: packed [n_k, K], or all rows, of which the segment names its own. */
static void mix_values(real *out, int ldo, const real *p, const real *values, int ldv,
                       const struct attn_segment *s, int dim, const struct kern *kern)
{
    if (s->k_rows)
        for (int i = 0; i < s->n_q; i++)
            kern->mix(out + (size_t)i * ldo, p + (size_t)i * s->n_k, values, ldv, s->k_rows, s->n_k, dim);
    else
        kern->gemm(out, ldo, p, s->n_k, 1, values, dim, s->n_q, dim, s->n_k, false);
}

void attn_forward(real *out, real *weights, const real *q, int ldq, const real *k, int ldk, const real *v,
                  int ldv, const real *packed, const struct attn_segment *segments, int n_segments,
                  const struct attn *attn, const uint64_t *keys, const struct run *run)
{
    const struct kern *kern = run->kern;
    int dim = attn->dim, d = attn->heads * dim;
    bool drop = run->dropout && attn->dropout > 0;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t area = (size_t)s->n_q * (size_t)s->n_k, mark = arena_mark(run->arena);
        size_t keys_size = (size_t)s->n_k * dim;
        real *own = packed ? NULL : ARENA_TAKE(run->arena, real, 2 * keys_size);
        real *scratch = ARENA_TAKE(run->arena, real, area);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, area) : NULL;
        for (int h = 0; h < attn->heads; h++) {
            real *p = weights ? weights : scratch;
            const real *kt = own, *values;
            if (packed) {
                kt = packed + 2 * ((size_t)s->k_start * d + h * keys_size);
                values = kt + keys_size;
            } else if (s->k_rows) {
                kern->transpose(own, s->n_k, k + h * dim, ldk, s->k_rows, s->n_k, dim);
                values = v + h * dim;
            } else {
                values = own + keys_size;
                pack_head(own, at_row(k, ldk, s->k_start) + h * dim, ldk,
                          at_row(v, ldv, s->k_start) + h * dim, ldv, s->n_k, dim, kern);
            }
            kern->gemm(p, s->n_k, q + (size_t)s->q_start * ldq + h * dim, ldq, 1, kt, s->n_k, s->n_q, s->n_k,
                       dim, false);
            for (int i = 0; i < s->n_q; i++) {
                real *row = p + (size_t)i * s->n_k;
                int seen = visible(s, i);
                kern->softmax(row, seen, attn->scale);
                memset(row + seen, 0, sizeof(real) * (size_t)(s->n_k - seen));
            }
            show_weights(p, h, s, attn, run);
            if (weights)
                weights += area;
            if (drop) {
                drop_weights(dropped, p, h, s, attn, keys, run);
                p = dropped;
            }
            mix_values(out + (size_t)s->q_start * d + h * dim, d, p, values, ldv, s, dim, kern);
            profile_product(run->profile, s->n_q, s->n_k, 2.0 * dim);
        }
        arena_reset(run->arena, mark);
    }
}

void attn_backward(real *dq, int lddq, real *dk, int lddk, real *dv, int lddv, const real *dout,
                   const real *weights, const real *q, int ldq, const real *k, int ldk, const real *v,
                   int ldv, const struct attn_segment *segments, int n_segments, const struct attn *attn,
                   const uint64_t *keys, const struct run *run)
{
    const struct kern *kern = run->kern;
    int dim = attn->dim, d = attn->heads * dim;
    bool drop = run->dropout && attn->dropout > 0;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        assert(!s->k_rows);
        int n_q = s->n_q, n_k = s->n_k;
        size_t area = (size_t)n_q * (size_t)n_k, mark = arena_mark(run->arena);
        real *vt = ARENA_TAKE(run->arena, real, (size_t)n_k * dim);
        real *ds = ARENA_TAKE(run->arena, real, area);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, area) : NULL;
        for (int h = 0; h < attn->heads; h++, weights += area) {
            const real *up = dout + (size_t)s->q_start * d + h * dim;
            const real *q_rows = q + (size_t)s->q_start * ldq + h * dim,
                       *k_rows = k + (size_t)s->k_start * ldk + h * dim;
            const real *p = weights;
            if (drop) {
                drop_weights(dropped, p, h, s, attn, keys, run);
                p = dropped;
            }
            /* O = (P D) V */
            kern->gemm(dv + (size_t)s->k_start * lddv + h * dim, lddv, p, 1, n_k, up, d, n_k, dim, n_q, true);
            kern->transpose(vt, n_k, v + (size_t)s->k_start * ldv + h * dim, ldv, NULL, n_k, dim);
            kern->gemm(ds, n_k, up, d, 1, vt, n_k, n_q, n_k, dim, false);
            if (drop)
                drop_weights(ds, ds, h, s, attn, keys, run);
            /* P = softmax(scale * S) */
            for (int i = 0; i < n_q; i++) {
                real *row = ds + (size_t)i * n_k;
                int seen = visible(s, i);
                kern->softmax_backward(row, weights + (size_t)i * n_k, seen, attn->scale);
                memset(row + seen, 0, sizeof(real) * (size_t)(n_k - seen));
            }
            /* S = Q K^T */
            kern->gemm(dq + (size_t)s->q_start * lddq + h * dim, lddq, ds, n_k, 1, k_rows, ldk, n_q, dim, n_k,
                       false);
            kern->gemm(dk + (size_t)s->k_start * lddk + h * dim, lddk, ds, 1, n_k, q_rows, ldq, n_k, dim, n_q,
                       true);
            profile_product(run->profile, n_q, n_k, 4.0 * dim);
        }
        arena_reset(run->arena, mark);
    }
}
