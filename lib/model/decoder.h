/*
 * decoder.h: the stack of decoder layers: over whole targets at once (training, scoring, explaining), or one
 * step of many hypotheses against a cache (translation). Both run the same blocks, and a step gives the same
 * bits as the whole.
 */
#ifndef TFM_MODEL_DECODER_H
#define TFM_MODEL_DECODER_H

#include "model/encoder.h"
#include "model/joint.h"

struct decoder_acts {
    const real *memory;
    int n_source, n_target;
    const int *rows;    /* [Nt] of a masked language model, which has no more than these */
    struct joint joint; /* of a decoder alone: then n in `in` and below is the rows of both sides */
    int *ids;           /* [Nt] inputs: the start symbol, then the target shifted by one */
    struct block_input in;
    struct block_acts *layers;
    struct rnn_decoder_acts rnn; /* in their place where the net is recurrent */
    const real *norm_in;
    real *norm_stats;
};

/* hidden [Nt, D] for the targets (each with its </s>), teacher-forced: row t of a sentence predicts target t.
 * source gives the sentences' ranges in memory [Ns, D]. Targets of a masked language model have rows of it
 * already. */
void decoder_forward(real *hidden, struct decoder_acts *acts, const struct tokens *target,
                     const struct tokens *source, const real *memory, const struct net *net,
                     const struct run *run);

/* dmemory [Ns, D] overwritten; dhidden [Nt, D] is used up. */
void decoder_backward(real *dmemory, struct weights *grad, real *dhidden, const struct decoder_acts *acts,
                      const struct net *net, const struct run *run);

/* What a running search keeps of the source and of its earlier steps. */
struct decoder_cache {
    int capacity, width; /* rows of all steps and of one, at most */
    int n_rows;          /* of all steps so far */
    int n_source;        /* rows of the source before them, which a decoder alone looks at in self[] */
    real *position_rows; /* [n_source + capacity, position_width], of which n_positions are computed */
    int n_positions;
    struct block_cache self[CONFIG_MAX_LAYERS];
};

/* The reals that a cache takes from an arena, for `capacity` rows, `width` of them in a step, and a source of
 * n_source tokens. */
size_t decoder_cache_size(const struct net *net, size_t capacity, size_t width, size_t n_source);

/* Takes a cache for `capacity` rows, `width` of them in a step at most, from the run's arena and computes the
 * cross keys and values of memory [Ns, D], the sentences of source; a decoder alone runs over it. */
void decoder_start(struct decoder_cache *cache, const real *memory, const struct tokens *source, int capacity,
                   int width, const struct net *net, const struct run *run);

/* One step: hidden [n, D] for the n last tokens `ids` at `positions`. Row i's self segment lists the cache
 * rows of its ancestors, one a step, and, last, its own new row: the i-th new row is number
 * cache->n_rows + i (before the call). Cross segments group the rows of one sentence. The scratch of
 * the call is given back; the new rows stay in the cache. */
void decoder_step(real *hidden, struct decoder_cache *cache, const int *ids, const int *positions,
                  const struct block_input *in, const struct net *net, const struct run *run);

#endif
