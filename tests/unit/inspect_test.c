/*
 * inspect_test.c: what is said of a model, what an observer is shown, and attention in each format, on a tiny
 * model with random weights. That observing changes nothing is one of the laws of laws_test.c.
 */
#include <jansson.h>
#include <locale.h>
#include <string.h>

#include "model/decoder.h"
#include "tiny_model.h"

#define SOURCE "bado kile navermur."
#define TARGET "kile bado"

static struct tfm_model *model;
static struct tfm_error err;

/* ---- what a call writes ---- */

struct text {
    char *data;
    size_t size;
};

static FILE *text_open(struct text *text)
{
    *text = (struct text){ NULL, 0 };
    return open_memstream(&text->data, &text->size);
}

static struct text attention_text(const char *source, const char *target,
                                  struct tfm_attention_options options)
{
    struct text text;
    FILE *out = text_open(&text);
    if (!CHECK_INT(tfm_attention(model, source, target, &options, out, &err), TFM_OK, "attention is written"))
        check_note("%s", err.message);
    fclose(out);
    return text;
}

static struct tfm_attention_options choose(enum tfm_part part, int layer, int head, enum tfm_format format)
{
    struct tfm_attention_options options;
    tfm_attention_options_init(&options);
    options.part = part;
    options.layer = layer;
    options.head = head;
    options.format = format;
    return options;
}

static json_t *attention_json(const char *source, const char *target, enum tfm_part part, int layer, int head)
{
    struct text text = attention_text(source, target, choose(part, layer, head, TFM_JSON));
    json_error_t where;
    json_t *root = json_loadb(text.data, text.size, 0, &where);
    if (!CHECK(root != NULL, "JSON is well-formed"))
        check_note("line %d: %s", where.line, where.text);
    free(text.data);
    return root;
}

static double weight_at(const json_t *root, int layer, int head, int query, int key)
{
    const json_t *layers = json_object_get(root, "layers");
    const json_t *heads = json_object_get(json_array_get(layers, (size_t)layer), "heads");
    const json_t *rows = json_object_get(json_array_get(heads, (size_t)head), "weights");
    return json_number_value(json_array_get(json_array_get(rows, (size_t)query), (size_t)key));
}

static const char *piece_at(const json_t *root, const char *axis, size_t i)
{
    return json_string_value(json_array_get(json_object_get(root, axis), i));
}

static int length_of(const json_t *root, const char *axis)
{
    return (int)json_array_size(json_object_get(root, axis));
}

/* ---- tfm_describe ---- */

