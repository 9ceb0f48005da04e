/*
 * describe.c: what a model is: its architecture in words, vocabularies, how it was trained, what it takes on
 * disk and in memory, and every tensor with shape, type, size and statistics; as text for people, or as JSON
 * that holds config.json as it stands in the folder.
 */
#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limit.h"
#include "base/mem.h"
#include "inspect/out.h"
#include "model/model.h"
#include "model/shortlist.h"

struct tensor_stats {
    double mean, deviation, min, max;
};

/* Files that a model folder can hold. */
static const char *const file_names[] = {
    MODEL_CONFIG,       MODEL_WEIGHTS,      MODEL_PLAIN_WEIGHTS, MODEL_VOCAB,
    MODEL_SOURCE_VOCAB, MODEL_TARGET_VOCAB, SHORTLIST_FILE,
};

#define N_FILES (sizeof(file_names) / sizeof(*file_names))

/* What is said of a model as a whole. */
struct summary {
    const struct tfm_model *model;
    json_t *config;                      /* of config.json */
    size_t parameters, encoder, decoder; /* in layers; the rest are embeddings, output bias and final norms */
    size_t memory;                       /* bytes held by an open model */
    real *values;                        /* of one tensor after the other */
    long long file_sizes[N_FILES];       /* -1 where the folder has none */
};

static struct tensor_stats stats_of(const real *x, size_t n)
{
    struct tensor_stats stats = { 0, 0, x[0], x[0] };
    for (size_t i = 0; i < n; i++) {
        stats.mean += x[i];
        stats.min = fmin(stats.min, x[i]);
        stats.max = fmax(stats.max, x[i]);
    }
    stats.mean /= (double)n;
    for (size_t i = 0; i < n; i++)
        stats.deviation += (x[i] - stats.mean) * (x[i] - stats.mean);
    stats.deviation = isnan(stats.deviation) ? (double)NAN : sqrt(stats.deviation / (double)n); /* no -nan */
    return stats;
}

static void count_parameters(struct summary *summary, const struct tfm_model *model)
{
    for (int i = 0; i < model->params.n; i++) {
        const struct param *param = &model->params.list[i];
        summary->parameters += params_count(param);
        if (strncmp(param->name, "model.encoder.layers.", 21) == 0)
            summary->encoder += params_count(param);
        if (strncmp(param->name, "model.decoder.layers.", 21) == 0)
            summary->decoder += params_count(param);
    }
    summary->memory = model_memory(model);
}

/* Room for the largest tensor. */
static enum tfm_status take_values(struct summary *summary, struct tfm_error *err)
{
    const struct params *params = &summary->model->params;
    size_t most = 0;
    for (int i = 0; i < params->n; i++)
        most = params_count(&params->list[i]) > most ? params_count(&params->list[i]) : most;
    summary->values = mem_alloc(most * sizeof(real), err);
    return summary->values != NULL ? TFM_OK : TFM_ENOMEM;
}

static struct tensor_stats tensor_stats(const struct summary *s, int i)
{
    model_values(s->values, s->model, i);
    return stats_of(s->values, params_count(&s->model->params.list[i]));
}

static enum tfm_status read_folder(struct summary *summary, const struct tfm_model *model, struct str *path,
                                   struct tfm_error *err)
{
    for (size_t i = 0; i < N_FILES; i++) {
        struct stat found;
        TRY(path_join(path, model->folder, file_names[i], err));
        summary->file_sizes[i] = stat(path->data, &found) == 0 ? (long long)found.st_size : -1;
    }
    TRY(path_join(path, model->folder, MODEL_CONFIG, err));
    return json_read(&summary->config, path->data, err);
}

/* ---- text ---- */

/* A field of config.json. */
static const char *config_text(const json_t *config, const char *field)
{
    const char *text = json_string_value(json_object_get(config, field));
    return text != NULL ? text : "?";
}

static bool is_of_text(const struct config *c)
{
    return c->architecture == CONFIG_ENCODER_ONLY || c->task == CONFIG_LANGUAGE_MODEL;
}

