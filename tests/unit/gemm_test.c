/*
 * gemm_test.c: products through BLAS: every transposition, beta, odd sizes, rows that lie apart, against the sum in
 * double.
 */
#include "num/gemm.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "check.h"

enum {
    MAX = 70,
    LD = MAX + 3
};

static real a[LD * LD], b[LD * LD], c[LD * LD], before[LD * LD];

static void fill(real *x, uint64_t key)
{
    for (uint64_t i = 0; i < LD * LD; i++)
        x[i] = (real)rng_normal(rng_key(key, i, 0, 0));
}

static double worst_error(int m, int n, int k, int a_transposed, int b_transposed, real beta)
{
    double worst = 0;
    fill(c, 3);
    memcpy(before, c, sizeof(c));
    gemm(c, LD, a, LD, a_transposed, b, LD, b_transposed, m, n, k, beta);
    for (int i = 0; i < LD; i++) {
        for (int j = 0; j < LD; j++) {
            double sum = (double)before[i * LD + j];
            if (i < m && j < n) {
                sum *= (double)beta;
                for (int l = 0; l < k; l++)
                    sum += (double)(a_transposed ? a[l * LD + i] : a[i * LD + l]) *
                           (double)(b_transposed ? b[j * LD + l] : b[l * LD + j]);
            }
            worst = fmax(worst, fabs((double)c[i * LD + j] - sum));
        }
    }
    return worst;
}

static void check_products(const char *name)
{
    static const int sizes[] = { 1, 2, 15, 16, 17, 33, 64, MAX };
    double worst = 0;
    for (int way = 0; way < 8; way++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++)
                worst = fmax(worst, worst_error(sizes[i], sizes[j], sizes[(i + j) % 8], way & 1, way & 2,
                                                (real)(way >> 2)));
    CHECK(worst < 1e-4, "%s (%s): products are right to 1e-4, and write nothing else: %.1e", name,
          gemm_kernels(), worst);
}

int main(void)
{
    fill(a, 1);
    fill(b, 2);
    check_products("as OpenBLAS chooses");
    gemm_single_thread();
    check_products("on one thread");
    return check_done();
}
