/*
 * json.c: reads JSON with jansson and says what is wrong with it in one sentence: the file, the field, what
 * was found there and what was expected. Duplicate fields are refused, since two readers might take different
 * ones.
 */
#include "base/json.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum tfm_status json_read(json_t **root, const char *path, struct tfm_error *err)
{
    char *data;
    size_t size;
    *root = NULL;
    TRY(file_read(path, &data, &size, err));
    json_error_t problem;
    *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &problem);
    mem_free(data);
    if (*root != NULL)
        return TFM_OK;
    if (json_error_code(&problem) == json_error_out_of_memory)
        return err_set(err, TFM_ENOMEM, "no memory to read %s", path);
    return err_set(err, TFM_EFORMAT, "%s: line %d, column %d: not valid JSON: %s", path, problem.line,
                   problem.column, problem.text);
}

enum tfm_status json_write(const json_t *root, const char *path, struct tfm_error *err)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_ENCODE_ANY);
    if (text == NULL)
        return err_set(err, TFM_ENOMEM, "no memory to write %s", path);
    struct file_writer *writer = NULL;
    enum tfm_status status = file_create(&writer, path, err);
    if (status == TFM_OK)
        status = file_add(writer, text, strlen(text), err);
    if (status == TFM_OK)
        status = file_add(writer, "\n", 1, err);
    if (status == TFM_OK)
        status = file_commit(writer, err);
    else
        file_abandon(writer);
    free(text); /* it is jansson's */
    return status;
}

/* ---- typed fields ---- */

/* Says what a value is, for a reader who looks for it in the file; NULL: a field that is not there. */
static void describe(const json_t *value, char *text, size_t size)
{
    if (value == NULL) {
        snprintf(text, size, "nothing");
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT: snprintf(text, size, "an object"); break;
    case JSON_ARRAY: snprintf(text, size, "a list"); break;
    case JSON_STRING: snprintf(text, size, "a string"); break;
    case JSON_INTEGER: snprintf(text, size, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: {
        double x = json_real_value(value);
        snprintf(text, size, "%.15g%s", x, x == floor(x) && fabs(x) < 1e15 ? ".0" : "");
        break;
    }
    case JSON_TRUE: snprintf(text, size, "true"); break;
    case JSON_FALSE: snprintf(text, size, "false"); break;
    case JSON_NULL: snprintf(text, size, "null"); break;
    }
}

/* Says what stands in the place of a field, and what should. */
static enum tfm_status report(const json_t *object, const char *field, const char *expected, const char *path,
                              struct tfm_error *err)
{
    char found[64];
    const json_t *value = json_object_get(object, field);
    if (!json_is_object(object)) {
        describe(object, found, sizeof(found));
        return err_set(err, TFM_EFORMAT, "%s: found %s, expected an object with a field \"%s\"", path, found,
                       field);
    }
    if (value == NULL)
        return err_set(err, TFM_EFORMAT, "%s: the field \"%s\" is missing; expected %s", path, field,
                       expected);
    describe(value, found, sizeof(found));
    return err_set(err, TFM_EFORMAT, "%s: field \"%s\": found %s, expected %s", path, field, found, expected);
}

enum tfm_status json_get_int(const json_t *object, const char *field, long min, long max, int *value,
                             const char *path, struct tfm_error *err)
{
    assert(min >= INT_MIN && max <= INT_MAX);
    const json_t *found = json_object_get(object, field);
    if (json_is_integer(found) && json_integer_value(found) >= min && json_integer_value(found) <= max) {
        *value = (int)json_integer_value(found);
        return TFM_OK;
    }
    char expected[96];
    snprintf(expected, sizeof(expected), "a whole number from %ld to %ld", min, max);
    return report(object, field, expected, path, err);
}

enum tfm_status json_get_real(const json_t *object, const char *field, double min, double max, double *value,
                              const char *path, struct tfm_error *err)
{
    const json_t *found = json_object_get(object, field);
    if (json_is_number(found) && json_number_value(found) >= min && json_number_value(found) <= max) {
        *value = json_number_value(found);
        return TFM_OK;
    }
    char expected[96] = "a number";
    if (isfinite(min) && isfinite(max))
        snprintf(expected, sizeof(expected), "a number from %g to %g", min, max);
    else if (isfinite(min))
        snprintf(expected, sizeof(expected), "a number of at least %g", min);
    else if (isfinite(max))
        snprintf(expected, sizeof(expected), "a number of at most %g", max);
    return report(object, field, expected, path, err);
}

enum tfm_status json_get_bool(const json_t *object, const char *field, bool *value, const char *path,
                              struct tfm_error *err)
{
    const json_t *found = json_object_get(object, field);
    if (!json_is_boolean(found))
        return report(object, field, "true or false", path, err);
    *value = json_is_true(found);
    return TFM_OK;
}

enum tfm_status json_get_string(const json_t *object, const char *field, const char **value, const char *path,
                                struct tfm_error *err)
{
    const json_t *found = json_object_get(object, field);
    if (!json_is_string(found))
        return report(object, field, "a string", path, err);
    *value = json_string_value(found);
    return TFM_OK;
}
