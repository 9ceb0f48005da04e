/*
 * calibrate_test.c: scales of what a model in int8 multiplies: each matrix gets one, matrices of one product
 * the same; they go through files and are used; translations are near those without them, and the same by all
 * kernels, in any batch, with any number of threads; what cannot be calibrated is refused.
 */
#include "base/mem.h"
#include "decode/translator.h"
#include "same_translations.h"
#include "tiny_model.h"

#define N_LINES 40

static struct str line_texts[N_LINES];
static const char *lines[N_LINES];
static struct tfm_error err;

static void must(enum tfm_status status)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err.message, "", "a step that must work");
    exit(check_done());
}

static struct tfm_model *open_int8(const char *folder)
{
    struct tfm_model *model;
    must(tfm_model_open_as(&model, folder, TFM_PRECISION_INT8, &err));
    return model;
}

static struct tfm_calibration *calibrate(const struct tfm_model *model)
{
    struct tfm_calibration *c;
    must(tfm_calibrate(
        &c, &(struct tfm_calibrate_options){ .model = model, .sources = lines, .n_lines = N_LINES }, &err));
    return c;
}

/* Opens IN, converted as the options say. */
static struct tfm_model *convert(const char *in, const char *name, const struct tfm_calibration *c,
                                 enum tfm_precision precision, bool plain)
{
    const char *inputs[] = { in };
    struct tfm_model *model;
    struct tfm_convert_options o;
    tfm_convert_options_init(&o);
    o.inputs = inputs;
    o.n_inputs = 1;
    o.output = check_path("%s", name);
    o.calibration = c;
    o.precision = precision;
    o.plain = plain;
    must(tfm_convert(&o, &err));
    must(tfm_model_open(&model, o.output, &err));
    return model;
}

/* What each product of a model has as the scale of its input is what the calibration has. */
static bool has_scales(const struct tfm_model *model, const struct tfm_calibration *c)
{
    bool same = true;
    for (int i = 0; i < c->n; i++) {
        const struct linear *l = model->matrices.places[i].linear;
        same &= l == NULL ? c->input_scales[i] == 0 : c->input_scales[i] == l->in_scale;
    }
    return same;
}

static bool all_above_zero(const struct tfm_model *model, const struct tfm_calibration *c)
{
    bool all = true;
    for (int i = 0; i < c->n; i++) {
        const struct linear *l = model->matrices.places[i].linear;
        bool multiplies = l != NULL && l != &model->net.source_embed && l != &model->net.target_embed;
        all &= multiplies == (c->input_scales[i] > 0);
    }
    return all;
}

static double unembed_scale(const struct tfm_model *model, const struct tfm_calibration *c)
{
    int i = 0;
    while (model->matrices.places[i].linear != &model->net.unembed)
        i++;
    return (double)c->input_scales[i];
}

static struct tfm_translator *translator(const struct tfm_model *model, int batch, int threads,
                                         const struct kern *kern)
{
    struct tfm_translate_options o;
    struct tfm_translator *t;
    tfm_translate_options_init(&o);
    o.mini_batch = batch;
    o.threads = threads;
    must(translator_new(&t, &model->net, model->source, model->target, kern, &o, NULL, &err));
    return t;
}

static const struct tfm_translation *translate(struct tfm_translator *t)
{
    const struct tfm_translation *result;
    must(tfm_translate(t, lines, N_LINES, &result, &err));
    return result;
}

static void test_same_text(const struct tfm_model *model)
{
    struct tfm_translator *first = translator(model, 64, 1, kern_for(cpu_best()));
    const struct tfm_translation *expected = translate(first);
    for (int tier = CPU_REF; tier < CPU_N_TIERS; tier++) {
        if (tier > (int)cpu_best()) {
            SKIP("this machine has no %s", cpu_tier_name((enum cpu_tier)tier));
            continue;
        }
        struct tfm_translator *t = translator(model, 1 + tier * 3, 1 + tier, kern_for((enum cpu_tier)tier));
        CHECK_INT(differences(translate(t), expected, N_LINES), 0, "the same by %s, in other batches",
                  cpu_tier_name((enum cpu_tier)tier));
        tfm_translator_free(t);
    }
    tfm_translator_free(first);
}

/* The same pairs have nearly the same scores. */
static void test_near(const struct tfm_model *model, const struct tfm_model *before)
{
    struct tfm_translator *t = translator(model, 64, 1, model->kern),
                          *u = translator(before, 64, 1, before->kern);
    const struct tfm_translation *a, *b;
    double worst = 0;
    bool same = true;
    must(tfm_score(t, lines, lines, N_LINES, &a, &err));
    must(tfm_score(u, lines, lines, N_LINES, &b, &err));
    for (int i = 0; i < N_LINES; i++) {
        worst = check_worse(
            worst, fabs(a[i].hypotheses[0].normalized_score - b[i].hypotheses[0].normalized_score));
        same &= a[i].hypotheses[0].score == b[i].hypotheses[0].score;
    }
    CHECK(!same && worst < 0.1, "scores a piece are other ones, and near: %.4f", worst);
    tfm_translator_free(t);
    tfm_translator_free(u);
}

