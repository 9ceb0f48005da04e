/*
 * record.c: finds the text to translate in a line of columns or in a JSON object, and writes the line again
 * with the translation in its place. JSON is checked by jansson; the place of a value is then found by
 * walking over the checked text, so that numbers, spaces and the order of fields stay as they are.
 */
#include "record.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "quote.h"

static enum tfm_status no_memory(const char *path, long number, struct tfm_error *err)
{
    return cmd_error(err, TFM_ENOMEM, "%s: line %ld: no memory", path, number);
}

/* A column's number; 0 where text is none. */
static long column_number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end != text && *end == '\0' && n >= 1 && n < INT_MAX ? n : 0;
}

static const char *field_of(const struct record_style *style)
{
    return style->field != NULL ? style->field : style->format == RECORD_TSV ? "1" : "text";
}

static const char *output_field_of(const struct record_style *style)
{
    return style->output_field != NULL ? style->output_field : field_of(style);
}

enum tfm_status record_check_style(const struct record_style *style, struct tfm_error *err)
{
    const char *fields[] = { style->field, style->output_field };
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "--field" : "--output-field";
        if (fields[i] != NULL && style->format == RECORD_PLAIN)
            return cmd_error(err, TFM_EINVAL, "option %s needs --input-format tsv or jsonl", name);
        if (fields[i] != NULL && style->format == RECORD_TSV && column_number(fields[i]) == 0)
            return cmd_error(err, TFM_EINVAL,
                             "option %s: found '%s', expected the number of a column, from 1", name,
                             fields[i]);
    }
    return TFM_OK;
}

/* ---- columns ---- */

/* Column number `column` of a line of n: its first byte and the one behind it. */
static void find_column(const char *line, long column, size_t *start, size_t *end)
{
    const char *at = line;
    for (long i = 1; i < column; i++)
        at = strchr(at, '\t') + 1;
    *start = (size_t)(at - line);
    *end = *start + strcspn(at, "\t");
}

static enum tfm_status parse_columns(struct record *record, const struct record_style *style,
                                     const char *path, long number, struct tfm_error *err)
{
    long n = 1, field = column_number(field_of(style)), output = column_number(output_field_of(style));
    for (const char *c = record->line; *c != '\0'; c++)
        n += *c == '\t';
    if (field > n || output > n + 1)
        return cmd_error(err, TFM_EFORMAT, "%s: line %ld: found %ld columns, expected at least %ld", path,
                         number, n, field > n ? field : output - 1);
    find_column(record->line, field, &record->start, &record->end);
    record->text = strndup(record->line + record->start, record->end - record->start);
    if (record->text == NULL)
        return no_memory(path, number, err);
    record->is_new = output > n;
    if (record->is_new)
        record->start = record->end = strlen(record->line);
    else
        find_column(record->line, output, &record->start, &record->end);
    return TFM_OK;
}

/* ---- JSON ---- */

static const char *skip_space(const char *c)
{
    return c + strspn(c, " \t\r\n");
}

static const char *skip_string(const char *c)
{
    for (c++; *c != '"'; c++)
        c += *c == '\\';
    return c + 1;
}

static const char *skip_value(const char *c)
{
    if (*c == '"')
        return skip_string(c);
    if (*c != '{' && *c != '[')
        return c + strcspn(c, ",}] \t\r\n");
    int depth = 0;
    do {
        if (*c == '"') {
            c = skip_string(c);
            continue;
        }
        depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
        c++;
    } while (depth > 0);
    return c;
}

