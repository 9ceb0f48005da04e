/*
 * config_test.c: config.json is read back as it was written, and whatever is wrong with it is refused with
 * a sentence that names the field.
 */
#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "model/config.h"

static char path[600];

static enum tfm_status read_config(struct config *config, const char *from, struct tfm_error *err)
{
    json_t *root;
    TRY(json_read(&root, from, err));
    enum tfm_status status = config_parse(config, root, from, err);
    json_decref(root);
    return status;
}

static struct config small_config(void)
{
    struct config config;
    config_preset(&config, "small");
    config.source_vocab_size = config.vocab_size = 8000;
    return config;
}

struct wrong { /* what an architecture has no use for */
    size_t offset;
    int value;
    const char *name; /* of the field, in the message */
};

static void check_wrong(const struct config *config, const struct wrong *wrong, const char *architecture)
{
    struct config changed = *config;
    struct tfm_error err;
    *(int *)((char *)&changed + wrong->offset) = wrong->value;
    CHECK(config_check(&changed, "x", &err) == TFM_EFORMAT && strstr(err.message, architecture) != NULL &&
              strstr(err.message, wrong->name) != NULL,
          "%s: %s cannot be so: %s", architecture, wrong->name, err.message);
}

static void test_presets(void)
{
    static const struct {
        const char *name;
        int encoder_layers, decoder_layers, d_model, ffn_dim, heads;
        bool pre_norm;
        enum tfm_cell cell;
        double dropout;
    } expected[] = {
        { "tiny", 4, 4, 128, 256, 4, true, TFM_CELL_ATTENTION, 0.15 },
        { "small", 6, 2, 256, 1024, 8, true, TFM_CELL_ATTENTION, 0.1 },
        { "base", 6, 6, 512, 2048, 8, true, TFM_CELL_ATTENTION, 0.1 },
        { "student", 6, 2, 256, 1536, 8, false, TFM_CELL_SSRU, 0 },
    };
    struct config c;
    struct tfm_error err;
    for (int i = 0; i < 4; i++) {
        const char *name = expected[i].name;
        CHECK(config_preset(&c, name), "there is a preset %s", name);
        CHECK_INT(c.encoder_layers, expected[i].encoder_layers, "%s: encoder layers", name);
        CHECK_INT(c.decoder_layers, expected[i].decoder_layers, "%s: decoder layers", name);
        CHECK_INT(c.d_model, expected[i].d_model, "%s: width", name);
        CHECK_INT(c.ffn_dim, expected[i].ffn_dim, "%s: feed-forward width", name);
        CHECK_INT(c.heads, expected[i].heads, "%s: heads", name);
        CHECK(c.pre_norm == expected[i].pre_norm && c.decoder_cell == expected[i].cell,
              "%s: norm and decoder cell", name);
        CHECK_NEAR(c.dropout, expected[i].dropout, 0, "%s: dropout", name);
        CHECK(config_check(&c, name, &err) != TFM_OK, "%s: needs vocabulary sizes", name);
        c.source_vocab_size = c.vocab_size = 2;
        CHECK(config_check(&c, name, &err) == TFM_OK, "%s: is sound with them", name);
    }
    CHECK(!config_preset(&c, "huge"), "an unknown preset is refused");
}

