/*
 * config.c: config.json to struct config and back. One table lists every field with its kind, its place in
 * the struct and its limits; reading, writing, checking and the refusal of unknown fields all go by it. Two
 * fields of one place (heads and feed-forward widths of encoder and decoder, which Marian's configuration
 * names apart) must agree. A field that came after the first version may be missing, and is then 0, which is what
 * models were before it. The presets are the sizes of `tfm train`; "base" is that of Vaswani et al. 2017,
 * "student" that of the students of Firefox's translation.
 */
#include "model/config.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "nn/activation.h"

enum field_kind {
    FIELD_CHOICE, /* an int, by name */
    FIELD_INT,
    FIELD_REAL,
    FIELD_BOOL,
};

struct choice {
    const char *name; /* NULL ends the list */
    int value;
};

struct field {
    const char *name;
    enum field_kind kind;
    size_t offset; /* in struct config */
    double min, max;
    const struct choice *choices;
    bool is_late; /* may be missing, which is 0 or the choice of 0, and then is not written either */
};

/* Enumerations are read and written as the ints they are. */
_Static_assert(sizeof(enum config_architecture) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum config_task) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_tie) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_activation) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_norm) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_init) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_cell) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_attention_function) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_attention_scale) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_positions) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_arch) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_rnn_cell) == sizeof(int), "an enumeration is an int");
_Static_assert(sizeof(enum tfm_rnn_attention) == sizeof(int), "an enumeration is an int");

static const struct choice architectures[] = { { "encoder-decoder", CONFIG_ENCODER_DECODER },
                                               { "decoder-only", CONFIG_DECODER_ONLY },
                                               { "encoder-only", CONFIG_ENCODER_ONLY },
                                               { NULL, 0 } };
static const struct choice tasks[] = { { "translation", CONFIG_TRANSLATION },
                                       { "language-model", CONFIG_LANGUAGE_MODEL },
                                       { NULL, 0 } };
static const struct choice functions[] = { { "dot", TFM_ATTENTION_DOT },
                                           { "additive", TFM_ATTENTION_ADDITIVE },
                                           { NULL, 0 } };
static const struct choice scales[] = { { "sqrt", TFM_SCALE_SQRT }, { "none", TFM_SCALE_NONE }, { NULL, 0 } };
static const struct choice positions[] = {
    { "sinusoidal", TFM_POSITIONS_HALVES }, { "interleaved", TFM_POSITIONS_INTERLEAVED },
    { "learned", TFM_POSITIONS_LEARNED },   { "rope", TFM_POSITIONS_ROPE },
    { "alibi", TFM_POSITIONS_ALIBI },       { "relative", TFM_POSITIONS_RELATIVE },
    { "none", TFM_POSITIONS_NONE },         { NULL, 0 }
};
/* Where two names have a value, the first is written. */
static const struct choice activations[] = {
    { "relu", TFM_ACTIVATION_RELU },          { "gelu", TFM_ACTIVATION_GELU },
    { "gelu_new", TFM_ACTIVATION_GELU_TANH }, { "swish", TFM_ACTIVATION_SWISH },
    { "silu", TFM_ACTIVATION_SWISH },         { "swiglu", TFM_ACTIVATION_SWIGLU },
    { "geglu", TFM_ACTIVATION_GEGLU },        { NULL, 0 }
};
static const struct choice norms[] = { { "layer", TFM_LAYER_NORM }, { "rms", TFM_RMS_NORM }, { NULL, 0 } };
static const struct choice inits[] = { { "xavier", TFM_INIT_XAVIER },
                                       { "depth-scaled", TFM_INIT_DEPTH_SCALED },
                                       { NULL, 0 } };
static const struct choice cells[] = { { "attention", TFM_CELL_ATTENTION },
                                       { "ssru", TFM_CELL_SSRU },
                                       { NULL, 0 } };
static const struct choice layer_types[] = { { "transformer", TFM_ARCH_TRANSFORMER },
                                             { "rnn", TFM_ARCH_RNN },
                                             { NULL, 0 } };
