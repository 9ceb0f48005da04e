/*
 * safetensors.c: parameters from a safetensors file (8 bytes of header length, a JSON header, the data
 * without gaps), plain or inside gzip; safetensors_write.c writes them. A file read may come from anywhere:
 * every length, offset, shape and name is proved against the file's size and the table of parameters before
 * memory is taken for the weights. A plain file is mapped rather than read. Numbers are little-endian, on
 * disk and here. Format: github.com/huggingface/safetensors, README.
 */
#include "model/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "num/f16.h"
#include "num/int8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied between file and memory");

#define LENGTH_SIZE 8
#define MAX_HEADER  100000000 /* the format's own limit */
#define CHUNK       1024      /* numbers converted at a time */

static const struct {
    const char *name;
    size_t size;
} types[] = { [TENSOR_F32] = { "F32", 4 }, [TENSOR_F16] = { "F16", 2 }, [TENSOR_I8] = { "I8", 1 } };

const char *safetensors_type_name(enum tensor_type type)
{
    return types[type].name;
}

size_t safetensors_type_size(enum tensor_type type)
{
    return types[type].size;
}

enum tensor_type safetensors_type_of(const struct param *param, enum tensor_type type)
{
    return type == TENSOR_I8 && !param->quantisable ? TENSOR_F32 : type;
}

size_t safetensors_bytes(const struct param *param, enum tensor_type type)
{
    type = safetensors_type_of(param, type);
    return params_count(param) * types[type].size +
           (type == TENSOR_I8 ? (size_t)param->rows * sizeof(float) : 0);
}

struct stored { /* a tensor as the file has it */
    const struct param *param;
    enum tensor_type type;
    size_t begin, end; /* bytes of the data */
    size_t scales;     /* where those of an I8 begin */
    size_t input_scale; /* behind where that of an I8 begins; 0: it has none */
    bool has_lowest;    /* an I8 holds -128 */
};

struct reading {
    const char *path;
    const struct params *params;
    char *inflated; /* the file's bytes, or NULL where it is mapped */
    const char *file;
    size_t size;
    const char *data; /* behind the header */
    size_t data_size;
    struct stored
        *stored; /* [params->n], and then their scales and those of their inputs, where there are some */
    int n_stored;
    struct param *scales; /* [2 params->n] as parameters: those of rows, then those of inputs */
    real *block;          /* into which is read */
};

static void reading_release(struct reading *r)
{
    if (r->inflated == NULL)
        file_unmap(r->file, r->size);
    mem_free(r->inflated);
    mem_free(r->stored);
    mem_free(r->scales);
}

static enum tfm_status read_header(json_t **root, struct reading *r, struct tfm_error *err)
{
    uint64_t length;
    if (r->size < LENGTH_SIZE)
        return err_set(err, TFM_EFORMAT, "%s: %zu bytes are too few for a safetensors file", r->path,
                       r->size);
    memcpy(&length, r->file, LENGTH_SIZE);
    if (length > MAX_HEADER)
        return err_set(err, TFM_EFORMAT,
                       "%s: not a safetensors file (it begins with a header length of %llu bytes)", r->path,
                       (unsigned long long)length);
    if (length > r->size - LENGTH_SIZE)
        return err_set(err, TFM_EFORMAT, "%s: the file is cut short: the header has %zu of its %llu bytes",
                       r->path, r->size - LENGTH_SIZE, (unsigned long long)length);
    json_error_t json_err;
    *root = json_loadb(r->file + LENGTH_SIZE, (size_t)length, JSON_REJECT_DUPLICATES, &json_err);
    if (*root == NULL && json_error_code(&json_err) == json_error_out_of_memory)
        return err_set(err, TFM_ENOMEM, "no memory to read %s", r->path);
    if (*root == NULL)
        return err_set(err, TFM_EFORMAT, "%s: the header is not JSON: %s (byte %d)", r->path, json_err.text,
                       json_err.position);
    r->data = r->file + LENGTH_SIZE + length;
    r->data_size = r->size - LENGTH_SIZE - (size_t)length;
    return TFM_OK;
}

static bool is_shape_of(const json_t *shape, const struct param *param)
{
    size_t rank = param->is_vector ? 1 : 2;
    const json_t *cols = json_array_get(shape, rank - 1), *rows = json_array_get(shape, 0);
    return json_array_size(shape) == rank && json_is_integer(cols) &&
           json_integer_value(cols) == param->cols &&
           (param->is_vector || (json_is_integer(rows) && json_integer_value(rows) == param->rows));
}

