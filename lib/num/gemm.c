/*
 * gemm.c: matrix products through BLAS; in the double build of the tests, in double. OpenBLAS is loaded when it is first
 * asked for: a program that does without need not have it, and need not wait for the threads that it starts.
 */
#include "num/gemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define BLAS_LIBRARY "libopenblas.so.0"
#define BLAS_BUFFER  ((size_t)129 << 20) /* OpenBLAS takes 128 MiB a thread, and aligns them */

#ifdef REAL_IS_DOUBLE
#define BLAS_GEMM "cblas_dgemm"
#else
#define BLAS_GEMM "cblas_sgemm"
#endif

enum { /* of the C interface to BLAS */
    ROW_MAJOR = 101,
    AS_IT_IS = 111,
    TURNED = 112
};

static struct {
    void (*gemm)(int order, int a_turned, int b_turned, int m, int n, int k, real alpha, const real *a,
                 int lda, const real *b, int ldb, real beta, real *c, int ldc);
    void (*set_num_threads)(int n);
    char *(*get_corename)(void);
} blas;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char failure[256]; /* why there is none */

/* C has no cast from an object's address to a function's; POSIX wants them alike. */
static void *symbol(void *library, const char *name)
{
    void *address = library != NULL ? dlsym(library, name) : NULL;
    if (address == NULL && failure[0] == '\0') {
        const char *why = dlerror();
        snprintf(failure, sizeof(failure), "%s", why != NULL ? why : name);
    }
    return address;
}

static void load(void)
{
    void *library = dlopen(BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    *(void **)&blas.gemm = symbol(library, BLAS_GEMM);
    *(void **)&blas.set_num_threads = symbol(library, "openblas_set_num_threads");
    *(void **)&blas.get_corename = symbol(library, "openblas_get_corename");
    if (failure[0] == '\0')
        blas.set_num_threads(1);
}

/* Proves that there is address space for what BLAS takes when so many threads multiply at once. Where there is none,
 * OpenBLAS asks for it again and again, without an end. */
static enum tfm_status check_room(int threads, struct tfm_error *err)
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

enum tfm_status gemm_open(int threads, struct tfm_error *err)
{
    TRY(check_room(threads, err));
    pthread_once(&once, load);
    if (failure[0] != '\0')
        return err_set(
            err, TFM_EINVAL,
            "OpenBLAS cannot be loaded (%s): install Debian's libopenblas0, or multiply without (--gemm own)",
            failure);
    return TFM_OK;
}

const char *gemm_kernels(void)
{
    return blas.get_corename();
}

void gemm(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add)
{
    if (m == 0 || n == 0)
        return;
    blas.gemm(ROW_MAJOR, a.col == 1 ? AS_IT_IS : TURNED, b.col == 1 ? AS_IT_IS : TURNED, m, n, k, 1, a.x,
              a.col == 1 ? a.row : a.col, b.x, b.col == 1 ? b.row : b.col, add ? 1 : 0, c, ldc);
}
