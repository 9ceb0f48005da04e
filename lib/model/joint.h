/*
 * joint.h: source and target of a decoder-only model as one sequence, as a language model reads it:
 *     source pieces, the start symbol (in place of the source's </s>), target pieces without their </s>
 * A row sees those before it. Over a whole batch the sequences are laid end to end; in a search the source's rows
 * come first into the cache, once for all hypotheses, and each hypothesis names them as keys before its own.
 */
#ifndef TFM_MODEL_JOINT_H
#define TFM_MODEL_JOINT_H

#include "model/block.h"
#include "nn/tokens.h"

struct joint {
    const struct tokens *source, *target;
    struct tokens tokens; /* both together, without ids: those of the sides may mean different things */
};

void joint_lay(struct joint *joint, const struct tokens *source, const struct tokens *target,
               struct arena *arena);

/* x [N, D] from the rows of both sides, source [Ns, D] (NULL: zeros) and target [Nt, D]. */
void joint_gather(real *x, const real *source, const real *target, const struct joint *joint, int d);
/* And back; source may be NULL. A source's </s>, which has no row in x, gets zeros. */
void joint_scatter(real *source, real *target, const real *x, const struct joint *joint, int d);

/* A step's input, given as for a decoder with cross-attention, whose rows count from the first step on: positions
 * and keys of each row come to stand behind its source's, which are the cache's n_source first rows. */
void joint_step(struct block_input *in, const int **positions, int n_source, struct arena *arena);

/* What a step's rows look at of their source: cross weights (see attn_weights_size) out of those of all keys. The
 * start symbol stands for the source's </s>. */
void joint_cross_weights(real *cross, const real *self, const struct block_input *in, int heads);

#endif