static const struct choice rnn_cells[] = { { "gru", TFM_RNN_GRU }, { "lstm", TFM_RNN_LSTM }, { NULL, 0 } };
static const struct choice rnn_attentions[] = {
    { "additive", TFM_RNN_ADDITIVE }, { "dot", TFM_RNN_DOT }, { "general", TFM_RNN_GENERAL }, { NULL, 0 }
};
static const struct choice ties[] = {
    { "all", TFM_TIE_ALL }, { "target", TFM_TIE_TARGET }, { "none", TFM_TIE_NONE }, { NULL, 0 }
};

#define MAX_DIM     CONFIG_MAX_DIM
#define MAX_VOCAB   16777216
#define MAX_DROPOUT 0.99

#define CHOICE(name, member, choices)                                             \
    {                                                                             \
        name, FIELD_CHOICE, offsetof(struct config, member), 0, 0, choices, false \
    }
#define LATE_CHOICE(name, member, choices)                                       \
    {                                                                            \
        name, FIELD_CHOICE, offsetof(struct config, member), 0, 0, choices, true \
    }
#define INT(name, member, min, max)                                             \
    {                                                                           \
        name, FIELD_INT, offsetof(struct config, member), min, max, NULL, false \
    }
#define LATE_INT(name, member, min, max)                                       \
    {                                                                          \
        name, FIELD_INT, offsetof(struct config, member), min, max, NULL, true \
    }
#define REAL(name, member, min, max)                                             \
    {                                                                            \
        name, FIELD_REAL, offsetof(struct config, member), min, max, NULL, false \
    }
#define LATE_REAL(name, member, min, max)                                       \
    {                                                                           \
        name, FIELD_REAL, offsetof(struct config, member), min, max, NULL, true \
    }
#define BOOL(name, member)                                                   \
    {                                                                        \
        name, FIELD_BOOL, offsetof(struct config, member), 0, 0, NULL, false \
    }

static const struct field fields[] = {
    CHOICE("architecture", architecture, architectures),
    LATE_CHOICE("task", task, tasks),
    INT("d_model", d_model, 4, MAX_DIM),
    INT("encoder_layers", encoder_layers, 0, CONFIG_MAX_LAYERS),
    INT("decoder_layers", decoder_layers, 0, CONFIG_MAX_LAYERS),
    INT("encoder_attention_heads", heads, 1, MAX_DIM),
    INT("decoder_attention_heads", heads, 1, MAX_DIM),
    LATE_INT("num_key_value_heads", kv_heads, 1, MAX_DIM),
    LATE_CHOICE("attention_function", attention_function, functions),
    LATE_CHOICE("attention_scale", attention_scale, scales),
    LATE_INT("attention_window", attention_window, 1, 1000000),
    INT("encoder_ffn_dim", ffn_dim, 1, MAX_DIM),
    INT("decoder_ffn_dim", ffn_dim, 1, MAX_DIM),
    CHOICE("activation_function", activation, activations),
    BOOL("normalize_before", pre_norm),
    LATE_CHOICE("normalization", norm, norms),
    LATE_CHOICE("decoder_cell", decoder_cell, cells),
    LATE_CHOICE("layer_type", arch, layer_types),
    LATE_CHOICE("rnn_cell", rnn_cell, rnn_cells),
    LATE_CHOICE("rnn_attention", rnn_attention, rnn_attentions),
    REAL("layer_norm_eps", norm_epsilon, 1e-12, 0.1),
    BOOL("scale_embedding", scale_embedding),
    CHOICE("positions", positions, positions),
    LATE_INT("max_position_embeddings", max_positions, 1, MAX_DIM),
    INT("source_vocab_size", source_vocab_size, 2, MAX_VOCAB),
    INT("vocab_size", vocab_size, 2, MAX_VOCAB),
    CHOICE("tie_embeddings", tie, ties),
    INT("eos_token_id", eos_token_id, 0, MAX_VOCAB - 1),
    INT("unk_token_id", unk_token_id, 0, MAX_VOCAB - 1),
    INT("decoder_start_token_id", decoder_start_token_id, 0, MAX_VOCAB - 1),
    LATE_INT("mask_token_id", mask_token_id, 1, MAX_VOCAB - 1),
    REAL("dropout", dropout, 0, MAX_DROPOUT),
    REAL("attention_dropout", attention_dropout, 0, MAX_DROPOUT),
    REAL("activation_dropout", activation_dropout, 0, MAX_DROPOUT),
    LATE_REAL("encoder_layerdrop", encoder_layerdrop, 0, MAX_DROPOUT),
    LATE_REAL("decoder_layerdrop", decoder_layerdrop, 0, MAX_DROPOUT),
    LATE_CHOICE("initialization", init, inits),
};

