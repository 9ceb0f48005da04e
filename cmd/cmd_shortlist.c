/*
 * cmd_shortlist.c: `tfm shortlist`: the table of its options. The work is tfm_shortlist's.
 */
#include <stdlib.h>

#include "cmd.h"
#include "options.h"

#define COMMAND "tfm shortlist"

struct shortlist_args {
    struct tfm_shortlist_options options;
    struct corpus_list corpora;
    const char *tsv_fields;
    bool quiet;
};

#define FIELD(field) OPTION_FIELD(struct shortlist_args, field)

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Options" },
    { .name = "model", .letter = 'm', FIELD(options.model), .argument = "FOLDER",
      .help = "the model that the shortlist is for (required)" },
    { .name = "train-sets", .letter = 't', FIELD(corpora), .argument = "SRC TRG",
      .help = "a corpus: two files, plain or gzip, with a sentence a line; may be given several times" },
    { .name = "tsv", FIELD(corpora), .argument = "FILE",
      .help = "a corpus: one file of lines SOURCE<tab>TARGET; may be given several times" },
    { .name = "tsv-fields", FIELD(tsv_fields), .argument = "S,T",
      .help = "the columns of source and target in --tsv files, from 1 (default: they have just two)" },
    { .name = "output", .letter = 'o', FIELD(options.output), .argument = "FILE",
      .standard = "shortlist.gz in the model's folder", .help = "write the shortlist here" },
    { .name = "first", FIELD(options.first), .argument = "N", .min = 1, .max = 100000,
      .help = "list the N most frequent target pieces for every sentence" },
    { .name = "best", FIELD(options.best), .argument = "N", .min = 0, .max = 100000,
      .help = "list for each source piece the N most probable target pieces, at most" },
    { .name = "threshold", FIELD(options.threshold), .argument = "P", .min = 0, .max = 1,
      .help = "of them only those with at least this probability" },
    { .name = "quiet", FIELD(quiet), .help = "print nothing but errors" },
    { .name = "cpu-threads", FIELD(options.threads), .argument = "N", .min = 0, .max = 1024,
      .standard = "0, one a core", .help = "threads" },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct shortlist_args *args = fields;
    free(args->corpora.list);
    *args = (struct shortlist_args){ 0 };
    tfm_shortlist_options_init(&args->options);
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "-m FOLDER (-t SRC TRG | --tsv FILE)... [OPTION]...",
    .summary = "Makes a lexical shortlist from parallel text: a model translates faster with it.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

static int check_arguments(struct shortlist_args *args, int n_operands, char **argv)
{
    if (n_operands > 0)
        return options_wrong(&table, "unexpected argument '%s'", argv[1]);
    if (args->options.model == NULL)
        return options_wrong(&table, "option --model is missing: the folder of the model");
    if (args->corpora.n == 0)
        return options_wrong(&table, "option --train-sets (or --tsv) is missing: the corpus to learn from");
    return options_columns(&table, args->tsv_fields, &args->options.source_field,
                           &args->options.target_field);
}

static int make(struct shortlist_args *args)
{
    struct tfm_error err;
    struct tfm_shortlist_report report;
    args->options.corpora = args->corpora.list;
    args->options.n_corpora = args->corpora.n;
    args->options.scratch = cmd_scratch_folder();
    if (tfm_shortlist(&args->options, &report, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    if (!args->quiet)
        fprintf(stderr,
                COMMAND
                ": learnt from %ld pairs; a source piece lists %.1f target pieces, a sentence %.0f of %d; "
                "%.2f %% of the corpus's target pieces are listed where they come\n",
                report.pairs, report.list_pieces, report.pieces, report.vocabulary, 100 * report.coverage);
    return EXIT_SUCCESS;
}

int cmd_shortlist(int argc, char **argv)
{
    struct shortlist_args args = { 0 };
    int n_operands;
    int status = options_parse(&table, &args, argc, argv, &n_operands);
    if (status == OPTIONS_GO_ON)
        status = check_arguments(&args, n_operands, argv);
    if (status == OPTIONS_GO_ON)
        status = make(&args);
    free(args.corpora.list);
    return status;
}
