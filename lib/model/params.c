/*
 * params.c: expands params.def, the one list of a model's tensors, into a table (params_list) and into
 * pointers (params_bind). Both are the same walk over the list: the model's own tensors, then the encoder's
 * layers, then the decoder's, each tensor right behind the one before, so that table and pointers cannot
 * disagree. First values: uniform in +-sqrt(6 / (rows + cols)) for matrices (Glorot and Bengio 2010), divided by
 * sqrt(l) in layer l = 1, 2, ... of its stack with the depth-scaled initialisation (Zhang et al. 2019,
 * section 4); normal with deviation D^-1/2 for embeddings (Vaswani et al. 2017, section 3.4: scaled by
 * sqrt(D) they start at 1).
 */
#include "model/params.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/activation.h"
#include "nn/position.h"

struct walk {
    struct param *list; /* filled in, or NULL: only counted */
    int n;
    size_t size, kept_size; /* reals up to here */
    real *block, *kept;     /* what fields point into: one of them, or none */
    double spread;          /* of this layer's matrices */
    char prefix[40];        /* of the names of this layer */
};

/* Visits one tensor: appends it to the table and points the field at it. */
static void walk_param(struct walk *walk, real **field, bool is_present, const char *name, int rows, int cols,
                       enum param_init init, bool quantisable)
{
    if (!is_present)
        return;
    if (walk->list != NULL) {
        struct param *param = &walk->list[walk->n];
        int len = snprintf(param->name, sizeof(param->name), "%s%s", walk->prefix, name);
        assert(len > 0 && (size_t)len < sizeof(param->name));
        (void)len;
        param->rows = rows;
        param->cols = cols;
        param->is_vector = init == INIT_ZERO || init == INIT_ONE || init == INIT_FORGET;
        param->offset = walk->size;
        param->kept_offset = walk->kept_size;
        param->init = init;
        param->spread = walk->spread;
        param->quantisable = quantisable;
    }
    if (walk->block != NULL)
        *field = walk->block + walk->size;
    if (walk->kept != NULL)
        *field = walk->kept + walk->kept_size;
    walk->n++;
    walk->size += (size_t)rows * (size_t)cols;
    walk->kept_size += (size_t)rows * (quantisable ? 1 : (size_t)cols);
}

#define PARAM(group, ...) PARAM_##group(__VA_ARGS__)
#define PARAM_VISIT(field, name, rows, cols, init, quantisable, is_present) \
    walk_param(walk, &w->field, is_present, name, rows, cols, init, quantisable);
#define PARAM_SKIP(...)

#define PARAM_RNN_ENCODER PARAM_SKIP
#define PARAM_RNN_DECODER PARAM_SKIP
#define PARAM_MODEL PARAM_VISIT
#define PARAM_ENCODER PARAM_SKIP
#define PARAM_DECODER PARAM_SKIP
static void walk_model(struct walk *walk, struct weights *w, const struct config *c)
{
#include "model/params.def"
}
#undef PARAM_MODEL
#undef PARAM_ENCODER

#define PARAM_MODEL PARAM_SKIP
#define PARAM_ENCODER PARAM_VISIT
static void walk_encoder_layer(struct walk *walk, struct layer_weights *w, const struct config *c)
{
#include "model/params.def"
}
#undef PARAM_ENCODER
#undef PARAM_DECODER

#define PARAM_ENCODER PARAM_SKIP
#define PARAM_DECODER PARAM_VISIT
static void walk_decoder_layer(struct walk *walk, struct layer_weights *w, const struct config *c)
{
#include "model/params.def"
}
#undef PARAM_DECODER
#undef PARAM_RNN_ENCODER
#undef PARAM_RNN_DECODER

#define PARAM_DECODER PARAM_SKIP
#define PARAM_RNN_ENCODER PARAM_VISIT
#define PARAM_RNN_DECODER PARAM_SKIP
static void walk_rnn_encoder_layer(struct walk *walk, struct layer_weights *w, const struct config *c)
{
#include "model/params.def"
}
#undef PARAM_RNN_ENCODER
#undef PARAM_RNN_DECODER

#define PARAM_RNN_ENCODER PARAM_SKIP
#define PARAM_RNN_DECODER PARAM_VISIT
static void walk_rnn_decoder_layer(struct walk *walk, struct layer_weights *w, const struct config *c)
{
#include "model/params.def"
}
#undef PARAM_MODEL
#undef PARAM_ENCODER
#undef PARAM_DECODER
#undef PARAM_RNN_ENCODER
#undef PARAM_RNN_DECODER

