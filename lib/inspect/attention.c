/*
 * attention.c: collects attention weights over a tap and hands them to the writer of the wanted format
 * (heatmap.c, dump.c, npy.c, svg.c). A row of weights says where one query looks, and sums to 1:
 *     weights [queries, keys] = softmax(q k^T / sqrt(K))
 * Row t of the decoder predicts target piece t, and what it reads at t is the piece before: its queries are
 * labelled by what they predict, the keys of its self-attention by what was read there. A decoder alone has
 * the source before the target on both axes; what it reads of the source it predicts nothing from.
 */
#include "inspect/attention.h"

#include <assert.h>
#include <string.h>

#include "base/limit.h"
#include "base/mem.h"
#include "inspect/dump.h"
#include "inspect/heatmap.h"
#include "inspect/npy.h"
#include "inspect/observe.h"
#include "inspect/out.h"
#include "inspect/svg.h"

#define BEAM_SIZE   5
#define START_LABEL "<start>" /* often the same id as </s>, and then better told apart */

static const struct part {
    const char *where;          /* in messages */
    const char *prefix, *value; /* of the value that the tap shows */
} parts[] = {
    [TFM_ENCODER] = { "the encoder", "encoder.layers", "self_attn.weights" },
    [TFM_DECODER] = { "the decoder", "decoder.layers", "self_attn.weights" },
    [TFM_CROSS] = { "the decoder", "decoder.layers", "encoder_attn.weights" },
};

const float *attention_map(const struct attention *a, int layer, int head)
{
    size_t map = (size_t)layer * (size_t)a->n_heads + (size_t)head;
    return a->weights + map * (size_t)a->n_queries * (size_t)a->n_keys;
}

void tfm_attention_options_init(struct tfm_attention_options *options)
{
    *options = (struct tfm_attention_options){
        .part = TFM_PART_AUTO,
        .layer = -1,
        .head = -1,
        .format = TFM_TEXT,
    };
}

/* One number or all of them: sets first and count. */
static enum tfm_status select_range(int *first, int *count, int wanted, int n, const char *what,
                                    const char *where, struct tfm_error *err)
{
    if (wanted < -1 || wanted >= n)
        return err_set(err, TFM_EINVAL, "there is no %s %d: %s has %ss 0 to %d (-1 is all of them)", what,
                       wanted, where, what, n - 1);
    *first = wanted == -1 ? 0 : wanted;
    *count = wanted == -1 ? n : 1;
    return TFM_OK;
}

static enum tfm_status select_maps(struct attention *a, const struct config *config,
                                   const struct tfm_attention_options *options, struct tfm_error *err)
{
    const struct limit choices[] = { { "part", (int)options->part, 0, TFM_PART_AUTO },
                                     { "format", (int)options->format, 0, TFM_SVG } };
    TRY(LIMIT_CHECK(choices, err));
    a->part = options->part;
    if (a->part == TFM_PART_AUTO)
        for (a->part = TFM_CROSS; config_attention_layers(config, a->part) == 0;)
            a->part--;
    int n_layers = config_attention_layers(config, a->part);
    if (n_layers == 0 && config->architecture == CONFIG_ENCODER_ONLY)
        return err_set(
            err, TFM_EINVAL,
            "this model is an encoder alone, which looks at its own text; it can show the part encoder");
    if (n_layers == 0 && config->architecture == CONFIG_DECODER_ONLY)
        return err_set(
            err, TFM_EINVAL, "this model is a decoder alone, which looks at %s; it can show the part decoder",
            config->task == CONFIG_LANGUAGE_MODEL ? "one text" : "source and target as one sequence");
    if (n_layers == 0)
        return err_set(
            err, TFM_EINVAL, "%s of this model has no self-attention: %s in its place; it can show %s",
            parts[a->part].where,
            config->arch == TFM_ARCH_RNN ? "recurrent layers stand" : "a recurrent unit (SSRU) stands",
            config->arch == TFM_ARCH_RNN ? "the part cross" : "the parts encoder and cross");
    const char *where = parts[a->part].where;
    TRY(select_range(&a->layer, &a->n_layers, options->layer, n_layers, "layer", where, err));
    return select_range(&a->head, &a->n_heads, options->head, config->heads, "head", where, err);
}

static const char **piece_labels(const struct ints *ids, const struct spm *spm, struct tfm_error *err)
{
    const char **labels = mem_alloc(ids->n * sizeof(*labels), err);
    for (size_t i = 0; labels != NULL && i < ids->n; i++)
        labels[i] = spm_piece(spm, ids->data[i]);
    return labels;
}

