/*
 * gemm_test.c: matrix products of training: every order of both factors, added or not, sizes around those of tiles and
 * blocks, rows that lie apart. Each tier has the reference's bits; BLAS and products of bf16, on tiles that are emulated
 * and on those of the machine, are near the sum in double.
 */
#include "num/gemm.h"

#include "amx_emulated.h"
#include "check.h"

#define KERN_TABLE kern_emulated
#define INT8_AMX
#define PRODUCT_BF16
#define V_of_sums(p) V_of(*(const I *)(const void *)(p))
#include "../../lib/num/kern_ref.c"

enum {
    MAX = 600, /* above every block */
    LD = MAX + 3
};

static real a[PRODUCT_ALIAS * LD], b[LD * LD], c[LD * LD], before[LD * LD], expected[LD * LD];
static _Alignas(64) real scratch[PRODUCT_SCRATCH];

static void fill(real *x, uint64_t n, uint64_t key)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = (real)rng_normal(rng_key(key, i, 0, 0));
}

enum how {
    BLAS,
    OWN,
    BF16X3,
    BF16
};

struct shape {
    int m, n, k, way; /* bits of way: a turned, b turned, added, rows of a contend for the first cache */
};

static int a_stride(const struct shape *s)
{
    return s->way & 8 ? PRODUCT_ALIAS : LD;
}

static void multiply(real *y, const struct kern *kern, enum how how, const struct shape *s)
{
    int lda = a_stride(s);
    struct factor fa = { a, s->way & 1 ? 1 : lda, s->way & 1 ? lda : 1 };
    struct factor fb = { b, s->way & 2 ? 1 : LD, s->way & 2 ? LD : 1 };
    bool add = s->way & 4;
    for (int i = 0; i < PRODUCT_SCRATCH; i++)
        scratch[i] = NAN; /* what was there before must not matter */
    if (how == BLAS)
        gemm(y, LD, fa, fb, s->m, s->n, s->k, add);
    else if (how == OWN)
        kern->product(y, LD, fa, fb, s->m, s->n, s->k, add, scratch);
    else
        kern->product_bf16(y, LD, fa, fb, s->m, s->n, s->k, add, how == BF16 ? 1 : 3, scratch);
}

static double element(const real *x, int ld, int turned, int i, int j)
{
    return (double)(turned ? x[j * ld + i] : x[i * ld + j]);
}

/* The largest error of an element, as a part of the root of the depth; 1e9 where something else was written. */
static double worst_error(const struct kern *kern, enum how how, const struct shape *s)
{
    double worst = 0;
    memcpy(c, before, sizeof(c));
    multiply(c, kern, how, s);
    for (int i = 0; i < s->m; i++) {
        for (int j = 0; j < s->n; j++) {
            double sum = s->way & 4 ? (double)before[i * LD + j] : 0;
            for (int l = 0; l < s->k; l++)
                sum += element(a, a_stride(s), s->way & 1, i, l) * element(b, LD, s->way & 2, l, j);
            worst = check_worse(worst, fabs((double)c[i * LD + j] - sum) / sqrt(s->k + 1.0));
            c[i * LD + j] = before[i * LD + j];
        }
    }
    return memcmp(c, before, sizeof(c)) == 0 ? worst : 1e9;
}

/* Small sizes of every kind, and a few that need several blocks. */
static int list_shapes(struct shape *shapes)
{
    static const int sizes[] = { 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 70 };
    static const int large[][3] = { { 520, 5, 3 }, { 513, 129, 20 }, { 3, 257, 257 }, { 40, 130, 600 }, { 9, 257, 70 } };
    int n = 0;
    for (int way = 0; way < 16; way++) {
        for (int i = 0; i < 11; i++)
            for (int j = way < 8 ? 0 : 11; j < 11; j++)
                shapes[n++] = (struct shape){ sizes[i], sizes[j], sizes[(3 * i + j) % 11], way };
        for (int i = 0; i < 5; i++)
            shapes[n++] = (struct shape){ large[i][0], large[i][1], large[i][2], way };
        shapes[n++] = (struct shape){ 5, 6, 0, way };
    }
    return n;
}

static void check_errors(const char *name, const struct kern *kern, enum how how, const struct shape *shapes,
                         int n, double bound)
{
    double worst = 0;
    for (int i = 0; i < n; i++)
        worst = check_worse(worst, worst_error(kern, how, &shapes[i]));
    CHECK(worst < bound, "%s: products are right to %.0e, and write nothing else: %.1e", name, bound, worst);
}

static void check_bits(enum cpu_tier tier, const struct shape *shapes, int n)
{
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        memcpy(expected, before, sizeof(c));
        memcpy(c, before, sizeof(c));
        multiply(expected, &kern_ref, OWN, &shapes[i]);
        multiply(c, kern_for(tier), OWN, &shapes[i]);
        wrong += memcmp(c, expected, sizeof(c)) != 0;
    }
    CHECK_INT(wrong, 0, "%s: products have the reference's bits", cpu_tier_name(tier));
}

/* The gradient of a broken loss must not look sound. */
static void check_nan(const char *name, const struct kern *kern, enum how how)
{
    const struct shape s = { 20, 20, 40, 0 };
    static const real bad[] = { NAN, INFINITY };
    for (int i = 0; i < 2; i++) {
        real kept = a[3 * LD + 5];
        a[3 * LD + 5] = bad[i];
        multiply(c, kern, how, &s);
        int n_bad = 0;
        for (int j = 0; j < 20; j++)
            n_bad += !isfinite(c[3 * LD + j]);
        CHECK(n_bad == 20 && isfinite(c[2 * LD]), "%s: %g spoils its row", name, (double)bad[i]);
        a[3 * LD + 5] = kept;
    }
}

static void check_bf16(const char *name, const struct kern *kern, const struct shape *shapes, int n)
{
    char three[64];
    snprintf(three, sizeof(three), "%s, three for one", name);
    check_errors(three, kern, BF16X3, shapes, n, 1e-4);
    check_errors(name, kern, BF16, shapes, n, 5e-2);
    check_nan(three, kern, BF16X3);
    check_nan(name, kern, BF16);
}

int main(void)
{
    static struct shape shapes[1200], few[300];
    int n = list_shapes(shapes);
    fill(a, PRODUCT_ALIAS * LD, 1);
    fill(b, LD * LD, 2);
    fill(before, LD * LD, 3);
    check_errors("reference", &kern_ref, OWN, shapes, n, 5e-6);
    struct tfm_error err;
    if (gemm_open(1, &err) == TFM_OK)
        check_errors(gemm_kernels(), NULL, BLAS, shapes, n, 5e-6);
    else
        SKIP("%s", err.message);
    enum cpu_tier best = cpu_best();
    for (int tier = CPU_AVX2; tier < CPU_N_TIERS; tier++) {
        if (tier <= (int)best)
            check_bits((enum cpu_tier)tier, shapes, n);
        else
            SKIP("this machine has no %s", cpu_tier_name((enum cpu_tier)tier));
    }
    for (int i = 0; i < n / 4; i++) /* emulation is slow */
        few[i] = shapes[4 * i];
    check_bf16("emulated bf16", &kern_emulated, few, n / 4);
    if (best >= CPU_AMX)
        check_bf16("bf16", kern_for(CPU_AMX), shapes, n);
    else
        SKIP("this machine has no tiles of bf16");
    return check_done();
}
