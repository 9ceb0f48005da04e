/*
 * pretrained_test.c: a training that begins with the weights of another model: which tensors are taken,
 * whatever the file holds them as, that all others stay as they were, what is told, and what is refused.
 */
#include "train/pretrained.h"

#include <math.h>

#include "tiny_model.h"

static struct tfm_error err;

struct notes {
    int n;
    char text[3][1000];
};

static void note(void *user, const struct tfm_train_event *event)
{
    struct notes *notes = user;
    if (notes->n < 3)
        snprintf(notes->text[notes->n], sizeof(notes->text[0]), "%s", event->text);
    notes->n++;
}

/* What a training with this config takes of a model; *block [params->size] was 7 everywhere. */
static enum tfm_status take(real **block, struct params *params, struct notes *notes, const char *folder,
                            const struct config *config)
{
    struct tfm_train_options options;
    struct str name = { 0 };
    tfm_train_options_init(&options);
    options.pretrained = folder;
    options.event = note;
    options.user = notes;
    *notes = (struct notes){ 0 };
    TRY(params_list(params, config, &err));
    *block = mem_alloc(params->size * sizeof(real), &err);
    for (size_t i = 0; i < params->size; i++)
        (*block)[i] = 7;
    enum tfm_status status = pretrained_take(*block, &name, params, config, &options, NULL, &err);
    CHECK(status != TFM_OK || strcmp(name.data, path_base(folder)) == 0, "the folder is named");
    str_release(&name);
    return status;
}

/* Counts the tensors that are the model's, those that were left, and those that are neither. */
static void count(int counts[3], const real *block, const struct params *params,
                  const struct tfm_model *model, double tolerance)
{
    real *values = tiny_values(model);
    counts[0] = counts[1] = counts[2] = 0;
    for (int i = 0; i < params->n; i++) {
        const struct param *own = &params->list[i], *its = params_find(&model->params, own->name);
        bool is_taken = its != NULL, is_left = true;
        for (size_t j = 0; j < params_count(own); j++) {
            real value = block[own->offset + j];
            is_taken = is_taken && fabs((double)value - (double)values[its->offset + j]) <= tolerance;
            is_left = is_left && value == 7;
        }
        counts[is_taken ? 0 : is_left ? 1 : 2]++;
    }
    mem_free(values);
}

static void release(real *block, struct params *params)
{
    mem_free(block);
    params_release(params);
}

/* An encoder alone begins that of a translation model. */
static void test_encoder(const struct tfm_model *encoder, const struct tfm_model *pair)
{
    real *block;
    struct params params;
    struct notes notes;
    int counts[3];
    if (!CHECK(take(&block, &params, &notes, encoder->folder, &pair->config) == TFM_OK,
               "an encoder is taken: %s", err.message))
        return;
    count(counts, block, &params, encoder, 0);
    CHECK_INT(counts[0], encoder->params.n, "all tensors of the encoder, bit for bit");
    CHECK_INT(counts[1], params.n - encoder->params.n, "the decoder's stay as they were");
    CHECK_INT(counts[2], 0, "and there are no others");
    CHECK_INT(notes.n, 2, "what was taken is told, and what was not");
    CHECK(strstr(notes.text[0], "taken: ") != NULL && strstr(notes.text[0], "model.shared.weight") != NULL &&
              strstr(notes.text[0], "model.encoder.layers.1") != NULL &&
              strstr(notes.text[0], "model.encoder.layers.1.") == NULL,
          "a layer by its name: %s", notes.text[0]);
    CHECK(strstr(notes.text[1], "at random") != NULL &&
              strstr(notes.text[1], "model.decoder.layers.0") != NULL,
          "and so is what begins at random: %s", notes.text[1]);
    release(block, &params);
}

