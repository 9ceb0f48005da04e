/*
 * params_test.c: the table of tensors and the pointers into a block agree, whatever the configuration;
 * query, key and value lie side by side; first values have the spread that they should.
 */
#include "check.h"

#include "base/mem.h"
#include "model/params.h"

static struct config tiny_config(enum tfm_tie tie, bool pre_norm)
{
    struct config config;
    config_preset(&config, "tiny");
    config.encoder_layers = 3;
    config.decoder_layers = 2;
    config.vocab_size = 100;
    config.source_vocab_size = tie == TFM_TIE_ALL ? 100 : 90;
    config.tie = tie;
    config.pre_norm = pre_norm;
    return config;
}

/* The tensor's offset, or -1. */
static long offset_of(const struct params *params, const char *name)
{
    const struct param *param = params_find(params, name);
    return param != NULL ? (long)param->offset : -1;
}

/* Tensors follow each other without gaps, and their names differ. */
static void check_table(const struct params *params, const char *what)
{
    size_t at = 0;
    bool is_dense = true, is_unique = true;
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        is_dense =
            is_dense && p->offset == at && p->rows >= 1 && p->cols >= 1 && (!p->is_vector || p->rows == 1);
        is_unique = is_unique && params_find(params, p->name) == p;
        at += (size_t)p->rows * (size_t)p->cols;
    }
    CHECK(is_dense && at == params->size, "%s: tensors lie end to end", what);
    CHECK(is_unique, "%s: each is found by its name", what);
}

static void check_shape(const struct params *params, const char *name, int rows, int cols)
{
    const struct param *p = params_find(params, name);
    CHECK(p != NULL && p->rows == rows && p->cols == cols, "%s is [%d, %d]", name, rows, cols);
}

