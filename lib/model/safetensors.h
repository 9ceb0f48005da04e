/*
 * safetensors.h: named tensors on disk, as a safetensors file, plain or inside gzip: 8 bytes of header length
 * (little-endian), a JSON header {"name": {"dtype", "shape", "data_offsets"}}, then the data.
 */
#ifndef TFM_MODEL_SAFETENSORS_H
#define TFM_MODEL_SAFETENSORS_H

#include "base/pool.h"
#include "model/params.h"

enum tensor_type { TENSOR_F32, TENSOR_F16 };

/* Writes a block under the names of params; path ending in ".gz" is gzip in independent members (base/gzip.h), the first
 * holding the whole header. Atomic. pool may be NULL. */
enum tfm_status safetensors_write(const char *path, const struct params *params, const real *block,
                                  enum tensor_type type, struct pool *pool, struct tfm_error *err);

/* Reads into a block: every name of params must be there with its shape, and none else. F32 or F16. */
enum tfm_status safetensors_read(const char *path, const struct params *params, real *block, enum tensor_type *type,
                                 struct pool *pool, struct tfm_error *err);

#endif
