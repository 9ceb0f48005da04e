/*
 * train_options.c: defaults, presets and sense of the options of a training. What is wrong is said in the
 * words of tfm-train(1), before any file is read.
 */
#include "train/train_options.h"

#include <math.h>
#include <string.h>

#include "base/limit.h"
#include "base/pool.h"
#include "train/head_terms.h"

#define MAX_THREADS       1024
#define DEFAULT_POSITIONS 512
#define DEFAULT_MASK_RATE 0.15

static const struct rates { /* what goes with a preset, for corpora of up to some millions of pairs */
    const char *preset;
    int mini_batch_words;
    double learn_rate, warmup; /* warm-up in updates */
} rates[] = {
    { "tiny", 1024, 0.002, 1000 },
    { "small", 4096, 0.001, 2000 },
    { "base", 4096, 0.0007, 4000 },
    { "student", 4096, 0.0005, 4000 },
};

static const char *const metric_names[N_METRICS] = { "ce", "perplexity", "accuracy", "bleu", "chrf" };
#define METRIC_NAMES "ce, perplexity, accuracy, bleu and chrf"

const char *train_options_metric(enum metric metric)
{
    return metric_names[metric];
}

bool train_options_is_of_translations(enum metric metric)
{
    return metric == METRIC_BLEU || metric == METRIC_CHRF;
}

static const char *const arch_names[] = { "transformer", "rnn", "decoder", "encoder" };

const char *train_options_arch(const struct config *config)
{
    switch (config->architecture) {
    case CONFIG_DECODER_ONLY: return arch_names[TFM_ARCH_DECODER];
    case CONFIG_ENCODER_ONLY: return arch_names[TFM_ARCH_ENCODER];
    case CONFIG_ENCODER_DECODER: break;
    }
    return arch_names[config->arch];
}

bool train_options_is_text(const struct tfm_train_options *o)
{
    if (o->arch != TFM_ARCH_DECODER || o->n_corpora <= 0 || o->corpora == NULL)
        return o->arch == TFM_ARCH_ENCODER;
    const struct tfm_corpus *first = &o->corpora[0];
    return first->tsv != NULL ? o->source_field > 0 && o->target_field == 0 : first->target == NULL;
}

static bool is_language_model(const struct tfm_train_options *o)
{
    return o->arch == TFM_ARCH_DECODER && train_options_is_text(o);
}

void tfm_train_options_init(struct tfm_train_options *options)
{
    *options = (struct tfm_train_options){
        .vocab_size = 8000,
        .vocab_type = "unigram",
        .max_length = 150,
        .shuffle_window = 262144,
        .preset = "tiny",
        .norm_position = TFM_NORM_PRESET,
        .dec_cell = TFM_CELL_PRESET,
        .arch = TFM_ARCH_TRANSFORMER,
        .rnn_cell = TFM_RNN_GRU,
        .rnn_attention = TFM_RNN_ADDITIVE,
        .tie = TFM_TIE_ALL,
        .positions = TFM_POSITIONS_PRESET,
        .max_positions = DEFAULT_POSITIONS,
        .dropout = -1,
        .attention_dropout = -1,
        .activation_dropout = -1,
        .optimizer_delay = 1,
        .label_smoothing = 0.1f,
        .mask_rate = DEFAULT_MASK_RATE,
        .clip_norm = 1,
        .seed = 1,
        .after = { -1, TFM_EPOCHS },
        .disp_freq = { 100, TFM_UPDATES },
        .valid_freq = { 500, TFM_UPDATES },
        .save_freq = { 500, TFM_UPDATES },
        .keep_last = 1,
        .early_stopping = 10,
        .exponential_smoothing = 0.001f,
        .f16 = true,
    };
}

/* ---- checks ---- */

