/*
 * attn.c: attention with several heads (Vaswani et al. 2017, section 3.2), for each segment and head
 *     P = softmax(scale * Q K^T + B + mask)     O = P V
 * and back, with D = dropout's mask / (1 - p):
 *     dV = (P D)^T dO    dP = (dO V^T) D    dS = scale * P (dP - rowsum(dP P))    dQ = dS K    dK = dS^T Q
 *     dB = dS / scale
 * where losses on a head's weights (head_loss.c) add to dP.
 * An additive score is score_h . tanh(q + k) in place of scale * q . k.
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
#include "nn/head_loss.h"

size_t attn_weights_size(const struct attn_segment *segments, int n_segments, int heads)
{
    size_t size = 0;
    for (int i = 0; i < n_segments; i++)
        size += (size_t)segments[i].n_q * attn_row(segments[i].n_k) * (size_t)heads;
    return size;
}

struct range { /* of keys: from .. to - 1 */
    int from, to;
};

/* Keys that query i of a segment sees. */
static struct range visible(const struct attn_segment *s, const struct attn *attn, int i)
{
    int own = i + s->n_k - s->n_q; /* the query's own key, in self-attention */
    struct range seen = { 0, s->causal ? own + 1 : s->n_k };
    if (attn->window > 0) {
        seen.from = own > attn->window ? own - attn->window : 0;
        seen.to = seen.to - own > attn->window + 1 ? own + attn->window + 1 : seen.to;
    }
    return seen;
}

/* Where the biases of query i of a segment stand in attn->bias: that for key 0, and the next ones behind it. */
static size_t bias_at(const struct attn *attn, int head, const struct attn_segment *s, int i)
{
    int key = i + s->n_k - s->n_q; /* of the query itself */
    return (size_t)head * (2 * (size_t)attn->bias_reach + 1) + (size_t)(attn->bias_reach - key);
}

static void clear_unseen(real *row, struct range seen, int n_k)
{
    memset(row, 0, sizeof(real) * (size_t)seen.from);
    memset(row + seen.to, 0, sizeof(real) * (size_t)(n_k - seen.to));
}

/* Scores of one head to weights, [n_q, n_k], in place. Rows of these lie attn_row(n_k) apart, here and below. */
static void weigh(real *p, int head, const struct attn_segment *s, const struct attn *attn,
                  const struct run *run)
{
    const struct kern *kern = run->kern;
    for (int i = 0; i < s->n_q; i++, p += attn_row(s->n_k)) {
        struct range seen = visible(s, attn, i);
        int n = seen.to - seen.from;
        if (attn->bias) {
            kern->scale(p + seen.from, attn->scale, (size_t)n);
            kern->add(p + seen.from, attn->bias + bias_at(attn, head, s, i) + seen.from, (size_t)n);
        }
        kern->softmax(p + seen.from, n, attn->bias ? 1 : attn->scale);
        clear_unseen(p, seen, s->n_k);
    }
}

/* Back, from the gradient of the weights p to that of the scores, in place of ds. */
static void weigh_backward(real *ds, const real *p, int head, const struct attn_segment *s,
                           const struct attn *attn, const struct run *run)
{
    const struct kern *kern = run->kern;
    size_t row = attn_row(s->n_k);
    for (int i = 0; i < s->n_q; i++, ds += row, p += row) {
        struct range seen = visible(s, attn, i);
        int n = seen.to - seen.from;
        kern->softmax_backward(ds + seen.from, p + seen.from, n, attn->dbias ? 1 : attn->scale);
        if (attn->dbias) {
            kern->add(attn->dbias + bias_at(attn, head, s, i) + seen.from, ds + seen.from, (size_t)n);
            kern->scale(ds + seen.from, attn->scale, (size_t)n);
        }
        clear_unseen(ds, seen, s->n_k);
    }
}

static const real *at_row(const real *x, int ldx, int row)
{
    return x + (size_t)row * (size_t)ldx;
}

/* One head's keys [K, n_k] (row stride ldkt) and values [n_k, K], end to end: products then read few and near cache lines,
 * which rows that are a power of two apart do not allow. */
static void pack_head(real *packed, int ldkt, const real *k, int ldk, const real *v, int ldv, int n_k,
                      int dim, const struct kern *kern)
{
    kern->transpose(packed, ldkt, k, ldk, NULL, n_k, dim);
    packed += (size_t)ldkt * dim;
    for (int j = 0; j < n_k; j++)
        memcpy(packed + (size_t)j * dim, v + (size_t)j * ldv, sizeof(real) * (size_t)dim);
}

