/*
 * run.h: what a forward or backward pass runs with. Translation, training and explaining run the same code;
 * they differ in this struct only.
 */
#ifndef TFM_NN_RUN_H
#define TFM_NN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/profile.h"
#include "base/tap.h"
#include "num/kern.h"
#include "tfm.h"

struct head_losses; /* nn/head_loss.h */
struct extents;     /* nn/linear.h */

struct run {
    struct arena *arena;
    const struct kern *kern;
    const struct tap *tap;     /* NULL: nobody looks */
    bool keep;                 /* keep activations for a backward pass */
    bool dropout;              /* training: drop */
    enum tfm_gemm gemm;        /* who multiplies by weights that are plain rows */
    struct profile *profile;   /* NULL: nobody takes the time */
    struct head_losses *heads; /* losses on single heads; NULL: none */
    struct extents *extents;   /* gets those of what is multiplied in int8; NULL: nobody asks */
    uint64_t seed;             /* of this update's dropout: rng_key(seed, update, 0, 0) */
};

#endif
