/*
 * cmd_train.c: `tfm train`: the table of its options. The training itself is tfm_train, which saves
 * everything when a signal ends it (stop.c); what it reports goes through progress.c.
 */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "head_loss_options.h"
#include "options.h"
#include "progress.h"
#include "recipe.h"
#include "stop.h"

#define COMMAND "tfm train"

struct train_args {
    struct tfm_train_options options;
    struct corpus_list corpora;
    struct head_loss_options heads;
    struct tfm_head_loss head_losses[TFM_MAX_HEAD_LOSSES];
    const char *weights, *tsv_fields;
    const char *valid_sets[2], *vocabs[2];
    const char *recipe, *cpu;
    struct progress_files files;
    bool f32, quiet, dry_run;
};

#define FIELD(field) OPTION_FIELD(struct train_args, field)
#define PRESET       .standard = "the preset's"

/* clang-format off */
static const struct option_spec options[] = {
    { .help = "Data" },
    { .name = "model", .letter = 'm', FIELD(options.model), .argument = "FOLDER",
      .help = "the model to write, or to go on with (required)" },
    { .name = "recipe", FIELD(recipe), .argument = "FILE",
      .help = "options kept in a file, one a line without dashes; those of the command line come on top" },
    { .name = "train-sets", .letter = 't', FIELD(corpora), .argument = "SRC [TRG]",
      .help = "a corpus: two files, plain or gzip, with a sentence a line, or of plain text (--arch encoder or decoder) "
              "one; may be given several times" },
    { .name = "tsv", FIELD(corpora), .argument = "FILE",
      .help = "a corpus: one file of lines SOURCE<tab>TARGET; may be given several times" },
    { .name = "tsv-fields", FIELD(tsv_fields), .argument = "S,T",
      .help = "the columns of source and target in --tsv files, from 1 (default: they have just two); of plain text its "
              "one column" },
    { .name = "weights", FIELD(weights), .argument = "W,W,...",
      .help = "how often each corpus is seen in an epoch, in their order: 2 is twice, 0.5 is half of it "
              "(default: once)" },
    { .name = "vocabs", .letter = 'v', FIELD(vocabs), .argument = "SRC [TRG]",
      .help = "SentencePiece models, or one for both sides (default: trained on the corpus)" },
    { .name = "pretrained", FIELD(options.pretrained), .argument = "FOLDER",
      .help = "begin with the weights of another model, all that have a name here, and with its vocabularies" },
    { .name = "vocab-size", FIELD(options.vocab_size), .argument = "N", .min = 16, .max = 1000000,
      .help = "pieces of a vocabulary trained here" },
    { .name = "vocab-type", FIELD(options.vocab_type), .argument = "unigram|bpe",
      .help = "kind of a vocabulary trained here" },
    { .name = "max-length", FIELD(options.max_length), .argument = "N", .min = 1, .max = 10000,
      .help = "leave out pairs with more pieces than this on a side" },
    { .name = "max-length-ratio", FIELD(options.max_length_ratio), .argument = "R", .min = 0, .max = 10000,
      .help = "leave out pairs with more than R times as many pieces on one side as on the other; 0: none" },
    { .name = "shuffle-window", FIELD(options.shuffle_window), .argument = "N", .min = 1, .max = 100000000,
      .help = "pairs held in memory, and shuffled, at a time" },
    { .name = "source-sampling", FIELD(options.source_sampling), .argument = "ALPHA", .min = 0, .max = 1000,
      .help = "split source words at random: with bpe leave out merges with this probability (0.1 is usual), with "
              "unigram draw with probabilities to this power (0.2 to 0.5); 0: as in translation" },
    { .name = "target-sampling", FIELD(options.target_sampling), .argument = "ALPHA", .min = 0, .max = 1000,
      .help = "the same for the target" },
    { .help = "Architecture" },
    { .name = "preset", FIELD(options.preset), .argument = "tiny|small|base|student",
      .help = "sizes and learning rate" },
    { .name = "enc-depth", FIELD(options.encoder_layers), .argument = "N", .min = 1, .max = 64, PRESET,
      .help = "encoder layers" },
    { .name = "dec-depth", FIELD(options.decoder_layers), .argument = "N", .min = 1, .max = 64, PRESET,
      .help = "decoder layers" },
    { .name = "dim-model", .alias = "dim-emb", FIELD(options.dim_model), .argument = "N", .min = 4,
      .max = 16384, PRESET, .help = "width of the model and of its embeddings" },
    { .name = "dim-ffn", .alias = "transformer-dim-ffn", FIELD(options.dim_ffn), .argument = "N", .min = 1,
      .max = 65536, PRESET, .help = "width inside the feed-forward layers" },
    { .name = "heads", .alias = "transformer-heads", FIELD(options.heads), .argument = "N", .min = 1,
      .max = 16384, PRESET, .help = "attention heads a layer; divides --dim-model" },
    { .name = "norm-position", FIELD(options.norm_position), .argument = "pre|post", PRESET,
      .help = "normalise before each sublayer, or after it" },
    { .name = "norm", FIELD(options.norm), .argument = "layer|rms",
      .help = "what a norm does: layer normalisation, or only the division by the root mean square (RMS)" },
    { .name = "activation", .alias = "transformer-ffn-activation", FIELD(options.activation),
      .argument = "relu|gelu|gelu-tanh|swish|swiglu|geglu",
      .help = "inside the feed-forward layers; swiglu and geglu are swish and gelu with a gate, which has a matrix of "
              "its own" },
    { .name = "init", FIELD(options.init), .argument = "xavier|depth-scaled",
      .help = "first values of matrices; depth-scaled: smaller in later layers, so that deep post-norm stacks learn" },
    { .name = "dec-cell", FIELD(options.dec_cell), .argument = "attention|ssru", PRESET,
      .help = "how the decoder knows what it has written: by self-attention, or by a recurrent unit (SSRU) with "
              "one state a layer, which makes translation faster" },
    { .name = "arch", FIELD(options.arch), .argument = "transformer|rnn|decoder|encoder",
      .help = "encoder and decoder made of attention; of recurrent cells with one attention to the source; a decoder "
              "alone that reads source and target as one sequence, or goes on with a text (a language model); or an "
              "encoder alone that learns to fill gaps in a text (a masked language model)" },
    { .name = "rnn-cell", FIELD(options.rnn_cell), .argument = "gru|lstm",
      .help = "the recurrent cells of --arch rnn" },
    { .name = "rnn-attention", FIELD(options.rnn_attention), .argument = "additive|dot|general",
      .help = "how --arch rnn compares the decoder's state with the source: by a small network, by their product, or by "
              "their product with a matrix between" },
    { .name = "kv-heads", FIELD(options.kv_heads), .argument = "N", .min = 0, .max = 16384,
      .standard = "0, as many as --heads",
      .help = "heads of keys and values, each for some of --heads: 1 is multi-query attention; divides --heads" },
    { .name = "attention", FIELD(options.attention_function), .argument = "dot|additive",
      .help = "scores by dot products, or of a small network for each pair (Bahdanau), which is slow" },
    { .name = "attention-scale", FIELD(options.attention_scale), .argument = "sqrt|none",
      .help = "divide dot products by the square root of a head's width, or not" },
    { .name = "attention-window", FIELD(options.attention_window), .argument = "N", .min = 0, .max = 1000000,
      .standard = "0, any distance", .help = "self-attention sees so many pieces to each side" },
    { .name = "positions", FIELD(options.positions),
      .argument = "sinusoidal|interleaved|learned|rope|alibi|relative|none", PRESET,
      .help = "how positions are told: by sinusoids (in two halves, or interleaved) or learned vectors added to embeddings, by "
              "rotating queries and keys (RoPE), or by biases that grow with the distance (ALiBi) or are learned "
              "(as in T5)" },
    { .name = "max-positions", FIELD(options.max_positions), .argument = "N", .min = 1, .max = 65536,
      .help = "learned positions a side; a longer line is squeezed into them" },
    { .name = "tied-embeddings", FIELD(options.tie), .argument = "all|target|none",
      .help = "which share one matrix: both embeddings and the output layer, or the target's two, or none" },
    { .name = "dropout", .alias = "transformer-dropout", FIELD(options.dropout), .argument = "P", .min = 0,
      .max = 0.95, PRESET, .help = "dropout of embeddings and of what each layer adds" },
    { .name = "attention-dropout", .alias = "transformer-dropout-attention", FIELD(options.attention_dropout),
      .argument = "P", .min = 0, .max = 0.95, PRESET, .help = "dropout of attention weights" },
    { .name = "activation-dropout", .alias = "transformer-dropout-ffn", FIELD(options.activation_dropout),
      .argument = "P", .min = 0, .max = 0.95, PRESET, .help = "dropout inside the feed-forward layers" },
    { .name = "layer-drop", FIELD(options.layer_drop), .argument = "P", .min = 0, .max = 0.95,
      .help = "leave each layer out of an update with this probability" },
    { .help = "Optimisation" },
    { .name = "mini-batch-words", FIELD(options.mini_batch_words), .argument = "N", .min = 1, .max = 10000000, PRESET,
      .help = "target pieces a batch, about" },
    { .name = "optimizer-delay", FIELD(options.optimizer_delay), .argument = "N", .min = 1, .max = 10000,
      .help = "batches an update: their gradients are summed" },
    { .name = "learn-rate", .letter = 'l', FIELD(options.learn_rate), .argument = "X", .min = 0, .max = 1e9,
      PRESET, .help = "peak learning rate of Adam" },
    { .name = "lr-warmup", FIELD(options.lr_warmup), .argument = "AMOUNT", PRESET,
      .help = "the learning rate rises for this long" },
    { .name = "lr-decay", FIELD(options.lr_decay), .argument = "inv-sqrt|cosine|linear|none",
      .help = "how it falls: with the inverse square root after the warm-up, or to zero at --after" },
    { .name = "label-smoothing", FIELD(options.label_smoothing), .argument = "P", .min = 0, .max = 0.95,
      .help = "part of the probability spread over all pieces" },
    { .name = "mask-rate", FIELD(options.mask_rate), .argument = "P", .min = 0.001, .max = 1,
      .help = "part of the pieces that --arch encoder is to predict" },
    { .name = "r-drop", FIELD(options.r_drop), .argument = "ALPHA", .min = 0, .max = 1000,
      .help = "train each pair twice, with other dropout, and weigh their disagreement so much; 5 is usual" },
    { .name = "head-loss", FIELD(heads.losses), .max = TFM_MAX_HEAD_LOSSES - 1,
      .argument = "PART.LAYER.HEAD:KIND=W",
      .help = "add W times a measure of an attention head to the loss: PART is encoder, decoder or cross, LAYER and HEAD "
              "(or *) count from 0, KIND is entropy, sparsity or distance; W > 0 sharpens the head, or looks nearby, "
              "W < 0 does the opposite; may be given several times" },
    { .name = "guided-alignment", FIELD(heads.files), .argument = "FILE", .max = OPTION_NAMES_MAX,
      .help = "word alignments of a corpus (0-0 1-2), a line for each pair, that a head is to learn; one for each corpus, "
              "in their order, or none" },
    { .name = "guided-alignment-cost", FIELD(heads.guided_cost), .argument = "ce|mse",
      .help = "how far the head is from the alignment: cross-entropy, or squared differences" },
    { .name = "guided-alignment-weight", FIELD(heads.guided_weight), .argument = "W", .min = 0, .max = 1000,
      .help = "weight of that in the loss" },
    { .name = "guided-alignment-head", FIELD(heads.guided_head), .argument = "LAYER.HEAD",
      .standard = "the last layer's head 0",
      .help = "the head of the attention to the source that learns it, from 0" },
    { .name = "clip-norm", FIELD(options.clip_norm), .argument = "X", .min = 0, .max = 1e9,
      .help = "longest gradient; 0 is any" },
    { .name = "weight-decay", FIELD(options.weight_decay), .argument = "X", .min = 0, .max = 1000,
      .help = "part of each matrix that an update takes away, times the learning rate" },
    { .name = "exponential-smoothing", FIELD(options.exponential_smoothing), .argument = "X", .min = 0,
      .max = 1,
      .help = "validate and export a mean of the weights that moves by this part an update; 0: the weights" },
    { .name = "seed", FIELD(options.seed), .argument = "N", .help = "of all random choices" },
    { .help = "Validation" },
    { .name = "valid-sets", FIELD(valid_sets), .argument = "SRC [TRG]",
      .help = "two files to validate on, or of plain text one" },
    { .name = "valid-tsv", FIELD(options.valid_tsv), .argument = "FILE",
      .help = "or one of SOURCE<tab>TARGET" },
    { .name = "valid-freq", FIELD(options.valid_freq), .argument = "AMOUNT", .help = "validate this often" },
    { .name = "valid-metrics", FIELD(options.valid_metrics), .argument = "LIST",
      .standard = "ce,bleu, or what suits plain text",
      .help = "some of ce (cross-entropy), perplexity, accuracy, bleu and chrf (of translations), with commas; the "
              "last decides what is best" },
    { .name = "watch-attention", FIELD(options.watch_attention), .argument = "FILE", .bare = "",
      .standard = "",
      .help = "report at each validation what each attention head does, and draw these sentences (lines of "
              "SOURCE<tab>TARGET, or of plain text) or the first two of the validation set" },
    { .name = "early-stopping", FIELD(options.early_stopping), .argument = "N", .min = 0, .max = 1000000,
      .help = "stop after N validations without a new best; 0: go on" },
    { .help = "Run" },
    { .name = "after", .letter = 'a', FIELD(options.after), .argument = "AMOUNT",
      .standard = "20e; with validations, when they say so",
      .help = "stop after this much training: 10e (epochs), 5000 or 5Ku (updates), 1Gt (target tokens), "
              "50min, 2h" },
    { .name = "disp-freq", FIELD(options.disp_freq), .argument = "AMOUNT", .help = "report this often" },
    { .name = "save-freq", FIELD(options.save_freq), .argument = "AMOUNT", .help = "save this often" },
    { .name = "keep-last", FIELD(options.keep_last), .argument = "N", .min = 1, .max = 1000000,
      .help = "newest checkpoints that are kept, beside the best" },
    { .name = "f32", FIELD(f32), .help = "export the weights in 32 bits rather than 16" },
    { .name = "log", FIELD(files.log), .argument = "FILE", .help = "append the log lines to a file too" },
    { .name = "log-json", FIELD(files.json), .argument = "FILE",
      .help = "append a JSON object an event to a file" },
    { .name = "tensorboard", FIELD(files.tensorboard), .argument = "FOLDER",
      .help = "write losses and scores for TensorBoard into a new file there" },
    { .name = "dry-run", FIELD(dry_run),
      .help = "read everything, say what would be trained and how long it would take, and write nothing" },
    { .name = "profile", FIELD(options.profile),
      .help = "report at the end how long each part of the work took" },
    { .name = "quiet", FIELD(quiet), .help = "print nothing but errors" },
    { .name = "gemm", FIELD(options.gemm), .argument = "own|blas|bf16x3|bf16",
      .help = "who multiplies matrices: own kernels, with the same digits on every CPU; OpenBLAS; or, half as "
              "fast again where the CPU has AMX, products of bf16, three for one (nearly as exact as floats) or "
              "one (8 bits)" },
    { .name = "cpu-threads", FIELD(options.threads), .argument = "N", .min = 0, .max = 1024,
      .standard = "0, one a core", .help = "threads; a training that goes on may have another number" },
    { .name = "cpu", FIELD(cpu), .argument = "TIER", .standard = "auto", .help = OPTION_CPU_HELP },
    OPTION_HELP_ENTRY,
};
/* clang-format on */

