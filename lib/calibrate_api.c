/*
 * calibrate_api.c: measures what the matrices of a model in int8 multiply, while it translates some text
 * greedily. What is quantised with one scale for all rows loses the row that reaches far, which is cut off, or
 * all others, which share fewer steps: the scale is that of the mean of max|x| over rows and some deviations
 * more, and at most that of the largest. With 1.1 deviations, a student lost 0.3 BLEU, with 2 to 6 nothing.
 */
#include <math.h>

#include "base/mem.h"
#include "decode/translator.h"
#include "model/model.h"

#define DEVIATIONS 4.0
#define BLOCK      256 /* lines translated before `stop` is looked at again */

static enum tfm_status measure(struct extents *extents, const struct tfm_calibrate_options *o,
                               struct tfm_error *err)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator;
    const struct tfm_translation *result;
    tfm_translate_options_init(&options);
    options.beam_size = 1;
    options.threads = 1;
    options.shortlist = "off"; /* the rows of a list are no matrix of the model */
    TRY(tfm_translator_new(&translator, o->model, &options, err));
    translator_note(translator, extents);
    enum tfm_status status = TFM_OK;
    for (size_t done = 0; done < o->n_lines && status == TFM_OK; done += BLOCK) {
        size_t n = o->n_lines - done < BLOCK ? o->n_lines - done : BLOCK;
        if (o->stop != NULL && *o->stop != 0)
            status = err_set(err, TFM_ESTOPPED, "stopped; the model was not calibrated");
        else
            status = tfm_translate(translator, o->sources + done, n, &result, err);
    }
    tfm_translator_free(translator);
    return status;
}

static real scale_of(const struct extent *e)
{
    if (e->rows == 0)
        return 0;
    double mean = e->sum / e->rows, variance = fmax(e->squares / e->rows - mean * mean, 0);
    return (real)(fmin(e->most, mean + DEVIATIONS * sqrt(variance)) / 127);
}

static enum tfm_status calibrate(struct tfm_calibration *c, struct extents *extents,
                                 const struct tfm_calibrate_options *o, struct tfm_error *err)
{
    const struct tfm_model *model = o->model;
    c->n = model->params.n;
    c->input_scales = mem_alloc((size_t)c->n * sizeof(*c->input_scales), err);
    extents->list = mem_alloc((size_t)c->n * sizeof(*extents->list), err);
    if (c->input_scales == NULL || extents->list == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < c->n; i++) {
        const struct matrix_place *place = &model->matrices.places[i];
        if (place->linear != NULL && place->row == 0)
            extents->list[extents->n++].scales = place->linear->scales;
    }
    TRY(measure(extents, o, err));
    double rows = 0;
    for (int e = 0; e < extents->n; e++)
        rows += extents->list[e].rows;
    if (rows == 0)
        return err_set(err, TFM_EFORMAT, "%s cannot be calibrated on lines without text", model->folder);
    for (int i = 0; i < c->n; i++) {
        const struct linear *l = model->matrices.places[i].linear;
        for (int e = 0; e < extents->n && l != NULL; e++)
            if (extents->list[e].scales == l->scales)
                c->input_scales[i] = scale_of(&extents->list[e]);
    }
    return TFM_OK;
}

enum tfm_status tfm_calibrate(struct tfm_calibration **calibration,
                              const struct tfm_calibrate_options *options, struct tfm_error *err)
{
    struct extents extents = { 0 };
    *calibration = NULL;
    if (options->model->precision != TFM_PRECISION_INT8)
        return err_set(err, TFM_EINVAL, "%s multiplies in floats; only a model in int8 can be calibrated",
                       options->model->folder);
    struct tfm_calibration *c = mem_alloc(sizeof(*c), err);
    enum tfm_status status = c != NULL ? calibrate(c, &extents, options, err) : TFM_ENOMEM;
    mem_free(extents.list);
    if (status != TFM_OK) {
        tfm_calibration_free(c);
        return status;
    }
    *calibration = c;
    return TFM_OK;
}

void tfm_calibration_free(struct tfm_calibration *calibration)
{
    if (calibration == NULL)
        return;
    mem_free(calibration->input_scales);
    mem_free(calibration);
}
