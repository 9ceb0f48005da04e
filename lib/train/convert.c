/*
 * convert.c: a model in another form: from a model folder or from a training's checkpoint, in another
 * precision, compressed or plain; or the mean of several, weight by weight, which often translates better
 * than each of them (Junczys-Dowmunt et al. 2016; Vaswani et al. 2017, section 6.1, average the last
 * checkpoints of a training). Sums run in double in the order of the inputs, so that the mean of one model,
 * or of copies of it, is that model. The new folder is written under a temporary name and renamed.
 */
#include "train/convert_input.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limit.h"
#include "base/mem.h"
#include "model/shortlist.h"
#include "train/train_options.h"

struct conversion {
    const struct tfm_convert_options *options;
    struct str output, temporary;
    struct convert_input *inputs;
    size_t n;
    struct config config;
    json_t *training; /* of the first input; later that of the output */
    struct convert_vocabularies vocabularies;
    struct params params;
    struct pool *pool;
    real *block;
    double *sum;  /* of the blocks so far; NULL where there is one input */
    bool has_f32, has_int8; /* an input is a model in F32, in I8 */
};

void tfm_convert_options_init(struct tfm_convert_options *options)
{
    *options = (struct tfm_convert_options){ .precision = TFM_PRECISION_KEEP };
}

static enum tfm_status check_stop(const struct conversion *c, struct tfm_error *err)
{
    if (c->options->stop != NULL && *c->options->stop != 0)
        return err_set(err, TFM_ESTOPPED, "stopped; %s was not written", c->options->output);
    return TFM_OK;
}

/* ---- the output ---- */

static bool is_model_file(const char *name)
{
    static const char *const names[] = { MODEL_CONFIG, MODEL_WEIGHTS, MODEL_PLAIN_WEIGHTS, SHORTLIST_FILE };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    int i = 0;
    while (convert_input_vocabulary(i) != NULL && strcmp(convert_input_vocabulary(i), name) != 0)
        i++;
    return convert_input_vocabulary(i) != NULL;
}

/* Of a folder that is there, only one that is empty, or a model and nothing else, may be replaced. */
static enum tfm_status check_entry(const char *name, bool force, const char *folder, struct tfm_error *err)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return TFM_OK;
    if (!force)
        return err_set(
            err, TFM_EINVAL,
            "%s is there already and not empty: name another folder, or replace the model in it with "
            "--force",
            folder);
    if (!is_model_file(name))
        return err_set(err, TFM_EINVAL,
                       "%s holds %s, which is no file of a model and would be lost: name another folder",
                       folder, name);
    return TFM_OK;
}

static enum tfm_status check_options(const struct tfm_convert_options *o, struct tfm_error *err)
{
    struct stat info;
    const struct limit limits[] = { { "precision", (int)o->precision, 0, TFM_PRECISION_INT8 } };
    TRY(LIMIT_CHECK(limits, err));
    if (o->output == NULL || *o->output == '\0')
        return err_set(err, TFM_EINVAL, "no folder to write is named");
    if (stat(o->output, &info) != 0)
        return TFM_OK;
    if (!S_ISDIR(info.st_mode))
        return err_set(err, TFM_EINVAL, "%s is no folder: name another to write the model to", o->output);
    DIR *dir = opendir(o->output);
    if (dir == NULL)
        return err_io(err, "cannot read the folder %s", o->output);
    enum tfm_status status = TFM_OK;
    struct dirent *entry;
    while (status == TFM_OK && (entry = readdir(dir)) != NULL)
        status = check_entry(entry->d_name, o->force, o->output, err);
    closedir(dir);
    return status;
}

/* A link is followed: the folder that it names is replaced. */
static enum tfm_status name_output(struct conversion *c, struct tfm_error *err)
{
    char real_path[PATH_MAX];
    const char *path = realpath(c->options->output, real_path);
    if (path == NULL)
        path = c->options->output;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    TRY(str_add(&c->output, path, len, err));
    return str_printf(&c->temporary, err, "%s.tmp-%ld", c->output.data, (long)getpid());
}

/* ---- reading ---- */

/* A model named twice would weigh twice, as one would that a link beside it names. */
static enum tfm_status check_inputs(const struct conversion *c, struct tfm_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct convert_input *input = &c->inputs[i];
        if (c->options->smoothed && !input->is_checkpoint)
            return err_set(
                err, TFM_EINVAL,
                "%s is a model and no checkpoint: only checkpoints hold smoothed weights beside the "
                "others (--smoothed)",
                input->name);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(c->inputs[j].folder, input->folder) == 0)
                return err_set(err, TFM_EINVAL, "%s and %s are the same folder: name it once",
                               c->inputs[j].name, input->name);
        }
        TRY(convert_input_check_same(&c->inputs[0], input, err));
    }
    return TFM_OK;
}

