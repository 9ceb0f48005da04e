/*
 * str.h: growable byte strings and arrays of ints. Both start as all zeros and are released with *_release. A
 * failed growth returns TFM_ENOMEM and leaves the content as it was. str.data is always NUL-terminated once
 * something was added.
 */
#ifndef TFM_BASE_STR_H
#define TFM_BASE_STR_H

#include "base/err.h"

struct str {
    char *data;
    size_t len, cap;
};

enum tfm_status str_add(struct str *s, const char *bytes, size_t n, struct tfm_error *err);
enum tfm_status str_printf(struct str *s, struct tfm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum tfm_status str_reserve(struct str *s, size_t n, struct tfm_error *err); /* room for n bytes more */
void str_clear(struct str *s);
void str_release(struct str *s);

struct ints {
    int *data;
    size_t n, cap;
};

enum tfm_status ints_add(struct ints *a, const int *values, size_t n, struct tfm_error *err);
enum tfm_status ints_reserve(struct ints *a, size_t n, struct tfm_error *err); /* room for n more */
void ints_release(struct ints *a);

#endif