/* Says what a header has in place of the shape that is expected. */
static enum tfm_status refuse_shape(const json_t *shape, const struct param *param, const char *path,
                                    struct tfm_error *err)
{
    char expected[40];
    if (param->is_vector)
        snprintf(expected, sizeof(expected), "[%d]", param->cols);
    else
        snprintf(expected, sizeof(expected), "[%d,%d]", param->rows, param->cols);
    char *found = json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY);
    enum tfm_status status =
        err_set(err, TFM_EFORMAT, "%s: tensor %s has the shape %.60s, expected %s as config.json has it",
                path, param->name, found != NULL ? found : "(none)", expected);
    free(found);
    return status;
}

static bool is_scale(const struct param *param, const struct reading *r)
{
    return param >= r->scales && param < r->scales + 2 * r->params->n;
}

static enum tfm_status read_type(enum tensor_type *type, const json_t *entry, const struct param *param,
                                 const struct reading *r, struct tfm_error *err)
{
    const char *found = json_string_value(json_object_get(entry, "dtype"));
    int n_allowed = is_scale(param, r) ? TENSOR_F32 + 1 : param->quantisable ? TENSOR_I8 + 1 : TENSOR_F16 + 1;
    for (int i = 0; found != NULL && i < n_allowed; i++) {
        if (strcmp(found, types[i].name) == 0) {
            *type = (enum tensor_type)i;
            return TFM_OK;
        }
    }
    static const char *const allowed[] = { "F32", "F32 or F16", "F32, F16 or I8" };
    return err_set(err, TFM_EFORMAT, "%s: tensor %s has the dtype %.20s, expected %s", r->path, param->name,
                   found != NULL ? found : "(none)", allowed[n_allowed - 1]);
}

static enum tfm_status read_entry(struct stored *stored, const json_t *entry, const struct param *param,
                                  const struct reading *r, struct tfm_error *err)
{
    TRY(read_type(&stored->type, entry, param, r, err));
    const json_t *shape = json_object_get(entry, "shape");
    if (!is_shape_of(shape, param))
        return refuse_shape(shape, param, r->path, err);

    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return err_set(err, TFM_EFORMAT, "%s: tensor %s has no data_offsets [begin,end]", r->path,
                       param->name);
    stored->begin = (size_t)json_integer_value(begin);
    stored->end = (size_t)json_integer_value(end);
    size_t need = params_count(param) * types[stored->type].size;
    if (stored->end - stored->begin != need)
        return err_set(err, TFM_EFORMAT, "%s: tensor %s has %zu bytes, expected %zu for its shape and dtype",
                       r->path, param->name, stored->end - stored->begin, need);
    if (stored->end > r->data_size)
        return err_set(err, TFM_EFORMAT,
                       "%s: the file is cut short: tensor %s ends at byte %zu of %zu bytes of data", r->path,
                       param->name, stored->end, r->data_size);
    stored->param = param;
    return TFM_OK;
}

/* A tensor of the model, or the scales of one of its matrices. */
static const struct param *find_entry(const struct reading *r, const char *name)
{
    const struct param *param = params_find(r->params, name);
    for (int i = 0; i < 2 * r->params->n && param == NULL; i++) {
        if (r->params->list[i % r->params->n].quantisable && strcmp(r->scales[i].name, name) == 0)
            param = &r->scales[i];
    }
    return param;
}

/* A matrix in I8 has its scales and can have one for its inputs, and no other has some. */
static enum tfm_status pair_scales(struct reading *r, struct tfm_error *err)
{
    int n = r->params->n;
    r->n_stored = n;
    for (int i = 0; i < 2 * n; i++) {
        bool is_input = i >= n;
        struct stored *tensor = &r->stored[i % n], *scales = &r->stored[n + i];
        if (tensor->param == NULL)
            return err_set(err, TFM_EFORMAT,
                           "%s: tensor %s of the model that config.json describes is missing", r->path,
                           r->params->list[i % n].name);
        bool is_int8 = tensor->type == TENSOR_I8;
        if (is_int8 && !is_input && scales->param == NULL)
            return err_set(err, TFM_EFORMAT, "%s: tensor %s of I8 has no scales: %s is missing", r->path,
                           tensor->param->name, r->scales[i].name);
        if (!is_int8 && scales->param != NULL)
            return err_set(err, TFM_EFORMAT, "%s: there is a tensor %s, but %s has the dtype %s, expected I8",
                           r->path, scales->param->name, tensor->param->name, types[tensor->type].name);
        if (scales->param == NULL)
            continue;
        if (is_input)
            tensor->input_scale = scales->end;
        else
            tensor->scales = scales->begin;
        r->stored[r->n_stored++] = *scales; /* not beyond this one: they close up */
    }
    return TFM_OK;
}