#define N_FIELDS ((int)(sizeof(fields) / sizeof(fields[0])))

/* Fields outside the table. */
#define VERSION_FIELD  "format_version"
#define TRAINING_FIELD "training"
#define OPTIONAL_FIELD "optional"

static int *int_at(struct config *config, const struct field *field)
{
    return (int *)((char *)config + field->offset);
}

static double *real_at(struct config *config, const struct field *field)
{
    return (double *)((char *)config + field->offset);
}

static bool *bool_at(struct config *config, const struct field *field)
{
    return (bool *)((char *)config + field->offset);
}

static bool is_zero(struct config *config, const struct field *field)
{
    return field->kind == FIELD_REAL ? *real_at(config, field) == 0 : *int_at(config, field) == 0;
}

static const char *choice_name(const struct choice *choices, int value)
{
    for (; choices->name != NULL; choices++) {
        if (choices->value == value)
            return choices->name;
    }
    return NULL;
}

static enum tfm_status read_choice(int *value, const json_t *root, const struct field *field,
                                   const char *path, struct tfm_error *err)
{
    const char *found;
    TRY(json_get_string(root, field->name, &found, path, err));
    char known[200] = "";
    for (const struct choice *c = field->choices; c->name != NULL; c++) {
        if (strcmp(found, c->name) == 0) {
            *value = c->value;
            return TFM_OK;
        }
        size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s\"%s\"", len > 0 ? ", " : "", c->name);
    }
    return err_set(err, TFM_EFORMAT, "%s: %s is \"%.100s\"; this version of tfm knows %s", path, field->name,
                   found, known);
}

/* The field before of the same place, or NULL. */
static const struct field *twin_of(const struct field *field)
{
    bool has_twin = field > fields && field[-1].kind == field->kind && field[-1].offset == field->offset;
    return has_twin ? field - 1 : NULL;
}

static enum tfm_status read_int(int *value, const json_t *root, const struct field *field, const char *path,
                                struct tfm_error *err)
{
    int found;
    TRY(json_get_int(root, field->name, (long)field->min, (long)field->max, &found, path, err));
    const struct field *twin = twin_of(field);
    if (twin != NULL && found != *value)
        return err_set(err, TFM_EFORMAT, "%s: %s is %d and %s is %d; this version of tfm needs them equal",
                       path, twin->name, *value, field->name, found);
    *value = found;
    return TFM_OK;
}

static enum tfm_status read_field(struct config *config, const json_t *root, const struct field *field,
                                  const char *path, struct tfm_error *err)
{
    if (field->is_late && json_object_get(root, field->name) == NULL)
        return TFM_OK; /* it is 0 */
    switch (field->kind) {
    case FIELD_CHOICE: return read_choice(int_at(config, field), root, field, path, err);
    case FIELD_INT: return read_int(int_at(config, field), root, field, path, err);
    case FIELD_REAL:
        return json_get_real(root, field->name, field->min, field->max, real_at(config, field), path, err);
    case FIELD_BOOL: return json_get_bool(root, field->name, bool_at(config, field), path, err);
    }
    assert(!"a kind of field without a reader");
    return TFM_EINVAL;
}

/* First of all, so that a file of a later version is not blamed for what this one does not know. */
static enum tfm_status check_version(const json_t *root, const char *path, struct tfm_error *err)
{
    int version;
    TRY(json_get_int(root, VERSION_FIELD, 1, INT_MAX, &version, path, err));
    if (version > CONFIG_FORMAT_VERSION)
        return err_set(err, TFM_EFORMAT, "%s: written by a newer tfm (format version %d, this one reads %d)",
                       path, version, CONFIG_FORMAT_VERSION);
    return TFM_OK;
}

