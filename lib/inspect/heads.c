/*
 * heads.c: statistics of attention heads. A row of weights p over the n keys that its query sees gives
 *     entropy   H = -sum p ln p, and H / ln n: 1 where it looks at all keys alike
 *     distance  sum p |query - key|, of self-attention
 *     on_end, on_first, on_itself: the weight of </s>, of the first key, of the query's own place
 * and a head the means over its rows. Rows with one key, which say nothing, are left out: the first of the
 * decoder's self-attention. That reads the start symbol (the same id as </s>) and never a </s> at the end, so
 * what rests there rests on the start: on_first. A head that spreads its weight evenly or keeps it in one
 * place does little (Voita et al. 2019; Clark et al. 2019): the verdict names it.
 */
#include "inspect/heads.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "inspect/attention.h"
#include "inspect/observe.h"

#define UNIFORM 0.98 /* of the entropy that a head could have */
#define STUCK   0.95 /* of the weight */

struct sums {
    double rows, entropy, relative, distance, on_end, on_first, on_itself;
};

/* Where the heads of a part begin. */
static int first_head(const struct config *c, enum tfm_part part)
{
    int layers = 0;
    for (enum tfm_part before = TFM_ENCODER; before < part; before++)
        layers += config_attention_layers(c, before);
    return layers * c->heads;
}

int heads_count(const struct config *c)
{
    return first_head(c, TFM_CROSS) + config_attention_layers(c, TFM_CROSS) * c->heads;
}

/* ---- one pair ---- */

static void add_row(struct sums *sums, const real *p, int n, int query, enum tfm_part part)
{
    double entropy = 0, distance = 0;
    int n_seen = 0; /* a softmax's weights are not 0, but for keys outside a window */
    for (int k = 0; k < n; k++) {
        if (p[k] > 0) {
            entropy -= p[k] * log((double)p[k]);
            n_seen++;
        }
        distance += p[k] * abs(query - k);
    }
    if (n_seen < 2)
        return;
    sums->rows++;
    sums->entropy += entropy;
    sums->relative += entropy / log(n_seen);
    sums->distance += distance;
    sums->on_end += part != TFM_DECODER ? p[n - 1] : 0;
    sums->on_first += p[0];
    sums->on_itself += part != TFM_CROSS ? p[query] : 0;
}

struct watcher {
    const struct config *config;
    struct sums *sums; /* [heads_count] */
};

static void watch_weights(void *user, const char *name, int layer, int head, const real *x, int rows,
                          int cols, int stride)
{
    const struct watcher *w = user;
    const char *end = strstr(name, "_attn.weights");
    if (end == NULL)
        return;
    bool is_cross = strstr(name, ".encoder_attn.") != NULL;
    enum tfm_part part = name[0] == 'e' ? TFM_ENCODER : is_cross ? TFM_CROSS : TFM_DECODER;
    struct sums *sums = &w->sums[first_head(w->config, part) + layer * w->config->heads + head];
    for (int i = 0; i < rows; i++) {
        int n = part == TFM_DECODER ? i + 1 : cols;
        if (n > 1)
            add_row(sums, x + (size_t)i * (size_t)stride, n, i, part);
    }
}

struct measuring {
    const struct tfm_model *model;
    const struct ints *pairs;
    struct sums *sums; /* [n, heads_count] */
    enum tfm_status *status;
    struct tfm_error *errors; /* [n] */
};

static void measure_pair(void *arg, int i, int worker)
{
    (void)worker;
    const struct measuring *m = arg;
    struct watcher watcher = { &m->model->config,
                               m->sums + (size_t)i * (size_t)heads_count(&m->model->config) };
    struct tap tap = { watch_weights, &watcher };
    m->status[i] = observe_run(m->model, &m->pairs[2 * i], &m->pairs[2 * i + 1], &tap, &m->errors[i]);
}

/* ---- the whole ---- */

static enum tfm_verdict judge(const struct tfm_head *h)
{
    if (h->relative_entropy > UNIFORM)
        return TFM_HEAD_UNIFORM;
    if (h->on_end > STUCK) /* false for what is not a number */
        return TFM_HEAD_ON_END;
    if (h->on_first > STUCK)
        return TFM_HEAD_ON_FIRST;
    return h->on_itself > STUCK ? TFM_HEAD_ON_ITSELF : TFM_HEAD_LIVE;
}

static void fill_heads(struct tfm_head *heads, const struct sums *sums, const struct config *c,
                       enum tfm_part part)
{
    int first = first_head(c, part);
    int n = config_attention_layers(c, part) * c->heads;
    for (int i = 0; i < n; i++) {
        const struct sums *s = &sums[first + i];
        struct tfm_head *h = &heads[first + i];
        *h = (struct tfm_head){ .part = part,
                                .layer = i / c->heads,
                                .head = i % c->heads,
                                .entropy = s->entropy / s->rows,
                                .relative_entropy = s->relative / s->rows,
                                .distance = part != TFM_CROSS ? s->distance / s->rows : (double)NAN,
                                .on_end = part != TFM_DECODER ? s->on_end / s->rows : (double)NAN,
                                .on_first = s->on_first / s->rows,
                                .on_itself = part != TFM_CROSS ? s->on_itself / s->rows : (double)NAN };
        h->verdict = judge(h);
    }
}

/* Adds up in the order of the pairs. */
static enum tfm_status add_pairs(const struct measuring *m, int n, struct tfm_error *err)
{
    size_t n_heads = (size_t)heads_count(&m->model->config);
    for (int i = 0; i < n; i++) {
        if (m->status[i] != TFM_OK)
            return err_set(err, m->status[i], "%s", m->errors[i].message);
        const double *from = (const double *)(m->sums + (size_t)i * n_heads);
        double *to = (double *)m->sums;
        for (size_t j = 0; i > 0 && j < n_heads * (sizeof(struct sums) / sizeof(double)); j++)
            to[j] += from[j];
    }
    return TFM_OK;
}

enum tfm_status heads_measure(struct tfm_head *heads, const struct tfm_model *model, const struct ints *pairs,
                              int n, struct pool *pool, struct tfm_error *err)
{
    const struct config *c = &model->config;
    struct measuring m = { .model = model, .pairs = pairs };
    m.sums = mem_alloc((size_t)n * (size_t)heads_count(c) * sizeof(*m.sums), err);
    m.status = mem_alloc((size_t)n * sizeof(*m.status), err);
    m.errors = mem_alloc((size_t)n * sizeof(*m.errors), err);
    enum tfm_status status = m.sums != NULL && m.status != NULL && m.errors != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK) {
        pool_run(pool, n, measure_pair, &m);
        status = add_pairs(&m, n, err);
    }
    if (status == TFM_OK) {
        fill_heads(heads, m.sums, c, TFM_ENCODER);
        fill_heads(heads, m.sums, c, TFM_DECODER);
        fill_heads(heads, m.sums, c, TFM_CROSS);
    }
    mem_free(m.sums);
    mem_free(m.status);
    mem_free(m.errors);
    return status;
}
