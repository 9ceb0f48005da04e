/*
 * grad_double_test.c: every gradient of whole small models against central differences, in double:
 *     dL/dw ~ (L(w + e) - L(w - e)) / 2e
 * post-norm and pre-norm, layer and RMS norm, every activation, every way to tie embeddings, self-attention, SSRU,
 * recurrent layers, a decoder alone, also as a language model, and an encoder alone, every kind of positions and
 * of attention, without dropout and with all three kinds of it (dropout is
 * a function of its keys, so the loss stays a smooth function of the weights), with layers left out, and with R-Drop,
 * whose divergence is no constant of either pass; and with losses on single heads. A fixed tolerance of 1e-6 relative to the largest gradient of the tensor.
 */
#include "base/rng.h"
#include "base/mem.h"
#include "check.h"
#include "model/loss.h"
#include "nn/head_loss.h"

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

/* A language model reads nothing before its text. */
static const int no_source[6] = { 0 }, no_source_start[] = { 0, 1, 2, 3, 4, 5, 6 };

/* An encoder alone predicts some pieces of its source. */
static const int label_ids[] = { 8, 2, 12, 4, 1 }, label_rows[] = { 0, 2, 4, 7, 9 },
                 label_start[] = { 0, 2, 3, 5 };
static const int labels_twice[] = { 8, 2, 12, 4, 1, 8, 2, 12, 4, 1 },
                 label_rows_twice[] = { 0, 2, 4, 7, 9, 11, 13, 15, 18, 20 },
                 label_starts[] = { 0, 2, 3, 5, 7, 8, 10 };

/* Adds up the terms on single heads, each as the training weighs it. */
static double loss_of_heads(const struct head_losses *heads)
{
    double loss = 0;
    for (int t = 0; heads != NULL && t < heads->n; t++)
        loss += heads->sums[t].value * heads->list[t].weight * heads->row_weight[heads->list[t].part];
    return loss;
}

static double loss_of(const struct problem *p, bool gradient)
{
    if (p->run.heads != NULL)
        memset(p->run.heads->sums, 0, sizeof(*p->run.heads->sums) * (size_t)p->run.heads->n);
    struct xent_sum sum = { 0 };
    struct net net;
    struct weights grad = p->grad;
    net_bind(&net, &p->config, &p->weights);
    loss_batch(&sum, NULL, gradient ? &grad : NULL, &p->source, &p->target, &p->criterion, &net, &p->run);
    return sum.loss + loss_of_heads(p->run.heads);
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
            difference =
                check_worse(difference, fabs((up - down) / (2 * e) - p->grad_block[param->offset + i]));
        }
        if (!(difference / largest <= worst)) {
            worst = difference / largest;
            worst_name = param->name;
        }
    }
    CHECK(worst < 1e-6, "%s: every gradient of every tensor", name);
    check_note("%s: largest relative difference %.1e, in %s", name, worst, worst_name);
}

static struct config config_of(bool pre_norm, enum tfm_tie tie, enum tfm_cell cell)
{
    return (struct config){ .encoder_layers = 2,
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
                            .activation_dropout = 0.15 };
}

