/*
 * decoder.c: target tokens over memory: embedding, then the layers, each looking at its own past and at the
 * source. decoder_forward runs whole targets (training, scoring, explaining); decoder_step runs the last
 * token of each hypothesis against the cache. Both call the same block_forward. Recurrent layers, which need
 * no positions, are in rnn_decoder.c. A decoder alone has no cross-attention: it reads source and target as one
 * sequence (joint.h), over which it looks at its own past. An encoder alone, a masked language model (Devlin
 * et al. 2019), predicts pieces of its own text: those of its rows that are asked for are all that is
 * decoded.
 * On the sentence's way: the search calls decoder_step once a target position.
 */
#include "model/decoder.h"

#include <assert.h>
#include <string.h>

/* Causal self-attention within each target, and each target over its source. Where that is not looked at, its
 * length still tells how learned positions are squeezed. */
static void bind_segments(struct block_input *in, const struct tokens *target, const struct tokens *source,
                          struct arena *arena)
{
    int n = target->n_sentences;
    struct attn_segment *self = ARENA_TAKE(arena, struct attn_segment, n);
    struct attn_segment *cross = ARENA_TAKE(arena, struct attn_segment, n);
    for (int s = 0; s < n; s++) {
        int start = target->start[s], length = target->start[s + 1] - start;
        self[s] = (struct attn_segment){
            .q_start = start, .n_q = length, .k_start = start, .n_k = length, .causal = true
        };
        cross[s] = (struct attn_segment){ .q_start = start,
                                          .n_q = length,
                                          .k_start = source->start[s],
                                          .n_k = source->start[s + 1] - source->start[s] };
    }
    in->self = self;
    in->cross = cross;
    in->n_self = in->n_cross = n;
}

/* Decoder inputs: the start symbol, then the target without its last token. */
static int *shifted_inputs(const struct tokens *target, int start_id, struct arena *arena)
{
    int *ids = ARENA_TAKE(arena, int, target->n);
    for (int s = 0; s < target->n_sentences; s++)
        for (int i = target->start[s]; i < target->start[s + 1]; i++)
            ids[i] = i == target->start[s] ? start_id : target->ids[i - 1];
    return ids;
}

/* x [n, D], and what all layers see of the sentences. */
static real *embed_target(struct decoder_acts *acts, const struct tokens *target, const struct tokens *source,
                          const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    const struct tokens *tokens = target;
    int d = c->d_model;
    uint64_t *keys = NULL;
    profile_to(run->profile, PROFILE_EMBED);
    acts->ids = shifted_inputs(target, c->decoder_start_token_id, run->arena);
    real *x = ARENA_TAKE(run->arena, real, (size_t)target->n * d);
    embed_forward(x, acts->ids, &net->target_embed, net->embed_scale, target->n, run);
    if (net->is_joint) {
        joint_lay(&acts->joint, source, target, run->arena);
        tokens = &acts->joint.tokens;
        real *both = ARENA_TAKE(run->arena, real, (size_t)tokens->n * d);
        joint_gather(both, acts->memory, x, &acts->joint, d);
        x = both;
    }
    if (run->dropout) {
        keys = ARENA_TAKE(run->arena, uint64_t, tokens->n);
        dropout_keys(keys, tokens, 1, run);
    }
    acts->in = (struct block_input){ .n = tokens->n, .keys = keys };
    bind_segments(&acts->in, tokens, source, run->arena);
    position_place_all(&acts->in.place, &net->target_position, tokens, acts->in.cross, run);
    position_add(x, tokens->n, &acts->in.place, run);
    tap_show(run->tap, "decoder", -1, "embed", -1, x, tokens->n, d, d);
    dropout_apply(x, keys, 0, tokens->n, d, net->target_dropout, run);
    return x;
}

/* The source's keys and values [Ns, 2 kv] for the cross-attention of layer l. */
static real *project_memory(const struct decoder_acts *acts, int l, const struct net *net,
                            const struct run *run)
{
    int kv = net->decoder[l].kv, n = acts->n_source;
    real *cross_kv = ARENA_TAKE(run->arena, real, 2 * (size_t)n * (size_t)kv);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(cross_kv, acts->memory, &net->decoder[l].cross_kv, n, run);
    tap_show(run->tap, "decoder.layers", l, "encoder_attn.key", -1, cross_kv, n, kv, 2 * kv);
    tap_show(run->tap, "decoder.layers", l, "encoder_attn.value", -1, cross_kv + kv, n, kv, 2 * kv);
    return cross_kv;
}

