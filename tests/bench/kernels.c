/*
 * kernels.c: speed of matrix products, one thread: for each tier those of translation in int8 (with and without the
 * quantising of its activations) and fp32, those of training in fp32 and bf16, and OpenBLAS beside them, over the shapes of a student (D 256, F 1536) and
 * of transformer-base (D 512, F 2048); and the most that the tier's int8 instructions give with all in registers,
 * measured in between. In 10^9 operations a second, a multiplication and an addition being two; the best of many short
 * runs, since another process may take the core. Prints CSV.
 *     make bench-kernels        or        build/tests/bench/kernels TIER...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/linear.h"
#include "num/gemm.h"
#include "num/int8.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define BEST_OF  20
#define MAX_ROWS 320
#define MAX_IN   2048
#define MAX_OUT  2048

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the most of a tier ---- */

#define PEAK_TURNS 2000
static volatile int sink;

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) static double peak_vnni(void)
{
    __m512i sum[12], x = _mm512_set1_epi32(sink), w = _mm512_set1_epi32(sink + 3);
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
        sum[i] = _mm512_setzero_si512();
    for (int t = 0; t < PEAK_TURNS; t++) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; i++) {
            sum[i] = _mm512_dpbusd_epi32(sum[i], x, w);
            __asm__ volatile("" : "+v"(sum[i])); /* or the compiler would do it once */
        }
    }
#pragma GCC unroll 12
    for (int i = 1; i < 12; i++)
        sum[0] = _mm512_add_epi32(sum[0], sum[i]);
    sink = _mm512_reduce_add_epi32(sum[0]) & 1;
    return 12.0 * 64 * 2 * PEAK_TURNS;
}

/* Four sums, each tile of factors used twice. */
__attribute__((target("amx-tile,amx-int8"))) static double peak_amx(void)
{
    static unsigned char config[64] = { 1 };
    for (int i = 0; i < 8; i++) {
        config[16 + 2 * i] = 64;
        config[48 + i] = 16;
    }
    _tile_loadconfig(config);
    for (int t = 0; t < PEAK_TURNS; t++) {
        _tile_dpbssd(0, 4, 6);
        _tile_dpbssd(1, 4, 7);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
    _tile_release();
    return 4.0 * 16 * 16 * 64 * 2 * PEAK_TURNS;
}

__attribute__((target("avx2"))) static double peak_avx2(void)
{
    __m256i sum[8], x = _mm256_set1_epi32(sink), w = _mm256_set1_epi32(sink + 3), one = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        sum[i] = _mm256_setzero_si256();
    for (int t = 0; t < PEAK_TURNS; t++) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) {
            __asm__ volatile("" : "+x"(x)); /* or the compiler would do it once */
            __m256i pairs = _mm256_maddubs_epi16(w, _mm256_sign_epi8(x, w));
            sum[i] = _mm256_add_epi32(sum[i], _mm256_madd_epi16(pairs, one));
        }
    }
#pragma GCC unroll 8
    for (int i = 1; i < 8; i++)
        sum[0] = _mm256_add_epi32(sum[0], sum[i]);
    sink = _mm256_extract_epi32(sum[0], 0) & 1;
    return 8.0 * 32 * 2 * PEAK_TURNS;
}
#endif

static double peak(enum cpu_tier tier)
{
    (void)tier;
#if defined(__x86_64__)
    return tier == CPU_AMX ? peak_amx() : tier == CPU_VNNI ? peak_vnni() : tier == CPU_AVX2 ? peak_avx2() : 0;
#else
    return 0;
#endif
}

/* ---- products ---- */

static real x[MAX_ROWS * MAX_IN], y[MAX_ROWS * MAX_OUT], w[MAX_OUT * MAX_IN], bias[MAX_OUT], scales[MAX_OUT];
static real q_scales[MAX_ROWS];
static _Alignas(64) real scratch[PRODUCT_SCRATCH];
static int8_t q8[MAX_ROWS * MAX_IN], w8[MAX_OUT * MAX_IN];

enum {
    WHAT_PEAK,
    WHAT_LINEAR8,
    WHAT_WITH_QUANTISE,
    WHAT_FP32,
    WHAT_PRODUCT,
    WHAT_BF16X3,
    WHAT_BF16,
    WHAT_BLAS,
    N_WHAT
};

