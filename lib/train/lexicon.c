/*
 * lexicon.c: IBM model 1 by expectation maximisation (Brown et al. 1993, section 4.1). Each target token f of
 * a pair comes from one of its source tokens e_0 .. e_S, e_0 being the empty word:
 *     z(f) = sum_i t(f|e_i)        t'(f|e) is proportional to the sum of t(f|e) / z(f)
 * Both halves of an iteration are sums that one thread makes in the order of the corpus: z for each target
 * token by the thread that has its pair, the others for each source piece, through an index of the pairs that
 * it is in. So nothing is shared and no digit depends on the threads. Within an iteration t(f|e) is a
 * constant, and the sum only needs 1 / z(f).
 *
 * Memory: 4 bytes a source token (the index), 4 bytes a target token (1 / z), 8 bytes a cell of the table, of
 * which a row keeps `most`.
 */
#include "train/lexicon.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/shortlist.h"

#define CHUNK 256 /* pairs of a task */

struct scored { /* a piece that may get a place in a row */
    double score;
    int target;
};

struct learner {           /* scratch of a thread */
    double *sum;           /* [n_target], all 0 between tasks */
    int *touched;          /* [n_target] */
    struct scored *scored; /* [n_target] */
    enum tfm_status status;
    struct tfm_error err;
};

struct learning {
    struct lexicon *lexicon;
    const struct corpus *corpus;
    const struct lexicon_options *options;
    size_t *start;  /* [n_source + 1]: source piece e is in the pairs pairs[start[e]] .. */
    int *pairs;     /* one of these for each token: a pair twice, where e is twice in it */
    float *inverse; /* [target tokens]: 1 / z */
    struct learner *learners;
    int n_learners;
};

static inline int id_at(const struct corpus_side *side, size_t i)
{
    return side->width == 2 ? ((const uint16_t *)side->ids)[i] : ((const int32_t *)side->ids)[i];
}

static size_t n_tokens(const struct corpus *corpus, const struct corpus_side *side)
{
    return side->start[corpus->n];
}

/* ---- the index ---- */

static enum tfm_status make_index(struct learning *l, struct tfm_error *err)
{
    const struct corpus_side *source = &l->corpus->source, *target = &l->corpus->target;
    int n_source = l->lexicon->n_source;
    l->start = mem_alloc(((size_t)n_source + 1) * sizeof(*l->start), err);
    l->pairs = mem_alloc((n_tokens(l->corpus, source) + 1) * sizeof(*l->pairs), err);
    size_t *end = mem_alloc(((size_t)n_source + 1) * sizeof(*end), err);
    if (l->start == NULL || l->pairs == NULL || end == NULL) {
        mem_free(end);
        return TFM_ENOMEM;
    }
    for (size_t i = 0; i < n_tokens(l->corpus, source); i++)
        l->start[id_at(source, i) + 1]++;
    for (int e = 0; e < n_source; e++) {
        l->start[e + 1] += l->start[e];
        end[e] = l->start[e];
    }
    for (int pair = 0; pair < l->corpus->n; pair++)
        for (size_t i = source->start[pair]; i < source->start[pair + 1]; i++)
            l->pairs[end[id_at(source, i)]++] = pair;
    mem_free(end);
    for (size_t i = 0; i < n_tokens(l->corpus, target); i++)
        l->lexicon->frequency[id_at(target, i)]++;
    return TFM_OK;
}

/* ---- the table ---- */

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->target < y->target ? -1 : 1;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : 1;
}

static enum tfm_status new_row(struct lexicon_row *row, const int *target, int n, struct tfm_error *err)
{
    row->target = mem_alloc(((size_t)n + 1) * sizeof(*row->target), err);
    row->p = mem_alloc(((size_t)n + 1) * sizeof(*row->p), err);
    if (row->target == NULL || row->p == NULL)
        return TFM_ENOMEM;
    row->n = n;
    for (int i = 0; i < n; i++) {
        row->target[i] = target[i];
        row->p[i] = 1 / (float)n;
    }
    return TFM_OK;
}

