/*
 * config.h: the architecture and conventions of a model, read once from config.json (tfm-model(5)). Field
 * names are those of Hugging Face's Marian configuration where one exists.
 */
#ifndef TFM_MODEL_CONFIG_H
#define TFM_MODEL_CONFIG_H

#include "base/json.h"
#include "num/kern.h"

#define CONFIG_FORMAT_VERSION 1
#define CONFIG_MAX_LAYERS     64
#define CONFIG_MAX_DIM        65536

struct config {
    int encoder_layers, decoder_layers;
    int d_model;                                    /* D */
    int heads;                                      /* H, divides D */
    int ffn_dim;                                    /* F */
    enum kern_act activation;                       /* activation_function: "relu" */
    bool pre_norm;                                  /* normalize_before */
    int kv_heads;                                   /* num_key_value_heads, divides H; 0: H */
    enum tfm_attention_function attention_function; /* "dot" or "additive" */
    enum tfm_attention_scale attention_scale;       /* "sqrt" or "none" */
    int attention_window;                           /* pieces to each side that self-attention sees; 0: all */
    enum tfm_positions positions;                   /* positions */
    int max_positions;                 /* max_position_embeddings: rows of a table of learned positions */
    enum tfm_cell decoder_cell;        /* "attention" or "ssru" in place of the decoder's self-attention */
    double norm_epsilon;               /* layer_norm_eps */
    bool scale_embedding;              /* embeddings times sqrt(D) */
    int source_vocab_size, vocab_size; /* source side; target side */
    enum tfm_tie tie;                  /* tie_embeddings: "all", "target" or "none" */
    int eos_token_id, unk_token_id, decoder_start_token_id;
    double dropout, attention_dropout, activation_dropout; /* as trained */
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

/* The name of the first field in which two differ; NULL: in none. */
const char *config_difference(const struct config *a, const struct config *b);

/* Fills in "tiny", "small", "base" or "student", all but the vocabulary sizes (0). False when the name is
 * unknown. */
bool config_preset(struct config *config, const char *name);

#endif
