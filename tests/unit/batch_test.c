/*
 * batch_test.c: an epoch holds every pair once, in batches within the limit and of a kind, in an order that
 * the seed and the epoch decide; batches become tokens; lanes share the work; and the loss and gradient of a
 * batch do not depend on the number of threads.
 */
#include "train/lanes.h"

#include "base/mem.h"
#include "toy_vocab.h"
#include "train/optimizer.h"

enum {
    N_PAIRS = 3000,
    WORDS = 120
};

static struct tfm_error err;

static void make_corpus(struct corpus *corpus, const struct spm *spm)
{
    struct pool *pool;
    struct text_block text = { 0 };
    struct str source = { 0 }, target = { 0 };
    for (int i = 0; i < N_PAIRS; i++) {
        toy_line(&source, i, 1);
        toy_line(&target, i, 2);
        toy_must(pairs_add(&text, (struct span){ source.data, source.len },
                           (struct span){ target.data, target.len }, (uint64_t)i, &err),
                 &err);
    }
    toy_must(pool_new(&pool, 2, &err), &err);
    toy_must(corpus_init(corpus, spm, spm, 100, 0, &err), &err);
    toy_must(corpus_add(corpus, &text, pool, &err), &err);
    pool_free(pool);
    pairs_release(&text);
    str_release(&source);
    str_release(&target);
}

static void test_plan(const struct corpus *corpus)
{
    struct batch_plan plan, again;
    toy_must(batch_plan_init(&plan, corpus->n, &err), &err);
    toy_must(batch_plan_init(&again, corpus->n, &err), &err);
    batch_plan_make(&plan, corpus, 1, 1, 0, WORDS);
    int *seen = calloc((size_t)corpus->n, sizeof(*seen));
    int n_over = 0, n_twice = 0, n_all = 0, n_unsorted = 0, n_small = 0;
    for (int b = 0; b < plan.n; b++) {
        int n, words = 0;
        const int *pairs = batch_pairs(&plan, b, &n);
        for (int i = 0; i < n; i++) {
            words += corpus_length(&corpus->target, pairs[i]);
            n_twice += seen[pairs[i]]++;
            n_unsorted += i > 0 && corpus_length(&corpus->target, pairs[i]) <
                                       corpus_length(&corpus->target, pairs[i - 1]);
        }
        n_over += words > WORDS;
        n_small += words < WORDS / 2;
        n_all += n;
    }
    CHECK(n_all == corpus->n && n_twice == 0, "%d batches hold every pair once", plan.n);
    CHECK_INT(n_over, 0, "none is over the limit");
    CHECK_INT(n_unsorted, 0, "sentences are sorted within a batch");
    CHECK(n_small < plan.n / 20, "few batches are far from full: %d", n_small);

    batch_plan_make(&again, corpus, 1, 1, 0, WORDS);
    CHECK(memcmp(plan.pairs, again.pairs, (size_t)corpus->n * sizeof(int)) == 0 &&
              memcmp(plan.turn, again.turn, (size_t)plan.n * sizeof(int)) == 0,
          "the same seed and epoch give the same order");
    batch_plan_make(&again, corpus, 1, 2, 0, WORDS);
    CHECK(memcmp(plan.pairs, again.pairs, (size_t)corpus->n * sizeof(int)) != 0,
          "another epoch another order");
    batch_plan_make(&again, corpus, 1, 1, 1, WORDS);
    CHECK(memcmp(plan.pairs, again.pairs, (size_t)corpus->n * sizeof(int)) != 0,
          "another window another order");
    batch_plan_make(&again, corpus, 2, 1, 0, WORDS);
    CHECK(memcmp(plan.pairs, again.pairs, (size_t)corpus->n * sizeof(int)) != 0,
          "another seed another order");
    batch_plan_make(&again, corpus, 1, 1, 0, 1);
    CHECK_INT(again.n, corpus->n, "a pair over the limit is a batch of its own");
    free(seen);
    batch_plan_release(&plan);
    batch_plan_release(&again);
}