static void test_describe_text(void)
{
    struct text text;
    FILE *out = text_open(&text);
    CHECK_INT(tfm_describe(model, TFM_TEXT, out, &err), TFM_OK, "a model is described as text");
    fclose(out);
    static const char *const parts[] = {
        "layers              encoder 2, decoder 2\n",
        "attention heads     3 of width 8\n",
        "post-norm",
        "relu",
        "a matrix each for source, target and output",
        "weights.safetensors.gz",
        "lm_head.weight",
        "model.decoder.layers.1.encoder_attn.v_proj.bias",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        CHECK(strstr(text.data, parts[i]) != NULL, "it says: %s", strtok(strdupa(parts[i]), "\n"));
    free(text.data);
    CHECK_INT(tfm_describe(model, TFM_NPY, stderr, &err), TFM_EINVAL, "but not as an array");
}

static void test_describe_json(void)
{
    struct text text;
    FILE *out = text_open(&text);
    CHECK_INT(tfm_describe(model, TFM_JSON, out, &err), TFM_OK, "a model is described as JSON");
    fclose(out);
    json_t *root = json_loadb(text.data, text.size, 0, NULL);
    free(text.data);
    const json_t *config = json_object_get(root, "config");
    CHECK_INT(json_integer_value(json_object_get(config, "d_model")), 24, "with its config.json");
    const json_t *tensors = json_object_get(root, "tensors");
    CHECK_INT(json_array_size(tensors), model->params.n, "with all its tensors");
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(tensors); i++)
        sum += json_integer_value(json_object_get(json_array_get(tensors, i), "parameters"));
    const json_t *counts = json_object_get(root, "parameters");
    CHECK_INT(json_integer_value(json_object_get(counts, "total")), sum, "whose parameters add up");
    CHECK_INT(sum, (long long)model->params.size, "to those of the model");

    const json_t *matrix = NULL;
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *tensor = json_array_get(tensors, i);
        if (strcmp(json_string_value(json_object_get(tensor, "name")), "model.encoder.layers.0.fc1.weight") ==
            0)
            matrix = tensor;
    }
    const json_t *shape = json_object_get(matrix, "shape");
    CHECK_INT(json_integer_value(json_array_get(shape, 0)), 40, "rows of a matrix");
    CHECK_INT(json_integer_value(json_array_get(shape, 1)), 24, "columns");
    CHECK_INT(json_integer_value(json_object_get(matrix, "bytes")), 40 * 24 * 4, "bytes");
    double limit = sqrt(6.0 / 64); /* Glorot's: a uniform value has mean 0 and deviation limit / sqrt(3) */
    CHECK_NEAR(json_number_value(json_object_get(matrix, "mean")), 0, 0.05 * limit, "mean");
    CHECK_NEAR(json_number_value(json_object_get(matrix, "deviation")), limit / sqrt(3), 0.05 * limit,
               "deviation");
    CHECK_NEAR(json_number_value(json_object_get(matrix, "min")), -limit, 0.05 * limit, "smallest value");
    CHECK_NEAR(json_number_value(json_object_get(matrix, "max")), limit, 0.05 * limit, "largest value");
    json_decref(root);
}

/* ---- tfm_observe ---- */

struct seen {
    int n, n_cross_heads;
    int rows, cols; /* of the logits */
    int best[400];  /* of each row of them, <unk> apart */
    bool is_finite;
};

static void look(void *user, const struct tfm_value *value)
{
    struct seen *seen = user;
    seen->n++;
    for (int i = 0; i < value->rows; i++) {
        for (int j = 0; j < value->cols; j++)
            seen->is_finite = seen->is_finite && isfinite(value->data[i * value->stride + j]);
    }
    seen->n_cross_heads += strcmp(value->name, "decoder.layers.1.encoder_attn.weights") == 0 &&
                           value->layer == 1 && value->head == seen->n_cross_heads;
    if (strcmp(value->name, "decoder.logits") != 0)
        return;
    seen->rows = value->rows;
    seen->cols = value->cols;
    for (int i = 0; i < value->rows && i < 400; i++) {
        const float *row = value->data + (size_t)i * (size_t)value->stride;
        int best = model->config.unk_token_id == 0;
        for (int j = 0; j < value->cols; j++) {
            if (row[j] > row[best] && j != model->config.unk_token_id)
                best = j;
        }
        seen->best[i] = best;
    }
}

static void test_observe(void)
{
    struct seen seen = { .is_finite = true };
    CHECK_INT(tfm_observe(model, SOURCE, TARGET, look, &seen, &err), TFM_OK, "a pair is observed");
    CHECK(seen.n > 40 && seen.is_finite, "many values, all finite");
    CHECK_INT(seen.n_cross_heads, 3, "every head of a layer, in order");
    CHECK_INT(seen.cols, model->config.vocab_size, "the logits are as wide as the vocabulary");
    struct ints ids = { 0 };
    spm_encode(model->target, TARGET, strlen(TARGET), &ids, &err);
    CHECK_INT(seen.rows, (long long)ids.n + 1, "and have a row a piece of the target");
    ints_release(&ids);
}

