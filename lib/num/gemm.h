/*
 * gemm.h: matrix products through BLAS, where it is asked for (--gemm blas). gemm.c is the only includer of cblas.h.
 */
#ifndef TFM_NUM_GEMM_H
#define TFM_NUM_GEMM_H

#include "base/err.h"
#include "num/kern.h"

/* c [m, n] (row stride ldc) = or += a [m, k] b [k, n] */
void gemm(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add);

/* Holds BLAS to one thread: this setting is the whole process'. */
void gemm_single_thread(void);

/* OpenBLAS's name for the processor whose kernels it uses, such as "Haswell" (AVX2). It chooses by the processor's
 * family, or as the environment variable OPENBLAS_CORETYPE says. */
const char *gemm_kernels(void);

/* Proves that there is address space for what BLAS takes when so many threads multiply at once. Where there
 * is none, OpenBLAS asks for it again and again, without an end. */
enum tfm_status gemm_check_room(int threads, struct tfm_error *err);

#endif