static void test_join(const struct corpus *corpus)
{
    struct batch_plan plan;
    struct ints pairs = { 0 };
    toy_must(batch_plan_init(&plan, corpus->n, &err), &err);
    batch_plan_make(&plan, corpus, 1, 1, 0, WORDS);
    int *seen = calloc((size_t)corpus->n, sizeof(*seen)), n_wrong = 0, n_unsorted = 0, n_all = 0;
    for (int b = 10; b < 14; b++) {
        int n;
        const int *batch = batch_pairs(&plan, b, &n);
        toy_must(batch_join(&pairs, &plan, corpus, b, 1, &err), &err);
        CHECK(pairs.n == (size_t)n && memcmp(pairs.data, batch, pairs.n * sizeof(int)) == 0,
              "one batch alone is as it was");
        for (int i = 0; i < n; i++)
            seen[batch[i]]++;
        n_all += n;
    }
    toy_must(batch_join(&pairs, &plan, corpus, 10, 4, &err), &err);
    CHECK_INT((int)pairs.n, n_all, "four batches together");
    for (size_t i = 0; i < pairs.n; i++) {
        n_wrong += seen[pairs.data[i]]-- != 1;
        n_unsorted += i > 0 && corpus_length(&corpus->target, pairs.data[i]) <
                                   corpus_length(&corpus->target, pairs.data[i - 1]);
    }
    CHECK_INT(n_wrong, 0, "hold the pairs of all four, each once");
    CHECK_INT(n_unsorted, 0, "and are sorted as one");
    free(seen);
    ints_release(&pairs);
    batch_plan_release(&plan);
}

static void test_take(const struct corpus *corpus)
{
    struct arena arena;
    struct tokens source, target;
    const int pairs[] = { 7, 0, 7 };
    toy_must(arena_init(&arena, 1 << 20, &err), &err);
    batch_take(&source, &target, corpus, pairs, 3, 1, 5, &arena);
    int n = corpus_length(&corpus->target, 7);
    CHECK_INT(target.n, 2 * n + corpus_length(&corpus->target, 0), "tokens laid end to end");
    CHECK_INT(target.start[2], target.n - n, "the last begins where the second ends");
    CHECK_INT(target.ids[n - 1], corpus->target.eos, "each ends in </s>");
    CHECK(memcmp(target.ids, target.ids + target.start[2], (size_t)n * sizeof(int)) == 0,
          "the same pair twice");
    CHECK(source.key[0] == source.key[2] && source.key[0] != source.key[1], "keys name sentences");
    batch_empty_source(&source, corpus->source.eos, &arena);
    CHECK(source.n == 3 && source.start[1] == 1 && source.start[3] == 3 &&
              source.ids[0] == corpus->source.eos && source.ids[2] == corpus->source.eos &&
              source.key == target.key,
          "an empty source is a </s>");
    arena_release(&arena);
}

static struct config make_config(const struct spm *spm)
{
    struct config config;
    config_preset(&config, "tiny");
    config.encoder_layers = config.decoder_layers = 1;
    config.d_model = 16;
    config.ffn_dim = 24;
    config.heads = 2;
    config.source_vocab_size = config.vocab_size = spm_size(spm);
    config.eos_token_id = config.decoder_start_token_id = spm_eos(spm);
    config.unk_token_id = spm_unk(spm);
    return config;
}

struct outcome {
    struct xent_sum sum, evaluated;
    double norm;
    real *weights, *average;
};

