/*
 * heads_test.c: statistics of attention heads: of a model that looks everywhere alike, where all of them are
 * known; of one with a head that is made to look at </s>; of a random one, against a second way through the
 * weights that attention_collect gives; and on any number of threads.
 */
#include "inspect/heads.h"

#include "base/mem.h"
#include "inspect/attention.h"
#include "toy_vocab.h"

enum {
    D = 8,
    HEADS = 2,
    LAYERS = 2,
    V = 12,
    EOS = 0,
    N_HEADS = 3 * LAYERS * HEADS
};

static struct tfm_error err;
static struct params params;
static real *block;
static struct weights weights;
static enum tfm_cell cell; /* of the decoder */
static int window;         /* of self-attention */
static struct tfm_model model;

static int source1[] = { 3, 7, 5, EOS }, target1[] = { 4, 2, 9, 8, EOS };
static int source2[] = { 6, EOS }, target2[] = { EOS };
static struct ints pairs[] = { { source1, 4, 4 }, { target1, 5, 5 }, { source2, 2, 2 }, { target2, 1, 1 } };

/* A model of random weights; what is changed in them takes part from the next pass on. */
static void make_model(void)
{
    model.config = (struct config){ .encoder_layers = LAYERS,
                                    .decoder_layers = LAYERS,
                                    .decoder_cell = cell,
                                    .attention_window = window,
                                    .d_model = D,
                                    .heads = HEADS,
                                    .ffn_dim = 12,
                                    .activation = TFM_ACTIVATION_RELU,
                                    .norm_epsilon = 1e-6,
                                    .source_vocab_size = V,
                                    .vocab_size = V,
                                    .eos_token_id = EOS,
                                    .decoder_start_token_id = EOS,
                                    .tie = TFM_TIE_ALL };
    if (block == NULL && params_list(&params, &model.config, &err) == TFM_OK)
        block = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 3);
    params_bind(&weights, &model.config, block);
    net_bind(&model.net, &model.config, &weights);
    model.kern = kern_for(CPU_REF);
}

static void measure(struct tfm_head *heads, int n, struct pool *pool)
{
    CHECK_INT(heads_measure(heads, &model, pairs, n, pool, &err), TFM_OK, "measured");
}

static void test_uniform(void)
{
    struct tfm_head heads[N_HEADS];
    make_model();
    for (int l = 0; l < LAYERS; l++) {
        memset(weights.encoder[l].self_q_w, 0, sizeof(real) * D * D);
        memset(weights.decoder[l].self_q_w, 0, sizeof(real) * D * D);
        memset(weights.decoder[l].cross_q_w, 0, sizeof(real) * D * D);
    }
    measure(heads, 1, NULL);
    CHECK_INT(heads_count(&model.config), N_HEADS, "heads of three parts");
    for (int i = 0; i < N_HEADS; i++) {
        CHECK_INT(heads[i].part * 100 + heads[i].layer * 10 + heads[i].head,
                  i / 4 * 100 + i / 2 % 2 * 10 + i % 2, "head %d is in its place", i);
        CHECK_INT(heads[i].verdict, TFM_HEAD_UNIFORM, "head %d is uniform", i);
        CHECK_NEAR(heads[i].relative_entropy, 1, 1e-6, "head %d: relative entropy", i);
    }
    CHECK_NEAR(heads[0].entropy, log(4), 1e-6, "encoder: entropy of 4 equal weights");
    CHECK_NEAR(heads[0].distance, (6 + 4 + 4 + 6) / 16.0, 1e-6, "encoder: distance");
    CHECK_NEAR(heads[0].on_end + heads[0].on_first + heads[0].on_itself, 0.75, 1e-6,
               "encoder: a quarter each");
    /* The decoder's rows see 1 to 5 keys; the first is left out. */
    CHECK_NEAR(heads[4].entropy, (log(2) + log(3) + log(4) + log(5)) / 4, 1e-6, "decoder: entropy");
    CHECK_NEAR(heads[4].distance, (1 / 2.0 + 3 / 3.0 + 6 / 4.0 + 10 / 5.0) / 4, 1e-6, "decoder: distance");
    CHECK_NEAR(heads[4].on_first, (1 / 2.0 + 1 / 3.0 + 1 / 4.0 + 1 / 5.0) / 4, 1e-6, "decoder: start symbol");
    CHECK_NEAR(heads[4].on_itself, heads[4].on_first, 1e-6, "decoder: itself");
    CHECK(isnan(heads[4].on_end), "the decoder reads no </s>");
    CHECK_NEAR(heads[8].entropy, log(4), 1e-6, "cross: entropy");
    CHECK_NEAR(heads[8].on_end, 0.25, 1e-6, "cross: </s>");
    CHECK(isnan(heads[8].distance) && isnan(heads[8].on_itself), "cross: nothing that needs one sentence");
}