/* The greedy translation is made of the best piece at each step, so forcing it gives just these again. */
static void test_observe_translation(void)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator;
    const struct tfm_translation *result;
    const char *line = SOURCE;
    tfm_translate_options_init(&options);
    options.beam_size = options.threads = 1;
    if (!CHECK(tfm_translator_new(&translator, model, &options, &err) == TFM_OK &&
                   tfm_translate(translator, &line, 1, &result, &err) == TFM_OK,
               "greedy search"))
        return;
    struct seen seen = { .is_finite = true };
    CHECK_INT(tfm_observe(model, SOURCE, NULL, look, &seen, &err), TFM_OK,
              "without a target it is translated");
    const struct tfm_hypothesis *greedy = &result[0].hypotheses[0];
    int n_added = greedy->pieces[greedy->n_pieces - 1] != model->config.eos_token_id;
    CHECK_INT(seen.rows, greedy->n_pieces + n_added, "into as many pieces, </s> among them");
    CHECK(greedy->n_pieces > 4, "more than four (%d)", greedy->n_pieces);
    int differ = 0;
    for (int i = 0; i < greedy->n_pieces && i < 400; i++)
        differ += seen.best[i] != greedy->pieces[i];
    CHECK_INT(differ, 0, "which are the best at each step");
    tfm_translator_free(translator);
}

static void test_odd_input(void)
{
    struct seen seen = { .is_finite = true };
    CHECK_INT(tfm_observe(model, " ", NULL, look, &seen, &err), TFM_OK, "a blank source");
    CHECK(seen.rows == 1 && seen.is_finite, "of which </s> is left");
    CHECK_INT(tfm_observe(model, "ba\xff", "\xc3", look, &seen, &err), TFM_OK, "malformed UTF-8");
    char *text = malloc(20001);
    for (int i = 0; i < 20000; i++)
        text[i] = "x "[i % 2];
    text[20000] = '\0';
    CHECK_INT(tfm_observe(model, text, NULL, look, &seen, &err), TFM_EINVAL, "a source that is too long");
    CHECK(strstr(err.message, "more than 1000") != NULL, "says what is allowed");
    CHECK_INT(tfm_observe(model, SOURCE, text, look, &seen, &err), TFM_EINVAL, "a target that is too long");
    free(text);
}

/* A pair as long as it may be, so that the scratch memory set aside for it is put to the test. */
static void test_longest(void)
{
    struct seen seen = { .is_finite = true };
    struct str text = { 0 };
    struct ints ids = { 0 };
    for (uint64_t i = 0; ids.n < 980; i++) {
        tiny_sentence(&text, rng_key(5, i, 0, 0), 1);
        str_add(&text, " ", 1, &err);
        ids.n = 0;
        spm_encode(model->source, text.data, text.len, &ids, &err);
    }
    CHECK_INT(tfm_observe(model, text.data, text.data, look, &seen, &err), TFM_OK,
              "a pair of %zu pieces each", ids.n);
    CHECK(seen.rows == (int)ids.n + 1 && seen.is_finite, "is observed as a whole");
    ints_release(&ids);
    str_release(&text);
}

/* ---- tfm_attention ---- */

