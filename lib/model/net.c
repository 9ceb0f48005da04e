/*
 * net.c: layers out of named tensors. Query, key and value lie side by side in a block of parameters
 * (params.def), so one linear spans the three; the same for key and value of cross-attention.
 */
#include "model/net.h"

#include <math.h>

static struct linear linear_of(int out, int in, const real *w, const real *b)
{
    struct linear l = { .out = out, .in = in, .w = w, .b = b };
    return l;
}

static struct norm norm_of(const struct config *c, const real *gamma, const real *beta)
{
    struct norm n = { .d = c->d_model, .eps = (real)c->norm_epsilon, .gamma = gamma, .beta = beta };
    return n;
}

static struct attn attn_of(const struct config *c, const real *score, enum tfm_part part, int layer,
                           int place)
{
    int dim = c->d_model / c->heads;
    bool is_scaled = c->attention_scale == TFM_SCALE_SQRT && score == NULL;
    struct attn a = { .heads = c->heads,
                      .dim = dim,
                      .share = c->heads / config_kv_heads(c),
                      .scale = is_scaled ? (real)(1 / sqrt((double)dim)) : 1,
                      .score = score,
                      .dropout = (real)c->attention_dropout,
                      .place = place,
                      .part = part,
                      .prefix = part == TFM_ENCODER ? "encoder.layers" : "decoder.layers",
                      .layer = layer,
                      .name = part == TFM_CROSS ? "encoder_attn" : "self_attn" };
    return a;
}

static struct position position_of(const struct config *c, const real *table, bool is_causal)
{
    struct position p = { .kind = c->positions,
                          .d = c->d_model,
                          .heads = c->heads,
                          .dim = c->d_model / c->heads,
                          .is_causal = is_causal,
                          .table = table,
                          .length = c->max_positions };
    return p;
}

static void block_bind(struct block *block, const struct config *c, const struct layer_weights *w,
                       bool is_decoder, int layer)
{
    int d = c->d_model, f = c->ffn_dim, kv = d / c->heads * config_kv_heads(c);
    enum tfm_part part = is_decoder ? TFM_DECODER : TFM_ENCODER;
    const char *prefix = is_decoder ? "decoder.layers" : "encoder.layers";
    int place = BLOCK_PLACES * (layer + 1); /* the first BLOCK_PLACES are the embeddings' */
    *block = (struct block){
        .pre_norm = c->pre_norm,
        .has_cross = is_decoder && c->architecture != CONFIG_DECODER_ONLY,
        .d = d,
        .kv = kv,
        .dropout = (real)c->dropout,
        .layer_drop = is_decoder ? c->decoder_layerdrop : c->encoder_layerdrop,
        .place = place,
        .self_norm = norm_of(c, w->self_norm_w, w->self_norm_b),
        .ffn_norm = norm_of(c, w->ffn_norm_w, w->ffn_norm_b),
        .self_qkv = linear_of(d + 2 * kv, d, w->self_q_w, w->self_q_b),
        .self_out = linear_of(d, d, w->self_out_w, w->self_out_b),
        .self = attn_of(c, w->self_score, part, layer, place + BLOCK_PLACE_SELF_WEIGHTS),
        .ffn = { .fc1 = linear_of(activation_width(c->activation) * f, d, w->fc1_w, w->fc1_b),
                 .fc2 = linear_of(d, f, w->fc2_w, w->fc2_b),
                 .activation = activation_of(c->activation),
                 .dropout = (real)c->activation_dropout,
                 .place = place + BLOCK_PLACE_HIDDEN,
                 .prefix = prefix,
                 .layer = layer },
    };
    block->self.window = c->attention_window;
    if (!block->has_cross)
        return;
    block->has_ssru = c->decoder_cell == TFM_CELL_SSRU;
    block->ssru = (struct ssru){ .forget = linear_of(d, d, w->ssru_forget_w, w->ssru_forget_b),
                                 .input = linear_of(d, d, w->ssru_input_w, NULL),
                                 .prefix = prefix,
                                 .layer = layer };
    block->cross_norm = norm_of(c, w->cross_norm_w, w->cross_norm_b);
    block->cross_q = linear_of(d, d, w->cross_q_w, w->cross_q_b);
    block->cross_kv = linear_of(2 * kv, d, w->cross_k_w, w->cross_k_b);
    block->cross_out = linear_of(d, d, w->cross_out_w, w->cross_out_b);
    block->cross = attn_of(c, w->cross_score, TFM_CROSS, layer, place + BLOCK_PLACE_CROSS_WEIGHTS);
}