static void test_round_trip(void)
{
    struct config config = small_config(), found;
    struct tfm_error err = { 0 };
    config.pre_norm = true;
    config.tie = TFM_TIE_NONE;
    config.source_vocab_size = 9000;
    config.decoder_start_token_id = 7999;
    config.dropout = (double)0.1f;
    config.norm_epsilon = 1e-6;
    config.attention_dropout = 1.0 / 3;
    config.activation = TFM_ACTIVATION_GELU_TANH;
    json_t *training = json_pack("{s:i, s:[s]}", "updates", 12345, "data", "corpus");
    CHECK(config_write(&config, training, path, &err) == TFM_OK, "a config is written");
    char *first, *second;
    size_t first_size, second_size;
    file_read(path, &first, &first_size, &err);
    CHECK(strstr(first, "\"updates\": 12345") != NULL, "with its provenance");
    CHECK(read_config(&found, path, &err) == TFM_OK, "and read: %s", err.message);
    CHECK_INT(found.source_vocab_size, 9000, "with its source vocabulary's size");
    CHECK(found.pre_norm && found.tie == TFM_TIE_NONE && found.heads == 8 && found.scale_embedding,
          "with its choices");
    CHECK((float)found.attention_dropout == (float)(1.0 / 3) && found.norm_epsilon == 1e-6,
          "with its numbers to the last bit of a float");
    CHECK(strstr(first, "max_position_embeddings") == NULL && found.max_positions == 0,
          "sinusoids have no number");
    CHECK(strstr(first, "decoder_cell") == NULL && found.decoder_cell == TFM_CELL_ATTENTION,
          "self-attention needs no decoder_cell");
    CHECK(strstr(first, "\"gelu_new\"") != NULL && found.activation == TFM_ACTIVATION_GELU_TANH,
          "activations have the names of Hugging Face");
    CHECK(strstr(first, "normalization") == NULL && strstr(first, "layerdrop") == NULL &&
              strstr(first, "initialization") == NULL,
          "what is as ever needs no field");
    CHECK(strstr(first, "layer_type") == NULL && strstr(first, "rnn_") == NULL &&
              found.arch == TFM_ARCH_TRANSFORMER,
          "a Transformer needs no layer_type");
    CHECK(strstr(first, "\"dropout\": 0.1,") != NULL && strstr(first, "\"layer_norm_eps\": 1e-6,") != NULL,
          "without digits that nobody wrote");
    CHECK(config_write(&found, training, path, &err) == TFM_OK, "and written again");
    file_read(path, &second, &second_size, &err);
    CHECK(first_size == second_size && memcmp(first, second, first_size) == 0, "as the same bytes");
    mem_free(first);
    mem_free(second);
    json_decref(training);

    config.decoder_cell = TFM_CELL_SSRU;
    config.norm = TFM_RMS_NORM;
    config.init = TFM_INIT_DEPTH_SCALED;
    config.decoder_layerdrop = (double)0.1f;
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.decoder_cell == TFM_CELL_SSRU,
          "the decoder's cell is kept");
    CHECK(found.norm == TFM_RMS_NORM && found.init == TFM_INIT_DEPTH_SCALED && found.encoder_layerdrop == 0 &&
              (float)found.decoder_layerdrop == 0.1f,
          "so are norm, initialisation and layer drop");
    config = found;
    CHECK_STR(config_difference(&config, &found), NULL, "nothing differs");
    found.norm = TFM_LAYER_NORM;
    CHECK_STR(config_difference(&config, &found), "normalization", "a difference is named");

    config.positions = TFM_POSITIONS_LEARNED;
    config.max_positions = 99;
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.positions == TFM_POSITIONS_LEARNED && found.max_positions == 99,
          "learned positions are kept");
    CHECK_INT(found.kv_heads * 100 + found.attention_window, 0, "what came late is as it was before");
    config.dropout = config.attention_dropout = 0;
    config.kv_heads = 2;
    config.attention_window = 5;
    config.attention_function = TFM_ATTENTION_ADDITIVE;
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.kv_heads == 2 && found.attention_window == 5 &&
              found.attention_function == TFM_ATTENTION_ADDITIVE &&
              config_difference(&config, &found) == NULL,
          "variants of attention are kept");
    config.attention_scale = TFM_SCALE_NONE;
    CHECK(config_check(&config, path, &err) == TFM_EFORMAT &&
              strstr(err.message, "no scale to leave out") != NULL,
          "additive attention has no scale: %s", err.message);
    config.attention_scale = TFM_SCALE_SQRT;
    config.positions = TFM_POSITIONS_ROPE;
    CHECK(config_check(&config, path, &err) == TFM_EFORMAT && strstr(err.message, "by dot products") != NULL,
          "nor anything to turn: %s", err.message);
    config.attention_function = TFM_ATTENTION_DOT;
    config.positions = TFM_POSITIONS_LEARNED;
    config.max_positions = 98;
    config.kv_heads = 4;
    CHECK_STR(config_difference(&config, &found), "num_key_value_heads",
              "another number of heads is a difference");
    config.kv_heads = 2;
    found.attention_function = TFM_ATTENTION_DOT;
    CHECK_STR(config_difference(&config, &found), "max_position_embeddings", "as is one of positions");
    config.positions = TFM_POSITIONS_ROPE;
    config.heads = config.d_model;
    config.kv_heads = 0;
    CHECK(config_check(&config, path, &err) == TFM_EFORMAT && strstr(err.message, "a head is 1 wide") != NULL,
          "RoPE needs pairs of columns: %s", err.message);

    config = small_config();
    config.arch = TFM_ARCH_RNN;
    config.rnn_cell = TFM_RNN_LSTM;
    config.rnn_attention = TFM_RNN_GENERAL;
    config.heads = 1;
    config.pre_norm = false;
    config.activation = TFM_ACTIVATION_RELU;
    config.positions = TFM_POSITIONS_NONE;
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.arch == TFM_ARCH_RNN && found.rnn_cell == TFM_RNN_LSTM &&
              found.rnn_attention == TFM_RNN_GENERAL,
          "so are recurrent layers");
    config.rnn_cell = TFM_RNN_GRU;
    CHECK_STR(config_difference(&config, &found), "rnn_cell", "another cell is a difference");
    config.decoder_cell = TFM_CELL_SSRU;
    CHECK(config_check(&config, "x", &err) == TFM_EFORMAT &&
              strstr(err.message, "decoder_cell should be") != NULL,
          "recurrent layers have no SSRU: %s", err.message);
    config.decoder_cell = TFM_CELL_ATTENTION;
    config.positions = TFM_POSITIONS_ROPE;
    CHECK(config_check(&config, "x", &err) == TFM_EFORMAT && strstr(err.message, "positions should be") != NULL,
          "nor positions: %s", err.message);

    config = small_config();
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK,
          "a config to compare with");
    config.architecture = CONFIG_DECODER_ONLY;
    config.encoder_layers = 0;
    CHECK_STR(config_difference(&config, &found), "architecture", "another architecture is a difference");
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.architecture == CONFIG_DECODER_ONLY && found.encoder_layers == 0,
          "a decoder alone is kept");
    CHECK(config_attention_layers(&found, TFM_ENCODER) == 0 &&
              config_attention_layers(&found, TFM_CROSS) == 0 &&
              config_alignment_layers(&found) == found.decoder_layers,
          "its own attention aligns");
    static const struct wrong wrong[] = {
        { offsetof(struct config, arch), 1, "layer_type" },
        { offsetof(struct config, decoder_cell), 1, "decoder_cell" },
        { offsetof(struct config, attention_window), 1, "attention_window" },
        { offsetof(struct config, encoder_layers), 1, "encoder_layers" },
        { offsetof(struct config, decoder_layers), 0, "decoder_layers" },
        { offsetof(struct config, mask_token_id), 1, "mask_token_id" },
    };
    for (int i = 0; i < 6; i++)
        check_wrong(&config, &wrong[i], "decoder-only");

    config.task = CONFIG_LANGUAGE_MODEL;
    CHECK_STR(config_difference(&config, &found), "task", "what it is for is a difference");
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.task == CONFIG_LANGUAGE_MODEL,
          "a language model is kept");
    check_wrong(&config, &(struct wrong){ offsetof(struct config, tie), TFM_TIE_NONE, "tie_embeddings" },
                "decoder-only");
}

