/*
 * safetensors.c: a block of parameters as a safetensors file (8 bytes of header length, a JSON header, the
 * data without gaps), plain or inside gzip. A file read may come from anywhere: every length, offset, shape
 * and name is proved against the file's size and the table of parameters before memory is taken for the
 * weights. A plain file is mapped rather than read. Numbers are little-endian, on disk and here. Format:
 * github.com/huggingface/safetensors, README.
 */
#include "model/safetensors.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "num/f16.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied between file and memory");

#define LENGTH_SIZE 8
#define ALIGNMENT 8          /* of the data in the file */
#define MAX_HEADER 100000000 /* the format's own limit */
#define F16_MAX 65504.0
#define CHUNK 1024 /* numbers converted at a time */

static const struct {
    const char *name;
    size_t size;
} types[] = { [TENSOR_F32] = { "F32", 4 }, [TENSOR_F16] = { "F16", 2 } };

const char *safetensors_type_name(enum tensor_type type)
{
    return types[type].name;
}

size_t safetensors_type_size(enum tensor_type type)
{
    return types[type].size;
}

static bool is_gzip(const char *path)
{
    size_t len = strlen(path);
    return len > 3 && strcmp(path + len - 3, ".gz") == 0;
}

/* ---- writing ---- */

/* The length, the JSON and spaces up to where the data begins. */
static enum tfm_status make_header(struct str *header, const struct params *params, enum tensor_type type,
                                   struct tfm_error *err)
{
    static const char no_length[LENGTH_SIZE];
    TRY(str_add(header, no_length, LENGTH_SIZE, err));
    size_t begin = 0;
    for (int i = 0; i < params->n; i++) {
        const struct param *param = &params->list[i];
        size_t end = begin + params_count(param) * types[type].size;
        /* The names of params.def need no quoting. */
        TRY(str_printf(header, err, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[", i == 0 ? '{' : ',', param->name,
                       types[type].name));
        if (!param->is_vector)
            TRY(str_printf(header, err, "%d,", param->rows));
        TRY(str_printf(header, err, "%d],\"data_offsets\":[%zu,%zu]}", param->cols, begin, end));
        begin = end;
    }
    TRY(str_add(header, "}", 1, err));
    while (header->len % ALIGNMENT != 0)
        TRY(str_add(header, " ", 1, err));
    uint64_t length = header->len - LENGTH_SIZE;
    memcpy(header->data, &length, LENGTH_SIZE);
    return TFM_OK;
}

struct writing {
    const struct params *params;
    const real *block;
    enum tensor_type type;
    char *data;
};

static void write_task(void *arg, int i, int worker)
{
    (void)worker;
    const struct writing *w = arg;
    const struct param *param = &w->params->list[i];
    const real *x = w->block + param->offset;
    char *y = w->data + param->offset * types[w->type].size;
    float values[CHUNK];
    uint16_t halves[CHUNK];
    for (size_t left = params_count(param), n; left > 0; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        for (size_t j = 0; j < n; j++)
            values[j] = (float)x[j];
        if (w->type == TENSOR_F16)
            f16_encode(halves, values, n);
        memcpy(y, w->type == TENSOR_F16 ? (const void *)halves : values, n * types[w->type].size);
        x += n;
        y += n * types[w->type].size;
    }
}

/* A value that F16 would turn into infinity must not get lost in silence. */
static enum tfm_status check_range(const char *path, const struct params *params, const real *block,
                                   struct tfm_error *err)
{
    for (int i = 0; i < params->n; i++) {
        const struct param *param = &params->list[i];
        for (size_t j = 0; j < params_count(param); j++) {
            double value = (double)block[param->offset + j];
            if (!(fabs(value) <= F16_MAX))
                return err_set(err, TFM_EINVAL,
                               "%s: tensor %s holds %g, beyond the %g of F16; write the weights as F32", path,
                               param->name, value, F16_MAX);
        }
    }
    return TFM_OK;
}

enum tfm_status safetensors_write(const char *path, const struct params *params, const real *block,
                                  enum tensor_type type, struct pool *pool, struct tfm_error *err)
{
    if (type == TENSOR_F16)
        TRY(check_range(path, params, block, err));
    struct str header = { 0 };
    enum tfm_status status = make_header(&header, params, type, err);
    char *file = NULL;
    if (status == TFM_OK) {
        size_t size = header.len + params->size * types[type].size;
        file = mem_alloc(size, err);
        status = file != NULL ? TFM_OK : TFM_ENOMEM;
        if (file != NULL) {
            memcpy(file, header.data, header.len);
            struct writing w = { params, block, type, file + header.len };
            pool_run(pool, params->n, write_task, &w);
            status = is_gzip(path) ? gzip_write(path, file, size, header.len, pool, err)
                                   : file_write(path, file, size, err);
        }
    }
    mem_free(file);
    str_release(&header);
    return status;
}

/* ---- reading ---- */

struct stored { /* a tensor as the file has it */
    const struct param *param;
    enum tensor_type type;
    size_t begin, end; /* bytes of the data */
};

struct reading {
    const char *path;
    const struct params *params;
    char *file;
    size_t size;
    bool is_mapped;
    const char *data; /* behind the header */
    size_t data_size;
    struct stored *stored; /* [params->n] */
    real *block;
};

static enum tfm_status map_file(struct reading *r, struct tfm_error *err)
{
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_io(err, "cannot open %s", r->path);
    enum tfm_status status = TFM_OK;
    struct stat info;
    if (fstat(fd, &info) != 0) {
        status = err_io(err, "cannot read %s", r->path);
    } else if (!S_ISREG(info.st_mode)) {
        status = err_set(err, TFM_EIO, "%s is not a regular file", r->path);
    } else if (info.st_size > 0) { /* nothing can be mapped of an empty file */
        void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            status = err_io(err, "cannot map %s", r->path);
        } else {
            r->file = map;
            r->size = (size_t)info.st_size;
            r->is_mapped = true;
        }
    }
    close(fd);
    return status;
}

