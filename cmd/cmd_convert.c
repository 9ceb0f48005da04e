/*
 * cmd_convert.c: `tfm convert`: writes a model in another form, and can show how its translations differ
 * then. The work is tfm_convert's and tfm_compare's.
 */
#include <stdlib.h>
#include <string.h>

#include "calibration.h"
#include "cmd.h"
#include "comparison.h"
#include "options.h"
#include "stop.h"

#define COMMAND "tfm convert"

struct convert_args {
    struct tfm_convert_options options;
    const char *precision;
    const char *valid_sets[2];
    const char *calibrate;
};

#define FIELD(field) OPTION_FIELD(struct convert_args, field)

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Options" },
    { .name = "average", FIELD(options.average),
      .help = "write the mean of the weights of all models IN, which must be alike" },
    { .name = "smoothed", FIELD(options.smoothed),
      .help = "with --average, take the smoothed weights of checkpoints rather than the raw ones" },
    { .name = "precision", FIELD(precision), .argument = "fp32|fp16|int8",
      .standard = "that of IN; fp16 for checkpoints", .help = "bits of each weight on disk" },
    { .name = "calibrate", FIELD(calibrate), .argument = "SRC",
      .help = "with int8, translate this file and write how far the inputs of each matrix reach, which is faster "
              "to use" },
    { .name = "valid-sets", FIELD(valid_sets), .argument = "SRC TRG",
      .help = "translate this pair of files with IN and OUT and compare the translations" },
    { .name = "plain", FIELD(options.plain), .help = "write weights.safetensors, not compressed" },
    { .name = "force", .letter = 'f', FIELD(options.force), .help = "replace the model in the folder OUT" },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct convert_args *args = fields;
    *args = (struct convert_args){ 0 };
    tfm_convert_options_init(&args->options);
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "[OPTION]... IN... OUT",
    .summary = "Writes a model in another form: in another precision, or the mean of several.\n"
               "IN is a model folder or a checkpoint of a training.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

static int check_arguments(const struct convert_args *args, int n)
{
    if (n < 2)
        return options_wrong(&table, "found %s, expected the folder to read and the one to write",
                             n == 0 ? "no folder" : "one folder");
    if (n > 2 && !args->options.average)
        return options_wrong(
            &table, "found %d folders to read, expected one; --average makes one model of several", n - 1);
    const char *const *pair = args->valid_sets;
    if (pair[0] != NULL && n > 2)
        return options_wrong(
            &table, "found %d folders to read, expected one; --valid-sets compares it with OUT", n - 1);
    if (pair[0] != NULL && strcmp(pair[0], "-") == 0 && strcmp(pair[1], "-") == 0)
        return options_wrong(&table, "both files of --valid-sets are standard input, expected one at most");
    if (args->calibrate == NULL)
        return OPTIONS_GO_ON;
    if (args->precision == NULL || strcmp(args->precision, "int8") != 0)
        return options_wrong(&table, "option --calibrate is for --precision int8, which is missing");
    if (args->options.average)
        return options_wrong(&table,
                             "option --calibrate goes with one model IN: calibrate the mean afterwards");
    for (int i = 0; i < 2 && pair[i] != NULL; i++)
        if (strcmp(pair[i], "-") == 0 && strcmp(args->calibrate, "-") == 0)
            return options_wrong(&table,
                                 "found standard input for --calibrate and for --valid-sets, expected one of "
                                 "them to be a file");
    return OPTIONS_GO_ON;
}

/* The model as it is tells what it multiplies: it is measured before the new one is written, perhaps in
 * its place. */
static enum tfm_status convert(const struct convert_args *args, struct tfm_error *err)
{
    struct tfm_convert_options o = args->options;
    struct tfm_calibration *calibration = NULL;
    enum tfm_status status = TFM_OK;
    if (args->calibrate != NULL)
        status = calibration_make(&calibration, args->calibrate, o.inputs[0], &stop_signal, err);
    o.calibration = calibration;
    if (status == TFM_OK)
        status = tfm_convert(&o, err);
    tfm_calibration_free(calibration);
    return status;
}

static enum tfm_status convert_and_compare(const struct convert_args *args, struct tfm_error *err)
{
    const struct tfm_convert_options *o = &args->options;
    struct comparison c;
    enum tfm_status status = comparison_open(&c, args->valid_sets[0], args->valid_sets[1], o->inputs[0], err);
    if (status == TFM_OK)
        status = convert(args, err);
    if (status == TFM_OK)
        status = comparison_print(&c, o->output, &stop_signal, err);
    comparison_release(&c);
    return status;
}

int cmd_convert(int argc, char **argv)
{
    struct convert_args args;
    struct tfm_convert_options *o = &args.options;
    int n;
    int wrong = options_parse(&table, &args, argc, argv, &n);
    if (wrong == OPTIONS_GO_ON)
        wrong = check_arguments(&args, n);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    o->inputs = (const char *const *)argv + 1;
    o->n_inputs = (size_t)n - 1;
    o->output = argv[n];
    if (args.precision != NULL)
        o->precision = strcmp(args.precision, "fp32") == 0   ? TFM_PRECISION_FP32
                       : strcmp(args.precision, "fp16") == 0 ? TFM_PRECISION_FP16
                                                             : TFM_PRECISION_INT8;
    o->stop = &stop_signal;

    struct tfm_error err;
    stop_catch_signals();
    enum tfm_status status =
        args.valid_sets[0] != NULL ? convert_and_compare(&args, &err) : convert(&args, &err);
    if (status == TFM_OK)
        return cmd_flush(COMMAND, EXIT_SUCCESS);
    int failed = cmd_failed(COMMAND, &err);
    return status == TFM_ESTOPPED ? EXIT_SIGNAL + stop_signal : failed;
}
