/*
 * model_test.c: a model folder is opened as it was written, written again as the same bytes, and refused
 * with a sentence where one of its files is missing or does not fit the others.
 */
#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "tiny_model.h"

static char folder[540];
static struct config config;
static struct params params;
static real *block;

static const char *in_folder(const char *name)
{
    return check_path("model/%s", name);
}

static void copy_file(const char *from, const char *to)
{
    char *data;
    size_t size;
    struct tfm_error err;
    if (file_read(from, &data, &size, &err) != TFM_OK || file_write(to, data, size, &err) != TFM_OK) {
        check_note("%s", err.message);
        exit(1);
    }
    mem_free(data);
}

/* Trains a vocabulary on sentences of made-up words. */
static void make_vocabulary(const char *path, int size)
{
    struct str text = { 0 };
    struct tfm_error err;
    const char *file = in_folder("text");
    for (unsigned i = 0; i < 400; i++) {
        for (unsigned j = 0; j < 8; j++) {
            unsigned word = (i * 31 + j * 17) % 97;
            str_printf(&text, &err, "%c%c%c%s ", 'a' + word % 23, 'e' + word % 5, 'k' + word % 7,
                       j % 2 ? "en" : "");
        }
        str_add(&text, "\n", 1, &err);
    }
    file_write(file, text.data, text.len, &err);
    str_release(&text);
    struct spm_train_options options = {
        .files = &file, .n_files = 1, .model_path = path, .vocab_size = size, .type = "unigram"
    };
    if (spm_train(&options, &err) != TFM_OK) {
        check_note("%s", err.message);
        exit(1);
    }
    remove(file);
}

/* Writes the model's files anew: one vocabulary for both sides. */
static void write_model(void)
{
    static const char *const others[] = { "weights.safetensors", "source.spm", "target.spm" };
    struct tfm_error err = { 0 };
    json_t *training = json_pack("{s:i}", "updates", 17);
    if (model_write(folder, &config, training, &params, block, TENSOR_F16, false, NULL, &err) != TFM_OK)
        check_note("%s", err.message);
    json_decref(training);
    copy_file(in_folder("../vocab"), in_folder("vocab.spm"));
    for (int i = 0; i < 3; i++)
        remove(in_folder(others[i]));
}

static void write_config(void)
{
    struct tfm_error err;
    config_write(&config, NULL, in_folder("config.json"), &err);
}

static void prepare(void)
{
    struct tfm_error err;
    struct spm *spm;
    snprintf(folder, sizeof(folder), "%s/model", check_tmp());
    dir_make(folder, &err);
    make_vocabulary(in_folder("../vocab"), 60);
    make_vocabulary(in_folder("../smaller"), 50);
    if (spm_open(&spm, in_folder("../vocab"), &err) != TFM_OK)
        exit(1);
    config_preset(&config, "tiny");
    config.encoder_layers = config.decoder_layers = 1;
    config.source_vocab_size = config.vocab_size = spm_size(spm);
    spm_free(spm);
    params_list(&params, &config, &err);
    block = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 3);
}

static void check_opened(const char *what)
{
    struct tfm_model *model;
    struct tfm_error err = { 0 };
    CHECK_INT(tfm_model_open(&model, folder, &err), TFM_OK, "%s: opens", what);
    CHECK_STR(err.message, "", "%s: without complaint", what);
    tfm_model_free(model);
}

static void test_open(void)
{
    struct tfm_model *model;
    struct tfm_error err;
    write_model();
    if (!CHECK(tfm_model_open(&model, folder, &err) == TFM_OK, "a model is opened"))
        return;
    CHECK_STR(model->folder, folder, "with its folder");
    CHECK_INT(model->type, TENSOR_F16, "its type");
    CHECK_INT(model->config.vocab_size, config.vocab_size, "its configuration");
    CHECK(model->source == model->target && spm_size(model->source) == config.vocab_size, "its vocabulary");
    CHECK_INT(json_integer_value(json_object_get(model->training, "updates")), 17, "its provenance");
    CHECK(model->weights.decoder[0].fc1_b != NULL && model->kern != NULL, "bound");
    real *values = tiny_values(model), row[128];
    CHECK_NEAR((double)values[5], (double)block[5], 1e-4, "its weights");
    linear_row(row, &model->net.target_embed, 7);
    CHECK(memcmp(row, values + (size_t)7 * 128, sizeof(row)) == 0, "and packed");

    char again[560];
    snprintf(again, sizeof(again), "%s/again", check_tmp());
    CHECK(model_write(again, &model->config, model->training, &model->params, values, model->type, false, NULL,
                      &err) == TFM_OK,
          "it is written again");
    mem_free(values);
    CHECK(check_same_files(in_folder("config.json"), in_folder("../again/config.json")),
          "with the same config.json");
    CHECK(check_same_files(in_folder("weights.safetensors.gz"), in_folder("../again/weights.safetensors.gz")),
          "and the same weights");
    tfm_model_free(model);
    tfm_model_free(NULL);
}

