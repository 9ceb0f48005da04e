/*
 * models.c: opens the models that were named with --model, in their order, and makes a translator of them.
 */
#include "models.h"

#include "find_model.h"

int models_read_weights(struct models *models, const struct option_table *table,
                        const struct option_names *names, const char *weights)
{
    double values[TFM_MAX_MODELS];
    int n = names->n > 0 ? names->n : 1;
    *models = (struct models){ 0 };
    int status = weights != NULL ? options_weights(table, "model-weights", weights, values, n, "model")
                                 : OPTIONS_GO_ON;
    for (int i = 0; i < n && status == OPTIONS_GO_ON; i++)
        models->weights[i] = weights != NULL ? (float)values[i] : 1;
    return status;
}

enum tfm_status models_open(struct models *models, const struct option_names *names,
                            const struct tfm_open_options *options, struct tfm_error *err)
{
    int n = names->n > 0 ? names->n : 1;
    struct tfm_open_options one = *options;
    for (int i = 0; i < n; i++) {
        struct model_path folder;
        enum tfm_status status = find_model(&folder, names->n > 0 ? names->list[i] : NULL, err);
        if (status == TFM_OK)
            status = tfm_model_open_with(&models->list[i], folder.text, &one, err);
        if (status != TFM_OK)
            return status;
        models->n++;
        one.shortlist = false; /* that of the first counts */
    }
    return TFM_OK;
}

void models_close(struct models *models)
{
    while (models->n > 0)
        tfm_model_free(models->list[--models->n]);
}

enum tfm_status models_translator(struct tfm_translator **translator, const struct models *models,
                                  const struct tfm_translate_options *options, struct tfm_error *err)
{
    return tfm_translator_new_ensemble(translator, (const struct tfm_model *const *)models->list,
                                       models->weights, models->n, options, err);
}
