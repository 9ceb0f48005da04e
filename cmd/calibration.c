/*
 * calibration.c: reads a text as a whole and calibrates a model on it (tfm_calibrate).
 */
#include "calibration.h"

#include <string.h>

#include "line_list.h"

static enum tfm_status read_text(struct line_list *text, const char *path, struct tfm_error *err)
{
    struct tfm_lines *lines;
    struct tfm_line line;
    bool more = true;
    enum tfm_status status = tfm_lines_open(&lines, path, err);
    if (status != TFM_OK)
        return status;
    while (status == TFM_OK && (status = tfm_lines_next(lines, &line, &more, err)) == TFM_OK && more)
        status = line_list_add(text, strdup(line.text), err);
    tfm_lines_free(lines);
    if (status == TFM_OK && text->n == 0)
        status = cmd_error(err, TFM_EFORMAT, "%s has no lines; expected some to translate", path);
    return status;
}

enum tfm_status calibration_make(struct tfm_calibration **calibration, const char *path, const char *folder,
                                 volatile const int *stop, struct tfm_error *err)
{
    struct line_list text = { 0 };
    struct tfm_model *model = NULL;
    *calibration = NULL;
    enum tfm_status status = read_text(&text, path, err);
    if (status == TFM_OK)
        status = tfm_model_open_as(&model, folder, TFM_PRECISION_INT8, err);
    struct tfm_calibrate_options options = {
        .model = model, .sources = (const char *const *)text.line, .n_lines = text.n, .stop = stop
    };
    if (status == TFM_OK)
        status = tfm_calibrate(calibration, &options, err);
    tfm_model_free(model);
    line_list_release(&text);
    return status;
}