static void reading_release(struct reading *r)
{
    if (r->is_mapped)
        munmap(r->file, r->size);
    else
        mem_free(r->file);
    mem_free(r->stored);
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

static enum tfm_status read_type(enum tensor_type *type, const json_t *entry, const struct param *param,
                                 const char *path, struct tfm_error *err)
{
    const char *found = json_string_value(json_object_get(entry, "dtype"));
    for (int i = 0; found != NULL && i < (int)(sizeof(types) / sizeof(types[0])); i++) {
        if (strcmp(found, types[i].name) == 0) {
            *type = (enum tensor_type)i;
            return TFM_OK;
        }
    }
    return err_set(err, TFM_EFORMAT, "%s: tensor %s has the dtype %.20s, expected F32 or F16", path,
                   param->name, found != NULL ? found : "(none)");
}

static enum tfm_status read_entry(struct stored *stored, const json_t *entry, const struct param *param,
                                  const struct reading *r, struct tfm_error *err)
{
    TRY(read_type(&stored->type, entry, param, r->path, err));
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

/* Every entry of the header is a tensor of the model, and none is missing. */
static enum tfm_status read_entries(struct reading *r, json_t *root, struct tfm_error *err)
{
    if (!json_is_object(root))
        return err_set(err, TFM_EFORMAT, "%s: the header should be a JSON object", r->path);
    const char *name;
    json_t *entry;
    json_object_foreach (root, name, entry) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        const struct param *param = params_find(r->params, name);
        if (param == NULL)
            return err_set(err, TFM_EFORMAT,
                           "%s: tensor %.100s has no place in the model that config.json describes", r->path,
                           name);
        TRY(read_entry(&r->stored[param - r->params->list], entry, param, r, err));
    }
    for (int i = 0; i < r->params->n; i++) {
        if (r->stored[i].param == NULL)
            return err_set(err, TFM_EFORMAT,
                           "%s: tensor %s of the model that config.json describes is missing", r->path,
                           r->params->list[i].name);
    }
    return TFM_OK;
}

static int compare_begin(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The tensors cover the data, each byte once. */
static enum tfm_status check_layout(struct reading *r, struct tfm_error *err)
{
    qsort(r->stored, (size_t)r->params->n, sizeof(*r->stored), compare_begin);
    size_t at = 0;
    for (int i = 0; i < r->params->n; i++) {
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
    return TFM_OK;
}

/* Brings the file into memory and proves all that it says. reading_release it, also on failure. */
static enum tfm_status reading_init(struct reading *r, const char *path, const struct params *params,
                                    struct pool *pool, struct tfm_error *err)
{
    *r = (struct reading){ .path = path, .params = params };
    if (is_gzip(path))
        TRY(gzip_read(path, LENGTH_SIZE + MAX_HEADER + params->size * sizeof(float), &r->file, &r->size, pool, err));
    else
        TRY(map_file(r, err));
    r->stored = mem_alloc((size_t)params->n * sizeof(*r->stored), err);
    if (r->stored == NULL)
        return TFM_ENOMEM;
    json_t *root = NULL;
    enum tfm_status status = read_header(&root, r, err);
    if (status == TFM_OK)
        status = read_entries(r, root, err);
    json_decref(root);
    return status == TFM_OK ? check_layout(r, err) : status;
}

static void read_task(void *arg, int i, int worker)
{
    (void)worker;
    const struct reading *r = arg;
    const struct stored *s = &r->stored[i];
    const char *x = r->data + s->begin; /* at any address: copied before it is looked at */
    real *y = r->block + s->param->offset;
    float values[CHUNK];
    uint16_t halves[CHUNK];
    for (size_t left = params_count(s->param), n; left > 0; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        memcpy(s->type == TENSOR_F16 ? (void *)halves : values, x, n * types[s->type].size);
        if (s->type == TENSOR_F16)
            f16_decode(values, halves, n);
        for (size_t j = 0; j < n; j++)
            y[j] = values[j];
        x += n * types[s->type].size;
        y += n;
    }
}

static void read_values(struct reading *r, enum tensor_type *type, real *block, struct pool *pool)
{
    r->block = block;
    pool_run(pool, r->params->n, read_task, r);
    *type = TENSOR_F16;
    for (int i = 0; i < r->params->n; i++) {
        if (r->stored[i].type == TENSOR_F32)
            *type = TENSOR_F32;
    }
}

enum tfm_status safetensors_read(const char *path, const struct params *params, real *block,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err)
{
    struct reading r;
    enum tfm_status status = reading_init(&r, path, params, pool, err);
    if (status == TFM_OK)
        read_values(&r, type, block, pool);
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
        *block = mem_alloc(params->size * sizeof(real), err);
        status = *block != NULL ? TFM_OK : TFM_ENOMEM;
    }
    if (status == TFM_OK)
        read_values(&r, type, *block, pool);
    reading_release(&r);
    return status;
}
