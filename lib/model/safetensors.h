/*
 * safetensors.h: named tensors on disk, as a safetensors file, plain or inside gzip: 8 bytes of header length
 * (little-endian), a JSON header {"name": {"dtype", "shape", "data_offsets"}}, then the data.
 */
#ifndef TFM_MODEL_SAFETENSORS_H
#define TFM_MODEL_SAFETENSORS_H

#include "base/pool.h"
#include "model/params.h"

/* With I8, a matrix that is quantisable has a tensor of scales beside it, its name and this, a number in F32
 * for each row; the others are F32. */
enum tensor_type {
    TENSOR_F32,
    TENSOR_F16,
    TENSOR_I8
};
#define SAFETENSORS_SCALE ".scale"
/* It can also have a scale for its inputs that was measured beforehand (tfm_calibrate), one number. Where
 * params->input_scales is there, these are read into it and written from it. */
#define SAFETENSORS_INPUT_SCALE ".input_scale"

const char *safetensors_type_name(enum tensor_type type); /* "F32" */
size_t safetensors_type_size(enum tensor_type type);      /* bytes of a value */
/* Of one tensor in a file of a type: its type, and its bytes with scales. */
enum tensor_type safetensors_type_of(const struct param *param, enum tensor_type type);
size_t safetensors_bytes(const struct param *param, enum tensor_type type);

/* Writes a block under the names of params; path ending in ".gz" is gzip in independent members
 * (base/gzip.h), the first holding the whole header. Atomic. A value that the type cannot hold is an error.
 * pool may be NULL. */
enum tfm_status safetensors_write(const char *path, const struct params *params, const real *block,
                                  enum tensor_type type, struct pool *pool, struct tfm_error *err);

/* Reads into a block: every name of params must be there with its shape, and none else. *type is I8
 * where any tensor is, else F32 where any is. The block is written only when all was proved. */
enum tfm_status safetensors_read(const char *path, const struct params *params, real *block,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err);

/* The same with a block of its own (mem_free it), taken when all was proved: a false config.json costs no
 * memory. */
enum tfm_status safetensors_open(real **block, const char *path, const struct params *params,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err);

/* For translation: an open file, whose matrices are read row by row as they are packed, so that they are never in
 * memory twice. With TFM_PRECISION_INT8 they come as whole numbers and with TFM_PRECISION_FP32 as reals, whatever
 * the file has; with TFM_PRECISION_KEEP as it has them. */
struct loaded;
enum tfm_status safetensors_load(struct loaded **loaded, const char *path, const struct params *params,
                                 enum tfm_precision precision, struct pool *pool, struct tfm_error *err);
void loaded_free(struct loaded *loaded); /* not what loaded_take_kept gave */
enum tensor_type loaded_type(const struct loaded *loaded);
bool loaded_is_int8(const struct loaded *loaded);
/* The vectors, with room for the scales of matrices, at params' kept_offset: the caller frees it. */
real *loaded_take_kept(const struct loaded *loaded);

/* The scale that tensor i has for its inputs, or 0. */
real loaded_input_scale(const struct loaded *loaded, int i);
/* A row of tensor i, a matrix, as reals [cols]. */
void loaded_row(real *values, const struct loaded *loaded, int i, int row);
/* n rows as whole numbers [n, cols], which lie in the file or else in room8 [n, cols], and their scales,
 * NaN where a weight is not finite. room [cols]. */
const int8_t *loaded_rows8(real *scales, int8_t *room8, real *room, const struct loaded *loaded, int i,
                           int row, int n);
/* These rows will not be read again: their pages are given back. */
void loaded_forget(const struct loaded *loaded, int i, int row, int n);

#endif