void attn_pack(real *packed, const real *k, int ldk, const real *v, int ldv,
               const struct attn_segment *segments, int n_segments, const struct attn *attn,
               const struct run *run)
{
    int dim = attn->dim, heads = attn->heads / attn->share;
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        size_t size = 2 * (size_t)s->n_k * dim;
        real *to = packed + 2 * (size_t)s->k_start * heads * dim;
        for (int h = 0; h < heads; h++, to += size)
            pack_head(to, s->n_k, at_row(k, ldk, s->k_start) + h * dim, ldk,
                      at_row(v, ldv, s->k_start) + h * dim, ldv, s->n_k, dim, run->kern);
    }
}

struct head { /* one head's keys and values as the products read them, of the n last keys of a segment */
    const real *kt; /* [K, n] */
    int ldkt, n;
    const real *v; /* [n, K], or all rows, of which v_rows names n */
    int ldv;
    const int *v_rows;
};

/* Head number h of keys and values without the keys before `first`: where it is packed, else from k and v by way of
 * own [2 attn_row(n) K]. */
static struct head open_head(real *own, const real *packed, int h, int first, const real *k, int ldk,
                             const real *v, int ldv, const struct attn_segment *s, const struct attn *attn,
                             const struct kern *kern)
{
    int dim = attn->dim, n = s->n_k - first;
    struct head head = { .kt = own, .ldkt = (int)attn_row(n), .n = n, .ldv = dim };
    if (packed) {
        size_t start = (size_t)s->k_start * (attn->heads / attn->share) + (size_t)s->n_k * h;
        head.kt = packed + 2 * start * dim + first;
        head.ldkt = s->n_k;
        head.v = packed + (2 * start + s->n_k + first) * dim;
    } else if (s->k_rows) {
        head.v_rows = s->k_rows + first;
        head.v = v + h * dim;
        head.ldv = ldv;
        kern->transpose(own, head.ldkt, k + h * dim, ldk, head.v_rows, n, dim);
    } else {
        head.v = own + (size_t)head.ldkt * dim;
        pack_head(own, head.ldkt, at_row(k, ldk, s->k_start + first) + h * dim, ldk,
                  at_row(v, ldv, s->k_start + first) + h * dim, ldv, n, dim, kern);
    }
    return head;
}

/* Scores [n_q, n] of query head h with the keys. */
static void score(real *y, const real *q, int ldq, const struct head *keys, int h,
                  const struct attn_segment *s, const struct attn *attn, const struct run *run)
{
    int dim = attn->dim;
    q += (size_t)s->q_start * ldq + h * dim;
    if (!attn->score) {
        run->kern->gemm(y, (int)attn_row(s->n_k), q, ldq, 1, keys->kt, keys->ldkt, s->n_q, keys->n, dim,
                        false);
        return;
    }
    for (int i = 0; i < s->n_q; i++)
        run->kern->additive(y + (size_t)i * attn_row(s->n_k), q + (size_t)i * ldq, keys->kt, keys->ldkt,
                            attn->score + h * dim, keys->n, dim);
}

/* O [n_q, K] = P V of one head; p [n_q, n]. */
static void mix_values(real *out, int ldo, const real *p, const struct head *values,
                       const struct attn_segment *s, int dim, const struct kern *kern)
{
    int row = (int)attn_row(s->n_k);
    if (values->v_rows)
        for (int i = 0; i < s->n_q; i++)
            kern->mix(out + (size_t)i * ldo, p + (size_t)i * row, values->v, values->ldv, values->v_rows,
                      values->n, dim);
    else
        kern->gemm(out, ldo, p, row, 1, values->v, values->ldv, s->n_q, dim, values->n, false);
}

static void show_weights(const real *p, int head, const struct attn_segment *s, const struct attn *attn,
                         const struct run *run)
{
    if (!run->tap)
        return;
    char name[64];
    snprintf(name, sizeof(name), "%s.weights", attn->name);
    tap_show(run->tap, attn->prefix, attn->layer, name, head, p, s->n_q, s->n_k, (int)attn_row(s->n_k));
}

