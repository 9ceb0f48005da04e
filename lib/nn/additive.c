/*
 * additive.c: additive attention with one head (Bahdanau et al. 2015), query by query, with d = dropout's
 * mask / (1 - p):
 *     e = v . tanh(q + k)     p = softmax(e)     out = (p d) values
 * and back:
 *     dvalues += (p d)^T dout    dp = (dout values^T) d    de = p (dp - sum(dp p))
 *     dk, dq += de v (1 - tanh^2)    dv += de tanh
 * tanh is made again on the way back: to keep it would take D numbers for each pair of query and key.
 */
#include "nn/additive.h"

#include <assert.h>
#include <string.h>

#include "nn/dropout.h"

/* Drops the weights of one query, or their gradient: y may be p. */
static void drop_row(real *y, const real *p, const struct attn_segment *s, int i, const struct attn *attn,
                     const uint64_t *drop_keys, const struct run *run)
{
    run->kern->dropout(y, p, s->n_k, dropout_row_key(drop_keys[s->q_start + i], attn->place), attn->dropout);
}

void additive_forward(real *out, real *weights, const real *q, const real *keys, const real *values,
                      const real *v, const struct attn_segment *segments, int n_segments,
                      const struct attn *attn, const uint64_t *drop_keys, const struct run *run)
{
    const struct kern *kern = run->kern;
    size_t mark = arena_mark(run->arena), d = (size_t)attn->dim;
    bool drop = run->dropout && attn->dropout > 0;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t first = (size_t)s->k_start * d;
        assert(!s->k_rows && !s->causal && attn->heads == 1);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, s->n_k) : NULL;
        for (int i = 0; i < s->n_q; i++, weights += s->n_k) {
            size_t row = (size_t)(s->q_start + i) * d;
            const real *p = weights;
            kern->additive(weights, q + row, keys + first, v, s->n_k, attn->dim);
            kern->softmax(weights, s->n_k, 1);
            if (drop) {
                drop_row(dropped, weights, s, i, attn, drop_keys, run);
                p = dropped;
            }
            kern->gemm(out + row, attn->dim, p, s->n_k, 1, values + first, attn->dim, 1, attn->dim, s->n_k,
                       false);
        }
        arena_reset(run->arena, mark);
        profile_product(run->profile, s->n_q, s->n_k, 2.0 * attn->dim);
    }
}

void additive_backward(real *dq, real *dkeys, real *dvalues, real *dv, const real *dout, const real *weights,
                       const real *q, const real *keys, const real *values, const real *v,
                       const struct attn_segment *segments, int n_segments, const struct attn *attn,
                       const uint64_t *drop_keys, const struct run *run)
{
    const struct kern *kern = run->kern;
    size_t mark = arena_mark(run->arena), d = (size_t)attn->dim;
    bool drop = run->dropout && attn->dropout > 0;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t first = (size_t)s->k_start * d;
        int n_k = s->n_k, dim = attn->dim;
        real *columns = ARENA_TAKE(run->arena, real, (size_t)n_k * d); /* values^T */
        real *dropped = drop ? ARENA_TAKE(run->arena, real, n_k) : NULL;
        real *dp = ARENA_TAKE(run->arena, real, n_k);
        kern->transpose(columns, n_k, values + first, dim, n_k, dim);
        for (int i = 0; i < s->n_q; i++, weights += n_k) {
            size_t row = (size_t)(s->q_start + i) * d;
            const real *p = weights;
            if (drop) {
                drop_row(dropped, weights, s, i, attn, drop_keys, run);
                p = dropped;
            }
            /* out = (p d) values */
            kern->gemm(dvalues + first, dim, p, 1, n_k, dout + row, dim, n_k, dim, 1, true);
            kern->gemm(dp, n_k, dout + row, dim, 1, columns, n_k, 1, n_k, dim, false);
            if (drop)
                drop_row(dp, dp, s, i, attn, drop_keys, run);
            /* p = softmax(e) */
            kern->softmax_backward(dp, weights, n_k, 1);
            /* e = v . tanh(q + k) */
            memset(dq + row, 0, sizeof(real) * d);
            kern->additive_backward(dq + row, dkeys + first, dv, dp, q + row, keys + first, v, n_k, dim);
        }
        arena_reset(run->arena, mark);
        profile_product(run->profile, s->n_q, n_k, 4.0 * dim);
    }
}
