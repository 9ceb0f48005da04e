/*
 * block.c: one layer of encoder or decoder. Each sublayer f (self-attention or the recurrent unit in its place,
 * cross-attention, feed-forward) stands in
 *     post-norm:  y = norm(x + dropout(f(x)))        pre-norm:  y = x + dropout(f(norm(x)))
 * enter and leave are the two halves of that frame, before and behind f; nothing else here knows the
 * difference.
 * On the sentence's way: encoder_forward and decoder_step call block_forward, which calls attn_forward and
 * ffn_forward.
 */
#include "model/block.h"

#include <string.h>

#include "base/rng.h"

struct frame { /* what enter and leave share for one sublayer */
    const struct block *block;
    const struct norm *norm;
    int place;
    const uint64_t *keys;
    int n;
    const struct run *run;
};

static real *take(int n, int d, const struct run *run)
{
    return ARENA_TAKE(run->arena, real, (size_t)n * d);
}

/* What f sees. */
static const real *enter(struct sublayer_acts *acts, const real *x, const struct frame *f)
{
    profile_to(f->run->profile, PROFILE_NORM);
    acts->f_in = x;
    if (!f->block->pre_norm)
        return x;
    real *y = take(f->n, f->norm->d, f->run);
    acts->norm_in = x;
    acts->stats = take(f->n, 2, f->run);
    norm_forward(y, acts->stats, x, f->norm, f->n, f->run);
    acts->f_in = y;
    return y;
}

/* What the next sublayer sees: y [n, D]; f_out is used up. */
static void leave(real *y, struct sublayer_acts *acts, const real *x, real *f_out, const struct frame *f)
{
    size_t size = (size_t)f->n * f->norm->d;
    profile_to(f->run->profile, PROFILE_NORM);
    dropout_apply(f_out, f->keys, f->place, f->n, f->norm->d, f->block->dropout, f->run);
    f->run->kern->add(f_out, x, size);
    if (f->block->pre_norm) {
        memcpy(y, f_out, sizeof(real) * size);
        return;
    }
    acts->norm_in = f_out;
    acts->stats = take(f->n, 2, f->run);
    norm_forward(y, acts->stats, f_out, f->norm, f->n, f->run);
}

/* dx gets the residual's share of dy, df the gradient of f's output. */
static void leave_backward(real *dx, real *df, real *dgamma, real *dbeta, const real *dy,
                           const struct sublayer_acts *acts, const struct frame *f)
{
    size_t size = (size_t)f->n * f->norm->d;
    profile_to(f->run->profile, PROFILE_NORM);
    if (f->block->pre_norm)
        memcpy(dx, dy, sizeof(real) * size);
    else
        norm_backward(dx, dgamma, dbeta, dy, acts->norm_in, acts->stats, f->norm, f->n, f->run);
    memcpy(df, dx, sizeof(real) * size);
    dropout_apply(df, f->keys, f->place, f->n, f->norm->d, f->block->dropout, f->run);
}

/* dx += the gradient through f's input. df_in is used up. */
static void enter_backward(real *dx, real *df_in, real *dgamma, real *dbeta, const struct sublayer_acts *acts,
                           const struct frame *f)
{
    size_t size = (size_t)f->n * f->norm->d;
    profile_to(f->run->profile, PROFILE_NORM);
    if (f->block->pre_norm)
        norm_backward(df_in, dgamma, dbeta, df_in, acts->norm_in, acts->stats, f->norm, f->n, f->run);
    f->run->kern->add(dx, df_in, size);
}

static struct frame frame_of(const struct block *block, const struct norm *norm, enum block_place place,
                             const struct block_input *in, const struct run *run)
{
    struct frame f = { block, norm, block->place + (int)place, in->keys, in->n, run };
    return f;
}

/* Whether the running update leaves the layer out. The key has nothing of sentences: all lanes choose alike.
 * Its first number is 2 or 3 where those of dropout have the side, 0 or 1. */
static bool is_left_out(const struct block *block, const struct run *run)
{
    if (!run->dropout || block->layer_drop <= 0)
        return false;
    uint64_t key = rng_key(run->seed, block->has_cross ? 3 : 2, (uint64_t)block->place, 0);
    return rng_unit(key) < block->layer_drop;
}

/* ---- the first sublayer: self-attention or SSRU ---- */

