/*
 * block_test.c: layers that a training leaves out (Fan et al. 2019): as many as it should, each for itself, the same
 * whatever the sentences are; such a layer is the identity forward and back, and translation knows none.
 */
#include "base/mem.h"
#include "check.h"
#include "model/net.h"

#define D 8
#define N 5

static struct net net;
static struct weights grad;
static struct params params;
static real *gradient;
static struct arena arena;

static void make_net(struct config *config, bool pre_norm)
{
    static struct weights weights;
    static real *block;
    struct tfm_error err;
    *config = (struct config){ .encoder_layers = 2,
                               .decoder_layers = 1,
                               .d_model = D,
                               .heads = 2,
                               .ffn_dim = 12,
                               .pre_norm = pre_norm,
                               .norm_epsilon = 1e-6,
                               .source_vocab_size = 10,
                               .vocab_size = 10,
                               .encoder_layerdrop = 0.3,
                               .decoder_layerdrop = 0.3 };
    if (block == NULL && arena_init(&arena, (size_t)1 << 24, &err) != TFM_OK)
        exit(1);
    params_release(&params);
    mem_free(block);
    mem_free(gradient);
    if (params_list(&params, config, &err) != TFM_OK)
        exit(1);
    block = mem_alloc(params.size * sizeof(real), &err);
    gradient = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 1);
    params_bind(&weights, config, block);
    params_bind(&grad, config, gradient);
    net_bind(&net, config, &weights);
}

/* One layer over one sentence; y tells whether it was left out. */
static bool is_identity(const struct block *block, bool dropout, uint64_t seed, uint64_t sentence)
{
    real x[N * D], y[N * D], memory[3 * D] = { 0 };
    uint64_t keys[N];
    for (int i = 0; i < N * D; i++)
        x[i] = (real)(i % 7) - 3;
    for (int i = 0; i < N; i++)
        keys[i] = sentence + (uint64_t)i;
    struct attn_segment self = { .n_q = N, .n_k = N }, cross = { .n_q = N, .n_k = 3 };
    struct block_input in = { .n = N,
                              .keys = keys,
                              .self = &self,
                              .n_self = 1,
                              .place = { .position = &net.source_position },
                              .cross = &cross,
                              .n_cross = 1 };
    struct run run = { .arena = &arena, .kern = kern_for(CPU_REF), .dropout = dropout, .seed = seed };
    real *cross_kv = ARENA_TAKE(&arena, real, 3 * 2 * D);
    linear_forward(cross_kv, memory, &net.decoder[0].cross_kv, 3, &run);
    block_forward(y, NULL, x, &in, cross_kv, NULL, block, &run);
    arena_reset(&arena, 0);
    return memcmp(x, y, sizeof(x)) == 0;
}

static void test_choice(void)
{
    const struct block *layers[] = { &net.encoder[0], &net.encoder[1], &net.decoder[0] };
    int left_out[3] = { 0 }, both = 0, with_decoder = 0, changed = 0, in_translation = 0, seeds = 4000;
    for (int seed = 0; seed < seeds; seed++) {
        bool is_out[3];
        for (int l = 0; l < 3; l++) {
            is_out[l] = is_identity(layers[l], true, (uint64_t)seed, 1);
            left_out[l] += is_out[l];
        }
        both += is_out[0] && is_out[1];
        with_decoder += is_out[0] && is_out[2];
        changed += is_identity(layers[0], true, (uint64_t)seed, 1000) != is_out[0];
        in_translation += is_identity(layers[0], false, (uint64_t)seed, 1);
    }
    for (int l = 0; l < 3; l++)
        CHECK_NEAR((double)left_out[l] / seeds, 0.3, 0.03, "layer %d is left out as often as it should", l);
    CHECK_NEAR((double)both / seeds, 0.09, 0.02, "two layers of a stack each for itself");
    CHECK_NEAR((double)with_decoder / seeds, 0.09, 0.02, "and so encoder and decoder");
    CHECK_INT(changed, 0, "the sentences do not matter");
    CHECK_INT(in_translation, 0, "without dropout no layer is left out");
}

static void test_backward(const char *name)
{
    struct run run = { .arena = &arena, .kern = kern_for(CPU_REF), .keep = true, .dropout = true };
    while (!is_identity(&net.encoder[0], true, run.seed, 1))
        run.seed++;
    real x[N * D], y[N * D], dx[N * D];
    uint64_t keys[N] = { 0 };
    for (int i = 0; i < N * D; i++)
        x[i] = (real)(i % 5);
    struct attn_segment self = { .n_q = N, .n_k = N };
    struct block_input in = {
        .n = N, .keys = keys, .self = &self, .n_self = 1, .place = { .position = &net.source_position }
    };
    struct block_acts acts;
    memset(gradient, 0, params.size * sizeof(real));
    block_forward(y, &acts, x, &in, NULL, NULL, &net.encoder[0], &run);
    block_backward(dx, NULL, &grad.encoder[0], x, &acts, &in, &net.encoder[0], &run);
    bool is_zero = true;
    for (size_t i = 0; i < params.size; i++)
        is_zero &= gradient[i] == 0;
    CHECK(memcmp(x, y, sizeof(x)) == 0 && memcmp(x, dx, sizeof(x)) == 0,
          "%s: forward and back it is the identity", name);
    CHECK(is_zero, "%s: its weights get no gradient", name);
    arena_reset(&arena, 0);
}

int main(void)
{
    struct config config;
    make_net(&config, true);
    test_choice();
    test_backward("pre-norm");
    make_net(&config, false);
    test_backward("post-norm");
    return check_done();
}