static void set_defaults(void *fields)
{
    struct train_args *args = fields;
    free(args->corpora.list);
    *args = (struct train_args){ 0 };
    tfm_train_options_init(&args->options);
    args->heads.guided_weight = HEAD_LOSS_GUIDED_WEIGHT;
}

static const struct option_table table = {
    .command = COMMAND,
    .usage = "-m FOLDER (-t SRC TRG | --tsv FILE)... [OPTION]...\n"
             "       tfm train -m FOLDER --arch encoder|decoder -t TEXT... [OPTION]...",
    .summary = "Trains a model on parallel text, or goes on with a training that was stopped.",
    .defaults = set_defaults,
    .options = options,
    .n = sizeof(options) / sizeof(options[0]),
};

static int read_weights(struct train_args *args)
{
    int n = args->corpora.n;
    if (args->weights == NULL)
        return OPTIONS_GO_ON;
    double *weights = calloc((size_t)n, sizeof(*weights));
    int status = weights != NULL ? options_weights(&table, "weights", args->weights, weights, n, "corpus")
                                 : options_wrong(&table, "no memory for the weights");
    for (int i = 0; i < n && status == OPTIONS_GO_ON; i++)
        args->corpora.list[i].weight = weights[i];
    free(weights);
    return status;
}

static int check_arguments(struct train_args *args, int n_operands, char **argv)
{
    const struct tfm_train_options *o = &args->options;
    if (n_operands > 0)
        return options_wrong(&table, "unexpected argument '%s'", argv[1]);
    if (o->model == NULL)
        return options_wrong(&table, "option --model is missing: the folder to write the model to");
    if (args->corpora.n == 0)
        return options_wrong(&table, "option --train-sets (or --tsv) is missing: the corpus to train on");
    if (o->valid_tsv != NULL && args->valid_sets[0] != NULL)
        return options_wrong(&table, "found both --valid-sets and --valid-tsv, expected one of them");
    if (o->valid_metrics != NULL && o->valid_tsv == NULL && args->valid_sets[0] == NULL)
        return options_wrong(
            &table, "option --valid-metrics is for --valid-sets and --valid-tsv, found none of them");
    int wrong = read_weights(args);
    if (wrong == OPTIONS_GO_ON)
        wrong = head_loss_options_read(args->head_losses, &args->options.n_head_losses, &args->corpora,
                                       &args->heads, &table);
    if (wrong != OPTIONS_GO_ON)
        return wrong;
    bool is_text = o->arch == TFM_ARCH_ENCODER || (o->arch == TFM_ARCH_DECODER && args->tsv_fields != NULL &&
                                                   strchr(args->tsv_fields, ',') == NULL);
    return options_columns(&table, args->tsv_fields, &args->options.source_field,
                           is_text ? NULL : &args->options.target_field);
}