/* Every entry of the header is a tensor of the model, and none is missing. */
static enum tfm_status read_entries(struct reading *r, json_t *root, struct tfm_error *err)
{
    if (!json_is_object(root))
        return err_set(err, TFM_EFORMAT, "%s: the header should be a JSON object", r->path);
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const struct param *param = find_entry(r, name);
        if (param == NULL)
            return err_set(err, TFM_EFORMAT,
                           "%s: tensor %.100s has no place in the model that config.json describes", r->path,
                           name);
        ptrdiff_t at = is_scale(param, r) ? r->params->n + (param - r->scales) : param - r->params->list;
        TRY(read_entry(&r->stored[at], entry, param, r, err));
    }
    return pair_scales(r, err);
}

static void find_lowest(void *arg, int i, int worker)
{
    (void)worker;
    const struct reading *r = arg;
    struct stored *s = &r->stored[i];
    s->has_lowest = s->type == TENSOR_I8 && memchr(r->data + s->begin, 0x80, s->end - s->begin) != NULL;
}

/* Scales are numbers from 0 on, and whole numbers stay within +-127. */
static enum tfm_status check_int8(struct reading *r, struct pool *pool, struct tfm_error *err)
{
    pool_run(pool, r->n_stored, find_lowest, r);
    for (int i = 0; i < r->n_stored; i++) {
        const struct stored *s = &r->stored[i];
        if (s->has_lowest)
            return err_set(err, TFM_EFORMAT, "%s: tensor %s holds -128, expected numbers from -127 to 127",
                           r->path, s->param->name);
        for (int row = 0; is_scale(s->param, r) && row < s->param->cols; row++) {
            float scale;
            memcpy(&scale, r->data + s->begin + (size_t)row * sizeof(scale), sizeof(scale));
            bool is_input = s->param - r->scales >= r->params->n;
            if (!(is_input ? scale > 0 : scale >= 0) || !isfinite(scale))
                return err_set(err, TFM_EFORMAT, "%s: tensor %s holds %g, expected %s", r->path,
                               s->param->name, (double)scale,
                               is_input ? "a finite number above 0" : "finite numbers from 0 on");
        }
    }
    return TFM_OK;
}

