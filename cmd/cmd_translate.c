/*
 * cmd_translate.c: `tfm translate`: the table of its options, and which files are translated into which. The
 * lines of one file are translated by translate_file (translate_file.c), the first hop of a sentence's way
 * through the code.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "models.h"
#include "output.h"
#include "targets.h"
#include "terminal.h"
#include "translate_file.h"

#define COMMAND "tfm translate"

struct translate_args {
    struct tfm_translate_options options;
    struct translate_style style;
    struct option_names model;
    const char *model_weights, *input, *output, *output_dir, *suffix, *cpu;
    const char *sampling[2]; /* how, and a number */
    const char *alignment;
    unsigned format, input_format, alignment_of, precision, gemm;
    int max_positions;
    int n_best; /* -1: not given; 0: as many as the beam holds */
};

#define FIELD(field) OPTION_FIELD(struct translate_args, field)

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Files" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER", .max = TFM_MAX_MODELS,
      .help = "the model (default: TFM_MODEL, then the one that comes with tfm); given several times: models "
              "that translate together" },
    { .name = "model-weights", FIELD(model_weights), .argument = "W,W,...",
      .help = "how much each model counts, in their order (default: all alike)" },
    { .name = "input", .letter = 'i', FIELD(input), .argument = "FILE",
      .help = "translate this file, as if it were given as an operand; - is standard input" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE",
      .help = "write here instead of to standard output" },
    { .name = "output-dir", FIELD(output_dir), .argument = "FOLDER",
      .help = "write the translation of each file to a file of the same name in this folder" },
    { .name = "suffix", FIELD(suffix), .argument = "TEXT",
      .help = "added to the names of the files in --output-dir" },
    { .help = "Input" },
    { .name = "input-format", FIELD(input_format), .argument = "plain|tsv|jsonl",
      .help = "what a line is: the text, columns with tabs between them, or a JSON object" },
    { .name = "field", FIELD(style.record.field), .argument = "FIELD", .standard = "1 or text",
      .help = "the number of the column, or the name of the field, that is translated" },
    { .name = "output-field", FIELD(style.record.output_field), .argument = "FIELD", .standard = "the same",
      .help = "where the translation goes" },
    { .help = "Search" },
    { .name = "beam-size", .letter = 'b', FIELD(options.beam_size), .argument = "N", .min = 1, .max = 64,
      .help = "hypotheses kept a step; 1 is greedy search" },
    { .name = "normalize", .letter = 'n', FIELD(options.normalize), .argument = "X", .bare = "1", .min = 0,
      .max = 10, .help = "rank finished hypotheses by score / length^X; 0 is the plain sum" },
    { .name = "max-length-factor", FIELD(options.max_length_factor), .argument = "X", .min = 0, .max = 100,
      .help = "at most X times as many target pieces as source pieces, and 10 more" },
    { .name = "max-length", FIELD(options.max_length), .argument = "N", .min = 1, .max = 10000,
      .help = "source pieces translated in one go; a longer line is cut where a sentence, a clause or a word "
              "ends, and joined again" },
    { .name = "max-length-crop", FIELD(options.max_length_crop),
      .help = "leave out the rest of a longer line instead" },
    { .name = "min-length", FIELD(options.min_length), .argument = "N", .min = 0, .max = 10000,
      .help = "at least so many target pieces" },
    { .name = "shortlist", FIELD(options.shortlist), .argument = "FILE",
      .help = "only pieces that this lexical shortlist has for a sentence may come; auto: the model's own, where it "
              "has one; off: none" },
    { .name = "allow-unk", FIELD(options.allow_unk), .help = "let the unknown piece be produced" },
    { .name = "replace-unk", FIELD(options.replace_unk),
      .help = "let it be produced, and put in its place what it looks at in the source" },
    { .name = "no-repeat-ngram-size", FIELD(options.no_repeat_ngram_size), .argument = "N", .min = 0,
      .max = 10000, .help = "let no N pieces come twice in a translation; 0: off" },
    { .name = "repetition-penalty", FIELD(options.repetition_penalty), .argument = "X", .min = 0.01,
      .max = 100, .help = "make pieces that came before less probable; 1: off" },
    { .name = "glossary", FIELD(options.glossary), .argument = "FILE",
      .help = "lines of source term, tab, target term: where the one stands in a line, the other comes in its "
              "translation" },
    { .name = "glossary-ignore-case", FIELD(options.glossary_ignore_case),
      .help = "find source terms in capitals and small letters alike" },
    { .name = "force-decode", FIELD(style.force_decode),
      .help = "a line holds, behind a tab, what its translation begins with" },
    { .help = "Sampling" },
    { .name = "output-sampling", FIELD(sampling), .argument = "full|topk|topp N", .bare = "",
      .help = "draw each piece: from all, from the N best (10), or from those with the probability N (0.9) "
              "together" },
    { .name = "temperature", FIELD(options.temperature), .argument = "X", .min = 0.01, .max = 100,
      .help = "logits are divided by it before drawing" },
    { .name = "seed", FIELD(options.seed), .argument = "N", .help = "of drawing" },
    { .help = "Output" },
    { .name = "n-best", FIELD(n_best), .argument = "N", .bare = "0", .min = 0, .max = 64, .standard = "",
      .help = "print the N best hypotheses of each line with scores, in Marian's format; without N as "
              "many as the beam holds" },
    { .name = "word-scores", FIELD(style.print.word_scores), .help = "print the score of each piece too" },
    { .name = "alignment", FIELD(alignment), .argument = "FORM",
      .help = "print which source words a word looks at: hard (the first), soft (the weights) or, with a number "
              "as FORM, those above it" },
    { .name = "alignment-of", FIELD(alignment_of), .argument = "words|pieces",
      .help = "what is counted in alignments" },
    { .name = "alignment-layer", FIELD(options.alignment_layer), .argument = "N", .min = 0, .max = 1000,
      .standard = "the last", .help = "the decoder layer that makes them, from 0" },
    { .name = "format", FIELD(format), .argument = "text|json",
      .help = "print text, or one JSON object a hypothesis" },
    { .name = "quiet", FIELD(style.quiet), .help = "print no notes about single lines" },
    { .name = "verbose", .letter = 'v', FIELD(style.verbose),
      .help = "print the model, and the length limits that were met" },
    { .name = "stats", FIELD(options.profile),
      .help = "print at the end the speed, the most memory, and which part took which share of the time" },
    { .help = "Machine" },
    { .name = "mini-batch", FIELD(options.mini_batch), .argument = "N", .min = 1, .max = 10000,
      .help = "sentences decoded together by a worker, at most" },
    { .name = "maxi-batch", FIELD(style.maxi_batch), .argument = "N", .min = 1, .max = 1000,
      .help = "so many times --mini-batch lines of a file are read and sorted by length in one go" },
    { .name = "cpu-threads", FIELD(options.threads), .argument = "N", .min = 0, .max = 1024,
      .standard = "0, one a core", .help = "workers" },
    { .name = "precision", FIELD(precision), .argument = "auto|fp32|int8",
      .help = "multiply in floats, or in whole numbers of 8 bits: about twice as fast, and nearly the same; "
              "auto is what the model holds" },
    { .name = "gemm", FIELD(gemm), .argument = "own|blas",
      .help = "who multiplies floats: kernels of its own, or OpenBLAS, with which a text may depend on its batch" },
    { .name = "max-positions", FIELD(max_positions), .argument = "N", .min = 0, .max = 65536,
      .standard = "0, as trained",
      .help = "stretch or squeeze learned positions to N, for lines that are longer than any in training" },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct translate_args *args = fields;
    *args = (struct translate_args){ .n_best = -1, .style.maxi_batch = 64 };
    tfm_translate_options_init(&args->options);
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "[OPTION]... [FILE]...",
    .summary = "Translates text line by line: the files, or standard input. A language model\n"
               "takes a line as the beginning of a text, and goes on with it.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

