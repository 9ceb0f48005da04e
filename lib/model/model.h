/*
 * model.h: a model folder in memory: config.json, weights, vocabularies (tfm-model(5)). Read-only after
 * opening.
 */
#ifndef TFM_MODEL_MODEL_H
#define TFM_MODEL_MODEL_H

#include "model/matrices.h"
#include "model/net.h"
#include "model/safetensors.h"
#include "model/shortlist.h"
#include "text/spm.h"

/* The files of a folder. There is one vocabulary or there are two; compressed weights go before plain ones. */
#define MODEL_CONFIG "config.json"
#define MODEL_WEIGHTS "weights.safetensors.gz"
#define MODEL_PLAIN_WEIGHTS "weights.safetensors"
#define MODEL_VOCAB "vocab.spm"
#define MODEL_SOURCE_VOCAB "source.spm"
#define MODEL_TARGET_VOCAB "target.spm"

#define MODEL_MASK_PIECE "<mask>" /* of the vocabulary of an encoder alone */

struct tfm_model {
    char *folder;
    struct config config;
    struct params params;
    enum tensor_type type;       /* as stored */
    enum tfm_gemm gemm;          /* BLAS: matrices are plain rows */
    enum tfm_precision precision; /* as multiplied by: TFM_PRECISION_FP32 or TFM_PRECISION_INT8 */
    real *kept;                  /* vectors, and the scales of int8 (params_bind_kept) */
    struct matrices matrices;    /* packed for translation */
    const struct param *broken;  /* the first tensor with a value that is not finite, or NULL */
    struct weights weights;      /* into kept */
    real *resized;               /* learned positions of both sides, when opened with other numbers of them */
    struct net net;              /* packed */
    struct spm *source, *target; /* the same object when there is one vocabulary */
    struct shortlist *shortlist; /* its own, or NULL: there is none, or it was not asked for */
    const struct kern *kern;
    json_t *training;          /* provenance from config.json, or NULL */
};

struct tfm_calibration {
    int n;
    real *input_scales; /* [n] by parameters of the model; 0: of what is no factor */
};

/* tfm_model_open and tfm_model_free (tfm.h) are in model.c; the kernels are those of cpu_current. */

/* The values of tensor i of params, unpacked: [rows, cols]. */
void model_values(real *values, const struct tfm_model *model, int i);
size_t model_memory(const struct tfm_model *model); /* bytes of all weights */

/* *training is the provenance, or NULL; json_decref it. */
enum tfm_status model_read_config(struct config *config, json_t **training, const char *folder,
                                  struct tfm_error *err);

/* Replaces path by that of the folder's weights. */
enum tfm_status model_find_weights(struct str *path, const char *folder, struct tfm_error *err);

/* Replaces path by that of the folder's one vocabulary, or of its source vocabulary. */
enum tfm_status model_find_vocabulary(struct str *path, bool *is_shared, const char *folder,
                                      struct tfm_error *err);

/* Writes the files of a model folder: config.json, weights.safetensors.gz (or the plain file); the
 * vocabularies are copied by the caller. Each file is atomic, the weights come last. */
enum tfm_status model_write(const char *folder, const struct config *config, const json_t *training,
                            const struct params *params, const real *block, enum tensor_type type,
                            bool is_plain, struct pool *pool, struct tfm_error *err);

#endif
