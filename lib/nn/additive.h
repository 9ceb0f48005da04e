/*
 * additive.h: additive attention with one head (Bahdanau et al. 2015):
 *     e_ij = v . tanh(q_i + k_j)     out_i = sum over j of softmax(e_i)_j value_j
 * q and k come here already multiplied by their matrices. Segments are those of attn.h, without masks and
 * with ranges of keys only.
 */
#ifndef TFM_NN_ADDITIVE_H
#define TFM_NN_ADDITIVE_H

#include "nn/attn.h"

/* out [Nq, D] from q [Nq, D], keys and values [Nk, D], v [D]; weights (attn_weights_size reals, before
 * dropout); drop_keys: dropout key of each query row, or NULL. attn tells D and dropout. */
void additive_forward(real *out, real *weights, const real *q, const real *keys, const real *values,
                      const real *v, const struct attn_segment *segments, int n_segments,
                      const struct attn *attn, const uint64_t *drop_keys, const struct run *run);

/* dq is overwritten for the query rows that segments name; dkeys, dvalues and dv are added to. */
void additive_backward(real *dq, real *dkeys, real *dvalues, real *dv, const real *dout, const real *weights,
                       const real *q, const real *keys, const real *values, const real *v,
                       const struct attn_segment *segments, int n_segments, const struct attn *attn,
                       const uint64_t *drop_keys, const struct run *run);

#endif