/* What is translated into what. */
struct work {
    const struct translate_args *args;
    int n;
    char **inputs;
    struct targets targets; /* with --output-dir */
    double began;           /* when the command did */
};

/* Reads --output-sampling. */
static int set_sampling(struct translate_args *args)
{
    static const char *const names[] = { "full", "topk", "topp", "nucleus" };
    static const enum tfm_sampling kinds[] = { TFM_SAMPLING_FULL, TFM_SAMPLING_TOPK, TFM_SAMPLING_TOPP,
                                               TFM_SAMPLING_TOPP };
    const char *kind = args->sampling[0], *number = args->sampling[1];
    struct tfm_translate_options *o = &args->options;
    if (kind == NULL)
        return OPTIONS_GO_ON;
    for (int i = 0; i < 4; i++)
        if (strcmp(kind, names[i]) == 0)
            o->output_sampling = kinds[i];
    double value = *number != '\0' ? atof(number) : 0;
    switch (o->output_sampling) {
    case TFM_SAMPLING_NONE:
        return options_wrong(&table, "option --output-sampling: found '%s', expected full, topk or topp",
                             kind);
    case TFM_SAMPLING_FULL:
        if (*number != '\0')
            return options_wrong(&table, "option --output-sampling full takes no number, found '%s'", number);
        break;
    case TFM_SAMPLING_TOPK:
        if (*number != '\0' && (value < 1 || value > 1e9 || value != (int)value))
            return options_wrong(&table,
                                 "option --output-sampling topk: found '%s', expected a whole number, "
                                 "at least 1",
                                 number);
        o->sampling_top_k = *number != '\0' ? (int)value : o->sampling_top_k;
        break;
    case TFM_SAMPLING_TOPP:
        if (*number != '\0' && (value < 1e-6 || value > 1))
            return options_wrong(&table,
                                 "option --output-sampling topp: found '%s', expected a number above 0, "
                                 "at most 1",
                                 number);
        o->sampling_top_p = *number != '\0' ? (float)value : o->sampling_top_p;
        break;
    }
    return OPTIONS_GO_ON;
}

