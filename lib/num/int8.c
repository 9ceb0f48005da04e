/*
 * int8.c: weights as whole numbers (int8.h): quantised, packed, unpacked. The bits of a scale beyond the 16th are
 * rounded up: the largest weight is still 127 of its steps, and 127 * scale has 23 bits.
 */
#include "num/int8.h"

#include <math.h>
#include <string.h>

#define TINY 1e-30 /* its inverse is finite in a float */

real int8_quantise_row(int8_t *q, const real *w, int in)
{
    double max = 0;
    memset(q, 0, (size_t)in);
    for (int j = 0; j < in; j++) {
        if (!isfinite(w[j]))
            return (real)NAN;
        max = fmax(max, fabs((double)w[j]));
    }
    if (max < TINY)
        return 0;
    int exponent;
    double fraction = frexp(max / INT8_MAX_VALUE, &exponent);
    double scale = ldexp(ceil(ldexp(fraction, 16)), exponent - 16);
    for (int j = 0; j < in; j++)
        q[j] = (int8_t)rint((double)w[j] / scale);
    return (real)scale;
}

/* -128 times the sum of a row. Eight numbers at a time, as they are with 128 added: in 16 bits those of 64
 * groups of two have room. */
static int32_t start_of(const int8_t *q, int in)
{
    const uint64_t flip = 0x8080808080808080, even = 0x00ff00ff00ff00ff;
    int64_t sum = -128 * (int64_t)(in / 8 * 8);
    int j = 0;
    while (j + 8 <= in) {
        uint64_t sums = 0;
        for (int end = j + 512; j + 8 <= in && j < end; j += 8) {
            uint64_t eight;
            memcpy(&eight, q + j, sizeof(eight));
            eight ^= flip;
            sums += (eight & even) + (eight >> 8 & even);
        }
        for (; sums != 0; sums >>= 16)
            sum += (int64_t)(sums & 0xffff);
    }
    for (; j < in; j++)
        sum += q[j];
    return (int32_t)(-128 * sum);
}

/* Rows of one panel, from lane `lane` on. */
static inline __attribute__((always_inline)) void pack_lanes(int8_t *panel, const int8_t *q, int lane, int n,
                                                             int in)
{
    int8_t *cell = panel + (size_t)lane * INT8_GROUP;
    for (int r = 0; r < n; r++) {
        int32_t start = start_of(q + (size_t)r * (size_t)in, in);
        memcpy(cell + (size_t)r * INT8_GROUP, &start, sizeof(start));
    }
    int j = 0;
    for (; j + INT8_GROUP <= in; j += INT8_GROUP) {
        cell += INT8_CELL;
        for (int r = 0; r < n; r++)
            memcpy(cell + (size_t)r * INT8_GROUP, q + (size_t)r * (size_t)in + j, INT8_GROUP);
    }
    for (int r = 0; r < n && j < in; r++)
        memcpy(cell + INT8_CELL + (size_t)r * INT8_GROUP, q + (size_t)r * (size_t)in + j, (size_t)(in - j));
}

void int8_pack(int8_t *packed, const int8_t *q, int row, int n, int in)
{
    for (int here; n > 0; n -= here, row += here, q += (size_t)here * (size_t)in) {
        int lane = row % INT8_PANEL;
        here = n < INT8_PANEL - lane ? n : INT8_PANEL - lane;
        int8_t *panel = packed + (size_t)(row / INT8_PANEL) * int8_panel_size(in);
        if (here == INT8_PANEL)
            pack_lanes(panel, q, 0, INT8_PANEL, in);
        else
            pack_lanes(panel, q, lane, here, in);
    }
}

void int8_row(real *x, const int8_t *packed, real scale, int row, int in)
{
    const int8_t *cell = packed + (size_t)(row / INT8_PANEL) * int8_panel_size(in) + INT8_CELL +
                         (size_t)(row % INT8_PANEL) * INT8_GROUP;
    for (; in >= INT8_GROUP; in -= INT8_GROUP, x += INT8_GROUP, cell += INT8_CELL)
        for (int j = 0; j < INT8_GROUP; j++)
            x[j] = scale * (real)cell[j];
    for (int j = 0; j < in; j++)
        x[j] = scale * (real)cell[j];
}

/* Sum and columns of a row stand 16 times 4 bytes apart, all alike. */
void int8_select(int8_t *chosen, const int8_t *packed, const int *rows, int n, int in)
{
    size_t size = int8_panel_size(in), cells = size / INT8_CELL;
    for (int start = 0; start < n; start += INT8_PANEL, chosen += size) {
        int width = n - start < INT8_PANEL ? n - start : INT8_PANEL;
        const int8_t *from[INT8_PANEL];
        for (int l = 0; l < width; l++)
            from[l] = packed + (size_t)(rows[start + l] / INT8_PANEL) * size +
                      (size_t)(rows[start + l] % INT8_PANEL) * INT8_GROUP;
        if (width < INT8_PANEL)
            memset(chosen, 0, size);
        for (int l = 0; l < width; l++)
            for (size_t c = 0; c < cells; c++)
                memcpy(chosen + c * INT8_CELL + (size_t)l * INT8_GROUP, from[l] + c * INT8_CELL, INT8_GROUP);
    }
}
