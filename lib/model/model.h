/*
 * model.h: a model folder in memory: config.json, weights, vocabularies (tfm-model(5)). Read-only after
 * opening.
 */
#ifndef TFM_MODEL_MODEL_H
#define TFM_MODEL_MODEL_H

#include "model/net.h"
#include "model/safetensors.h"
#include "text/spm.h"

struct tfm_model {
    char *folder;
    struct config config;
    struct params params;
    real *block;               /* the parameters, row by row */
    real *packed;              /* the matrices again, in panels for translation */
    enum tensor_type type;     /* as stored */
    const struct param *broken; /* the first tensor with a value that is not finite, or NULL */
    struct weights weights;    /* into block */
    struct net net;            /* packed */
    struct spm *source, *target; /* the same object when there is one vocabulary */
    const struct kern *kern;
    json_t *training;          /* provenance from config.json, or NULL */
};

/* tfm_model_open and tfm_model_free (tfm.h) are in model.c; the kernels are those of cpu_current. */

/* Writes the files of a model folder: config.json, weights.safetensors.gz; the vocabularies are copied by the
 * caller. Each file is atomic, the weights come last. */
enum tfm_status model_write(const char *folder, const struct config *config, const json_t *training,
                            const struct params *params, const real *block, enum tensor_type type,
                            struct pool *pool, struct tfm_error *err);

#endif
