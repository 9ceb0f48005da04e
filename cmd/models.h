/*
 * models.h: the models that a command works with: one, or several as an ensemble.
 */
#ifndef TFM_CMD_MODELS_H
#define TFM_CMD_MODELS_H

#include "options.h"

struct models {
    struct tfm_model *list[TFM_MAX_MODELS];
    float weights[TFM_MAX_MODELS];
    int n;
};

/* What --model-weights says of the models named; returns OPTIONS_GO_ON, or the exit status of wrong usage. */
int models_read_weights(struct models *models, const struct option_table *table,
                        const struct option_names *names, const char *weights);

/* Opens those named or, where none is, the default one. After a failure close them, too. */
enum tfm_status models_open(struct models *models, const struct option_names *names,
                            const struct tfm_open_options *options, struct tfm_error *err);
void models_close(struct models *models);

enum tfm_status models_translator(struct tfm_translator **translator, const struct models *models,
                                  const struct tfm_translate_options *options, struct tfm_error *err);

#endif
