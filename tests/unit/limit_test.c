/*
 * limit_test.c: numbers and choices that a program gives and that make no sense are refused by name, by every
 * function that takes some: choices outside of their enumeration, NaN and infinities, lists that are not there.
 */
#include "base/limit.h"

#include <math.h>

#include "base/file.h"
#include "check.h"

static struct tfm_error err;

static void test_table(void)
{
    const struct limit limits[] = { { "first", 1, 0, 1 }, { "second", 2.5, 2.5, HUGE_VAL } };
    CHECK_INT(LIMIT_CHECK(limits, &err), TFM_OK, "numbers at the ends of their ranges");
    const double outside[] = { -1, 2, (double)NAN, HUGE_VAL, -HUGE_VAL };
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        struct limit bad[] = { limits[1], { "bad", outside[i], 0, 1 } };
        CHECK_INT(LIMIT_CHECK(bad, &err), TFM_EINVAL, "%g is not from 0 to 1: %s", outside[i], err.message);
    }
    struct limit endless = { "endless", HUGE_VAL, 0, HUGE_VAL };
    CHECK_INT(limit_check(&endless, 1, &err), TFM_EINVAL, "an infinity is refused where there is no end");
    CHECK_STR(err.message, "endless is inf; it can be a number from 0 up", "and told without one");
    CHECK_INT(limit_check(&endless, 1, NULL), TFM_EINVAL, "nobody has to want the sentence");
}

/* ---- a training ---- */

struct field {
    const char *name; /* as messages have it */
    size_t offset;
    char type; /* of 'e'num, 'f'loat, 'd'ouble */
};
#define FIELD(name, field, type)                              \
    {                                                         \
        name, offsetof(struct tfm_train_options, field), type \
    }

static const struct field fields[] = {
    FIELD("norm_position", norm_position, 'e'),
    FIELD("norm", norm, 'e'),
    FIELD("activation", activation, 'e'),
    FIELD("init", init, 'e'),
    FIELD("dec_cell", dec_cell, 'e'),
    FIELD("arch", arch, 'e'),
    FIELD("rnn_cell", rnn_cell, 'e'),
    FIELD("rnn_attention", rnn_attention, 'e'),
    FIELD("tie", tie, 'e'),
    FIELD("positions", positions, 'e'),
    FIELD("attention_function", attention_function, 'e'),
    FIELD("attention_scale", attention_scale, 'e'),
    FIELD("lr_decay", lr_decay, 'e'),
    FIELD("lr_warmup.unit", lr_warmup.unit, 'e'),
    FIELD("after.unit", after.unit, 'e'),
    FIELD("disp_freq.unit", disp_freq.unit, 'e'),
    FIELD("valid_freq.unit", valid_freq.unit, 'e'),
    FIELD("save_freq.unit", save_freq.unit, 'e'),
    FIELD("gemm", gemm, 'e'),
    FIELD("--max-length-ratio", max_length_ratio, 'd'),
    FIELD("--source-sampling", source_sampling, 'f'),
    FIELD("--target-sampling", target_sampling, 'f'),
    FIELD("--dropout", dropout, 'f'),
    FIELD("--attention-dropout", attention_dropout, 'f'),
    FIELD("--activation-dropout", activation_dropout, 'f'),
    FIELD("--layer-drop", layer_drop, 'f'),
    FIELD("--learn-rate", learn_rate, 'd'),
    FIELD("--lr-warmup", lr_warmup.amount, 'd'),
    FIELD("--label-smoothing", label_smoothing, 'f'),
    FIELD("--mask-rate", mask_rate, 'd'),
    FIELD("--r-drop", r_drop, 'f'),
    FIELD("--clip-norm", clip_norm, 'f'),
    FIELD("--weight-decay", weight_decay, 'f'),
    FIELD("--after", after.amount, 'd'),
    FIELD("--disp-freq", disp_freq.amount, 'd'),
    FIELD("--valid-freq", valid_freq.amount, 'd'),
    FIELD("--save-freq", save_freq.amount, 'd'),
    FIELD("--exponential-smoothing", exponential_smoothing, 'f'),
};

static void set_field(struct tfm_train_options *o, const struct field *field, double value)
{
    void *place = (char *)o + field->offset;
    float number = (float)value;
    int choice = field->type == 'e' ? (int)value : 0;
    if (field->type == 'e')
        memcpy(place, &choice, sizeof(choice));
    else if (field->type == 'f')
        memcpy(place, &number, sizeof(number));
    else
        memcpy(place, &value, sizeof(value));
}

static const struct tfm_corpus corpus = { .tsv = "nowhere.tsv" };

static struct tfm_train_options training(void)
{
    struct tfm_train_options o;
    tfm_train_options_init(&o);
    o.model = check_path("model");
    o.corpora = &corpus;
    o.n_corpora = 1;
    return o;
}

static void check_refused(const struct tfm_train_options *o, const char *name, const char *value)
{
    char begin[100];
    snprintf(begin, sizeof(begin), "%s is %s", name, value);
    err.message[0] = '\0';
    CHECK(tfm_train(o, &err) == TFM_EINVAL && strncmp(err.message, begin, strlen(begin)) == 0, "%s: %s",
          begin, err.message);
}