static bool is_known(const char *name)
{
    for (int i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return true;
    }
    return strcmp(name, VERSION_FIELD) == 0 || strcmp(name, TRAINING_FIELD) == 0 ||
           strcmp(name, OPTIONAL_FIELD) == 0;
}

static enum tfm_status check_names(const json_t *root, const char *path, struct tfm_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)root, name, value)
    {
        if (!is_known(name))
            return err_set(err, TFM_EFORMAT,
                           "%s: unknown field \"%.100s\"; if the model works without it, move it into an "
                           "object named \"" OPTIONAL_FIELD "\"",
                           path, name);
    }
    static const char *const objects[] = { TRAINING_FIELD, OPTIONAL_FIELD };
    for (int i = 0; i < 2; i++) {
        value = json_object_get(root, objects[i]);
        if (value != NULL && !json_is_object(value))
            return err_set(err, TFM_EFORMAT, "%s: \"%s\" should be an object", path, objects[i]);
    }
    return TFM_OK;
}

enum tfm_status config_parse(struct config *config, const json_t *root, const char *path,
                             struct tfm_error *err)
{
    *config = (struct config){ 0 };
    if (!json_is_object(root))
        return err_set(err, TFM_EFORMAT, "%s: should hold one JSON object", path);
    TRY(check_version(root, path, err));
    TRY(check_names(root, path, err));
    for (int i = 0; i < N_FIELDS; i++)
        TRY(read_field(config, root, &fields[i], path, err));
    return config_check(config, path, err);
}

/* Limits of single fields: a config made from the options of a training has not met them yet. */
static enum tfm_status check_limits(struct config *config, const char *path, struct tfm_error *err)
{
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *f = &fields[i];
        if (f->kind != FIELD_INT && f->kind != FIELD_REAL)
            continue;
        double value = f->kind == FIELD_INT ? *int_at(config, f) : *real_at(config, f);
        if (f->is_late && value == 0)
            continue;
        if (!(value >= f->min && value <= f->max))
            return err_set(err, TFM_EFORMAT, "%s: %s is %.10g and should be from %.10g to %.10g", path,
                           f->name, value, f->min, f->max);
    }
    return TFM_OK;
}

static enum tfm_status check_attention(const struct config *c, const char *path, struct tfm_error *err)
{
    if (c->heads % config_kv_heads(c) != 0)
        return err_set(err, TFM_EFORMAT,
                       "%s: num_key_value_heads is %d, which does not divide the %d attention heads evenly",
                       path, c->kv_heads, c->heads);
    if (c->attention_function != TFM_ATTENTION_ADDITIVE)
        return TFM_OK;
    if (c->attention_scale != TFM_SCALE_SQRT)
        return err_set(
            err, TFM_EFORMAT,
            "%s: attention_scale is \"none\", but there is no scale to leave out: attention_function is "
            "\"additive\"",
            path);
    if (c->positions == TFM_POSITIONS_ROPE)
        return err_set(
            err, TFM_EFORMAT,
            "%s: positions is \"rope\", which tells distances by dot products, but attention_function "
            "is \"additive\"",
            path);
    return TFM_OK;
}

static enum tfm_status check_positions(const struct config *c, const char *path, struct tfm_error *err)
{
    if (c->positions == TFM_POSITIONS_LEARNED && c->max_positions == 0)
        return err_set(
            err, TFM_EFORMAT,
            "%s: positions is \"learned\", which needs max_position_embeddings: the rows of the tables",
            path);
    if (c->positions == TFM_POSITIONS_ROPE && c->d_model / c->heads % 2 != 0)
        return err_set(
            err, TFM_EFORMAT,
            "%s: positions is \"rope\", which turns pairs of columns, but a head is %d wide (d_model "
            "is %d, with %d heads)",
            path, c->d_model / c->heads, c->d_model, c->heads);
    return TFM_OK;
}

