/*
 * ensemble.c: proves, before a translator is made of several models, that a piece's id means the same to all:
 * both vocabularies agree in every piece and score (by which text is cut), and decoding starts with the same
 * symbol. With p_m the distribution that model m of weight w_m predicts, search.c searches with
 *     log p = sum_m w_m log p_m,    sum_m w_m = 1.
 * The mean is not normalised again, so that the score of a translation is the mean of its scores by the models.
 */
#include "decode/ensemble.h"

#include <math.h>
#include <string.h>

/* What messages call a vocabulary: its file. */
static const char *vocab_file(const struct tfm_model *model, bool is_target)
{
    if (model->source == model->target)
        return MODEL_VOCAB;
    return is_target ? MODEL_TARGET_VOCAB : MODEL_SOURCE_VOCAB;
}

#define DIFFERS(err, side, format, ...)                                                                   \
    err_set((err), TFM_EFORMAT, "the models of an ensemble need the same %s vocabulary: " format, (side), \
            __VA_ARGS__)

static enum tfm_status check_vocabulary(const struct tfm_model *a, const struct tfm_model *b, bool is_target,
                                        struct tfm_error *err)
{
    const struct spm *x = is_target ? a->target : a->source, *y = is_target ? b->target : b->source;
    const char *x_file = vocab_file(a, is_target), *y_file = vocab_file(b, is_target);
    const char *side = is_target ? "target" : "source";
    int n_x = spm_size(x), n_y = spm_size(y);
    for (int i = 0; i < n_x && i < n_y; i++)
        if (strcmp(spm_piece(x, i), spm_piece(y, i)) != 0)
            return DIFFERS(err, side, "piece %d is '%s' in %s/%s, but '%s' in %s/%s", i, spm_piece(x, i),
                           a->folder, x_file, spm_piece(y, i), b->folder, y_file);
    if (n_x != n_y)
        return DIFFERS(err, side, "there are %d pieces in %s/%s, but %d in %s/%s", n_x, a->folder, x_file,
                       n_y, b->folder, y_file);
    for (int i = 0; i < n_x; i++)
        if (spm_score(x, i) != spm_score(y, i))
            return DIFFERS(err, side, "piece %d, '%s', has the score %g in %s/%s, but %g in %s/%s", i,
                           spm_piece(x, i), (double)spm_score(x, i), a->folder, x_file,
                           (double)spm_score(y, i), b->folder, y_file);
    return TFM_OK;
}

static enum tfm_status check_pair(const struct tfm_model *a, const struct tfm_model *b, struct tfm_error *err)
{
    TRY(check_vocabulary(a, b, false, err));
    TRY(check_vocabulary(a, b, true, err));
    if (a->config.task != b->config.task)
        return err_set(
            err, TFM_EINVAL, "the models of an ensemble need the same task: it is %s of %s, but %s of %s",
            config_choice(&a->config, "task"), a->folder, config_choice(&b->config, "task"), b->folder);
    int x = a->config.decoder_start_token_id, y = b->config.decoder_start_token_id;
    if (x != y)
        return err_set(err, TFM_EFORMAT,
                       "the models of an ensemble need the same decoder_start_token_id: it is %d in "
                       "%s/" MODEL_CONFIG ", but %d in %s/" MODEL_CONFIG,
                       x, a->folder, y, b->folder);
    return TFM_OK;
}

enum tfm_status ensemble_init(struct ensemble *ensemble, const struct tfm_model *const *models,
                              const float *weights, int n, struct tfm_error *err)
{
    if (n < 1 || n > TFM_MAX_MODELS)
        return err_set(err, TFM_EINVAL, "an ensemble of %d models; there must be from 1 to %d", n,
                       TFM_MAX_MODELS);
    *ensemble = (struct ensemble){ .n = n };
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const struct tfm_model *model = models[i];
        if (model->broken != NULL) /* inspect can still look at it, and so makes its translator itself */
            return err_set(
                err, TFM_EFORMAT,
                "%s: the weights %s are not all finite numbers, so the model cannot translate: get it anew, "
                "or see with tfm inspect what it holds",
                model->folder, model->broken->name);
        if (model->config.architecture == CONFIG_ENCODER_ONLY)
            return err_set(
                err, TFM_EINVAL,
                "%s: this model is an encoder alone, which fills gaps in a text (tfm inspect predict) and "
                "neither translates nor scores translations",
                model->folder);
        if (i > 0)
            TRY(check_pair(models[0], model, err));
        double weight = weights != NULL ? (double)weights[i] : 1;
        if (!(weight > 0) || !isfinite(weight))
            return err_set(err, TFM_EINVAL, "the weight of model %d is %g; it must be above 0", i + 1,
                           weight);
        ensemble->nets[i] = &model->net;
        sum += weight;
    }
    for (int i = 0; i < n; i++)
        ensemble->weights[i] = (float)((weights != NULL ? (double)weights[i] : 1) / sum);
    return TFM_OK;
}