/* Three updates in three lanes. */
static void run_updates(struct outcome *out, const struct corpus *corpus, const struct config *config,
                        int threads)
{
    struct params params;
    struct optimizer optimizer;
    struct lanes lanes;
    struct weights weights;
    struct pool *pool;
    struct batch_plan plan;
    struct net *net = mem_alloc(sizeof(*net), &err);
    const struct kern *kern = kern_for(cpu_best());
    toy_must(params_list(&params, config, &err), &err);
    toy_must(optimizer_init(&optimizer, params.size, true, &err), &err);
    toy_must(lanes_init(&lanes, &(struct lanes_size){ 3, threads, corpus_longest(corpus), 1, false }, config,
                        params.size, &err),
             &err);
    toy_must(pool_new(&pool, threads, &err), &err);
    toy_must(batch_plan_init(&plan, corpus->n, &err), &err);
    batch_plan_make(&plan, corpus, 1, 1, 0, 2500);
    params_init(&params, optimizer.weights, 1);
    params_bind(&weights, config, optimizer.weights);
    net_bind(net, config, &weights);
    struct lanes_run how = {
        .corpus = corpus, .net = net, .kern = kern, .pool = pool, .criterion = { 0.1f, 0 }, .seed = 1
    };
    for (int b = 0; b < 3; b++) {
        int n;
        const int *pairs = batch_pairs(&plan, b, &n);
        toy_must(lanes_split(&lanes, corpus, pairs, n, &err), &err);
        how.update_seed = (uint64_t)b + 1;
        out->sum = lanes_forward_backward(&lanes, &how);
        out->norm = optimizer_reduce(&optimizer, &lanes, kern, pool);
        struct optimizer_step step = {
            .update = b + 1, .learn_rate = 0.01, .gradient_scale = 1.0 / 2500, .average_rate = 0.001
        };
        optimizer_apply(&optimizer, &lanes, &step, kern, pool);
    }
    double n_target;
    toy_must(lanes_evaluate(&out->evaluated, &n_target, &lanes, &how, &err), &err);
    CHECK_NEAR(n_target, (double)corpus->target.start[corpus->n] + corpus->n, 0,
               "all target tokens are evaluated");
    double cleared = 0;
    for (int l = 0; l < 3; l++)
        cleared += kern->sum_squares(lanes.lane[l].gradient, params.size);
    CHECK_NEAR(cleared, 0, 0, "gradients are cleared after an update");
    size_t size = params.size * sizeof(real);
    out->weights = memcpy(malloc(size), optimizer.weights, size);
    out->average = memcpy(malloc(size), optimizer.average, size);
    mem_free(net);
    batch_plan_release(&plan);
    pool_free(pool);
    lanes_release(&lanes);
    optimizer_release(&optimizer);
    params_release(&params);
}

static void test_threads(const struct corpus *corpus, const struct config *config, size_t size)
{
    struct outcome one, four;
    run_updates(&one, corpus, config, 1);
    run_updates(&four, corpus, config, 4);
    CHECK(one.sum.loss == four.sum.loss && one.sum.nll == four.sum.nll,
          "loss %.17g with any number of threads", one.sum.loss);
    CHECK(one.norm == four.norm && one.norm > 0, "gradient norm %.17g", one.norm);
    CHECK(one.evaluated.nll == four.evaluated.nll, "cross-entropy %.17g", one.evaluated.nll);
    CHECK(memcmp(one.weights, four.weights, size * sizeof(real)) == 0, "weights after three updates");
    CHECK(memcmp(one.average, four.average, size * sizeof(real)) == 0, "and their running mean");
    free(one.weights);
    free(one.average);
    free(four.weights);
    free(four.average);
}

static void test_lanes(const struct corpus *corpus, const struct config *config)
{
    struct params params;
    struct lanes lanes;
    struct batch_plan plan;
    toy_must(params_list(&params, config, &err), &err);
    toy_must(lanes_init(&lanes, &(struct lanes_size){ 4, 1, corpus_longest(corpus), 1, false }, config,
                        params.size, &err),
             &err);
    toy_must(batch_plan_init(&plan, corpus->n, &err), &err);
    batch_plan_make(&plan, corpus, 1, 1, 0, 1000);
    int n, n_dealt = 0;
    const int *pairs = batch_pairs(&plan, 0, &n);
    toy_must(lanes_split(&lanes, corpus, pairs, n, &err), &err);
    long least = lanes.lane[0].n_rows, most = least;
    for (int l = 0; l < 4; l++) {
        n_dealt += (int)lanes.lane[l].pairs.n;
        least = lanes.lane[l].n_rows < least ? lanes.lane[l].n_rows : least;
        most = lanes.lane[l].n_rows > most ? lanes.lane[l].n_rows : most;
    }
    CHECK_INT(n_dealt, n, "every pair is dealt");
    CHECK(most - least < least / 4 + 10, "lanes are about equal: %ld to %ld", least, most);
    struct lanes none;
    CHECK_INT(lanes_init(&none, &(struct lanes_size){ 1, 1, 4000000, 1, false }, config, params.size, &err),
              TFM_ENOMEM, "pairs of millions of pieces are refused: %s", err.message);
    test_threads(corpus, config, params.size);
    batch_plan_release(&plan);
    lanes_release(&lanes);
    params_release(&params);
}

int main(void)
{
    struct spm *spm = toy_vocab();
    struct corpus corpus;
    make_corpus(&corpus, spm);
    struct config config = make_config(spm);
    test_plan(&corpus);
    test_join(&corpus);
    test_take(&corpus);
    test_lanes(&corpus, &config);
    corpus_release(&corpus);
    spm_free(spm);
    return check_done();
}