static void test_json(enum tfm_part part, const char *name)
{
    json_t *root = attention_json(SOURCE, TARGET, part, -1, -1);
    int n_queries = length_of(root, "queries"), n_keys = length_of(root, "keys"), wrong = 0;
    for (int place = 0; place < 2 * 3 * n_queries; place++) {
        int layer = place / (3 * n_queries), head = place / n_queries % 3, query = place % n_queries;
        double sum = 0;
        for (int k = 0; k < n_keys; k++) {
            double weight = weight_at(root, layer, head, query, k);
            sum += weight;
            wrong += weight < 0 || (part == TFM_DECODER && k > query && weight != 0);
        }
        wrong += fabs(sum - 1) > 1e-5;
    }
    CHECK_INT(wrong, 0, "%s: %d x %d weights of 2 layers and 3 heads add up to 1 in each row", name,
              n_queries, n_keys);
    CHECK_STR(json_string_value(json_object_get(root, "part")), name, "%s: named", name);
    CHECK_INT(n_queries, length_of(root, part == TFM_ENCODER ? "source" : "target"), "%s: a query a piece",
              name);
    CHECK_INT(n_keys, length_of(root, part == TFM_DECODER ? "target" : "source"), "%s: a key a piece", name);
    CHECK_STR(piece_at(root, "queries", (size_t)n_queries - 1), "</s>", "%s: the last query is </s>", name);
    if (part == TFM_DECODER) {
        CHECK_STR(piece_at(root, "keys", 0), "<start>", "the decoder reads the start symbol");
        CHECK_STR(piece_at(root, "keys", 1), piece_at(root, "target", 0), "and then the target");
    } else {
        CHECK_STR(piece_at(root, "keys", 0), piece_at(root, "source", 0), "%s: keys are the source", name);
    }
    json_decref(root);
}

/* One layer and head must be the same numbers as among all of them; so must be the other formats. */
static void test_formats(void)
{
    json_t *all = attention_json(SOURCE, TARGET, TFM_CROSS, -1, -1);
    json_t *one = attention_json(SOURCE, TARGET, TFM_CROSS, 1, 2);
    int n_queries = length_of(all, "queries"), n_keys = length_of(all, "keys");
    CHECK(weight_at(one, 0, 0, 1, 1) == weight_at(all, 1, 2, 1, 1), "one layer and head are those of all");

    struct text npy = attention_text(SOURCE, TARGET, choose(TFM_CROSS, -1, -1, TFM_NPY));
    char shape[64];
    snprintf(shape, sizeof(shape), "(2, 3, %d, %d, )", n_queries, n_keys);
    CHECK(memmem(npy.data, npy.size, shape, strlen(shape)) != NULL, "the array has the shape %s", shape);
    size_t n = (size_t)(6 * n_queries * n_keys), place = (size_t)((5 * n_queries + 1) * n_keys + 1);
    float value;
    memcpy(&value, npy.data + npy.size - 4 * (n - place), 4);
    CHECK_NEAR(value, weight_at(all, 1, 2, 1, 1), 1e-7, "the array has the same weight");
    free(npy.data);

    struct text tsv = attention_text(SOURCE, TARGET, choose(TFM_CROSS, 1, 2, TFM_TSV));
    char line[200];
    snprintf(line, sizeof(line), "\n1\t2\t1\t%s\t1\t%s\t%.7g\n", piece_at(one, "queries", 1),
             piece_at(one, "keys", 1), weight_at(one, 0, 0, 1, 1));
    CHECK(strstr(tsv.data, line) != NULL, "the table has the same weight:%.*s", (int)strlen(line) - 2,
          line + 1);
    int lines = 0;
    for (size_t i = 0; i < tsv.size; i++)
        lines += tsv.data[i] == '\n';
    CHECK_INT(lines, 1 + n_queries * n_keys, "and a line a weight");
    free(tsv.data);
    json_decref(one);
    json_decref(all);
}

static void test_text(void)
{
    struct text text = attention_text(SOURCE, NULL, choose(TFM_CROSS, -1, -1, TFM_TEXT));
    CHECK(strstr(text.data, "\ncross layer 1, mean of 3 heads\n") != NULL, "text: the mean of a layer");
    free(text.data);
    text = attention_text(SOURCE, TARGET, choose(TFM_ENCODER, 0, -1, TFM_TEXT));
    CHECK(strstr(text.data, "\nencoder layer 0 head 2\n") != NULL, "text: a single head");
    free(text.data);
}