/* Layer i, from 0, of the encoder or the decoder. */
static void enter_layer(struct walk *walk, const char *stack, int i, const struct config *config)
{
    snprintf(walk->prefix, sizeof(walk->prefix), "model.%s.layers.%d.", stack, i);
    walk->spread = config->init == TFM_INIT_DEPTH_SCALED ? 1 / sqrt(i + 1.0) : 1;
}

static void walk_all(struct walk *walk, struct weights *weights, const struct config *config)
{
    assert(config->encoder_layers <= CONFIG_MAX_LAYERS && config->decoder_layers <= CONFIG_MAX_LAYERS);
    bool is_rnn = config->arch == TFM_ARCH_RNN;
    walk->spread = 1;
    walk_model(walk, weights, config);
    for (int i = 0; i < config->encoder_layers; i++) {
        enter_layer(walk, "encoder", i, config);
        (is_rnn ? walk_rnn_encoder_layer : walk_encoder_layer)(walk, &weights->encoder[i], config);
    }
    for (int i = 0; i < config->decoder_layers; i++) {
        enter_layer(walk, "decoder", i, config);
        (is_rnn ? walk_rnn_decoder_layer : walk_decoder_layer)(walk, &weights->decoder[i], config);
    }
}

enum tfm_status params_list(struct params *params, const struct config *config, struct tfm_error *err)
{
    *params = (struct params){ 0 };
    struct weights unused; /* its fields are pointed nowhere */
    struct walk walk = { .list = NULL };
    walk_all(&walk, &unused, config);
    struct param *list = mem_alloc((size_t)walk.n * sizeof(*list), err);
    if (list == NULL)
        return TFM_ENOMEM;
    walk = (struct walk){ .list = list };
    walk_all(&walk, &unused, config);
    *params = (struct params){ .list = list, .n = walk.n, .size = walk.size, .kept_size = walk.kept_size };
    return TFM_OK;
}

void params_release(struct params *params)
{
    mem_free(params->list);
    *params = (struct params){ 0 };
}

void params_bind(struct weights *weights, const struct config *config, real *block)
{
    *weights = (struct weights){ 0 };
    struct walk walk = { .block = block };
    walk_all(&walk, weights, config);
}

void params_bind_kept(struct weights *weights, const struct config *config, real *kept)
{
    *weights = (struct weights){ 0 };
    struct walk walk = { .kept = kept };
    walk_all(&walk, weights, config);
}

const struct param *params_find(const struct params *params, const char *name)
{
    for (int i = 0; i < params->n; i++) {
        if (strcmp(params->list[i].name, name) == 0)
            return &params->list[i];
    }
    return NULL;
}

const struct param *params_find_broken(const struct params *params, const real *block)
{
    for (int i = 0; i < params->n && block != NULL; i++) {
        const struct param *param = &params->list[i];
        size_t n = params_count(param);
        for (size_t j = 0; j < n; j++) {
            if (!isfinite(block[param->offset + j]))
                return param;
        }
    }
    return NULL;
}

/* A value depends on seed, tensor, row and column only. */
static real first_value(const struct param *param, uint64_t key, uint64_t row, uint64_t col)
{
    switch (param->init) {
    case INIT_ONE:
        return 1;
    case INIT_XAVIER: {
        double limit = param->spread * sqrt(6.0 / ((double)param->rows + (double)param->cols));
        return (real)(limit * (2.0 * rng_unit(rng_key(key, row, col, 0)) - 1.0));
    }
    case INIT_EMBED:
        return (real)(rng_normal(rng_key(key, row, col, 0)) / sqrt(param->cols));
    case INIT_FORGET:
        return col / ((uint64_t)param->cols / 4) == 1 ? 1 : 0;
    case INIT_ZERO:
        break;
    }
    return 0;
}

void params_init(const struct params *params, real *block, uint64_t seed)
{
    for (int i = 0; i < params->n; i++) {
        const struct param *param = &params->list[i];
        real *value = block + param->offset;
        uint64_t key = rng_key(seed, (uint64_t)i, 0, 0);
        for (int row = 0; row < param->rows; row++) {
            for (int col = 0; col < param->cols; col++)
                *value++ = first_value(param, key, (uint64_t)row, (uint64_t)col);
        }
    }
}
