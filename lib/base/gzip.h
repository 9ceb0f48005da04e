/*
 * gzip.h: gzip files of independent members, deflated and inflated side by side. Each member carries its
 * compressed length in an extra field (RFC 1952, subfield "TF": 8 bytes, little-endian, the member's whole
 * length), so that a reader can find all members without inflating; gunzip reads the file as any other. A
 * member that deflate would not shrink by 15 % is stored.
 */
#ifndef TFM_BASE_GZIP_H
#define TFM_BASE_GZIP_H

#include "base/pool.h"

/* Whether a path names such a file: its end tells. */
bool gzip_is_name(const char *path);

/* Writes data as members: the first of first_size bytes (0: none apart), then pieces of at most 4 MiB.
 * Atomic. pool may be NULL in both. */
enum tfm_status gzip_write(const char *path, const void *data, size_t size, size_t first_size,
                           struct pool *pool, struct tfm_error *err);

/* Inflates a whole file into one block (mem_free it). Files without the extra field are inflated in order. One
 * that holds more than `most` bytes is refused before it takes them. */
enum tfm_status gzip_read(const char *path, size_t most, char **data, size_t *size, struct pool *pool,
                          struct tfm_error *err);

#endif
