/*
 * training.c: opens a training: options, checkpoints, corpora, vocabularies, model, optimiser, in the order
 * in which a mistake is found soonest. A training that the folder holds already goes on: with its vocabularies,
 * its lanes and its last checkpoint, after a check that whatever decides its digits is as it was.
 */
#include "train/training.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "num/gemm.h"
#include "train/place.h"
#include "train/pretrained.h"
#include "train/report.h"

#define MAX_LANES 16

double training_clock(void)
{
    return profile_clock();
}

double training_seconds(const struct training *t)
{
    return t->seconds_before + training_clock() - t->started;
}

const real *training_judged(const struct training *t)
{
    return t->optimizer.average != NULL ? t->optimizer.average : t->optimizer.weights;
}

/* ---- the folder ---- */

/* A finished model that nobody can go on with must not be overwritten. */
static enum tfm_status check_folder(const struct training *t, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, t->options.model, MODEL_CONFIG, err);
    if (status == TFM_OK && file_exists(path.data))
        status = err_set(
            err, TFM_EINVAL,
            "%s holds a model but no checkpoints to go on from, and a new training would overwrite it: name "
            "another --model, or remove that folder",
            t->options.model);
    str_release(&path);
    return status;
}

static enum tfm_status open_folder(struct training *t, struct tfm_error *err)
{
    TRY(checkpoint_init(&t->checkpoints, t->options.model, err));
    t->has_resumed = checkpoint_exists(&t->checkpoints, "last");
    if (t->has_resumed)
        return TFM_OK;
    if (t->options.pretrained != NULL)
        TRY(pretrained_check(t->options.pretrained, err));
    return check_folder(t, err);
}

/* ---- data ---- */

/* A name with a mistake is told now, not when the vocabulary has been trained. */
static enum tfm_status check_file(const char *path, struct tfm_error *err)
{
    if (path != NULL && !source_is_stream(path) && access(path, R_OK) != 0)
        return err_io(err, "cannot open %s", path);
    return TFM_OK;
}

static enum tfm_status check_files(const struct tfm_train_options *o, struct tfm_error *err)
{
    const char *const paths[] = { o->valid_source, o->valid_target, o->valid_tsv, o->source_vocab,
                                  o->target_vocab };
    for (int i = 0; i < o->n_corpora; i++) {
        TRY(check_file(o->corpora[i].source, err));
        TRY(check_file(o->corpora[i].target, err));
        TRY(check_file(o->corpora[i].tsv, err));
        TRY(check_file(o->corpora[i].alignment, err));
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        TRY(check_file(paths[i], err));
    return TFM_OK;
}

static enum tfm_status open_data(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    const char *folder = t->checkpoints.folder.data;
    TRY(windows_open(&t->windows, o, folder, t->has_resumed, t->pool, err));
    if (t->windows.n > 1)
        report_note(o, "corpus: %" PRIu64 " %s; a pass has %" PRIu64 " in %d windows (--shuffle-window)",
                    windows_pairs(&t->windows), train_options_is_text(o) ? "lines" : "pairs",
                    t->windows.pass_pairs, t->windows.n);
    TRY(vocab_init(&t->vocab, o, &t->windows, t->has_resumed, err));
    const struct spm *target = train_options_is_text(o) ? NULL : t->vocab.target;
    TRY(corpus_init(&t->corpus, t->vocab.source, target, o->max_length, o->max_length_ratio, err));
    TRY(corpus_init(&t->sampled, t->vocab.source, target, o->max_length, 0, err));
    return validate_init(&t->validate, &t->metrics, &t->vocab, o, folder, t->pool, err);
}

/* ---- model ---- */

static enum tfm_status open_config(struct training *t, struct tfm_error *err)
{
    struct config *c = &t->config;
    train_options_config(c, &t->options);
    c->source_vocab_size = spm_size(t->vocab.source);
    c->vocab_size = spm_size(t->vocab.target);
    c->eos_token_id = c->decoder_start_token_id = spm_eos(t->vocab.target);
    c->unk_token_id = spm_unk(t->vocab.target);
    if (c->architecture == CONFIG_ENCODER_ONLY)
        c->mask_token_id = spm_piece_id(t->vocab.target, MODEL_MASK_PIECE, strlen(MODEL_MASK_PIECE));
    return config_check(c, "the options", err);
}

/* A list that is too long for a setting is told by its length and a fingerprint. */
static enum tfm_status set_weights(struct training *t, struct tfm_error *err)
{
    struct str list = { 0 };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < t->options.n_corpora && status == TFM_OK; i++) {
        double weight = t->options.corpora[i].weight;
        status = str_printf(&list, err, "%s%g", i > 0 ? "," : "", weight > 0 ? weight : 1);
    }
    if (status == TFM_OK && list.len >= STATE_MAX_VALUE) {
        uint64_t fingerprint = rng_hash(0, list.data, list.len);
        str_clear(&list);
        status = str_printf(&list, err, "%d (fingerprint %016" PRIx64 ")", t->options.n_corpora, fingerprint);
    }
    if (status == TFM_OK)
        state_set(&t->settings, "--weights", "%s", list.data);
    str_release(&list);
    return status;
}