/* Counts what stands in the same pairs as e. Returns how many pieces there are, in me->touched. */
static int count_neighbours(const struct learning *l, struct learner *me, int e)
{
    const struct corpus_side *target = &l->corpus->target;
    int n = 0;
    for (size_t i = l->start[e]; i < l->start[e + 1]; i++) {
        for (size_t j = target->start[l->pairs[i]]; j < target->start[l->pairs[i] + 1]; j++) {
            int f = id_at(target, j);
            if (me->sum[f] == 0)
                me->touched[n++] = f;
            me->sum[f]++;
        }
    }
    return n;
}

static void begin_row(void *arg, int e, int worker)
{
    struct learning *l = arg;
    struct learner *me = &l->learners[worker];
    if (me->status != TFM_OK)
        return;
    int n = count_neighbours(l, me, e), most = l->options->most;
    double tokens = (double)(l->start[e + 1] - l->start[e]);
    for (int i = 0; i < n; i++) {
        int f = me->touched[i];
        me->scored[i] = (struct scored){ me->sum[f] / (tokens + (double)l->lexicon->frequency[f]), f };
        me->sum[f] = 0;
    }
    if (n > most) {
        qsort(me->scored, (size_t)n, sizeof(*me->scored), by_score);
        n = most;
    }
    for (int i = 0; i < n; i++)
        me->touched[i] = me->scored[i].target;
    if (n > 0)
        qsort(me->touched, (size_t)n, sizeof(*me->touched), by_number);
    me->status = new_row(&l->lexicon->rows[e], me->touched, n, &me->err);
}

/* The empty word's row: all pieces of the corpus. */
static enum tfm_status begin_empty_row(struct learning *l, struct tfm_error *err)
{
    int *targets = l->learners[0].touched, n = 0;
    for (int f = 0; f < l->lexicon->n_target; f++)
        if (l->lexicon->frequency[f] > 0)
            targets[n++] = f;
    return new_row(&l->lexicon->rows[l->lexicon->n_source], targets, n, err);
}

/* ---- an iteration ---- */

float lexicon_probability(const struct lexicon *lexicon, int source, int target)
{
    const struct lexicon_row *row = &lexicon->rows[source];
    int place = shortlist_find(row->target, row->n, target);
    return place >= 0 ? row->p[place] : 0;
}

/* 1 / z of the tokens of some pairs. */
static void invert_chunk(void *arg, int chunk, int worker)
{
    (void)worker;
    struct learning *l = arg;
    const struct corpus_side *source = &l->corpus->source, *target = &l->corpus->target;
    int end = l->corpus->n - chunk * CHUNK < CHUNK ? l->corpus->n : (chunk + 1) * CHUNK;
    for (int pair = chunk * CHUNK; pair < end; pair++) {
        for (size_t j = target->start[pair]; j < target->start[pair + 1]; j++) {
            int f = id_at(target, j);
            float z = lexicon_probability(l->lexicon, l->lexicon->n_source, f);
            for (size_t i = source->start[pair]; i < source->start[pair + 1]; i++)
                z += lexicon_probability(l->lexicon, id_at(source, i), f);
            l->inverse[j] = z > 0 ? 1 / z : 0;
        }
    }
}

/* t' of a row from the sums of 1 / z, which become 0 again. */
static void renew_row(struct lexicon_row *row, double *sum)
{
    double total = 0;
    for (int i = 0; i < row->n; i++)
        total += (double)row->p[i] * sum[row->target[i]];
    for (int i = 0; i < row->n; i++)
        row->p[i] = total > 0 ? (float)((double)row->p[i] * sum[row->target[i]] / total) : 0;
}

