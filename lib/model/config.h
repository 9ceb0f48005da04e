/*
 * config.h: the architecture and conventions of a model, read once from config.json (tfm-model(5)). Field
 * names are those of Hugging Face's Marian configuration where one exists.
 */
#ifndef TFM_MODEL_CONFIG_H
#define TFM_MODEL_CONFIG_H

#include "base/json.h"
#include "tfm.h"

#define CONFIG_FORMAT_VERSION 1
#define CONFIG_MAX_LAYERS     64
#define CONFIG_MAX_DIM        65536

/* Which stacks there are. */
enum config_architecture { CONFIG_ENCODER_DECODER, CONFIG_DECODER_ONLY, CONFIG_ENCODER_ONLY };

/* What a decoder alone is for: a language model's source is empty. */
enum config_task {
    CONFIG_TRANSLATION,
    CONFIG_LANGUAGE_MODEL
};

struct config {
    enum config_architecture architecture; /* "encoder-decoder"; "decoder-only", which has no encoder layers and no
                                              cross-attention; or "encoder-only", which has no decoder layers */
    enum config_task task;                 /* "translation" or "language-model" */
    int encoder_layers, decoder_layers;
    int d_model;                                    /* D */
    int heads;                                      /* H, divides D */
    int kv_heads;                                   /* num_key_value_heads, divides H; 0: H */
    enum tfm_attention_function attention_function; /* "dot" or "additive" */
    enum tfm_attention_scale attention_scale;       /* "sqrt" or "none" */
    int attention_window;                           /* pieces to each side that self-attention sees; 0: all */
    int ffn_dim;                                    /* F */
    enum tfm_activation activation;                 /* activation_function */
    enum tfm_norm norm;                             /* normalization: "layer" or "rms" */
    bool pre_norm;                                  /* normalize_before */
    enum tfm_positions positions;                   /* positions */
    int max_positions;          /* max_position_embeddings: rows of a table of learned positions */
    enum tfm_cell decoder_cell; /* "attention" or "ssru" in place of the decoder's self-attention */
    enum tfm_arch arch;         /* layer_type: "transformer" or "rnn", which has one head, no norms, no
                                          SSRU and nothing of ffn_dim */
    enum tfm_rnn_cell rnn_cell; /* "gru" or "lstm" */
    enum tfm_rnn_attention rnn_attention; /* "additive", "dot" or "general" */
    double norm_epsilon;                  /* layer_norm_eps */
    bool scale_embedding;                 /* embeddings times sqrt(D) */
    int source_vocab_size, vocab_size;    /* source side; target side */
    enum tfm_tie tie;                     /* tie_embeddings: "all", "target" or "none" */
    int eos_token_id, unk_token_id, decoder_start_token_id;
    int mask_token_id; /* of an encoder alone: what stands for a piece that is to be predicted; else 0 */
    double dropout, attention_dropout, activation_dropout; /* as trained */
    double encoder_layerdrop, decoder_layerdrop;           /* as trained */
    enum tfm_init init;                                    /* initialization, as trained */
};

static inline int config_kv_heads(const struct config *c)
{
    return c->kv_heads > 0 ? c->kv_heads : c->heads;
}

/* Checks the limits of each field and what no single field can tell: heads divide d_model, ids lie inside the
 * vocabulary, tying is possible. `path` names the file, or whatever the config was made from, in messages. */
enum tfm_status config_check(const struct config *config, const char *path, struct tfm_error *err);
enum tfm_status config_parse(struct config *config, const json_t *root, const char *path,
                             struct tfm_error *err);

/* `training` (may be NULL) is kept as the field "training": the provenance, an object free in form. */
enum tfm_status config_write(const struct config *config, const json_t *training, const char *path,
                             struct tfm_error *err);

/* What a field that is one of some names has: config_choice(c, "positions") is "rope". */
const char *config_choice(const struct config *config, const char *name);

/* What a layer keeps inside for a row, at its widest place: in the feed-forward layer what comes before the
 * activation, with a gate twice as wide, and behind it; in a recurrent cell the gates as they come and go. */
size_t config_inner_size(const struct config *config);

/* Layers whose attention to the source makes an alignment: of cross-attention, or of a decoder alone. */
int config_alignment_layers(const struct config *config);

/* Layers of a part that have attention; with recurrent units or networks some have none. */
int config_attention_layers(const struct config *config, enum tfm_part part);

const char *config_part_name(enum tfm_part part); /* "encoder", "decoder" or "cross" */

/* The name of the first field in which two differ; NULL: in none. */
const char *config_difference(const struct config *a, const struct config *b);
/* The same among fields that tell how layers use their tensors, whatever the shapes; none where a Transformer
 * and a recurrent network are compared, which have no layers in common. */
const char *config_other_use(const struct config *a, const struct config *b);

/* Fills in "tiny", "small", "base" or "student", all but the vocabulary sizes (0). False when the name is
 * unknown. */
bool config_preset(struct config *config, const char *name);

#endif