/* "8000 pieces" or "8000 and 7000 pieces". */
static void name_sizes(char *text, size_t size, const struct vocab *vocab)
{
    if (vocab->source == vocab->target)
        snprintf(text, size, "%d pieces", spm_size(vocab->source));
    else
        snprintf(text, size, "%d and %d pieces", spm_size(vocab->source), spm_size(vocab->target));
}

static enum tfm_status list_settings(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    static const char *const activations[] = { "relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu" };
    const struct config *c = &t->config;
    struct settings *s = &t->settings;
    char sizes[40];
    name_sizes(sizes, sizeof(sizes), &t->vocab);
    state_set(s, "--seed", "%" PRIu64, o->seed);
    state_set(s, "--mini-batch-words", "%d", o->mini_batch_words);
    state_set(s, "--max-length", "%d", o->max_length);
    state_set(s, "--max-length-ratio", "%g", o->max_length_ratio);
    state_set(s, "--shuffle-window", "%d", o->shuffle_window);
    state_set(s, "--tsv-fields", "%d,%d", o->source_field, o->target_field);
    state_set(s, "--arch", "%s%s", train_options_arch(c), /* first, since it changes what follows */
              c->task == CONFIG_LANGUAGE_MODEL ? " with plain text" : "");
    state_set(s, "--enc-depth", "%d", c->encoder_layers);
    state_set(s, "--dec-depth", "%d", c->decoder_layers);
    state_set(s, "--dim-model", "%d", c->d_model);
    state_set(s, "--dim-ffn", "%d", c->ffn_dim);
    state_set(s, "--heads", "%d", c->heads);
    state_set(s, "--norm-position", "%s", c->pre_norm ? "pre" : "post");
    state_set(s, "--norm", "%s", config_choice(c, "normalization"));
    state_set(s, "--activation", "%s", activations[c->activation]);
    state_set(s, "--init", "%s", config_choice(c, "initialization"));
    state_set(s, "--dec-cell", "%s", config_choice(c, "decoder_cell"));
    state_set(s, "--kv-heads", "%d", config_kv_heads(c));
    state_set(s, "--attention", "%s", config_choice(c, "attention_function"));
    state_set(s, "--attention-scale", "%s", config_choice(c, "attention_scale"));
    state_set(s, "--attention-window", "%d", c->attention_window);
    state_set(s, "--positions", "%s", config_choice(c, "positions"));
    if (c->positions == TFM_POSITIONS_LEARNED)
        state_set(s, "--max-positions", "%d", c->max_positions);
    if (c->architecture == CONFIG_ENCODER_ONLY)
        state_set(s, "--mask-rate", "%g", o->mask_rate);
    state_set(s, "--rnn-cell", "%s", config_choice(c, "rnn_cell"));
    state_set(s, "--rnn-attention", "%s", config_choice(c, "rnn_attention"));
    state_set(s, "--tied-embeddings", "%s", config_choice(c, "tie_embeddings"));
    bool is_text = train_options_is_text(o);
    state_set(s, is_text ? "a text of" : "a corpus of", "%" PRIu64 " %s (fingerprint %016" PRIx64 ")",
              windows_pairs(&t->windows), is_text ? "lines" : "pairs", t->windows.fingerprint);
    s->list[s->n - 1].is_late = is_text;
    state_set(s, "a vocabulary of", "%s (fingerprint %016" PRIx64 ")", sizes, t->vocab.fingerprint);
    s->list[s->n - 1].is_late = true;
    return set_weights(t, err);
}