static void test_refused(void)
{
    FILE *out = fopen("/dev/null", "w");
    struct tfm_attention_options options = choose(TFM_CROSS, 2, 0, TFM_TEXT);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, out, &err), TFM_EINVAL,
              "a layer that is not there");
    CHECK_STR(err.message, "there is no layer 2: the decoder has layers 0 to 1 (-1 is all of them)",
              "and why");
    options = choose(TFM_ENCODER, 0, 3, TFM_TEXT);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, out, &err), TFM_EINVAL,
              "a head that is not there");
    CHECK_STR(err.message, "there is no head 3: the encoder has heads 0 to 2 (-1 is all of them)", "and why");
    options = choose(TFM_ENCODER, -2, 0, TFM_TEXT);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, out, &err), TFM_EINVAL, "layer -2");
    options = choose((enum tfm_part)4, 0, 0, TFM_TEXT);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, out, &err), TFM_EINVAL,
              "a part that is not there");
    options = choose(TFM_CROSS, 0, 0, (enum tfm_format)9);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, out, &err), TFM_EINVAL,
              "a format that is not there");
    fclose(out);
}

static void test_full_disk(void)
{
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) {
        SKIP("no /dev/full here");
        return;
    }
    struct tfm_attention_options options = choose(TFM_CROSS, 0, 0, TFM_TEXT);
    CHECK_INT(tfm_attention(model, SOURCE, TARGET, &options, full, &err), TFM_EIO, "a full disk is noticed");
    CHECK(strstr(err.message, "No space") != NULL, "and named: %s", err.message);
    CHECK_INT(tfm_describe(model, TFM_JSON, full, &err), TFM_EIO, "by describe too");
    fclose(full);
}

static void test_locale(void)
{
    struct text before = attention_text(SOURCE, TARGET, choose(TFM_CROSS, 0, 0, TFM_TSV));
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL) {
        SKIP("no locale with a decimal comma here");
    } else {
        struct text after = attention_text(SOURCE, TARGET, choose(TFM_CROSS, 0, 0, TFM_TSV));
        CHECK_STR(after.data, before.data, "numbers have a point in any locale");
        CHECK_STR(localeconv()->decimal_point, ",", "and the caller keeps the locale");
        free(after.data);
        setlocale(LC_ALL, "C");
    }
    free(before.data);
}

/* Every allocation fails once; jansson's and SentencePiece's own are not among them. */
static void test_no_memory(void)
{
    struct tfm_attention_options options = choose(TFM_DECODER, -1, -1, TFM_JSON);
    enum tfm_status status = TFM_ENOMEM;
    long n = 0;
    for (; n < 1000 && status == TFM_ENOMEM; n++) {
        struct text text;
        FILE *out = text_open(&text);
        mem_fail_after(n);
        status = tfm_attention(model, SOURCE, NULL, &options, out, &err);
        mem_fail_after(-1);
        fclose(out);
        free(text.data);
    }
    CHECK_INT(status, TFM_OK, "attention: each of %ld failing allocations is reported", n - 1);
    CHECK(n > 10, "and there are some");
    for (n = 0, status = TFM_ENOMEM; n < 1000 && status == TFM_ENOMEM; n++) {
        struct text text;
        FILE *out = text_open(&text);
        mem_fail_after(n);
        status = tfm_describe(model, TFM_JSON, out, &err);
        mem_fail_after(-1);
        fclose(out);
        free(text.data);
    }
    CHECK_INT(status, TFM_OK, "describe: each of %ld failing allocations is reported", n - 1);
}

int main(void)
{
    struct tiny_options options = { .tie = TFM_TIE_NONE, .seed = 6 };
    model = tiny_open("model", &options);
    test_describe_text();
    test_describe_json();
    test_observe();
    test_observe_translation();
    test_odd_input();
    test_longest();
    test_json(TFM_ENCODER, "encoder");
    test_json(TFM_DECODER, "decoder");
    test_json(TFM_CROSS, "cross");
    test_formats();
    test_text();
    test_refused();
    test_full_disk();
    test_locale();
    test_no_memory();
    tfm_model_free(model);
    return check_done();
}
