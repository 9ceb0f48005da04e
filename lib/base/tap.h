/*
 * tap.h: an observer that is shown every named intermediate value of the model; usually NULL, and then free.
 * tap_show is called where a value is complete; a tap changes no digit of any value.
 */
#ifndef TFM_BASE_TAP_H
#define TFM_BASE_TAP_H

#include <stddef.h>

#include "base/real.h"

struct tap {
    /* x [rows, cols] with `stride` reals from one row to the next; layer and head are -1 where they do not
     * apply */
    void (*show)(void *user, const char *name, int layer, int head, const real *x, int rows, int cols,
                 int stride);
    void *user;
};

/* Shows x under the name "<prefix>.<layer>.<name>" ("encoder.layers", 0, "self_attn.weights"), or
 * "<prefix>.<name>" when layer is -1. Does nothing when tap is NULL. */
void tap_show(const struct tap *tap, const char *prefix, int layer, const char *name, int head, const real *x,
              int rows, int cols, int stride);

#endif