/* A translation model begins an encoder alone, or another of its kind; some of it has no use. */
static void test_others(const struct tfm_model *encoder, const struct tfm_model *pair)
{
    real *block;
    struct params params;
    struct notes notes;
    int counts[3];
    struct config config = encoder->config;
    CHECK(take(&block, &params, &notes, pair->folder, &config) == TFM_OK, "a translation model is taken");
    count(counts, block, &params, pair, 0);
    CHECK(counts[0] == params.n && counts[1] == 0, "its encoder is all that is needed");
    CHECK(notes.n == 2 && strstr(notes.text[1], "of no use here") != NULL &&
              strstr(notes.text[1], "model.decoder.layers.1") != NULL,
          "the rest is told: %s", notes.text[1]);
    release(block, &params);

    config = pair->config;
    config.encoder_layers = 3;
    config.dropout = 0.5;
    CHECK(take(&block, &params, &notes, pair->folder, &config) == TFM_OK, "a layer more");
    count(counts, block, &params, pair, 0);
    CHECK(counts[0] == pair->params.n && counts[1] == params.n - pair->params.n, "begins at random");
    release(block, &params);
}

static void test_int8(const struct tfm_model *encoder)
{
    real *block, *values = tiny_values(encoder);
    struct params params;
    struct notes notes;
    char folder[600], path[700];
    struct tfm_model *int8 = NULL;
    int counts[3];
    snprintf(folder, sizeof(folder), "%s/int8", check_tmp());
    snprintf(path, sizeof(path), "%s/vocab.spm", folder);
    CHECK(model_write(folder, &encoder->config, NULL, &encoder->params, values, TENSOR_I8, false, NULL,
                      &err) == TFM_OK &&
              tiny_vocabulary(path, MODEL_MASK_PIECE, &err) == TFM_OK &&
              tfm_model_open_as(&int8, folder, TFM_PRECISION_FP32, &err) == TFM_OK,
          "a model in whole numbers");
    CHECK(take(&block, &params, &notes, folder, &encoder->config) == TFM_OK, "is taken");
    count(counts, block, &params, int8, 0);
    CHECK_INT(counts[0], params.n, "as the numbers that they stand for");
    release(block, &params);
    tfm_model_free(int8);
    mem_free(values);
}

static void test_refused(const struct tfm_model *encoder, const struct tfm_model *pair,
                         const struct tfm_model *plain)
{
    real *block;
    struct params params;
    struct notes notes;
    struct config config = pair->config;
    config.ffn_dim = 44;
    CHECK_INT(take(&block, &params, &notes, encoder->folder, &config), TFM_EINVAL, "another width");
    CHECK(strstr(err.message, "model.encoder.layers.0.fc1.weight is [40, 24], and should be [44, 24]") !=
              NULL,
          "names tensor and shapes: %s", err.message);
    CHECK(block[0] == 7 && notes.n == 0, "and nothing is taken");
    release(block, &params);
    config = pair->config;
    config.heads = 2;
    CHECK_INT(take(&block, &params, &notes, encoder->folder, &config), TFM_EINVAL, "other heads");
    CHECK(strstr(err.message, "encoder_attention_heads") != NULL, "names the field: %s", err.message);
    release(block, &params);
    config = pair->config;
    config.tie = TFM_TIE_NONE;
    config.architecture = CONFIG_DECODER_ONLY;
    config.encoder_layers = 0;
    CHECK_INT(take(&block, &params, &notes, encoder->folder, &config), TFM_OK, "a bias alone in common");
    release(block, &params);
    CHECK_INT(take(&block, &params, &notes, plain->folder, &encoder->config), TFM_EINVAL, "no mask: %s",
              err.message);
    CHECK(strstr(err.message, "its vocabulary has no <mask>") != NULL, "which is told");
    release(block, &params);
    CHECK_INT(take(&block, &params, &notes, check_path("nowhere"), &pair->config), TFM_EIO, "no folder: %s",
              err.message);
    release(block, &params);
    CHECK_INT(pretrained_check(check_tmp(), &err), TFM_EFORMAT, "no model: %s", err.message);
}

int main(void)
{
    struct tfm_model *encoder = tiny_open("encoder", &(struct tiny_options){ .seed = 3, .is_encoder = true });
    struct tfm_model *pair = tiny_open("pair", &(struct tiny_options){ .seed = 4, .has_mask = true });
    struct tfm_model *plain = tiny_open("plain", &(struct tiny_options){ .seed = 5 });
    test_encoder(encoder, pair);
    test_others(encoder, pair);
    test_int8(encoder);
    test_refused(encoder, pair, plain);
    tfm_model_free(plain);
    tfm_model_free(encoder);
    tfm_model_free(pair);
    return check_done();
}
