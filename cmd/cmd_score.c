/*
 * cmd_score.c: `tfm score`: how probable a model finds given translations, or a language model texts. For each
 * pair it prints the sum of the log-probabilities of the target's pieces and what that is by length, or adds the
 * sum to a line of a list of hypotheses; or it prints a summary of all pairs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "models.h"
#include "output.h"
#include "print.h"
#include "score_input.h"

#define COMMAND "tfm score"

enum {
    WINDOW = 1024
};

struct score_args {
    struct tfm_translate_options options;
    struct option_names model;
    const char *model_weights, *output, *tsv, *feature, *cpu;
    const char *sets[2];
    bool n_best, word_scores, summary;
    const char *alignment;
    unsigned alignment_of;
    struct print_style style;
};

#define FIELD(field) OPTION_FIELD(struct score_args, field)

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Files" },
    { .name = "model", .letter = 'm', FIELD(model), .argument = "FOLDER", .max = TFM_MAX_MODELS,
      .help = "the model (default: TFM_MODEL, then the one that comes with tfm); given several times: models "
              "that score together" },
    { .name = "model-weights", FIELD(model_weights), .argument = "W,W,...",
      .help = "how much each model counts, in their order (default: all alike)" },
    { .name = "train-sets", .letter = 't', FIELD(sets), .argument = "SRC [TRG]",
      .help = "source and target, or a text, as if they were given as operands" },
    { .name = "tsv", FIELD(tsv), .argument = "FILE",
      .help = "one file with source, tab and target a line; - is standard input" },
    { .name = "output", .letter = 'o', FIELD(output), .argument = "FILE",
      .help = "write here instead of to standard output" },
    { .help = "Lists of hypotheses" },
    { .name = "n-best", FIELD(n_best),
      .help = "TRG (or TEXT) holds lines 'id ||| text ||| features ||| score', which are printed with one feature more" },
    { .name = "n-best-feature", FIELD(feature), .argument = "NAME", .help = "the name of the feature" },
    { .help = "Output" },
    { .name = "normalize", .letter = 'n', FIELD(options.normalize), .argument = "X", .bare = "1", .min = 0,
      .max = 10, .help = "the second number of a line is sum / length^X" },
    { .name = "word-scores", FIELD(word_scores), .help = "print the score of each piece too" },
    { .name = "alignment", FIELD(alignment), .argument = "FORM",
      .help = "print which source words a target word looks at: hard (the first), soft (the weights) or, with a "
              "number as FORM, those above it" },
    { .name = "alignment-of", FIELD(alignment_of), .argument = "words|pieces",
      .help = "what is counted in alignments" },
    { .name = "alignment-layer", FIELD(options.alignment_layer), .argument = "N", .min = 0, .max = 1000,
      .standard = "the last", .help = "the decoder layer that makes them, from 0" },
    { .name = "summary", FIELD(summary), .help = "print only cross-entropy and perplexity of all pairs" },
    { .help = "Machine" },
    { .name = "max-length", FIELD(options.max_length), .argument = "N", .min = 1, .max = 10000,
      .help = "the most pieces of source or target" },
    { .name = "mini-batch", FIELD(options.mini_batch), .argument = "N", .min = 1, .max = 10000,
      .help = "pairs scored together by a worker" },
    { .name = "cpu-threads", FIELD(options.threads), .argument = "N", .min = 0, .max = 1024,
      .standard = "0, one a core", .help = "workers" },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct score_args *args = fields;
    *args = (struct score_args){ .feature = "Score" };
    tfm_translate_options_init(&args->options);
    args->options.beam_size = 1; /* there is one hypothesis */
    args->options.shortlist = "off";
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "[OPTION]... SRC TRG\n       tfm score [OPTION]... TEXT",
    .summary = "Scores given translations or, with a language model, texts.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

struct totals {
    long n_pairs;
    double n_pieces, sum;
};

/* ---- output ---- */

/* The line with " NAME= score" at the end of its features, which stand before the last field. */
static void print_n_best(FILE *out, const char *line, const char *feature, double score)
{
    const char *end = line + strlen(line), *last = NULL;
    int n = 0;
    for (const char *at = line; (at = strstr(at, " ||| ")) != NULL; at++, n++)
        last = at;
    if (n < 3) /* features, but no score behind them */
        last = end;
    fprintf(out, "%.*s %s= %.6f%s\n", (int)(last - line), line, feature, score, last);
}