/* What only a program can get wrong: the command line has names for these. */
static enum tfm_status check_choices(const struct tfm_train_options *o, struct tfm_error *err)
{
    const struct limit choices[] = {
        { "norm_position", (int)o->norm_position, 0, TFM_NORM_PRESET },
        { "norm", (int)o->norm, 0, TFM_RMS_NORM },
        { "activation", (int)o->activation, 0, TFM_ACTIVATION_GEGLU },
        { "init", (int)o->init, 0, TFM_INIT_DEPTH_SCALED },
        { "dec_cell", (int)o->dec_cell, 0, TFM_CELL_PRESET },
        { "arch", (int)o->arch, 0, TFM_ARCH_ENCODER },
        { "rnn_cell", (int)o->rnn_cell, 0, TFM_RNN_LSTM },
        { "rnn_attention", (int)o->rnn_attention, 0, TFM_RNN_GENERAL },
        { "tie", (int)o->tie, 0, TFM_TIE_NONE },
        { "positions", (int)o->positions, 0, TFM_POSITIONS_PRESET },
        { "attention_function", (int)o->attention_function, 0, TFM_ATTENTION_ADDITIVE },
        { "attention_scale", (int)o->attention_scale, 0, TFM_SCALE_NONE },
        { "lr_decay", (int)o->lr_decay, 0, TFM_DECAY_NONE },
        { "lr_warmup.unit", (int)o->lr_warmup.unit, 0, TFM_MINUTES },
        { "after.unit", (int)o->after.unit, 0, TFM_MINUTES },
        { "disp_freq.unit", (int)o->disp_freq.unit, 0, TFM_MINUTES },
        { "valid_freq.unit", (int)o->valid_freq.unit, 0, TFM_MINUTES },
        { "save_freq.unit", (int)o->save_freq.unit, 0, TFM_MINUTES },
        { "gemm", (int)o->gemm, 0, TFM_GEMM_BF16 },
        { "n_head_losses (--head-loss)", o->n_head_losses, 0, TFM_MAX_HEAD_LOSSES },
    };
    TRY(LIMIT_CHECK(choices, err));
    if (o->n_head_losses > 0 && o->head_losses == NULL)
        return err_set(err, TFM_EINVAL, "n_head_losses is %d, but head_losses is NULL", o->n_head_losses);
    return TFM_OK;
}

/* Whatever sets the learning rate must not hang on the clock: it decides digits. */
static enum tfm_status check_schedule(const struct tfm_train_options *o, struct tfm_error *err)
{
    if (o->lr_warmup.amount > 0 && o->lr_warmup.unit == TFM_MINUTES)
        return err_set(err, TFM_EINVAL, "--lr-warmup is in minutes; it can be in updates, epochs or tokens");
    bool has_end = o->lr_decay == TFM_DECAY_COSINE || o->lr_decay == TFM_DECAY_LINEAR;
    if (has_end && (!(o->after.amount > 0) || o->after.unit == TFM_MINUTES))
        return err_set(err, TFM_EINVAL,
                       "--lr-decay cosine and linear need an end in updates, epochs or tokens (--after)");
    return TFM_OK;
}

/* What a corpus or a validation set is made of: two files, or one with tabs; of plain text one file. All of a
 * training are alike. */
static enum tfm_status check_sources(const struct tfm_corpus *c, const struct tfm_train_options *o,
                                     const char *what, struct tfm_error *err)
{
    bool is_text = train_options_is_text(o);
    if (is_text && c->target != NULL)
        return err_set(err, TFM_EINVAL, "%s of --arch %s is one text%s: found %s and %s", what,
                       arch_names[o->arch], is_language_model(o) ? " where the first is" : "", c->source,
                       c->target);
    if (!is_text && c->source != NULL && c->target == NULL && o->arch == TFM_ARCH_DECODER)
        return err_set(err, TFM_EINVAL,
                       "%s needs two files, source and target, where the first has them: found %s alone",
                       what, c->source);
    if ((c->source == NULL && c->tsv == NULL) || (!is_text && (c->source == NULL) != (c->target == NULL)))
        return err_set(err, TFM_EINVAL, "%s needs %s", what,
                       is_text ? "a file of text, or a column of one with tabs"
                               : "two files, source and target, or one of tab-separated pairs");
    if (c->source != NULL && c->tsv != NULL)
        return err_set(err, TFM_EINVAL, "%s is one file with tabs, or is without: found %s and %s", what,
                       c->source, c->tsv);
    return TFM_OK;
}

static enum tfm_status check_corpus(const struct tfm_corpus *c, const struct tfm_train_options *o,
                                    struct tfm_error *err)
{
    TRY(check_sources(c, o, "a corpus (--train-sets, --tsv)", err));
    if (!(c->weight >= 0 && c->weight <= 1000))
        return err_set(err, TFM_EINVAL, "the weight of a corpus is %g; it can be from 0 to 1000 (--weights)",
                       c->weight);
    return TFM_OK;
}

