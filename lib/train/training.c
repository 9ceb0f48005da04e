/*
 * training.c: opens a training: options, checkpoints, corpora, vocabularies, model, optimiser, in the order in
 * which a mistake is found soonest; and leads it through the windows of its epochs. A training that the folder
 * holds already goes on: with its vocabularies, its lanes and its last checkpoint, after a check that whatever
 * decides its digits is as it was.
 */
#include "train/training.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "num/gemm.h"
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

/* A finished model that nobody can go on with must not be overwritten. (A training that was killed early
 * leaves a checkpoint without a name; it begins again.) */
static enum tfm_status check_folder(const struct training *t, struct tfm_error *err)
{
    bool is_empty;
    TRY(checkpoint_is_empty(&t->checkpoints, &is_empty, err));
    if (!is_empty)
        return TFM_OK;
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, t->options.model, "config.json", err);
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
    TRY(dir_make(t->options.model, err));
    TRY(checkpoint_init(&t->checkpoints, t->options.model, err));
    t->has_resumed = checkpoint_exists(&t->checkpoints, "last");
    return t->has_resumed ? TFM_OK : check_folder(t, err);
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
        report_note(o, "corpus: %" PRIu64 " pairs; a pass has %" PRIu64 " in %d windows (--shuffle-window)",
                    windows_pairs(&t->windows), t->windows.pass_pairs, t->windows.n);
    TRY(vocab_init(&t->vocab, o, &t->windows, t->has_resumed, err));
    TRY(corpus_init(&t->corpus, t->vocab.source, t->vocab.target, o->max_length, o->max_length_ratio, err));
    TRY(corpus_init(&t->sampled, t->vocab.source, t->vocab.target, o->max_length, 0, err));
    return validate_init(&t->validate, &t->metrics, &t->vocab, o, folder, t->pool, err);
}

/* ---- place ---- */

static void set_point(struct training *t)
{
    double part = t->corpus.n > 0 ? (double)t->trained_pairs / t->corpus.n : 1; /* of the window */
    double pairs = (double)t->window_begin + part * (double)t->window_pairs;
    t->point.update = t->state.update;
    t->point.epochs = t->state.epoch - 1 + pairs / (double)t->windows.pass_pairs;
    t->point.target_tokens = t->state.target_tokens;
    t->point.minutes = training_seconds(t) / 60;
}

static bool is_sampled(const struct training *t)
{
    return t->options.source_sampling > 0 || t->options.target_sampling > 0;
}

/* Loads the state's window, if it is not at hand, draws its pieces, and plans it. */
static enum tfm_status load_window(struct training *t, struct tfm_error *err)
{
    const struct train_state *s = &t->state;
    const struct tfm_train_options *o = &t->options;
    if (!t->windows.is_constant || t->plan.pairs == NULL) {
        TRY(windows_load(&t->windows, &t->corpus, s->epoch, s->window, &t->window_begin, &t->window_pairs,
                         t->pool, err));
        batch_plan_release(&t->plan);
        TRY(batch_plan_init(&t->plan, t->corpus.n, err));
    }
    t->seen = &t->corpus;
    if (is_sampled(t)) {
        const float alpha[2] = { o->source_sampling, o->target_sampling };
        uint64_t key = rng_key(o->seed, (uint64_t)s->epoch, 0, RANDOM_PIECES);
        TRY(corpus_sample(&t->sampled, &t->corpus, alpha, key, t->pool, err));
        t->seen = &t->sampled;
    }
    batch_plan_make(&t->plan, t->seen, o->seed, s->epoch, s->window, o->mini_batch_words);
    t->trained_pairs = 0;
    return TFM_OK;
}

static void count_window(struct training *t)
{
    const struct corpus *c = &t->corpus;
    struct tally *tally = &t->state.tally;
    tally->kept += c->n;
    tally->source_pieces += (long)c->source.start[c->n];
    tally->target_pieces += (long)c->target.start[c->n];
    tally->empty += c->n_empty;
    tally->too_long += c->n_long;
    tally->unequal += c->n_unequal;
}

static void report_tally(const struct training *t)
{
    const struct tfm_train_options *o = &t->options;
    const struct tally *tally = &t->state.tally;
    char unequal[100] = "";
    if (o->max_length_ratio > 0)
        snprintf(unequal, sizeof(unequal),
                 ", %ld over %g times as long as the other side (--max-length-ratio)", tally->unequal,
                 o->max_length_ratio);
    report_note(o,
                "corpus: %ld of %" PRIu64
                " pairs, %ld source and %ld target pieces; left out: %ld empty on a "
                "side, %ld longer than %d pieces (--max-length)%s",
                tally->kept, t->windows.pass_pairs, tally->source_pieces, tally->target_pieces, tally->empty,
                tally->too_long, o->max_length, unequal);
}