static void print_score(FILE *out, const struct score_args *args, const struct score_pair *pair,
                        const struct tfm_hypothesis *h)
{
    if (pair->line != NULL) {
        print_n_best(out, pair->line, args->feature, h->score);
        return;
    }
    fprintf(out, "%.6f\t%.6f", h->score, h->normalized_score);
    for (int i = 0; i < h->n_pieces && args->word_scores; i++)
        fprintf(out, "%c%.6f", i > 0 ? ' ' : '\t', (double)h->piece_scores[i]);
    if (args->alignment != NULL) {
        putc('\t', out);
        print_alignment(out, &args->style, h);
    }
    putc('\n', out);
}

static void print_summary(FILE *out, enum score_kind kind, const struct totals *t)
{
    double pairs = t->n_pairs > 0 ? (double)t->n_pairs : 1, pieces = t->n_pieces > 0 ? t->n_pieces : 1;
    fprintf(out,
            "%s\t%ld\npieces\t%.0f\nce-sum\t%.6f\ncross-entropy\t%.6f\nce-mean-words\t%.6f\n"
            "perplexity\t%.6f\n",
            kind == SCORE_TEXT ? "lines" : "pairs", t->n_pairs, t->n_pieces, -t->sum, -t->sum / pairs,
            -t->sum / pieces, exp(-t->sum / pieces));
}

/* ---- scoring ---- */

static enum tfm_status score_window(struct tfm_translator *translator, const struct score_args *args,
                                    const struct score_pair *pairs, size_t n, enum score_kind kind,
                                    const char *path, struct output *out, struct totals *totals,
                                    struct tfm_error *err)
{
    const char *sources[WINDOW], *targets[WINDOW];
    const struct tfm_translation *result;
    for (size_t i = 0; i < n; i++) {
        sources[i] = pairs[i].source;
        targets[i] = pairs[i].target;
    }
    enum tfm_status status = kind == SCORE_TEXT ? tfm_score(translator, targets, NULL, n, &result, err)
                                                : tfm_score(translator, sources, targets, n, &result, err);
    if (status == TFM_ENOMEM && n > 1) { /* by halves where one call has no room for all */
        size_t half = n / 2;
        status = score_window(translator, args, pairs, half, kind, path, out, totals, err);
        return status == TFM_OK ? score_window(translator, args, pairs + half, n - half, kind, path, out,
                                               totals, err)
                                : status;
    }
    for (size_t i = 0; i < n && status == TFM_OK; i++) {
        if (result[i].n_hypotheses == 0)
            return cmd_error(
                err, TFM_EFORMAT,
                "%s: line %ld: the %s of more than %d pieces: leave it out, or raise --max-length", path,
                pairs[i].number, kind == SCORE_TEXT ? "text is" : "pair has a side",
                args->options.max_length);
        const struct tfm_hypothesis *h = &result[i].hypotheses[0];
        if (!args->summary)
            print_score(out->file, args, &pairs[i], h);
        totals->n_pairs++;
        totals->n_pieces += h->n_pieces;
        totals->sum += h->score;
    }
    return status == TFM_OK ? output_flush(out, err) : status;
}

static enum tfm_status score_all(struct tfm_translator *translator, const struct score_args *args,
                                 struct score_input *input, struct output *out, struct tfm_error *err)
{
    struct score_pair pairs[WINDOW];
    struct totals totals = { 0 };
    const char *path = cmd_shown_path(input->target_path);
    enum tfm_status status = TFM_OK;
    for (bool more = true; more && status == TFM_OK;) {
        size_t n = 0;
        do {
            status = score_input_next(input, &pairs[n], &more, err);
            n += status == TFM_OK && more;
        } while (status == TFM_OK && more && n < WINDOW && !tfm_lines_would_wait(input->target));
        struct tfm_error score_err; /* what was read before a bad line is scored */
        if (n > 0 &&
            score_window(translator, args, pairs, n, input->kind, path, out, &totals, &score_err) != TFM_OK &&
            status == TFM_OK) {
            status = score_err.status;
            *err = score_err;
        }
        while (n > 0)
            score_pair_release(&pairs[--n]);
    }
    if (status == TFM_OK && args->summary)
        print_summary(out->file, input->kind, &totals);
    return status;
}

