/*
 * ffn.c: the position-wise feed-forward layer (Vaswani et al. 2017, section 3.3):
 *     hidden = dropout(act(x W1^T + b1))     y = hidden W2^T + b2
 */
#include "nn/ffn.h"

#include "nn/dropout.h"

void ffn_forward(real *y, struct ffn_acts *acts, const real *x, const struct ffn *ffn, const uint64_t *keys,
                 int n, const struct run *run)
{
    int f = ffn->fc1.out;
    size_t size = (size_t)n * f, mark = arena_mark(run->arena);
    real *pre = ARENA_TAKE(run->arena, real, size);
    real *hidden = run->keep ? ARENA_TAKE(run->arena, real, size) : pre;
    if (run->keep || run->tap) { /* somebody wants to see what is before the activation function */
        linear_forward(pre, x, &ffn->fc1, n, run);
        tap_show(run->tap, ffn->prefix, ffn->layer, "fc1", -1, pre, n, f, f);
        run->kern->act(hidden, pre, size, ffn->act);
    } else {
        linear_forward_act(hidden, x, &ffn->fc1, ffn->act, n, run);
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
    int f = ffn->fc1.out;
    size_t size = (size_t)n * f, mark = arena_mark(run->arena);
    real *dhidden = ARENA_TAKE(run->arena, real, size);
    /* y = hidden W2^T + b2 */
    linear_backward(dhidden, false, grad->fc2_w, grad->fc2_b, dy, acts->hidden, &ffn->fc2, n, run);
    /* hidden = dropout(act(pre)) */
    dropout_apply(dhidden, keys, ffn->place, n, f, ffn->dropout, run);
    run->kern->act_backward(dhidden, acts->pre, size, ffn->act);
    /* pre = x W1^T + b1 */
    linear_backward(dx, false, grad->fc1_w, grad->fc1_b, dhidden, x, &ffn->fc1, n, run);
    arena_reset(run->arena, mark);
}
