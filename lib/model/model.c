/*
 * model.c: opens a model folder. config.json comes first, since it says what all else must be; then the
 * vocabularies, the weights (inflated side by side, and packed for translation) and the shortlist are read at
 * the same time, because SentencePiece takes as long to build its tables as all else together. Matrices are
 * held once, as they are multiplied by.
 */
#include "model/model.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/limit.h"
#include "base/mem.h"
#include "num/gemm.h"

/* Replaces path by "folder/name"; *is_there tells whether there is such a file. */
static enum tfm_status find_file(struct str *path, bool *is_there, const char *folder, const char *name,
                                 struct tfm_error *err)
{
    TRY(path_join(path, folder, name, err));
    *is_there = file_exists(path->data);
    return TFM_OK;
}

/* ---- config.json ---- */

static enum tfm_status read_config(struct config *config, json_t **training, struct str *path,
                                   const char *folder, struct tfm_error *err)
{
    bool is_there;
    TRY(find_file(path, &is_there, folder, MODEL_CONFIG, err));
    if (!is_there && errno == EACCES)
        return err_io(err, "cannot open %s", path->data);
    if (!is_there && !file_exists(folder))
        return err_set(err, TFM_EIO, "there is no model folder %s", folder);
    if (!is_there)
        return err_set(err, TFM_EIO, "%s holds no " MODEL_CONFIG " and so is no model folder", folder);
    json_t *root;
    TRY(json_read(&root, path->data, err));
    enum tfm_status status = config_parse(config, root, path->data, err);
    if (status == TFM_OK)
        *training = json_incref(json_object_get(root, "training"));
    json_decref(root);
    return status;
}

enum tfm_status model_read_config(struct config *config, json_t **training, const char *folder,
                                  struct tfm_error *err)
{
    struct str path = { 0 };
    *training = NULL;
    enum tfm_status status = read_config(config, training, &path, folder, err);
    str_release(&path);
    return status;
}

/* ---- weights ---- */

enum tfm_status model_find_weights(struct str *path, const char *folder, struct tfm_error *err)
{
    bool is_there;
    TRY(find_file(path, &is_there, folder, MODEL_WEIGHTS, err));
    if (!is_there)
        TRY(find_file(path, &is_there, folder, MODEL_PLAIN_WEIGHTS, err));
    if (!is_there)
        return err_set(err, TFM_EIO,
                       "%s holds no weights: neither " MODEL_WEIGHTS " nor " MODEL_PLAIN_WEIGHTS, folder);
    return TFM_OK;
}

/* A row of a matrix that is not finite has such a scale. */
static const struct param *find_broken(const struct params *params, const real *kept)
{
    for (int i = 0; i < params->n; i++) {
        const struct param *param = &params->list[i];
        size_t n = param->quantisable ? (size_t)param->rows : params_count(param);
        for (size_t j = 0; j < n; j++) {
            if (!isfinite(kept[param->kept_offset + j]))
                return param;
        }
    }
    return NULL;
}

static enum tfm_status pack_weights(struct tfm_model *model, const struct loaded *loaded, struct pool *pool,
                                    struct tfm_error *err)
{
    model->kept = loaded_take_kept(loaded);
    model->type = loaded_type(loaded);
    model->precision = loaded_is_int8(loaded) ? TFM_PRECISION_INT8 : TFM_PRECISION_FP32;
    params_bind_kept(&model->weights, &model->config, model->kept);
    net_bind(&model->net, &model->config, &model->weights);
    if (model->gemm == TFM_GEMM_BLAS && loaded_is_int8(loaded))
        return err_set(err, TFM_EINVAL,
                       "%s: BLAS multiplies reals, and the weights are whole numbers of 8 bits: open "
                       "the model as fp32 (--precision fp32)",
                       model->folder);
    if (model->gemm == TFM_GEMM_BLAS)
        TRY(gemm_open(1, err));
    TRY(matrices_pack(&model->matrices, &model->net, &model->params, loaded, model->kept,
                      model->gemm == TFM_GEMM_OWN, pool, err));
    model->broken = find_broken(&model->params, model->kept);
    return TFM_OK;
}

