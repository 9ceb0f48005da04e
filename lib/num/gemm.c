/*
 * gemm.c: matrix products through BLAS; in the double build of the tests, in double.
 */
#include "num/gemm.h"

#include <cblas.h>
#include <sys/mman.h>

#define BLAS_BUFFER ((size_t)129 << 20) /* OpenBLAS takes 128 MiB a thread, and aligns them */

#ifdef REAL_IS_DOUBLE
#define BLAS_GEMM cblas_dgemm
#else
#define BLAS_GEMM cblas_sgemm
#endif

void gemm(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add)
{
    if (m == 0 || n == 0)
        return;
    BLAS_GEMM(CblasRowMajor, a.col == 1 ? CblasNoTrans : CblasTrans, b.col == 1 ? CblasNoTrans : CblasTrans, m, n,
              k, 1, a.x, a.col == 1 ? a.row : a.col, b.x, b.col == 1 ? b.row : b.col, add ? 1 : 0, c, ldc);
}

void gemm_single_thread(void)
{
    openblas_set_num_threads(1);
}

const char *gemm_kernels(void)
{
    return openblas_get_corename();
}

enum tfm_status gemm_check_room(int threads, struct tfm_error *err)
{
    size_t size = (size_t)threads * BLAS_BUFFER;
    void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return err_set(err, TFM_ENOMEM,
                       "no address space for the %zu MiB that OpenBLAS takes for %d thread%s: lower "
                       "--cpu-threads, or raise the limit (ulimit -v)",
                       size >> 20, threads, threads == 1 ? "" : "s");
    munmap(room, size);
    return TFM_OK;
}
