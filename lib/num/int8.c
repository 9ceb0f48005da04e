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

void int8_pack_row(int8_t *packed, const int8_t *q, int row, int in)
{
    int8_t *panel = packed + (size_t)(row / INT8_PANEL) * int8_panel_size(in);
    size_t lane = (size_t)(row % INT8_PANEL);
    int32_t sum = 0;
    for (int j = 0; j < in; j++)
        sum += q[j];
    sum *= -128;
    memcpy(panel + lane * sizeof(sum), &sum, sizeof(sum));
    int8_t *cell = panel + INT8_CELL + lane * INT8_GROUP;
    for (; in >= INT8_GROUP; in -= INT8_GROUP, q += INT8_GROUP, cell += INT8_CELL)
        memcpy(cell, q, INT8_GROUP);
    memcpy(cell, q, (size_t)in);
}

void int8_pack(int8_t *packed, const int8_t *q, int out, int in)
{
    for (int row = 0; row < out; row++)
        int8_pack_row(packed, q + (size_t)row * (size_t)in, row, in);
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
