/*
 * ssru.c: the simpler simple recurrent unit (Kim et al. 2019). Both products run over all rows at once; only
 * the gate goes from row to row, forward in time and back:
 *     f = sigmoid(x Wf^T + bf)     u = x W^T     c = f * c_before + (1 - f) * u     y = relu(c)
 *     dc = dy * [c > 0] + (what the next row gives back)
 *     df = dc * (c_before - u)     du = dc * (1 - f)     dc_before += dc * f
 */
#include "nn/ssru.h"

#include <assert.h>
#include <string.h>

void ssru_chain(int *before, const struct attn_segment *segments, int n_segments, int first)
{
    for (int g = 0; g < n_segments; g++) {
        const struct attn_segment *s = &segments[g];
        assert(s->causal || s->n_q == 1);
        for (int i = 0; i < s->n_q; i++) {
            int last = i + s->n_k - s->n_q - 1; /* of the keys before its own */
            int row = last < 0 ? -1 : (s->k_rows ? s->k_rows[last] : s->k_start + last) - first;
            assert(last < 0 || row >= 0);
            before[s->q_start + i] = row;
        }
    }
}

/* The states of old that row i goes on from. */
static const real *row_before(const real *old, const int *before, int i, const real *zero, int d)
{
    return before[i] < 0 ? zero : old + (size_t)before[i] * d;
}

static real *take_zero(int d, const struct run *run)
{
    real *zero = ARENA_TAKE(run->arena, real, d);
    memset(zero, 0, sizeof(real) * (size_t)d);
    return zero;
}

void ssru_forward(real *y, real *state, struct ssru_acts *acts, const real *x, const real *old, int *before,
                  const struct ssru *ssru, int n, const struct run *run)
{
    int d = ssru->input.out;
    size_t size = (size_t)n * d;
    real *forget = ARENA_TAKE(run->arena, real, size), *input = ARENA_TAKE(run->arena, real, size);
    const real *zero = take_zero(d, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(forget, x, &ssru->forget, n, run);
    run->kern->sigmoid(forget, forget, size);
    tap_show(run->tap, ssru->prefix, ssru->layer, "ssru.forget", -1, forget, n, d, d);
    linear_forward(input, x, &ssru->input, n, run);
    tap_show(run->tap, ssru->prefix, ssru->layer, "ssru.input", -1, input, n, d, d);
    profile_to(run->profile, PROFILE_ATTEND);
    for (int i = 0; i < n; i++) {
        size_t at = (size_t)i * d;
        run->kern->gate(state + at, forget + at, row_before(old, before, i, zero, d), input + at, d);
    }
    tap_show(run->tap, ssru->prefix, ssru->layer, "ssru.state", -1, state, n, d, d);
    run->kern->act(y, state, size, ACT_RELU);
    if (run->keep)
        *acts = (struct ssru_acts){ .forget = forget, .input = input, .state = state, .before = before };
}

void ssru_backward(real *dx, struct ssru_grad *grad, const real *dy, const real *x,
                   const struct ssru_acts *acts, const struct ssru *ssru, int n, const struct run *run)
{
    int d = ssru->input.out;
    size_t size = (size_t)n * d, mark = arena_mark(run->arena);
    real *dstate = ARENA_TAKE(run->arena, real, size), *dforget = ARENA_TAKE(run->arena, real, size);
    real *dinput = ARENA_TAKE(run->arena, real, size), *dzero = ARENA_TAKE(run->arena, real, d);
    const real *zero = take_zero(d, run);
    memset(dzero, 0, sizeof(real) * (size_t)d); /* nobody asks for it */
    profile_to(run->profile, PROFILE_ATTEND);
    /* y = relu(c) */
    memcpy(dstate, dy, sizeof(real) * size);
    run->kern->act_backward(dstate, acts->state, size, ACT_RELU);
    /* c = f * c_before + (1 - f) * u */
    for (int i = n - 1; i >= 0; i--) {
        size_t at = (size_t)i * d;
        real *dbefore = acts->before[i] < 0 ? dzero : dstate + (size_t)acts->before[i] * d;
        run->kern->gate_backward(dforget + at, dbefore, dinput + at, dstate + at, acts->forget + at,
                                 row_before(acts->state, acts->before, i, zero, d), acts->input + at, d);
    }
    /* f = sigmoid(x Wf^T + bf) */
    run->kern->sigmoid_backward(dforget, acts->forget, size);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward(dx, false, grad->forget_w, grad->forget_b, dforget, x, &ssru->forget, n, run);
    /* u = x W^T */
    linear_backward(dx, true, grad->input_w, NULL, dinput, x, &ssru->input, n, run);
    arena_reset(run->arena, mark);
}