static int train(struct train_args *args)
{
    struct tfm_train_options *o = &args->options;
    o->corpora = args->corpora.list;
    o->n_corpora = args->corpora.n;
    o->head_losses = args->head_losses;
    o->valid_source = args->valid_sets[0];
    o->valid_target = args->valid_sets[1];
    o->source_vocab = args->vocabs[0];
    o->target_vocab = args->vocabs[1];
    o->f16 = !args->f32;
    o->stop = &stop_signal;
    if (args->dry_run) {
        o->dry_run = cmd_scratch_folder();
        args->files = (struct progress_files){ 0 }; /* they often lie in the model folder */
    }

    struct tfm_error err;
    struct progress progress;
    if ((args->cpu != NULL && tfm_set_cpu(args->cpu, &err) != TFM_OK) ||
        progress_init(&progress, args->quiet, &args->files, &err) != TFM_OK)
        return cmd_failed(COMMAND, &err);
    o->event = progress_event;
    o->user = &progress;
    stop_catch_signals();
    enum tfm_status status = tfm_train(o, &err);
    progress_release(&progress);
    if (status == TFM_ESTOPPED) {
        if (!args->quiet)
            cmd_failed(COMMAND, &err);
        return EXIT_SIGNAL + stop_signal;
    }
    return status == TFM_OK ? EXIT_SUCCESS : cmd_failed(COMMAND, &err);
}

int cmd_train(int argc, char **argv)
{
    struct train_args args = { 0 };
    struct recipe recipe = { 0 };
    int n_operands;
    int status = options_parse(&table, &args, argc, argv, &n_operands);
    if (status == OPTIONS_GO_ON && n_operands == 0 && args.recipe != NULL)
        status = recipe_parse(&recipe, &table, &args, args.recipe, argc, argv);
    if (status == OPTIONS_GO_ON)
        status = check_arguments(&args, n_operands, argv);
    if (status == OPTIONS_GO_ON)
        status = train(&args);
    free(args.corpora.list);
    recipe_release(&recipe);
    return status;
}
