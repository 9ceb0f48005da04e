/*
 * tiny_model.h: a small model folder for tests: random weights, and a vocabulary trained on made-up text.
 * `eos_bias` is added to the logit of </s>: with 0 a random model almost never ends a sentence, with 5 it
 * soon does; `unk_bias` to that of the unknown piece.
 */
#ifndef TFM_TESTS_TINY_MODEL_H
#define TFM_TESTS_TINY_MODEL_H

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "model/model.h"

struct tiny_options {
    bool pre_norm;
    enum tfm_tie tie;
    enum tfm_cell cell;
    enum tfm_norm norm;
    enum tfm_activation activation;
    enum tfm_positions positions;
    int max_positions, heads, kv_heads, window;
    enum tfm_attention_function function;
    enum tfm_attention_scale scale;
    float eos_bias, unk_bias;
    uint64_t seed;
    int d_model; /* 0: 24 */
    bool is_decoder;  /* a decoder alone ... */
    bool is_language; /* ... as a language model */
    bool is_encoder; /* an encoder alone */
    bool has_mask;   /* in the vocabulary, where an encoder alone has one in any case */
    bool is_rnn; /* recurrent layers, with one head and without norms */
    enum tfm_rnn_cell rnn_cell;
    enum tfm_rnn_attention rnn_attention;
};

/* Appends a sentence of n words, each of one to three syllables. */
static inline void tiny_sentence(struct str *text, uint64_t key, int n)
{
    static const char *const syllables[] = { "ba", "do", "ki",  "le", "mur", "na",
                                             "po", "ri", "sta", "tü", "ver", "zo" };
    struct tfm_error err;
    for (int i = 0; i < n; i++) {
        if (i > 0)
            str_add(text, " ", 1, &err);
        uint64_t word = rng_below(rng_key(key, (uint64_t)i, 0, 0), 40); /* one of 40 words */
        for (uint64_t s = 0; s <= rng_below(rng_key(7, word, 0, 0), 3); s++) {
            const char *syllable = syllables[rng_below(rng_key(8, word, s, 0), 12)];
            str_add(text, syllable, strlen(syllable), &err);
        }
    }
    str_add(text, ".", 1, &err);
}

static inline enum tfm_status tiny_vocabulary(const char *path, const char *symbol, struct tfm_error *err)
{
    char text_path[700];
    snprintf(text_path, sizeof(text_path), "%s.txt", path);
    struct str text = { 0 };
    for (uint64_t i = 0; i < 400; i++) {
        tiny_sentence(&text, rng_key(1, i, 0, 0), 3 + (int)(i % 9));
        str_add(&text, "\n", 1, err);
    }
    enum tfm_status status = file_write(text_path, text.data, text.len, err);
    str_release(&text);
    const char *const files[] = { text_path };
    struct spm_train_options options = { .files = files,
                                         .n_files = 1,
                                         .model_path = path,
                                         .vocab_size = 120,
                                         .type = "unigram",
                                         .symbol = symbol };
    return status == TFM_OK ? spm_train(&options, err) : status;
}

static inline enum tfm_status tiny_write(const char *folder, const struct tiny_options *o,
                                         struct tfm_error *err)
{
    char path[640];
    snprintf(path, sizeof(path), "%s/vocab.spm", folder);
    struct spm *spm;
    TRY(dir_make(folder, err));
    TRY(tiny_vocabulary(path, o->is_encoder || o->has_mask ? MODEL_MASK_PIECE : NULL, err));
    TRY(spm_open(&spm, path, err));
    struct config config = {
        .encoder_layers = 2,
        .decoder_layers = 2,
        .d_model = o->d_model > 0 ? o->d_model : 24,
        .heads = o->heads > 0 ? o->heads : 3,
        .kv_heads = o->kv_heads,
        .attention_window = o->window,
        .attention_function = o->function,
        .attention_scale = o->scale,
        .ffn_dim = 40,
        .activation = o->activation,
        .norm = o->norm,
        .pre_norm = o->pre_norm,
        .norm_epsilon = 1e-6,
        .scale_embedding = true,
        .tie = o->tie,
        .decoder_cell = o->cell,
        .positions = o->positions,
        .max_positions = o->max_positions,
    };
    if (o->is_decoder) {
        config.architecture = CONFIG_DECODER_ONLY;
        config.task = o->is_language ? CONFIG_LANGUAGE_MODEL : CONFIG_TRANSLATION;
        config.encoder_layers = 0;
    }
    if (o->is_encoder) {
        config.architecture = CONFIG_ENCODER_ONLY;
        config.decoder_layers = 0;
        config.mask_token_id = spm_piece_id(spm, MODEL_MASK_PIECE, strlen(MODEL_MASK_PIECE));
    }
    if (o->is_rnn) {
        config.arch = TFM_ARCH_RNN;
        config.rnn_cell = o->rnn_cell;
        config.rnn_attention = o->rnn_attention;
        config.positions = TFM_POSITIONS_NONE;
        config.heads = 1;
    }
    config.source_vocab_size = config.vocab_size = spm_size(spm);
    config.eos_token_id = config.decoder_start_token_id = spm_eos(spm);
    config.unk_token_id = spm_unk(spm);
    spm_free(spm);

    struct params params;
    struct weights weights;
    TRY(params_list(&params, &config, err));
    real *block = mem_alloc(params.size * sizeof(real), err);
    if (block == NULL) {
        params_release(&params);
        return TFM_ENOMEM;
    }
    params_init(&params, block, o->seed);
    params_bind(&weights, &config, block);
    weights.logits_bias[config.eos_token_id] += o->eos_bias;
    weights.logits_bias[config.unk_token_id] += o->unk_bias;
    enum tfm_status status = model_write(folder, &config, NULL, &params, block, TENSOR_F32, false, NULL, err);
    mem_free(block);
    params_release(&params);
    return status;
}

/* Writes and opens a model in a folder of check_tmp's; ends the test program when that fails. */
static inline struct tfm_model *tiny_open(const char *name, const struct tiny_options *options)
{
    char folder[560];
    struct tfm_error err;
    struct tfm_model *model = NULL;
    snprintf(folder, sizeof(folder), "%s/%s", check_tmp(), name);
    if (tiny_write(folder, options, &err) != TFM_OK || tfm_model_open(&model, folder, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a tiny model can be made");
        exit(check_done());
    }
    return model;
}

/* All weights of a model as one block. */
static inline real *tiny_values(const struct tfm_model *model)
{
    struct tfm_error err;
    real *values = mem_alloc(model->params.size * sizeof(real), &err);
    if (values == NULL)
        exit(1);
    for (int i = 0; i < model->params.n; i++)
        model_values(values + model->params.list[i].offset, model, i);
    return values;
}

#endif
