/*
 * npy.h: arrays for NumPy's load().
 */
#ifndef TFM_INSPECT_NPY_H
#define TFM_INSPECT_NPY_H

#include <stdio.h>

/* Writes x [shape[0], ..., shape[n_dims - 1]] as float32, little-endian, in C order. */
void npy_write(FILE *out, const float *x, const int *shape, int n_dims);

#endif