/* hidden [n, D] */
static void blocks_forward(real *hidden, struct decoder_acts *acts, real *x, const struct net *net,
                           const struct run *run)
{
    const struct config *c = net->config;
    int n = acts->in.n, d = c->d_model;
    size_t size = (size_t)n * d;
    real *spare = run->keep ? NULL : ARENA_TAKE(run->arena, real, size);
    acts->layers = ARENA_TAKE(run->arena, struct block_acts, c->decoder_layers);
    for (int l = 0; l < c->decoder_layers; l++) {
        size_t layer_mark = arena_mark(run->arena);
        bool last = l == c->decoder_layers - 1 && !c->pre_norm;
        real *y = last ? hidden : run->keep ? ARENA_TAKE(run->arena, real, size) : spare;
        const real *cross_kv = net->decoder[l].has_cross ? project_memory(acts, l, net, run) : NULL;
        block_forward(y, &acts->layers[l], x, &acts->in, cross_kv, NULL, &net->decoder[l], run);
        if (!run->keep)
            arena_reset(run->arena, layer_mark);
        spare = x;
        x = y;
    }
    if (c->pre_norm) {
        profile_to(run->profile, PROFILE_NORM);
        acts->norm_in = x;
        acts->norm_stats = ARENA_TAKE(run->arena, real, 2 * (size_t)n);
        norm_forward(hidden, acts->norm_stats, x, &net->decoder_norm, n, run);
    }
}

/* Only the target's rows go on to the output layer. */
static void joint_blocks_forward(real *hidden, struct decoder_acts *acts, real *x, const struct net *net,
                                 const struct run *run)
{
    int d = net->config->d_model;
    real *both = ARENA_TAKE(run->arena, real, (size_t)acts->in.n * d);
    blocks_forward(both, acts, x, net, run);
    joint_scatter(NULL, hidden, both, &acts->joint, d);
}

/* hidden[i] = memory[rows[i]] */
static void pick_rows(real *hidden, const real *memory, const int *rows, int n, int d)
{
    for (int i = 0; i < n; i++)
        memcpy(hidden + (size_t)i * (size_t)d, memory + (size_t)rows[i] * (size_t)d,
               sizeof(real) * (size_t)d);
}

/* No row is asked for twice. */
static void pick_rows_backward(real *dmemory, const real *dhidden, const struct decoder_acts *acts, int d)
{
    memset(dmemory, 0, sizeof(real) * (size_t)acts->n_source * (size_t)d);
    for (int i = 0; i < acts->n_target; i++)
        memcpy(dmemory + (size_t)acts->rows[i] * (size_t)d, dhidden + (size_t)i * (size_t)d,
               sizeof(real) * (size_t)d);
}

void decoder_forward(real *hidden, struct decoder_acts *acts, const struct tokens *target,
                     const struct tokens *source, const real *memory, const struct net *net,
                     const struct run *run)
{
    struct decoder_acts unkept;
    int n = target->n, d = net->config->d_model;
    size_t mark = arena_mark(run->arena);
    if (!run->keep)
        acts = &unkept;
    acts->memory = memory;
    acts->n_source = source->n;
    acts->n_target = n;
    acts->rows = target->rows;
    if (target->rows != NULL) {
        pick_rows(hidden, memory, target->rows, n, d);
        return;
    }
    real *x = embed_target(acts, target, source, net, run);
    if (net->is_rnn)
        rnn_decoder_forward(hidden, &acts->rnn, x, target, &acts->in, memory, source->n, &net->rnn_decoder,
                            run);
    else if (net->is_joint)
        joint_blocks_forward(hidden, acts, x, net, run);
    else
        blocks_forward(hidden, acts, x, net, run);
    tap_show(run->tap, "decoder", -1, "out", -1, hidden, n, d, d);
    if (!run->keep)
        arena_reset(run->arena, mark);
}

/* Returns the gradient of the embeddings: dx or dy, which are used up. */
static real *blocks_backward(real *dmemory, struct weights *grad, real *dx, real *dy,
                             const struct decoder_acts *acts, const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    int n = acts->in.n;
    bool has_cross = net->decoder[0].has_cross;
    size_t kv_size = has_cross ? 2 * (size_t)acts->n_source * (size_t)net->decoder[0].kv : 0;
    real *dkv = ARENA_TAKE(run->arena, real, kv_size);
    memset(dmemory, 0, sizeof(real) * (size_t)acts->n_source * (size_t)c->d_model);
    profile_to(run->profile, PROFILE_NORM);
    if (c->pre_norm)
        norm_backward(dy, grad->decoder_norm_w, grad->decoder_norm_b, dy, acts->norm_in, acts->norm_stats,
                      &net->decoder_norm, n, run);
    for (int l = c->decoder_layers - 1; l >= 0; l--) {
        memset(dkv, 0, sizeof(real) * kv_size);
        block_backward(dx, dkv, &grad->decoder[l], dy, &acts->layers[l], &acts->in, &net->decoder[l], run);
        profile_to(run->profile, PROFILE_PROJECT);
        if (has_cross) /* cross_kv = memory W^T + b */
            linear_backward(dmemory, true, grad->decoder[l].cross_k_w, grad->decoder[l].cross_k_b, dkv,
                            acts->memory, &net->decoder[l].cross_kv, acts->n_source, run);
        real *swap = dy;
        dy = dx;
        dx = swap;
    }
    return dy;
}

