/*
 * predict_test.c: a masked language model seen from outside: what it reads of a text with masks, what it
 * would put in their places, against the logits that an observer is shown; in both formats, on every tier of
 * kernels, in fp32 and int8; and what such a model does not do.
 */
#include <math.h>

#include "inspect/observe.h"
#include "tiny_model.h"

#define TEXT "bado <mask> navermur<mask>."

static struct tfm_error err;

struct text {
    char *data;
    size_t size;
};

static enum tfm_status predict(struct text *text, const struct tfm_model *model, const char *line, int top_k,
                               enum tfm_format format)
{
    struct tfm_predict_options options;
    tfm_predict_options_init(&options);
    options.top_k = top_k;
    options.format = format;
    *text = (struct text){ NULL, 0 };
    FILE *out = open_memstream(&text->data, &text->size);
    enum tfm_status status = tfm_predict(model, line, &options, out, &err);
    fclose(out);
    return status;
}

/* ---- what is read ---- */

/* The pieces of a line, with commas between; without its </s>. */
static const char *pieces_of(const struct tfm_model *model, const char *line)
{
    static char text[400];
    struct ints source = { 0 }, target = { 0 };
    text[0] = '\0';
    CHECK_INT(observe_encode(&source, &target, model, line, NULL, 1, &err), TFM_OK, "pieces of \"%s\"", line);
    for (size_t i = 0; i + 1 < source.n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? "," : "",
                 spm_piece(model->source, source.data[i]));
    CHECK(target.n == 0, "and no target");
    ints_release(&source);
    ints_release(&target);
    return text;
}

static void test_pieces(const struct tfm_model *model)
{
    char plain[400];
    snprintf(plain, sizeof(plain), "%s,<mask>", pieces_of(model, "bado"));
    CHECK_STR(pieces_of(model, "bado <mask>"), plain, "a mask takes the space before it");
    CHECK_STR(pieces_of(model, "bado<mask>"), plain, "and needs none");
    CHECK_STR(pieces_of(model, "<mask>"), "<mask>", "a line may be nothing else");
    CHECK_STR(pieces_of(model, " <mask>  <mask><mask> "), "<mask>,<mask>,<mask>", "or many");
    snprintf(plain, sizeof(plain), "<mask>,%s", pieces_of(model, "bado"));
    CHECK_STR(pieces_of(model, "<mask> bado"), plain, "a word behind it keeps its space");
    CHECK_STR(pieces_of(model, "<mask>."), "<mask>,.", "a full stop has none");
    struct ints source = { 0 }, target = { 0 };
    CHECK_INT(observe_encode(&source, &target, model, "bado", "kile", 1, &err), TFM_EINVAL,
              "a target is refused: %s", err.message);
    ints_release(&source);
    ints_release(&target);
}

/* ---- what is predicted ---- */

struct logits {
    int rows, cols, n_seen, n_decoder;
    float *data; /* of all rows */
};

static void see(void *user, const struct tfm_value *value)
{
    struct logits *logits = user;
    logits->n_decoder += strncmp(value->name, "decoder", 7) == 0;
    if (strcmp(value->name, "encoder.logits") != 0)
        return;
    logits->n_seen++;
    logits->rows = value->rows;
    logits->cols = value->cols;
    logits->data = malloc((size_t)value->rows * (size_t)value->cols * sizeof(float));
    for (int i = 0; i < value->rows; i++)
        memcpy(logits->data + (size_t)i * (size_t)value->cols,
               value->data + (size_t)i * (size_t)value->stride, (size_t)value->cols * sizeof(float));
}

static double probability(const struct logits *l, int row, int id)
{
    const float *x = l->data + (size_t)row * (size_t)l->cols;
    double sum = 0;
    for (int j = 0; j < l->cols; j++)
        sum += exp((double)x[j] - (double)x[id]);
    return 1 / sum;
}