/* An encoder alone has no decoder layers, one vocabulary and a piece for what is hidden. */
static void test_encoder(void)
{
    struct config config = small_config(), found;
    struct tfm_error err;
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK,
          "a config to compare with");
    config.architecture = CONFIG_ENCODER_ONLY;
    config.decoder_layers = 0;
    config.decoder_cell = TFM_CELL_ATTENTION;
    config.mask_token_id = 2;
    config.attention_window = 9;
    CHECK_STR(config_difference(&config, &found), "architecture", "another architecture is a difference");
    CHECK(config_write(&config, NULL, path, &err) == TFM_OK && read_config(&found, path, &err) == TFM_OK &&
              found.architecture == CONFIG_ENCODER_ONLY && found.decoder_layers == 0 &&
              found.mask_token_id == 2,
          "an encoder alone is kept");
    CHECK(config_attention_layers(&found, TFM_ENCODER) == found.encoder_layers &&
              config_attention_layers(&found, TFM_DECODER) == 0 &&
              config_attention_layers(&found, TFM_CROSS) == 0 && config_alignment_layers(&found) == 0,
          "it looks at itself alone");
    static const struct wrong wrong[] = {
        { offsetof(struct config, arch), 1, "layer_type" },
        { offsetof(struct config, decoder_cell), 1, "decoder_cell" },
        { offsetof(struct config, encoder_layers), 0, "encoder_layers" },
        { offsetof(struct config, decoder_layers), 1, "decoder_layers" },
        { offsetof(struct config, tie), TFM_TIE_TARGET, "tie_embeddings" },
        { offsetof(struct config, mask_token_id), 0, "mask_token_id" },
        { offsetof(struct config, mask_token_id), 8000, "mask_token_id" },
    };
    for (int i = 0; i < 7; i++)
        check_wrong(&config, &wrong[i], "encoder-only");
    config.tie = TFM_TIE_NONE;
    CHECK(config_check(&config, "x", &err) == TFM_OK, "its output layer may be a matrix of its own");
    config.source_vocab_size = 7000;
    CHECK(config_check(&config, "x", &err) == TFM_EFORMAT && strstr(err.message, "source_vocab_size") != NULL,
          "but its vocabulary is one: %s", err.message);
}

