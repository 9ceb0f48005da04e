/*
 * matrices.h: the matrices of an opened model, packed for translation, in reals or in int8. Each is held
 * once, in the form that is multiplied by; what shows a model unpacks it row by row.
 */
#ifndef TFM_MODEL_MATRICES_H
#define TFM_MODEL_MATRICES_H

#include "model/net.h"
#include "model/safetensors.h"

struct matrices {
    void *packed;
    size_t size; /* bytes of it */
    struct matrix_place {
        const struct linear *linear; /* NULL: a vector */
        int row;
    } * places; /* [params->n] */
};

/* Packs what safetensors_load opened. The net is bound to its kept block (params_bind_kept), which gets the
 * scales of int8 rows, and NaN for any row that is not finite, and points to the matrices afterwards. Reals
 * are packed in panels for the kernels, or else row by row for BLAS. */
enum tfm_status matrices_pack(struct matrices *matrices, struct net *net, const struct params *params,
                              const struct loaded *loaded, real *kept, bool in_panels, struct pool *pool,
                              struct tfm_error *err);
void matrices_release(struct matrices *matrices);

/* The values of tensor i of params, row by row: values [rows, cols]. */
void matrices_values(real *values, const struct matrices *matrices, const struct params *params, int i,
                     const real *kept);

#endif
