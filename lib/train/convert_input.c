/*
 * convert_input.c: finds out what a folder given to `tfm convert` is, and where its weights, its config.json
 * and its vocabularies are; compares the models of two such folders. Links are resolved first, so that the
 * way up from checkpoints/last is that of the checkpoint it names.
 */
#include "train/convert_input.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/checkpoint.h"

static enum tfm_status holds_file(bool *holds, const char *folder, const char *name, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, folder, name, err);
    *holds = status == TFM_OK && file_exists(path.data);
    str_release(&path);
    return status;
}

/* Replaces path, a buffer of PATH_MAX bytes, by the folder's without links. */
static enum tfm_status resolve(char *path, const char *folder, const char *below, struct tfm_error *err)
{
    struct str whole = { 0 };
    enum tfm_status status = path_join(&whole, folder, below, err);
    if (status == TFM_OK && realpath(whole.data, path) == NULL)
        status = err_io(err, "cannot open %s", folder);
    str_release(&whole);
    return status;
}

enum tfm_status convert_input_open(struct convert_input *input, const char *name, struct tfm_error *err)
{
    char folder[PATH_MAX], model[PATH_MAX];
    bool is_model;
    *input = (struct convert_input){ .name = name };
    TRY(resolve(folder, name, ".", err));
    input->folder = mem_strdup(folder, err);
    if (input->folder == NULL)
        return TFM_ENOMEM;
    TRY(holds_file(&is_model, folder, MODEL_CONFIG, err));
    TRY(holds_file(&input->is_checkpoint, folder, CHECKPOINT_STATE, err));
    input->is_checkpoint = input->is_checkpoint && !is_model;
    if (!is_model && !input->is_checkpoint)
        return err_set(err, TFM_EFORMAT,
                       "%s holds neither " MODEL_CONFIG " nor " CHECKPOINT_STATE
                       ", and so is neither a model nor a checkpoint",
                       name);
    TRY(resolve(model, folder, input->is_checkpoint ? "../.." : ".",
                err)); /* MODEL/checkpoints/checkpoint-N */
    input->model = mem_strdup(model, err);
    if (input->model == NULL)
        return TFM_ENOMEM;
    TRY(holds_file(&is_model, model, MODEL_CONFIG, err));
    if (!is_model)
        return err_set(err, TFM_EFORMAT,
                       "%s is a checkpoint, but %s holds no " MODEL_CONFIG
                       " to tell its sizes: a training writes one with the first model it exports",
                       name, model);
    return TFM_OK;
}

void convert_input_release(struct convert_input *input)
{
    mem_free(input->folder);
    mem_free(input->model);
    *input = (struct convert_input){ 0 };
}

enum tfm_status convert_input_find_weights(struct str *path, struct convert_input *input,
                                           enum convert_weights which, struct tfm_error *err)
{
    if (!input->is_checkpoint)
        return model_find_weights(path, input->folder, err);
    bool has_mean;
    TRY(holds_file(&has_mean, input->folder, CHECKPOINT_AVERAGE, err));
    if (which == CONVERT_SMOOTHED && !has_mean)
        return err_set(err, TFM_EFORMAT,
                       "%s holds no smoothed weights (" CHECKPOINT_AVERAGE
                       "): it was trained with --exponential-smoothing 0",
                       input->name);
    input->is_smoothed = has_mean && which != CONVERT_RAW;
    return path_join(path, input->folder, input->is_smoothed ? CHECKPOINT_AVERAGE : CHECKPOINT_WEIGHTS, err);
}

enum tfm_status convert_input_find_state(struct str *path, const struct convert_input *input,
                                         struct tfm_error *err)
{
    return path_join(path, input->folder, CHECKPOINT_STATE, err);
}

/* ---- vocabularies ---- */

const char *convert_input_vocabulary(int i)
{
    static const char *const names[] = { MODEL_VOCAB, MODEL_SOURCE_VOCAB, MODEL_TARGET_VOCAB, NULL };
    return names[i];
}

enum tfm_status convert_input_read_vocabularies(struct convert_vocabularies *v,
                                                const struct convert_input *input, struct tfm_error *err)
{
    bool is_shared; /* then others are not looked at */
    struct str path = { 0 };
    *v = (struct convert_vocabularies){ 0 };
    enum tfm_status status = holds_file(&is_shared, input->model, MODEL_VOCAB, err);
    for (int i = is_shared ? 0 : 1; status == TFM_OK && i < (is_shared ? 1 : 3); i++) {
        status = path_join(&path, input->model, convert_input_vocabulary(i), err);
        if (status == TFM_OK)
            status = file_read(path.data, &v->file[i].data, &v->file[i].size, err);
    }
    str_release(&path);
    return status;
}

void convert_input_release_vocabularies(struct convert_vocabularies *v)
{
    for (int i = 0; convert_input_vocabulary(i) != NULL; i++)
        mem_free(v->file[i].data);
    *v = (struct convert_vocabularies){ 0 };
}

/* ---- two models ---- */

static enum tfm_status check_configs(const struct convert_input *a, const struct convert_input *b,
                                     struct tfm_error *err)
{
    struct config x, y;
    json_t *training;
    TRY(model_read_config(&x, &training, a->model, err));
    json_decref(training);
    TRY(model_read_config(&y, &training, b->model, err));
    json_decref(training);
    const char *field = config_difference(&x, &y);
    if (field == NULL)
        return TFM_OK;
    return err_set(err, TFM_EINVAL,
                   "%s/" MODEL_CONFIG " and %s/" MODEL_CONFIG
                   " differ in %s: only models of the same sizes and conventions can be averaged",
                   a->model, b->model, field);
}

static enum tfm_status check_bytes(const struct convert_vocabularies *x, const struct convert_vocabularies *y,
                                   const struct convert_input *a, const struct convert_input *b,
                                   struct tfm_error *err)
{
    const char *name;
    for (int i = 0; (name = convert_input_vocabulary(i)) != NULL; i++) {
        bool is_there = x->file[i].data != NULL;
        if (is_there != (y->file[i].data != NULL))
            return err_set(
                err, TFM_EINVAL,
                "%s holds a %s and %s does not: only models of the same vocabularies can be averaged",
                is_there ? a->model : b->model, name, is_there ? b->model : a->model);
        if (is_there && (x->file[i].size != y->file[i].size ||
                         memcmp(x->file[i].data, y->file[i].data, x->file[i].size) != 0))
            return err_set(err, TFM_EINVAL,
                           "%s/%s and %s/%s differ: only models of the same vocabularies can be averaged",
                           a->model, name, b->model, name);
    }
    return TFM_OK;
}

enum tfm_status convert_input_check_same(const struct convert_input *a, const struct convert_input *b,
                                         struct tfm_error *err)
{
    struct convert_vocabularies x = { 0 }, y = { 0 };
    if (strcmp(a->model, b->model) == 0) /* checkpoints of one training */
        return TFM_OK;
    TRY(check_configs(a, b, err));
    enum tfm_status status = convert_input_read_vocabularies(&x, a, err);
    if (status == TFM_OK)
        status = convert_input_read_vocabularies(&y, b, err);
    if (status == TFM_OK)
        status = check_bytes(&x, &y, a, b, err);
    convert_input_release_vocabularies(&x);
    convert_input_release_vocabularies(&y);
    return status;
}
