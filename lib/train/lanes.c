/*
 * lanes.c: runs a batch in lanes. Longest pairs first, each goes to the lane that has the fewest tokens; a
 * lane cuts its pairs into micro-batches of at most about MICRO_ROWS tokens a side (the size that matrix
 * products like best) and adds up their gradients. A lane's result depends on nothing but its pairs, and sums
 * over lanes are made in their order; arenas belong to threads, since scratch decides no digit.
 */
#include "train/lanes.h"

#include <string.h>

#include "base/mem.h"
#include "nn/attn.h"
#include "train/guide.h"

#define MICRO_ROWS 1024

/* More than a micro-batch can take: what the layers keep for the backward pass, what comes and goes with one
 * layer, and the logits of a tile. */
static size_t scratch_size(const struct config *c, const struct lanes_size *size)
{
    size_t l = (size_t)size->longest, rows = MICRO_ROWS + l * (size_t)size->copies, d = (size_t)c->d_model,
           f = config_inner_size(c);
    size_t n_keys = l;
    if (c->architecture == CONFIG_DECODER_ONLY) { /* all rows are its */
        rows *= 2;
        n_keys *= 2;
    }
    size_t weights = (size_t)c->heads * attn_row((int)n_keys); /* of attention, a row */
    size_t kept = (size_t)c->encoder_layers * (10 * d + f + weights) +
                  (size_t)c->decoder_layers * (17 * d + f + 2 * weights);
    size_t passing = 24 * d + f;
    size_t lists = 128 + 16 * (size_t)(c->encoder_layers + c->decoder_layers); /* ids, keys, statistics */
    size_t biases = 16 * (size_t)c->heads * l; /* of distances, and their gradients */
    size_t guide = size->is_guided ? l * sizeof(struct guide_link) + 64 : 0; /* bytes, a row */
    size_t reals =
        rows * (kept + passing + lists) + biases + 16 * l * l + (XENT_ROWS + 1) * (size_t)c->vocab_size;
    reals += PRODUCT_SCRATCH;
    return reals * sizeof(real) + rows * guide + ((size_t)1 << 20); /* an arena rounds each block up */
}

static enum tfm_status scratch_init(struct arena *arena, size_t size, int longest, struct tfm_error *err)
{
    TRY(arena_init(arena, size, err));
    if (arena->size >= size)
        return TFM_OK;
    size_t granted = arena->size;
    arena_release(arena);
    return err_set(err, TFM_ENOMEM,
                   "training on pairs of up to %d pieces may need %zu MiB of scratch memory a thread, and "
                   "this process may have %zu; lower --max-length or --cpu-threads, or raise the limit "
                   "(ulimit -v)",
                   longest, size >> 20, granted >> 20);
}

enum tfm_status lanes_init(struct lanes *lanes, const struct lanes_size *size, const struct config *config,
                           size_t block_size, struct tfm_error *err)
{
    *lanes = (struct lanes){ 0 };
    lanes->lane = mem_alloc((size_t)size->n * sizeof(*lanes->lane), err);
    lanes->arena = mem_alloc((size_t)size->threads * sizeof(*lanes->arena), err);
    enum tfm_status status = lanes->lane != NULL && lanes->arena != NULL ? TFM_OK : TFM_ENOMEM;
    while (status == TFM_OK && lanes->n < size->n) {
        struct lane *lane = &lanes->lane[lanes->n++];
        lane->gradient = mem_alloc(block_size * sizeof(real), err);
        if (lane->gradient != NULL)
            params_bind(&lane->grad, config, lane->gradient);
        else
            status = TFM_ENOMEM;
    }
    while (status == TFM_OK && lanes->n_arenas < size->threads) {
        status = scratch_init(&lanes->arena[lanes->n_arenas], scratch_size(config, size), size->longest, err);
        lanes->n_arenas += status == TFM_OK;
    }
    if (status != TFM_OK)
        lanes_release(lanes);
    return status;
}

void lanes_release(struct lanes *lanes)
{
    for (int i = 0; i < lanes->n; i++) {
        ints_release(&lanes->lane[i].pairs);
        mem_free(lanes->lane[i].gradient);
    }
    for (int i = 0; i < lanes->n_arenas; i++)
        arena_release(&lanes->arena[i]);
    mem_free(lanes->lane);
    mem_free(lanes->arena);
    *lanes = (struct lanes){ 0 };
}

