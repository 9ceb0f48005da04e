/*
 * record.h: lines that hold more than the text to translate: tab-separated columns, or JSON objects. One
 * column or field is translated, and everything else comes out byte by byte as it came in.
 */
#ifndef TFM_CMD_RECORD_H
#define TFM_CMD_RECORD_H

#include "cmd.h"

enum record_format {
    RECORD_PLAIN,
    RECORD_TSV,
    RECORD_JSONL
}; /* as in --input-format */

struct record_style {
    enum record_format format;
    const char *field;        /* a column's number, from 1, or a name; NULL: "1" or "text" */
    const char *output_field; /* where the translation goes; NULL: in place of the text */
};

struct record {
    char *line;        /* NULL where it is nothing but the text */
    char *text;        /* to translate */
    size_t start, end; /* bytes of the line that give way to the translation */
    bool is_new;       /* the translation makes a new column or field there */
};

/* Whether the fields are such as the format has; else a sentence in err. */
enum tfm_status record_check_style(const struct record_style *style, struct tfm_error *err);

/* path and number name the line in messages. */
enum tfm_status record_parse(struct record *record, const struct record_style *style, const char *line,
                             const char *path, long number, struct tfm_error *err);
void record_print(FILE *out, const struct record_style *style, const struct record *record,
                  const char *translation);
void record_release(struct record *record);

#endif
