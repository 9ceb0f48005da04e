/*
 * cmd_inspect.c: `tfm inspect` describes a model; `tfm inspect attention` shows where it looks while it
 * translates one line; `tfm inspect predict` lets a masked language model fill the gaps of a text.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "find_model.h"
#include "options.h"
#include "output.h"
#include "terminal.h"

#define DESCRIBE "tfm inspect"
#define ATTENTION "tfm inspect attention"
#define PREDICT   "tfm inspect predict"

#define MODEL_HELP "the model (default: TFM_MODEL, then the one that comes with tfm)"
#define OUTPUT_HELP "write here instead of to standard output"

/* ---- tfm inspect ---- */

struct describe_args {
    const char *model, *output, *cpu;
    unsigned format;
};

#define FIELD(field) OPTION_FIELD(struct describe_args, field)

/* clang-format off */
static const struct option_spec describe_options[] = {
    { .help = "Options" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER", .help = MODEL_HELP },
    { .name = "format", FIELD(format), .argument = "text|json", .help = "print text or JSON" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE", .help = OUTPUT_HELP },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

#undef FIELD

static void set_describe_defaults(void *fields)
{
    *(struct describe_args *)fields = (struct describe_args){ .format = TFM_TEXT };
}

static const struct option_table describe_table = {
    .command = DESCRIBE,
    .usage = "[OPTION]... [MODEL]\n       " ATTENTION " [OPTION]... SOURCE [TARGET]\n       " PREDICT
             " [OPTION]... [TEXT]",
    .summary = "Shows what a model is: its architecture, its vocabularies and every tensor.",
    .defaults = set_describe_defaults,
    .options = describe_options,
    .n = sizeof(describe_options) / sizeof(describe_options[0]),
};

/* ---- tfm inspect attention ---- */

struct attention_args {
    struct tfm_attention_options options;
    const char *model, *output, *cpu;
    unsigned format, part;
};

#define FIELD(field) OPTION_FIELD(struct attention_args, field)

/* clang-format off */
static const struct option_spec attention_options[] = {
    { .help = "Options" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER", .help = MODEL_HELP },
    { .name = "part", FIELD(part), .argument = "encoder|decoder|cross|auto",
      .help = "self-attention of the encoder or of the decoder, or the decoder's attention to the encoder; auto is "
              "the last of them that the model has" },
    { .name = "layer", FIELD(options.layer), .argument = "N", .min = -1, .max = 1000, .standard = "-1, all",
      .help = "only this layer, from 0" },
    { .name = "head", FIELD(options.head), .argument = "N", .min = -1, .max = 1000, .standard = "-1, all",
      .help = "only this head, from 0" },
    { .name = "format", FIELD(format), .argument = "text|json|tsv|npy|svg",
      .help = "a heat map for people, the numbers, or a picture" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE", .help = OUTPUT_HELP },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_attention_defaults(void *fields)
{
    struct attention_args *args = fields;
    *args = (struct attention_args){ 0 };
    tfm_attention_options_init(&args->options);
    args->format = args->options.format;
    args->part = args->options.part;
}

static const struct option_table attention_table = {
    .command = ATTENTION,
    .usage = "[OPTION]... SOURCE [TARGET]",
    .summary = "Shows how much each piece of a sentence attends to each other one. Without TARGET\n"
               "the model's own translation is shown.",
    .defaults = set_attention_defaults,
    .options = attention_options,
    .n = sizeof(attention_options) / sizeof(attention_options[0]),
};

#undef FIELD

/* ---- tfm inspect predict ---- */

struct predict_args {
    struct tfm_predict_options options;
    const char *model, *output, *cpu;
    unsigned format;
};

#define FIELD(field) OPTION_FIELD(struct predict_args, field)

/* clang-format off */
static const struct option_spec predict_options[] = {
    { .help = "Options" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER", .help = MODEL_HELP },
    { .name = "top-k", .letter = 'k', FIELD(options.top_k), .argument = "N", .min = 1, .max = 1000,
      .help = "pieces for each <mask>, the most probable first" },
    { .name = "format", FIELD(format), .argument = "text|json",
      .help = "print text for people, or a JSON object for each line" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE", .help = OUTPUT_HELP },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_predict_defaults(void *fields)
{
    struct predict_args *args = fields;
    *args = (struct predict_args){ 0 };
    tfm_predict_options_init(&args->options);
    args->format = args->options.format;
}

static const struct option_table predict_table = {
    .command = PREDICT,
    .usage = "[OPTION]... [TEXT]",
    .summary = "Shows what a masked language model (tfm train --arch encoder) would put in the place of\n"
               "each <mask> in TEXT, or in the lines of standard input.",
    .defaults = set_predict_defaults,
    .options = predict_options,
    .n = sizeof(predict_options) / sizeof(predict_options[0]),
};

/* ---- the work ---- */

struct look { /* at a model */
    struct tfm_model *model;
    struct output out;
};

static enum tfm_status begin(struct look *look, const char *named, const char *cpu, const char *output,
                             struct tfm_error *err)
{
    struct model_path folder;
    *look = (struct look){ .model = NULL };
    enum tfm_status status = cpu != NULL ? tfm_set_cpu(cpu, err) : TFM_OK;
    if (status == TFM_OK)
        status = find_model(&folder, named, err);
    if (status == TFM_OK)
        status = tfm_model_open(&look->model, folder.text, err);
    return status == TFM_OK ? output_open(&look->out, output, err) : status;
}

/* Returns the exit status. */
static int end(struct look *look, const char *command, enum tfm_status status, struct tfm_error *err)
{
    status = output_end(&look->out, status, err);
    tfm_model_free(look->model);
    return status == TFM_OK ? EXIT_SUCCESS : cmd_failed(command, err);
}

static int describe(int argc, char **argv)
{
    struct describe_args args;
    int n;
    int wrong = options_parse(&describe_table, &args, argc, argv, &n);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if (n > 1 || (n == 1 && args.model != NULL))
        return options_wrong(&describe_table, "unexpected argument '%s': one model at a time", argv[n]);
    struct tfm_error err;
    struct look look;
    enum tfm_status status = begin(&look, n == 1 ? argv[1] : args.model, args.cpu, args.output, &err);
    if (status == TFM_OK)
        status = tfm_describe(look.model, (enum tfm_format)args.format, look.out.file, &err);
    return end(&look, DESCRIBE, status, &err);
}

static int attention(int argc, char **argv)
{
    struct attention_args args;
    int n;
    int wrong = options_parse(&attention_table, &args, argc, argv, &n);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if (n == 0)
        return options_wrong(&attention_table, "the source sentence is missing");
    if (n > 2)
        return options_wrong(&attention_table, "unexpected argument '%s': quote a sentence of several words",
                             argv[3]);
    if (args.format == TFM_NPY && args.output == NULL && isatty(STDOUT_FILENO))
        return options_wrong(&attention_table, "the format npy is not for a terminal: give --output");
    args.options.format = (enum tfm_format)args.format;
    args.options.part = (enum tfm_part)args.part;

    struct tfm_error err;
    struct look look;
    enum tfm_status status = begin(&look, args.model, args.cpu, args.output, &err);
    if (status == TFM_OK) {
        FILE *out = look.out.file;
        args.options.width = terminal_columns(out);
        args.options.color = terminal_has_color(out);
        status = tfm_attention(look.model, argv[1], n == 2 ? argv[2] : NULL, &args.options, out, &err);
    }
    return end(&look, ATTENTION, status, &err);
}

/* Each line of standard input; a failure names it. */
static enum tfm_status predict_lines(const struct tfm_model *model, const struct tfm_predict_options *options,
                                     FILE *out, struct tfm_error *err)
{
    struct tfm_lines *lines;
    struct tfm_line line;
    bool more = true;
    enum tfm_status status = tfm_lines_open(&lines, "-", err);
    if (status != TFM_OK)
        return status;
    while (status == TFM_OK) {
        status = tfm_lines_next(lines, &line, &more, err);
        if (status != TFM_OK || !more)
            break;
        struct tfm_error found;
        status = tfm_predict(model, line.text, options, out, &found);
        if (status != TFM_OK)
            cmd_error(err, status, "standard input, line %ld: %s", line.number, found.message);
    }
    tfm_lines_free(lines);
    return status;
}

static int predict(int argc, char **argv)
{
    struct predict_args args;
    int n;
    int wrong = options_parse(&predict_table, &args, argc, argv, &n);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if (n > 1)
        return options_wrong(&predict_table, "unexpected argument '%s': quote a text of several words",
                             argv[2]);
    args.options.format = (enum tfm_format)args.format;

    struct tfm_error err;
    struct look look;
    enum tfm_status status = begin(&look, args.model, args.cpu, args.output, &err);
    if (status == TFM_OK && n == 1)
        status = tfm_predict(look.model, argv[1], &args.options, look.out.file, &err);
    else if (status == TFM_OK)
        status = predict_lines(look.model, &args.options, look.out.file, &err);
    return end(&look, PREDICT, status, &err);
}

int cmd_inspect(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "predict") == 0)
        return predict(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "attention") == 0)
        return attention(argc - 1, argv + 1);
    return describe(argc, argv);
}