static enum tfm_status score_into(const struct score_args *args, const struct models *models,
                                  struct score_input *input, struct tfm_error *err)
{
    struct tfm_translator *translator;
    struct output out;
    enum tfm_status status = models_translator(&translator, models, &args->options, err);
    if (status != TFM_OK)
        return status;
    status = output_open(&out, args->output, err);
    if (status == TFM_OK)
        status = score_all(translator, args, input, &out, err);
    status = output_end(&out, status, err);
    tfm_translator_free(translator);
    return status;
}

/* A language model scores texts, another model pairs. */
static enum tfm_status check_kind(const struct tfm_model *model, const struct score_input *input,
                                  struct tfm_error *err)
{
    if (tfm_model_is_language_model(model) == (input->kind == SCORE_TEXT))
        return TFM_OK;
    return cmd_error(err, TFM_EINVAL,
                     input->kind == SCORE_TEXT
                         ? "%s is no language model: expected two files, source and target, found %s alone"
                         : "%s is a language model: expected one text, found pairs, of %s",
                     tfm_model_folder(model), input->target_path);
}

static int run(const struct score_args *args, enum score_kind kind, const char *source, const char *target)
{
    struct tfm_error err;
    struct models models;
    struct score_input input;
    struct tfm_open_options open;
    int wrong = models_read_weights(&models, &table, &args->model, args->model_weights);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    if ((args->cpu != NULL && tfm_set_cpu(args->cpu, &err) != TFM_OK) ||
        score_input_open(&input, kind, source, target, args->n_best, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    tfm_open_options_init(&open);
    enum tfm_status status = models_open(&models, &args->model, &open, &err);
    if (status == TFM_OK)
        status = check_kind(models.list[0], &input, &err);
    if (status == TFM_OK)
        status = score_into(args, &models, &input, &err);
    score_input_close(&input);
    models_close(&models);
    return status == TFM_OK ? EXIT_SUCCESS : cmd_failed(COMMAND, &err);
}

int cmd_score(int argc, char **argv)
{
    struct score_args args;
    int n, status = options_parse(&table, &args, argc, argv, &n);
    if (status != OPTIONS_GO_ON)
        return status;
    int n_given = (args.sets[0] != NULL) + (args.tsv != NULL) + (n > 0);
    if (n_given != 1 || n > 2)
        return options_wrong(&table,
                             "found %d files and %d of --train-sets and --tsv, expected two files, or one "
                             "text, or one of these",
                             n, n_given - (n > 0));
    const char *first = n > 0 ? argv[1] : args.sets[0], *second = args.sets[1];
    if (n == 2)
        second = argv[2];
    enum score_kind kind = args.tsv != NULL ? SCORE_TABS : second != NULL ? SCORE_FILES : SCORE_TEXT;
    const char *source = kind == SCORE_FILES ? first : NULL;
    const char *target = kind == SCORE_FILES ? second : kind == SCORE_TABS ? args.tsv : first;
    if (args.n_best && kind == SCORE_TABS)
        return options_wrong(&table, "option --n-best needs SRC and TRG, or TEXT, found --tsv");
    if (args.n_best && (args.word_scores || args.summary || args.alignment != NULL))
        return options_wrong(&table,
                             "option --n-best goes with neither --word-scores, --alignment nor --summary");
    if (*args.feature == '\0' || strpbrk(args.feature, " \t|=") != NULL)
        return options_wrong(&table, "option --n-best-feature: found '%s', expected a name without spaces, | and =",
                             args.feature);
    if (args.alignment == NULL && (args.alignment_of != 0 || args.options.alignment_layer >= 0))
        return options_wrong(&table, "option --alignment-%s is for --alignment, which is missing",
                             args.alignment_of != 0 ? "of" : "layer");
    if (args.alignment != NULL) {
        if (!print_parse_alignment(&args.style, args.alignment))
            return options_wrong(
                &table, "option --alignment: found '%s', expected hard, soft or a number from 0 to 1",
                args.alignment);
        args.options.alignment = args.alignment_of == 0 ? TFM_ALIGN_WORDS : TFM_ALIGN_PIECES;
    }
    if (source != NULL && strcmp(source, "-") == 0 && strcmp(target, "-") == 0)
        return options_wrong(&table, "found standard input for both sides, expected one of them");
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? source : target;
        if (path != NULL && output_is_input(args.output, path))
            return options_wrong(&table, "the output would overwrite the input %s", path);
    }
    return run(&args, kind, source, target);
}