/* Rows that a pair takes: those of its longer side. */
static int rows_of(const struct corpus *corpus, int pair)
{
    int source = corpus_length(&corpus->source, pair), target = corpus_length(&corpus->target, pair);
    return source > target ? source : target;
}

enum tfm_status lanes_split(struct lanes *lanes, const struct corpus *corpus, const int *pairs, int n,
                            struct tfm_error *err)
{
    for (int l = 0; l < lanes->n; l++) {
        lanes->lane[l].pairs.n = 0;
        lanes->lane[l].n_rows = 0;
    }
    for (int i = n - 1; i >= 0; i--) { /* a batch is sorted: the longest are last */
        struct lane *least = &lanes->lane[0];
        for (int l = 1; l < lanes->n; l++) {
            if (lanes->lane[l].n_rows < least->n_rows)
                least = &lanes->lane[l];
        }
        TRY(ints_add(&least->pairs, &pairs[i], 1, err));
        least->n_rows += rows_of(corpus, pairs[i]);
    }
    return TFM_OK;
}

/* What one thread of the pool works with. */
struct bench {
    struct arena *arena;
    struct profile *profile; /* or NULL */
};

static struct bench bench_of(const struct lanes *lanes, const struct lanes_run *how, int worker)
{
    return (struct bench){ &lanes->arena[worker], how->profiles != NULL ? &how->profiles[worker] : NULL };
}

/* A pair is run twice for R-Drop, where it is trained; a loss without gradient is plain cross-entropy. */
static int copies_of(const struct lanes_run *how, const struct weights *grad)
{
    return grad != NULL && how->criterion.r_drop > 0 ? 2 : 1;
}

/* One micro-batch; grad NULL: no gradient, no dropout, no losses on heads, whose values go to head_sums. */
static void run_micro(struct xent_sum *sum, struct head_sum *head_sums, struct weights *grad,
                      const int *pairs, int n, const struct lanes_run *how, const struct bench *bench)
{
    struct criterion criterion = how->criterion;
    if (grad == NULL)
        criterion.r_drop = 0;
    struct arena *arena = bench->arena;
    struct run run = { .arena = arena,
                       .kern = how->kern,
                       .gemm = how->gemm,
                       .profile = bench->profile,
                       .keep = grad != NULL,
                       .dropout = grad != NULL,
                       .seed = how->update_seed };
    struct tokens source, target;
    size_t mark = arena_mark(arena);
    profile_to(run.profile, PROFILE_BATCH);
    batch_take(&source, &target, how->corpus, pairs, n, copies_of(how, grad), how->seed, arena);
    if (how->mask.rate > 0)
        mask_take(&source, &target, how->corpus, pairs, n, &how->mask, arena);
    else if (how->corpus->is_text)
        batch_empty_source(&source, how->corpus->source.eos, arena);
    struct head_losses heads = how->heads;
    if (grad != NULL && heads.n > 0) {
        heads.sums = head_sums;
        if (how->corpus->links.n > 0)
            heads.guide = guide_take(&source, &target, how->corpus, pairs, n, arena);
        run.heads = &heads;
    }
    loss_batch(sum, NULL, grad, &source, &target, &criterion, how->net, &run);
    arena_reset(arena, mark);
}

/* The pairs of a list in micro-batches of about equal size. */
static void run_pairs(struct xent_sum *sum, struct head_sum *head_sums, struct weights *grad,
                      const int *pairs, int n, const struct lanes_run *how, const struct bench *bench)
{
    long n_rows = 0, rows = 0, part = 1;
    for (int i = 0; i < n; i++)
        n_rows += rows_of(how->corpus, pairs[i]);
    long n_parts = (n_rows * copies_of(how, grad) + MICRO_ROWS - 1) / MICRO_ROWS;
    int first = 0;
    for (int i = 0; i < n; i++) {
        rows += rows_of(how->corpus, pairs[i]);
        if (rows * n_parts >= part * n_rows) {
            run_micro(sum, head_sums, grad, pairs + first, i + 1 - first, how, bench);
            first = i + 1;
            part = rows * n_parts / n_rows + 1;
        }
    }
}

struct pass {
    struct lanes *lanes;
    const struct lanes_run *how;
    bool backward;
};