void decoder_backward(real *dmemory, struct weights *grad, real *dhidden, const struct decoder_acts *acts,
                      const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    int n = acts->in.n, d = c->d_model;
    if (acts->rows != NULL) {
        pick_rows_backward(dmemory, dhidden, acts, d);
        return;
    }
    size_t mark = arena_mark(run->arena);
    real *dy = ARENA_TAKE(run->arena, real, (size_t)n * d), *dtarget = dhidden;
    if (net->is_joint) {
        dhidden = ARENA_TAKE(run->arena, real, (size_t)n * d);
        joint_gather(dhidden, NULL, dtarget, &acts->joint, d);
    }
    if (net->is_rnn)
        rnn_decoder_backward(dy, dmemory, grad, dhidden, &acts->rnn, &acts->in, acts->n_source,
                             &net->rnn_decoder, run);
    else
        dy = blocks_backward(dmemory, grad, dy, dhidden, acts, net, run);
    profile_to(run->profile, PROFILE_EMBED);
    dropout_apply(dy, acts->in.keys, 0, n, d, net->target_dropout, run);
    position_backward(grad->decoder_positions, dy, n, &acts->in.place);
    if (net->is_joint) {
        joint_scatter(dmemory, dtarget, dy, &acts->joint, d);
        dy = dtarget;
    }
    embed_backward(c->tie == TFM_TIE_ALL ? grad->shared : grad->decoder_embed, dy, acts->ids, d,
                   net->embed_scale, acts->n_target);
    arena_reset(run->arena, mark);
}

size_t decoder_cache_size(const struct net *net, size_t capacity, size_t width, size_t n_source)
{
    size_t layers = (size_t)net->config->decoder_layers, before = net->is_joint ? n_source : 0,
           positions = (before + capacity) * (size_t)position_width(&net->target_position);
    if (net->is_rnn)
        return positions + layers * rnn_layer_cache_size(&net->rnn_decoder.layers[0], width) +
               n_source * 2 * (size_t)net->config->d_model;
    return positions + layers * (block_cache_size(&net->decoder[0], before + capacity, width) +
                                 (n_source - before) * 2 * (size_t)net->decoder[0].kv);
}

/* The source's keys and values for the cross-attention of a block. */
static const real *pack_cross(const real *memory, int n_source, const struct attn_segment *segments,
                              int n_segments, const struct block *block, const struct run *run)
{
    int kv = block->kv;
    size_t size = 2 * (size_t)n_source * (size_t)kv;
    real *packed = ARENA_TAKE(run->arena, real, size);
    size_t mark = arena_mark(run->arena);
    real *rows = ARENA_TAKE(run->arena, real, size);
    linear_forward(rows, memory, &block->cross_kv, n_source, run);
    attn_pack(packed, rows, 2 * kv, rows + kv, 2 * kv, segments, n_segments, &block->cross, run);
    arena_reset(run->arena, mark);
    return packed;
}

/* Runs a decoder alone over the sources; their keys and values are the cache's first rows. That of each </s>
 * is there and never looked at: the start symbol stands in its place. */
static void run_source(struct decoder_cache *cache, const real *memory, const struct tokens *source,
                       const struct net *net, const struct run *run)
{
    size_t mark = arena_mark(run->arena), size = (size_t)source->n * (size_t)net->config->d_model;
    struct block_input in = { .n = source->n };
    real *x = ARENA_TAKE(run->arena, real, size), *y = ARENA_TAKE(run->arena, real, size);
    memcpy(x, memory, sizeof(real) * size);
    profile_to(run->profile, PROFILE_EMBED);
    bind_segments(&in, source, source, run->arena);
    position_place_all(&in.place, &net->target_position, source, in.cross, run);
    position_add(x, source->n, &in.place, run);
    for (int l = 0; l < net->config->decoder_layers; l++) {
        block_forward(y, NULL, x, &in, NULL, &cache->self[l], &net->decoder[l], run);
        real *swap = x;
        x = y;
        y = swap;
    }
    arena_reset(run->arena, mark);
}