static void text_blocks(FILE *out, const struct config *c, const json_t *config)
{
    if (c->decoder_layers > 0)
        fprintf(out, "  past in decoder     %s\n",
                c->decoder_cell == TFM_CELL_SSRU ? "SSRU, a recurrent unit in place of self-attention"
                                                 : "self-attention");
    fprintf(out, "  attention heads     %d of width %d", c->heads, c->d_model / c->heads);
    if (config_kv_heads(c) < c->heads)
        fprintf(out, ", %d of keys and values", config_kv_heads(c));
    fprintf(out, "\n");
    if (c->attention_window > 0)
        fprintf(out, "  self-attention      sees %d pieces to each side\n", c->attention_window);
    if (c->attention_function == TFM_ATTENTION_ADDITIVE)
        fprintf(out, "  attention scores    additive: v . tanh(query + key)\n");
    else if (c->attention_scale == TFM_SCALE_NONE)
        fprintf(out, "  attention scores    dot products, not scaled\n");
    fprintf(out, "  feed-forward width  %d, %s\n", c->ffn_dim, config_text(config, "activation_function"));
    fprintf(out, "  %-18s  %s each sublayer, epsilon %g\n",
            c->norm == TFM_RMS_NORM ? "RMS norm" : "layer norm",
            c->pre_norm ? "pre-norm: before" : "post-norm: behind", c->norm_epsilon);
}

static void text_recurrent(FILE *out, const struct config *c)
{
    static const char *const attentions[] = { [TFM_RNN_ADDITIVE] = "additive",
                                              [TFM_RNN_DOT] = "dot product",
                                              [TFM_RNN_GENERAL] = "dot product behind a matrix" };
    fprintf(out, "  cells               %s, in the encoder forwards and backwards, %d wide each\n",
            c->rnn_cell == TFM_RNN_LSTM ? "LSTM" : "GRU", c->d_model / 2);
    fprintf(out, "  attention           %s, one head\n", attentions[c->rnn_attention]);
}

static void text_architecture(FILE *out, const struct config *c, const json_t *config)
{
    static const char *const ties[] = {
        [TFM_TIE_ALL] = "one matrix for source, target and output",
        [TFM_TIE_TARGET] = "one matrix for target and output, another for the source",
        [TFM_TIE_NONE] = "a matrix each for source, target and output",
    };
    fprintf(out, "Architecture\n");
    switch (c->architecture) {
    case CONFIG_DECODER_ONLY:
        fprintf(out, "  layers              decoder %d, %s\n", c->decoder_layers,
                c->task == CONFIG_LANGUAGE_MODEL ? "a language model of one text"
                                                 : "over source and target as one sequence");
        break;
    case CONFIG_ENCODER_ONLY:
        fprintf(out, "  layers              encoder %d, a masked language model of one text\n",
                c->encoder_layers);
        break;
    case CONFIG_ENCODER_DECODER:
        fprintf(out, "  layers              encoder %d, decoder %d\n", c->encoder_layers, c->decoder_layers);
        break;
    }
    fprintf(out, "  width               %d\n", c->d_model);
    if (c->arch == TFM_ARCH_RNN)
        text_recurrent(out, c);
    else
        text_blocks(out, c, config);
    static const char *const alone[] = {
        [TFM_TIE_ALL] = "one matrix for input and output",
        [TFM_TIE_NONE] = "a matrix each for input and output",
    };
    fprintf(out, "  embeddings          %s%s\n", is_of_text(c) ? alone[c->tie] : ties[c->tie],
            c->scale_embedding ? ", times the square root of the width" : "");
    fprintf(out, "  positions           %s", config_text(config, "positions"));
    if (c->max_positions > 0)
        fprintf(out, ", %d%s", c->max_positions, c->architecture == CONFIG_ENCODER_DECODER ? " a side" : "");
    fprintf(out, "\n");
    fprintf(out, "  dropout             %g, of attention %g, of activations %g (in training)\n", c->dropout,
            c->attention_dropout, c->activation_dropout);
    if (c->encoder_layerdrop > 0 || c->decoder_layerdrop > 0)
        fprintf(out, "  layers left out     encoder %g, decoder %g (in training)\n", c->encoder_layerdrop,
                c->decoder_layerdrop);
    if (c->init == TFM_INIT_DEPTH_SCALED)
        fprintf(out, "  initialisation      %s\n", config_text(config, "initialization"));
}

