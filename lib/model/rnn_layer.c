/*
 * rnn_layer.c: recurrent cells as a layer. The inputs of all rows, and of both ways, meet the matrices in
 * one product gates [n, gates * D] = x W^T + b; then each way goes through its steps (nn/rnn.h); h, dropout
 * and the residual connection make the output.
 * On the sentence's way: encoder_forward and decoder_step go through here with --arch rnn.
 */
#include "model/rnn_layer.h"

#include <assert.h>
#include <string.h>

void rnn_layer_bind(struct rnn_layer *layer, const struct config *c, const struct layer_weights *w,
                    int n_ways, int number)
{
    const struct rnn_formula *formula = c->rnn_cell == TFM_RNN_LSTM ? &lstm_formula : &gru_formula;
    int d = c->d_model, part = d / n_ways, g = formula->n_gates;
    *layer = (struct rnn_layer){
        .d = d,
        .n_ways = n_ways,
        .is_residual = number > 0,
        .dropout = (real)c->dropout,
        .place = BLOCK_PLACES * (number + 1) + BLOCK_PLACE_SELF,
        .input = { .out = g * d, .in = d, .w = w->rnn_input_w, .b = w->rnn_input_b },
        .cell[0] = { formula, part, { g * part, part, .w = w->rnn_hidden_w, .b = w->rnn_hidden_b } },
        .cell[1] = { formula,
                     part,
                     { g * part, part, .w = w->rnn_reverse_hidden_w, .b = w->rnn_reverse_hidden_b } },
        .prefix = n_ways == 2 ? "encoder.layers" : "decoder.layers",
        .layer = number,
    };
}

void rnn_layer_each(struct rnn_layer *layer, linear_visit *visit, void *arg)
{
    visit(&layer->input, arg);
    for (int way = 0; way < layer->n_ways; way++)
        visit(&layer->cell[way].hidden, arg);
}

static real *take(int n, int d, const struct run *run)
{
    return ARENA_TAKE(run->arena, real, (size_t)n * d);
}

/* ---- what a decoding step keeps ---- */

size_t rnn_layer_cache_size(const struct rnn_layer *layer, size_t width)
{
    return 2 * width * (size_t)layer->d * (layer->cell[0].formula->has_memory ? 2 : 1);
}

void rnn_layer_cache_init(struct block_cache *cache, const struct rnn_layer *layer, int width,
                          const struct run *run)
{
    size_t size = rnn_layer_cache_size(layer, (size_t)width);
    *cache = (struct block_cache){ .states = ARENA_TAKE(run->arena, real, size) };
    cache->spare = cache->states + size / 2;
}

/* Where a step's h and c come from, and where the new ones go: each a part of the cache, c behind h. */
static void bind_cache(struct rnn_pass *pass, const struct block_cache *cache, int n)
{
    size_t d = (size_t)pass->cell->d, before = (size_t)(cache->n_rows - cache->first);
    pass->past_h = cache->states;
    pass->h = cache->spare;
    pass->ld_h = (int)d;
    if (pass->c) {
        pass->past_c = cache->states + before * d;
        pass->c = cache->spare + (size_t)n * d;
    }
}

/* ---- forward ---- */

void rnn_layer_open(struct rnn_layer_acts *acts, real *y, const real *x, const struct rnn_steps *steps,
                    struct block_cache *cache, const struct rnn_layer *layer, const struct run *run)
{
    int n = steps->n, g = layer->input.out, part = layer->cell[0].d;
    assert(!cache || layer->n_ways == 1);
    *acts = (struct rnn_layer_acts){ .x = x, .gates = take(n, g, run) };
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(acts->gates, x, &layer->input, n, run);
    for (int way = 0; way < layer->n_ways; way++)
        rnn_open(&acts->pass[way], &layer->cell[way], &steps[way],
                 acts->gates + way * layer->cell[way].hidden.out, g, y + way * part, layer->d, run);
    if (cache)
        bind_cache(&acts->pass[0], cache, n);
}

