/*
 * lines_api.c: the public line reader of tfm.h, a thin cover over line.c for programs that feed tfm_translate
 * from files and pipes. It hands out C strings, so a NUL byte inside a line becomes a space, and it says
 * whether a line is well-formed UTF-8, so that the program can warn (tfm_translate itself repairs what is
 * not).
 */
#include "base/line.h"
#include "base/mem.h"
#include "text/utf8.h"

struct tfm_lines {
    struct line_reader *reader;
    struct str text, repaired;
};

enum tfm_status tfm_lines_open(struct tfm_lines **lines, const char *path, struct tfm_error *err)
{
    *lines = NULL;
    struct tfm_lines *l = mem_alloc(sizeof(*l), err);
    if (l == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = line_open(&l->reader, path, err);
    if (status != TFM_OK) {
        mem_free(l);
        return status;
    }
    *lines = l;
    return TFM_OK;
}

void tfm_lines_free(struct tfm_lines *lines)
{
    if (lines == NULL)
        return;
    line_free(lines->reader);
    str_release(&lines->text);
    str_release(&lines->repaired);
    mem_free(lines);
}

enum tfm_status tfm_lines_next(struct tfm_lines *lines, struct tfm_line *line, bool *more,
                               struct tfm_error *err)
{
    struct str *text = &lines->text;
    TRY(line_read(lines->reader, text, more, err));
    if (!*more)
        return TFM_OK;
    line->number = line_number(lines->reader);
    line->is_utf8 = utf8_is_valid(text->data, text->len);
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\0')
            text->data[i] = ' ';
    }
    line->text = line->repaired = text->data;
    if (!line->is_utf8) {
        str_clear(&lines->repaired);
        TRY(utf8_repair(&lines->repaired, text->data, text->len, err));
        line->repaired = lines->repaired.data;
    }
    return TFM_OK;
}

bool tfm_lines_would_wait(struct tfm_lines *lines)
{
    return line_would_wait(lines->reader);
}