/* A decoder alone has to see the whole source in its own self-attention; an encoder alone reads one text. */
static enum tfm_status check_stacks(const struct config *c, const char *path, struct tfm_error *err)
{
    enum {
        PAIR = 1 << CONFIG_ENCODER_DECODER,
        DECODER = 1 << CONFIG_DECODER_ONLY,
        ENCODER = 1 << CONFIG_ENCODER_ONLY
    };
    const struct {
        const char *name, *wanted;
        bool is_right;
        unsigned of; /* the architectures */
    } rules[] = {
        { "encoder_layers", "at least 1", c->encoder_layers > 0, PAIR | ENCODER },
        { "decoder_layers", "at least 1", c->decoder_layers > 0, PAIR | DECODER },
        { "encoder_layers", "0", c->encoder_layers == 0, DECODER },
        { "decoder_layers", "0", c->decoder_layers == 0, ENCODER },
        { "task", "left out", c->task == CONFIG_TRANSLATION, PAIR | ENCODER },
        { "tie_embeddings", "\"all\" for the task \"language-model\"",
          c->task == CONFIG_TRANSLATION || c->tie == TFM_TIE_ALL, DECODER },
        { "layer_type", "\"transformer\"", c->arch == TFM_ARCH_TRANSFORMER, DECODER | ENCODER },
        { "decoder_cell", "\"attention\"", c->decoder_cell == TFM_CELL_ATTENTION, DECODER | ENCODER },
        { "attention_window", "left out", c->attention_window == 0, DECODER },
        { "encoder_layerdrop", "0", c->encoder_layerdrop == 0, DECODER },
        { "decoder_layerdrop", "0", c->decoder_layerdrop == 0, ENCODER },
        { "tie_embeddings", "\"all\" or \"none\"", c->tie != TFM_TIE_TARGET, ENCODER },
        { "source_vocab_size", "vocab_size", c->source_vocab_size == c->vocab_size, ENCODER },
        { "mask_token_id", "a piece of the vocabulary, not the first",
          c->mask_token_id > 0 && c->mask_token_id < c->vocab_size, ENCODER },
        { "mask_token_id", "left out", c->mask_token_id == 0, PAIR | DECODER },
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        if (!rules[i].is_right && rules[i].of & 1u << c->architecture)
            return err_set(err, TFM_EFORMAT, "%s: with the architecture \"%s\" %s should be %s", path,
                           choice_name(architectures, c->architecture), rules[i].name, rules[i].wanted);
    }
    return TFM_OK;
}

/* What recurrent layers do not have must not seem to be there. */
static enum tfm_status check_rnn(const struct config *c, const char *path, struct tfm_error *err)
{
    const struct {
        const char *name, *wanted;
        bool is_right;
    } fields_without[] = {
        { "encoder_attention_heads", "1", c->heads == 1 },
        { "num_key_value_heads", "left out", config_kv_heads(c) == 1 },
        { "attention_function", "\"dot\"", c->attention_function == TFM_ATTENTION_DOT },
        { "attention_scale", "\"sqrt\"", c->attention_scale == TFM_SCALE_SQRT },
        { "attention_window", "left out", c->attention_window == 0 },
        { "activation_function", "\"relu\"", c->activation == TFM_ACTIVATION_RELU },
        { "normalize_before", "false", !c->pre_norm },
        { "normalization", "\"layer\"", c->norm == TFM_LAYER_NORM },
        { "decoder_cell", "\"attention\"", c->decoder_cell == TFM_CELL_ATTENTION },
        { "positions", "\"none\"", c->positions == TFM_POSITIONS_NONE },
        { "encoder_layerdrop", "0", c->encoder_layerdrop == 0 },
        { "decoder_layerdrop", "0", c->decoder_layerdrop == 0 },
    };
    for (size_t i = 0; i < sizeof(fields_without) / sizeof(*fields_without) && c->arch == TFM_ARCH_RNN; i++) {
        if (!fields_without[i].is_right)
            return err_set(err, TFM_EFORMAT, "%s: with the layer_type \"rnn\" %s should be %s", path,
                           fields_without[i].name, fields_without[i].wanted);
    }
    return TFM_OK;
}