static enum tfm_status open_weights(struct tfm_model *model, struct str *path, struct tfm_error *err)
{
    TRY(model_find_weights(path, model->folder, err));
    struct pool *pool;
    struct loaded *loaded = NULL;
    TRY(pool_new(&pool, pool_cores(), err));
    enum tfm_status status =
        safetensors_load(&loaded, path->data, &model->params, model->precision, pool, err);
    if (status == TFM_OK)
        status = pack_weights(model, loaded, pool, err);
    loaded_free(loaded);
    pool_free(pool);
    return status;
}

/* ---- vocabularies ---- */

static enum tfm_status check_vocabulary(const struct spm *spm, int size, const char *field,
                                        const struct config *config, const char *path, struct tfm_error *err)
{
    if (spm_size(spm) != size)
        return err_set(err, TFM_EFORMAT, "%s: the vocabulary has %d pieces, but %s in " MODEL_CONFIG " is %d",
                       path, spm_size(spm), field, size);
    if (spm_eos(spm) != config->eos_token_id)
        return err_set(err, TFM_EFORMAT,
                       "%s: </s> is piece %d of the vocabulary, but eos_token_id in " MODEL_CONFIG " is %d",
                       path, spm_eos(spm), config->eos_token_id);
    if (spm_unk(spm) != config->unk_token_id)
        return err_set(err, TFM_EFORMAT,
                       "%s: <unk> is piece %d of the vocabulary, but unk_token_id in " MODEL_CONFIG " is %d",
                       path, spm_unk(spm), config->unk_token_id);
    if (config->mask_token_id == 0)
        return TFM_OK;
    int mask = spm_piece_id(spm, MODEL_MASK_PIECE, strlen(MODEL_MASK_PIECE));
    if (mask != config->mask_token_id)
        return err_set(err, TFM_EFORMAT,
                       "%s: " MODEL_MASK_PIECE
                       " is piece %d of the vocabulary (-1: none), but mask_token_id in " MODEL_CONFIG
                       " is %d",
                       path, mask, config->mask_token_id);
    return TFM_OK;
}

enum tfm_status model_find_vocabulary(struct str *path, bool *is_shared, const char *folder,
                                      struct tfm_error *err)
{
    bool is_there;
    TRY(find_file(path, is_shared, folder, MODEL_VOCAB, err));
    if (*is_shared)
        return TFM_OK;
    TRY(find_file(path, &is_there, folder, MODEL_SOURCE_VOCAB, err));
    if (!is_there)
        return err_set(err, TFM_EIO,
                       "%s holds no vocabulary: neither " MODEL_VOCAB " nor " MODEL_SOURCE_VOCAB
                       " and " MODEL_TARGET_VOCAB,
                       folder);
    return TFM_OK;
}

static enum tfm_status open_vocabularies(struct tfm_model *model, struct str *path, struct tfm_error *err)
{
    const struct config *config = &model->config;
    bool is_shared;
    TRY(model_find_vocabulary(path, &is_shared, model->folder, err));
    TRY(spm_open(&model->source, path->data, err));
    TRY(check_vocabulary(model->source, config->source_vocab_size, "source_vocab_size", config, path->data,
                         err));
    if (is_shared) {
        model->target = model->source;
    } else {
        TRY(path_join(path, model->folder, MODEL_TARGET_VOCAB, err));
        TRY(spm_open(&model->target, path->data, err));
    }
    return check_vocabulary(model->target, config->vocab_size, "vocab_size", config, path->data, err);
}

/* ---- shortlist ---- */

/* Before there are vocabularies to compare it with: check_shortlist does that. */
static enum tfm_status open_shortlist(struct tfm_model *model, struct str *path, struct tfm_error *err)
{
    bool is_there;
    TRY(find_file(path, &is_there, model->folder, SHORTLIST_FILE, err));
    if (!is_there)
        return TFM_OK;
    return shortlist_read_sized(&model->shortlist, path->data, model->config.source_vocab_size,
                                model->config.vocab_size, err);
}

