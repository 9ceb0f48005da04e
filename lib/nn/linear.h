/*
 * linear.h: one weight matrix [out, in] and bias; the only thing that multiplies by weights. Three forms: plain
 * rows (training) and, for translation through the kernels, packed panels of reals or of int8 with
 * a scale for each row, where a row's result depends on nothing but the row.
 */
#ifndef TFM_NN_LINEAR_H
#define TFM_NN_LINEAR_H

#include "nn/run.h"

struct linear {
    int out, in;
    const real *w;         /* [out, in], or NULL when packed */
    const real *b;         /* [out], or NULL */
    const real *packed;    /* ceil(out / 16) panels [in, 16], zeros behind the last row; or NULL */
    const int8_t *packed8; /* panels of int8 (num/int8.h), or NULL ... */
    const real *scales;    /* ... and their scales [out] */
    real in_scale;         /* int8: the scale of x, known beforehand; 0: max|x| / 127, row by row */
};

/* How far what linears in int8 multiply reaches, for a calibration: max|x| of each row. A linear is named
 * by where its scales lie. */
struct extents {
    int n;
    struct extent {
        const real *scales;
        double rows, sum, squares, most;
    } * list;
};

typedef void linear_visit(struct linear *l, void *arg);

/* y [n, out] = x [n, in] w^T + b */
void linear_forward(real *y, const real *x, const struct linear *l, int n, const struct run *run);
/* y = act(x w^T + b) */
void linear_forward_act(real *y, const real *x, const struct linear *l, enum kern_act act, int n,
                        const struct run *run);
/* Scratch that the two take at most: of the largest `in` of all linears. */
size_t linear_scratch(int in);

/* A product part by part, where all of y would be too much to hold: rows made ready once, in the run's arena
 * (linear_ready_size bytes at most), and then multiplied by each part of l, the rows from .. from + n - 1 of w; `from` is
 * a multiple of KERN_PANEL. The bits are those of linear_forward. */
struct linear_rows {
    int n;
    const real *x; /* [n, in] */
    const int8_t *q;
    const real *q_scales; /* the same for int8 */
};
struct linear_rows linear_ready(const real *x, const struct linear *l, int n, const struct run *run);
size_t linear_ready_size(int n, int in);
struct linear linear_part(const struct linear *l, int from, int n);
void linear_forward_ready(real *y, const struct linear_rows *rows, const struct linear *l,
                          const struct run *run);

/* A linear of n chosen rows of w and b, in any order, packed anew into the run's arena: once for many products, as
 * with a shortlist of the words that can follow. */
void linear_select(struct linear *chosen, const struct linear *l, const int *rows, int n,
                   const struct run *run);

/* dx [n, in] = dy w (overwritten, or += with add_dx; NULL: not wanted); dw [out, in] += dy^T x; db [out] +=
 * sum of dy. */
void linear_backward(real *dx, bool add_dx, real *dw, real *db, const real *dy, const real *x,
                     const struct linear *l, int n, const struct run *run);
/* Its dx alone, for steps whose dw is summed over all of them at once. */
void linear_backward_input(real *dx, bool add_dx, const real *dy, const struct linear *l, int n,
                           const struct run *run);

/* One row of w, wherever it lies: row [in]. */
void linear_row(real *row, const struct linear *l, int out);

/* Reals that a packed matrix takes, and the packing, of one row or of all, into zeroed memory: panel p holds rows
 * 16p .. 16p+15 of w, column by column. */
size_t linear_packed_size(int out, int in);
void linear_pack_row(real *packed, const real *w, int row, int in);
void linear_pack(real *packed, const real *w, int out, int in);

#endif