static void test_int8(void)
{
    struct tfm_model *fp32 = NULL, *int8 = NULL, *stored = NULL, *back = NULL, *none;
    struct tfm_error err = { 0 };
    char other[560];
    snprintf(other, sizeof(other), "%s/int8", check_tmp());
    write_model();
    CHECK_INT(tfm_model_open_as(&none, folder, TFM_PRECISION_FP16, &err), TFM_EINVAL,
              "nothing multiplies fp16");
    CHECK(tfm_model_open(&fp32, folder, &err) == TFM_OK && tfm_model_precision(fp32) == TFM_PRECISION_FP32,
          "a model in F16 is opened as fp32");
    if (!CHECK(tfm_model_open_as(&int8, folder, TFM_PRECISION_INT8, &err) == TFM_OK &&
                   tfm_model_precision(int8) == TFM_PRECISION_INT8 && int8->type == TENSOR_F16,
               "or as int8: %s", err.message))
        return;
    CHECK(model_memory(int8) < 0.3 * (double)model_memory(fp32), "which takes %zu bytes rather than %zu",
          model_memory(int8), model_memory(fp32));
    real *values = tiny_values(fp32), *whole = tiny_values(int8);
    CHECK(model_write(other, &config, NULL, &params, values, TENSOR_I8, false, NULL, &err) == TFM_OK,
          "written as I8");
    copy_file(in_folder("vocab.spm"), in_folder("../int8/vocab.spm"));
    CHECK(tfm_model_open(&stored, other, &err) == TFM_OK, "opened: %s", err.message);
    CHECK(stored != NULL && stored->type == TENSOR_I8 && tfm_model_precision(stored) == TFM_PRECISION_INT8,
          "it is opened as int8");
    CHECK(tfm_model_open_as(&back, other, TFM_PRECISION_FP32, &err) == TFM_OK &&
              tfm_model_precision(back) == TFM_PRECISION_FP32,
          "or as fp32");
    real *from_file = tiny_values(stored), *as_reals = tiny_values(back);
    size_t size = params.size * sizeof(real);
    CHECK(memcmp(whole, from_file, size) == 0 && memcmp(whole, as_reals, size) == 0,
          "with the same weights each time");
    double worst = 0;
    for (size_t i = 0; i < params.size; i++)
        worst = check_worse(worst, fabs((double)(values[i] - whole[i])));
    CHECK(worst > 0 && worst < 0.02, "near to those in floats (%.4f)", worst);
    void *blocks[] = { values, whole, from_file, as_reals };
    for (int i = 0; i < 4; i++)
        mem_free(blocks[i]);
    tfm_model_free(fp32);
    tfm_model_free(int8);
    tfm_model_free(stored);
    tfm_model_free(back);
}

static void test_variants(void)
{
    struct tfm_error err;
    write_model();
    remove(in_folder("weights.safetensors.gz"));
    safetensors_write(in_folder("weights.safetensors"), &params, block, TENSOR_F32, NULL, &err);
    check_opened("plain weights");
    write_model();
    remove(in_folder("vocab.spm"));
    copy_file(in_folder("../vocab"), in_folder("source.spm"));
    copy_file(in_folder("../vocab"), in_folder("target.spm"));
    check_opened("two vocabularies");

    struct config two = config;
    struct params two_params;
    struct tfm_model *model;
    struct spm *spm;
    spm_open(&spm, in_folder("../smaller"), &err);
    two.source_vocab_size = spm_size(spm);
    two.tie = TFM_TIE_TARGET;
    spm_free(spm);
    params_list(&two_params, &two, &err);
    real *two_block = mem_alloc(two_params.size * sizeof(real), &err);
    model_write(folder, &two, NULL, &two_params, two_block, TENSOR_F32, false, NULL, &err);
    copy_file(in_folder("../smaller"), in_folder("source.spm"));
    CHECK(tfm_model_open(&model, folder, &err) == TFM_OK && model->source != model->target &&
              model->training == NULL && spm_size(model->source) == two.source_vocab_size,
          "vocabularies of two sizes");
    tfm_model_free(model);
    mem_free(two_block);
    params_release(&two_params);
}

static void check_refused(enum tfm_status status, const char *expected, const char *what)
{
    struct tfm_model *model;
    struct tfm_error err = { 0 };
    CHECK_INT(tfm_model_open(&model, folder, &err), status, "refused: %s", what);
    CHECK(strstr(err.message, expected) != NULL, "and says: %s", err.message);
    CHECK(model == NULL, "and leaves no model");
}

static void test_missing(void)
{
    struct tfm_model *model;
    struct tfm_error err;
    CHECK_INT(tfm_model_open(&model, "/no/such/model", &err), TFM_EIO, "refused: no folder");
    CHECK_STR(err.message, "there is no model folder /no/such/model", "and says so");
    write_model();
    remove(in_folder("config.json"));
    check_refused(TFM_EIO, "holds no config.json", "no config.json");
    write_model();
    remove(in_folder("weights.safetensors.gz"));
    check_refused(TFM_EIO, "holds no weights: neither weights.safetensors.gz nor weights.safetensors",
                  "no weights");
    write_model();
    remove(in_folder("vocab.spm"));
    check_refused(TFM_EIO, "holds no vocabulary", "no vocabulary");
    copy_file(in_folder("../vocab"), in_folder("source.spm"));
    check_refused(TFM_EIO, "target.spm", "no target.spm");
}