static int count_stdin(const char *const *paths, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += paths[i] != NULL && strcmp(paths[i], "-") == 0;
    return found;
}

static enum tfm_status check_corpora(const struct tfm_train_options *o, struct tfm_error *err)
{
    if (o->corpora == NULL || o->n_corpora <= 0)
        return err_set(err, TFM_EINVAL, "no corpus is named (--train-sets or --tsv)");
    const char *const valid[] = { o->valid_source, o->valid_target, o->valid_tsv };
    int n_stdin = count_stdin(valid, 3);
    for (int i = 0; i < o->n_corpora; i++) {
        const struct tfm_corpus *c = &o->corpora[i];
        const char *const paths[] = { c->source, c->target, c->tsv };
        TRY(check_corpus(c, o, err));
        int n = count_stdin(paths, 3);
        if (n == 2)
            return err_set(err, TFM_EINVAL,
                           "both sides of the text cannot come from standard input: use --tsv - there");
        n_stdin += n + (c->alignment != NULL && strcmp(c->alignment, "-") == 0);
    }
    if (n_stdin > 1)
        return err_set(err, TFM_EINVAL, "standard input (\"-\") is named %d times; it can be read once",
                       n_stdin);
    return TFM_OK;
}

static enum tfm_status check_columns(const struct tfm_train_options *o, struct tfm_error *err)
{
    bool has_tsv = o->valid_tsv != NULL;
    for (int i = 0; i < o->n_corpora; i++)
        has_tsv = has_tsv || o->corpora[i].tsv != NULL;
    if (train_options_is_text(o)) {
        if (o->source_field < 0 || o->target_field != 0 || (has_tsv && o->source_field == 0))
            return err_set(err, TFM_EINVAL,
                           "--tsv and --valid-tsv of plain text need the column of the text: --tsv-fields N");
        return TFM_OK;
    }
    if (o->source_field > 0 && o->target_field == 0)
        return err_set(err, TFM_EINVAL,
                       "--tsv-fields is %d, the column of a text, and the first corpus is of pairs: expected "
                       "two columns, as in 1,2",
                       o->source_field);
    if (o->source_field < 0 || o->target_field < 0 || (o->source_field == 0) != (o->target_field == 0))
        return err_set(err, TFM_EINVAL, "--tsv-fields is %d,%d; it can be two numbers of columns, from 1",
                       o->source_field, o->target_field);
    return TFM_OK;
}

static bool has_valid(const struct tfm_train_options *o)
{
    return o->valid_source != NULL || o->valid_target != NULL || o->valid_tsv != NULL;
}

static enum tfm_status check_files(const struct tfm_train_options *o, struct tfm_error *err)
{
    if (o->model == NULL || *o->model == '\0')
        return err_set(err, TFM_EINVAL, "no model folder to write is named (--model)");
    TRY(check_corpora(o, err));
    const struct tfm_corpus valid = { .source = o->valid_source,
                                      .target = o->valid_target,
                                      .tsv = o->valid_tsv };
    if (has_valid(o))
        TRY(check_sources(&valid, o, "a validation set (--valid-sets, --valid-tsv)", err));
    if (train_options_is_text(o) && o->source_vocab != NULL && o->target_vocab != NULL &&
        strcmp(o->source_vocab, o->target_vocab) != 0)
        return err_set(err, TFM_EINVAL, "plain text has one vocabulary: found %s and %s (--vocabs)",
                       o->source_vocab, o->target_vocab);
    if (o->pretrained != NULL && (o->source_vocab != NULL || o->target_vocab != NULL))
        return err_set(err, TFM_EINVAL,
                       "found --pretrained and --vocabs: the vocabulary is that of the model %s",
                       o->pretrained);
    return check_columns(o, err);
}