static enum tfm_status no_pair(const struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    const struct tally *tally = &t->state.tally;
    struct str name = { 0 };
    TRY(bitext_name(&name, &o->corpora[0], err));
    err_set(err, TFM_EFORMAT,
            "%s%s: no pair to train on: of %" PRIu64
            " read, %ld are empty on a side, %ld longer than %d pieces (--max-length) and %ld too unequal "
            "(--max-length-ratio)",
            name.data, o->n_corpora > 1 ? " and others" : "", t->windows.pass_pairs, tally->empty,
            tally->too_long, o->max_length, tally->unequal);
    str_release(&name);
    return TFM_EFORMAT;
}

/* The training has come to the state's window. What was left out is told when the first pass has come to its
 * last one: at the start, where there is one. */
static enum tfm_status begin_window(struct training *t, struct tfm_error *err)
{
    TRY(load_window(t, err));
    if (t->state.epoch > 1)
        return TFM_OK;
    count_window(t);
    if (t->state.window + 1 < t->windows.n)
        return TFM_OK;
    if (t->state.tally.kept == 0)
        return no_pair(t, err);
    report_tally(t);
    return TFM_OK;
}

enum tfm_status training_next_batch(struct training *t, const int **pairs, int *n, struct tfm_error *err)
{
    struct train_state *s = &t->state;
    while (s->batch == t->plan.n) {
        s->batch = 0;
        if (++s->window == t->windows.n) {
            s->window = 0;
            s->epoch++;
            s->epoch_pairs = 0;
        }
        TRY(begin_window(t, err));
    }
    *pairs = batch_pairs(&t->plan, s->batch++, n);
    return TFM_OK;
}

void training_count_batch(struct training *t, int n)
{
    t->state.epoch_pairs += n;
    t->trained_pairs += n;
    set_point(t);
}

static enum tfm_status outside(const struct training *t, const char *what, int found, const char *whole,
                               int n, struct tfm_error *err)
{
    return err_set(err, TFM_EFORMAT, "%s/checkpoint-%ld/state.json: %s %d of %s that has %d",
                   t->checkpoints.folder.data, t->state.update, what, found, whole, n);
}

enum tfm_status training_find_place(struct training *t, struct tfm_error *err)
{
    const struct train_state *s = &t->state;
    if (s->window >= t->windows.n)
        return outside(t, "window", s->window, "an epoch", t->windows.n, err);
    TRY(load_window(t, err));
    if (s->batch > t->plan.n)
        return outside(t, "batch", s->batch, "a window", t->plan.n, err);
    for (int i = 0; i < s->batch; i++) {
        int n;
        batch_pairs(&t->plan, i, &n);
        t->trained_pairs += n;
    }
    set_point(t);
    return TFM_OK;
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
    return config_check(c, "the options", err);
}

static enum tfm_status set_weights(struct training *t, struct tfm_error *err)
{
    struct str list = { 0 };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < t->options.n_corpora && status == TFM_OK; i++) {
        double weight = t->options.corpora[i].weight;
        status = str_printf(&list, err, "%s%g", i > 0 ? "," : "", weight > 0 ? weight : 1);
    }
    if (status == TFM_OK)
        state_set(&t->settings, "--weights", "%s", list.data);
    str_release(&list);
    return status;
}

static enum tfm_status list_settings(struct training *t, struct tfm_error *err)
{
    static const char *const ties[] = { "all", "target", "none" };
    const struct tfm_train_options *o = &t->options;
    const struct config *c = &t->config;
    struct settings *s = &t->settings;
    state_set(s, "--seed", "%" PRIu64, o->seed);
    state_set(s, "--mini-batch-words", "%d", o->mini_batch_words);
    state_set(s, "--max-length", "%d", o->max_length);
    state_set(s, "--max-length-ratio", "%g", o->max_length_ratio);
    state_set(s, "--shuffle-window", "%d", o->shuffle_window);
    state_set(s, "--tsv-fields", "%d,%d", o->source_field, o->target_field);
    state_set(s, "--enc-depth", "%d", c->encoder_layers);
    state_set(s, "--dec-depth", "%d", c->decoder_layers);
    state_set(s, "--dim-model", "%d", c->d_model);
    state_set(s, "--dim-ffn", "%d", c->ffn_dim);
    state_set(s, "--heads", "%d", c->heads);
    state_set(s, "--norm-position", "%s", c->pre_norm ? "pre" : "post");
    state_set(s, "--tied-embeddings", "%s", ties[c->tie]);
    state_set(s, "a corpus of", "%" PRIu64 " pairs (fingerprint %016" PRIx64 ")", windows_pairs(&t->windows),
              t->windows.fingerprint);
    return set_weights(t, err);
}