struct work {
    enum cpu_tier tier;
    const struct kern *kern;
    int n, in, out;
    const int8_t *packed8;
    const real *packed;
};

static double once(const struct work *k, int what)
{
    const struct factor a = { x, k->in, 1 }, b = { w, 1, k->in };
    switch (what) {
    case WHAT_PEAK: return peak(k->tier);
    case WHAT_WITH_QUANTISE:
        k->kern->quantise(q8, q_scales, x, k->n, k->in, 0);
        /* fall through */
    case WHAT_LINEAR8:
        k->kern->linear8(y, q8, q_scales, k->packed8, scales, bias, k->n, k->out, k->in, ACT_RELU);
        break;
    case WHAT_FP32: k->kern->linear(y, x, k->packed, k->n, k->out, k->in); break;
    case WHAT_PRODUCT: k->kern->product(y, k->out, a, b, k->n, k->out, k->in, false, scratch); break;
    case WHAT_BF16X3:
    case WHAT_BF16:
        if (k->kern->product_bf16 == NULL)
            return 0;
        k->kern->product_bf16(y, k->out, a, b, k->n, k->out, k->in, false, what == WHAT_BF16 ? 1 : 3, scratch);
        break;
    default: gemm(y, k->out, a, b, k->n, k->out, k->in, false);
    }
    return 2.0 * k->n * k->in * k->out;
}

static void measure(double *best, const struct work *k)
{
    for (int what = 0; what < N_WHAT; what++)
        best[what] = 0;
    for (int i = 0; i < BEST_OF; i++) {
        for (int what = 0; what < N_WHAT; what++) {
            once(k, what); /* fills the caches */
            double start = now(), done = 0, seconds;
            do {
                done += once(k, what);
                seconds = now() - start;
            } while (seconds < 5e-5);
            if (done / seconds > best[what])
                best[what] = done / seconds;
        }
    }
}

static void bench_shape(enum cpu_tier tier, int in, int out)
{
    static const int rows[] = { 1, 2, 4, 5, 8, 32, 64, 320 };
    struct tfm_error err;
    int8_t *packed8 = mem_alloc(int8_packed_size(out, in), &err);
    real *packed = mem_alloc(linear_packed_size(out, in) * sizeof(real), &err);
    if (packed8 == NULL || packed == NULL)
        exit(1);
    for (int r = 0; r < out; r++)
        scales[r] = int8_quantise_row(w8 + (size_t)r * (size_t)in, w + (size_t)r * (size_t)in, in);
    int8_pack(packed8, w8, 0, out, in);
    linear_pack(packed, w, out, in);
    struct work k = { tier, kern_for(tier), 0, in, out, packed8, packed };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        double best[N_WHAT];
        k.n = rows[i];
        k.kern->quantise(q8, q_scales, x, k.n, in, 0);
        measure(best, &k);
        printf("%s,%d,%d,%d", cpu_tier_name(tier), k.n, in, out);
        for (int what = 0; what < N_WHAT; what++)
            printf(",%.1f", best[what] / 1e9);
        printf(",%.2f\n", best[WHAT_PEAK] > 0 ? best[WHAT_LINEAR8] / best[WHAT_PEAK] : 0.0);
        fflush(stdout);
    }
    mem_free(packed8);
    mem_free(packed);
}

int main(int argc, char **argv)
{
    struct tfm_error err;
    if (gemm_open(1, &err) != TFM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < MAX_ROWS * MAX_IN; i++)
        x[i] = (real)rng_normal((uint64_t)i);
    for (int i = 0; i < MAX_OUT * MAX_IN; i++)
        w[i] = (real)rng_normal((uint64_t)i + 77);
    printf("tier,rows,in,out,peak,int8,int8_with_quantising,fp32,training,bf16x3,bf16,openblas,int8_of_peak\n");
    static const int shapes[][2] = { { 256, 256 }, { 256, 1536 }, { 1536, 256 }, { 256, 1000 },
                                     { 512, 512 }, { 512, 2048 }, { 2048, 512 } };
    for (int tier = CPU_AVX2; tier <= (int)cpu_best(); tier++) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], cpu_tier_name((enum cpu_tier)tier)) == 0;
        for (size_t s = 0; wanted && s < sizeof(shapes) / sizeof(*shapes); s++)
            bench_shape((enum cpu_tier)tier, shapes[s][0], shapes[s][1]);
    }
    return 0;
}