enum tfm_status config_check(const struct config *config, const char *path, struct tfm_error *err)
{
    struct config c = *config;
    TRY(check_limits(&c, path, err));
    if (c.d_model % 2 != 0)
        return err_set(err, TFM_EFORMAT,
                       "%s: d_model is %d and should be even (sinusoidal positions have two halves)", path,
                       c.d_model);
    if (c.d_model % c.heads != 0)
        return err_set(err, TFM_EFORMAT, "%s: d_model is %d, which %d attention heads do not divide evenly",
                       path, c.d_model, c.heads);
    TRY(check_attention(&c, path, err));
    TRY(check_positions(&c, path, err));
    if (c.tie == TFM_TIE_ALL && c.source_vocab_size != c.vocab_size)
        return err_set(err, TFM_EFORMAT,
                       "%s: tie_embeddings is \"all\", which needs one vocabulary for both sides, but "
                       "source_vocab_size is %d and vocab_size is %d",
                       path, c.source_vocab_size, c.vocab_size);

    TRY(check_stacks(&c, path, err));
    TRY(check_rnn(&c, path, err));

    /* </s> and <unk> stand in both vocabularies, the start symbol only in the target's. */
    int smaller = c.source_vocab_size < c.vocab_size ? c.source_vocab_size : c.vocab_size;
    const struct {
        const char *name;
        int id, size;
    } ids[] = {
        { "eos_token_id", c.eos_token_id, smaller },
        { "unk_token_id", c.unk_token_id, smaller },
        { "decoder_start_token_id", c.decoder_start_token_id, c.vocab_size },
    };
    for (int i = 0; i < 3; i++) {
        if (ids[i].id >= ids[i].size)
            return err_set(err, TFM_EFORMAT, "%s: %s is %d, outside a vocabulary of %d pieces", path,
                           ids[i].name, ids[i].id, ids[i].size);
    }
    return TFM_OK;
}

/* The value with as few digits as tell one float from the next: an option of 0.1f reads 0.1 again. */
static double short_real(double value)
{
    for (int digits = 1; digits <= 9; digits++) {
        char text[40];
        snprintf(text, sizeof(text), "%.*e", digits - 1, value);
        double rounded = strtod(text, NULL); /* with the decimal point of the same locale */
        if ((float)rounded == (float)value)
            return rounded;
    }
    return value;
}

static json_t *field_value(struct config *config, const struct field *field)
{
    switch (field->kind) {
    case FIELD_CHOICE: return json_string(choice_name(field->choices, *int_at(config, field)));
    case FIELD_INT: return json_integer(*int_at(config, field));
    case FIELD_REAL: return json_real(short_real(*real_at(config, field)));
    case FIELD_BOOL: return json_boolean(*bool_at(config, field));
    }
    return NULL;
}

/* With 15 digits, which any decimal number survives; json_write's 17 make 0.10000000000000001 of 0.1. */
static enum tfm_status write_text(const json_t *root, const char *path, struct tfm_error *err)
{
    struct str line = { 0 };
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    enum tfm_status status = text != NULL ? str_printf(&line, err, "%s\n", text)
                                          : err_set(err, TFM_ENOMEM, "no memory to write %s", path);
    free(text); /* it is jansson's */
    if (status == TFM_OK)
        status = file_write(path, line.data, line.len, err);
    str_release(&line);
    return status;
}

enum tfm_status config_write(const struct config *config, const json_t *training, const char *path,
                             struct tfm_error *err)
{
    TRY(config_check(config, path, err));
    struct config c = *config;
    json_t *root = json_object();
    /* Each json_object_set_new refuses a NULL, so one test at the end covers the values too. */
    int failed = json_object_set_new(root, VERSION_FIELD, json_integer(CONFIG_FORMAT_VERSION));
    for (int i = 0; i < N_FIELDS; i++) {
        if (fields[i].is_late && is_zero(&c, &fields[i]))
            continue; /* so that earlier versions read the model, too */
        failed |= json_object_set_new(root, fields[i].name, field_value(&c, &fields[i]));
    }
    if (training != NULL)
        failed |= json_object_set(root, TRAINING_FIELD, (json_t *)training);
    enum tfm_status status =
        failed ? err_set(err, TFM_ENOMEM, "no memory to write %s", path) : write_text(root, path, err);
    json_decref(root);
    return status;
}

static bool same_value(struct config *a, struct config *b, const struct field *field)
{
    switch (field->kind) {
    case FIELD_CHOICE:
    case FIELD_INT: return *int_at(a, field) == *int_at(b, field);
    case FIELD_REAL: return *real_at(a, field) == *real_at(b, field);
    case FIELD_BOOL: return *bool_at(a, field) == *bool_at(b, field);
    }
    return false;
}

