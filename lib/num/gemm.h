/*
 * gemm.h: matrix products through BLAS, where it is asked for (--gemm blas).
 */
#ifndef TFM_NUM_GEMM_H
#define TFM_NUM_GEMM_H

#include "base/err.h"
#include "num/kern.h"

/* Loads OpenBLAS, if it is not yet there, and holds it to one thread: this setting is the whole process'. There must be
 * address space for so many threads that multiply at once. Before the functions below. */
enum tfm_status gemm_open(int threads, struct tfm_error *err);

/* c [m, n] (row stride ldc) = or += a [m, k] b [k, n] */
void gemm(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add);

/* OpenBLAS's name for the processor whose kernels it uses, such as "Haswell" (AVX2). It chooses by the processor's
 * family, or as the environment variable OPENBLAS_CORETYPE says. */
const char *gemm_kernels(void);

#endif
