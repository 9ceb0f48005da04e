/*
 * optimizer.c: one step of Adam (Kingma and Ba 2015; beta 0.9 and 0.98, epsilon 1e-9 as in Vaswani et al.
 * 2017), with decoupled weight decay for matrices: w -= lr * decay * w (Loshchilov and Hutter 2019). The block
 * is cut into a fixed number of slices, worked on side by side; partial sums are added in the order of the
 * slices, so no digit depends on the threads. The bias corrections are put into the step: lr
 * * sqrt(1 - beta2^u) / (1 - beta1^u). The running mean of the weights follows average += (1 - decay)
 * (weights - average), decay = min(1 - rate, (u+1) / (u+10)): a plain mean at first, so that the random start
 * is soon forgotten.
 */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define N_SLICES 64
#define BETA1    0.9
#define BETA2    0.98
#define EPSILON  1e-9

enum tfm_status optimizer_init(struct optimizer *optimizer, size_t size, bool has_average,
                               struct tfm_error *err)
{
    *optimizer = (struct optimizer){ .size = size };
    real **blocks[] = { &optimizer->weights, &optimizer->moment1, &optimizer->moment2, &optimizer->average };
    for (int i = 0; i < (has_average ? 4 : 3); i++) {
        *blocks[i] = mem_alloc(size * sizeof(real), err);
        if (*blocks[i] == NULL)
            goto fail;
    }
    optimizer->partial = mem_alloc(N_SLICES * sizeof(*optimizer->partial), err);
    if (optimizer->partial != NULL)
        return TFM_OK;
fail:
    optimizer_release(optimizer);
    return TFM_ENOMEM;
}

void optimizer_release(struct optimizer *optimizer)
{
    mem_free(optimizer->weights);
    mem_free(optimizer->average);
    mem_free(optimizer->moment1);
    mem_free(optimizer->moment2);
    mem_free(optimizer->partial);
    *optimizer = (struct optimizer){ 0 };
}

struct work {
    struct optimizer *optimizer;
    struct lanes *lanes;
    const struct kern *kern;
    const struct params *params;
    real step, gradient_scale, average_part, decay;
};

/* Slice i is [from, from + n). */
static size_t slice(const struct work *w, int i, size_t *from)
{
    *from = w->optimizer->size * (size_t)i / N_SLICES;
    return w->optimizer->size * ((size_t)i + 1) / N_SLICES - *from;
}

static void reduce_slice(void *arg, int i, int worker)
{
    (void)worker;
    const struct work *w = arg;
    size_t from, n = slice(w, i, &from);
    real *sum = w->lanes->lane[0].gradient + from;
    for (int l = 1; l < w->lanes->n; l++)
        w->kern->add(sum, w->lanes->lane[l].gradient + from, n);
    w->optimizer->partial[i] = w->kern->sum_squares(sum, n);
}

double optimizer_reduce(struct optimizer *optimizer, struct lanes *lanes, const struct kern *kern,
                        struct pool *pool)
{
    struct work w = { .optimizer = optimizer, .lanes = lanes, .kern = kern };
    pool_run(pool, N_SLICES, reduce_slice, &w);
    double sum = 0;
    for (int i = 0; i < N_SLICES; i++)
        sum += optimizer->partial[i];
    return sqrt(sum);
}

static void apply_adam(const struct work *w, size_t from, size_t n, real decay)
{
    struct optimizer *o = w->optimizer;
    w->kern->adam(o->weights + from, o->moment1 + from, o->moment2 + from, w->lanes->lane[0].gradient + from,
                  n, w->gradient_scale, (real)BETA1, (real)BETA2, w->step, (real)EPSILON, decay);
}

/* The part of each tensor that lies in [from, from + n): biases and norms, which are vectors, do not decay. */
static void apply_decayed(const struct work *w, size_t from, size_t n)
{
    for (int i = 0; i < w->params->n; i++) {
        const struct param *param = &w->params->list[i];
        size_t begin = param->offset, end = begin + params_count(param);
        begin = begin > from ? begin : from;
        end = end < from + n ? end : from + n;
        if (begin < end)
            apply_adam(w, begin, end - begin, param->is_vector ? 0 : w->decay);
    }
}

static void apply_slice(void *arg, int i, int worker)
{
    (void)worker;
    const struct work *w = arg;
    struct optimizer *o = w->optimizer;
    size_t from, n = slice(w, i, &from);
    if (w->decay > 0)
        apply_decayed(w, from, n);
    else
        apply_adam(w, from, n, 0);
    if (o->average != NULL) {
        real *average = o->average + from;
        const real *weights = o->weights + from;
        for (size_t j = 0; j < n; j++)
            average[j] += w->average_part * (weights[j] - average[j]);
    }
    for (int l = 0; l < w->lanes->n; l++)
        memset(w->lanes->lane[l].gradient + from, 0, n * sizeof(real));
}

void optimizer_apply(struct optimizer *optimizer, struct lanes *lanes, const struct optimizer_step *step,
                     const struct kern *kern, struct pool *pool)
{
    double u = (double)step->update;
    double decay = fmin(1 - step->average_rate, (u + 1) / (u + 10));
    struct work w = { .optimizer = optimizer, .lanes = lanes, .kern = kern, .params = step->params };
    w.decay = (real)(step->learn_rate * step->weight_decay);
    w.step = (real)(step->learn_rate * sqrt(1 - pow(BETA2, u)) / (1 - pow(BETA1, u)));
    w.gradient_scale = (real)step->gradient_scale;
    w.average_part = (real)(1 - decay);
    pool_run(pool, N_SLICES, apply_slice, &w);
}