/* heads NULL: no losses on single heads. */
static void check_losses(const char *name, const struct config *config, struct head_losses *heads,
                         bool dropout, real r_drop)
{
    struct tfm_error err;
    struct problem p = {
        .config = *config,
        .source = { 3, 11, source_ids, source_start, sentence_keys, NULL },
        .target = { 3, 9, target_ids, target_start, sentence_keys, NULL },
        .criterion = { 0.1, r_drop },
    };
    struct arena arena;
    if (config->architecture == CONFIG_ENCODER_ONLY)
        p.target = (struct tokens){ 3, 5, label_ids, label_start, sentence_keys, label_rows };
    if (r_drop > 0) {
        p.source = (struct tokens){ 6, 22, source_twice, source_starts, twin_keys, NULL };
        p.target = config->architecture == CONFIG_ENCODER_ONLY
                       ? (struct tokens){ 6, 10, labels_twice, label_starts, twin_keys, label_rows_twice }
                       : (struct tokens){ 6, 18, target_twice, target_starts, twin_keys, NULL };
    }
    if (config->task == CONFIG_LANGUAGE_MODEL)
        p.source = (struct tokens){ p.target.n_sentences, p.target.n_sentences, no_source,
                                    no_source_start,      p.target.key,         NULL };
    CHECK(params_list(&p.params, &p.config, &err) == TFM_OK && arena_init(&arena, 64 << 20, &err) == TFM_OK,
          "%s: set up", name);
    p.block = mem_alloc(sizeof(real) * p.params.size, &err);
    p.grad_block = mem_alloc(sizeof(real) * p.params.size, &err);
    params_init(&p.params, p.block, 5);
    for (size_t i = 0; i < p.params.size; i++) /* so that biases and gains take part */
        p.block[i] += 0.1 * rng_normal(i);
    params_bind(&p.weights, &p.config, p.block);
    params_bind(&p.grad, &p.config, p.grad_block);
    p.run = (struct run){ .arena = &arena,
                          .kern = kern_for(CPU_REF),
                          .keep = true,
                          .dropout = dropout,
                          .heads = heads,
                          .seed = 77 };
    check_gradients(name, &p);
    CHECK_INT((long long)arena.used, 0, "%s: the arena is given back", name);
    mem_free(p.block);
    mem_free(p.grad_block);
    params_release(&p.params);
    arena_release(&arena);
}

static void check_config(const char *name, const struct config *config, bool dropout, real r_drop)
{
    check_losses(name, config, NULL, dropout, r_drop);
}

static void check_model(const char *name, bool pre_norm, enum tfm_tie tie, enum tfm_cell cell, bool dropout,
                        real r_drop)
{
    struct config config = config_of(pre_norm, tie, cell);
    check_config(name, &config, dropout, r_drop);
}

/* Norm, activation, and layers that are left out: at 0.5 the seed leaves out the encoder's first and the decoder's last. */
static void check_parts(const char *name, bool pre_norm, enum tfm_norm norm, enum tfm_activation activation,
                        bool dropout, double layerdrop)
{
    struct config config = config_of(pre_norm, TFM_TIE_ALL, TFM_CELL_ATTENTION);
    config.norm = norm;
    config.activation = activation;
    config.encoder_layerdrop = config.decoder_layerdrop = layerdrop;
    check_config(name, &config, dropout, 0);
}

/* Positions and attention: the fields of `variant` that tell them, and its heads where they are not 0. */
static void check_variant(const char *name, const struct config *variant, bool pre_norm, enum tfm_tie tie,
                          enum tfm_cell cell, bool dropout)
{
    struct config config = config_of(pre_norm, tie, cell);
    config.heads = variant->heads > 0 ? variant->heads : config.heads;
    config.positions = variant->positions;
    config.max_positions = variant->max_positions;
    config.kv_heads = variant->kv_heads;
    config.attention_function = variant->attention_function;
    config.attention_scale = variant->attention_scale;
    config.attention_window = variant->attention_window;
    check_config(name, &config, dropout, 0);
}