/* A glossary can come from standard input, but not together with what is translated. */
static int check_glossary(const struct work *work)
{
    const struct tfm_translate_options *o = &work->args->options;
    if (o->glossary == NULL && o->glossary_ignore_case)
        return options_wrong(&table, "option --glossary-ignore-case is for --glossary, which is missing");
    for (int i = 0; i < work->n && o->glossary != NULL && strcmp(o->glossary, "-") == 0; i++) {
        if (strcmp(work->inputs[i], "-") == 0)
            return options_wrong(&table, "found standard input as the glossary and as text to translate, "
                                         "expected one of them to be a file");
    }
    return OPTIONS_GO_ON;
}

/* What says more about an option that is missing. */
static int check_details(const struct translate_args *args)
{
    const struct tfm_translate_options *o = &args->options;
    bool draws = o->output_sampling != TFM_SAMPLING_NONE;
    if (!draws && o->seed != 1)
        return options_wrong(&table, "option --seed is for --output-sampling, which is missing");
    if (!draws && o->temperature != 1)
        return options_wrong(&table, "option --temperature is for --output-sampling, which is missing");
    if (args->alignment == NULL && args->alignment_of != 0)
        return options_wrong(&table, "option --alignment-of is for --alignment, which is missing");
    if (args->alignment == NULL && o->alignment_layer >= 0 && !o->replace_unk && o->glossary == NULL)
        return options_wrong(
            &table, "option --alignment-layer is for --alignment, --replace-unk and --glossary, found "
                    "none of them");
    return OPTIONS_GO_ON;
}

static int check_arguments(const struct work *work)
{
    const struct translate_args *args = work->args;
    int wrong = check_details(args);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if (args->output_dir == NULL && args->suffix != NULL)
        return options_wrong(&table, "option --suffix is for --output-dir, which is missing");
    if (args->output_dir != NULL && args->output != NULL)
        return options_wrong(&table, "found both --output and --output-dir, expected one of them");
    if (args->n_best > args->options.beam_size && args->options.output_sampling == TFM_SAMPLING_NONE)
        return options_wrong(&table, "option --n-best: found %d, expected at most the beam size, %d",
                             args->n_best, args->options.beam_size);
    struct tfm_error err;
    if (record_check_style(&args->style.record, &err) != TFM_OK)
        return options_wrong(&table, "%s", err.message);
    if (args->input_format != RECORD_PLAIN && (args->style.print.word_scores || args->alignment != NULL ||
                                               args->format != TFM_TEXT || args->style.force_decode))
        return options_wrong(
            &table, "option --input-format tsv or jsonl goes with none of --word-scores, --alignment, "
                    "--format json and --force-decode");
    struct print_style style;
    if (args->alignment != NULL && !print_parse_alignment(&style, args->alignment))
        return options_wrong(&table,
                             "option --alignment: found '%s', expected hard, soft or a number from 0 to 1",
                             args->alignment);
    for (int i = 0; i < work->n && args->output_dir == NULL; i++) {
        if (output_is_input(args->output, work->inputs[i]))
            return options_wrong(&table, "the output would overwrite the input %s", work->inputs[i]);
    }
    return check_glossary(work);
}

/* Translates all inputs into one output, which is nothing if one of them fails: else lines would be missing
 * in it. */
static int translate_to_one(struct translation_job *job, const struct work *work)
{
    struct tfm_error err;
    struct output out;
    enum tfm_status status = output_open(&out, work->args->output, &err);
    for (int i = 0; i < work->n && status == TFM_OK; i++)
        status = translate_file(job, work->inputs[i], &out, &err);
    status = output_end(&out, status, &err);
    return status == TFM_OK ? EXIT_SUCCESS : cmd_failed(COMMAND, &err);
}

