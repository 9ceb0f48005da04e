/*
 * params.h: the model's named tensors. params_list expands params.def for a configuration into a table of
 * names, shapes and offsets into one block of reals; parameters, gradients, averages and moments are parallel
 * blocks of that layout. params_bind points a struct weights into any such block, so a gradient has the same
 * names as its weight.
 */
#ifndef TFM_MODEL_PARAMS_H
#define TFM_MODEL_PARAMS_H

#include "base/real.h"
#include "model/config.h"

enum param_init {
    INIT_ZERO,
    INIT_ONE,
    INIT_XAVIER,
    INIT_EMBED,
    INIT_FORGET /* the bias of LSTM's four gates: 1 for the second, which forgets (Jozefowicz et al. 2015) */
};

struct param {
    char name[80];
    int rows, cols;     /* a vector has rows 1 */
    bool is_vector;
    size_t offset;      /* reals from the start of the block */
    size_t kept_offset; /* ... of a block of what is kept beside packed matrices */
    enum param_init init;
    double spread; /* what INIT_XAVIER multiplies by: 1 / sqrt(layer) with the depth-scaled initialisation, else 1 */
    bool quantisable;
};

static inline size_t params_count(const struct param *param) /* its values */
{
    return (size_t)param->rows * (size_t)param->cols;
}

struct params {
    struct param *list;
    int n;
    size_t size; /* reals in a block */
    size_t kept_size;
    /* [n] where they are wanted: the scale of what a matrix in int8 multiplies, if it was measured, or 0 */
    real *input_scales;
};

/* Pointers into a block; those a configuration has no tensor for are NULL. A layer of the encoder has no
 * cross_*. */
struct layer_weights {
#define PARAM(group, field, ...) PARAM_##group(field)
#define PARAM_MODEL(field)
#define PARAM_ENCODER(field)
#define PARAM_DECODER(field) real *field;
#define PARAM_RNN_ENCODER(field) real *field;
#define PARAM_RNN_DECODER(field) /* all of them are in the encoder, too */
#include "model/params.def"
#undef PARAM_MODEL
#undef PARAM_DECODER
#undef PARAM_RNN_ENCODER
};

struct weights {
#define PARAM_MODEL(field) real *field;
#define PARAM_DECODER(field)
#define PARAM_RNN_ENCODER(field)
#include "model/params.def"
#undef PARAM
#undef PARAM_MODEL
#undef PARAM_ENCODER
#undef PARAM_DECODER
#undef PARAM_RNN_ENCODER
#undef PARAM_RNN_DECODER
    struct layer_weights encoder[CONFIG_MAX_LAYERS], decoder[CONFIG_MAX_LAYERS];
};

enum tfm_status params_list(struct params *params, const struct config *config, struct tfm_error *err);
void params_release(struct params *params);
void params_bind(struct weights *weights, const struct config *config, real *block);
/* The same for a block of kept_size reals, which has vectors as they are and, in place of a quantisable
 * matrix, a scale for each of its rows: that is where the matrix's pointer points. */
void params_bind_kept(struct weights *weights, const struct config *config, real *kept);
const struct param *params_find(const struct params *params, const char *name); /* NULL: none */
/* The first tensor of a block that holds a NaN or an infinity; NULL: none. A block of NULL has none. */
const struct param *params_find_broken(const struct params *params, const real *block);

/* First values: Xavier uniform (Glorot and Bengio 2010) for matrices, query, key and value each for
 * themselves, the gates of a recurrent cell as one, depth-scaled (Zhang et al. 2019) if the configuration
 * says so; normal with deviation D^-1/2 for embeddings. */
void params_init(const struct params *params, real *block, uint64_t seed);

#endif