static void check_positions(void)
{
    struct config variant;
    for (int dropout = 0; dropout <= 1; dropout++) {
        variant = (struct config){ .positions = TFM_POSITIONS_INTERLEAVED };
        check_variant("interleaved sinusoids", &variant, false, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .positions = TFM_POSITIONS_LEARNED, .max_positions = 6 };
        check_variant("learned positions", &variant, true, TFM_TIE_NONE, TFM_CELL_ATTENTION, dropout);
        variant.max_positions = 3;
        check_variant("fewer learned positions than a line has", &variant, false, TFM_TIE_ALL,
                      TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .positions = TFM_POSITIONS_ROPE };
        check_variant("RoPE", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .positions = TFM_POSITIONS_ALIBI };
        check_variant("ALiBi", &variant, false, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .positions = TFM_POSITIONS_RELATIVE };
        check_variant("relative biases", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        check_variant("relative biases with SSRU", &variant, true, TFM_TIE_ALL, TFM_CELL_SSRU, dropout);
        variant = (struct config){ .positions = TFM_POSITIONS_NONE };
        check_variant("no positions", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
    }
}

static void check_attention(void)
{
    struct config variant;
    for (int dropout = 0; dropout <= 1; dropout++) {
        variant = (struct config){ .heads = 8 };
        check_variant("heads of one column", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .heads = 1 };
        check_variant("one head", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .heads = 4, .kv_heads = 2, .positions = TFM_POSITIONS_ROPE };
        check_variant("grouped queries with RoPE", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .kv_heads = 1, .attention_scale = TFM_SCALE_NONE };
        check_variant("multi-query attention without scale", &variant, false, TFM_TIE_NONE,
                      TFM_CELL_ATTENTION, dropout);
        variant = (struct config){ .attention_window = 1, .positions = TFM_POSITIONS_RELATIVE };
        check_variant("a window with relative biases", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION,
                      dropout);
        variant = (struct config){ .attention_function = TFM_ATTENTION_ADDITIVE };
        check_variant("additive attention", &variant, true, TFM_TIE_ALL, TFM_CELL_ATTENTION, dropout);
        variant.heads = 4;
        variant.kv_heads = 2;
        variant.attention_window = 2;
        variant.positions = TFM_POSITIONS_RELATIVE;
        check_variant("additive attention, grouped, relative", &variant, false, TFM_TIE_ALL,
                      TFM_CELL_ATTENTION, dropout);
        check_variant("additive attention with SSRU", &variant, true, TFM_TIE_ALL, TFM_CELL_SSRU, dropout);
    }
}

/* Recurrent layers, two of each, with all dropout or none. */
static void check_rnn(const char *name, enum tfm_rnn_cell cell, enum tfm_rnn_attention attention,
                      enum tfm_tie tie, bool dropout, real r_drop)
{
    struct config config = config_of(false, tie, TFM_CELL_ATTENTION);
    config.arch = TFM_ARCH_RNN;
    config.rnn_cell = cell;
    config.rnn_attention = attention;
    config.heads = 1;
    config.positions = TFM_POSITIONS_NONE;
    check_config(name, &config, dropout, r_drop);
}

/* ---- losses on single heads ---- */

static const struct guide_link one_link[] = { { 1, 1 } },
                               three_links[] = { { 0, 0.25 }, { 2, 0.5 }, { 3, 0.25 } };
/* Of the nine target rows some are guided: by links that their sources have. */
static const struct guide_row guide[] = { { three_links, 3 }, { NULL, 0 },     { one_link, 1 },
                                          { one_link, 1 },    { NULL, 0 },     { NULL, 0 },
                                          { three_links, 3 }, { one_link, 1 }, { NULL, 0 } };

/* The encoder's and the decoder's own attention have terms where there is such attention. Terms that together are
 * larger than the cross-entropy would leave too few digits for differences. */
static void check_heads(const char *name, const struct config *variant, bool pre_norm, enum tfm_cell cell,
                        bool dropout)
{
    static const struct head_loss list[] = {
        { TFM_CROSS, 0, -1, TFM_HEAD_ALIGNMENT_CE, 0.4 }, { TFM_CROSS, 0, 0, TFM_HEAD_ENTROPY, -0.6 },
        { TFM_CROSS, 0, 0, TFM_HEAD_ALIGNMENT_MSE, 1 },   { TFM_ENCODER, 1, 1, TFM_HEAD_ENTROPY, 0.5 },
        { TFM_ENCODER, 0, 0, TFM_HEAD_SPARSITY, 0.6 },    { TFM_ENCODER, 1, -1, TFM_HEAD_DISTANCE, 0.2 },
        { TFM_DECODER, 1, 0, TFM_HEAD_SPARSITY, -0.5 },   { TFM_DECODER, 0, 1, TFM_HEAD_DISTANCE, -0.3 },
    };
    struct head_sum sums[sizeof(list) / sizeof(list[0])];
    struct head_losses heads = { .list = list,
                                 .n = sizeof(list) / sizeof(list[0]),
                                 .row_weight = { 0.8, 1, 1 },
                                 .guide = guide,
                                 .sums = sums };
    struct config config = config_of(pre_norm, TFM_TIE_ALL, cell);
    config.kv_heads = variant->kv_heads;
    config.positions = variant->positions;
    config.attention_function = variant->attention_function;
    config.attention_window = variant->attention_window;
    config.arch = variant->arch;
    config.rnn_attention = variant->rnn_attention;
    if (config.arch == TFM_ARCH_RNN) {
        config.heads = 1;
        config.positions = TFM_POSITIONS_NONE;
    }
    check_losses(name, &config, &heads, dropout, 0);
    CHECK(sums[0].rows == 5 * config.heads && sums[2].rows == 5, "%s: guided rows are counted", name);
    if (config.arch == TFM_ARCH_TRANSFORMER)
        CHECK(sums[3].rows == 11 && sums[5].rows == 22, "%s: and the others, for each head", name);
}

static void check_head_losses(void)
{
    struct config variant = { 0 };
    check_heads("losses on heads, post-norm", &variant, false, TFM_CELL_ATTENTION, false);
    check_heads("losses on heads with dropout", &variant, true, TFM_CELL_ATTENTION, true);
    check_heads("losses on heads, SSRU", &variant, true, TFM_CELL_SSRU, false);
    variant = (struct config){ .kv_heads = 1, .positions = TFM_POSITIONS_RELATIVE, .attention_window = 2 };
    check_heads("losses on heads, shared keys, biases, a window", &variant, true, TFM_CELL_ATTENTION, false);
    variant =
        (struct config){ .attention_function = TFM_ATTENTION_ADDITIVE, .positions = TFM_POSITIONS_ALIBI };
    check_heads("losses on heads, additive with ALiBi", &variant, false, TFM_CELL_ATTENTION, true);
    variant = (struct config){ .arch = TFM_ARCH_RNN, .rnn_attention = TFM_RNN_ADDITIVE };
    check_heads("losses on the head of a recurrent decoder", &variant, false, TFM_CELL_ATTENTION, false);
    variant.rnn_attention = TFM_RNN_GENERAL;
    check_heads("losses on the head of a recurrent decoder with dropout", &variant, false, TFM_CELL_ATTENTION,
                true);
}

static struct config decoder_config(bool pre_norm, enum tfm_tie tie, enum tfm_positions positions)
{
    struct config config = config_of(pre_norm, tie, TFM_CELL_ATTENTION);
    config.architecture = CONFIG_DECODER_ONLY;
    config.encoder_layers = 0;
    config.positions = positions;
    config.max_positions = positions == TFM_POSITIONS_LEARNED ? 4 : 0;
    return config;
}

/* A decoder alone, two layers of it, over source and target as one sequence. */
static void check_decoder(const char *name, bool pre_norm, enum tfm_tie tie, enum tfm_positions positions,
                          bool dropout, real r_drop)
{
    struct config config = decoder_config(pre_norm, tie, positions);
    check_config(name, &config, dropout, r_drop);
}

/* The same over a text, a language model. */
static void check_language(const char *name, bool pre_norm, enum tfm_positions positions, bool dropout,
                           real r_drop)
{
    struct config config = decoder_config(pre_norm, TFM_TIE_ALL, positions);
    config.task = CONFIG_LANGUAGE_MODEL;
    check_config(name, &config, dropout, r_drop);
}

/* An encoder alone, a masked language model. */
static void check_encoder(const char *name, bool pre_norm, enum tfm_tie tie, enum tfm_positions positions,
                          bool dropout, real r_drop)
{
    struct config config = config_of(pre_norm, tie, TFM_CELL_ATTENTION);
    config.architecture = CONFIG_ENCODER_ONLY;
    config.decoder_layers = 0;
    config.source_vocab_size = config.vocab_size;
    config.positions = positions;
    config.max_positions = positions == TFM_POSITIONS_LEARNED ? 4 : 0;
    check_config(name, &config, dropout, r_drop);
}

int main(void)
{
    check_head_losses();
    check_positions();
    check_attention();
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
    check_parts("RMS, post-norm", false, TFM_RMS_NORM, TFM_ACTIVATION_RELU, false, 0);
    check_parts("RMS, pre-norm", true, TFM_RMS_NORM, TFM_ACTIVATION_RELU, true, 0);
    check_parts("GELU", true, TFM_LAYER_NORM, TFM_ACTIVATION_GELU, false, 0);
    check_parts("GELU by tanh", false, TFM_LAYER_NORM, TFM_ACTIVATION_GELU_TANH, false, 0);
    check_parts("swish with dropout", false, TFM_LAYER_NORM, TFM_ACTIVATION_SWISH, true, 0);
    check_parts("SwiGLU, RMS", true, TFM_RMS_NORM, TFM_ACTIVATION_SWIGLU, false, 0);
    check_parts("SwiGLU with dropout", false, TFM_LAYER_NORM, TFM_ACTIVATION_SWIGLU, true, 0);
    check_parts("GEGLU", false, TFM_LAYER_NORM, TFM_ACTIVATION_GEGLU, false, 0);
    check_parts("layers left out, post-norm", false, TFM_LAYER_NORM, TFM_ACTIVATION_RELU, true, 0.5);
    check_parts("layers left out, pre-norm", true, TFM_LAYER_NORM, TFM_ACTIVATION_RELU, true, 0.5);
    check_decoder("a decoder alone, post-norm", false, TFM_TIE_ALL, TFM_POSITIONS_HALVES, false, 0);
    check_decoder("a decoder alone, pre-norm, RoPE", true, TFM_TIE_NONE, TFM_POSITIONS_ROPE, false, 0);
    check_decoder("a decoder alone, target tied, learned", true, TFM_TIE_TARGET, TFM_POSITIONS_LEARNED, false,
                  0);
    check_decoder("a decoder alone with dropout, relative", false, TFM_TIE_ALL, TFM_POSITIONS_RELATIVE, true,
                  0);
    check_decoder("a decoder alone with R-Drop", true, TFM_TIE_ALL, TFM_POSITIONS_HALVES, true, 5);
    check_language("a language model, post-norm, learned", false, TFM_POSITIONS_LEARNED, false, 0);
    check_language("a language model with dropout, RoPE", true, TFM_POSITIONS_ROPE, true, 0);
    check_language("a language model with R-Drop, relative", true, TFM_POSITIONS_RELATIVE, true, 5);
    check_encoder("an encoder alone, post-norm", false, TFM_TIE_ALL, TFM_POSITIONS_HALVES, false, 0);
    check_encoder("an encoder alone, pre-norm, untied, learned", true, TFM_TIE_NONE, TFM_POSITIONS_LEARNED,
                  false, 0);
    check_encoder("an encoder alone with dropout, relative", true, TFM_TIE_ALL, TFM_POSITIONS_RELATIVE, true,
                  0);
    check_encoder("an encoder alone with R-Drop", false, TFM_TIE_ALL, TFM_POSITIONS_ROPE, true, 5);
    check_rnn("GRU, additive", TFM_RNN_GRU, TFM_RNN_ADDITIVE, TFM_TIE_ALL, false, 0);
    check_rnn("LSTM, dot", TFM_RNN_LSTM, TFM_RNN_DOT, TFM_TIE_TARGET, false, 0);
    check_rnn("GRU, general", TFM_RNN_GRU, TFM_RNN_GENERAL, TFM_TIE_NONE, false, 0);
    check_rnn("LSTM, additive, with dropout", TFM_RNN_LSTM, TFM_RNN_ADDITIVE, TFM_TIE_NONE, true, 0);
    check_rnn("GRU, dot, with dropout", TFM_RNN_GRU, TFM_RNN_DOT, TFM_TIE_ALL, true, 0);
    check_rnn("GRU with R-Drop", TFM_RNN_GRU, TFM_RNN_ADDITIVE, TFM_TIE_ALL, true, 5);
    return check_done();
}
