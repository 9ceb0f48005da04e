/*
 * rnn.c: a recurrent cell through time and back. Forward, a step t of m rows gathers the states before,
 *     recurrent [m, gates * d] = old_h [m, d] W^T + b
 * and the cell's formula makes states of it, row by row. Back, from the last step to the first, the formula
 * gives the gradients of both products, and
 *     dold_h += drecurrent W
 * is added to the rows that the step went on from; dW = sum of drecurrent^T old_h is one product at the end.
 */
#include "nn/rnn.h"

#include <string.h>

void rnn_steps_take(struct rnn_steps *steps, const struct tokens *tokens, bool backwards, struct arena *arena)
{
    int longest = 0;
    for (int s = 0; s < tokens->n_sentences; s++) {
        int length = tokens->start[s + 1] - tokens->start[s];
        longest = length > longest ? length : longest;
    }
    int *start = ARENA_TAKE(arena, int, (size_t)longest + 1), *row = ARENA_TAKE(arena, int, tokens->n),
        *before = ARENA_TAKE(arena, int, tokens->n), n = 0;
    for (int t = 0; t < longest; t++) {
        start[t] = n;
        for (int s = 0; s < tokens->n_sentences; s++) {
            if (t >= tokens->start[s + 1] - tokens->start[s])
                continue;
            int here = backwards ? tokens->start[s + 1] - 1 - t : tokens->start[s] + t;
            row[n++] = here;
            before[here] = t == 0 ? -1 : backwards ? here + 1 : here - 1;
        }
    }
    start[longest] = n;
    *steps = (struct rnn_steps){ .n = n, .n_steps = longest, .start = start, .row = row, .before = before };
}

void rnn_gather(real *by_step, const real *by_row, int ld, int d, const struct rnn_steps *steps, int from,
                int to)
{
    for (int p = steps->start[from]; p < steps->start[to]; p++, by_step += d)
        memcpy(by_step, by_row + (size_t)steps->row[p] * ld, sizeof(real) * (size_t)d);
}

void rnn_scatter(real *by_row, int ld, const real *by_step, int d, const struct rnn_steps *steps, int from,
                 int to)
{
    for (int p = steps->start[from]; p < steps->start[to]; p++, by_step += d)
        memcpy(by_row + (size_t)steps->row[p] * ld, by_step, sizeof(real) * (size_t)d);
}

/* ---- forward ---- */

static real *take(int n, int d, const struct run *run)
{
    return ARENA_TAKE(run->arena, real, (size_t)n * d);
}

static real *take_zeros(int n, int d, const struct run *run)
{
    return memset(take(n, d, run), 0, sizeof(real) * (size_t)n * (size_t)d);
}

void rnn_open(struct rnn_pass *pass, const struct rnn_cell *cell, const struct rnn_steps *steps, real *gates,
              int ld_gates, real *h, int ld_h, const struct run *run)
{
    int n = steps->n, d = cell->d;
    bool has_memory = cell->formula->has_memory;
    *pass = (struct rnn_pass){
        .cell = cell,
        .steps = steps,
        .gates = gates,
        .ld_gates = ld_gates,
        .h = h,
        .ld_h = ld_h,
        .c = has_memory ? take(n, d, run) : NULL,
        .recurrent = take(n, cell->hidden.out, run),
        .old_h = take(n, d, run),
        .old_c = has_memory ? take(n, d, run) : NULL,
    };
}

/* The states [.., d] that rows go on from, ld apart. */
static void recall(real *old, const real *states, int ld, int d, const struct rnn_steps *steps, int t)
{
    for (int p = steps->start[t]; p < steps->start[t + 1]; p++) {
        int before = steps->before[steps->row[p]];
        real *to = old + (size_t)p * d;
        if (before < 0)
            memset(to, 0, sizeof(real) * (size_t)d);
        else
            memcpy(to, states + (size_t)before * ld, sizeof(real) * (size_t)d);
    }
}

void rnn_recall(struct rnn_pass *pass, int t)
{
    int d = pass->cell->d;
    recall(pass->old_h, pass->past_h ? pass->past_h : pass->h, pass->past_h ? d : pass->ld_h, d, pass->steps,
           t);
    if (pass->c)
        recall(pass->old_c, pass->past_c ? pass->past_c : pass->c, d, d, pass->steps, t);
}

