/*
 * cmd_translate.c: `tfm translate`: the table of its options, and which files are translated into which. The
 * lines of one file are translated by translate_file (translate_file.c), the first hop of a sentence's way
 * through the code.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "find_model.h"
#include "options.h"
#include "output.h"
#include "translate_file.h"

#define COMMAND "tfm translate"

struct translate_args {
    struct tfm_translate_options options;
    struct translate_style style;
    const char *model, *input, *output, *output_dir, *suffix, *cpu;
    unsigned format;
    int n_best; /* -1: not given; 0: as many as the beam holds */
};

#define FIELD(field) OPTION_FIELD(struct translate_args, field)

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Files" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER",
      .help = "the model (default: TFM_MODEL, then the one that comes with tfm)" },
    { .name = "input", .letter = 'i', FIELD(input), .argument = "FILE",
      .help = "translate this file, as if it were given as an operand; - is standard input" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE",
      .help = "write here instead of to standard output" },
    { .name = "output-dir", FIELD(output_dir), .argument = "FOLDER",
      .help = "write the translation of each file to a file of the same name in this folder" },
    { .name = "suffix", FIELD(suffix), .argument = "TEXT",
      .help = "added to the names of the files in --output-dir" },
    { .help = "Search" },
    { .name = "beam-size", .letter = 'b', FIELD(options.beam_size), .argument = "N", .min = 1, .max = 64,
      .help = "hypotheses kept a step; 1 is greedy search" },
    { .name = "normalize", .letter = 'n', FIELD(options.normalize), .argument = "X", .bare = "1", .min = 0,
      .max = 10, .help = "rank finished hypotheses by score / length^X; 0 is the plain sum" },
    { .name = "max-length-factor", FIELD(options.max_length_factor), .argument = "X", .min = 0, .max = 100,
      .help = "at most X times as many target pieces as source pieces, and 10 more" },
    { .name = "max-length", FIELD(options.max_length), .argument = "N", .min = 1, .max = 10000,
      .help = "source pieces translated in one go; a longer line is cut at words and joined again" },
    { .name = "allow-unk", FIELD(options.allow_unk), .help = "let the unknown piece be produced" },
    { .help = "Output" },
    { .name = "n-best", FIELD(n_best), .argument = "N", .bare = "0", .min = 0, .max = 64, .standard = "",
      .help = "print the N best hypotheses of each line with scores, in Marian's format; without N as "
              "many as the beam holds" },
    { .name = "word-scores", FIELD(style.print.word_scores), .help = "print the score of each piece too" },
    { .name = "format", FIELD(format), .argument = "text|json",
      .help = "print text, or one JSON object a hypothesis" },
    { .name = "quiet", FIELD(style.quiet), .help = "print no notes about single lines" },
    { .name = "verbose", .letter = 'v', FIELD(style.verbose),
      .help = "print the model, the length limits that were met, and the speed" },
    { .help = "Machine" },
    { .name = "mini-batch", FIELD(options.mini_batch), .argument = "N", .min = 1, .max = 10000,
      .help = "sentences decoded together by a worker" },
    { .name = "cpu-threads", FIELD(options.threads), .argument = "N", .min = 0, .max = 1024,
      .standard = "0, one a core", .help = "workers" },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct translate_args *args = fields;
    *args = (struct translate_args){ .n_best = -1 };
    tfm_translate_options_init(&args->options);
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "[OPTION]... [FILE]...",
    .summary = "Translates text line by line: the files, or standard input.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

/* ---- where the output goes ---- */

/* The file in --output-dir that the translation of `input` goes to: its name without .gz, and the suffix. */
static bool target_path(char *path, size_t size, const struct translate_args *args, const char *input)
{
    const char *slash = strrchr(input, '/');
    const char *name = slash != NULL ? slash + 1 : input;
    int len = (int)strlen(name);
    if (len > 3 && strcmp(name + len - 3, ".gz") == 0)
        len -= 3;
    int n = snprintf(path, size, "%s/%.*s%s", args->output_dir, len, name,
                     args->suffix != NULL ? args->suffix : "");
    return len > 0 && n < (int)size;
}

/* Checks before any work that no file would be written over, neither an input nor another file's translation.
 */
static int check_targets(const struct translate_args *args, int n, char **inputs)
{
    char path[PATH_MAX], other[PATH_MAX];
    for (int i = 0; i < n; i++) {
        if (strcmp(inputs[i], "-") == 0)
            return options_wrong(&table, "option --output-dir needs files with names, found '-'");
        if (!target_path(path, sizeof(path), args, inputs[i]))
            return options_wrong(&table, "option --output-dir: '%s' gives no file name", inputs[i]);
        for (int j = 0; j < n; j++) {
            if (output_is_input(path, inputs[j]))
                return options_wrong(&table,
                                     "the translation of %s would overwrite the input %s; give another "
                                     "--output-dir or a --suffix",
                                     inputs[i], inputs[j]);
        }
        for (int j = 0; j < i; j++) {
            if (target_path(other, sizeof(other), args, inputs[j]) && strcmp(path, other) == 0)
                return options_wrong(&table, "%s and %s would both be translated into %s", inputs[j],
                                     inputs[i], path);
        }
    }
    return OPTIONS_GO_ON;
}

