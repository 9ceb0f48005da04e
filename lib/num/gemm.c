/*
 * gemm.c: matrix products of training through BLAS; in the double build of the tests, in double.
 */
#include "num/gemm.h"

#include <cblas.h>

#ifdef REAL_IS_DOUBLE
#define BLAS_GEMM cblas_dgemm
#else
#define BLAS_GEMM cblas_sgemm
#endif

void gemm(real *c, int ldc, const real *a, int lda, int a_transposed, const real *b, int ldb,
          int b_transposed, int m, int n, int k, real beta)
{
    if (m == 0 || n == 0)
        return;
    BLAS_GEMM(CblasRowMajor, a_transposed ? CblasTrans : CblasNoTrans,
              b_transposed ? CblasTrans : CblasNoTrans, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

void gemm_single_thread(void) { openblas_set_num_threads(1); }