static void test_training(void)
{
    struct tfm_train_options o = training();
    CHECK_INT(tfm_train(&o, &err), TFM_EIO, "sound options come as far as the corpus: %s", err.message);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        bool is_choice = fields[i].type == 'e';
        const double bad[] = { is_choice ? 99 : (double)NAN, is_choice ? -1 : HUGE_VAL };
        const char *const names[] = { is_choice ? "99" : "nan", is_choice ? "-1" : "inf" };
        for (int j = 0; j < 2; j++) {
            o = training();
            set_field(&o, &fields[i], bad[j]);
            check_refused(&o, fields[i].name, names[j]);
        }
    }
    o = training();
    o.dropout = (float)-HUGE_VAL;
    check_refused(&o, "--dropout", "-inf");
}

static void test_head_losses(void)
{
    struct tfm_head_loss loss = { .part = (enum tfm_part)99 };
    struct tfm_train_options o = training();
    o.n_head_losses = 1;
    check_refused(&o, "n_head_losses", "1, but head_losses is NULL");
    o.head_losses = &loss;
    check_refused(&o, "the part of a head loss", "99");
    loss = (struct tfm_head_loss){ .kind = (enum tfm_head_loss_kind) - 1 };
    check_refused(&o, "the kind of a head loss", "-1");
    o.n_head_losses = 65;
    check_refused(&o, "n_head_losses (--head-loss)", "65");
    CHECK(!file_exists(o.model), "no folder was made");
}

/* ---- other functions ---- */

#define REFUSED(call, text) \
    CHECK((call) == TFM_EINVAL && strstr(err.message, text) != NULL, "%s: %s", text, err.message)

static void test_opening(void)
{
    struct tfm_model *model;
    struct tfm_open_options o;
    REFUSED(tfm_model_open_as(&model, "models/en-de", (enum tfm_precision)77, &err), "precision is 77");
    REFUSED(tfm_model_open_as(&model, "models/en-de", (enum tfm_precision) - 1, &err), "precision is -1");
    tfm_open_options_init(&o);
    o.gemm = (enum tfm_gemm)99;
    REFUSED(tfm_model_open_with(&model, "models/en-de", &o, &err), "gemm is 99");
    tfm_open_options_init(&o);
    o.max_positions = -1;
    REFUSED(tfm_model_open_with(&model, "models/en-de", &o, &err), "max_positions is -1");
}

static void test_converting(void)
{
    const char *input = "models/en-de";
    struct tfm_convert_options o;
    tfm_convert_options_init(&o);
    o.inputs = &input;
    o.n_inputs = 1;
    o.output = check_path("converted");
    o.precision = (enum tfm_precision)9;
    REFUSED(tfm_convert(&o, &err), "precision is 9");
    CHECK(!file_exists(o.output), "nothing is written");
}

static void test_translating(const struct tfm_model *model)
{
    struct tfm_translator *translator;
    struct tfm_translate_options o;
    tfm_translate_options_init(&o);
    o.alignment = (enum tfm_align)9;
    REFUSED(tfm_translator_new(&translator, model, &o, &err), "alignment is 9");
    tfm_translate_options_init(&o);
    o.output_sampling = (enum tfm_sampling) - 1;
    REFUSED(tfm_translator_new(&translator, model, &o, &err), "output_sampling is -1");
    tfm_translate_options_init(&o);
    o.normalize = NAN;
    REFUSED(tfm_translator_new(&translator, model, &o, &err), "is nan");
}

static void test_looking(const struct tfm_model *model)
{
    struct tfm_attention_options o;
    tfm_attention_options_init(&o);
    o.part = (enum tfm_part)99;
    REFUSED(tfm_attention(model, "A dog.", NULL, &o, stdout, &err), "part is 99");
    tfm_attention_options_init(&o);
    o.format = (enum tfm_format) - 1;
    REFUSED(tfm_attention(model, "A dog.", NULL, &o, stdout, &err), "format is -1");
    REFUSED(tfm_describe(model, (enum tfm_format)99, stdout, &err), "format is 99");
}

static void test_shortlist(void)
{
    struct tfm_shortlist_options o;
    tfm_shortlist_options_init(&o);
    o.model = "models/en-de";
    o.n_corpora = 1;
    REFUSED(tfm_shortlist(&o, NULL, &err), "no corpus");
    o.corpora = &corpus;
    o.threshold = NAN;
    REFUSED(tfm_shortlist(&o, NULL, &err), "is nan");
}

int main(void)
{
    struct tfm_model *model = NULL;
    test_table();
    test_training();
    test_head_losses();
    test_opening();
    test_converting();
    test_shortlist();
    if (CHECK(tfm_model_open(&model, "models/en-de", &err) == TFM_OK, "a model: %s", err.message)) {
        test_translating(model);
        test_looking(model);
    }
    tfm_model_free(model);
    return check_done();
}
