/*
 * ffn.c: the position-wise feed-forward layer (Vaswani et al. 2017, section 3.3; with a gate, Shazeer 2020):
 *     hidden = dropout(act(x W1^T + b1))     y = hidden W2^T + b2
 *     gated: hidden = dropout(act(x W1^T + b1) * (x W3^T + b3))
 */
#include "nn/ffn.h"

#include "nn/dropout.h"

static void show_pre(const real *pre, const struct ffn *ffn, int n, const struct run *run)
{
    int f = ffn->fc2.in, width = ffn->fc1.out;
    tap_show(run->tap, ffn->prefix, ffn->layer, "fc1", -1, pre, n, f, width);
    if (ffn->activation.is_gated)
        tap_show(run->tap, ffn->prefix, ffn->layer, "fc3", -1, pre + f, n, f, width);
}

void ffn_forward(real *y, struct ffn_acts *acts, const real *x, const struct ffn *ffn, const uint64_t *keys,
                 int n, const struct run *run)
{
    int f = ffn->fc2.in;
    bool is_gated = ffn->activation.is_gated;
    size_t mark = arena_mark(run->arena);
    real *pre = ARENA_TAKE(run->arena, real, (size_t)n * ffn->fc1.out);
    real *hidden = run->keep || is_gated ? ARENA_TAKE(run->arena, real, (size_t)n * f) : pre;
    if (run->keep || run->tap || is_gated) { /* somebody wants what is before the activation function */
        linear_forward(pre, x, &ffn->fc1, n, run);
        show_pre(pre, ffn, n, run);
        activation_forward(hidden, pre, &ffn->activation, n, f, run);
    } else {
        linear_forward_act(hidden, x, &ffn->fc1, ffn->activation.act, n, run);
    }
    dropout_apply(hidden, keys, ffn->place, n, f, ffn->dropout, run);
    tap_show(run->tap, ffn->prefix, ffn->layer, "ffn.hidden", -1, hidden, n, f, f);
    linear_forward(y, hidden, &ffn->fc2, n, run);
    if (run->keep)
        *acts = (struct ffn_acts){ .pre = pre, .hidden = hidden };
    else
        arena_reset(run->arena, mark);
}

void ffn_backward(real *dx, struct ffn_grad *grad, const real *dy, const real *x, const struct ffn_acts *acts,
                  const struct ffn *ffn, const uint64_t *keys, int n, const struct run *run)
{
    int f = ffn->fc2.in;
    size_t mark = arena_mark(run->arena);
    real *dhidden = ARENA_TAKE(run->arena, real, (size_t)n * f);
    real *dpre = ffn->activation.is_gated ? ARENA_TAKE(run->arena, real, (size_t)n * ffn->fc1.out) : dhidden;
    /* y = hidden W2^T + b2 */
    linear_backward(dhidden, false, grad->fc2_w, grad->fc2_b, dy, acts->hidden, &ffn->fc2, n, run);
    /* hidden = dropout(act(pre)) */
    dropout_apply(dhidden, keys, ffn->place, n, f, ffn->dropout, run);
    activation_backward(dpre, dhidden, acts->pre, &ffn->activation, n, f, run);
    /* pre = x W1^T + b1 */
    linear_backward(dx, false, grad->fc1_w, grad->fc1_b, dpre, x, &ffn->fc1, n, run);
    arena_reset(run->arena, mark);
}