void rnn_layer_close(real *y, struct rnn_layer_acts *acts, const uint64_t *keys, struct block_cache *cache,
                     const struct rnn_layer *layer, const struct run *run)
{
    int n = acts->pass[0].steps->n, d = layer->d, g = layer->input.out;
    if (cache) { /* the states stay there as they are */
        memcpy(y, cache->spare, sizeof(real) * (size_t)n * (size_t)d);
        real *states = cache->spare;
        cache->spare = cache->states;
        cache->states = states;
        cache->first = cache->n_rows;
        cache->n_rows += n;
    }
    tap_show(run->tap, layer->prefix, layer->layer, "rnn.gates", -1, acts->gates, n, g, g);
    tap_show(run->tap, layer->prefix, layer->layer, "rnn.state", -1, y, n, d, d);
    dropout_apply(y, keys, layer->place, n, d, layer->dropout, run);
    if (layer->is_residual)
        run->kern->add(y, acts->x, (size_t)n * (size_t)d);
    tap_show(run->tap, layer->prefix, layer->layer, "out", -1, y, n, d, d);
}

void rnn_layer_forward(real *y, struct rnn_layer_acts *acts, const real *x, const struct rnn_steps *steps,
                       const uint64_t *keys, struct block_cache *cache, const struct rnn_layer *layer,
                       const struct run *run)
{
    struct rnn_layer_acts unkept;
    size_t mark = arena_mark(run->arena);
    if (!run->keep)
        acts = &unkept;
    rnn_layer_open(acts, y, x, steps, cache, layer, run);
    for (int way = 0; way < layer->n_ways; way++)
        rnn_forward(&acts->pass[way], run);
    rnn_layer_close(y, acts, keys, cache, layer, run);
    if (!run->keep)
        arena_reset(run->arena, mark);
}

/* ---- backward ---- */

real *rnn_layer_dh(const real *dy, const struct rnn_layer_acts *acts, const uint64_t *keys,
                   const struct rnn_layer *layer, const struct run *run)
{
    int n = acts->pass[0].steps->n, d = layer->d;
    real *dh = take(n, d, run);
    memcpy(dh, dy, sizeof(real) * (size_t)n * (size_t)d);
    dropout_apply(dh, keys, layer->place, n, d, layer->dropout, run);
    return dh;
}

void rnn_layer_dx(real *dx, struct layer_weights *grad, const real *dgates, const real *dy,
                  const struct rnn_layer_acts *acts, const struct rnn_layer *layer, const struct run *run)
{
    int n = acts->pass[0].steps->n;
    /* gates = x W^T + b */
    linear_backward(dx, false, grad->rnn_input_w, grad->rnn_input_b, dgates, acts->x, &layer->input, n, run);
    if (layer->is_residual)
        run->kern->add(dx, dy, (size_t)n * (size_t)layer->d);
}

void rnn_layer_backward(real *dx, struct layer_weights *grad, const real *dy,
                        const struct rnn_layer_acts *acts, const uint64_t *keys,
                        const struct rnn_layer *layer, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    int g = layer->input.out;
    struct rnn_grad cells[2] = { { grad->rnn_hidden_w, grad->rnn_hidden_b },
                                 { grad->rnn_reverse_hidden_w, grad->rnn_reverse_hidden_b } };
    profile_to(run->profile, PROFILE_PROJECT);
    real *dh = rnn_layer_dh(dy, acts, keys, layer, run), *dgates = take(acts->pass[0].steps->n, g, run);
    for (int way = 0; way < layer->n_ways; way++)
        rnn_backward(dgates + way * layer->cell[way].hidden.out, g, &cells[way],
                     dh + way * layer->cell[way].d, layer->d, &acts->pass[way], run);
    rnn_layer_dx(dx, grad, dgates, dy, acts, layer, run);
    arena_reset(run->arena, mark);
}
