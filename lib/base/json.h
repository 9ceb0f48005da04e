/*
 * json.h: the border to jansson. Readers say what they expect and get a sentence with file, field, found and
 * expected.
 */
#ifndef TFM_BASE_JSON_H
#define TFM_BASE_JSON_H

#include <jansson.h>

#include "base/err.h"

/* Parses a file. json_decref the result. */
enum tfm_status json_read(json_t **root, const char *path, struct tfm_error *err);
/* Indented, atomic. */
enum tfm_status json_write(const json_t *root, const char *path, struct tfm_error *err);

/* Typed fields of an object; `path` is the file named in messages. A missing field is an error. */
enum tfm_status json_get_int(const json_t *object, const char *field, long min, long max, int *value,
                             const char *path, struct tfm_error *err);
enum tfm_status json_get_real(const json_t *object, const char *field, double min, double max, double *value,
                              const char *path, struct tfm_error *err);
enum tfm_status json_get_bool(const json_t *object, const char *field, bool *value, const char *path,
                              struct tfm_error *err);
/* The string belongs to the object. */
enum tfm_status json_get_string(const json_t *object, const char *field, const char **value, const char *path,
                                struct tfm_error *err);

#endif