static bool is_key(const char *key, const char *end, const char *name)
{
    json_t *string = json_loadb(key, (size_t)(end - key), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool same = string != NULL && strcmp(json_string_value(string), name) == 0;
    json_decref(string);
    return same;
}

/* The place of a field's value in the text of a valid object; false where it has no such field. */
static bool find_value(const char *line, const char *name, size_t *start, size_t *end)
{
    const char *c = skip_space(skip_space(line) + 1);
    while (*c == '"') {
        const char *key = c, *key_end = skip_string(c);
        c = skip_space(skip_space(key_end) + 1); /* behind the colon */
        const char *value = c;
        c = skip_value(c);
        if (is_key(key, key_end, name)) {
            *start = (size_t)(value - line);
            *end = (size_t)(c - line);
            return true;
        }
        c = skip_space(c);
        c = *c == ',' ? skip_space(c + 1) : c;
    }
    return false;
}

/* NUL bytes are spaces, as in plain text. */
static char *copy_string(const json_t *value)
{
    size_t n = json_string_length(value);
    char *text = malloc(n + 1);
    for (size_t i = 0; i <= n && text != NULL; i++) {
        char c = json_string_value(value)[i];
        text[i] = c == '\0' && i < n ? ' ' : c;
    }
    return text;
}

static enum tfm_status parse_object(struct record *record, const json_t *object,
                                    const struct record_style *style, const char *path, long number,
                                    struct tfm_error *err)
{
    const char *field = field_of(style), *output = output_field_of(style);
    const json_t *value = json_object_get(object, field);
    if (!json_is_object(object))
        return cmd_error(err, TFM_EFORMAT, "%s: line %ld: found no JSON object, expected one a line", path,
                         number);
    if (!json_is_string(value))
        return cmd_error(err, TFM_EFORMAT,
                         "%s: line %ld: the field \"%s\" is %s, expected it to be a string (--field)", path,
                         number, field, value == NULL ? "missing" : "no string");
    record->text = copy_string(value);
    if (record->text == NULL)
        return no_memory(path, number, err);
    if (!find_value(record->line, output, &record->start, &record->end)) {
        find_value(record->line, field, &record->start, &record->end);
        record->start = record->end;
        record->is_new = true;
    }
    return TFM_OK;
}

static enum tfm_status parse_json(struct record *record, const struct record_style *style, const char *path,
                                  long number, struct tfm_error *err)
{
    json_error_t error;
    json_t *object = json_loads(
        record->line, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY | JSON_ALLOW_NUL,
        &error);
    if (object == NULL)
        return cmd_error(err, TFM_EFORMAT, "%s: line %ld, column %d: not valid JSON: %s", path, number,
                         error.column, error.text);
    enum tfm_status status = parse_object(record, object, style, path, number, err);
    json_decref(object);
    return status;
}

/* ---- both ---- */

enum tfm_status record_parse(struct record *record, const struct record_style *style, const char *line,
                             const char *path, long number, struct tfm_error *err)
{
    *record = (struct record){ 0 };
    /* An empty line is no object and has no columns, and comes out as it is. */
    bool is_empty = *line == '\0' || (style->format == RECORD_JSONL && *skip_space(line) == '\0');
    if (style->format == RECORD_PLAIN || is_empty) {
        record->text = strdup(line);
        return record->text != NULL ? TFM_OK : no_memory(path, number, err);
    }
    record->line = strdup(line);
    if (record->line == NULL)
        return no_memory(path, number, err);
    enum tfm_status status = style->format == RECORD_TSV ? parse_columns(record, style, path, number, err)
                                                         : parse_json(record, style, path, number, err);
    if (status != TFM_OK)
        record_release(record);
    return status;
}

void record_print(FILE *out, const struct record_style *style, const struct record *record,
                  const char *translation)
{
    if (record->line == NULL) {
        fputs("\n", out);
        return;
    }
    fwrite(record->line, 1, record->start, out);
    if (style->format == RECORD_JSONL) {
        if (record->is_new) {
            fputs(", ", out);
            quote_json(out, output_field_of(style));
            fputs(": ", out);
        }
        quote_json(out, translation);
    } else {
        fputs(record->is_new ? "\t" : "", out);
        for (; *translation != '\0'; translation++)
            putc(strchr("\t\r\n", *translation) != NULL ? ' ' : *translation, out);
    }
    fputs(record->line + record->end, out);
    putc('\n', out);
}

void record_release(struct record *record)
{
    free(record->line);
    free(record->text);
    *record = (struct record){ 0 };
}
