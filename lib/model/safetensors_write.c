/*
 * safetensors_write.c: a block of parameters to a safetensors file. As I8 each quantisable matrix becomes
 * NAME in whole numbers and NAME.scale, a scale for each row (num/int8.h), and perhaps NAME.input_scale;
 * vectors stay F32, and stand with the scales in front of the whole numbers, so that all are aligned.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/gzip.h"
#include "base/mem.h"
#include "model/safetensors.h"
#include "num/f16.h"
#include "num/int8.h"

#define LENGTH_SIZE 8 /* of the header's length */
#define ALIGNMENT   8 /* of the data in the file */
#define F16_MAX     65504.0
#define CHUNK       1024 /* numbers converted at a time */

struct writing {
    const struct params *params;
    const real *block;
    enum tensor_type type;
    char *data;
    size_t *at,
        *scales_at; /* [params->n] bytes of data in front of a tensor and of its scales, which that of its
                               inputs follows */
};

/* ---- header ---- */

static enum tfm_status add_entry(struct str *header, const char *name, const char *suffix,
                                 enum tensor_type type, int rows, int cols, size_t begin,
                                 struct tfm_error *err)
{
    /* The names of params.def need no quoting. */
    TRY(str_printf(header, err, "%c\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", begin == 0 ? '{' : ',', name,
                   suffix, safetensors_type_name(type)));
    if (rows > 0)
        TRY(str_printf(header, err, "%d,", rows));
    size_t count = (size_t)(rows > 0 ? rows : 1) * (size_t)cols;
    return str_printf(header, err, "%d],\"data_offsets\":[%zu,%zu]}", cols, begin,
                      begin + count * safetensors_type_size(type));
}

/* 0: there is none to be written. */
static float input_scale(const struct writing *w, int i)
{
    return w->params->input_scales != NULL ? (float)w->params->input_scales[i] : 0;
}

/* Entries of one pass: first all that is not I8, then what is. */
static enum tfm_status add_entries(struct str *header, struct writing *w, bool is_int8_pass, size_t *size,
                                   struct tfm_error *err)
{
    for (int i = 0; i < w->params->n; i++) {
        const struct param *param = &w->params->list[i];
        enum tensor_type type = safetensors_type_of(param, w->type);
        if ((type == TENSOR_I8) == is_int8_pass) {
            w->at[i] = *size;
            TRY(add_entry(header, param->name, "", type, param->is_vector ? 0 : param->rows, param->cols,
                          *size, err));
            *size += params_count(param) * safetensors_type_size(type);
        } else if (!is_int8_pass) {
            w->scales_at[i] = *size;
            TRY(add_entry(header, param->name, SAFETENSORS_SCALE, TENSOR_F32, 0, param->rows, *size, err));
            *size += (size_t)param->rows * safetensors_type_size(TENSOR_F32);
            if (input_scale(w, i) == 0)
                continue;
            TRY(add_entry(header, param->name, SAFETENSORS_INPUT_SCALE, TENSOR_F32, 0, 1, *size, err));
            *size += safetensors_type_size(TENSOR_F32);
        }
    }
    return TFM_OK;
}

/* The length, the JSON and spaces up to where the data begins; *size bytes of it. */
static enum tfm_status make_header(struct str *header, struct writing *w, size_t *size, struct tfm_error *err)
{
    static const char no_length[LENGTH_SIZE];
    *size = 0;
    TRY(str_add(header, no_length, LENGTH_SIZE, err));
    TRY(add_entries(header, w, false, size, err));
    TRY(add_entries(header, w, true, size, err));
    TRY(str_add(header, "}", 1, err));
    while (header->len % ALIGNMENT != 0)
        TRY(str_add(header, " ", 1, err));
    uint64_t length = header->len - LENGTH_SIZE;
    memcpy(header->data, &length, LENGTH_SIZE);
    return TFM_OK;
}

/* ---- data ---- */

static void write_rows(const struct writing *w, int i)
{
    const struct param *param = &w->params->list[i];
    const real *x = w->block + param->offset;
    int8_t *q = (int8_t *)(w->data + w->at[i]);
    char *scales = w->data + w->scales_at[i];
    for (int row = 0; row < param->rows; row++, x += param->cols, q += param->cols, scales += sizeof(float)) {
        float scale = (float)int8_quantise_row(q, x, param->cols);
        memcpy(scales, &scale, sizeof(scale));
    }
    float scale = input_scale(w, i);
    if (scale > 0)
        memcpy(scales, &scale, sizeof(scale));
}

static void write_task(void *arg, int i, int worker)
{
    (void)worker;
    const struct writing *w = arg;
    const struct param *param = &w->params->list[i];
    enum tensor_type type = safetensors_type_of(param, w->type);
    if (type == TENSOR_I8) {
        write_rows(w, i);
        return;
    }
    const real *x = w->block + param->offset;
    char *y = w->data + w->at[i];
    size_t value = safetensors_type_size(type);
    float values[CHUNK];
    uint16_t halves[CHUNK];
    for (size_t left = params_count(param), n; left > 0; left -= n) {
        n = left < CHUNK ? left : CHUNK;
        for (size_t j = 0; j < n; j++)
            values[j] = (float)x[j];
        if (type == TENSOR_F16)
            f16_encode(halves, values, n);
        memcpy(y, type == TENSOR_F16 ? (const void *)halves : values, n * value);
        x += n;
        y += n * value;
    }
}

/* A value that F16 would turn into infinity, or int8 a row into nothing, must not get lost in silence. */
static enum tfm_status check_range(const char *path, const struct params *params, const real *block,
                                   enum tensor_type type, struct tfm_error *err)
{
    for (int i = 0; i < params->n && type != TENSOR_F32; i++) {
        const struct param *param = &params->list[i];
        for (size_t j = 0; j < params_count(param); j++) {
            double value = (double)block[param->offset + j];
            if (type == TENSOR_I8 ? isfinite(value) : fabs(value) <= F16_MAX)
                continue;
            if (type == TENSOR_I8)
                return err_set(err, TFM_EINVAL, "%s: tensor %s holds %g, for which int8 has no number", path,
                               param->name, value);
            return err_set(err, TFM_EINVAL,
                           "%s: tensor %s holds %g, beyond the %g of F16; write the weights as F32", path,
                           param->name, value, F16_MAX);
        }
    }
    return TFM_OK;
}

static enum tfm_status write_file(const char *path, struct writing *w, struct str *header, struct pool *pool,
                                  struct tfm_error *err)
{
    size_t size;
    TRY(make_header(header, w, &size, err));
    char *file = mem_alloc(header->len + size, err);
    if (file == NULL)
        return TFM_ENOMEM;
    memcpy(file, header->data, header->len);
    w->data = file + header->len;
    pool_run(pool, w->params->n, write_task, w);
    enum tfm_status status = gzip_is_name(path)
                                 ? gzip_write(path, file, header->len + size, header->len, pool, err)
                                 : file_write(path, file, header->len + size, err);
    mem_free(file);
    return status;
}

enum tfm_status safetensors_write(const char *path, const struct params *params, const real *block,
                                  enum tensor_type type, struct pool *pool, struct tfm_error *err)
{
    TRY(check_range(path, params, block, type, err));
    size_t *at = mem_alloc(2 * (size_t)params->n * sizeof(*at), err);
    if (at == NULL)
        return TFM_ENOMEM;
    struct writing w = { params, block, type, NULL, at, at + params->n };
    struct str header = { 0 };
    enum tfm_status status = write_file(path, &w, &header, pool, err);
    str_release(&header);
    mem_free(at);
    return status;
}