/* Lists the pieces and points the axes at them. */
static enum tfm_status label_axes(struct attention *a, const struct tfm_model *model,
                                  const struct ints *source, const struct ints *target, struct tfm_error *err)
{
    a->n_source = (int)source->n;
    a->n_target = (int)target->n;
    a->source = piece_labels(source, model->source, err);
    a->target = piece_labels(target, model->target, err);
    a->is_joint =
        model->config.architecture == CONFIG_DECODER_ONLY && model->config.task != CONFIG_LANGUAGE_MODEL;
    size_t n_before = a->is_joint ? source->n - 1 : 0;
    size_t n_read = n_before + target->n;
    a->inputs = mem_alloc(n_read * sizeof(*a->inputs), err);
    a->outputs = mem_alloc(n_read * sizeof(*a->outputs), err);
    if (a->source == NULL || a->target == NULL || a->inputs == NULL || a->outputs == NULL)
        return TFM_ENOMEM;
    memcpy(a->inputs, a->source, n_before * sizeof(*a->inputs));
    memcpy(a->outputs, a->source, n_before * sizeof(*a->outputs));
    for (size_t i = 0; i < target->n; i++) {
        a->inputs[n_before + i] = i == 0 ? START_LABEL : a->target[i - 1];
        a->outputs[n_before + i] = a->target[i];
    }

    a->queries = a->part == TFM_ENCODER ? a->source : a->outputs;
    a->n_queries = a->part == TFM_ENCODER ? a->n_source : (int)n_read;
    a->keys = a->part == TFM_DECODER ? a->inputs : a->source;
    a->n_keys = a->part == TFM_DECODER ? (int)n_read : a->n_source;
    return TFM_OK;
}

struct collector {
    struct attention *attention;
    int n_seen;
};

static void collect(void *user, const char *name, int layer, int head, const real *x, int rows, int cols,
                    int stride)
{
    struct collector *collector = user;
    struct attention *a = collector->attention;
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "%s.%d.%s", parts[a->part].prefix, layer, parts[a->part].value);
    if (strcmp(name, wanted) != 0 || layer < a->layer || layer >= a->layer + a->n_layers || head < a->head ||
        head >= a->head + a->n_heads)
        return;
    assert(rows == a->n_queries && cols == a->n_keys);
    float *map = (float *)attention_map(a, layer - a->layer, head - a->head);
    for (int i = 0; i < rows; i++)
        memcpy(map + (size_t)i * (size_t)cols, x + (size_t)i * (size_t)stride, (size_t)cols * sizeof(*map));
    collector->n_seen++;
}

static enum tfm_status collect_weights(struct attention *a, const struct tfm_model *model,
                                       const struct ints *source, const struct ints *target,
                                       struct tfm_error *err)
{
    size_t maps = (size_t)a->n_layers * (size_t)a->n_heads;
    a->weights = mem_alloc(maps * (size_t)a->n_queries * (size_t)a->n_keys * sizeof(*a->weights), err);
    if (a->weights == NULL)
        return TFM_ENOMEM;
    struct collector collector = { a, 0 };
    struct tap tap = { collect, &collector };
    TRY(observe_run(model, source, target, &tap, err));
    assert(collector.n_seen == (int)maps);
    return TFM_OK;
}

enum tfm_status attention_collect(struct attention *a, const struct tfm_model *model,
                                  const struct ints *source, const struct ints *target, struct tfm_error *err)
{
    TRY(label_axes(a, model, source, target, err));
    return collect_weights(a, model, source, target, err);
}

void attention_release(struct attention *a)
{
    mem_free(a->weights);
    mem_free(a->inputs);
    mem_free(a->outputs);
    mem_free(a->source);
    mem_free(a->target);
}

static enum tfm_status write_attention(const struct attention *a, const struct tfm_attention_options *options,
                                       FILE *file, struct tfm_error *err)
{
    struct out out;
    TRY(out_begin(&out, file, err));
    enum tfm_status status = TFM_OK;
    switch (options->format) {
    case TFM_TEXT: status = heatmap_write(file, a, options->width, options->color, err); break;
    case TFM_JSON: status = dump_json(file, a, err); break;
    case TFM_TSV: dump_tsv(file, a); break;
    case TFM_NPY:
        npy_write(file, a->weights, (const int[]){ a->n_layers, a->n_heads, a->n_queries, a->n_keys }, 4);
        break;
    case TFM_SVG: status = svg_write(file, a, err); break;
    }
    return out_end(&out, status, err);
}

enum tfm_status tfm_attention(const struct tfm_model *model, const char *source, const char *target,
                              const struct tfm_attention_options *options, FILE *out, struct tfm_error *err)
{
    assert(source != NULL && out != NULL);
    struct attention a = { 0 };
    struct ints source_ids = { 0 }, target_ids = { 0 };
    enum tfm_status status = select_maps(&a, &model->config, options, err);
    if (status == TFM_OK)
        status = observe_encode(&source_ids, &target_ids, model, source, target, BEAM_SIZE, err);
    if (status == TFM_OK)
        status = attention_collect(&a, model, &source_ids, &target_ids, err);
    if (status == TFM_OK)
        status = write_attention(&a, options, out, err);
    attention_release(&a);
    ints_release(&source_ids);
    ints_release(&target_ids);
    return status;
}
