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

struct loaded {            /* parameters as a model for translation is made from them */
    enum tensor_type type; /* of the file */
    real *kept;            /* [kept_size] vectors, and the scales of whole numbers */
    real *block;           /* [size] where matrices are reals, else NULL ... */
    int8_t *values;        /* ... and [size] whole numbers at the same places */
};

/* Reads matrices as reals or, with TFM_PRECISION_INT8, as whole numbers, whatever the file has; with
 * TFM_PRECISION_KEEP as it has them. A row with a weight that is not finite gets the scale NaN. The caller
 * frees what was taken, on failure too. */
enum tfm_status safetensors_load(struct loaded *loaded, const char *path, const struct params *params,
                                 enum tfm_precision precision, struct pool *pool, struct tfm_error *err);
void loaded_release_matrices(struct loaded *loaded);

#endif
