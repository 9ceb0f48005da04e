/*
 * rnn_decoder.c: the recurrent decoder forward, for whole targets or for one step, and back. What does not
 * depend on time is done for all rows at once: the products of the embeddings, the layers above the first
 * (each its own loop over time), the readout. In the first layer attention stands inside the loop; for step
 * t of m rows
 *     query [m, D] = old_h W^T       mix = attention(query, keys, memory)
 *     gates += mix C^T               then the cell
 * and back in the other order. Arrays "by step" have the rows of a step side by side.
 * On the sentence's way with --arch rnn: decoder_step calls rnn_decoder_step.
 */
#include "model/rnn_decoder.h"

#include <string.h>

static struct linear linear_of(int out, int in, const real *w, const real *b)
{
    struct linear l = { .out = out, .in = in, .w = w, .b = b };
    return l;
}

void rnn_decoder_bind(struct rnn_decoder *decoder, const struct config *c, const struct weights *w)
{
    int d = c->d_model;
    *decoder = (struct rnn_decoder){ .n_layers = c->decoder_layers };
    for (int l = 0; l < decoder->n_layers; l++)
        rnn_layer_bind(&decoder->layers[l], c, &w->decoder[l], 1, l);
    decoder->context = linear_of(decoder->layers[0].input.out, d, w->rnn_context_w, NULL);
    decoder->has_query = c->rnn_attention != TFM_RNN_DOT;
    decoder->has_key = c->rnn_attention == TFM_RNN_ADDITIVE;
    decoder->query = linear_of(d, d, w->rnn_query_w, NULL);
    decoder->key = linear_of(d, d, w->rnn_key_w, w->rnn_key_b);
    int place = decoder->layers[0].place;
    decoder->attn = (struct attn){ .heads = 1,
                                   .dim = d,
                                   .share = 1,
                                   .scale = 1,
                                   .score = w->rnn_score_w, /* NULL: products */
                                   .dropout = (real)c->attention_dropout,
                                   .place = place + BLOCK_PLACE_CROSS_WEIGHTS,
                                   .part = TFM_CROSS };
    decoder->readout_state = linear_of(d, d, w->rnn_readout_state_w, w->rnn_readout_b);
    decoder->readout_context = linear_of(d, d, w->rnn_readout_context_w, NULL);
    decoder->readout_dropout = (real)c->activation_dropout;
    decoder->readout_place = place + BLOCK_PLACE_HIDDEN;
}

void rnn_decoder_each(struct rnn_decoder *decoder, linear_visit *visit, void *arg)
{
    for (int l = 0; l < decoder->n_layers; l++)
        rnn_layer_each(&decoder->layers[l], visit, arg);
    visit(&decoder->context, arg);
    if (decoder->has_query)
        visit(&decoder->query, arg);
    if (decoder->has_key)
        visit(&decoder->key, arg);
    visit(&decoder->readout_state, arg);
    visit(&decoder->readout_context, arg);
}

static real *take(int n, int d, const struct run *run)
{
    return ARENA_TAKE(run->arena, real, (size_t)n * d);
}

/* ---- attention, a step at a time ---- */

/* The queries of step t of whole targets, one for each sentence that is still running. */
static int step_segments(struct attn_segment *segments, const struct block_input *in, int t)
{
    int n = 0;
    for (int s = 0; s < in->n_cross; s++) {
        if (t >= in->cross[s].n_q)
            continue;
        segments[n] = (struct attn_segment){
            .q_start = n, .n_q = 1, .k_start = in->cross[s].k_start, .n_k = in->cross[s].n_k
        };
        n++;
    }
    return n;
}