void rnn_step(struct rnn_pass *pass, int t, const struct run *run)
{
    const struct rnn_cell *cell = pass->cell;
    int d = cell->d, first = pass->steps->start[t], n = pass->steps->start[t + 1] - first;
    size_t g = (size_t)cell->hidden.out;
    linear_forward(pass->recurrent + (size_t)first * g, pass->old_h + (size_t)first * d, &cell->hidden, n,
                   run);
    for (int p = first; p < first + n; p++) {
        size_t row = (size_t)pass->steps->row[p], at = (size_t)p * d;
        cell->formula->forward(pass->h + row * pass->ld_h, pass->c ? pass->c + row * d : NULL,
                               pass->gates + row * pass->ld_gates, pass->recurrent + (size_t)p * g,
                               pass->old_h + at, pass->c ? pass->old_c + at : NULL, d, run->kern);
    }
}

void rnn_forward(struct rnn_pass *pass, const struct run *run)
{
    for (int t = 0; t < pass->steps->n_steps; t++) {
        rnn_recall(pass, t);
        rnn_step(pass, t, run);
    }
}

/* ---- backward ---- */

void rnn_open_backward(struct rnn_back *back, const struct rnn_pass *pass, real *dh, int ld_dh,
                       const struct run *run)
{
    int n = pass->steps->n, g = pass->cell->hidden.out, d = pass->cell->d, most = 0;
    for (int t = 0; t < pass->steps->n_steps; t++) {
        int rows = pass->steps->start[t + 1] - pass->steps->start[t];
        most = rows > most ? rows : most;
    }
    *back = (struct rnn_back){ .pass = pass,
                               .dh = dh,
                               .ld_dh = ld_dh,
                               .dc = pass->c ? take_zeros(n, d, run) : NULL,
                               .dgates = take(n, g, run),
                               .drecurrent = take(n, g, run),
                               .dold_h = take(most, d, run),
                               .dold_c = pass->c ? take(most, d, run) : NULL };
}

void rnn_step_backward(struct rnn_back *back, int t, const struct run *run)
{
    const struct rnn_pass *pass = back->pass;
    const struct rnn_cell *cell = pass->cell;
    int d = cell->d, first = pass->steps->start[t], n = pass->steps->start[t + 1] - first;
    size_t g = (size_t)cell->hidden.out;
    for (int i = 0; i < n; i++) {
        size_t p = (size_t)(first + i), row = (size_t)pass->steps->row[p], at = (size_t)i * d;
        cell->formula->backward(back->dgates + p * g, back->drecurrent + p * g, back->dold_h + at,
                                pass->c ? back->dold_c + at : NULL, back->dh + row * back->ld_dh,
                                pass->c ? back->dc + row * d : NULL, pass->gates + row * pass->ld_gates,
                                pass->recurrent + p * g, pass->old_h + p * d,
                                pass->c ? pass->old_c + p * d : NULL, pass->c ? pass->c + row * d : NULL, d,
                                run->kern);
    }
    /* recurrent = old_h W^T + b */
    linear_backward_input(back->dold_h, true, back->drecurrent + (size_t)first * g, &cell->hidden, n, run);
}

static void give_back(real *dstates, int ld, const real *dold, int d, const struct rnn_steps *steps, int t,
                      const struct kern *kern)
{
    for (int p = steps->start[t]; p < steps->start[t + 1]; p++, dold += d) {
        int before = steps->before[steps->row[p]];
        if (before >= 0)
            kern->add(dstates + (size_t)before * ld, dold, (size_t)d);
    }
}

void rnn_recall_backward(struct rnn_back *back, int t, const struct run *run)
{
    const struct rnn_pass *pass = back->pass;
    give_back(back->dh, back->ld_dh, back->dold_h, pass->cell->d, pass->steps, t, run->kern);
    if (pass->c)
        give_back(back->dc, pass->cell->d, back->dold_c, pass->cell->d, pass->steps, t, run->kern);
}

void rnn_close_backward(real *dgates, int ld, struct rnn_grad *grad, const struct rnn_back *back,
                        const struct run *run)
{
    const struct rnn_pass *pass = back->pass;
    linear_backward(NULL, false, grad->hidden_w, grad->hidden_b, back->drecurrent, pass->old_h,
                    &pass->cell->hidden, pass->steps->n, run);
    rnn_scatter(dgates, ld, back->dgates, pass->cell->hidden.out, pass->steps, 0, pass->steps->n_steps);
}

void rnn_backward(real *dgates, int ld, struct rnn_grad *grad, real *dh, int ld_dh,
                  const struct rnn_pass *pass, const struct run *run)
{
    struct rnn_back back;
    size_t mark = arena_mark(run->arena);
    rnn_open_backward(&back, pass, dh, ld_dh, run);
    for (int t = pass->steps->n_steps - 1; t >= 0; t--) {
        rnn_step_backward(&back, t, run);
        rnn_recall_backward(&back, t, run);
    }
    rnn_close_backward(dgates, ld, grad, &back, run);
    arena_reset(run->arena, mark);
}