static void test_probabilities(const struct tfm_model *model)
{
    struct text text;
    struct logits logits = { 0 };
    int vocab = model->config.vocab_size;
    CHECK_INT(predict(&text, model, TEXT, 1000, TFM_JSON), TFM_OK, "all pieces are predicted");
    CHECK_INT(tfm_observe(model, TEXT, NULL, see, &logits, &err), TFM_OK, "and observed");
    CHECK(logits.n_seen == 1 && logits.n_decoder == 0 && logits.cols == vocab, "logits of an encoder alone");
    json_t *root = json_loadb(text.data, text.size, 0, NULL), *masks = json_object_get(root, "masks");
    CHECK_STR(json_string_value(json_object_get(root, "text")), TEXT, "the line");
    CHECK_INT((long long)json_array_size(masks), 2, "two masks");
    for (size_t m = 0; m < json_array_size(masks); m++) {
        const json_t *mask = json_array_get(masks, m), *list = json_object_get(mask, "predictions");
        int place = (int)json_integer_value(json_object_get(mask, "place"));
        double sum = 0, worst = 0, before = 2;
        int n_wrong = (int)json_array_size(list) != vocab;
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *one = json_array_get(list, k);
            int id = (int)json_integer_value(json_object_get(one, "id"));
            double p = json_real_value(json_object_get(one, "probability"));
            const char *piece = json_string_value(json_object_get(one, "piece"));
            worst = check_worse(worst, fabs(p / probability(&logits, place, id) - 1));
            n_wrong += p > before || strcmp(piece, spm_piece(model->source, id)) != 0;
            before = p;
            sum += p;
        }
        CHECK_NEAR(sum, 1, 1e-6, "probabilities of mask %zu sum to 1", m);
        CHECK(worst < 1e-6, "they are the softmax of its logits (%.1e)", worst);
        CHECK_INT(n_wrong, 0, "every piece once, the most probable first");
    }
    json_decref(root);
    free(text.data);
    free(logits.data);
}

static void test_text(const struct tfm_model *model)
{
    struct text text, json;
    CHECK_INT(predict(&text, model, "bado <mask>.", 3, TFM_TEXT), TFM_OK, "predictions as text");
    CHECK_INT(predict(&json, model, "bado <mask>.", 1, TFM_JSON), TFM_OK, "and as JSON");
    int n = 0;
    for (const char *c = text.data; *c != '\0'; c++)
        n += *c == '\n';
    CHECK_INT(n, 4, "the line and three more");
    CHECK(strncmp(text.data, "bado <mask>.\n  0.", 17) == 0, "beginning with a probability");
    json_t *root = json_loadb(json.data, json.size, 0, NULL);
    const json_t *best =
        json_array_get(json_object_get(json_array_get(json_object_get(root, "masks"), 0), "predictions"), 0);
    const char *piece = json_string_value(json_object_get(best, "piece"));
    char expected[200];
    bool is_start = strncmp(piece, OBSERVE_SPACE, 3) == 0;
    snprintf(expected, sizeof(expected), "bado%s%s.", is_start ? " " : "", is_start ? piece + 3 : piece);
    CHECK_STR(json_string_value(json_object_get(best, "text")), expected,
              "the text is filled with the piece");
    CHECK(strstr(text.data, expected) != NULL, "in both formats");
    json_decref(root);
    free(text.data);
    free(json.data);

    CHECK_INT(predict(&text, model, TEXT, 1, TFM_TEXT), TFM_OK, "two masks as text");
    const char *one = strstr(text.data, "  mask 1\n"), *two = strstr(text.data, "  mask 2\n");
    CHECK(one != NULL && two > one && strstr(one, " navermur <mask>.") < two,
          "each has a heading and hides the other");
    free(text.data);
}

/* ---- everywhere alike ---- */