static enum tfm_status resume(struct training *t, struct tfm_error *err)
{
    TRY(checkpoint_read_state(&t->checkpoints, "last", &t->state, &t->settings, err));
    struct head_terms before = t->state.terms;
    head_terms_bind(t->head_losses, &t->state.terms, &t->options, &t->config);
    head_terms_resume(&t->state.terms, &before);
    t->seconds_before = t->state.seconds; /* a part of the place */
    TRY(place_find(t, err));
    /* A later checkpoint was left by a run that was killed before it counted; if options have changed, it is
     * none of this training's. */
    TRY(checkpoint_prune(&t->checkpoints, INT_MAX, err));
    t->saved_update = t->state.update;
    if (t->windows.n == 1)
        place_report_tally(t);
    return TFM_OK;
}

static enum tfm_status begin(struct training *t, struct tfm_error *err)
{
    int n_lanes = t->options.threads < MAX_LANES ? t->options.threads : MAX_LANES;
    t->state = (struct train_state){ .epoch = 1, .n_lanes = n_lanes };
    head_terms_bind(t->head_losses, &t->state.terms, &t->options, &t->config);
    return place_begin(t, err);
}

static enum tfm_status take_pretrained(struct training *t, struct tfm_error *err)
{
    struct str name = { 0 };
    enum tfm_status status =
        pretrained_take(t->optimizer.weights, &name, &t->params, &t->config, &t->options, t->pool, err);
    if (status == TFM_OK)
        snprintf(t->state.pretrained, sizeof(t->state.pretrained), "%s", name.data);
    str_release(&name);
    return status;
}

static enum tfm_status init_blocks(struct training *t, struct tfm_error *err)
{
    params_init(&t->params, t->optimizer.weights, t->options.seed);
    if (t->options.pretrained != NULL)
        TRY(take_pretrained(t, err));
    if (t->optimizer.average != NULL)
        memcpy(t->optimizer.average, t->optimizer.weights, t->optimizer.size * sizeof(real));
    return TFM_OK;
}

/* Tokens of the longest side that there may be. */
static int longest_side(const struct training *t)
{
    bool is_sampled = t->options.source_sampling > 0 || t->options.target_sampling > 0;
    int longest =
        t->windows.is_constant && !is_sampled ? corpus_longest(&t->corpus) : t->options.max_length + 1;
    int longest_valid = corpus_longest(&t->validate.corpus);
    return longest > longest_valid ? longest : longest_valid;
}

static int copies_of(const struct training *t)
{
    return t->options.r_drop > 0 ? 2 : 1;
}

/* Who multiplies matrices, for the log. */
static void name_products(char *text, size_t size, enum tfm_gemm gemm)
{
    switch (gemm) {
    case TFM_GEMM_OWN: snprintf(text, size, "own kernels"); break;
    case TFM_GEMM_BLAS: snprintf(text, size, "OpenBLAS (%s kernels)", gemm_kernels()); break;
    case TFM_GEMM_BF16X3: snprintf(text, size, "tiles of bf16, three for one"); break;
    case TFM_GEMM_BF16: snprintf(text, size, "tiles of bf16"); break;
    }
}

static void report_model(const struct training *t)
{
    const struct config *c = &t->config;
    char layers[32], sizes[40], products[80];
    if (c->architecture == CONFIG_ENCODER_DECODER)
        snprintf(layers, sizeof(layers), "%d+%d", c->encoder_layers, c->decoder_layers);
    else
        snprintf(layers, sizeof(layers), "%d", c->encoder_layers + c->decoder_layers);
    name_sizes(sizes, sizeof(sizes), &t->vocab);
    name_products(products, sizeof(products), t->options.gemm);
    report_note(&t->options, "model: %s layers, width %d, %s, %zu parameters; %d lane%s; products by %s",
                layers, c->d_model, sizes, t->params.size, t->state.n_lanes, t->state.n_lanes == 1 ? "" : "s",
                products);
    if (t->has_resumed)
        report_note(&t->options, "resumed at update %ld (epoch %d)", t->state.update, t->state.epoch);
}

