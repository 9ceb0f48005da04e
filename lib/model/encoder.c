/*
 * encoder.c: source tokens to memory: embedding, then the layers, each looking at its own sentence. Recurrent
 * layers, which need no positions, are in rnn_encoder.c. Of a decoder-only model the embeddings are all: its
 * memory is what the decoder reads before the target (joint.h).
 * On the sentence's way: tfm_translate calls encoder_forward, which calls block_forward a layer.
 */
#include "model/encoder.h"

#include <string.h>

struct attn_segment *encoder_segments(const struct tokens *tokens, struct arena *arena)
{
    struct attn_segment *segments = ARENA_TAKE(arena, struct attn_segment, tokens->n_sentences);
    for (int s = 0; s < tokens->n_sentences; s++) {
        int start = tokens->start[s], n = tokens->start[s + 1] - start;
        segments[s] = (struct attn_segment){ .q_start = start, .n_q = n, .k_start = start, .n_k = n };
    }
    return segments;
}

/* x [N, D], and what all layers see of the sentences. */
static real *embed_source(struct encoder_acts *acts, const struct tokens *source, const struct net *net,
                          const struct run *run)
{
    const struct config *c = net->config;
    uint64_t *keys = NULL;
    if (run->dropout) {
        keys = ARENA_TAKE(run->arena, uint64_t, source->n);
        dropout_keys(keys, source, 0, run);
    }
    profile_to(run->profile, PROFILE_EMBED);
    acts->tokens = source;
    acts->in = (struct block_input){ .n = source->n,
                                     .keys = keys,
                                     .self = encoder_segments(source, run->arena),
                                     .n_self = source->n_sentences };
    real *x = ARENA_TAKE(run->arena, real, (size_t)source->n * c->d_model);
    position_place_all(&acts->in.place, &net->source_position, source, acts->in.self, run);
    embed_forward(x, source->ids, &net->source_embed, net->embed_scale, source->n, run);
    position_add(x, source->n, &acts->in.place, run);
    tap_show(run->tap, "encoder", -1, "embed", -1, x, source->n, c->d_model, c->d_model);
    dropout_apply(x, keys, 0, source->n, c->d_model, net->source_dropout, run);
    return x;
}

static void blocks_forward(real *memory, struct encoder_acts *acts, real *x, const struct net *net,
                           const struct run *run)
{
    const struct config *c = net->config;
    size_t size = (size_t)acts->in.n * c->d_model;
    real *spare = run->keep ? NULL : ARENA_TAKE(run->arena, real, size);
    acts->layers = ARENA_TAKE(run->arena, struct block_acts, c->encoder_layers);
    for (int l = 0; l < c->encoder_layers; l++) {
        bool last = l == c->encoder_layers - 1 && !c->pre_norm;
        real *y = last ? memory : run->keep ? ARENA_TAKE(run->arena, real, size) : spare;
        block_forward(y, &acts->layers[l], x, &acts->in, NULL, NULL, &net->encoder[l], run);
        spare = x;
        x = y;
    }
    if (c->encoder_layers == 0) {
        memcpy(memory, x, sizeof(real) * size);
    } else if (c->pre_norm) {
        profile_to(run->profile, PROFILE_NORM);
        acts->norm_in = x;
        acts->norm_stats = ARENA_TAKE(run->arena, real, 2 * (size_t)acts->in.n);
        norm_forward(memory, acts->norm_stats, x, &net->encoder_norm, acts->in.n, run);
    }
}

void encoder_forward(real *memory, struct encoder_acts *acts, const struct tokens *source,
                     const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    struct encoder_acts unkept;
    size_t mark = arena_mark(run->arena);
    if (!run->keep)
        acts = &unkept;
    real *x = embed_source(acts, source, net, run);
    if (net->is_rnn)
        rnn_encoder_forward(memory, &acts->rnn, x, source, acts->in.keys, &net->rnn_encoder, run);
    else
        blocks_forward(memory, acts, x, net, run);
    tap_show(run->tap, "encoder", -1, "out", -1, memory, source->n, c->d_model, c->d_model);
    if (!run->keep)
        arena_reset(run->arena, mark);
}

/* Returns the gradient of the embeddings: dx or dy, which are used up. */
static real *blocks_backward(struct weights *grad, real *dx, real *dy, const struct encoder_acts *acts,
                             const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    int n = acts->in.n;
    profile_to(run->profile, PROFILE_NORM);
    if (c->pre_norm && c->encoder_layers > 0)
        norm_backward(dy, grad->encoder_norm_w, grad->encoder_norm_b, dy, acts->norm_in, acts->norm_stats,
                      &net->encoder_norm, n, run);
    for (int l = c->encoder_layers - 1; l >= 0; l--) {
        block_backward(dx, NULL, &grad->encoder[l], dy, &acts->layers[l], &acts->in, &net->encoder[l], run);
        real *swap = dy;
        dy = dx;
        dx = swap;
    }
    return dy;
}

void encoder_backward(struct weights *grad, real *dmemory, const struct encoder_acts *acts,
                      const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    int n = acts->in.n, d = c->d_model;
    size_t mark = arena_mark(run->arena);
    real *dy = ARENA_TAKE(run->arena, real, (size_t)n * d);
    if (net->is_rnn)
        rnn_encoder_backward(dy, grad, dmemory, &acts->rnn, acts->in.keys, &net->rnn_encoder, run);
    else
        dy = blocks_backward(grad, dy, dmemory, acts, net, run);
    profile_to(run->profile, PROFILE_EMBED);
    dropout_apply(dy, acts->in.keys, 0, n, d, net->source_dropout, run);
    embed_backward(c->tie == TFM_TIE_ALL ? grad->shared : grad->encoder_embed, dy, acts->tokens->ids, d,
                   net->embed_scale, n);
    position_backward(grad->encoder_positions, dy, n, &acts->in.place);
    arena_reset(run->arena, mark);
}