/* [Ns, D]: memory itself, or from the run's arena. */
static const real *compared(const real *memory, int n_source, const struct rnn_decoder *decoder,
                            const struct run *run)
{
    if (!decoder->has_key)
        return memory;
    real *keys = take(n_source, decoder->key.out, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(keys, memory, &decoder->key, n_source, run);
    return keys;
}

static void pack(real *packed, const real *keys, const real *memory, const struct attn_segment *segments,
                 int n_segments, const struct rnn_decoder *decoder, const struct run *run)
{
    int d = decoder->attn.dim;
    attn_pack(packed, keys, d, memory, d, segments, n_segments, &decoder->attn, run);
}

const real *rnn_decoder_pack(const real *memory, int n_source, const struct attn_segment *segments,
                             int n_segments, const struct rnn_decoder *decoder, const struct run *run)
{
    real *packed = take(n_source, 2 * decoder->attn.dim, run);
    size_t mark = arena_mark(run->arena);
    pack(packed, compared(memory, n_source, decoder, run), memory, segments, n_segments, decoder, run);
    arena_reset(run->arena, mark);
    return packed;
}

/* One step of the first layer: attention, then the cell. weights: attn_weights_size of the segments, or NULL. */
static void attend_step(struct rnn_decoder_acts *acts, int t, const struct attn_segment *segments,
                        int n_segments, real *weights, const struct rnn_decoder *decoder,
                        const struct run *run)
{
    struct rnn_pass *pass = &acts->layers[0].pass[0];
    int d = decoder->attn.dim, g = decoder->context.out, first = pass->steps->start[t],
        n = pass->steps->start[t + 1] - first;
    size_t at = (size_t)first * (size_t)d, mark = arena_mark(run->arena);
    real *query = acts->query + at, *mix = acts->mix + at;
    const uint64_t *drop_keys = acts->drop_keys ? acts->drop_keys + first : NULL;
    struct run quiet = *run; /* weights are shown when all are there */
    quiet.tap = NULL;
    struct attn attn = decoder->attn;
    attn.rows = pass->steps->row + first;
    rnn_recall(pass, t);
    profile_to(run->profile, PROFILE_PROJECT);
    if (decoder->has_query)
        linear_forward(query, pass->old_h + at, &decoder->query, n, run);
    else
        memcpy(query, pass->old_h + at, sizeof(real) * (size_t)n * (size_t)d);
    profile_to(run->profile, PROFILE_ATTEND);
    attn_forward(mix, weights, query, d, NULL, d, NULL, d, acts->packed, segments, n_segments, &attn,
                 drop_keys, &quiet);
    profile_to(run->profile, PROFILE_PROJECT);
    real *products = take(n, g, run);
    linear_forward(products, mix, &decoder->context, n, run);
    for (int i = 0; i < n; i++) {
        size_t row = (size_t)pass->steps->row[first + i];
        run->kern->add(pass->gates + row * pass->ld_gates, products + (size_t)i * g, (size_t)g);
    }
    rnn_step(pass, t, run);
    arena_reset(run->arena, mark);
}

/* Shows the attention of whole targets, each as one matrix, as a Transformer's would be. */
static void show_weights(const struct rnn_decoder_acts *acts, const struct block_input *in,
                         const struct run *run)
{
    if (!run->tap)
        return;
    size_t mark = arena_mark(run->arena);
    /* where the sentence's row of each step is */
    size_t *next = ARENA_TAKE(run->arena, size_t, acts->steps.n_steps);
    memcpy(next, acts->weights_at, sizeof(*next) * (size_t)acts->steps.n_steps);
    for (int s = 0; s < in->n_cross; s++) {
        int n_q = in->cross[s].n_q, n_k = in->cross[s].n_k;
        real *matrix = take(n_q, n_k, run);
        for (int t = 0; t < n_q; t++) {
            memcpy(matrix + (size_t)t * n_k, acts->weights + next[t], sizeof(real) * (size_t)n_k);
            next[t] += attn_row(n_k);
        }
        tap_show(run->tap, "decoder.layers", 0, "encoder_attn.weights", 0, matrix, n_q, n_k, n_k);
    }
    arena_reset(run->arena, mark);
}

/* ---- forward ---- */

/* The layers above the first, and the readout, for the n rows of a pass. */
static void finish(real *hidden, struct rnn_decoder_acts *acts, real *x, const struct block_input *in,
                   struct block_cache *caches, const struct rnn_decoder *decoder, const struct run *run)
{
    int n = acts->steps.n, d = decoder->attn.dim;
    real *spare = run->keep ? NULL : take(n, d, run);
    for (int l = 1; l < decoder->n_layers; l++) {
        real *y = run->keep ? take(n, d, run) : spare;
        rnn_layer_forward(y, &acts->layers[l], x, &acts->steps, in->keys, caches ? &caches[l] : NULL,
                          &decoder->layers[l], run);
        spare = x;
        x = y;
    }
    acts->top = x;
    acts->context = take(n, d, run);
    rnn_scatter(acts->context, d, acts->mix, d, &acts->steps, 0, acts->steps.n_steps);
    tap_show(run->tap, "decoder.layers", 0, "encoder_attn.out", -1, acts->context, n, d, d);
    acts->readout = take(n, d, run);
    profile_to(run->profile, PROFILE_FFN);
    linear_forward(acts->readout, acts->top, &decoder->readout_state, n, run);
    linear_forward(hidden, acts->context, &decoder->readout_context, n, run);
    run->kern->add(acts->readout, hidden, (size_t)n * (size_t)d);
    run->kern->gate_tanh(acts->readout, acts->readout, (size_t)n * (size_t)d);
    memcpy(hidden, acts->readout, sizeof(real) * (size_t)n * (size_t)d);
    dropout_apply(hidden, in->keys, decoder->readout_place, n, d, decoder->readout_dropout, run);
}

/* Room for what attention leaves behind, and the first layer up to its loop. Returns its output. */
static real *begin(struct rnn_decoder_acts *acts, const real *x, struct block_cache *caches,
                   const struct rnn_decoder *decoder, const struct run *run)
{
    int n = acts->steps.n, d = decoder->attn.dim;
    acts->layers = ARENA_TAKE(run->arena, struct rnn_layer_acts, decoder->n_layers);
    acts->query = take(n, d, run);
    acts->mix = take(n, d, run);
    real *y = take(n, d, run);
    rnn_layer_open(&acts->layers[0], y, x, &acts->steps, caches, &decoder->layers[0], run);
    return y;
}

void rnn_decoder_forward(real *hidden, struct rnn_decoder_acts *acts, const real *x,
                         const struct tokens *target, const struct block_input *in, const real *memory,
                         int n_source, const struct rnn_decoder *decoder, const struct run *run)
{
    *acts = (struct rnn_decoder_acts){ .memory = memory };
    acts->keys = compared(memory, n_source, decoder, run);
    real *packed = take(n_source, 2 * decoder->attn.dim, run);
    pack(packed, acts->keys, memory, in->cross, in->n_cross, decoder, run);
    acts->packed = packed;
    tap_show(run->tap, "decoder.layers", 0, "encoder_attn.key", -1, acts->keys, n_source, decoder->attn.dim,
             decoder->attn.dim);
    rnn_steps_take(&acts->steps, target, false, run->arena);
    if (in->keys) {
        acts->drop_keys = ARENA_TAKE(run->arena, uint64_t, in->n);
        for (int p = 0; p < in->n; p++)
            acts->drop_keys[p] = in->keys[acts->steps.row[p]];
    }
    acts->weights = ARENA_TAKE(run->arena, real, attn_weights_size(in->cross, in->n_cross, 1));
    acts->weights_at = ARENA_TAKE(run->arena, size_t, acts->steps.n_steps);
    struct attn_segment *segments = ARENA_TAKE(run->arena, struct attn_segment, in->n_cross);
    real *y = begin(acts, x, NULL, decoder, run);
    size_t at = 0;
    for (int t = 0; t < acts->steps.n_steps; t++) {
        int n = step_segments(segments, in, t);
        acts->weights_at[t] = at;
        attend_step(acts, t, segments, n, acts->weights + at, decoder, run);
        at += attn_weights_size(segments, n, 1);
    }
    show_weights(acts, in, run);
    rnn_layer_close(y, &acts->layers[0], in->keys, NULL, &decoder->layers[0], run);
    finish(hidden, acts, y, in, NULL, decoder, run);
}

void rnn_decoder_step(real *hidden, const real *x, const struct block_input *in, struct block_cache *caches,
                      const struct rnn_decoder *decoder, const struct run *run)
{
    int n = in->n, start[] = { 0, n };
    int *row = ARENA_TAKE(run->arena, int, n), *before = ARENA_TAKE(run->arena, int, n);
    for (int i = 0; i < n; i++)
        row[i] = i;
    ssru_chain(before, in->self, in->n_self, caches[0].first);
    struct rnn_decoder_acts acts = { .packed = caches[0].cross };
    acts.steps = (struct rnn_steps){ .n = n, .n_steps = 1, .start = start, .row = row, .before = before };
    real *y = begin(&acts, x, caches, decoder, run);
    attend_step(&acts, 0, in->cross, in->n_cross, in->cross_weights, decoder, run);
    rnn_layer_close(y, &acts.layers[0], NULL, caches, &decoder->layers[0], run);
    finish(hidden, &acts, y, in, caches, decoder, run);
}

/* ---- backward ---- */

struct decoder_back {
    struct rnn_back cell;
    real *dmix, *dquery;   /* [n, D] by step; dmix: what comes from the readout */
    real *dkeys, *dmemory; /* [Ns, D]; one and the same where keys are the memory */
    struct attn_segment *segments;
};

/* Goes back through attend_step, behind the cell: to the queries' states, to keys and memory. */
static void attend_step_backward(struct decoder_back *back, struct weights *grad,
                                 const struct rnn_decoder_acts *acts, int t, const struct block_input *in,
                                 const struct rnn_decoder *decoder, const struct run *run)
{
    int d = decoder->attn.dim, first = acts->steps.start[t], n = acts->steps.start[t + 1] - first;
    size_t at = (size_t)first * (size_t)d;
    real *dmix = back->dmix + at, *dquery = back->dquery + at;
    const real *query = acts->query + at, *weights = acts->weights + acts->weights_at[t];
    const uint64_t *drop_keys = acts->drop_keys ? acts->drop_keys + first : NULL;
    int n_segments = step_segments(back->segments, in, t);
    /* gates += mix C^T */
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward_input(dmix, true, back->cell.dgates + (size_t)first * (size_t)decoder->context.out,
                          &decoder->context, n, run);
    profile_to(run->profile, PROFILE_ATTEND);
    struct attn attn = decoder->attn;
    attn.dscore = grad->rnn_score_w;
    attn.rows = acts->steps.row + first;
    attn_backward(dquery, d, back->dkeys, d, back->dmemory, d, dmix, weights, query, d, acts->keys, d,
                  acts->memory, d, back->segments, n_segments, &attn, drop_keys, run);
    /* query = old_h W^T */
    profile_to(run->profile, PROFILE_PROJECT);
    if (decoder->has_query)
        linear_backward_input(back->cell.dold_h, true, dquery, &decoder->query, n, run);
    else
        run->kern->add(back->cell.dold_h, dquery, (size_t)n * (size_t)d);
}

/* dx [n, D] of the embeddings from dy, the gradient of the first layer's output. */
static void first_backward(real *dx, struct decoder_back *back, struct weights *grad, const real *dy,
                           const struct rnn_decoder_acts *acts, const struct block_input *in,
                           const struct rnn_decoder *decoder, const struct run *run)
{
    const struct rnn_layer *layer = &decoder->layers[0];
    const struct rnn_layer_acts *first = &acts->layers[0];
    const struct rnn_pass *pass = &first->pass[0];
    struct layer_weights *g = &grad->decoder[0];
    struct rnn_grad cell = { g->rnn_hidden_w, g->rnn_hidden_b };
    real *dgates = take(in->n, layer->input.out, run);
    rnn_open_backward(&back->cell, pass, rnn_layer_dh(dy, first, in->keys, layer, run), layer->d, run);
    for (int t = acts->steps.n_steps - 1; t >= 0; t--) {
        rnn_step_backward(&back->cell, t, run);
        attend_step_backward(back, grad, acts, t, in, decoder, run);
        rnn_recall_backward(&back->cell, t, run);
    }
    linear_backward(NULL, false, grad->rnn_context_w, NULL, back->cell.dgates, acts->mix, &decoder->context,
                    in->n, run);
    if (decoder->has_query)
        linear_backward(NULL, false, grad->rnn_query_w, NULL, back->dquery, pass->old_h, &decoder->query,
                        in->n, run);
    rnn_close_backward(dgates, layer->input.out, &cell, &back->cell, run);
    rnn_layer_dx(dx, g, dgates, dy, first, layer, run);
}

/* hidden = dropout(tanh(top W^T + context C^T + b)): dtop and dcontext [n, D]; dhidden is used up. */
static void readout_backward(real *dtop, real *dcontext, struct weights *grad, real *dhidden,
                             const struct rnn_decoder_acts *acts, const struct block_input *in,
                             const struct rnn_decoder *decoder, const struct run *run)
{
    int n = in->n, d = decoder->attn.dim;
    profile_to(run->profile, PROFILE_FFN);
    dropout_apply(dhidden, in->keys, decoder->readout_place, n, d, decoder->readout_dropout, run);
    run->kern->gate_tanh_backward(dhidden, acts->readout, (size_t)n * (size_t)d);
    linear_backward(dtop, false, grad->rnn_readout_state_w, grad->rnn_readout_b, dhidden, acts->top,
                    &decoder->readout_state, n, run);
    linear_backward(dcontext, false, grad->rnn_readout_context_w, NULL, dhidden, acts->context,
                    &decoder->readout_context, n, run);
}

void rnn_decoder_backward(real *dx, real *dmemory, struct weights *grad, real *dhidden,
                          const struct rnn_decoder_acts *acts, const struct block_input *in, int n_source,
                          const struct rnn_decoder *decoder, const struct run *run)
{
    int n = in->n, d = decoder->attn.dim;
    size_t mark = arena_mark(run->arena), source = sizeof(real) * (size_t)n_source * (size_t)d;
    struct decoder_back back = { .dmix = take(n, d, run), .dquery = take(n, d, run), .dmemory = dmemory };
    back.dkeys = decoder->has_key ? take(n_source, d, run) : dmemory;
    back.segments = ARENA_TAKE(run->arena, struct attn_segment, in->n_cross);
    memset(dmemory, 0, source);
    memset(back.dkeys, 0, source);
    real *dcontext = take(n, d, run), *dy = take(n, d, run);
    readout_backward(dy, dcontext, grad, dhidden, acts, in, decoder, run);
    rnn_gather(back.dmix, dcontext, d, d, &acts->steps, 0, acts->steps.n_steps);
    for (int l = decoder->n_layers - 1; l > 0; l--) {
        rnn_layer_backward(dx, &grad->decoder[l], dy, &acts->layers[l], in->keys, &decoder->layers[l], run);
        memcpy(dy, dx, sizeof(real) * (size_t)n * (size_t)d);
    }
    first_backward(dx, &back, grad, dy, acts, in, decoder, run);
    /* keys = memory W^T + b */
    if (decoder->has_key)
        linear_backward(dmemory, true, grad->rnn_key_w, grad->rnn_key_b, back.dkeys, acts->memory,
                        &decoder->key, n_source, run);
    arena_reset(run->arena, mark);
}