static void test_stuck(void)
{
    struct tfm_head heads[N_HEADS];
    make_model();
    /* </s> alone has a large first component, and the queries of head 1 ask for it. */
    for (int v = 0; v < V; v++)
        weights.shared[v * D] = v == EOS ? 10 : 0;
    int first = D / HEADS;
    weights.encoder[0].self_k_w[first * D] = 10;
    weights.encoder[0].self_q_b[first] = 10;
    measure(heads, 2, NULL);
    CHECK_INT(heads[1].verdict, TFM_HEAD_ON_END, "a head that looks at </s>: %g", heads[1].on_end);
    CHECK(heads[1].relative_entropy < 0.2, "with little entropy: %g", heads[1].relative_entropy);
    CHECK(heads[0].verdict != TFM_HEAD_ON_END, "the one beside it does not: %g", heads[0].on_end);
}

/* The same numbers out of collected weights. */
static void check_collected(const struct tfm_head *h, int n)
{
    double rows = 0, entropy = 0, relative = 0, distance = 0, first = 0;
    for (int i = 0; i < n; i++) {
        struct attention a = {
            .part = h->part, .layer = h->layer, .n_layers = 1, .head = h->head, .n_heads = 1
        };
        if (attention_collect(&a, &model, &pairs[2 * i], &pairs[2 * i + 1], &err) != TFM_OK)
            continue;
        for (int q = 0; q < a.n_queries; q++) {
            int seen = h->part == TFM_DECODER ? q + 1 : a.n_keys;
            double sum = 0;
            if (seen < 2)
                continue;
            for (int k = 0; k < seen; k++) {
                double p = attention_map(&a, 0, 0)[q * a.n_keys + k];
                sum -= p * log(p);
                distance += p * (k > q ? k - q : q - k);
            }
            entropy += sum;
            relative += sum / log(seen);
            first += attention_map(&a, 0, 0)[q * a.n_keys];
            rows++;
        }
        attention_release(&a);
    }
    CHECK_NEAR(h->entropy, entropy / rows, 1e-6, "part %d, layer %d, head %d: entropy", h->part, h->layer,
               h->head);
    CHECK_NEAR(h->relative_entropy, relative / rows, 1e-6, "its relative entropy");
    CHECK_NEAR(h->on_first, first / rows, 1e-6, "its weight on the first key");
    if (h->part != TFM_CROSS)
        CHECK_NEAR(h->distance, distance / rows, 1e-6, "its distance");
}

static void test_random(void)
{
    struct tfm_head heads[N_HEADS], others[N_HEADS];
    struct pool *pool;
    make_model();
    measure(heads, 2, NULL);
    for (int i = 0; i < N_HEADS; i++)
        check_collected(&heads[i], 2);
    if (pool_new(&pool, 3, &err) != TFM_OK)
        return;
    measure(others, 2, pool);
    int n_other = 0;
    for (int i = 0; i < N_HEADS; i++)
        n_other += heads[i].entropy != others[i].entropy || heads[i].on_first != others[i].on_first;
    CHECK_INT(n_other, 0, "three threads give the digits of one");
    pool_free(pool);
}

/* A head that looks alike at the few keys of a window is uniform. */
static void test_window(void)
{
    struct tfm_head heads[N_HEADS];
    window = 1;
    make_model();
    memset(weights.encoder[0].self_q_w, 0, sizeof(real) * D * D);
    measure(heads, 1, NULL);
    window = 0;
    CHECK_INT(heads[0].verdict, TFM_HEAD_UNIFORM, "a head that is uniform in its window");
    CHECK_NEAR(heads[0].entropy, (2 * log(2) + 2 * log(3)) / 4, 1e-6, "its entropy is that of 2 and 3 keys");
    CHECK_NEAR(heads[0].relative_entropy, 1, 1e-6, "which is all that it can have");
}

static void test_ssru(void)
{
    struct tfm_head heads[N_HEADS];
    cell = TFM_CELL_SSRU;
    make_model();
    CHECK_INT(heads_count(&model.config), 2 * LAYERS * HEADS, "with SSRU: heads of two parts");
    measure(heads, 2, NULL);
    for (int i = 0; i < 2 * LAYERS * HEADS; i++) {
        CHECK_INT(heads[i].part, i < LAYERS * HEADS ? TFM_ENCODER : TFM_CROSS, "head %d is in its place", i);
        check_collected(&heads[i], 2);
    }
}

int main(void)
{
    model.source = model.target = toy_vocab();
    test_uniform();
    test_stuck();
    test_random();
    test_window();
    test_ssru();
    spm_free(model.source);
    mem_free(block);
    params_release(&params);
    return check_done();
}