static void test_table(void)
{
    struct tfm_error err;
    struct params params;
    for (int tie = TFM_TIE_ALL; tie <= TFM_TIE_NONE; tie++) {
        for (int pre_norm = 0; pre_norm <= 1; pre_norm++) {
            struct config config = tiny_config((enum tfm_tie)tie, pre_norm);
            char what[40];
            snprintf(what, sizeof(what), "tie %d, pre-norm %d", tie, pre_norm);
            CHECK(params_list(&params, &config, &err) == TFM_OK, "%s: is listed", what);
            check_table(&params, what);
            int n_embeddings = tie == TFM_TIE_ALL ? 1 : tie == TFM_TIE_TARGET ? 2 : 3;
            CHECK_INT(params.n, n_embeddings + 1 + 4 * pre_norm + 3 * 16 + 2 * 26, "%s: number of tensors",
                      what);
            params_release(&params);
        }
    }
    struct config config = tiny_config(TFM_TIE_ALL, true);
    config.decoder_cell = TFM_CELL_SSRU;
    CHECK(params_list(&params, &config, &err) == TFM_OK, "SSRU: is listed");
    check_table(&params, "SSRU");
    CHECK_INT(params.n, 1 + 1 + 4 + 3 * 16 + 2 * 21, "SSRU: number of tensors");
    check_shape(&params, "model.decoder.layers.1.ssru.forget.weight", 128, 128);
    check_shape(&params, "model.decoder.layers.1.ssru.forget.bias", 1, 128);
    check_shape(&params, "model.decoder.layers.1.ssru.input.weight", 128, 128);
    check_shape(&params, "model.decoder.layers.1.ssru_layer_norm.bias", 1, 128);
    check_shape(&params, "model.encoder.layers.1.self_attn_layer_norm.bias", 1, 128);
    CHECK(params_find(&params, "model.decoder.layers.1.self_attn.q_proj.weight") == NULL &&
              params_find(&params, "model.decoder.layers.1.self_attn_layer_norm.weight") == NULL,
          "SSRU: the decoder has no self-attention");
    params_release(&params);

    config = tiny_config(TFM_TIE_ALL, true);
    config.norm = TFM_RMS_NORM;
    config.activation = TFM_ACTIVATION_SWIGLU;
    CHECK(params_list(&params, &config, &err) == TFM_OK, "RMS and SwiGLU: is listed");
    check_table(&params, "RMS and SwiGLU");
    CHECK_INT(params.n, 1 + 1 + 2 + 3 * (16 - 2 + 2) + 2 * (26 - 3 + 2), "RMS and SwiGLU: number of tensors");
    check_shape(&params, "model.decoder.layers.1.fc3.weight", 256, 128);
    check_shape(&params, "model.encoder.layers.2.fc3.bias", 1, 256);
    CHECK(params_find(&params, "model.encoder.layer_norm.bias") == NULL &&
              params_find(&params, "model.decoder.layers.1.encoder_attn_layer_norm.bias") == NULL,
          "RMS norms have no bias");
    params_release(&params);

    config = tiny_config(TFM_TIE_ALL, true);
    config.positions = TFM_POSITIONS_LEARNED;
    config.max_positions = 77;
    params_list(&params, &config, &err);
    check_table(&params, "learned positions");
    check_shape(&params, "model.encoder.embed_positions.weight", 77, 128);
    check_shape(&params, "model.decoder.embed_positions.weight", 77, 128);
    params_release(&params);
    config.positions = TFM_POSITIONS_RELATIVE;
    params_list(&params, &config, &err);
    check_table(&params, "relative biases");
    check_shape(&params, "model.encoder.relative_attention_bias.weight", 32, 4);
    check_shape(&params, "model.decoder.relative_attention_bias.weight", 32, 4);
    params_release(&params);
    config.decoder_cell = TFM_CELL_SSRU;
    params_list(&params, &config, &err);
    CHECK(params_find(&params, "model.decoder.relative_attention_bias.weight") == NULL,
          "SSRU: no biases in the decoder");
    params_release(&params);

    config = tiny_config(TFM_TIE_ALL, true);
    config.kv_heads = 2;
    config.attention_function = TFM_ATTENTION_ADDITIVE;
    params_list(&params, &config, &err);
    check_table(&params, "additive attention with grouped queries");
    check_shape(&params, "model.encoder.layers.1.self_attn.q_proj.weight", 128, 128);
    check_shape(&params, "model.encoder.layers.1.self_attn.k_proj.weight", 64, 128);
    check_shape(&params, "model.encoder.layers.1.self_attn.v_proj.bias", 1, 64);
    check_shape(&params, "model.encoder.layers.1.self_attn.score_proj.weight", 4, 32);
    check_shape(&params, "model.decoder.layers.1.encoder_attn.v_proj.weight", 64, 128);
    check_shape(&params, "model.decoder.layers.1.encoder_attn.k_proj.bias", 1, 64);
    check_shape(&params, "model.decoder.layers.1.encoder_attn.score_proj.weight", 4, 32);
    params_release(&params);

    config = tiny_config(TFM_TIE_ALL, false);
    config.arch = TFM_ARCH_RNN;
    config.rnn_cell = TFM_RNN_LSTM;
    CHECK(params_list(&params, &config, &err) == TFM_OK, "RNN: is listed");
    check_table(&params, "RNN");
    CHECK_INT(params.n, 1 + 1 + 8 + 3 * 8 + 2 * 4, "RNN: number of tensors");
    check_shape(&params, "model.encoder.layers.2.rnn.reverse.input.weight", 4 * 64, 128);
    check_shape(&params, "model.encoder.layers.2.rnn.hidden.weight", 4 * 64, 64);
    check_shape(&params, "model.decoder.layers.1.rnn.hidden.weight", 4 * 128, 128);
    check_shape(&params, "model.decoder.attention.score.weight", 1, 128);
    long forward = offset_of(&params, "model.encoder.layers.0.rnn.input.weight");
    CHECK_INT(offset_of(&params, "model.encoder.layers.0.rnn.reverse.input.weight") - forward, 4 * 64 * 128,
              "RNN: the input's matrices of both ways lie side by side");
    real *values = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, values, 1);
    const real *bias = values + offset_of(&params, "model.decoder.layers.0.rnn.input.bias");
    CHECK(bias[127] == 0 && bias[128] == 1 && bias[255] == 1 && bias[256] == 0,
          "RNN: LSTM begins by not forgetting");
    mem_free(values);
    params_release(&params);
    config.rnn_cell = TFM_RNN_GRU;
    config.rnn_attention = TFM_RNN_DOT;
    params_list(&params, &config, &err);
    CHECK_INT(params.n, 1 + 1 + 4 + 3 * 8 + 2 * 4, "RNN: a product needs no matrix");
    check_shape(&params, "model.encoder.layers.2.rnn.hidden.weight", 3 * 64, 64);
    params_release(&params);

    config = tiny_config(TFM_TIE_NONE, false);
    params_list(&params, &config, &err);
    check_shape(&params, "model.encoder.embed_tokens.weight", 90, 128);
    check_shape(&params, "model.decoder.embed_tokens.weight", 100, 128);
    check_shape(&params, "lm_head.weight", 100, 128);
    check_shape(&params, "final_logits_bias", 1, 100);
    check_shape(&params, "model.decoder.layers.1.fc1.weight", 256, 128);
    check_shape(&params, "model.decoder.layers.1.fc2.weight", 128, 256);
    check_shape(&params, "model.decoder.layers.1.encoder_attn.out_proj.bias", 1, 128);
    CHECK(params_find(&params, "model.shared.weight") == NULL, "nothing is shared when nothing is tied");
    CHECK(params_find(&params, "model.encoder.layers.0.encoder_attn.q_proj.weight") == NULL,
          "the encoder has no cross-attention");
    CHECK(params_find(&params, "model.encoder.layers.3.fc1.weight") == NULL, "there is no fourth layer");
    CHECK(params_find(&params, "") == NULL, "nothing has an empty name");
    params_release(&params);
    CHECK(params.list == NULL && params.n == 0, "a released table is empty");
}