static void test_misfits(void)
{
    struct tfm_error err;
    struct config right = config;
    char expected[200];
    write_model();
    copy_file(in_folder("../smaller"), in_folder("vocab.spm"));
    snprintf(expected, sizeof(expected), " pieces, but source_vocab_size in config.json is %d",
             config.vocab_size);
    check_refused(TFM_EFORMAT, expected, "a vocabulary of another size");
    write_model();
    config.eos_token_id = 2;
    write_config();
    check_refused(TFM_EFORMAT, "</s> is piece 0 of the vocabulary, but eos_token_id in config.json is 2",
                  "</s>");
    config = right;
    config.unk_token_id = 2;
    write_config();
    check_refused(TFM_EFORMAT, "<unk> is piece 1 of the vocabulary, but unk_token_id in config.json is 2",
                  "<unk>");
    config = right;
    config.encoder_layers = 2;
    write_config();
    check_refused(TFM_EFORMAT, "tensor model.encoder.layers.1.self_attn.q_proj.weight", "one layer more");
    config = right;
    config.ffn_dim = 128;
    write_config();
    check_refused(TFM_EFORMAT, "fc1.weight has the shape [256,128], expected [128,128]", "another width");
    config = right;

    char *data;
    size_t size;
    write_model();
    file_read(in_folder("weights.safetensors.gz"), &data, &size, &err);
    file_write(in_folder("weights.safetensors.gz"), data, size / 2, &err);
    mem_free(data);
    check_refused(TFM_EFORMAT, "weights.safetensors.gz", "weights cut short");
    write_model();
    file_write(in_folder("vocab.spm"), "nonsense", 8, &err);
    check_refused(TFM_EFORMAT, "vocab.spm", "a vocabulary that is none");
    write_model();
    setenv("TFM_CPU", "abacus", 1);
    check_refused(TFM_EINVAL, "abacus", "a CPU that is none");
    unsetenv("TFM_CPU");
}

/* Weights that are no numbers give empty translations: better none than those. Inspect may look at them. */
static void test_broken(void)
{
    struct tfm_model *model;
    struct tfm_translator *translator;
    struct tfm_translate_options options;
    struct tfm_error err = { 0 };
    const struct param *param = params_find(&params, "model.decoder.layers.0.fc1.bias");
    real *value = block + param->offset + 3, was = *value;
    static const float broken[] = { NAN, INFINITY };
    tfm_translate_options_init(&options);
    for (int i = 0; i < 2; i++) {
        *value = (real)broken[i];
        if (model_write(folder, &config, NULL, &params, block, TENSOR_F32, false, NULL, &err) != TFM_OK ||
            !CHECK(tfm_model_open(&model, folder, &err) == TFM_OK, "a model with a weight of %g is opened",
                   (double)broken[i]))
            continue;
        CHECK_INT(tfm_translator_new(&translator, model, &options, &err), TFM_EFORMAT, "  but does not translate");
        CHECK(strstr(err.message, "weights model.decoder.layers.0.fc1.bias are not all finite") != NULL,
              "  and says which tensor it is");
        tfm_model_free(model);
    }
    *value = was;

    value = block + params_find(&params, "model.encoder.layers.0.fc2.weight")->offset + 3;
    was = *value;
    *value = (real)NAN;
    model_write(folder, &config, NULL, &params, block, TENSOR_F32, false, NULL, &err);
    if (CHECK(tfm_model_open_as(&model, folder, TFM_PRECISION_INT8, &err) == TFM_OK, "opened as int8")) {
        CHECK_INT(tfm_translator_new(&translator, model, &options, &err), TFM_EFORMAT,
                  "  it does not translate");
        CHECK(strstr(err.message, "weights model.encoder.layers.0.fc2.weight are not") != NULL,
              "  and says why");
        tfm_model_free(model);
    }
    *value = was;
    write_model();
}

static void test_no_memory(void)
{
    struct tfm_model *model;
    struct tfm_error err;
    enum tfm_status status = TFM_ENOMEM;
    long n = 0, n_left = 0;
    write_model();
    for (; status == TFM_ENOMEM; n++) {
        mem_fail_after(n);
        status = tfm_model_open(&model, folder, &err);
        mem_fail_after(-1);
        n_left += status != TFM_OK && model != NULL;
    }
    CHECK(status == TFM_OK && n > 1, "opening fails at each of %ld allocations, then not", n - 1);
    CHECK_INT(n_left, 0, "a failure leaves no model");
    tfm_model_free(model);
}

int main(void)
{
    prepare();
    test_open();
    test_variants();
    test_missing();
    test_misfits();
    test_broken();
    test_int8();
    test_no_memory();
    mem_free(block);
    params_release(&params);
    return check_done();
}
