/*
 * golden.h: holds the whole model to PyTorch in float64: activations, loss and gradients of small models,
 * Transformers, decoders alone, language models, masked ones and recurrent networks, over a batch of three
 * sentences, which PyTorch pads and masks where there
 * is no padding here. make_golden.py wrote the values; weights and batch come from the same formulas on both
 * sides. Included by golden_double_test.c (real is double) and golden_test.c (real is
 * float), which differ in the tolerance only: the largest error of a tensor may be `tolerance` times the
 * largest value of its kind.
 */
#ifndef TFM_TESTS_GOLDEN_H
#define TFM_TESTS_GOLDEN_H

#include "base/mem.h"
#include "check.h"
#include "model/loss.h"

static const int golden_source_ids[] = { 3, 7, 5, 10, 0, 9, 0, 4, 4, 8, 2, 6, 1, 0 };
static const int golden_source_start[] = { 0, 5, 7, 14 };
static const int golden_target_ids[] = { 12, 3, 5, 0, 7, 11, 2, 9, 10, 0, 6, 0 };
static const int golden_target_start[] = { 0, 4, 10, 12 };
static const struct tokens golden_source = {
    .n_sentences = 3, .n = 14, .ids = golden_source_ids, .start = golden_source_start
};
static const struct tokens golden_target = {
    .n_sentences = 3, .n = 12, .ids = golden_target_ids, .start = golden_target_start
};

/* What a language model reads before its text. */
static const int golden_no_ids[] = { 0, 0, 0 }, golden_no_start[] = { 0, 1, 2, 3 };
static const struct tokens golden_no_source = {
    .n_sentences = 3, .n = 3, .ids = golden_no_ids, .start = golden_no_start
};

/* What a masked language model is to predict from the source. */
static const int golden_label_ids[] = { 2, 10, 9, 11, 3, 1 };
static const int golden_label_rows[] = { 1, 3, 5, 8, 9, 12 };
static const int golden_label_start[] = { 0, 2, 3, 6 };
static const struct tokens golden_labels = {
    .n_sentences = 3, .n = 6, .ids = golden_label_ids, .start = golden_label_start, .rows = golden_label_rows
};

struct golden_case {
    const char *name;
    bool pre_norm;
    enum tfm_tie tie;
    enum tfm_cell cell;
    int n_source, start;
    bool full; /* the file holds whole gradients rather than their sums */
};

