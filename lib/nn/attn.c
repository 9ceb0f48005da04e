/*
 * attn.c: scaled dot-product attention with several heads (Vaswani et al. 2017, section 3.2), for each
 * segment and head
 *     P = softmax(scale * Q K^T + B + mask)     O = P V
 * and back, with D = dropout's mask / (1 - p):
 *     dV = (P D)^T dO    dP = (dO V^T) D    dS = scale * P (dP - rowsum(dP P))    dQ = dS K    dK = dS^T Q
 *     dB = dS / scale
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

/* Where the biases of query i of a segment stand in attn->bias: that for key 0, and the next ones behind it. */
static size_t bias_at(const struct attn *attn, int head, const struct attn_segment *s, int i)
{
    int key = i + s->n_k - s->n_q; /* of the query itself */
    return (size_t)head * (2 * (size_t)attn->bias_reach + 1) + (size_t)(attn->bias_reach - key);
}

/* Scores of one head to weights, [n_q, n_k], in place. */
static void weigh(real *p, int head, const struct attn_segment *s, const struct attn *attn,
                  const struct run *run)
{
    const struct kern *kern = run->kern;
    for (int i = 0; i < s->n_q; i++, p += s->n_k) {
        int seen = visible(s, i);
        if (attn->bias) {
            kern->scale(p, attn->scale, (size_t)seen);
            kern->add(p, attn->bias + bias_at(attn, head, s, i), (size_t)seen);
        }
        kern->softmax(p, seen, attn->bias ? 1 : attn->scale);
        memset(p + seen, 0, sizeof(real) * (size_t)(s->n_k - seen));
    }
}

/* Back, from the gradient of the weights p to that of the scores, in place of ds. */
static void weigh_backward(real *ds, const real *p, int head, const struct attn_segment *s,
                           const struct attn *attn, const struct run *run)
{
    const struct kern *kern = run->kern;
    for (int i = 0; i < s->n_q; i++, ds += s->n_k, p += s->n_k) {
        int seen = visible(s, i);
        kern->softmax_backward(ds, p, seen, attn->dbias ? 1 : attn->scale);
        if (attn->dbias) {
            kern->add(attn->dbias + bias_at(attn, head, s, i), ds, (size_t)seen);
            kern->scale(ds, attn->scale, (size_t)seen);
        }
        memset(ds + seen, 0, sizeof(real) * (size_t)(s->n_k - seen));
    }
}

/* The rows of one head, one below the other [n_k, K], when they do not lie so that a product can read
 * them. */
static const real *gather(const struct attn_segment *s, const real *x, int ldx, int dim, int *ld,
                          const struct run *run)
{
    *ld = ldx;
    if (!s->k_rows)
        return x + (size_t)s->k_start * ldx;
    real *rows = ARENA_TAKE(run->arena, real, (size_t)s->n_k * dim);
    for (int j = 0; j < s->n_k; j++)
        memcpy(rows + (size_t)j * dim, x + (size_t)s->k_rows[j] * ldx, sizeof(real) * (size_t)dim);
    *ld = dim;
    return rows;
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

void attn_forward(real *out, real *weights, const real *q, int ldq, const real *k, int ldk, const real *v,
                  int ldv, const struct attn_segment *segments, int n_segments, const struct attn *attn,
                  const uint64_t *keys, const struct run *run)
{
    const struct kern *kern = run->kern;
    int dim = attn->dim, d = attn->heads * dim;
    bool drop = run->dropout && attn->dropout > 0;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t area = (size_t)s->n_q * (size_t)s->n_k, mark = arena_mark(run->arena);
        real *kt = ARENA_TAKE(run->arena, real, (size_t)s->n_k * dim);
        real *scratch = ARENA_TAKE(run->arena, real, area);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, area) : NULL;
        for (int h = 0; h < attn->heads; h++) {
            size_t head_mark = arena_mark(run->arena);
            real *p = weights ? weights : scratch;
            int ld;
            const real *rows = gather(s, k + h * dim, ldk, dim, &ld, run);
            kern->transpose(kt, s->n_k, rows, ld, s->n_k, dim);
            kern->gemm(p, s->n_k, q + (size_t)s->q_start * ldq + h * dim, ldq, 1, kt, s->n_k, s->n_q, s->n_k,
                       dim, false);
            weigh(p, h, s, attn, run);
            show_weights(p, h, s, attn, run);
            if (weights)
                weights += area;
            if (drop) {
                drop_weights(dropped, p, h, s, attn, keys, run);
                p = dropped;
            }
            rows = gather(s, v + h * dim, ldv, dim, &ld, run);
            kern->gemm(out + (size_t)s->q_start * d + h * dim, d, p, s->n_k, 1, rows, ld, s->n_q, dim, s->n_k,
                       false);
            profile_product(run->profile, s->n_q, s->n_k, 2.0 * dim);
            arena_reset(run->arena, head_mark);
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
            kern->transpose(vt, n_k, v + (size_t)s->k_start * ldv + h * dim, ldv, n_k, dim);
            kern->gemm(ds, n_k, up, d, 1, vt, n_k, n_q, n_k, dim, false);
            if (drop)
                drop_weights(ds, ds, h, s, attn, keys, run);
            /* P = softmax(scale * S + B) */
            weigh_backward(ds, weights, h, s, attn, run);
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
