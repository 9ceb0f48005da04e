/*
 * pretrained.c: the weights of a model, or of a checkpoint, as the first ones of a training: an encoder that
 * was trained alone begins a translation model's (Devlin et al. 2019), and a model goes on with other text
 * (fine-tuning). What is taken goes by the names of tensors alone. That a name has another shape, or that
 * layers of the same shapes would compute something else with their tensors, is a mistake in the options, and
 * told before the first update.
 */
#include "train/pretrained.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/convert_input.h"
#include "train/report.h"

struct pretrained {
    struct convert_input input;
    struct config config;
    struct params params;
    real *block;
};

/* ---- what is there ---- */

static enum tfm_status open_weights(struct pretrained *p, struct pool *pool, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tensor_type type;
    enum tfm_status status = convert_input_find_weights(&path, &p->input, CONVERT_EXPORTED, err);
    if (status == TFM_OK)
        status = safetensors_open(&p->block, path.data, &p->params, &type, pool, err);
    str_release(&path);
    return status;
}

static enum tfm_status open_model(struct pretrained *p, const char *name, struct tfm_error *err)
{
    json_t *training;
    TRY(convert_input_open(&p->input, name, err));
    TRY(model_read_config(&p->config, &training, p->input.model, err));
    json_decref(training);
    return params_list(&p->params, &p->config, err);
}

/* ---- what fits ---- */

static void name_shape(char *text, size_t size, const struct param *param)
{
    if (param->is_vector)
        snprintf(text, size, "[%d]", param->cols);
    else
        snprintf(text, size, "[%d, %d]", param->rows, param->cols);
}

static enum tfm_status check(const struct pretrained *p, const struct params *params,
                             const struct config *config, struct tfm_error *err)
{
    const char *field = config_other_use(config, &p->config);
    if (field != NULL)
        return err_set(
            err, TFM_EINVAL,
            "--pretrained %s: %s of its config.json is not that of this training, whose layers would "
            "compute something else with the same tensors",
            p->input.name, field);
    if (config->mask_token_id > 0 && config->vocab_size != p->config.vocab_size)
        return err_set(err, TFM_EINVAL,
                       "--pretrained %s: its vocabulary has no " MODEL_MASK_PIECE
                       ", for which --arch encoder needs a row of the embeddings",
                       p->input.name);
    for (int i = 0; i < params->n; i++) {
        const struct param *wanted = &params->list[i], *found = params_find(&p->params, wanted->name);
        char shape[32], expected[32];
        if (found == NULL || (found->rows == wanted->rows && found->cols == wanted->cols))
            continue;
        name_shape(shape, sizeof(shape), found);
        name_shape(expected, sizeof(expected), wanted);
        return err_set(
            err, TFM_EINVAL,
            "--pretrained %s: %s is %s, and should be %s as in this training: give the sizes that the "
            "model has",
            p->input.name, wanted->name, shape, expected);
    }
    return TFM_OK;
}

/* ---- what is told ---- */

/* The part of a name that stands for a whole layer, or the whole name: "model.encoder.layers.0". */
static int group_length(const char *name)
{
    const char *layers = strstr(name, ".layers.");
    return layers == NULL ? (int)strlen(name) : (int)(layers - name + 8 + (int)strcspn(layers + 8, "."));
}

/* Notes the tensors of `list` that `other` has, or those that it has not, a layer's together. */
static enum tfm_status report(const char *what, const struct params *list, const struct params *other,
                              bool has, const struct tfm_train_options *options, struct tfm_error *err)
{
    struct str text = { 0 };
    size_t n_values = 0;
    enum tfm_status status = TFM_OK;
    for (int i = 0, n; i < list->n && status == TFM_OK; i += n) {
        const char *name = list->list[i].name;
        int length = group_length(name), n_chosen = 0;
        for (n = 0; i + n < list->n && group_length(list->list[i + n].name) == length &&
                    strncmp(list->list[i + n].name, name, (size_t)length) == 0;
             n++) {
            if ((params_find(other, list->list[i + n].name) != NULL) != has)
                continue;
            n_chosen++;
            n_values += params_count(&list->list[i + n]);
        }
        if (n_chosen > 0)
            status = str_printf(&text, err, "%s%.*s", text.len > 0 ? ", " : "", length, name);
        if (n_chosen > 0 && n_chosen < n && status == TFM_OK)
            status = str_printf(&text, err, " (%d of %d tensors)", n_chosen, n);
    }
    if (status == TFM_OK && text.len > 0)
        report_note(options, "pretrained: %s: %zu parameters: %s", what, n_values, text.data);
    str_release(&text);
    return status;
}

/* ---- the whole ---- */

static enum tfm_status take(real *weights, const struct pretrained *p, const struct params *params,
                            const struct tfm_train_options *options, struct tfm_error *err)
{
    bool has_any = false;
    for (int i = 0; i < params->n; i++) {
        const struct param *to = &params->list[i], *from = params_find(&p->params, to->name);
        if (from == NULL)
            continue;
        memcpy(weights + to->offset, p->block + from->offset, params_count(to) * sizeof(real));
        has_any = true;
    }
    if (!has_any)
        return err_set(err, TFM_EINVAL,
                       "--pretrained %s: none of its tensors has a name that this training knows",
                       p->input.name);
    TRY(report("taken", params, &p->params, true, options, err));
    TRY(report("not there, and so begun at random", params, &p->params, false, options, err));
    return report("of no use here", &p->params, params, false, options, err);
}

enum tfm_status pretrained_check(const char *folder, struct tfm_error *err)
{
    struct convert_input input;
    enum tfm_status status = convert_input_open(&input, folder, err);
    convert_input_release(&input);
    return status;
}

enum tfm_status pretrained_take(real *weights, struct str *name, const struct params *params,
                                const struct config *config, const struct tfm_train_options *options,
                                struct pool *pool, struct tfm_error *err)
{
    struct pretrained p = { .block = NULL };
    enum tfm_status status = open_model(&p, options->pretrained, err);
    if (status == TFM_OK)
        status = check(&p, params, config, err);
    if (status == TFM_OK)
        status = open_weights(&p, pool, err);
    if (status == TFM_OK)
        status = take(weights, &p, params, options, err);
    if (status == TFM_OK)
        status = str_printf(name, err, "%s", path_base(p.input.folder));
    mem_free(p.block);
    params_release(&p.params);
    convert_input_release(&p.input);
    return status;
}
