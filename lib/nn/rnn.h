/*
 * rnn.h: a recurrent cell over a batch of sentences, step by step. The products of all inputs with the
 * cell's matrices are one product, made before; a step multiplies the states of the sentences that are still
 * running and then forms the new ones, row by row, by the formula of the cell (gru.c, lstm.c). The steps of
 * rnn_forward can also be called one by one by who has something to do between them (rnn_decoder.c:
 * attention).
 */
#ifndef TFM_NN_RNN_H
#define TFM_NN_RNN_H

#include "nn/linear.h"
#include "nn/tokens.h"

/* A row's part of a cell: gates have d numbers each, side by side. */
struct rnn_formula {
    int n_gates;
    bool has_memory; /* a second state c beside h */
    /* h, c [d] from the state before (old_h, old_c). gates: the input's product, then the gates; recurrent:
     * the state's product. */
    void (*forward)(real *h, real *c, real *gates, const real *recurrent, const real *old_h,
                    const real *old_c, int d, const struct kern *kern);
    /* dgates, drecurrent, dold_h and dold_c overwritten; dc is used up. Without memory all of c is NULL. */
    void (*backward)(real *dgates, real *drecurrent, real *dold_h, real *dold_c, const real *dh, real *dc,
                     const real *gates, const real *recurrent, const real *old_h, const real *old_c,
                     const real *c, int d, const struct kern *kern);
};

extern const struct rnn_formula gru_formula, lstm_formula;

struct rnn_cell {
    const struct rnn_formula *formula;
    int d;
    struct linear hidden; /* [gates * d, d] and bias: of the state before */
};

/* Which rows a step computes, and which row's state each goes on from. */
struct rnn_steps {
    int n, n_steps;
    const int *start;  /* [n_steps + 1] of each step in `row` */
    const int *row;    /* [n] */
    const int *before; /* [n] by row: a row of an earlier step; -1: zero */
};

/* Sentences from their first token on, or backwards from their last. */
void rnn_steps_take(struct rnn_steps *steps, const struct tokens *tokens, bool backwards,
                    struct arena *arena);

/* One way of a cell over a batch. Arrays "by step" have their rows in the order of the steps. */
struct rnn_pass {
    const struct rnn_cell *cell;
    const struct rnn_steps *steps;
    real *gates; /* [n, gates * d] by row, ld_gates apart: products of the input, then gates */
    int ld_gates;
    real *h, *c; /* [n, d] states by row; h is ld_h apart. c NULL: the cell has none */
    int ld_h;
    const real *past_h, *past_c; /* what `before` counts in, where not in h and c: [.., d] */
    real *recurrent;             /* [n, gates * d] by step */
    real *old_h, *old_c;         /* [n, d] by step: the states before */
};

/* Takes what a pass needs from the arena; c, past_h and past_c can be set afterwards. */
void rnn_open(struct rnn_pass *pass, const struct rnn_cell *cell, const struct rnn_steps *steps, real *gates,
              int ld_gates, real *h, int ld_h, const struct run *run);
void rnn_recall(struct rnn_pass *pass, int t); /* fills in old_h and old_c of step t ... */
void rnn_step(struct rnn_pass *pass, int t, const struct run *run); /* ... from which it goes on */
void rnn_forward(struct rnn_pass *pass, const struct run *run);     /* both, for all steps */

/* The way back, for a pass that was its own past. */
struct rnn_back {
    const struct rnn_pass *pass;
    real *dh, *dc; /* [n, d] by row, dh ld_dh apart: complete when a row's step comes */
    int ld_dh;
    real *dgates, *drecurrent; /* [n, gates * d] by step */
    real *dold_h, *dold_c;     /* [rows of a step, d] of the step at hand */
};

struct rnn_grad {
    real *hidden_w, *hidden_b;
};

/* dh is what comes from outside; the steps add to it what goes from state to state. */
void rnn_open_backward(struct rnn_back *back, const struct rnn_pass *pass, real *dh, int ld_dh,
                       const struct run *run);
void rnn_step_backward(struct rnn_back *back, int t,
                       const struct run *run); /* fills in dold_h and dold_c ... */
void rnn_recall_backward(struct rnn_back *back, int t,
                         const struct run *run); /* ... which go to earlier rows */
/* After all steps: the gradient of the state's matrix, and dgates, ld apart: that of the input's products, by
 * row. */
void rnn_close_backward(real *dgates, int ld, struct rnn_grad *grad, const struct rnn_back *back,
                        const struct run *run);
/* All of it. */
void rnn_backward(real *dgates, int ld, struct rnn_grad *grad, real *dh, int ld_dh,
                  const struct rnn_pass *pass, const struct run *run);

/* Copies rows between an order by row (ld apart) and one by step, d numbers each, for steps from..to-1. */
void rnn_gather(real *by_step, const real *by_row, int ld, int d, const struct rnn_steps *steps, int from,
                int to);
void rnn_scatter(real *by_row, int ld, const real *by_step, int d, const struct rnn_steps *steps, int from,
                 int to);

#endif
