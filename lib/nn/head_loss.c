/*
 * head_loss.c: losses on the attention of single heads. A row p of a softmax, of the query whose own key is o,
 * with a the weights of an alignment:
 *     entropy    -sum p ln p              d/dp = -ln p - 1           0 (one place) to ln n (all alike)
 *     sparsity   sum sqrt(p)              d/dp = 1 / (2 sqrt(p))     1 to sqrt(n)
 *     distance   sum p |o - j|            d/dp = |o - j|             self-attention, in pieces
 *     alignment  -sum a ln p              d/dp = -a / p              cross-entropy (Chen et al. 2016)
 *                sum (p - a)^2            d/dp = 2 (p - a)           mean squared error
 * The sum of a softmax's weights is 1, so their own L1 norm says nothing; that of their roots does. It presses
 * harder on small weights than the entropy: behind the softmax its gradient is of the size sqrt(p), not p ln p.
 * Both are steep at 0 alone, and a weight that is 0 has no gradient behind the softmax: keys that a row cannot
 * see, and weights too small for a float, are left out.
 */
#include "nn/head_loss.h"

#include <math.h>
#include <stdlib.h>

#define LEAST \
    1e-30 /* of a weight under a logarithm: a link to a weight that is 0 must not make all infinite */

struct row {
    const real *p;
    int n, own;
    struct guide_row guide;
};

static double least(real p)
{
    return p > LEAST ? (double)p : LEAST;
}

static double value_of(const struct row *row, enum tfm_head_loss_kind kind)
{
    const real *p = row->p;
    const struct guide_row *guide = &row->guide;
    double sum = 0;
    switch (kind) {
    case TFM_HEAD_ENTROPY:
        for (int j = 0; j < row->n; j++)
            sum -= p[j] > 0 ? p[j] * log((double)p[j]) : 0;
        break;
    case TFM_HEAD_SPARSITY:
        for (int j = 0; j < row->n; j++)
            sum += sqrt((double)p[j]);
        break;
    case TFM_HEAD_DISTANCE:
        for (int j = 0; j < row->n; j++)
            sum += (double)p[j] * abs(row->own - j);
        break;
    case TFM_HEAD_ALIGNMENT_CE:
        for (int l = 0; l < guide->n; l++)
            sum -= guide->links[l].weight * log(least(p[guide->links[l].key]));
        break;
    case TFM_HEAD_ALIGNMENT_MSE:
        for (int j = 0; j < row->n; j++)
            sum += (double)p[j] * p[j];
        for (int l = 0; l < guide->n; l++) {
            double a = guide->links[l].weight;
            sum += a * (a - 2 * (double)p[guide->links[l].key]);
        }
        break;
    }
    return sum;
}

static void add_gradient(real *dp, const struct row *row, enum tfm_head_loss_kind kind, double weight)
{
    const real *p = row->p;
    const struct guide_row *guide = &row->guide;
    switch (kind) {
    case TFM_HEAD_ENTROPY:
        for (int j = 0; j < row->n; j++)
            dp[j] -= p[j] > 0 ? (real)(weight * (log((double)p[j]) + 1)) : 0;
        break;
    case TFM_HEAD_SPARSITY:
        for (int j = 0; j < row->n; j++)
            dp[j] += p[j] > 0 ? (real)(weight / (2 * sqrt((double)p[j]))) : 0;
        break;
    case TFM_HEAD_DISTANCE:
        for (int j = 0; j < row->n; j++)
            dp[j] += (real)(weight * abs(row->own - j));
        break;
    case TFM_HEAD_ALIGNMENT_CE:
        for (int l = 0; l < guide->n; l++) {
            int key = guide->links[l].key;
            dp[key] -= (real)(weight * guide->links[l].weight / least(p[key]));
        }
        break;
    case TFM_HEAD_ALIGNMENT_MSE:
        for (int j = 0; j < row->n; j++)
            dp[j] += (real)(2 * weight * p[j]);
        for (int l = 0; l < guide->n; l++)
            dp[guide->links[l].key] -= (real)(2 * weight * guide->links[l].weight);
        break;
    }
}

static bool is_named(const struct head_loss *loss, int head, const struct attn *attn)
{
    return loss->part == attn->part && loss->layer == attn->layer && (loss->head < 0 || loss->head == head);
}

/* Row i of a segment's weights p; false where a term does not count it. */
static bool open_row(struct row *row, const real *p, int i, enum tfm_head_loss_kind kind,
                     const struct head_losses *losses, const struct attn_segment *s, const struct attn *attn)
{
    int query = s->q_start + i;
    *row = (struct row){ .p = p + (size_t)i * attn_row(s->n_k), .n = s->n_k, .own = i + s->n_k - s->n_q };
    if (kind != TFM_HEAD_ALIGNMENT_CE && kind != TFM_HEAD_ALIGNMENT_MSE)
        return true;
    if (losses->guide)
        row->guide = losses->guide[attn->rows ? attn->rows[query] : query];
    return row->guide.n > 0;
}

void head_loss_forward(struct head_losses *losses, const real *p, int head,
                       const struct attn_segment *segment, const struct attn *attn)
{
    for (int t = 0; t < losses->n; t++) {
        const struct head_loss *loss = &losses->list[t];
        struct row row;
        for (int i = 0; i < segment->n_q && is_named(loss, head, attn); i++) {
            if (!open_row(&row, p, i, loss->kind, losses, segment, attn))
                continue;
            losses->sums[t].value += value_of(&row, loss->kind);
            losses->sums[t].rows++;
        }
    }
}

void head_loss_backward(real *dp, const struct head_losses *losses, const real *p, int head,
                        const struct attn_segment *segment, const struct attn *attn)
{
    for (int t = 0; t < losses->n; t++) {
        const struct head_loss *loss = &losses->list[t];
        double weight = (double)loss->weight * losses->row_weight[loss->part];
        struct row row;
        for (int i = 0; i < segment->n_q && is_named(loss, head, attn); i++) {
            if (open_row(&row, p, i, loss->kind, losses, segment, attn))
                add_gradient(dp + (size_t)i * attn_row(segment->n_k), &row, loss->kind, weight);
        }
    }
}
