/*
 * safetensors.h: named tensors on disk, as a safetensors file, plain or inside gzip: 8 bytes of header length
 * (little-endian), a JSON header {"name": {"dtype", "shape", "data_offsets"}}, then the data.
 */
#ifndef TFM_MODEL_SAFETENSORS_H
#define TFM_MODEL_SAFETENSORS_H

#include "base/pool.h"
#include "model/params.h"

enum tensor_type { TENSOR_F32, TENSOR_F16 };

const char *safetensors_type_name(enum tensor_type type); /* "F32" */
size_t safetensors_type_size(enum tensor_type type);      /* bytes of a value */

/* Writes a block under the names of params; path ending in ".gz" is gzip in independent members
 * (base/gzip.h), the first holding the whole header. Atomic. A value that F16 cannot hold is an error. pool
 * may be NULL. */
enum tfm_status safetensors_write(const char *path, const struct params *params, const real *block,
                                  enum tensor_type type, struct pool *pool, struct tfm_error *err);

/* Reads into a block: every name of params must be there with its shape, and none else. F32 or F16; *type is
 * F32 where any tensor is. The block is written only when all was proved. */
enum tfm_status safetensors_read(const char *path, const struct params *params, real *block,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err);

/* The same with a block of its own (mem_free it), taken when all was proved: a false config.json costs no
 * memory. */
enum tfm_status safetensors_open(real **block, const char *path, const struct params *params,
                                 enum tensor_type *type, struct pool *pool, struct tfm_error *err);

#endif
