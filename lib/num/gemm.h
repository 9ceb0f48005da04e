/*
 * gemm.h: matrix products of training, through BLAS (Fortran reference semantics, row-major). gemm.c is the
 * only includer of cblas.h.
 */
#ifndef TFM_NUM_GEMM_H
#define TFM_NUM_GEMM_H

#include "base/err.h"
#include "base/real.h"

/* c [m, n] = beta c + op(a) op(b), op(a) [m, k], op(b) [k, n]; transposed where the flag says so. */
void gemm(real *c, int ldc, const real *a, int lda, int a_transposed, const real *b, int ldb,
          int b_transposed, int m, int n, int k, real beta);

/* Holds BLAS to one thread: this setting is the whole process'. */
void gemm_single_thread(void);

/* OpenBLAS's name for the processor whose kernels it uses, such as "Haswell" (AVX2). It chooses by the processor's
 * family, or as the environment variable OPENBLAS_CORETYPE says. */
const char *gemm_kernels(void);

/* Proves that there is address space for what BLAS takes when so many threads multiply at once. Where there
 * is none, OpenBLAS asks for it again and again, without an end. */
enum tfm_status gemm_check_room(int threads, struct tfm_error *err);

#endif