static enum tfm_status resume(struct training *t, struct tfm_error *err)
{
    TRY(checkpoint_read_state(&t->checkpoints, "last", &t->state, &t->settings, err));
    TRY(training_find_place(t, err));
    t->seconds_before = t->state.seconds;
    t->saved_update = t->state.update;
    if (t->windows.n == 1)
        report_tally(t);
    return TFM_OK;
}

static enum tfm_status begin(struct training *t, struct tfm_error *err)
{
    int n_lanes = t->options.threads < MAX_LANES ? t->options.threads : MAX_LANES;
    t->state = (struct train_state){ .epoch = 1, .n_lanes = n_lanes };
    t->saved_update = -1;
    TRY(begin_window(t, err));
    set_point(t);
    return TFM_OK;
}

static void init_blocks(struct training *t)
{
    params_init(&t->params, t->optimizer.weights, t->options.seed);
    if (t->optimizer.average != NULL)
        memcpy(t->optimizer.average, t->optimizer.weights, t->optimizer.size * sizeof(real));
}

/* Tokens of the longest side that there may be. */
static int longest_side(const struct training *t)
{
    bool is_known = t->windows.is_constant && !is_sampled(t);
    int longest = is_known ? corpus_longest(&t->corpus) : t->options.max_length + 1;
    int longest_valid = corpus_longest(&t->validate.corpus);
    return longest > longest_valid ? longest : longest_valid;
}

static enum tfm_status open_model(struct training *t, struct tfm_error *err)
{
    const struct config *c = &t->config;
    TRY(params_list(&t->params, c, err));
    TRY(optimizer_init(&t->optimizer, t->params.size, t->options.exponential_smoothing > 0, err));
    if (t->has_resumed)
        TRY(checkpoint_read_blocks(&t->checkpoints, "last", &t->params, &t->optimizer, t->pool, err));
    else
        init_blocks(t);
    params_bind(&t->weights, c, t->optimizer.weights);
    params_bind(&t->judged_weights, c, (real *)training_judged(t));
    net_bind(&t->net, c, &t->weights);
    net_bind(&t->judged_net, c, &t->judged_weights);
    report_note(&t->options,
                "model: %d+%d layers, width %d, %d and %d pieces, %zu parameters; %d lane%s; OpenBLAS for %s",
                c->encoder_layers, c->decoder_layers, c->d_model, c->source_vocab_size, c->vocab_size,
                t->params.size, t->state.n_lanes, t->state.n_lanes == 1 ? "" : "s", gemm_kernels());
    if (t->has_resumed)
        report_note(&t->options, "resumed at update %ld (epoch %d)", t->state.update, t->state.epoch);
    return lanes_init(&t->lanes, t->state.n_lanes, t->options.threads, longest_side(t),
                      t->options.r_drop > 0 ? 2 : 1, c, t->params.size, err);
}

struct lanes_run training_lanes_run(const struct training *t, const struct net *net, long update)
{
    return (struct lanes_run){ .corpus = t->seen,
                               .net = net,
                               .kern = t->kern,
                               .pool = t->pool,
                               .criterion = { t->options.label_smoothing, t->options.r_drop },
                               .seed = t->options.seed,
                               .update_seed = rng_key(t->options.seed, (uint64_t)update, 0, RANDOM_DROPOUT) };
}

/* ---- the whole ---- */

enum tfm_status training_init(struct training *t, const struct tfm_train_options *options,
                              struct tfm_error *err)
{
    enum cpu_tier tier;
    t->checkpoints.lock = -1;
    t->started = training_clock();
    TRY(train_options_resolve(&t->options, &t->metrics, options, err));
    TRY(cpu_current(&tier, err));
    t->kern = kern_for(tier);
    gemm_single_thread();
    TRY(pool_new(&t->pool, t->options.threads, err));
    TRY(check_files(&t->options, err));
    TRY(open_folder(t, err));
    if (t->options.profile)
        TRY(breakdown_new(&t->breakdown, t->pool, err));
    breakdown_to(t->breakdown, PROFILE_READ);
    TRY(open_data(t, err));
    breakdown_to(t->breakdown, PROFILE_OTHER);
    TRY(open_config(t, err));
    TRY(list_settings(t, err));
    TRY(t->has_resumed ? resume(t, err) : begin(t, err));
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
    checkpoint_release(&t->checkpoints);
    breakdown_free(t->breakdown);
    pool_free(t->pool);
}