static void test_model(const char *name, const struct tiny_options *options)
{
    check_note("%s", name);
    struct tfm_model *reals = tiny_open(name, options), *int8 = open_int8(reals->folder);
    struct tfm_calibration *c = calibrate(int8), *again = calibrate(int8);
    CHECK(all_above_zero(int8, c), "each matrix that multiplies has a scale, and no other");
    CHECK(memcmp(c->input_scales, again->input_scales, (size_t)c->n * sizeof(real)) == 0,
          "the same when measured again");
    struct tfm_model *with = convert(reals->folder, "with", c, TFM_PRECISION_INT8, false);
    struct tfm_model *copy = convert(with->folder, "copy", NULL, TFM_PRECISION_KEEP, true);
    struct tfm_model *without = convert(with->folder, "reals", NULL, TFM_PRECISION_FP32, true);
    struct tfm_model *back = convert(without->folder, "back", NULL, TFM_PRECISION_INT8, true);
    CHECK(has_scales(with, c), "they are written and read");
    CHECK(has_scales(copy, c), "and go along with whole numbers");
    CHECK(back->net.unembed.in_scale == 0, "but not through reals");
    test_same_text(with);
    test_near(with, int8);
    struct tfm_calibration *third = calibrate(with);
    CHECK(fabs(unembed_scale(with, third) / unembed_scale(int8, c) - 1) < 0.2,
          "a calibrated model can be calibrated again");
    struct tfm_model *models[] = { reals, int8, with, copy, without, back };
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        tfm_model_free(models[i]);
    for (int i = 0; i < 4; i++) {
        static const char *const folders[] = { "with", "copy", "reals", "back" };
        must(dir_remove(check_path("%s", folders[i]), &err));
    }
    tfm_calibration_free(c);
    tfm_calibration_free(again);
    tfm_calibration_free(third);
}

static void test_refused(void)
{
    static const struct tiny_options options = { .seed = 4 };
    struct tfm_model *reals = tiny_open("refused", &options), *int8 = open_int8(reals->folder);
    struct tfm_calibration *c;
    volatile int stop = 15;
    struct tfm_calibrate_options o = { .model = reals, .sources = lines, .n_lines = N_LINES };
    CHECK(tfm_calibrate(&c, &o, &err) == TFM_EINVAL && c == NULL &&
              strstr(err.message, "multiplies in floats") != NULL,
          "a model in reals: %s", err.message);
    o.model = int8;
    o.stop = &stop;
    CHECK(tfm_calibrate(&c, &o, &err) == TFM_ESTOPPED && c == NULL, "stopped: %s", err.message);
    o.stop = NULL;
    enum tfm_status status = TFM_ENOMEM;
    for (long n = 0; status == TFM_ENOMEM && n < 1000; n++) {
        mem_fail_after(n);
        status = tfm_calibrate(&c, &o, &err);
        mem_fail_after(-1);
    }
    CHECK_INT(status, TFM_OK, "fails at each allocation, then not");
    static const struct tiny_options other = { .seed = 4, .tie = TFM_TIE_NONE };
    struct tfm_model *untied = tiny_open("untied", &other);
    const char *inputs[] = { untied->folder };
    struct tfm_convert_options convert_options;
    tfm_convert_options_init(&convert_options);
    convert_options.inputs = inputs;
    convert_options.n_inputs = 1;
    convert_options.output = check_path("no");
    convert_options.calibration = c;
    CHECK(tfm_convert(&convert_options, &err) == TFM_EINVAL &&
              strstr(err.message, "not the model that was calibrated"),
          "another model: %s", err.message);
    tfm_calibration_free(c);
    tfm_model_free(reals);
    tfm_model_free(int8);
    tfm_model_free(untied);
}

int main(void)
{
    for (int i = 0; i < N_LINES; i++) {
        tiny_sentence(&line_texts[i], rng_key(5, (uint64_t)i, 0, 0), 1 + i % 9);
        lines[i] = line_texts[i].data;
    }
    test_model("post-norm, all tied", &(struct tiny_options){ .tie = TFM_TIE_ALL, .eos_bias = 2, .seed = 5 });
    test_model(
        "SSRU, pre-norm, nothing tied",
        &(struct tiny_options){ .pre_norm = true, .tie = TFM_TIE_NONE, .cell = TFM_CELL_SSRU, .seed = 6 });
    test_model("recurrent", &(struct tiny_options){ .tie = TFM_TIE_ALL, .is_rnn = true, .seed = 7 });
    test_model("a decoder alone",
               &(struct tiny_options){ .pre_norm = true, .tie = TFM_TIE_ALL, .is_decoder = true, .seed = 8 });
    test_refused();
    for (int i = 0; i < N_LINES; i++)
        str_release(&line_texts[i]);
    return check_done();
}
