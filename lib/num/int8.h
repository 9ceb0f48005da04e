/*
 * int8.h: matrices of whole numbers in [-127, 127] with a scale for each row, w = scale * q. The scales chosen
 * here have 16 significant bits: scale * q is then exact in a float, and quantising it again gives the same
 * numbers and scales.
 *
 * Packed for the kernels (kern_int8.h) there is one layout for all tiers. A panel is 16 rows of the matrix side by
 * side: 16 sums of -128 * q over a row, from which a kernel starts whose activations are stored with 128 added;
 * then for every 4 columns 16 times 4 numbers. Behind the last row and the last column are zeros.
 */
#ifndef TFM_NUM_INT8_H
#define TFM_NUM_INT8_H

#include <stddef.h>
#include <stdint.h>

#include "base/real.h"

#define INT8_MAX_VALUE 127
#define INT8_PANEL     16 /* rows of a panel */
#define INT8_GROUP     4  /* columns that one instruction sums */
#define INT8_CELL      ((size_t)INT8_PANEL * INT8_GROUP)

/* Bytes of a row of quantised activations, of a panel and of a packed matrix. */
static inline size_t int8_stride(int in)
{
    return ((size_t)in + 15) / 16 * 16;
}

static inline size_t int8_panel_size(int in)
{
    return (1 + ((size_t)in + INT8_GROUP - 1) / INT8_GROUP) * INT8_CELL;
}

static inline size_t int8_packed_size(int out, int in)
{
    return ((size_t)out + INT8_PANEL - 1) / INT8_PANEL * int8_panel_size(in);
}

/* Quantises a row of weights, to nearest even, and returns its scale: max / 127 rounded up, or 0 for a row that is
 * zero (below 1e-30); NaN, and zeros in q, where a weight is not finite. */
real int8_quantise_row(int8_t *q, const real *w, int in);

/* Puts n rows of a matrix, q [n, in], from number `row` on, where they belong in packed, whose other bytes
 * stay: those behind the last row and the last column are zeros already. */
void int8_pack(int8_t *packed, const int8_t *q, int row, int n, int in);

/* One row, back: x [in] = scale * q. */
void int8_row(real *x, const int8_t *packed, real scale, int row, int in);

/* Packs chosen rows of a packed matrix: chosen takes int8_packed_size(n, in). */
void int8_select(int8_t *chosen, const int8_t *packed, const int *rows, int n, int in);

#endif