/* That such products are to be had here. */
static enum tfm_status check_gemm(const struct training *t, enum cpu_tier tier, struct tfm_error *err)
{
    if (t->options.gemm == TFM_GEMM_BLAS)
        return gemm_open(t->options.threads, err);
    if (t->options.gemm != TFM_GEMM_OWN && t->kern->product_bf16 == NULL)
        return err_set(
            err, TFM_EINVAL,
            "--gemm bf16x3 and bf16 need a processor with AMX, whose tier is \"amx\"; this one's is \"%s\": "
            "use --gemm own",
            cpu_tier_name(tier));
    return TFM_OK;
}

static enum tfm_status open_model(struct training *t, struct tfm_error *err)
{
    const struct config *c = &t->config;
    TRY(params_list(&t->params, c, err));
    TRY(optimizer_init(&t->optimizer, t->params.size, t->options.exponential_smoothing > 0, err));
    if (t->has_resumed)
        TRY(checkpoint_read_blocks(&t->checkpoints, "last", &t->state, &t->params, &t->optimizer, t->pool,
                                   err));
    else
        TRY(init_blocks(t, err));
    params_bind(&t->weights, c, t->optimizer.weights);
    params_bind(&t->judged_weights, c, (real *)training_judged(t));
    net_bind(&t->net, c, &t->weights);
    net_bind(&t->judged_net, c, &t->judged_weights);
    report_model(t);
    struct lanes_size size = { .n = t->state.n_lanes,
                               .threads = t->options.threads,
                               .longest = longest_side(t),
                               .copies = copies_of(t),
                               .is_guided = windows_is_guided(&t->windows) };
    return lanes_init(&t->lanes, &size, c, t->params.size, err);
}

struct lanes_run training_lanes_run(const struct training *t, const struct net *net, long update)
{
    real row = (real)(1.0 / copies_of(t)); /* in the loss, pairs that are trained twice count once */
    return (struct lanes_run){
        .corpus = t->seen,
        .net = net,
        .kern = t->kern,
        .gemm = t->options.gemm,
        .pool = t->pool,
        .criterion = { t->options.label_smoothing, t->options.r_drop },
        .mask = { .rate = t->config.mask_token_id > 0 ? t->options.mask_rate : 0,
                  .id = t->config.mask_token_id,
                  .vocab_size = t->config.vocab_size,
                  .seed = rng_key(t->options.seed, (uint64_t)update, 0, RANDOM_MASK) },
        .heads = { .list = t->head_losses, .n = t->options.n_head_losses, .row_weight = { row, row, row } },
        .seed = t->options.seed,
        .update_seed = rng_key(t->options.seed, (uint64_t)update, 0, RANDOM_DROPOUT)
    };
}

/* ---- the whole ---- */

enum tfm_status training_init(struct training *t, const struct tfm_train_options *options,
                              struct tfm_error *err)
{
    enum cpu_tier tier;
    t->checkpoints.lock = -1;
    t->saved_update = -1;
    t->started = training_clock();
    TRY(train_options_resolve(&t->options, &t->metrics, options, err));
    TRY(cpu_current(&tier, err));
    t->kern = kern_for(tier);
    TRY(check_gemm(t, tier, err));
    TRY(pool_new(&t->pool, t->options.threads, err));
    TRY(check_files(&t->options, err));
    TRY(open_folder(t, err));
    if (t->options.profile)
        TRY(breakdown_new(&t->breakdown, t->pool, t->kern, t->options.gemm, err));
    breakdown_to(t->breakdown, PROFILE_READ);
    TRY(open_data(t, err));
    TRY(open_config(t, err));
    TRY(list_settings(t, err));
    TRY(t->has_resumed ? resume(t, err) : begin(t, err));
    breakdown_to(t->breakdown, PROFILE_OTHER);
    return open_model(t, err);
}

void training_release(struct training *t)
{
    lanes_release(&t->lanes);
    optimizer_release(&t->optimizer);
    params_release(&t->params);
    validate_release(&t->validate);
    batch_plan_release(&t->plan);
    corpus_release(&t->corpus);
    corpus_release(&t->sampled);
    windows_release(&t->windows);
    vocab_release(&t->vocab);
    if (t->checkpoints.lock >= 0 && t->saved_update < 0)
        checkpoint_abandon(&t->checkpoints, t->options.model);
    checkpoint_release(&t->checkpoints);
    breakdown_free(t->breakdown);
    pool_free(t->pool);
}
