/*
 * grad_double_test.c: every gradient of whole small models against central differences, in double:
 *     dL/dw ~ (L(w + e) - L(w - e)) / 2e
 * post-norm and pre-norm, every way to tie embeddings, self-attention, SSRU and recurrent layers, without dropout and with all three kinds of it
 * (dropout is a function of its keys, so the loss stays a smooth function of the weights), and with R-Drop,
 * whose divergence is no constant of either pass. A fixed tolerance
 * of 1e-6 relative to the largest gradient of the tensor.
 */
#include "base/rng.h"
#include "base/mem.h"
#include "check.h"
#include "model/loss.h"

struct problem {
    struct config config;
    struct params params;
    struct weights weights, grad;
    real *block, *grad_block;
    struct tokens source, target;
    struct run run;
    struct criterion criterion;
};

static const int source_ids[] = { 3, 5, 2, 0, 7, 0, 4, 4, 9, 1, 0 }, source_start[] = { 0, 4, 6, 11 };
static const int target_ids[] = { 6, 0, 2, 8, 10, 0, 3, 3, 0 }, target_start[] = { 0, 2, 6, 9 };
static const uint64_t sentence_keys[] = { 11, 12, 13 };

/* The same sentences twice, for R-Drop. */
static const int source_twice[] = { 3, 5, 2, 0, 7, 0, 4, 4, 9, 1, 0, 3, 5, 2, 0, 7, 0, 4, 4, 9, 1, 0 };
static const int source_starts[] = { 0, 4, 6, 11, 15, 17, 22 };
static const int target_twice[] = { 6, 0, 2, 8, 10, 0, 3, 3, 0, 6, 0, 2, 8, 10, 0, 3, 3, 0 };
static const int target_starts[] = { 0, 2, 6, 9, 11, 15, 18 };
static const uint64_t twin_keys[] = { 11, 12, 13, 21, 22, 23 };

static double loss_of(const struct problem *p, bool gradient)
{
    struct xent_sum sum = { 0 };
    struct net net;
    struct weights grad = p->grad;
    net_bind(&net, &p->config, &p->weights);
    loss_batch(&sum, NULL, gradient ? &grad : NULL, &p->source, &p->target, &p->criterion, &net, &p->run);
    return sum.loss;
}

static void check_gradients(const char *name, struct problem *p)
{
    memset(p->grad_block, 0, sizeof(real) * p->params.size);
    loss_of(p, true);
    double worst = 0;
    const char *worst_name = "";
    for (int t = 0; t < p->params.n; t++) {
        const struct param *param = &p->params.list[t];
        size_t size = (size_t)param->rows * (size_t)param->cols;
        double largest = 1e-3, difference = 0;
        for (size_t i = 0; i < size; i++)
            largest = fmax(largest, fabs(p->grad_block[param->offset + i]));
        for (size_t i = 0; i < size; i++) {
            real *w = p->block + param->offset + i, old = *w;
            double e = 1e-5;
            *w = old + e;
            double up = loss_of(p, false);
            *w = old - e;
            double down = loss_of(p, false);
            *w = old;
            difference = fmax(difference, fabs((up - down) / (2 * e) - p->grad_block[param->offset + i]));
        }
        if (difference / largest > worst) {
            worst = difference / largest;
            worst_name = param->name;
        }
    }
    CHECK(worst < 1e-6, "%s: every gradient of every tensor", name);
    check_note("%s: largest relative difference %.1e, in %s", name, worst, worst_name);
}

static void check_config(const char *name, const struct config *config, bool dropout, real r_drop);

/* Recurrent layers, two of each, with all dropout or none. */
static void check_rnn(const char *name, enum tfm_rnn_cell cell, enum tfm_rnn_attention attention,
                      enum tfm_tie tie, bool dropout, real r_drop)
{
    check_config(name,
                 &(struct config){ .encoder_layers = 2,
                                   .decoder_layers = 2,
                                   .d_model = 8,
                                   .heads = 1,
                                   .ffn_dim = 8,
                                   .arch = TFM_ARCH_RNN,
                                   .rnn_cell = cell,
                                   .rnn_attention = attention,
                                   .norm_epsilon = 1e-5,
                                   .scale_embedding = true,
                                   .source_vocab_size = tie == TFM_TIE_ALL ? 13 : 11,
                                   .vocab_size = 13,
                                   .tie = tie,
                                   .unk_token_id = 1,
                                   .dropout = 0.1,
                                   .attention_dropout = 0.2,
                                   .activation_dropout = 0.15 },
                 dropout, r_drop);
}