static void test_tiers(const char *folder)
{
    struct text expected, found;
    const enum tfm_precision precisions[] = { TFM_PRECISION_FP32, TFM_PRECISION_INT8 };
    for (int i = 0; i < 2; i++) {
        for (int tier = CPU_REF; tier < CPU_N_TIERS; tier++) {
            const char *name = cpu_tier_name((enum cpu_tier)tier);
            struct tfm_model *model;
            enum cpu_tier chosen;
            if (cpu_choose(name, &chosen, &err) != TFM_OK) {
                SKIP("this machine has no %s", name);
                continue;
            }
            tfm_set_cpu(name, &err);
            if (!CHECK(tfm_model_open_as(&model, folder, precisions[i], &err) == TFM_OK &&
                           predict(tier == CPU_REF ? &expected : &found, model, TEXT, 1000, TFM_JSON) ==
                               TFM_OK,
                       "predictions of the tier %s", name))
                return;
            if (tier != CPU_REF) {
                CHECK(found.size == expected.size && memcmp(found.data, expected.data, found.size) == 0,
                      "the tier %s predicts what ref predicts, in %s", name, i == 0 ? "fp32" : "int8");
                free(found.data);
            }
            tfm_model_free(model);
        }
        free(expected.data);
    }
    tfm_set_cpu("auto", &err);
}

/* ---- refusals ---- */

static void test_refused(const struct tfm_model *model, const struct tfm_model *pair)
{
    struct text text;
    CHECK(predict(&text, model, "bado kile", 5, TFM_TEXT) == TFM_EINVAL && text.size == 0, "no mask: %s",
          err.message);
    free(text.data);
    CHECK(predict(&text, pair, TEXT, 5, TFM_TEXT) == TFM_EINVAL &&
              strstr(err.message, "encoder-decoder") != NULL,
          "a model that translates: %s", err.message);
    free(text.data);
    CHECK_INT(predict(&text, model, TEXT, 0, TFM_TEXT), TFM_EINVAL, "no predictions: %s", err.message);
    free(text.data);
    CHECK_INT(predict(&text, model, TEXT, 5, TFM_NPY), TFM_EINVAL, "another format: %s", err.message);
    free(text.data);

    struct tfm_translate_options options;
    struct tfm_translator *translator;
    tfm_translate_options_init(&options);
    CHECK_INT(tfm_translator_new(&translator, model, &options, &err), TFM_EINVAL, "it does not translate");
    CHECK(strstr(err.message, "fills gaps") != NULL, "and the message says what it does: %s", err.message);

    struct tfm_attention_options how;
    tfm_attention_options_init(&how);
    how.format = TFM_JSON;
    how.part = TFM_CROSS;
    FILE *out = open_memstream(&text.data, &text.size);
    CHECK(tfm_attention(model, "bado", NULL, &how, out, &err) == TFM_EINVAL &&
              strstr(err.message, "the part encoder") != NULL,
          "it has no cross-attention: %s", err.message);
    how.part = TFM_PART_AUTO;
    CHECK_INT(tfm_attention(model, "bado <mask>", NULL, &how, out, &err), TFM_OK, "but its own, unasked");
    fclose(out);
    CHECK(strstr(text.data, "\"target\": []") != NULL && strstr(text.data, "\"<mask>\", \"</s>\"") != NULL,
          "of all places, and no target");
    free(text.data);
}

static void test_memory(const struct tfm_model *model)
{
    enum tfm_status status = TFM_ENOMEM;
    int n = 0;
    bool told = true;
    for (; status != TFM_OK && n < 500; n++) {
        struct text text;
        mem_fail_after(n);
        status = predict(&text, model, TEXT, 2, TFM_JSON);
        mem_fail_after(-1);
        told = told && (status == TFM_OK || status == TFM_ENOMEM);
        free(text.data);
    }
    CHECK(told && status == TFM_OK && n > 3, "each of %d allocations may fail", n - 1);
}

int main(void)
{
    struct tfm_model *model =
        tiny_open("encoder", &(struct tiny_options){ .seed = 3, .pre_norm = true, .is_encoder = true });
    struct tfm_model *untied = tiny_open(
        "untied",
        &(struct tiny_options){
            .seed = 4, .is_encoder = true, .tie = TFM_TIE_NONE, .positions = TFM_POSITIONS_RELATIVE });
    struct tfm_model *pair = tiny_open("pair", &(struct tiny_options){ .seed = 3 });
    test_pieces(model);
    test_probabilities(model);
    test_probabilities(untied);
    test_text(model);
    test_tiers(model->folder);
    test_tiers(untied->folder);
    test_refused(model, pair);
    test_memory(model);
    tfm_model_free(model);
    tfm_model_free(untied);
    tfm_model_free(pair);
    return check_done();
}