static const struct golden_case golden_cases[] = {
    { "post_all", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "pre_target", true, TFM_TIE_TARGET, TFM_CELL_ATTENTION, 11, 2, false },
    { "post_none", false, TFM_TIE_NONE, TFM_CELL_ATTENTION, 11, 0, false },
    { "post_ssru", false, TFM_TIE_ALL, TFM_CELL_SSRU, 13, 0, true },
    { "pre_ssru", true, TFM_TIE_TARGET, TFM_CELL_SSRU, 11, 2, false },
    { "post_rms_swiglu", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "pre_rms_geglu", true, TFM_TIE_TARGET, TFM_CELL_ATTENTION, 11, 2, false },
    { "pre_rms_swish", true, TFM_TIE_NONE, TFM_CELL_SSRU, 11, 0, false },
    { "post_gelu", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "pre_gelu_tanh", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "interleaved", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "learned", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "rope", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "alibi", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "relative", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "nowhere", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "multi_query", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "window", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "unscaled", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "additive", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "additive_shared", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
    { "alone", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "alone_learned", true, TFM_TIE_NONE, TFM_CELL_ATTENTION, 11, 2, false },
    { "alone_rope", true, TFM_TIE_TARGET, TFM_CELL_ATTENTION, 11, 0, false },
    { "language", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "masked", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true },
    { "masked_learned", true, TFM_TIE_NONE, TFM_CELL_ATTENTION, 13, 0, false },
    { "masked_relative", true, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, false },
};

/* What is unlike the plain Transformer. */
static const struct golden_variant {
    const char *name; /* of the case */
    enum tfm_norm norm;
    enum tfm_activation activation;
    enum tfm_positions positions;
    int max_positions, kv_heads, window;
    enum tfm_attention_function function;
    enum tfm_attention_scale scale;
    bool is_alone;    /* a decoder without encoder ... */
    bool is_language; /* ... as a language model */
    bool is_masked; /* or the other way round */
} golden_variants[] = {
    { .name = "post_rms_swiglu", .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_SWIGLU },
    { .name = "pre_rms_geglu", .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_GEGLU },
    { .name = "pre_rms_swish", .norm = TFM_RMS_NORM, .activation = TFM_ACTIVATION_SWISH },
    { .name = "post_gelu", .activation = TFM_ACTIVATION_GELU },
    { .name = "pre_gelu_tanh", .activation = TFM_ACTIVATION_GELU_TANH },
    { .name = "interleaved", .positions = TFM_POSITIONS_INTERLEAVED },
    { .name = "learned", .positions = TFM_POSITIONS_LEARNED, .max_positions = 5 },
    { .name = "rope", .positions = TFM_POSITIONS_ROPE },
    { .name = "alibi", .positions = TFM_POSITIONS_ALIBI },
    { .name = "relative", .positions = TFM_POSITIONS_RELATIVE },
    { .name = "nowhere", .positions = TFM_POSITIONS_NONE },
    { .name = "multi_query", .kv_heads = 1 },
    { .name = "window", .window = 2, .positions = TFM_POSITIONS_RELATIVE },
    { .name = "unscaled", .scale = TFM_SCALE_NONE, .positions = TFM_POSITIONS_ROPE, .kv_heads = 1 },
    { .name = "additive", .function = TFM_ATTENTION_ADDITIVE },
    { .name = "additive_shared",
      .function = TFM_ATTENTION_ADDITIVE,
      .kv_heads = 1,
      .window = 1,
      .positions = TFM_POSITIONS_ALIBI },
    { .name = "alone", .is_alone = true },
    { .name = "alone_learned", .is_alone = true, .positions = TFM_POSITIONS_LEARNED, .max_positions = 5 },
    { .name = "alone_rope",
      .is_alone = true,
      .positions = TFM_POSITIONS_ROPE,
      .kv_heads = 1,
      .norm = TFM_RMS_NORM,
      .activation = TFM_ACTIVATION_SWIGLU },
    { .name = "language", .is_alone = true, .is_language = true },
    { .name = "masked", .is_masked = true, .activation = TFM_ACTIVATION_GELU },
    { .name = "masked_learned", .is_masked = true, .positions = TFM_POSITIONS_LEARNED, .max_positions = 5 },
    { .name = "masked_relative", .is_masked = true, .positions = TFM_POSITIONS_RELATIVE, .window = 2 },
};

static const struct golden_rnn_case {
    struct golden_case c;
    enum tfm_rnn_cell cell;
    enum tfm_rnn_attention attention;
} golden_rnn_cases[] = {
    { { "rnn_gru", false, TFM_TIE_ALL, TFM_CELL_ATTENTION, 13, 0, true }, TFM_RNN_GRU, TFM_RNN_ADDITIVE },
    { { "rnn_lstm", false, TFM_TIE_TARGET, TFM_CELL_ATTENTION, 11, 2, false }, TFM_RNN_LSTM, TFM_RNN_DOT },
    { { "rnn_general", false, TFM_TIE_NONE, TFM_CELL_ATTENTION, 11, 0, false },
      TFM_RNN_GRU,
      TFM_RNN_GENERAL },
};

/* ---- the values of a file ---- */

struct golden_value {
    char name[64];
    int n;
    double *x;
};

struct golden_file {
    struct golden_value list[128];
    int n;
};

/* False if the file is not there or holds anything else. */
static bool golden_read(struct golden_file *file, const char *name)
{
    *file = (struct golden_file){ .n = 0 };
    char path[128];
    snprintf(path, sizeof(path), "tests/golden/%s.txt", name);
    FILE *in = fopen(path, "r");
    if (in == NULL)
        return false;
    struct golden_value *value = file->list;
    bool good = true;
    while (good && file->n < 128 && fscanf(in, "%63s %d", value->name, &value->n) == 2) {
        value->x = mem_alloc((size_t)value->n * sizeof(double), NULL);
        good = value->x != NULL;
        file->n++;
        for (int i = 0; good && i < value->n; i++)
            good = fscanf(in, "%lf", &value->x[i]) == 1;
        value++;
    }
    good = good && feof(in);
    fclose(in);
    return good;
}

static void golden_release(struct golden_file *file)
{
    for (int i = 0; i < file->n; i++)
        mem_free(file->list[i].x);
}

static const struct golden_value *golden_find(const struct golden_file *file, const char *name)
{
    for (int i = 0; i < file->n; i++) {
        if (strcmp(file->list[i].name, name) == 0)
            return &file->list[i];
    }
    return NULL;
}

/* ---- comparison ---- */

static double golden_max(const double *x, int n)
{
    double max = 0;
    for (int i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* The largest error in units of scale; an absent or shorter value is infinitely wrong, as is a NaN. */
static double golden_error(const struct golden_file *file, const char *name, const double *found, int n,
                           double scale)
{
    const struct golden_value *value = golden_find(file, name);
    if (value == NULL || value->n != n)
        return INFINITY;
    double error = 0;
    for (int i = 0; i < n; i++) {
        double e = fabs(found[i] - value->x[i]) / scale;
        error = e >= error ? e : isnan(e) ? INFINITY : error;
    }
    return error;
}

static double golden_error_of(const struct golden_file *file, const char *name, const real *found, int n)
{
    const struct golden_value *value = golden_find(file, name);
    double *x = mem_alloc((size_t)n * sizeof(double), NULL);
    for (int i = 0; i < n; i++)
        x[i] = found[i];
    double error = value == NULL ? INFINITY : golden_error(file, name, x, n, golden_max(value->x, value->n));
    mem_free(x);
    return error;
}

/* What the file holds of a gradient: all of it, or its sum, that of its magnitudes, and one that knows the
 * order. */
static int golden_gradient(double *x, const real *gradient, int n, bool full)
{
    if (full) {
        for (int i = 0; i < n; i++)
            x[i] = gradient[i];
        return n;
    }
    x[0] = x[1] = x[2] = 0;
    for (int i = 0; i < n; i++) {
        x[0] += gradient[i];
        x[1] += fabs(gradient[i]);
        x[2] += gradient[i] * sin(i + 1);
    }
    return 3;
}

/* The scale of all gradients: some are zero in theory (a key's bias), so a scale for each would mean
 * nothing. */
static double golden_gradient_scale(const struct golden_file *file, const struct params *params, bool full)
{
    double scale = 0;
    for (int i = 0; i < params->n; i++) {
        const struct golden_value *value = golden_find(file, params->list[i].name);
        if (value != NULL)
            scale = fmax(scale, full ? golden_max(value->x, value->n)
                                     : value->x[1] / (params->list[i].rows * params->list[i].cols));
    }
    return scale;
}

/* ---- the model ---- */

/* See make_golden.py. */
static void golden_weights(const struct params *params, real *block)
{
    for (int t = 0; t < params->n; t++) {
        const struct param *param = &params->list[t];
        size_t len = strlen(param->name);
        bool is_gain = len > 11 && strcmp(param->name + len - 11, "norm.weight") == 0;
        bool is_bias = len > 4 && strcmp(param->name + len - 4, "bias") == 0;
        double phase = 0;
        for (size_t j = 0; j < len; j++)
            phase += (double)(j + 1) * param->name[j];
        for (int i = 0; i < param->rows * param->cols; i++) {
            double wave = sin(0.7 * i * i + phase);
            real value = (real)(is_gain ? 1 + 0.3 * wave : wave * (is_bias ? 0.3 : 0.6));
            block[param->offset + (size_t)i] = value;
        }
    }
}

static const struct golden_variant *golden_find_variant(const char *name)
{
    static const struct golden_variant plain = { .name = NULL };
    for (size_t i = 0; i < sizeof(golden_variants) / sizeof(*golden_variants); i++) {
        if (strcmp(golden_variants[i].name, name) == 0)
            return &golden_variants[i];
    }
    return &plain;
}

static struct config golden_config(const struct golden_case *c)
{
    const struct golden_variant *v = golden_find_variant(c->name);
    /* clang-format off */
    return (struct config){
        .architecture = v->is_alone ? CONFIG_DECODER_ONLY : v->is_masked ? CONFIG_ENCODER_ONLY : CONFIG_ENCODER_DECODER,
        .task = v->is_language ? CONFIG_LANGUAGE_MODEL : CONFIG_TRANSLATION,
        .encoder_layers = v->is_alone ? 0 : 2, .decoder_layers = v->is_masked ? 0 : 2, .d_model = 8, .heads = 2, .ffn_dim = 12,
        .activation = v->activation, .norm = v->norm, .pre_norm = c->pre_norm, .norm_epsilon = 1e-5,
        .scale_embedding = true,
        .source_vocab_size = c->n_source, .vocab_size = 13, .tie = c->tie, .decoder_cell = c->cell,
        .positions = v->positions, .max_positions = v->max_positions, .kv_heads = v->kv_heads,
        .attention_window = v->window, .attention_function = v->function, .attention_scale = v->scale,
        .eos_token_id = 0, .unk_token_id = 1, .decoder_start_token_id = c->start,
        /* must take no part */
        .dropout = 0.1, .attention_dropout = 0.1, .activation_dropout = 0.1, .encoder_layerdrop = 0.5,
        .decoder_layerdrop = 0.5,
    };
    /* clang-format on */
}

static struct config golden_rnn_config(const struct golden_rnn_case *c)
{
    struct config config = golden_config(&c->c);
    config.arch = TFM_ARCH_RNN;
    config.rnn_cell = c->cell;
    config.rnn_attention = c->attention;
    config.positions = TFM_POSITIONS_NONE;
    config.heads = 1;
    return config;
}

static const struct tokens *golden_predicted(const struct net *net)
{
    return net->config->architecture == CONFIG_ENCODER_ONLY ? &golden_labels : &golden_target;
}

static const struct tokens *golden_read_before(const struct net *net)
{
    return net->config->task == CONFIG_LANGUAGE_MODEL ? &golden_no_source : &golden_source;
}

static void golden_check_activations(const struct golden_file *file, const struct net *net, struct run *run,
                                     const char *name, double tolerance)
{
    const struct tokens *target = golden_predicted(net), *source = golden_read_before(net);
    size_t mark = arena_mark(run->arena);
    int d = net->config->d_model;
    real *memory = ARENA_TAKE(run->arena, real, source->n * d);
    real *hidden = ARENA_TAKE(run->arena, real, target->n * d);
    struct encoder_acts encoder;
    struct decoder_acts decoder;
    encoder_forward(memory, run->keep ? &encoder : NULL, source, net, run);
    decoder_forward(hidden, run->keep ? &decoder : NULL, target, source, memory, net, run);
    double error = golden_error_of(file, "encoder", memory, source->n * d);
    CHECK_NEAR(error, 0, tolerance, "%s: encoder output", name);
    error = golden_error_of(file, "decoder", hidden, target->n * d);
    CHECK_NEAR(error, 0, tolerance, "%s: decoder hidden states", name);
    arena_reset(run->arena, mark);
}

static void golden_check_loss(const struct golden_file *file, const struct net *net,
                              const struct params *params, real *gradient, struct run *run,
                              const struct golden_case *c, double tolerance)
{
    const struct tokens *target = golden_predicted(net), *source = golden_read_before(net);
    struct xent_sum sum = { 0 };
    real row_nll[12];
    struct weights grad;
    params_bind(&grad, net->config, gradient);
    loss_batch(&sum, row_nll, &grad, source, target, &(struct criterion){ (real)0.1, 0 }, net, run);
    real loss = (real)sum.loss;
    CHECK_NEAR(golden_error_of(file, "loss", &loss, 1), 0, tolerance, "%s: label-smoothed loss", c->name);
    CHECK_NEAR(golden_error_of(file, "row_nll", row_nll, target->n), 0, tolerance, "%s: -log p of a token",
               c->name);
    double nll = 0;
    for (int i = 0; i < target->n; i++)
        nll += row_nll[i];
    CHECK_NEAR(sum.nll / nll, 1, tolerance, "%s: the sum of -log p", c->name);

    double scale = golden_gradient_scale(file, params, c->full), worst = 0;
    const char *where = "";
    double *x = mem_alloc(params->size * sizeof(double), NULL);
    for (int i = 0; i < params->n; i++) {
        const struct param *param = &params->list[i];
        int size = param->rows * param->cols;
        int n = golden_gradient(x, gradient + param->offset, size, c->full);
        double error = golden_error(file, param->name, x, n, c->full ? scale : scale * size);
        if (error > worst) {
            worst = error;
            where = param->name;
        }
    }
    mem_free(x);
    if (!CHECK_NEAR(worst, 0, tolerance, "%s: gradients of all %d tensors", c->name, params->n))
        check_note("the worst is %s", where);

    struct xent_sum again = { 0 };
    run->keep = false;
    loss_batch(&again, NULL, NULL, source, target, &(struct criterion){ (real)0.1, 0 }, net, run);
    CHECK_NEAR(again.loss / sum.loss, 1, tolerance, "%s: the loss without gradients", c->name);
    run->keep = true;
}

static void golden_check(const struct golden_case *c, struct config config, double tolerance)
{
    struct params params;
    struct golden_file file;
    struct arena arena;
    if (!CHECK(golden_read(&file, c->name), "%s: values are there", c->name) ||
        !CHECK(params_list(&params, &config, NULL) == TFM_OK && arena_init(&arena, 64 << 20, NULL) == TFM_OK,
               "%s: memory", c->name))
        return;
    CHECK_INT(file.n, params.n + 4, "%s: a value for each tensor", c->name);
    real *block = mem_alloc(params.size * sizeof(real), NULL);
    real *gradient = mem_alloc(params.size * sizeof(real), NULL);
    golden_weights(&params, block);

    struct weights weights;
    struct net net;
    params_bind(&weights, &config, block);
    net_bind(&net, &config, &weights);
    struct run run = { .arena = &arena, .kern = kern_for(CPU_REF), .keep = true };
    golden_check_activations(&file, &net, &run, c->name, tolerance);
    golden_check_loss(&file, &net, &params, gradient, &run, c, tolerance);

    char name[64];
    snprintf(name, sizeof(name), "%s, packed for translation", c->name);
    real *packed = mem_alloc(net_packed_size(&net) * sizeof(real), NULL);
    net_pack(&net, packed);
    run.keep = false;
    golden_check_activations(&file, &net, &run, name, tolerance);

    mem_free(packed);
    mem_free(gradient);
    mem_free(block);
    arena_release(&arena);
    params_release(&params);
    golden_release(&file);
}

static int golden_main(double tolerance)
{
    for (size_t i = 0; i < sizeof(golden_cases) / sizeof(*golden_cases); i++)
        golden_check(&golden_cases[i], golden_config(&golden_cases[i]), tolerance);
    for (size_t i = 0; i < sizeof(golden_rnn_cases) / sizeof(*golden_rnn_cases); i++)
        golden_check(&golden_rnn_cases[i].c, golden_rnn_config(&golden_rnn_cases[i]), tolerance);
    return check_done();
}

#endif