size_t block_cache_size(const struct block *block, size_t capacity, size_t width)
{
    return 2 * (block->has_ssru ? (size_t)block->d * width : (size_t)block->kv * capacity);
}

void block_cache_init(struct block_cache *cache, const struct block *block, int capacity, int width,
                      const struct run *run)
{
    real *rows = ARENA_TAKE(run->arena, real, block_cache_size(block, (size_t)capacity, (size_t)width));
    *cache = (struct block_cache){ 0 };
    if (block->has_ssru) {
        cache->states = rows;
        cache->spare = rows + (size_t)width * block->d;
    } else {
        cache->kv = rows;
    }
}

/* Self-attention as this pass has it. */
static struct attn placed(const struct block *block, const struct block_input *in)
{
    struct attn self = block->self;
    self.bias = in->place.bias;
    self.dbias = in->place.dbias;
    self.bias_reach = in->place.longest - 1;
    return self;
}

static void attend(real *out, struct block_acts *acts, const real *h, const struct block_input *in,
                   struct block_cache *cache, const struct block *block, const struct run *run)
{
    int n = in->n, d = block->d, kv = block->kv, ldq = d + 2 * kv;
    real *qkv = take(n, ldq, run), *mix = take(n, d, run), *weights = NULL;
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(qkv, h, &block->self_qkv, n, run);
    const char *prefix = block->self.prefix;
    tap_show(run->tap, prefix, block->self.layer, "self_attn.query", -1, qkv, n, d, ldq);
    tap_show(run->tap, prefix, block->self.layer, "self_attn.key", -1, qkv + d, n, kv, ldq);
    tap_show(run->tap, prefix, block->self.layer, "self_attn.value", -1, qkv + d + kv, n, kv, ldq);
    position_turn(qkv, ldq, (d + kv) / block->self.dim, n, false, &in->place); /* query and key */
    const real *k = qkv + d, *v = k + kv;
    int ld = ldq;
    if (cache) {
        for (int i = 0; i < n; i++)
            memcpy(cache->kv + (size_t)(cache->n_rows + i) * 2 * kv, k + (size_t)i * ld,
                   sizeof(real) * 2 * (size_t)kv);
        cache->n_rows += n;
        k = cache->kv;
        v = cache->kv + kv;
        ld = 2 * kv;
    }
    if (run->keep)
        weights = ARENA_TAKE(run->arena, real, attn_weights_size(in->self, in->n_self, block->self.heads));
    else if (in->cross_layer == block->self.layer)
        weights = in->self_weights;
    profile_to(run->profile, PROFILE_ATTEND);
    struct attn self = placed(block, in);
    attn_forward(mix, weights, qkv, ldq, k, ld, v, ld, NULL, in->self, in->n_self, &self, in->keys, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(out, mix, &block->self_out, n, run);
    tap_show(run->tap, prefix, block->self.layer, "self_attn.out", -1, out, n, d, d);
    acts->qkv = qkv;
    acts->self_mix = mix;
    acts->self_weights = weights;
}

/* A hypothesis takes its state from the row of the last step that it continues, so that a beam's choices need
 * no copies. */
static void recur(real *out, struct block_acts *acts, const real *h, const struct block_input *in,
                  struct block_cache *cache, const struct block *block, const struct run *run)
{
    int *before = ARENA_TAKE(run->arena, int, in->n);
    ssru_chain(before, in->self, in->n_self, cache ? cache->first : 0);
    real *states = cache ? cache->spare : take(in->n, block->d, run);
    ssru_forward(out, states, &acts->ssru, h, cache ? cache->states : states, before, &block->ssru, in->n,
                 run);
    if (!cache)
        return;
    cache->spare = cache->states;
    cache->states = states;
    cache->first = cache->n_rows;
    cache->n_rows += in->n;
}

static void self_forward(real *y, struct block_acts *acts, const real *x, const struct block_input *in,
                         struct block_cache *cache, const struct block *block, const struct run *run)
{
    struct frame f = frame_of(block, &block->self_norm, BLOCK_PLACE_SELF, in, run);
    const real *h = enter(&acts->self, x, &f);
    real *out = take(in->n, block->d, run);
    if (block->has_ssru)
        recur(out, acts, h, in, cache, block, run);
    else
        attend(out, acts, h, in, cache, block, run);
    leave(y, &acts->self, x, out, &f);
}

static void cross_forward(real *y, struct block_acts *acts, const real *x, const struct block_input *in,
                          const real *cross_kv, const real *packed, const struct block *block,
                          const struct run *run)
{
    int n = in->n, d = block->d, kv = block->kv;
    struct frame f = frame_of(block, &block->cross_norm, BLOCK_PLACE_CROSS, in, run);
    const real *h = enter(&acts->cross, x, &f);
    real *q = take(n, d, run), *mix = take(n, d, run), *out = take(n, d, run), *weights = NULL;
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(q, h, &block->cross_q, n, run);
    tap_show(run->tap, block->cross.prefix, block->cross.layer, "encoder_attn.query", -1, q, n, d, d);
    if (run->keep)
        weights = ARENA_TAKE(run->arena, real, attn_weights_size(in->cross, in->n_cross, block->cross.heads));
    else if (in->cross_layer == block->cross.layer)
        weights = in->cross_weights;
    profile_to(run->profile, PROFILE_ATTEND);
    attn_forward(mix, weights, q, d, cross_kv, 2 * kv, cross_kv ? cross_kv + kv : NULL, 2 * kv, packed,
                 in->cross, in->n_cross, &block->cross, in->keys, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_forward(out, mix, &block->cross_out, n, run);
    tap_show(run->tap, block->cross.prefix, block->cross.layer, "encoder_attn.out", -1, out, n, d, d);
    acts->cross_q = q;
    acts->cross_mix = mix;
    acts->cross_weights = weights;
    acts->cross_kv = cross_kv;
    leave(y, &acts->cross, x, out, &f);
}

void block_forward(real *y, struct block_acts *acts, const real *x, const struct block_input *in,
                   const real *cross_kv, struct block_cache *cache, const struct block *block,
                   const struct run *run)
{
    struct block_acts unkept;
    size_t mark = arena_mark(run->arena);
    int n = in->n, d = block->d;
    if (is_left_out(block, run)) {
        memcpy(y, x, sizeof(real) * (size_t)n * (size_t)d);
        return;
    }
    if (!run->keep)
        acts = &unkept;
    real *after_self = take(n, d, run);
    self_forward(after_self, acts, x, in, cache, block, run);
    const real *ffn_x = after_self;
    if (block->has_cross) {
        real *after_cross = take(n, d, run);
        cross_forward(after_cross, acts, after_self, in, cross_kv, cache ? cache->cross : NULL, block, run);
        ffn_x = after_cross;
    }
    struct frame f = frame_of(block, &block->ffn_norm, BLOCK_PLACE_FFN, in, run);
    const real *h = enter(&acts->ffn, ffn_x, &f);
    real *out = take(n, d, run);
    profile_to(run->profile, PROFILE_FFN);
    ffn_forward(out, &acts->ffn_hidden, h, &block->ffn, in->keys, n, run);
    tap_show(run->tap, block->ffn.prefix, block->ffn.layer, "ffn.out", -1, out, n, d, d);
    leave(y, &acts->ffn, ffn_x, out, &f);
    tap_show(run->tap, block->ffn.prefix, block->ffn.layer, "out", -1, y, n, d, d);
    if (!run->keep)
        arena_reset(run->arena, mark);
}

/* df [n, D]: of the output, then of the input. */
static void attend_backward(real *df, struct layer_weights *grad, const struct block_acts *acts,
                            const struct block_input *in, const struct block *block, const struct run *run)
{
    int n = in->n, d = block->d, kv = block->kv, ldq = d + 2 * kv;
    real *dmix = take(n, d, run), *dqkv = take(n, ldq, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward(dmix, false, grad->self_out_w, grad->self_out_b, df, acts->self_mix, &block->self_out, n,
                    run);
    memset(dqkv, 0, sizeof(real) * (size_t)n * (size_t)ldq);
    const real *qkv = acts->qkv;
    struct attn self = placed(block, in);
    self.dscore = grad->self_score;
    profile_to(run->profile, PROFILE_ATTEND);
    attn_backward(dqkv, ldq, dqkv + d, ldq, dqkv + d + kv, ldq, dmix, acts->self_weights, qkv, ldq, qkv + d,
                  ldq, qkv + d + kv, ldq, in->self, in->n_self, &self, in->keys, run);
    position_turn(dqkv, ldq, (d + kv) / self.dim, n, true, &in->place);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward(df, false, grad->self_q_w, grad->self_q_b, dqkv, acts->self.f_in, &block->self_qkv, n,
                    run);
}

static void self_backward(real *dx, struct layer_weights *grad, const real *dy, const struct block_acts *acts,
                          const struct block_input *in, const struct block *block, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    struct frame f = frame_of(block, &block->self_norm, BLOCK_PLACE_SELF, in, run);
    struct ssru_grad ssru_grad = { grad->ssru_forget_w, grad->ssru_forget_b, grad->ssru_input_w };
    real *df = take(in->n, block->d, run);
    leave_backward(dx, df, grad->self_norm_w, grad->self_norm_b, dy, &acts->self, &f);
    if (block->has_ssru)
        ssru_backward(df, &ssru_grad, df, acts->self.f_in, &acts->ssru, &block->ssru, in->n, run);
    else
        attend_backward(df, grad, acts, in, block, run);
    enter_backward(dx, df, grad->self_norm_w, grad->self_norm_b, &acts->self, &f);
    arena_reset(run->arena, mark);
}

static void cross_backward(real *dx, real *dcross_kv, struct layer_weights *grad, const real *dy,
                           const struct block_acts *acts, const struct block_input *in,
                           const struct block *block, const struct run *run)
{
    int n = in->n, d = block->d, kv = block->kv;
    size_t mark = arena_mark(run->arena);
    struct attn cross = block->cross;
    cross.dscore = grad->cross_score;
    struct frame f = frame_of(block, &block->cross_norm, BLOCK_PLACE_CROSS, in, run);
    real *df = take(n, d, run), *dmix = take(n, d, run), *dq = take(n, d, run);
    leave_backward(dx, df, grad->cross_norm_w, grad->cross_norm_b, dy, &acts->cross, &f);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward(dmix, false, grad->cross_out_w, grad->cross_out_b, df, acts->cross_mix, &block->cross_out,
                    n, run);
    profile_to(run->profile, PROFILE_ATTEND);
    attn_backward(dq, d, dcross_kv, 2 * kv, dcross_kv + kv, 2 * kv, dmix, acts->cross_weights, acts->cross_q,
                  d, acts->cross_kv, 2 * kv, acts->cross_kv + kv, 2 * kv, in->cross, in->n_cross, &cross,
                  in->keys, run);
    profile_to(run->profile, PROFILE_PROJECT);
    linear_backward(df, false, grad->cross_q_w, grad->cross_q_b, dq, acts->cross.f_in, &block->cross_q, n,
                    run);
    enter_backward(dx, df, grad->cross_norm_w, grad->cross_norm_b, &acts->cross, &f);
    arena_reset(run->arena, mark);
}

static void ffn_part_backward(real *dx, struct layer_weights *grad, const real *dy,
                              const struct block_acts *acts, const struct block_input *in,
                              const struct block *block, const struct run *run)
{
    int n = in->n, d = block->d;
    size_t mark = arena_mark(run->arena);
    struct frame f = frame_of(block, &block->ffn_norm, BLOCK_PLACE_FFN, in, run);
    struct ffn_grad ffn_grad = { grad->fc1_w, grad->fc1_b, grad->fc2_w, grad->fc2_b };
    real *df = take(n, d, run), *dh = take(n, d, run);
    leave_backward(dx, df, grad->ffn_norm_w, grad->ffn_norm_b, dy, &acts->ffn, &f);
    profile_to(run->profile, PROFILE_FFN);
    ffn_backward(dh, &ffn_grad, df, acts->ffn.f_in, &acts->ffn_hidden, &block->ffn, in->keys, n, run);
    enter_backward(dx, dh, grad->ffn_norm_w, grad->ffn_norm_b, &acts->ffn, &f);
    arena_reset(run->arena, mark);
}

void block_backward(real *dx, real *dcross_kv, struct layer_weights *grad, const real *dy,
                    const struct block_acts *acts, const struct block_input *in, const struct block *block,
                    const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    if (is_left_out(block, run)) {
        memcpy(dx, dy, sizeof(real) * (size_t)in->n * (size_t)block->d);
        return;
    }
    real *d1 = take(in->n, block->d, run), *d2 = take(in->n, block->d, run);
    ffn_part_backward(d1, grad, dy, acts, in, block, run);
    if (block->has_cross)
        cross_backward(d2, dcross_kv, grad, d1, acts, in, block, run);
    self_backward(dx, grad, block->has_cross ? d2 : d1, acts, in, block, run);
    arena_reset(run->arena, mark);
}