static enum tfm_status check_numbers(const struct tfm_train_options *o, struct tfm_error *err)
{
    const struct limit limits[] = {
        { "--vocab-size", o->vocab_size, 16, 1000000 },
        { "--attention-window", o->attention_window, 0, 1000000 },
        { "--max-positions", o->max_positions, 1, 65536 },
        { "--max-length", o->max_length, 1, 10000 },
        { "--max-length-ratio", o->max_length_ratio, 0, 10000 },
        { "--shuffle-window", o->shuffle_window, 1, 100000000 },
        { "--mini-batch-words", o->mini_batch_words, 0, 10000000 },
        { "--optimizer-delay", o->optimizer_delay, 1, 10000 },
        { "--learn-rate", o->learn_rate, 0, HUGE_VAL },
        { "--lr-warmup", o->lr_warmup.amount, 0, HUGE_VAL },
        { "--dropout", o->dropout, -1, 1 }, /* less than 0: the preset's */
        { "--attention-dropout", o->attention_dropout, -1, 1 },
        { "--activation-dropout", o->activation_dropout, -1, 1 },
        { "--layer-drop", o->layer_drop, 0, 0.95 },
        { "--label-smoothing", o->label_smoothing, 0, 0.99 },
        { "--mask-rate", o->mask_rate, 0.001, 1 },
        { "--r-drop", o->r_drop, 0, 1000 },
        { "--source-sampling", o->source_sampling, 0, 1000 },
        { "--target-sampling", o->target_sampling, 0, 1000 },
        { "--clip-norm", o->clip_norm, 0, HUGE_VAL },
        { "--weight-decay", o->weight_decay, 0, 1000 },
        { "--after", o->after.amount, 0, HUGE_VAL },
        { "--disp-freq", o->disp_freq.amount, 0, HUGE_VAL },
        { "--valid-freq", o->valid_freq.amount, 0, HUGE_VAL },
        { "--save-freq", o->save_freq.amount, 0, HUGE_VAL },
        { "--keep-last", o->keep_last, 1, 1000000 },
        { "--early-stopping", o->early_stopping, 0, 1e9 },
        { "--exponential-smoothing", o->exponential_smoothing, 0, 1 },
        { "--cpu-threads", o->threads, 0, MAX_THREADS },
    };
    TRY(LIMIT_CHECK(limits, err));
    if (o->max_length_ratio > 0 && o->max_length_ratio < 1)
        return err_set(err, TFM_EINVAL, "--max-length-ratio is %g; it can be 0 (off) or from 1 up",
                       o->max_length_ratio);
    if (strcmp(o->vocab_type, "unigram") != 0 && strcmp(o->vocab_type, "bpe") != 0)
        return err_set(err, TFM_EINVAL, "--vocab-type is \"%s\"; it can be unigram or bpe", o->vocab_type);
    return TFM_OK;
}

/* There are no translations of a text alone. */
static enum tfm_status read_metrics(struct metric_list *metrics, const struct tfm_train_options *o,
                                    struct tfm_error *err)
{
    const char *names = o->valid_metrics;
    if (names == NULL)
        names = is_language_model(o) ? "ce,perplexity" : train_options_is_text(o) ? "accuracy,ce" : "ce,bleu";
    for (const char *name = names; *name != '\0'; name += *name == ',') {
        size_t len = strcspn(name, ",");
        int m = 0;
        while (m < N_METRICS && (strlen(metric_names[m]) != len || memcmp(metric_names[m], name, len) != 0))
            m++;
        for (int i = 0; i < metrics->n; i++) {
            if (m < N_METRICS && metrics->list[i] == (enum metric)m)
                return err_set(err, TFM_EINVAL, "--valid-metrics names %s twice", metric_names[m]);
        }
        if (m == N_METRICS)
            return err_set(
                err, TFM_EINVAL,
                "--valid-metrics is \"%s\"; it can be some of " METRIC_NAMES ", with commas between", names);
        if (train_options_is_text(o) && train_options_is_of_translations((enum metric)m))
            return err_set(
                err, TFM_EINVAL,
                "--valid-metrics names %s, which is of translations: a model of plain text makes none",
                metric_names[m]);
        metrics->list[metrics->n++] = (enum metric)m;
        name += len;
    }
    if (metrics->n == 0)
        return err_set(err, TFM_EINVAL, "--valid-metrics names no metric; it can be some of " METRIC_NAMES);
    return TFM_OK;
}