static const struct field *find_field(const char *name)
{
    const struct field *field = fields;
    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

const char *config_choice(const struct config *config, const char *name)
{
    struct config c = *config;
    const struct field *field = find_field(name);
    return choice_name(field->choices, *int_at(&c, field));
}

const char *config_difference(const struct config *a, const struct config *b)
{
    struct config x = *a, y = *b;
    for (int i = 0; i < N_FIELDS; i++) {
        if (!same_value(&x, &y, &fields[i]))
            return fields[i].name;
    }
    return NULL;
}

const char *config_other_use(const struct config *a, const struct config *b)
{
    static const char *const names[] = { "encoder_attention_heads", "attention_function", "attention_scale",
                                         "activation_function",     "normalize_before",   "normalization",
                                         "scale_embedding" };
    struct config x = *a, y = *b;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && a->arch == b->arch; i++) {
        if (!same_value(&x, &y, find_field(names[i])))
            return names[i];
    }
    return NULL;
}

/* Of the feed-forward layer, or of all gates of a recurrent cell. */
static int inner_dim(const struct config *config)
{
    if (config->arch == TFM_ARCH_RNN)
        return config->d_model * (config->rnn_cell == TFM_RNN_LSTM ? 4 : 3);
    return config->ffn_dim;
}

size_t config_inner_size(const struct config *config)
{
    int before = config->arch == TFM_ARCH_RNN ? 1 : activation_width(config->activation);
    return (size_t)inner_dim(config) * (size_t)(before + 1);
}

int config_alignment_layers(const struct config *config)
{
    return config_attention_layers(config,
                                   config->architecture == CONFIG_DECODER_ONLY ? TFM_DECODER : TFM_CROSS);
}

int config_attention_layers(const struct config *config, enum tfm_part part)
{
    if (config->arch == TFM_ARCH_RNN)
        return part == TFM_CROSS ? 1 : 0;
    if (part == TFM_CROSS && config->architecture == CONFIG_DECODER_ONLY)
        return 0;
    if (part == TFM_DECODER && config->decoder_cell == TFM_CELL_SSRU)
        return 0;
    return part == TFM_ENCODER ? config->encoder_layers : config->decoder_layers;
}

const char *config_part_name(enum tfm_part part)
{
    static const char *const names[] = { "encoder", "decoder", "cross" };
    return names[part];
}

bool config_preset(struct config *config, const char *name)
{
    static const struct preset {
        const char *name;
        int encoder_layers, decoder_layers, d_model, ffn_dim, heads;
        bool pre_norm;
        enum tfm_cell cell;
        enum tfm_positions positions;
        double dropout;
    } presets[] = {
        { "tiny", 4, 4, 128, 256, 4, true, TFM_CELL_ATTENTION, TFM_POSITIONS_ROPE, 0.15 },
        { "small", 6, 2, 256, 1024, 8, true, TFM_CELL_ATTENTION, TFM_POSITIONS_ROPE, 0.1 },
        { "base", 6, 6, 512, 2048, 8, true, TFM_CELL_ATTENTION, TFM_POSITIONS_HALVES, 0.1 },
        { "student", 6, 2, 256, 1536, 8, false, TFM_CELL_SSRU, TFM_POSITIONS_HALVES, 0 },
    };
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        const struct preset *p = &presets[i];
        if (strcmp(p->name, name) != 0)
            continue;
        *config = (struct config){
            .encoder_layers = p->encoder_layers,
            .decoder_layers = p->decoder_layers,
            .d_model = p->d_model,
            .heads = p->heads,
            .ffn_dim = p->ffn_dim,
            .activation = TFM_ACTIVATION_RELU,
            .pre_norm = p->pre_norm,
            .decoder_cell = p->cell,
            .positions = p->positions,
            .norm_epsilon = 1e-5,
            .scale_embedding = true,
            .tie = TFM_TIE_ALL,
            .eos_token_id = 0,
            .unk_token_id = 1,
            .decoder_start_token_id = 0,
            .dropout = p->dropout,
        };
        return true;
    }
    return false;
}