/* Drops attention weights [n_q, n_k] of one head, or their gradient: y may be p. */
static void drop_weights(real *y, const real *p, int head, const struct attn_segment *s,
                         const struct attn *attn, const uint64_t *keys, const struct run *run)
{
    size_t row = attn_row(s->n_k);
    for (int i = 0; i < s->n_q; i++)
        run->kern->dropout(y + (size_t)i * row, p + (size_t)i * row, s->n_k,
                           dropout_row_key(keys[s->q_start + i], attn->place) + (uint32_t)head * 0x85ebca6bu,
                           attn->dropout);
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
        size_t area = (size_t)s->n_q * attn_row(s->n_k), mark = arena_mark(run->arena);
        int first = visible(s, attn, 0).from; /* none of the queries sees keys before */
        real *own = packed ? NULL : ARENA_TAKE(run->arena, real, 2 * attn_row(s->n_k - first) * (size_t)dim);
        real *scratch = ARENA_TAKE(run->arena, real, area);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, area) : NULL;
        struct head head = { 0 };
        for (int h = 0; h < attn->heads; h++) {
            real *p = weights ? weights : scratch;
            if (h % attn->share == 0)
                head = open_head(own, packed, h / attn->share, first, k, ldk, v, ldv, s, attn, kern);
            score(p + first, q, ldq, &head, h, s, attn, run);
            weigh(p, h, s, attn, run);
            show_weights(p, h, s, attn, run);
            if (run->heads)
                head_loss_forward(run->heads, p, h, s, attn);
            if (weights)
                weights += area;
            if (drop) {
                drop_weights(dropped, p, h, s, attn, keys, run);
                p = dropped;
            }
            mix_values(out + (size_t)s->q_start * d + h * dim, d, p + first, &head, s, dim, kern);
            profile_product(run->profile, s->n_q, head.n, 2.0 * dim);
        }
        arena_reset(run->arena, mark);
    }
}

/* score's way back for the scores' gradient ds [n_q, n_k]: dq is overwritten, dk added to. The two and q and k begin
 * with the segment's first row and the head's first column. */
static void score_backward(real *dq, int lddq, real *dk, int lddk, const real *ds, const real *q, int ldq,
                           const real *k, int ldk, int head, const struct attn_segment *s,
                           const struct attn *attn, const struct run *run)
{
    const struct kern *kern = run->kern;
    int dim = attn->dim, n_q = s->n_q, n_k = s->n_k, row = (int)attn_row(n_k);
    if (!attn->score) { /* S = Q K^T */
        kern->gemm(dq, lddq, ds, row, 1, k, ldk, n_q, dim, n_k, false);
        kern->gemm(dk, lddk, ds, 1, row, q, ldq, n_k, dim, n_q, true);
        return;
    }
    size_t mark = arena_mark(run->arena), size = (size_t)n_k * dim;
    real *kt = ARENA_TAKE(run->arena, real, size), *dkt = ARENA_TAKE(run->arena, real, size);
    real *rows = ARENA_TAKE(run->arena, real, size);
    kern->transpose(kt, n_k, k, ldk, NULL, n_k, dim);
    memset(dkt, 0, sizeof(real) * size);
    for (int i = 0; i < n_q; i++) /* s_ij = score . tanh(q_i + k_j) */
        kern->additive_backward(dq + (size_t)i * lddq, dkt, attn->dscore + head * dim, ds + (size_t)i * row,
                                q + (size_t)i * ldq, kt, n_k, attn->score + head * dim, n_k, dim);
    kern->transpose(rows, dim, dkt, n_k, NULL, dim, n_k);
    for (int j = 0; j < n_k; j++)
        kern->add(dk + (size_t)j * lddk, rows + (size_t)j * dim, (size_t)dim);
    arena_reset(run->arena, mark);
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
        int n_q = s->n_q, n_k = s->n_k, row = (int)attn_row(n_k);
        size_t area = (size_t)n_q * (size_t)row, mark = arena_mark(run->arena);
        real *vt = ARENA_TAKE(run->arena, real, (size_t)row * dim);
        real *ds = ARENA_TAKE(run->arena, real, area);
        real *dropped = drop ? ARENA_TAKE(run->arena, real, area) : NULL;
        for (int h = 0; h < attn->heads; h++, weights += area) {
            const real *up = dout + (size_t)s->q_start * d + h * dim, *p = weights;
            int kv = h / attn->share * dim;
            if (drop) {
                drop_weights(dropped, p, h, s, attn, keys, run);
                p = dropped;
            }
            /* O = (P D) V */
            kern->gemm(dv + (size_t)s->k_start * lddv + kv, lddv, p, 1, row, up, d, n_k, dim, n_q, true);
            kern->transpose(vt, row, v + (size_t)s->k_start * ldv + kv, ldv, NULL, n_k, dim);
            kern->gemm(ds, row, up, d, 1, vt, row, n_q, n_k, dim, false);
            if (drop)
                drop_weights(ds, ds, h, s, attn, keys, run);
            if (run->heads)
                head_loss_backward(ds, run->heads, weights, h, s, attn);
            /* P = softmax(scale * S + B) */
            weigh_backward(ds, weights, h, s, attn, run);
            score_backward(dq + (size_t)s->q_start * lddq + h * dim, lddq,
                           dk + (size_t)s->k_start * lddk + kv, lddk, ds,
                           q + (size_t)s->q_start * ldq + h * dim, ldq, k + (size_t)s->k_start * ldk + kv,
                           ldk, h, s, attn, run);
            profile_product(run->profile, n_q, n_k, 4.0 * dim);
        }
        arena_reset(run->arena, mark);
    }
}