void net_bind(struct net *net, const struct config *c, const struct weights *w)
{
    const real *source = c->tie == TFM_TIE_ALL ? w->shared : w->encoder_embed;
    const real *target = c->tie == TFM_TIE_ALL ? w->shared : w->decoder_embed;
    *net = (struct net){
        .config = c,
        .source_embed = linear_of(c->source_vocab_size, c->d_model, source, NULL),
        .target_embed = linear_of(c->vocab_size, c->d_model, target, NULL),
        .unembed = linear_of(c->vocab_size, c->d_model, c->tie == TFM_TIE_NONE ? w->lm_head : target,
                             w->logits_bias),
        .embed_scale = c->scale_embedding ? (real)sqrt((double)c->d_model) : 1,
        .source_position = position_of(c, w->encoder_positions, false),
        .target_position = position_of(c, w->decoder_positions, true),
        .source_dropout = (real)c->dropout,
        .target_dropout = (real)c->dropout,
        .encoder_norm = norm_of(c, w->encoder_norm_w, w->encoder_norm_b),
        .decoder_norm = norm_of(c, w->decoder_norm_w, w->decoder_norm_b),
    };
    net->is_joint = c->architecture == CONFIG_DECODER_ONLY;
    if (net->is_joint) { /* the decoder does both, for all rows */
        net->source_position.kind = TFM_POSITIONS_NONE;
        net->source_dropout = 0;
    }
    net->is_rnn = c->arch == TFM_ARCH_RNN;
    if (net->is_rnn) {
        rnn_encoder_bind(&net->rnn_encoder, c, w);
        rnn_decoder_bind(&net->rnn_decoder, c, w);
        return;
    }
    for (int l = 0; l < c->encoder_layers; l++)
        block_bind(&net->encoder[l], c, &w->encoder[l], false, l);
    for (int l = 0; l < c->decoder_layers; l++)
        block_bind(&net->decoder[l], c, &w->decoder[l], true, l);
}

static void block_each(struct block *b, linear_visit *visit, void *arg)
{
    visit(b->has_ssru ? &b->ssru.forget : &b->self_qkv, arg);
    visit(b->has_ssru ? &b->ssru.input : &b->self_out, arg);
    visit(&b->ffn.fc1, arg);
    visit(&b->ffn.fc2, arg);
    if (b->has_cross) {
        visit(&b->cross_q, arg);
        visit(&b->cross_kv, arg);
        visit(&b->cross_out, arg);
    }
}

void net_each(struct net *net, linear_visit *visit, void *arg)
{
    visit(&net->unembed, arg);
    if (net->config->tie == TFM_TIE_NONE && net->config->decoder_layers > 0)
        visit(&net->target_embed, arg);
    if (net->config->tie != TFM_TIE_ALL)
        visit(&net->source_embed, arg);
    if (net->is_rnn) {
        rnn_encoder_each(&net->rnn_encoder, visit, arg);
        rnn_decoder_each(&net->rnn_decoder, visit, arg);
        return;
    }
    for (int l = 0; l < net->config->encoder_layers; l++)
        block_each(&net->encoder[l], visit, arg);
    for (int l = 0; l < net->config->decoder_layers; l++)
        block_each(&net->decoder[l], visit, arg);
}

static void add_size(struct linear *l, void *arg)
{
    *(size_t *)arg += linear_packed_size(l->out, l->in);
}

static void pack_one(struct linear *l, void *arg)
{
    real **next = arg;
    linear_pack(*next, l->w, l->out, l->in);
    l->packed = *next;
    *next += linear_packed_size(l->out, l->in);
}

size_t net_packed_size(const struct net *net)
{
    struct net copy = *net; /* net_each hands out what it may change */
    size_t size = 0;
    net_each(&copy, add_size, &size);
    return size;
}

static void share(struct linear *l, const struct linear *with)
{
    l->w = with->w;
    l->packed = with->packed;
    l->packed8 = with->packed8;
    l->scales = with->scales;
}

void net_share(struct net *net)
{
    if (net->config->tie != TFM_TIE_NONE)
        share(&net->target_embed, &net->unembed);
    if (net->config->tie == TFM_TIE_ALL)
        share(&net->source_embed, &net->unembed);
}

void net_pack(struct net *net, real *packed)
{
    net_each(net, pack_one, &packed);
    net_share(net);
}