/* Task 0 is the empty word, the longest, task e + 1 is source piece e. */
static void improve_row(void *arg, int task, int worker)
{
    struct learning *l = arg;
    const struct corpus_side *target = &l->corpus->target;
    double *sum = l->learners[worker].sum;
    if (task == 0) {
        for (size_t j = 0; j < n_tokens(l->corpus, target); j++)
            sum[id_at(target, j)] += (double)l->inverse[j];
        renew_row(&l->lexicon->rows[l->lexicon->n_source], sum);
    } else {
        for (size_t i = l->start[task - 1]; i < l->start[task]; i++)
            for (size_t j = target->start[l->pairs[i]]; j < target->start[l->pairs[i] + 1]; j++)
                sum[id_at(target, j)] += (double)l->inverse[j];
        renew_row(&l->lexicon->rows[task - 1], sum);
    }
    memset(sum, 0, sizeof(*sum) * (size_t)l->lexicon->n_target);
}

/* ---- the whole ---- */

static enum tfm_status init(struct learning *l, struct pool *pool, struct tfm_error *err)
{
    struct lexicon *lexicon = l->lexicon;
    size_t n_target = (size_t)lexicon->n_target;
    lexicon->rows = mem_alloc(((size_t)lexicon->n_source + 1) * sizeof(*lexicon->rows), err);
    lexicon->frequency = mem_alloc(n_target * sizeof(*lexicon->frequency), err);
    l->inverse = mem_alloc((n_tokens(l->corpus, &l->corpus->target) + 1) * sizeof(*l->inverse), err);
    l->learners = mem_alloc((size_t)pool_threads(pool) * sizeof(*l->learners), err);
    if (lexicon->rows == NULL || lexicon->frequency == NULL || l->inverse == NULL || l->learners == NULL)
        return TFM_ENOMEM;
    l->n_learners = pool_threads(pool);
    for (int i = 0; i < l->n_learners; i++) {
        struct learner *learner = &l->learners[i];
        learner->sum = mem_alloc(n_target * sizeof(*learner->sum), err);
        learner->touched = mem_alloc(n_target * sizeof(*learner->touched), err);
        learner->scored = mem_alloc(n_target * sizeof(*learner->scored), err);
        if (learner->sum == NULL || learner->touched == NULL || learner->scored == NULL)
            return TFM_ENOMEM;
    }
    return make_index(l, err);
}

static enum tfm_status learn(struct learning *l, struct pool *pool, struct tfm_error *err)
{
    TRY(init(l, pool, err));
    pool_run(pool, l->lexicon->n_source, begin_row, l);
    for (int i = 0; i < l->n_learners; i++) {
        if (l->learners[i].status != TFM_OK)
            return err_set(err, l->learners[i].status, "%s", l->learners[i].err.message);
    }
    TRY(begin_empty_row(l, err));
    for (int i = 0; i < l->options->n_iterations; i++) {
        pool_run(pool, (l->corpus->n + CHUNK - 1) / CHUNK, invert_chunk, l);
        pool_run(pool, l->lexicon->n_source + 1, improve_row, l);
    }
    return TFM_OK;
}

enum tfm_status lexicon_train(struct lexicon *lexicon, const struct corpus *corpus,
                              const struct lexicon_options *options, struct pool *pool, struct tfm_error *err)
{
    *lexicon = (struct lexicon){ .n_source = spm_size(corpus->source.spm),
                                 .n_target = spm_size(corpus->target.spm) };
    struct learning l = { .lexicon = lexicon, .corpus = corpus, .options = options };
    enum tfm_status status = learn(&l, pool, err);
    for (int i = 0; i < l.n_learners; i++) {
        mem_free(l.learners[i].sum);
        mem_free(l.learners[i].touched);
        mem_free(l.learners[i].scored);
    }
    mem_free(l.learners);
    mem_free(l.start);
    mem_free(l.pairs);
    mem_free(l.inverse);
    if (status != TFM_OK)
        lexicon_release(lexicon);
    return status;
}

void lexicon_release(struct lexicon *lexicon)
{
    for (int e = 0; lexicon->rows != NULL && e <= lexicon->n_source; e++) {
        mem_free(lexicon->rows[e].target);
        mem_free(lexicon->rows[e].p);
    }
    mem_free(lexicon->rows);
    mem_free(lexicon->frequency);
    *lexicon = (struct lexicon){ 0 };
}