static void check_model(const char *name, bool pre_norm, enum tfm_tie tie, enum tfm_cell cell, bool dropout,
                        real r_drop)
{
    check_config(name,
                 &(struct config){ .encoder_layers = 2,
                                   .decoder_layers = 2,
                                   .d_model = 8,
                                   .heads = 2,
                                   .ffn_dim = 12,
                                   .pre_norm = pre_norm,
                                   .decoder_cell = cell,
                                   .norm_epsilon = 1e-5,
                                   .scale_embedding = true,
                                   .source_vocab_size = tie == TFM_TIE_ALL ? 13 : 11,
                                   .vocab_size = 13,
                                   .tie = tie,
                                   .unk_token_id = 1,
                                   .dropout = 0.1,
                                   .attention_dropout = 0.2,
                                   .activation_dropout = 0.15 },
                 dropout, r_drop);
}

static void check_config(const char *name, const struct config *config, bool dropout, real r_drop)
{
    struct tfm_error err;
    struct problem p = {
        .config = *config,
        .source = { 3, 11, source_ids, source_start, sentence_keys },
        .target = { 3, 9, target_ids, target_start, sentence_keys },
        .criterion = { 0.1, r_drop },
    };
    struct arena arena;
    if (r_drop > 0) {
        p.source = (struct tokens){ 6, 22, source_twice, source_starts, twin_keys };
        p.target = (struct tokens){ 6, 18, target_twice, target_starts, twin_keys };
    }
    CHECK(params_list(&p.params, &p.config, &err) == TFM_OK && arena_init(&arena, 64 << 20, &err) == TFM_OK,
          "%s: set up", name);
    p.block = mem_alloc(sizeof(real) * p.params.size, &err);
    p.grad_block = mem_alloc(sizeof(real) * p.params.size, &err);
    params_init(&p.params, p.block, 5);
    for (size_t i = 0; i < p.params.size; i++) /* so that biases and gains take part */
        p.block[i] += 0.1 * rng_normal(i);
    params_bind(&p.weights, &p.config, p.block);
    params_bind(&p.grad, &p.config, p.grad_block);
    p.run = (struct run){
        .arena = &arena, .kern = kern_for(CPU_REF), .keep = true, .dropout = dropout, .seed = 77
    };
    check_gradients(name, &p);
    CHECK_INT((long long)arena.used, 0, "%s: the arena is given back", name);
    mem_free(p.block);
    mem_free(p.grad_block);
    params_release(&p.params);
    arena_release(&arena);
}

int main(void)
{
    check_model("post-norm, tied", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, false, 0);
    check_model("pre-norm, tied", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, false, 0);
    check_model("post-norm, target tied", false, TFM_TIE_TARGET, TFM_CELL_ATTENTION, false, 0);
    check_model("pre-norm, untied", true, TFM_TIE_NONE, TFM_CELL_ATTENTION, false, 0);
    check_model("post-norm with dropout", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, true, 0);
    check_model("pre-norm with dropout", true, TFM_TIE_NONE, TFM_CELL_ATTENTION, true, 0);
    check_model("post-norm with R-Drop", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, true, 5);
    check_model("R-Drop without dropout", false, TFM_TIE_NONE, TFM_CELL_ATTENTION, false, 5);
    check_model("SSRU, post-norm", false, TFM_TIE_ALL, TFM_CELL_SSRU, false, 0);
    check_model("SSRU, pre-norm", true, TFM_TIE_TARGET, TFM_CELL_SSRU, false, 0);
    check_model("SSRU, post-norm with dropout", false, TFM_TIE_NONE, TFM_CELL_SSRU, true, 0);
    check_model("SSRU, pre-norm with dropout", true, TFM_TIE_ALL, TFM_CELL_SSRU, true, 0);
    check_model("SSRU with R-Drop", false, TFM_TIE_ALL, TFM_CELL_SSRU, true, 5);
    check_rnn("GRU, additive", TFM_RNN_GRU, TFM_RNN_ADDITIVE, TFM_TIE_ALL, false, 0);
    check_rnn("LSTM, dot", TFM_RNN_LSTM, TFM_RNN_DOT, TFM_TIE_TARGET, false, 0);
    check_rnn("GRU, general", TFM_RNN_GRU, TFM_RNN_GENERAL, TFM_TIE_NONE, false, 0);
    check_rnn("LSTM, additive, with dropout", TFM_RNN_LSTM, TFM_RNN_ADDITIVE, TFM_TIE_NONE, true, 0);
    check_rnn("GRU, dot, with dropout", TFM_RNN_GRU, TFM_RNN_DOT, TFM_TIE_ALL, true, 0);
    check_rnn("GRU with R-Drop", TFM_RNN_GRU, TFM_RNN_ADDITIVE, TFM_TIE_ALL, true, 5);
    return check_done();
}