/* What tensors of a model mean to another one. */
static void test_use(void)
{
    struct config a = small_config(), b = a;
    CHECK(config_other_use(&a, &b) == NULL, "a config uses tensors as it does itself");
    b.dropout = 0.5;
    b.decoder_layers++;
    b.positions = TFM_POSITIONS_ALIBI;
    CHECK(config_other_use(&a, &b) == NULL, "training, depth and positions are no other use");
    b.heads *= 2;
    CHECK_STR(config_other_use(&a, &b), "encoder_attention_heads", "but heads are");
    b.heads = a.heads;
    b.pre_norm = !a.pre_norm;
    CHECK_STR(config_other_use(&a, &b), "normalize_before", "and so is the place of norms");
    b.arch = TFM_ARCH_RNN;
    CHECK(config_other_use(&a, &b) == NULL, "a recurrent network has but its embeddings in common");
}

/* Sets one field of a good config.json to a JSON text (NULL: removes it) and reads the file. */
static enum tfm_status read_changed(const char *field, const char *value, struct tfm_error *err)
{
    struct config config = small_config();
    json_t *root;
    *err = (struct tfm_error){ 0 };
    config_write(&config, NULL, path, err);
    json_read(&root, path, err);
    if (value != NULL)
        json_object_set_new(root, field, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(root, field);
    json_write(root, path, err);
    json_decref(root);
    return read_config(&config, path, err);
}

static void test_fields(void)
{
    struct tfm_error err;
    CHECK(read_changed("optional", "{\"anything\": [1]}", &err) == TFM_OK, "\"optional\" is left alone");
    CHECK(read_changed("training", "{\"updates\": 1}", &err) == TFM_OK, "\"training\" is free in form");

    CHECK(read_changed("decoder_cell", "\"attention\"", &err) == TFM_OK, "\"attention\" may be said");
    static const char *const activations[] = {
        "relu", "gelu", "gelu_new", "swish", "silu", "swiglu", "geglu"
    };
    for (size_t i = 0; i < sizeof(activations) / sizeof(activations[0]); i++) {
        char value[20];
        snprintf(value, sizeof(value), "\"%s\"", activations[i]);
        CHECK(read_changed("activation_function", value, &err) == TFM_OK, "an activation: %s",
              activations[i]);
    }

    static const struct {
        const char *field, *value, *expected;
    } broken[] = {
        { "format_version", "2", "written by a newer tfm (format version 2, this one reads 1)" },
        { "format_version", "0", "format_version" },
        { "format_version", NULL, "format_version" },
        { "experts", "8", "unknown field \"experts\"" },
        { "training", "3", "\"training\" should be an object" },
        { "optional", "[]", "\"optional\" should be an object" },
        { "architecture", "\"decoder\"", "knows \"encoder-decoder\", \"decoder-only\", \"encoder-only\"" },
        { "architecture", "\"decoder-only\"",
          "with the architecture \"decoder-only\" encoder_layers should be 0" },
        { "task", "\"language-model\"", "with the architecture \"encoder-decoder\" task should be left out" },
        { "task", "\"summary\"",
          "task is \"summary\"; this version of tfm knows \"translation\", \"language-model\"" },
        { "positions", "\"rotary\"", "\"sinusoidal\"" },
        { "positions", NULL, "positions" },
        { "activation_function", "\"tanh\"",
          "activation_function is \"tanh\"; this version of tfm knows \"relu\", \"gelu\", \"gelu_new\"" },
        { "normalization", "\"batch\"",
          "normalization is \"batch\"; this version of tfm knows \"layer\", \"rms\"" },
        { "initialization", "\"zero\"", "initialization is \"zero\"" },
        { "encoder_layerdrop", "1", "encoder_layerdrop" },
        { "decoder_layerdrop", "\"0.1\"", "decoder_layerdrop" },
        { "positions", "\"learned\"", "positions is \"learned\", which needs max_position_embeddings" },
        { "num_key_value_heads", "3",
          "num_key_value_heads is 3, which does not divide the 8 attention heads" },
        { "num_key_value_heads", "16", "num_key_value_heads is 16" },
        { "num_key_value_heads", "0", "num_key_value_heads" },
        { "attention_function", "\"max\"", "knows \"dot\", \"additive\"" },
        { "attention_scale", "2", "attention_scale" },
        { "attention_window", "0", "attention_window" },
        { "max_position_embeddings", "0", "max_position_embeddings" },
        { "max_position_embeddings", "70000", "max_position_embeddings" },
        { "activation_function", "1", "activation_function" },
        { "decoder_cell", "\"gru\"",
          "decoder_cell is \"gru\"; this version of tfm knows \"attention\", \"ssru\"" },
        { "decoder_cell", "1", "decoder_cell" },
        { "layer_type", "\"lstm\"",
          "layer_type is \"lstm\"; this version of tfm knows \"transformer\", \"rnn\"" },
        { "layer_type", "\"rnn\"", "with the layer_type \"rnn\" encoder_attention_heads should be 1" },
        { "rnn_cell", "\"elman\"", "rnn_cell is \"elman\"; this version of tfm knows \"gru\", \"lstm\"" },
        { "rnn_attention", "\"none\"", "knows \"additive\", \"dot\", \"general\"" },
        { "tie_embeddings", "\"some\"", "knows \"all\", \"target\", \"none\"" },
        { "tie_embeddings", "true", "tie_embeddings" },
        { "d_model", NULL, "d_model" },
        { "d_model", "256.0", "d_model" },
        { "d_model", "-256", "d_model" },
        { "d_model", "1000000", "d_model" },
        { "d_model", "99999999999999", "d_model" },
        { "d_model", "257", "should be even" },
        { "d_model", "260", "d_model is 260, which 8 attention heads do not divide" },
        { "decoder_attention_heads", "4", "encoder_attention_heads is 8 and decoder_attention_heads is 4" },
        { "encoder_ffn_dim", "8", "encoder_ffn_dim is 8 and decoder_ffn_dim is 1024" },
        { "encoder_layers", "0", "\"encoder-decoder\" encoder_layers should be at least 1" },
        { "decoder_layers", "0", "\"encoder-decoder\" decoder_layers should be at least 1" },
        { "mask_token_id", "3", "\"encoder-decoder\" mask_token_id should be left out" },
        { "mask_token_id", "0", "mask_token_id" },
        { "encoder_layers", "-1", "encoder_layers" },
        { "decoder_layers", "65", "decoder_layers" },
        { "normalize_before", "0", "normalize_before" },
        { "scale_embedding", "\"yes\"", "scale_embedding" },
        { "layer_norm_eps", "0", "layer_norm_eps" },
        { "dropout", "1", "dropout" },
        { "attention_dropout", "-0.1", "attention_dropout" },
        { "activation_dropout", "\"0\"", "activation_dropout" },
        { "vocab_size", "1", "vocab_size" },
        { "vocab_size", "9000", "source_vocab_size is 8000 and vocab_size is 9000" },
        { "eos_token_id", "8000", "eos_token_id is 8000, outside a vocabulary of 8000 pieces" },
        { "unk_token_id", "-1", "unk_token_id" },
        { "decoder_start_token_id", "8000", "decoder_start_token_id is 8000, outside" },
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *value = broken[i].value != NULL ? broken[i].value : "missing";
        CHECK_INT(read_changed(broken[i].field, broken[i].value, &err), TFM_EFORMAT, "refused: %s %s",
                  broken[i].field, value);
        CHECK(strstr(err.message, broken[i].expected) != NULL && strstr(err.message, path) != NULL,
              "and says so: %s", err.message);
    }
}

static void test_files(void)
{
    struct config config = small_config();
    struct tfm_error err;
    static const char *const texts[] = { "", "[]", "3", "{\"format_version\": 1", "null" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        file_write(path, texts[i], strlen(texts[i]), &err);
        CHECK_INT(read_config(&config, path, &err), TFM_EFORMAT, "refused: a file that holds '%s'", texts[i]);
    }
    CHECK_INT(read_config(&config, "/nowhere/config.json", &err), TFM_EIO, "a missing file is refused");

    config = small_config();
    config.heads = 7;
    CHECK_INT(config_write(&config, NULL, path, &err), TFM_EFORMAT, "an unsound config is not written");
    config = small_config();
    config.dropout = NAN;
    CHECK_INT(config_check(&config, "options", &err), TFM_EFORMAT, "a NaN is refused: %s", err.message);
    config = small_config();
    config.source_vocab_size = 5;
    config.tie = TFM_TIE_TARGET;
    config.eos_token_id = 5;
    CHECK_INT(config_check(&config, "options", &err), TFM_EFORMAT,
              "</s> must be in the smaller vocabulary too");
}

int main(void)
{
    snprintf(path, sizeof(path), "%s/config.json", check_tmp());
    test_presets();
    test_round_trip();
    test_encoder();
    test_use();
    test_fields();
    test_files();
    return check_done();
}