/* Validations tell when to stop, or nothing does. */
static void resolve_end(struct tfm_train_options *o)
{
    if (o->after.amount < 0)
        o->after = (struct tfm_interval){ has_valid(o) && o->early_stopping > 0 ? 0 : 20, TFM_EPOCHS };
}

static bool has_alignment(const struct tfm_train_options *o)
{
    for (int i = 0; i < o->n_corpora; i++)
        if (o->corpora[i].alignment != NULL)
            return true;
    return false;
}

/* Options of one architecture mean nothing to another. */
static enum tfm_status check_arch(const struct tfm_train_options *o, struct tfm_error *err)
{
    enum {
        TRANSFORMER = 1 << TFM_ARCH_TRANSFORMER,
        RNN = 1 << TFM_ARCH_RNN,
        DECODER = 1 << TFM_ARCH_DECODER,
        ENCODER = 1 << TFM_ARCH_ENCODER,
        LANGUAGE_MODEL = ENCODER << 1, /* a decoder alone as a language model */
        ALONE = DECODER | LANGUAGE_MODEL,
        PAIRS = TRANSFORMER | RNN | DECODER,
        ATTENTION = TRANSFORMER | ALONE | ENCODER
    };
    const struct {
        const char *name;
        bool is_given;
        unsigned of; /* the architectures */
    } uses[] = {
        { "--enc-depth", o->encoder_layers != 0, TRANSFORMER | RNN | ENCODER },
        { "--dec-depth", o->decoder_layers != 0, TRANSFORMER | RNN | ALONE },
        { "--dim-ffn", o->dim_ffn != 0, ATTENTION },
        { "--heads", o->heads != 0, ATTENTION },
        { "--norm-position", o->norm_position != TFM_NORM_PRESET, ATTENTION },
        { "--dec-cell", o->dec_cell != TFM_CELL_PRESET, TRANSFORMER },
        { "--kv-heads", o->kv_heads != 0, ATTENTION },
        { "--attention", o->attention_function != TFM_ATTENTION_DOT, ATTENTION },
        { "--attention-scale", o->attention_scale != TFM_SCALE_SQRT, ATTENTION },
        { "--attention-window", o->attention_window != 0, TRANSFORMER | ENCODER },
        { "--positions", o->positions != TFM_POSITIONS_PRESET, ATTENTION },
        { "--max-positions", o->max_positions != DEFAULT_POSITIONS, ATTENTION },
        { "--norm", o->norm != TFM_LAYER_NORM, ATTENTION },
        { "--activation", o->activation != TFM_ACTIVATION_RELU, ATTENTION },
        { "--layer-drop", o->layer_drop != 0, ATTENTION },
        { "--guided-alignment", has_alignment(o), TRANSFORMER | RNN },
        { "--head-loss", o->n_head_losses > 0, TRANSFORMER | RNN | ENCODER },
        { "--rnn-cell", o->rnn_cell != TFM_RNN_GRU, RNN },
        { "--rnn-attention", o->rnn_attention != TFM_RNN_ADDITIVE, RNN },
        { "--mask-rate", o->mask_rate != DEFAULT_MASK_RATE, ENCODER },
        { "--max-length-ratio", o->max_length_ratio != 0, PAIRS },
        { "--target-sampling", o->target_sampling != 0, PAIRS },
        { "--tied-embeddings target", o->tie == TFM_TIE_TARGET, PAIRS },
        { "--tied-embeddings none", o->tie == TFM_TIE_NONE, PAIRS | ENCODER },
    };
    unsigned kind = is_language_model(o) ? LANGUAGE_MODEL : 1u << o->arch;
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (uses[i].is_given && !(uses[i].of & kind))
            return err_set(err, TFM_EINVAL, "%s means nothing to --arch %s%s", uses[i].name,
                           arch_names[o->arch], kind == LANGUAGE_MODEL ? " with plain text" : "");
    }
    return TFM_OK;
}

/* Rotary positions turn pairs of columns, and distances show in dot products. */
static bool can_rotate(const struct config *c)
{
    return c->attention_function == TFM_ATTENTION_DOT && c->d_model / c->heads % 2 == 0;
}