/* Translates each input into a file of its own, and goes on past those that fail. */
static int translate_to_folder(struct translation_job *job, const struct work *work)
{
    struct tfm_error err;
    int n_failed = 0;
    if (targets_make_folder(work->args->output_dir, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    for (int i = 0; i < work->n; i++) {
        struct output out;
        enum tfm_status status = output_open(&out, work->targets.path[i], &err);
        job->first_line = job->n_lines; /* ids count from 0 in each */
        if (status == TFM_OK)
            status = translate_file(job, work->inputs[i], &out, &err);
        if (output_end(&out, status, &err) != TFM_OK) {
            cmd_failed(COMMAND, &err);
            n_failed++;
        }
    }
    if (n_failed > 0)
        fprintf(stderr, COMMAND ": %d of %d files failed\n", n_failed, work->n);
    return n_failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int translate_with(const struct models *models, const struct work *work)
{
    struct tfm_error err;
    const struct translate_args *args = work->args;
    struct translation_job job = { .command = COMMAND, .style = &args->style, .model = models->list[0] };
    if (models_translator(&job.translator, models, &args->options, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    job.ready = now() - work->began;
    int status = args->output_dir != NULL ? translate_to_folder(&job, work) : translate_to_one(&job, work);
    if (args->options.profile)
        translation_report(&job);
    tfm_translator_free(job.translator);
    return status;
}

static int open_and_translate(const struct work *work)
{
    struct tfm_error err;
    struct models models;
    const struct translate_args *args = work->args;
    static const enum tfm_precision precisions[] = { TFM_PRECISION_KEEP, TFM_PRECISION_FP32,
                                                     TFM_PRECISION_INT8 };
    struct tfm_open_options open = { .precision = precisions[args->precision],
                                     .max_positions = args->max_positions,
                                     .gemm = (enum tfm_gemm)args->gemm,
                                     .shortlist = strcmp(args->options.shortlist, "auto") == 0 &&
                                                  args->options.output_sampling == TFM_SAMPLING_NONE };
    int status = models_read_weights(&models, &table, &args->model, args->model_weights);
    if (status != OPTIONS_GO_ON)
        return status;
    if ((args->cpu != NULL && tfm_set_cpu(args->cpu, &err) != TFM_OK) ||
        models_open(&models, &args->model, &open, &err) != TFM_OK)
        status = cmd_failed(COMMAND, &err);
    for (int i = 0; i < models.n && status == OPTIONS_GO_ON && args->style.verbose; i++)
        fprintf(stderr, COMMAND ": model %s in %s, %s kernels\n", tfm_model_folder(models.list[i]),
                tfm_model_precision(models.list[i]) == TFM_PRECISION_INT8 ? "int8" : "fp32", tfm_cpu());
    if (status == OPTIONS_GO_ON && args->style.force_decode && tfm_model_is_language_model(models.list[0]))
        status =
            options_wrong(&table, "option --force-decode is for translations: a language model goes on from "
                                  "its line itself");
    if (status == OPTIONS_GO_ON)
        status = translate_with(&models, work);
    models_close(&models);
    return status;
}

int cmd_translate(int argc, char **argv)
{
    struct translate_args args;
    struct work work = { .args = &args, .inputs = argv + 1, .began = now() };
    char *single = "-";
    int status = options_parse(&table, &args, argc, argv, &work.n);
    if (status != OPTIONS_GO_ON)
        return status;
    if (args.input != NULL && work.n > 0)
        return options_wrong(&table, "found --input and the file '%s', expected one of them", argv[1]);
    if (work.n == 0) {
        single = args.input != NULL ? (char *)args.input : single;
        work.inputs = &single;
        work.n = 1;
    }
    args.style.record.format = (enum record_format)args.input_format;
    if ((status = set_sampling(&args)) != OPTIONS_GO_ON || (status = check_arguments(&work)) != OPTIONS_GO_ON)
        return status;
    bool is_elsewhere = args.output != NULL || args.output_dir != NULL || terminal_columns(stdout) == 0;
    args.style.progress = !args.style.quiet && terminal_columns(stderr) > 0 && is_elsewhere;
    args.style.window_lines = (size_t)args.style.maxi_batch * (size_t)args.options.mini_batch;
    struct tfm_error err;
    if (args.output_dir != NULL &&
        targets_init(&work.targets, args.output_dir, args.suffix, work.inputs, work.n, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    args.style.print.format = args.format == TFM_JSON ? PRINT_JSON : PRINT_TEXT;
    args.style.print.n_best = args.n_best >= 0;
    if (args.alignment != NULL) {
        print_parse_alignment(&args.style.print, args.alignment);
        args.options.alignment = args.alignment_of == 0 ? TFM_ALIGN_WORDS : TFM_ALIGN_PIECES;
    }
    args.options.n_best = args.n_best > 0 ? args.n_best : args.n_best == 0 ? args.options.beam_size : 1;
    status = open_and_translate(&work);
    targets_release(&work.targets);
    return status;
}