static void text_vocabularies(FILE *out, const struct tfm_model *model)
{
    const struct config *c = &model->config;
    fprintf(out, "\nVocabularies\n");
    if (model->source == model->target) {
        fprintf(out, "  %-18s  %d pieces\n", is_of_text(c) ? "of the text" : "both sides",
                spm_size(model->source));
    } else {
        fprintf(out, "  source              %d pieces\n", spm_size(model->source));
        fprintf(out, "  target              %d pieces\n", spm_size(model->target));
    }
    fprintf(out, "  ids                 </s> %d, <unk> %d, ", c->eos_token_id, c->unk_token_id);
    if (c->mask_token_id > 0)
        fprintf(out, MODEL_MASK_PIECE " %d\n", c->mask_token_id);
    else
        fprintf(out, "start of the %s %d\n", is_of_text(c) ? "text" : "target", c->decoder_start_token_id);
}

/* As JSON, which escapes whatever the free form may hold. */
static void text_training(FILE *out, const json_t *training)
{
    if (json_object_size(training) == 0)
        return;
    fprintf(out, "\nTraining\n");
    json_dumpf(training, out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putc('\n', out);
}

/* Matrices in int8 whose inputs have a scale known beforehand, as tfm_calibrate finds it. */
static int count_calibrated(const struct tfm_model *model)
{
    int n = 0;
    for (int i = 0; i < model->params.n; i++) {
        const struct matrix_place *place = &model->matrices.places[i];
        n += place->linear != NULL && place->row == 0 && place->linear->in_scale > 0;
    }
    return n;
}

static void text_sizes(FILE *out, const struct summary *s)
{
    fprintf(out, "\nSize\n");
    fprintf(out, "  parameters          encoder layers %zu, decoder layers %zu, the rest %zu\n", s->encoder,
            s->decoder, s->parameters - s->encoder - s->decoder);
    int n_calibrated = count_calibrated(s->model);
    fprintf(out, "  in memory           %.1f MiB, matrices as %s", (double)s->memory / (1 << 20),
            s->model->precision == TFM_PRECISION_INT8 ? "I8" : "F32");
    if (n_calibrated > 0)
        fprintf(out, ", %d of them calibrated", n_calibrated);
    putc('\n', out);
    long long sum = 0;
    for (size_t i = 0; i < N_FILES; i++)
        sum += s->file_sizes[i] > 0 ? s->file_sizes[i] : 0;
    fprintf(out, "  on disk             %.1f MiB, weights as %s\n", (double)sum / (1 << 20),
            safetensors_type_name(s->model->type));
    for (size_t i = 0; i < N_FILES; i++) {
        if (s->file_sizes[i] >= 0)
            fprintf(out, "    %-24s%11lld bytes\n", file_names[i], s->file_sizes[i]);
    }
}

static void text_tensors(FILE *out, const struct summary *s)
{
    const struct tfm_model *model = s->model;
    fprintf(out, "\nTensors (bytes as stored, before compression)\n");
    fprintf(out, "  %-52s %12s %4s %10s %10s %10s %10s %10s\n", "name", "shape", "type", "bytes", "mean",
            "deviation", "min", "max");
    for (int i = 0; i < model->params.n; i++) {
        const struct param *param = &model->params.list[i];
        struct tensor_stats stats = tensor_stats(s, i);
        char shape[32];
        if (param->is_vector)
            snprintf(shape, sizeof(shape), "%d", param->cols);
        else
            snprintf(shape, sizeof(shape), "%d x %d", param->rows, param->cols);
        fprintf(out, "  %-52s %12s %4s %10zu %10.4g %10.4g %10.4g %10.4g\n", param->name, shape,
                safetensors_type_name(safetensors_type_of(param, model->type)),
                safetensors_bytes(param, model->type), stats.mean, stats.deviation, stats.min, stats.max);
    }
}

static void text_model(FILE *out, const struct summary *s)
{
    const struct tfm_model *model = s->model;
    fprintf(out, "%s: %s, %zu parameters\n\n", model->folder,
            model->config.arch == TFM_ARCH_RNN ? "recurrent network" : "Transformer", s->parameters);
    text_architecture(out, &model->config, s->config);
    text_vocabularies(out, model);
    text_training(out, model->training);
    text_sizes(out, s);
    text_tensors(out, s);
}

/* ---- JSON: a NULL from any of these, for want of memory, makes the whole NULL ---- */

static json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_tensor(const struct summary *s, int i)
{
    const struct param *param = &s->model->params.list[i];
    enum tensor_type type = s->model->type;
    size_t size = params_count(param);
    struct tensor_stats stats = tensor_stats(s, i);
    json_t *shape = json_array();
    if (!param->is_vector)
        json_array_append_new(shape, json_integer(param->rows));
    json_array_append_new(shape, json_integer(param->cols));
    return json_pack("{s:s, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "name", param->name, "shape", shape,
                     "type", safetensors_type_name(safetensors_type_of(param, type)), "parameters",
                     (json_int_t)size, "bytes", (json_int_t)safetensors_bytes(param, type), "mean",
                     json_number(stats.mean), "deviation", json_number(stats.deviation), "min",
                     json_number(stats.min), "max", json_number(stats.max));
}

static json_t *json_tensors(const struct summary *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->model->params.n; i++) {
        json_t *tensor = json_tensor(s, i);
        if (json_array_append_new(list, tensor) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *json_files(const struct summary *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_FILES; i++) {
        if (s->file_sizes[i] < 0)
            continue;
        json_t *file = json_pack("{s:s, s:I}", "name", file_names[i], "bytes", (json_int_t)s->file_sizes[i]);
        if (json_array_append_new(list, file) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static enum tfm_status json_model(FILE *out, const struct summary *s, struct tfm_error *err)
{
    const struct tfm_model *model = s->model;
    json_t *vocabularies = json_pack("{s:i, s:i, s:b}", "source", spm_size(model->source), "target",
                                     spm_size(model->target), "shared", model->source == model->target);
    json_t *parameters = json_pack("{s:I, s:I, s:I}", "total", (json_int_t)s->parameters, "encoder_layers",
                                   (json_int_t)s->encoder, "decoder_layers", (json_int_t)s->decoder);
    json_t *root = json_pack("{s:o, s:O, s:o, s:o, s:I, s:i, s:o, s:o}", "folder", out_string(model->folder),
                             "config", s->config, "vocabularies", vocabularies, "parameters", parameters,
                             "memory_bytes", (json_int_t)s->memory, "calibrated_matrices",
                             count_calibrated(model), "files", json_files(s), "tensors", json_tensors(s));
    if (root == NULL)
        return err_set(err, TFM_ENOMEM, "no memory to describe %s", model->folder);
    json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putc('\n', out);
    json_decref(root);
    return TFM_OK;
}

/* ---- the whole ---- */

static enum tfm_status write_summary(const struct summary *s, enum tfm_format format, FILE *file,
                                     struct tfm_error *err)
{
    struct out out;
    TRY(out_begin(&out, file, err));
    enum tfm_status status = TFM_OK;
    if (format == TFM_TEXT)
        text_model(file, s);
    else
        status = json_model(file, s, err);
    return out_end(&out, status, err);
}

enum tfm_status tfm_describe(const struct tfm_model *model, enum tfm_format format, FILE *out,
                             struct tfm_error *err)
{
    assert(out != NULL);
    const struct limit limit = { "format", (int)format, 0, TFM_SVG };
    TRY(limit_check(&limit, 1, err));
    if (format != TFM_TEXT && format != TFM_JSON)
        return err_set(err, TFM_EINVAL, "a model is described as text or JSON only");
    struct summary summary = { .model = model };
    struct str path = { 0 };
    count_parameters(&summary, model);
    enum tfm_status status = read_folder(&summary, model, &path, err);
    if (status == TFM_OK)
        status = take_values(&summary, err);
    if (status == TFM_OK)
        status = write_summary(&summary, format, out, err);
    mem_free(summary.values);
    json_decref(summary.config);
    str_release(&path);
    return status;
}