void decoder_start(struct decoder_cache *cache, const real *memory, const struct tokens *source, int capacity,
                   int width, const struct net *net, const struct run *run)
{
    struct attn_segment *segments = encoder_segments(source, run->arena);
    profile_to(run->profile, PROFILE_PROJECT);
    *cache = (struct decoder_cache){ .capacity = capacity, .width = width };
    cache->n_source = net->is_joint ? source->n : 0;
    int n_rows = cache->n_source + capacity;
    cache->position_rows =
        ARENA_TAKE(run->arena, real, (size_t)n_rows * (size_t)position_width(&net->target_position));
    for (int l = 0; l < net->config->decoder_layers; l++) {
        struct block_cache *self = &cache->self[l];
        if (net->is_rnn) {
            rnn_layer_cache_init(self, &net->rnn_decoder.layers[l], width, run);
            continue;
        }
        block_cache_init(self, &net->decoder[l], n_rows, width, run);
        if (net->decoder[l].has_cross)
            self->cross = pack_cross(memory, source->n, segments, source->n_sentences, &net->decoder[l], run);
    }
    if (net->is_joint)
        run_source(cache, memory, source, net, run);
    if (net->is_rnn)
        cache->self[0].cross =
            rnn_decoder_pack(memory, source->n, segments, source->n_sentences, &net->rnn_decoder, run);
}

/* Computes what the cache does not know of the positions yet. */
static void place_step(struct block_input *in, struct decoder_cache *cache, const int *positions,
                       const struct net *net, const struct run *run)
{
    const struct position *p = &net->target_position;
    int longest = 0;
    for (int i = 0; i < in->n; i++)
        longest = positions[i] >= longest ? positions[i] + 1 : longest;
    if (longest > cache->n_positions) {
        position_rows(cache->position_rows + (size_t)cache->n_positions * (size_t)position_width(p),
                      cache->n_positions, longest, p);
        cache->n_positions = longest;
    }
    in->place = (struct placement){
        .position = p, .positions = positions, .longest = longest, .rows = cache->position_rows
    };
    position_place(&in->place, in->cross, in->n_cross, in->n, run);
}

/* What a decoder alone looks at: its source, then its own past. */
static void start_joint_step(struct block_input *in, const int **positions, const struct decoder_cache *cache,
                             const struct net *net, const struct run *run)
{
    joint_step(in, positions, cache->n_source, run->arena);
    if (in->cross_weights)
        in->self_weights =
            ARENA_TAKE(run->arena, real, attn_weights_size(in->self, in->n_self, net->config->heads));
}

static void blocks_step(real *hidden, struct decoder_cache *cache, real *x, const struct block_input *in,
                        const struct net *net, const struct run *run)
{
    const struct config *c = net->config;
    int n = in->n;
    size_t size = (size_t)n * c->d_model;
    real *y = ARENA_TAKE(run->arena, real, size);
    for (int l = 0; l < c->decoder_layers; l++) {
        block_forward(y, NULL, x, in, NULL, &cache->self[l], &net->decoder[l], run);
        real *swap = x;
        x = y;
        y = swap;
    }
    if (c->pre_norm)
        norm_forward(hidden, NULL, x, &net->decoder_norm, n, run);
    else
        memcpy(hidden, x, sizeof(real) * size);
}

void decoder_step(real *hidden, struct decoder_cache *cache, const int *ids, const int *positions,
                  const struct block_input *in, const struct net *net, const struct run *run)
{
    int n = in->n;
    size_t mark = arena_mark(run->arena);
    struct block_input placed = *in;
    assert(n <= cache->width && cache->n_rows + n <= cache->capacity);
    cache->n_rows += n;
    profile_to(run->profile, PROFILE_EMBED);
    if (net->is_joint)
        start_joint_step(&placed, &positions, cache, net, run);
    place_step(&placed, cache, positions, net, run);
    real *x = ARENA_TAKE(run->arena, real, (size_t)n * net->config->d_model);
    embed_forward(x, ids, &net->target_embed, net->embed_scale, n, run);
    position_add(x, n, &placed.place, run);
    if (net->is_rnn)
        rnn_decoder_step(hidden, x, &placed, cache->self, &net->rnn_decoder, run);
    else
        blocks_step(hidden, cache, x, &placed, net, run);
    if (placed.self_weights)
        joint_cross_weights(in->cross_weights, placed.self_weights, &placed, net->config->heads);
    arena_reset(run->arena, mark);
}
