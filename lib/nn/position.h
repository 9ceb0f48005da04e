/*
 * position.h: how a model tells positions, one kind for both sides:
 *     sinusoids (Vaswani et al. 2017, section 3.5), in halves as in Marian or interleaved, or learned vectors:
 *         x += position(pos), once, behind the embedding
 *     RoPE (Su et al. 2021): each head's query and key of self-attention turned by angles that grow with pos
 *     ALiBi (Press et al. 2021), relative biases (Raffel et al. 2020, section 2.1):
 *         score += bias_h(key's position - query's position) in self-attention
 * Distances between rows of self-attention are those of their places in the segment's list of keys.
 */
#ifndef TFM_NN_POSITION_H
#define TFM_NN_POSITION_H

#include "nn/attn.h"
#include "nn/tokens.h"

#define POSITION_BUCKETS 32 /* of distances: rows of a table of relative biases */

struct position { /* of one side of a model */
    enum tfm_positions kind;
    int d, heads, dim; /* D, H and K */
    bool is_causal;    /* the decoder's */
    const real *table; /* learned: [length, D]; relative: [POSITION_BUCKETS, H]; else NULL */
    int length;
};

struct placement { /* what a pass knows of its rows' positions */
    const struct position *position;
    const int *positions; /* [n] each row's in its sentence, from 0 */
    int longest;          /* one more than the largest of them */
    const real *rows;     /* [longest, position_width], or NULL */
    const real *spots;    /* [n] rows of the learned table, which may lie between two; or NULL */
    const real *bias;     /* [H, 2 longest - 1] for distances from -(longest - 1) on, or NULL */
    real *dbias;          /* its gradient, summed over layers, when the run keeps activations */
};

/* What is computed beforehand of positions from .. to-1: rows [to - from, position_width], 0 wide for some. */
int position_width(const struct position *p);
void position_rows(real *rows, int from, int to, const struct position *p);

/* Takes all else from the run's arena: position, positions, longest and rows are there. Segments group the n
 * rows by source sentence, whose length is n_k: one longer than a learned table squeezes the positions of
 * both sides into it, (length - 1) / (n_k - 1) of the table's rows each; the target stops at its last one. */
void position_place(struct placement *place, const struct attn_segment *segments, int n_segments, int n,
                    const struct run *run);
/* All of it for the whole sentences of a batch. */
void position_place_all(struct placement *place, const struct position *p, const struct tokens *tokens,
                        const struct attn_segment *segments, const struct run *run);

/* x [n, D] += position vectors, where they are of a kind that is added. */
void position_add(real *x, int n, const struct placement *place, const struct run *run);
/* dtable += through position_add from dx [n, D], and from place->dbias. */
void position_backward(real *dtable, const real *dx, int n, const struct placement *place);

/* RoPE, else nothing: turns `heads` heads side by side in each of n rows of x; back is the other way, which
 * is the gradient's. */
void position_turn(real *x, int ldx, int heads, int n, bool back, const struct placement *place);

/* A table [to, d] stretched or squeezed from [from, d], first and last row kept, linear between. */
void position_resize(real *y, int to, const real *x, int from, int d);

#endif