static void run_lane(void *arg, int i, int worker)
{
    const struct pass *pass = arg;
    struct lane *lane = &pass->lanes->lane[i];
    struct bench bench = bench_of(pass->lanes, pass->how, worker);
    lane->sum = (struct xent_sum){ 0 };
    memset(lane->heads, 0, sizeof(lane->heads));
    run_pairs(&lane->sum, lane->heads, pass->backward ? &lane->grad : NULL, lane->pairs.data,
              (int)lane->pairs.n, pass->how, &bench);
    profile_to(bench.profile, PROFILE_AWAY);
}

static struct xent_sum run_lanes(struct lanes *lanes, const struct lanes_run *how, bool backward)
{
    struct pass pass = { lanes, how, backward };
    pool_run(how->pool, lanes->n, run_lane, &pass);
    struct xent_sum sum = { 0 };
    for (int i = 0; i < lanes->n; i++) {
        sum.loss += lanes->lane[i].sum.loss;
        sum.nll += lanes->lane[i].sum.nll;
    }
    return sum;
}

static int labels_of(const struct lanes_run *how, int pair)
{
    return how->mask.rate > 0 ? mask_count(how->corpus, pair, &how->mask)
                              : corpus_length(&how->corpus->target, pair);
}

double lanes_labels(const struct lanes *lanes, const struct lanes_run *how)
{
    double n = 0;
    for (int l = 0; l < lanes->n; l++) {
        const struct ints *pairs = &lanes->lane[l].pairs;
        for (size_t i = 0; i < pairs->n; i++)
            n += labels_of(how, pairs->data[i]);
    }
    return n;
}

void lanes_add_heads(struct head_sum *sums, const struct lanes *lanes, int n)
{
    for (int l = 0; l < lanes->n; l++) {
        for (int i = 0; i < n; i++) {
            sums[i].value += lanes->lane[l].heads[i].value;
            sums[i].rows += lanes->lane[l].heads[i].rows;
        }
    }
}

struct xent_sum lanes_forward_backward(struct lanes *lanes, const struct lanes_run *how)
{
    return run_lanes(lanes, how, true);
}

struct xent_sum lanes_forward(struct lanes *lanes, const struct lanes_run *how)
{
    return run_lanes(lanes, how, false);
}

struct evaluation {
    const struct lanes *lanes;
    const struct lanes_run *how;
    const struct batch_plan *plan;
    struct xent_sum *sums; /* [plan->n] */
};

static void evaluate_batch(void *arg, int i, int worker)
{
    const struct evaluation *e = arg;
    struct bench bench = bench_of(e->lanes, e->how, worker);
    int n;
    const int *pairs = batch_pairs(e->plan, i, &n);
    run_pairs(&e->sums[i], NULL, NULL, pairs, n, e->how, &bench);
}

static enum tfm_status evaluate(struct xent_sum *sum, struct lanes *lanes, const struct lanes_run *how,
                                struct batch_plan *plan, struct tfm_error *err)
{
    batch_plan_make(plan, how->corpus, 0, 1, 0, MICRO_ROWS);
    struct evaluation e = { .lanes = lanes, .how = how, .plan = plan };
    e.sums = mem_alloc((size_t)plan->n * sizeof(*e.sums), err);
    if (e.sums == NULL)
        return TFM_ENOMEM;
    pool_run(how->pool, plan->n, evaluate_batch, &e);
    *sum = (struct xent_sum){ 0 };
    for (int i = 0; i < plan->n; i++) {
        sum->loss += e.sums[i].loss;
        sum->nll += e.sums[i].nll;
        sum->right += e.sums[i].right;
    }
    mem_free(e.sums);
    return TFM_OK;
}

enum tfm_status lanes_evaluate(struct xent_sum *sum, double *n_labels, struct lanes *lanes,
                               const struct lanes_run *how, struct tfm_error *err)
{
    const struct corpus *corpus = how->corpus;
    *n_labels = 0;
    for (int i = 0; i < corpus->n; i++)
        *n_labels += labels_of(how, i);
    struct batch_plan plan;
    TRY(batch_plan_init(&plan, corpus->n, err));
    enum tfm_status status = evaluate(sum, lanes, how, &plan, err);
    batch_plan_release(&plan);
    return status;
}
