/*
 * str.c: growable byte strings and int arrays, doubling as they grow.
 */
#include "base/str.h"

#include <stdarg.h>
#include <string.h>

#include "base/mem.h"

enum tfm_status str_reserve(struct str *s, size_t n, struct tfm_error *err)
{
    if (n >= SIZE_MAX / 4 - s->len)
        return err_set(err, TFM_ENOMEM, "no memory for a text of %zu bytes more", n);
    size_t need = s->len + n + 1; /* with the final NUL */
    if (need <= s->cap)
        return TFM_OK;
    size_t cap = s->cap * 2 > need ? s->cap * 2 : need < 64 ? 64 : need;
    char *data = mem_grow(s->data, s->cap, cap, 1, err);
    if (data == NULL)
        return TFM_ENOMEM;
    s->data = data;
    s->cap = cap;
    return TFM_OK;
}

enum tfm_status str_add(struct str *s, const char *bytes, size_t n, struct tfm_error *err)
{
    TRY(str_reserve(s, n, err));
    if (n > 0)
        memcpy(s->data + s->len, bytes, n);
    s->len += n;
    s->data[s->len] = '\0';
    return TFM_OK;
}

enum tfm_status str_printf(struct str *s, struct tfm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0)
        return err_set(err, TFM_EINVAL, "a text could not be formatted");
    TRY(str_reserve(s, (size_t)n, err));
    va_start(args, format);
    vsnprintf(s->data + s->len, (size_t)n + 1, format, args);
    va_end(args);
    s->len += (size_t)n;
    return TFM_OK;
}

void str_clear(struct str *s)
{
    s->len = 0;
    if (s->data != NULL)
        s->data[0] = '\0';
}

void str_release(struct str *s)
{
    mem_free(s->data);
    *s = (struct str){ 0 };
}

enum tfm_status ints_reserve(struct ints *a, size_t n, struct tfm_error *err)
{
    if (n > SIZE_MAX / 16 - a->n)
        return err_set(err, TFM_ENOMEM, "no memory for %zu numbers more", n);
    size_t need = a->n + n;
    if (need <= a->cap)
        return TFM_OK;
    size_t cap = a->cap * 2 > need ? a->cap * 2 : need < 16 ? 16 : need;
    int *data = mem_grow(a->data, a->cap, cap, sizeof(int), err);
    if (data == NULL)
        return TFM_ENOMEM;
    a->data = data;
    a->cap = cap;
    return TFM_OK;
}

enum tfm_status ints_add(struct ints *a, const int *values, size_t n, struct tfm_error *err)
{
    TRY(ints_reserve(a, n, err));
    if (n > 0)
        memcpy(a->data + a->n, values, n * sizeof(int));
    a->n += n;
    return TFM_OK;
}

void ints_release(struct ints *a)
{
    mem_free(a->data);
    *a = (struct ints){ 0 };
}