static void test_bind(void)
{
    struct tfm_error err;
    struct params params;
    struct weights w;
    struct config config = tiny_config(TFM_TIE_ALL, true);
    params_list(&params, &config, &err);
    real *block = mem_alloc(params.size * sizeof(real), &err);
    params_bind(&w, &config, block);

    CHECK(w.shared == block, "the block begins with the embeddings");
    CHECK(w.encoder_embed == NULL && w.decoder_embed == NULL && w.lm_head == NULL, "absent tensors are NULL");
    CHECK(w.encoder[3].self_q_w == NULL && w.decoder[2].fc1_w == NULL, "so are absent layers");
    CHECK(w.encoder[0].self_norm_b != NULL, "layers are there");
    CHECK_INT(w.decoder_norm_b - block, offset_of(&params, "model.decoder.layer_norm.bias"), "a final norm");
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof(name), "model.encoder.layers.%d.final_layer_norm.weight", i);
        CHECK_INT(w.encoder[i].ffn_norm_w - block, offset_of(&params, name), "%s", name);
    }
    for (int i = 0; i < 2; i++) {
        char name[100];
        snprintf(name, sizeof(name), "model.decoder.layers.%d.encoder_attn_layer_norm.bias", i);
        CHECK_INT(w.decoder[i].cross_norm_b - block, offset_of(&params, name), "%s", name);
        const struct layer_weights *l = &w.decoder[i];
        CHECK(l->self_k_w == l->self_q_w + 128 * 128 && l->self_v_w == l->self_k_w + 128 * 128,
              "layer %d: query, key and value matrices lie side by side", i);
        CHECK(l->self_k_b == l->self_q_b + 128 && l->self_v_b == l->self_k_b + 128,
              "layer %d: so do the biases", i);
        CHECK(l->cross_v_w == l->cross_k_w + 128 * 128 && l->cross_v_b == l->cross_k_b + 128,
              "layer %d: key and value of cross-attention too", i);
    }
    mem_free(block);
    params_release(&params);
}

