/*
 * net.h: the layers of a model, ready to run: what params.def names, put together into linears, norms and
 * blocks.
 */
#ifndef TFM_MODEL_NET_H
#define TFM_MODEL_NET_H

#include "model/block.h"
#include "model/rnn_decoder.h"
#include "model/rnn_encoder.h"
#include "nn/embed.h"
#include "nn/position.h"

struct net {
    const struct config *config;
    struct linear source_embed, target_embed; /* [Vs, D], [V, D] */
    struct linear unembed;                    /* [V, D] and final_logits_bias */
    real embed_scale;
    struct position source_position, target_position;
    real source_dropout, target_dropout;    /* of embeddings */
    struct norm encoder_norm, decoder_norm; /* pre-norm only */
    bool is_joint; /* a decoder alone: what it embeds of the source comes before the target */
    bool is_rnn;   /* then these are its layers, else the blocks */
    struct rnn_encoder rnn_encoder;
    struct rnn_decoder rnn_decoder;
    struct block encoder[CONFIG_MAX_LAYERS], decoder[CONFIG_MAX_LAYERS];
};

/* Points the layers at weights. The net refers to both and copies nothing. Dropout comes from the config and
 * takes part only when a run says so. */
void net_bind(struct net *net, const struct config *config, const struct weights *weights);

/* Packs every matrix for translation into `packed` (net_packed_size reals) and points the layers there;
 * vectors stay where they are. The unpacked matrices are not used any more. */
size_t net_packed_size(const struct net *net);
void net_pack(struct net *net, real *packed);

/* Visits every linear of the net; of those that share a matrix only the unembedding. */
void net_each(struct net *net, linear_visit *visit, void *arg);
/* Gives the other linears that share the unembedding's matrix its packed form, when that was packed. */
void net_share(struct net *net);

#endif