static int check_arguments(struct translate_args *args, int n, char **inputs)
{
    if (args->output_dir == NULL && args->suffix != NULL)
        return options_wrong(&table, "option --suffix is for --output-dir, which is missing");
    if (args->output_dir != NULL && args->output != NULL)
        return options_wrong(&table, "found both --output and --output-dir, expected one of them");
    if (args->n_best > args->options.beam_size)
        return options_wrong(&table, "option --n-best: found %d, expected at most the beam size, %d",
                             args->n_best, args->options.beam_size);
    if (args->output_dir != NULL)
        return check_targets(args, n, inputs);
    for (int i = 0; i < n; i++) {
        if (output_is_input(args->output, inputs[i]))
            return options_wrong(&table, "the output would overwrite the input %s", inputs[i]);
    }
    return OPTIONS_GO_ON;
}

/* Makes a folder, with its parents. */
static enum tfm_status make_folder(const char *path, struct tfm_error *err)
{
    char part[PATH_MAX];
    for (const char *end = path; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        if (snprintf(part, sizeof(part), "%.*s", (int)(end - path), path) >= (int)sizeof(part))
            return cmd_error(err, TFM_EIO, "cannot make the folder %s: %s", path, strerror(ENAMETOOLONG));
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return cmd_error(err, TFM_EIO, "cannot make the folder %s: %s", part, strerror(errno));
    }
    return TFM_OK;
}

/* ---- the work ---- */

/* Translates all inputs into one output, which is nothing if one of them fails: else lines would be missing
 * in it. */
static int translate_to_one(struct translation_job *job, const struct translate_args *args, int n,
                            char **inputs)
{
    struct tfm_error err;
    struct output out;
    enum tfm_status status = output_open(&out, args->output, &err);
    if (status != TFM_OK)
        return cmd_failed(COMMAND, &err);
    for (int i = 0; i < n && status == TFM_OK; i++)
        status = translate_file(job, inputs[i], &out, &err);
    if (status == TFM_OK)
        status = output_commit(&out, &err);
    else
        output_abandon(&out);
    return status == TFM_OK ? EXIT_SUCCESS : cmd_failed(COMMAND, &err);
}

/* Translates each input into a file of its own, and goes on past those that fail. */
static int translate_to_folder(struct translation_job *job, const struct translate_args *args, int n,
                               char **inputs)
{
    struct tfm_error err;
    if (make_folder(args->output_dir, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    int n_failed = 0;
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX];
        struct output out;
        target_path(path, sizeof(path), args, inputs[i]);
        enum tfm_status status = output_open(&out, path, &err);
        job->first_line = job->n_lines; /* ids count from 0 in each */
        if (status == TFM_OK)
            status = translate_file(job, inputs[i], &out, &err);
        if (status == TFM_OK)
            status = output_commit(&out, &err);
        else
            output_abandon(&out);
        if (status != TFM_OK) {
            cmd_failed(COMMAND, &err);
            n_failed++;
        }
    }
    if (n_failed > 0)
        fprintf(stderr, COMMAND ": %d of %d files failed\n", n_failed, n);
    return n_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int translate_with(const struct tfm_model *model, const struct translate_args *args, int n,
                          char **inputs)
{
    struct tfm_error err;
    struct translation_job job = { .command = COMMAND, .style = &args->style };
    if (tfm_translator_new(&job.translator, model, &args->options, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    int status = args->output_dir != NULL ? translate_to_folder(&job, args, n, inputs)
                                          : translate_to_one(&job, args, n, inputs);
    if (args->style.verbose)
        translation_report(&job);
    tfm_translator_free(job.translator);
    return status;
}

int cmd_translate(int argc, char **argv)
{
    struct translate_args args;
    char *single = "-";
    char **inputs = argv + 1;
    int n;
    int wrong = options_parse(&table, &args, argc, argv, &n);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if (args.input != NULL && n > 0)
        return options_wrong(&table, "found --input and the file '%s', expected one of them", inputs[0]);
    if (n == 0) {
        single = args.input != NULL ? (char *)args.input : single;
        inputs = &single;
        n = 1;
    }
    if ((wrong = check_arguments(&args, n, inputs)) != OPTIONS_GO_ON)
        return wrong;
    args.style.print.format = args.format == TFM_JSON ? PRINT_JSON : PRINT_TEXT;
    args.style.print.n_best = args.n_best >= 0;
    args.options.n_best = args.n_best > 0 ? args.n_best : args.n_best == 0 ? args.options.beam_size : 1;

    struct tfm_error err;
    struct model_path folder;
    struct tfm_model *model = NULL;
    if ((args.cpu != NULL && tfm_set_cpu(args.cpu, &err) != TFM_OK) ||
        find_model(&folder, args.model, &err) != TFM_OK ||
        tfm_model_open(&model, folder.text, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    if (args.style.verbose)
        fprintf(stderr, COMMAND ": model %s, %s kernels\n", folder.text, tfm_cpu());
    int status = translate_with(model, &args, n, inputs);
    tfm_model_free(model);
    return status;
}