static void test_init(void)
{
    struct tfm_error err;
    struct params params;
    struct config config = tiny_config(TFM_TIE_ALL, false);
    params_list(&params, &config, &err);
    real *block = mem_alloc(params.size * sizeof(real), &err),
         *again = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 1);
    params_init(&params, again, 1);
    CHECK(memcmp(block, again, params.size * sizeof(real)) == 0, "the same seed gives the same values");
    params_init(&params, again, 2);
    CHECK(memcmp(block, again, params.size * sizeof(real)) != 0, "another seed gives others");

    for (int i = 0; i < params.n; i++) {
        const struct param *p = &params.list[i];
        size_t n = (size_t)p->rows * (size_t)p->cols;
        double sum = 0, squares = 0, largest = 0;
        for (size_t j = 0; j < n; j++) {
            double x = (double)block[p->offset + j];
            sum += x;
            squares += x * x;
            largest = fmax(largest, fabs(x));
        }
        double limit = sqrt(6.0 / (p->rows + p->cols)), deviation = sqrt(squares / (double)n);
        if (p->init == INIT_ZERO)
            CHECK(largest == 0, "%s is zero", p->name);
        else if (p->init == INIT_ONE)
            CHECK(sum == (double)n && squares == (double)n, "%s is one", p->name);
        else if (p->init == INIT_XAVIER)
            CHECK(largest <= limit * 1.000001 && largest > 0.99 * limit &&
                      fabs(deviation * sqrt(3) / limit - 1) < 0.02 && fabs(sum / (double)n) < 0.03 * limit,
                  "%s is uniform within %g", p->name, limit);
        else
            CHECK(fabs(deviation * sqrt(128) - 1) < 0.03 && largest < 6 / sqrt(128) &&
                      largest > 3 / sqrt(128),
                  "%s is normal with deviation %g", p->name, 1 / sqrt(128));
    }
    const real *q = block + offset_of(&params, "model.encoder.layers.0.self_attn.q_proj.weight");
    CHECK(memcmp(q, q + 128 * 128, 128 * 128 * sizeof(real)) != 0, "query and key begin differently");
    mem_free(block);
    mem_free(again);
    params_release(&params);
}

/* The largest value of a tensor of so many rows and columns, in units of Glorot's limit. */
static double extent_of(const struct params *params, const real *block, const char *name)
{
    const struct param *p = params_find(params, name);
    double largest = 0;
    for (size_t i = 0; i < params_count(p); i++)
        largest = fmax(largest, fabs((double)block[p->offset + i]));
    return largest / sqrt(6.0 / (p->rows + p->cols));
}

static void test_depth_scaled(void)
{
    struct tfm_error err;
    struct params params;
    struct config config = tiny_config(TFM_TIE_ALL, false);
    config.init = TFM_INIT_DEPTH_SCALED;
    params_list(&params, &config, &err);
    real *block = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 1);
    for (int i = 0; i < 5; i++) {
        char name[100];
        int layer = i < 3 ? i : i - 3;
        snprintf(name, sizeof(name), "model.%s.layers.%d.fc1.weight", i < 3 ? "encoder" : "decoder", layer);
        CHECK_NEAR(extent_of(&params, block, name) * sqrt(layer + 1), 1, 0.01, "depth-scaled: %s", name);
    }
    mem_free(block);
    params_release(&params);
}

static void test_no_memory(void)
{
    struct tfm_error err;
    struct params params;
    struct config config = tiny_config(TFM_TIE_ALL, false);
    mem_fail_after(0);
    CHECK_INT(params_list(&params, &config, &err), TFM_ENOMEM, "no memory for the table is reported");
    mem_fail_after(-1);
    CHECK(params.list == NULL, "and leaves an empty table");
    params_release(&params);
}

int main(void)
{
    test_table();
    test_bind();
    test_init();
    test_depth_scaled();
    test_no_memory();
    return check_done();
}