/* What tells pieces apart goes together. */
static enum tfm_status check_attention(const struct tfm_train_options *o, const struct config *c,
                                       struct tfm_error *err)
{
    if (o->positions != TFM_POSITIONS_LEARNED && o->max_positions != DEFAULT_POSITIONS)
        return err_set(err, TFM_EINVAL, "--max-positions is for --positions learned, and this is %s",
                       config_choice(c, "positions"));
    if (o->attention_function == TFM_ATTENTION_ADDITIVE && o->attention_scale == TFM_SCALE_NONE)
        return err_set(
            err, TFM_EINVAL,
            "--attention-scale none is for --attention dot, and this is additive: there is no scale to "
            "leave out");
    if (o->attention_function == TFM_ATTENTION_ADDITIVE && o->positions == TFM_POSITIONS_ROPE)
        return err_set(
            err, TFM_EINVAL,
            "--positions rope is for --attention dot, and this is additive: distances show in dot products");
    if (o->positions == TFM_POSITIONS_ROPE && !can_rotate(c))
        return err_set(
            err, TFM_EINVAL,
            "--positions rope turns pairs of columns, but a head is %d wide with --dim-model %d and "
            "--heads %d",
            c->d_model / c->heads, c->d_model, c->heads);
    return TFM_OK;
}

/* The sizes fit each other, as far as can be told before there is a vocabulary. */
static enum tfm_status check_architecture(const struct tfm_train_options *o, struct tfm_error *err)
{
    struct config c;
    TRY(check_arch(o, err));
    train_options_config(&c, o);
    c.source_vocab_size = c.vocab_size = o->vocab_size;
    c.mask_token_id = c.architecture == CONFIG_ENCODER_ONLY; /* any that may be */
    if (c.d_model % 2 != 0)
        return err_set(err, TFM_EINVAL, "--dim-model is %d and should be even", c.d_model);
    if (c.heads > 0 && c.d_model % c.heads != 0)
        return err_set(err, TFM_EINVAL, "--dim-model is %d, which --heads %d does not divide evenly",
                       c.d_model, c.heads);
    if (o->kv_heads < 0 || o->kv_heads > c.heads || (o->kv_heads > 0 && c.heads % o->kv_heads != 0))
        return err_set(err, TFM_EINVAL, "--kv-heads is %d; it can be a number that divides --heads %d, or 0",
                       o->kv_heads, c.heads);
    TRY(check_attention(o, &c, err));
    if (config_check(&c, "the options", err) == TFM_OK)
        return head_terms_check(o, &c, err);
    if (err != NULL)
        err->status = TFM_EINVAL; /* no file is wrong */
    return TFM_EINVAL;
}

/* What a preset says where an option does not. */
static void resolve_rates(struct tfm_train_options *o)
{
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        if (strcmp(rates[i].preset, o->preset) != 0)
            continue;
        if (o->mini_batch_words == 0)
            o->mini_batch_words = rates[i].mini_batch_words;
        if (o->learn_rate == 0)
            o->learn_rate = rates[i].learn_rate;
        if (o->lr_warmup.amount == 0)
            o->lr_warmup = (struct tfm_interval){ rates[i].warmup, TFM_UPDATES };
    }
}

enum tfm_status train_options_resolve(struct tfm_train_options *resolved, struct metric_list *metrics,
                                      const struct tfm_train_options *options, struct tfm_error *err)
{
    TRY(check_choices(options, err));
    *resolved = *options;
    *metrics = (struct metric_list){ 0 };
    struct config config;
    if (resolved->preset == NULL)
        resolved->preset = rates[0].preset;
    if (resolved->vocab_type == NULL)
        resolved->vocab_type = "unigram";
    TRY(check_files(resolved, err));
    resolve_end(resolved);
    TRY(check_numbers(resolved, err));
    TRY(check_schedule(resolved, err));
    if (!config_preset(&config, resolved->preset))
        return err_set(err, TFM_EINVAL, "--preset is \"%s\"; it can be tiny, small, base or student",
                       resolved->preset);
    TRY(check_architecture(resolved, err));
    if (resolved->watch_attention != NULL && !has_valid(resolved))
        return err_set(err, TFM_EINVAL,
                       "--watch-attention looks at each validation, and there is no validation set "
                       "(--valid-sets or --valid-tsv)");
    if (has_valid(resolved))
        TRY(read_metrics(metrics, resolved, err));
    resolve_rates(resolved);
    if (resolved->source_vocab == NULL)
        resolved->source_vocab = resolved->target_vocab;
    if (resolved->target_vocab == NULL)
        resolved->target_vocab = resolved->source_vocab;
    if (resolved->threads == 0)
        resolved->threads = pool_cores();
    return TFM_OK;
}