static enum tfm_status open_inputs(struct conversion *c, struct tfm_error *err)
{
    const struct tfm_convert_options *o = c->options;
    if (o->n_inputs == 0)
        return err_set(err, TFM_EINVAL, "no model to convert is named");
    if (o->n_inputs > 1 && !o->average)
        return err_set(err, TFM_EINVAL,
                       "found %zu models to convert, expected one; --average makes one of several",
                       o->n_inputs);
    c->inputs = mem_alloc(o->n_inputs * sizeof(*c->inputs), err);
    if (c->inputs == NULL)
        return TFM_ENOMEM;
    while (c->n < o->n_inputs) {
        c->n++;
        TRY(convert_input_open(&c->inputs[c->n - 1], o->inputs[c->n - 1], err));
    }
    return check_inputs(c, err);
}

static enum tfm_status read_first(struct conversion *c, struct tfm_error *err)
{
    TRY(model_read_config(&c->config, &c->training, c->inputs[0].model, err));
    TRY(convert_input_read_vocabularies(&c->vocabularies, &c->inputs[0], err));
    TRY(params_list(&c->params, &c->config, err));
    if (c->options->calibration != NULL && c->options->calibration->n != c->params.n)
        return err_set(err, TFM_EINVAL, "%s is not the model that was calibrated", c->options->inputs[0]);
    c->params.input_scales = mem_alloc((size_t)c->params.n * sizeof(*c->params.input_scales), err);
    if (c->params.input_scales == NULL)
        return TFM_ENOMEM;
    return pool_new(&c->pool, pool_cores(), err);
}

static enum tfm_status read_weights(struct conversion *c, struct convert_input *input, struct str *path,
                                    struct tfm_error *err)
{
    enum tensor_type type;
    enum convert_weights which = c->options->smoothed  ? CONVERT_SMOOTHED
                                 : c->options->average ? CONVERT_RAW
                                                       : CONVERT_EXPORTED;
    TRY(check_stop(c, err));
    TRY(convert_input_find_weights(path, input, which, err));
    if (c->block == NULL)
        TRY(safetensors_open(&c->block, path->data, &c->params, &type, c->pool, err));
    else
        TRY(safetensors_read(path->data, &c->params, c->block, &type, c->pool, err));
    c->has_f32 = c->has_f32 || (!input->is_checkpoint && type == TENSOR_F32);
    c->has_int8 = c->has_int8 || type == TENSOR_I8;
    const struct param *broken = params_find_broken(&c->params, c->block);
    if (broken != NULL)
        return err_set(err, TFM_EFORMAT, "%s: tensor %s holds a value that is not finite", path->data,
                       broken->name);
    return TFM_OK;
}

static enum tfm_status read_all(struct conversion *c, struct str *path, struct tfm_error *err)
{
    size_t size = c->params.size;
    TRY(read_weights(c, &c->inputs[0], path, err));
    if (c->options->calibration != NULL)
        memcpy(c->params.input_scales, c->options->calibration->input_scales,
               (size_t)c->params.n * sizeof(*c->params.input_scales));
    if (c->n == 1)
        return TFM_OK;
    c->sum = mem_alloc(size * sizeof(*c->sum), err);
    if (c->sum == NULL)
        return TFM_ENOMEM;
    for (size_t i = 0; i < c->n; i++) {
        if (i > 0)
            TRY(read_weights(c, &c->inputs[i], path, err));
        for (size_t j = 0; j < size; j++)
            c->sum[j] += (double)c->block[j];
    }
    for (size_t j = 0; j < size; j++)
        c->block[j] = (real)(c->sum[j] / (double)c->n);
    memset(c->params.input_scales, 0,
           (size_t)c->params.n * sizeof(*c->params.input_scales)); /* they were of others */
    return TFM_OK;
}

/* ---- provenance ---- */

/* What the exported model was found to be is not true of another checkpoint or of a mean; a checkpoint knows
 * how far it had come. */
static enum tfm_status correct_training(json_t *training, const struct conversion *c, struct tfm_error *err)
{
    const struct convert_input *first = &c->inputs[0];
    if (c->n == 1 && !first->is_checkpoint)
        return TFM_OK;
    for (int m = 0; m < N_METRICS; m++)
        json_object_del(training, train_options_metric((enum metric)m));
    if (!first->is_checkpoint)
        return TFM_OK;
    json_object_del(training, "epochs");
    struct str path = { 0 };
    json_t *state = NULL;
    enum tfm_status status = convert_input_find_state(&path, first, err);
    if (status == TFM_OK)
        status = json_read(&state, path.data, err);
    static const char *const fields[][2] = { { "updates", "update" },
                                             { "target_tokens", "target_tokens" },
                                             { "seconds", "seconds" } };
    for (int i = 0; i < 3 && status == TFM_OK; i++) {
        json_t *value = json_object_get(state, fields[i][1]);
        if (!json_is_number(value))
            status = err_set(err, TFM_EFORMAT, "%s: %s is missing or no number", path.data, fields[i][1]);
        else if (json_object_set(training, fields[i][0], value) != 0)
            status = err_set(err, TFM_ENOMEM, "no memory to describe the model in %s", c->options->output);
    }
    json_decref(state);
    str_release(&path);
    return status;
}

