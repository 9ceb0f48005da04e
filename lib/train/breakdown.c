/*
 * breakdown.c: adds up the stopwatches of a training. A part of the model counts the seconds of all threads
 * in it, divided by their number; so do threads that wait in the lanes for the slowest one. With that all parts
 * are shares of one clock, and their sum is the time the training took. The yardstick for matrix products is
 * what the training's own products do with [1024, 1024] matrices, on all threads at once, since they share
 * caches, memory and the clock rate that the heat allows.
 */
#include "train/breakdown.h"

#include "base/mem.h"
#include "nn/linear.h"

#define PEAK_SIZE    1024
#define PEAK_SECONDS 1.0

/* ---- the peak ---- */

struct peak {
    real *in;             /* [PEAK_SIZE, PEAK_SIZE], both factors */
    real *out;            /* the same, a thread */
    double *flops;        /* of each thread, a second */
    struct arena *arenas; /* likewise */
    const struct kern *kern;
    enum tfm_gemm gemm;
};

static void measure(void *arg, int i, int worker)
{
    (void)worker;
    const struct peak *peak = arg;
    const int n = PEAK_SIZE;
    real *out = peak->out + (size_t)i * n * n;
    const struct linear linear = { .out = n, .in = n, .w = peak->in };
    const struct run run = { .arena = &peak->arenas[i], .kern = peak->kern, .gemm = peak->gemm };
    linear_forward(out, peak->in, &linear, n, &run); /* finds its memory and warms up */
    double began = profile_clock(), seconds;
    int count = 0;
    do {
        linear_forward(out, peak->in, &linear, n, &run);
        count++;
        seconds = profile_clock() - began;
    } while (seconds < PEAK_SECONDS);
    peak->flops[i] = 2.0 * n * n * n * count / seconds;
}

static enum tfm_status measure_peak(struct breakdown *b, struct pool *pool, const struct kern *kern,
                                    enum tfm_gemm gemm, struct tfm_error *err)
{
    const size_t size = (size_t)PEAK_SIZE * PEAK_SIZE, threads = (size_t)b->threads;
    struct peak peak = { .in = mem_alloc(size * sizeof(real), err),
                         .out = mem_alloc(threads * size * sizeof(real), err),
                         .flops = mem_alloc(threads * sizeof(double), err),
                         .arenas = mem_alloc(threads * sizeof(*peak.arenas), err),
                         .kern = kern,
                         .gemm = gemm };
    bool has_room = peak.in != NULL && peak.out != NULL && peak.flops != NULL && peak.arenas != NULL;
    for (int i = 0; has_room && i < b->threads; i++)
        has_room = arena_init(&peak.arenas[i], PRODUCT_SCRATCH * sizeof(real) + 64, err) == TFM_OK;
    if (has_room) {
        for (size_t i = 0; i < size; i++)
            peak.in[i] = (real)(i % 7) - 3;
        pool_run(pool, b->threads, measure, &peak);
        for (int i = 0; i < b->threads; i++)
            b->peak_flops += peak.flops[i];
    }
    for (int i = 0; peak.arenas != NULL && i < b->threads; i++)
        arena_release(&peak.arenas[i]);
    mem_free(peak.arenas);
    mem_free(peak.in);
    mem_free(peak.out);
    mem_free(peak.flops);
    return has_room ? TFM_OK : TFM_ENOMEM;
}

enum tfm_status breakdown_new(struct breakdown **breakdown, struct pool *pool, const struct kern *kern,
                              enum tfm_gemm gemm, struct tfm_error *err)
{
    *breakdown = NULL;
    struct breakdown *b = mem_alloc(sizeof(*b), err);
    if (b == NULL)
        return TFM_ENOMEM;
    b->threads = pool_threads(pool);
    b->lanes = mem_alloc((size_t)b->threads * sizeof(*b->lanes), err);
    enum tfm_status status = b->lanes != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK)
        status = measure_peak(b, pool, kern, gemm, err);
    if (status != TFM_OK) {
        breakdown_free(b);
        return status;
    }
    profile_to(&b->whole, PROFILE_OTHER);
    b->began = b->whole.since;
    *breakdown = b;
    return TFM_OK;
}

void breakdown_free(struct breakdown *b)
{
    if (b == NULL)
        return;
    mem_free(b->lanes);
    mem_free(b);
}

/* ---- the sum ---- */

static const char *const names[N_PROFILE_PARTS] = {
    [PROFILE_EMBED] = "embeddings",
    [PROFILE_PROJECT] = "attention projections",
    [PROFILE_ATTEND] = "attention scores and mix",
    [PROFILE_FFN] = "feed-forward",
    [PROFILE_NORM] = "norm, residual, dropout",
    [PROFILE_LOSS] = "output layer and loss",
    [PROFILE_BATCH] = "laying out batches",
    [PROFILE_LANES] = "threads without work",
    [PROFILE_OPTIMIZE] = "optimiser",
    [PROFILE_READ] = "reading text, vocabulary",
    [PROFILE_VALIDATE] = "validation",
    [PROFILE_SAVE] = "saving",
    [PROFILE_OTHER] = "the rest",
};

static void sum_memory(struct tfm_profile *profile, const struct optimizer *optimizer,
                       const struct lanes *lanes)
{
    double block = (double)(optimizer->size * sizeof(real));
    profile->memory = mem_peak();
    profile->memory_weights = block * (optimizer->average != NULL ? 4 : 3);
    profile->memory_gradients = block * lanes->n;
    for (int i = 0; i < lanes->n_arenas; i++)
        profile->memory_scratch += (double)lanes->arena[i].peak;
}

void breakdown_sum(struct tfm_profile *profile, struct tfm_profile_part *parts, struct breakdown *b,
                   const struct optimizer *optimizer, const struct lanes *lanes)
{
    struct profile sum = b->whole;
    double now = profile_clock();
    sum.seconds[sum.part] += now - sum.since;
    for (int i = 0; i < b->threads; i++) {
        for (int p = PROFILE_EMBED; p < PROFILE_LANES; p++) {
            double seconds = b->lanes[i].seconds[p] / b->threads;
            sum.seconds[p] += seconds;
            sum.seconds[PROFILE_LANES] -= seconds;
            sum.flop[p] += b->lanes[i].flop[p];
        }
    }
    *profile = (struct tfm_profile){
        .seconds = now - b->began, .threads = b->threads, .peak_flops = b->peak_flops, .parts = parts
    };
    for (int p = PROFILE_EMBED; p < N_PROFILE_PARTS; p++)
        if (names[p] != NULL)
            parts[profile->n_parts++] = (struct tfm_profile_part){ names[p], sum.seconds[p], sum.flop[p] };
    sum_memory(profile, optimizer, lanes);
}