/* ---- the configuration ---- */

static void set_sizes(struct config *config, const struct tfm_train_options *options)
{
    const struct {
        int *field, value;
    } sizes[] = {
        { &config->encoder_layers, options->encoder_layers },
        { &config->decoder_layers, options->decoder_layers },
        { &config->d_model, options->dim_model },
        { &config->ffn_dim, options->dim_ffn },
        { &config->heads, options->heads },
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i].value != 0)
            *sizes[i].field = sizes[i].value;
    }
}

static void set_dropouts(struct config *config, const struct tfm_train_options *options)
{
    const struct {
        double *field;
        float value;
    } dropouts[] = {
        { &config->dropout, options->dropout },
        { &config->attention_dropout, options->attention_dropout },
        { &config->activation_dropout, options->activation_dropout },
    };
    for (size_t i = 0; i < sizeof(dropouts) / sizeof(dropouts[0]); i++) {
        if (dropouts[i].value >= 0)
            *dropouts[i].field = dropouts[i].value;
    }
    config->encoder_layerdrop = config->decoder_layerdrop = options->layer_drop;
}

static void set_decoder_alone(struct config *config, const struct tfm_train_options *options,
                              int preset_layers)
{
    config->architecture = CONFIG_DECODER_ONLY;
    config->task = is_language_model(options) ? CONFIG_LANGUAGE_MODEL : CONFIG_TRANSLATION;
    config->decoder_layers = options->decoder_layers != 0 ? options->decoder_layers : preset_layers;
    config->encoder_layers = 0;
    config->encoder_layerdrop = 0;
    config->decoder_cell = TFM_CELL_ATTENTION;
}

static void set_encoder_alone(struct config *config)
{
    config->architecture = CONFIG_ENCODER_ONLY;
    config->decoder_layers = 0;
    config->decoder_layerdrop = 0;
    config->decoder_cell = TFM_CELL_ATTENTION;
}

/* Without what else makes up the Transformer's layers. */
static void set_recurrent(struct config *config, const struct tfm_train_options *options)
{
    config->arch = TFM_ARCH_RNN;
    config->rnn_cell = options->rnn_cell;
    config->rnn_attention = options->rnn_attention;
    config->heads = 1;
    config->ffn_dim = config->d_model;
    config->pre_norm = false;
    config->decoder_cell = TFM_CELL_ATTENTION;
    config->positions = TFM_POSITIONS_NONE;
}

void train_options_config(struct config *config, const struct tfm_train_options *options)
{
    config_preset(config, options->preset);
    int preset_layers = config->encoder_layers + config->decoder_layers;
    set_sizes(config, options);
    set_dropouts(config, options);
    if (options->norm_position != TFM_NORM_PRESET)
        config->pre_norm = options->norm_position == TFM_NORM_PRE;
    if (options->dec_cell != TFM_CELL_PRESET)
        config->decoder_cell = options->dec_cell;
    config->norm = options->norm;
    config->activation = options->activation;
    config->init = options->init;
    config->tie = options->tie;
    config->attention_function = options->attention_function;
    config->attention_scale = options->attention_scale;
    config->kv_heads = options->kv_heads < config->heads ? options->kv_heads : 0;
    config->attention_window = options->attention_window;
    if (options->positions != TFM_POSITIONS_PRESET)
        config->positions = options->positions;
    else if (config->positions == TFM_POSITIONS_ROPE && !can_rotate(config))
        config->positions = TFM_POSITIONS_HALVES;
    if (config->positions == TFM_POSITIONS_LEARNED)
        config->max_positions = options->max_positions;
    switch (options->arch) {
    case TFM_ARCH_TRANSFORMER: break;
    case TFM_ARCH_RNN: set_recurrent(config, options); break;
    case TFM_ARCH_DECODER: set_decoder_alone(config, options, preset_layers); break;
    case TFM_ARCH_ENCODER: set_encoder_alone(config); break;
    }
}