static enum tfm_status check_shortlist(const struct tfm_model *model, struct tfm_error *err)
{
    struct str path = { 0 };
    if (model->shortlist == NULL)
        return TFM_OK;
    enum tfm_status status = path_join(&path, model->folder, SHORTLIST_FILE, err);
    if (status == TFM_OK)
        status = shortlist_check(model->shortlist, path.data, model->source, model->target, err);
    str_release(&path);
    return status;
}

/* ---- the whole ---- */

enum {
    N_PARTS = 3
};

struct opening { /* what threads do at the same time */
    struct tfm_model *model;
    struct part {
        enum tfm_status (*open)(struct tfm_model *model, struct str *path, struct tfm_error *err);
        enum tfm_status status;
        struct tfm_error err;
    } parts[N_PARTS];
};

static void open_task(void *arg, int i, int worker)
{
    (void)worker;
    struct opening *opening = arg;
    struct part *part = &opening->parts[i];
    struct str path = { 0 };
    part->status = part->open(opening->model, &path, &part->err);
    str_release(&path);
}

static enum tfm_status open_parts(struct tfm_model *model, bool with_shortlist, struct tfm_error *err)
{
    int n = with_shortlist ? N_PARTS : N_PARTS - 1;
    struct opening opening = {
        model, { { .open = open_vocabularies }, { .open = open_weights }, { .open = open_shortlist } }
    };
    struct pool *pool;
    TRY(pool_new(&pool, pool_cores() > 2 ? n : 2, err));
    pool_run(pool, n, open_task, &opening);
    pool_free(pool);
    for (int i = 0; i < n; i++) {
        if (opening.parts[i].status != TFM_OK) {
            if (err != NULL)
                *err = opening.parts[i].err;
            return opening.parts[i].status;
        }
    }
    return TFM_OK;
}

static enum tfm_status open_folder(struct tfm_model *model, const char *folder, bool with_shortlist,
                                   struct tfm_error *err)
{
    model->folder = mem_strdup(folder, err);
    if (model->folder == NULL)
        return TFM_ENOMEM;
    enum cpu_tier tier;
    TRY(cpu_current(&tier, err));
    model->kern = kern_for(tier);
    TRY(model_read_config(&model->config, &model->training, folder, err));
    TRY(params_list(&model->params, &model->config, err));
    TRY(open_parts(model, with_shortlist, err));
    return check_shortlist(model, err);
}

/* The tables of learned positions in n rows. */
static enum tfm_status resize_positions(struct tfm_model *model, int n, struct tfm_error *err)
{
    struct position *sides[] = { &model->net.source_position, &model->net.target_position };
    size_t d = (size_t)model->config.d_model;
    if (model->config.positions != TFM_POSITIONS_LEARNED)
        return err_set(
            err, TFM_EINVAL,
            "%s: its positions are \"%s\", of which there is no number to change (--max-positions is for "
            "those that are learned)",
            model->folder, config_choice(&model->config, "positions"));
    model->resized = mem_alloc(2 * (size_t)n * d * sizeof(real), err);
    if (model->resized == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < 2; i++) {
        if (sides[i]->table == NULL) /* a decoder or an encoder alone has one table, its own */
            continue;
        real *table = model->resized + (size_t)i * (size_t)n * d;
        position_resize(table, n, sides[i]->table, sides[i]->length, (int)d);
        sides[i]->table = table;
        sides[i]->length = n;
    }
    return TFM_OK;
}

void tfm_open_options_init(struct tfm_open_options *options)
{
    *options = (struct tfm_open_options){ .precision = TFM_PRECISION_KEEP };
}