/* One more entry of the list "converted": what was made of which folders, without the folders above them. */
static int add_step(json_t *training, const struct conversion *c, enum tensor_type type)
{
    json_t *list = json_object_get(training, "converted"), *names = json_array(), *step;
    if (!json_is_array(list)) {
        list = json_array();
        if (json_object_set_new(training, "converted", list) != 0)
            list = NULL;
    }
    int failed = list == NULL || names == NULL;
    for (size_t i = 0; i < c->n && !failed; i++) {
        json_t *name = json_string(path_base(c->inputs[i].folder));
        failed = json_array_append_new(names, name != NULL ? name : json_string("(name not in UTF-8)"));
    }
    static const char *const precisions[] = {
        [TENSOR_F32] = "fp32", [TENSOR_F16] = "fp16", [TENSOR_I8] = "int8"
    };
    step = json_pack("{s:s, s:s, s:b, s:o}", "tfm", TFM_VERSION, "precision", precisions[type], "average",
                     (int)(c->options->average), "from", names);
    failed = step == NULL || failed;
    if (c->inputs[0].is_checkpoint && !failed)
        failed = json_object_set_new(step, "smoothed", json_boolean(c->inputs[0].is_smoothed));
    if (failed) {
        json_decref(step);
        return -1;
    }
    return json_array_append_new(list, step);
}

static enum tfm_status describe(struct conversion *c, enum tensor_type type, struct tfm_error *err)
{
    json_t *training = c->training != NULL ? json_deep_copy(c->training) : json_object();
    json_decref(c->training);
    c->training = training;
    if (training == NULL)
        return err_set(err, TFM_ENOMEM, "no memory to describe the model in %s", c->options->output);
    TRY(correct_training(training, c, err));
    if (add_step(training, c, type) != 0)
        return err_set(err, TFM_ENOMEM, "no memory to describe the model in %s", c->options->output);
    return TFM_OK;
}

/* ---- writing ---- */

/* A shortlist is of the vocabularies, whatever the weights are. */
static enum tfm_status copy_shortlist(const struct conversion *c, struct str *path, struct tfm_error *err)
{
    char *data;
    size_t size;
    TRY(path_join(path, c->inputs[0].model, SHORTLIST_FILE, err));
    if (!file_exists(path->data))
        return TFM_OK;
    TRY(file_read(path->data, &data, &size, err));
    enum tfm_status status = path_join(path, c->temporary.data, SHORTLIST_FILE, err);
    if (status == TFM_OK)
        status = file_write(path->data, data, size, err);
    mem_free(data);
    return status;
}

static enum tensor_type output_type(const struct conversion *c)
{
    switch (c->options->precision) {
    case TFM_PRECISION_FP32: return TENSOR_F32;
    case TFM_PRECISION_FP16: return TENSOR_F16;
    case TFM_PRECISION_INT8: return TENSOR_I8;
    case TFM_PRECISION_KEEP: break;
    }
    return c->has_f32 ? TENSOR_F32 : c->has_int8 ? TENSOR_I8 : TENSOR_F16;
}

static enum tfm_status write_folder(struct conversion *c, struct str *path, struct tfm_error *err)
{
    const char *folder = c->temporary.data;
    enum tensor_type type = output_type(c);
    TRY(describe(c, type, err));
    TRY(dir_remove(folder, err)); /* of a process that had this number, and was killed */
    TRY(dir_make(folder, err));
    const struct convert_vocabularies *v = &c->vocabularies;
    for (int i = 0; convert_input_vocabulary(i) != NULL; i++) {
        if (v->file[i].data == NULL)
            continue;
        TRY(path_join(path, folder, convert_input_vocabulary(i), err));
        TRY(file_write(path->data, v->file[i].data, v->file[i].size, err));
    }
    TRY(copy_shortlist(c, path, err));
    TRY(check_stop(c, err));
    TRY(model_write(folder, &c->config, c->training, &c->params, c->block, type, c->options->plain, c->pool,
                    err));
    TRY(check_stop(c, err));
    return dir_rename(folder, c->output.data, err);
}

static enum tfm_status convert(struct conversion *c, struct str *path, struct tfm_error *err)
{
    TRY(check_options(c->options, err));
    TRY(open_inputs(c, err));
    TRY(read_first(c, err));
    TRY(read_all(c, path, err));
    TRY(name_output(c, err));
    enum tfm_status status = write_folder(c, path, err);
    if (status != TFM_OK) {
        struct tfm_error ignored; /* the first failure is the one to tell */
        dir_remove(c->temporary.data, &ignored);
    }
    return status;
}

static void conversion_release(struct conversion *c)
{
    for (size_t i = 0; i < c->n; i++)
        convert_input_release(&c->inputs[i]);
    mem_free(c->inputs);
    convert_input_release_vocabularies(&c->vocabularies);
    json_decref(c->training);
    mem_free(c->params.input_scales);
    params_release(&c->params);
    mem_free(c->block);
    mem_free(c->sum);
    str_release(&c->output);
    str_release(&c->temporary);
    pool_free(c->pool);
}

enum tfm_status tfm_convert(const struct tfm_convert_options *options, struct tfm_error *err)
{
    struct conversion c = { .options = options };
    struct str path = { 0 };
    enum tfm_status status = convert(&c, &path, err);
    str_release(&path);
    conversion_release(&c);
    return status;
}