static int compare_begin(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The tensors cover the data, each byte once. */
static enum tfm_status check_layout(struct reading *r, struct pool *pool, struct tfm_error *err)
{
    qsort(r->stored, (size_t)r->n_stored, sizeof(*r->stored), compare_begin);
    size_t at = 0;
    for (int i = 0; i < r->n_stored; i++) {
        const struct stored *s = &r->stored[i];
        if (s->begin < at)
            return err_set(err, TFM_EFORMAT, "%s: the tensors %s and %s overlap", r->path, s[-1].param->name,
                           s->param->name);
        if (s->begin > at)
            return err_set(err, TFM_EFORMAT, "%s: %zu bytes before tensor %s belong to no tensor", r->path,
                           s->begin - at, s->param->name);
        at = s->end;
    }
    if (at != r->data_size)
        return err_set(err, TFM_EFORMAT, "%s: %zu bytes at the end belong to no tensor", r->path,
                       r->data_size - at);
    return check_int8(r, pool, err);
}

/* Brings the file into memory and proves all that it says. reading_release it, also on failure. */
static enum tfm_status reading_init(struct reading *r, const char *path, const struct params *params,
                                    struct pool *pool, struct tfm_error *err)
{
    *r = (struct reading){ .path = path, .params = params };
    if (gzip_is_name(path))
        TRY(gzip_read(path, LENGTH_SIZE + MAX_HEADER + params->size * sizeof(float), &r->inflated, &r->size,
                      pool, err));
    else
        TRY(file_map(&r->file, &r->size, path, err));
    if (r->inflated != NULL)
        r->file = r->inflated;
    r->stored = mem_alloc(3 * (size_t)params->n * sizeof(*r->stored), err);
    r->scales = r->stored != NULL ? mem_alloc(2 * (size_t)params->n * sizeof(*r->scales), err) : NULL;
    if (r->scales == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < 2 * params->n; i++) {
        struct param *scales = &r->scales[i];
        const struct param *param = &params->list[i % params->n];
        bool is_input = i >= params->n;
        *scales = (struct param){ .rows = 1, .cols = is_input ? 1 : param->rows, .is_vector = true };
        snprintf(scales->name, sizeof(scales->name), "%.60s%s", param->name,
                 is_input ? SAFETENSORS_INPUT_SCALE : SAFETENSORS_SCALE);
    }
    json_t *root = NULL;
    enum tfm_status status = read_header(&root, r, err);
    if (status == TFM_OK)
        status = read_entries(r, root, err);
    json_decref(root);
    return status == TFM_OK ? check_layout(r, pool, err) : status;
}

/* n values from a place in the file, at any address: copied before they are looked at. */
static void read_floats(real *y, const char *x, enum tensor_type type, size_t n)
{
    float values[CHUNK];
    uint16_t halves[CHUNK];
    for (size_t left = n; left > 0; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        memcpy(type == TENSOR_F16 ? (void *)halves : values, x, n * types[type].size);
        if (type == TENSOR_F16)
            f16_decode(values, halves, n);
        for (size_t j = 0; j < n; j++)
            y[j] = (real)values[j];
        x += n * types[type].size;
        y += n;
    }
}

/* A row of whole numbers with its scale. */
static void read_scaled(real *y, const char *x, const char *scale, size_t n)
{
    const int8_t *q = (const int8_t *)x;
    real times;
    read_floats(&times, scale, TENSOR_F32, 1);
    for (size_t j = 0; j < n; j++)
        y[j] = times * (real)q[j];
}

static real input_scale(const struct reading *r, const struct stored *s)
{
    real scale = 0;
    if (s->input_scale > 0)
        read_floats(&scale, r->data + s->input_scale - sizeof(float), TENSOR_F32, 1);
    return scale;
}

/* A tensor as reals. */
static void read_reals(const struct reading *r, const struct stored *s, real *y)
{
    const char *x = r->data + s->begin;
    if (s->type != TENSOR_I8) {
        read_floats(y, x, s->type, params_count(s->param));
        return;
    }
    size_t cols = (size_t)s->param->cols;
    for (size_t row = 0; row < (size_t)s->param->rows; row++)
        read_scaled(y + row * cols, x + row * cols, r->data + s->scales + row * sizeof(float), cols);
}

static void read_task(void *arg, int i, int worker)
{
    (void)worker;
    const struct reading *r = arg;
    const struct stored *s = &r->stored[i];
    if (is_scale(s->param, r)) /* they are read with their matrices */
        return;
    read_reals(r, s, r->block + s->param->offset);
    if (r->params->input_scales != NULL)
        r->params->input_scales[s->param - r->params->list] = input_scale(r, s);
}

/* I8 where any tensor is, else F32 where any is. */
static enum tensor_type file_type(const struct reading *r)
{
    bool has[] = { [TENSOR_F32] = false, [TENSOR_F16] = false, [TENSOR_I8] = false };
    for (int i = 0; i < r->n_stored; i++)
        has[r->stored[i].type] = true;
    return has[TENSOR_I8] ? TENSOR_I8 : has[TENSOR_F32] ? TENSOR_F32 : TENSOR_F16;
}

enum tfm_status safetensors_read(const char *path, const struct params *params, real *block,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err)
{
    struct reading r;
    enum tfm_status status = reading_init(&r, path, params, pool, err);
    if (status == TFM_OK) {
        r.block = block;
        *type = file_type(&r);
        pool_run(pool, r.n_stored, read_task, &r);
    }
    reading_release(&r);
    return status;
}

enum tfm_status safetensors_open(real **block, const char *path, const struct params *params,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err)
{
    *block = NULL;
    struct reading r;
    enum tfm_status status = reading_init(&r, path, params, pool, err);
    if (status == TFM_OK) {
        r.block = *block = mem_alloc(params->size * sizeof(real), err);
        status = *block != NULL ? TFM_OK : TFM_ENOMEM;
    }
    if (status == TFM_OK) {
        *type = file_type(&r);
        pool_run(pool, r.n_stored, read_task, &r);
    }
    reading_release(&r);
    return status;
}

/* ---- for translation ---- */

struct loaded {
    struct reading reading;
    bool is_int8;
    real *kept;
    const struct stored **tensors; /* [params->n] */
};

static enum tfm_status load(struct loaded *loaded, const char *path, const struct params *params,
                            enum tfm_precision precision, struct pool *pool, struct tfm_error *err)
{
    struct reading *r = &loaded->reading;
    TRY(reading_init(r, path, params, pool, err));
    loaded->is_int8 =
        precision == TFM_PRECISION_INT8 || (precision == TFM_PRECISION_KEEP && file_type(r) == TENSOR_I8);
    loaded->kept = mem_alloc(params->kept_size * sizeof(real), err);
    loaded->tensors =
        loaded->kept != NULL ? mem_alloc((size_t)params->n * sizeof(*loaded->tensors), err) : NULL;
    if (loaded->tensors == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < r->n_stored; i++) {
        const struct stored *s = &r->stored[i];
        if (is_scale(s->param, r))
            continue;
        loaded->tensors[s->param - params->list] = s;
        if (!s->param->quantisable)
            read_reals(r, s, loaded->kept + s->param->kept_offset);
    }
    return TFM_OK;
}

enum tfm_status safetensors_load(struct loaded **loaded, const char *path, const struct params *params,
                                 enum tfm_precision precision, struct pool *pool, struct tfm_error *err)
{
    *loaded = mem_alloc(sizeof(**loaded), err);
    if (*loaded == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = load(*loaded, path, params, precision, pool, err);
    if (status != TFM_OK) {
        mem_free(loaded_take_kept(*loaded));
        loaded_free(*loaded);
        *loaded = NULL;
    }
    return status;
}

void loaded_free(struct loaded *loaded)
{
    if (loaded == NULL)
        return;
    reading_release(&loaded->reading);
    mem_free(loaded->tensors);
    mem_free(loaded);
}

enum tensor_type loaded_type(const struct loaded *loaded)
{
    return file_type(&loaded->reading);
}

bool loaded_is_int8(const struct loaded *loaded)
{
    return loaded->is_int8;
}

real *loaded_take_kept(const struct loaded *loaded)
{
    return loaded->kept;
}

real loaded_input_scale(const struct loaded *loaded, int i)
{
    return input_scale(&loaded->reading, loaded->tensors[i]);
}

void loaded_row(real *values, const struct loaded *loaded, int i, int row)
{
    const struct reading *r = &loaded->reading;
    const struct stored *s = loaded->tensors[i];
    size_t cols = (size_t)s->param->cols;
    const char *x = r->data + s->begin + (size_t)row * cols * types[s->type].size;
    if (s->type == TENSOR_I8)
        read_scaled(values, x, r->data + s->scales + (size_t)row * sizeof(float), cols);
    else
        read_floats(values, x, s->type, cols);
}

const int8_t *loaded_rows8(real *scales, int8_t *room8, real *room, const struct loaded *loaded, int i,
                           int row, int n)
{
    const struct reading *r = &loaded->reading;
    const struct stored *s = loaded->tensors[i];
    size_t cols = (size_t)s->param->cols;
    if (s->type == TENSOR_I8) {
        read_floats(scales, r->data + s->scales + (size_t)row * sizeof(float), TENSOR_F32, (size_t)n);
        return (const int8_t *)r->data + s->begin + (size_t)row * cols;
    }
    for (int k = 0; k < n; k++) {
        loaded_row(room, loaded, i, row + k);
        scales[k] = int8_quantise_row(room8 + (size_t)k * cols, room, s->param->cols);
    }
    return room8;
}

void loaded_forget(const struct loaded *loaded, int i, int row, int n)
{
    const struct reading *r = &loaded->reading;
    const struct stored *s = loaded->tensors[i];
    size_t size = (size_t)s->param->cols * types[s->type].size;
    const char *begin = r->data + s->begin + (size_t)row * size;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)begin + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)begin + (size_t)n * size) / page * page;
    if (to > from)
        madvise((void *)from, to - from, MADV_DONTNEED);
}