enum tfm_status tfm_model_open_with(struct tfm_model **model, const char *folder,
                                    const struct tfm_open_options *options, struct tfm_error *err)
{
    assert(folder != NULL);
    *model = NULL;
    const struct limit limits[] = {
        { "precision", (int)options->precision, 0, TFM_PRECISION_INT8 },
        { "gemm", (int)options->gemm, 0, TFM_GEMM_BF16 },
        { "max_positions", options->max_positions, 0, CONFIG_MAX_DIM },
    };
    TRY(LIMIT_CHECK(limits, err));
    if (options->precision == TFM_PRECISION_FP16)
        return err_set(err, TFM_EINVAL,
                       "weights in fp16 are for the disk only; a model is opened as fp32 or int8");
    if (options->gemm != TFM_GEMM_OWN && options->gemm != TFM_GEMM_BLAS)
        return err_set(err, TFM_EINVAL,
                       "products of bf16 are for training; a model is opened for own ones or BLAS");
    struct tfm_model *m = mem_alloc(sizeof(*m), err);
    if (m == NULL)
        return TFM_ENOMEM;
    m->precision = options->precision;
    m->gemm = options->gemm;
    enum tfm_status status = open_folder(m, folder, options->shortlist, err);
    if (status == TFM_OK && options->max_positions > 0)
        status = resize_positions(m, options->max_positions, err);
    if (status != TFM_OK) {
        tfm_model_free(m);
        return status;
    }
    *model = m;
    return TFM_OK;
}

enum tfm_status tfm_model_open_as(struct tfm_model **model, const char *folder, enum tfm_precision precision,
                                  struct tfm_error *err)
{
    return tfm_model_open_with(model, folder, &(struct tfm_open_options){ .precision = precision }, err);
}

enum tfm_status tfm_model_open(struct tfm_model **model, const char *folder, struct tfm_error *err)
{
    return tfm_model_open_as(model, folder, TFM_PRECISION_KEEP, err);
}

void tfm_model_free(struct tfm_model *model)
{
    if (model == NULL)
        return;
    if (model->target != model->source)
        spm_free(model->target);
    spm_free(model->source);
    json_decref(model->training);
    shortlist_free(model->shortlist);
    params_release(&model->params);
    matrices_release(&model->matrices);
    mem_free(model->resized);
    mem_free(model->kept);
    mem_free(model->folder);
    mem_free(model);
}

enum tfm_precision tfm_model_precision(const struct tfm_model *model)
{
    return model->precision;
}

bool tfm_model_is_language_model(const struct tfm_model *model)
{
    return model->config.task == CONFIG_LANGUAGE_MODEL;
}

const char *tfm_model_folder(const struct tfm_model *model)
{
    return model->folder;
}

void model_values(real *values, const struct tfm_model *model, int i)
{
    matrices_values(values, &model->matrices, &model->params, i, model->kept);
}

size_t model_memory(const struct tfm_model *model)
{
    return model->matrices.size + model->params.kept_size * sizeof(real);
}

/* ---- writing ---- */

static enum tfm_status write_files(struct str *path, const char *folder, const struct config *config,
                                   const json_t *training, const struct params *params, const real *block,
                                   enum tensor_type type, bool is_plain, struct pool *pool,
                                   struct tfm_error *err)
{
    TRY(dir_make(folder, err));
    TRY(path_join(path, folder, MODEL_CONFIG, err));
    TRY(config_write(config, training, path->data, err));
    TRY(path_join(path, folder, is_plain ? MODEL_PLAIN_WEIGHTS : MODEL_WEIGHTS, err));
    return safetensors_write(path->data, params, block, type, pool, err);
}

enum tfm_status model_write(const char *folder, const struct config *config, const json_t *training,
                            const struct params *params, const real *block, enum tensor_type type,
                            bool is_plain, struct pool *pool, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status =
        write_files(&path, folder, config, training, params, block, type, is_plain, pool, err);
    str_release(&path);
    return status;
}

const char *tfm_target_piece(const struct tfm_model *model, int id)
{
    return id >= 0 && id < spm_size(model->target) ? spm_piece(model->target, id) : NULL;
}
