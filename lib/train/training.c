/*
 * training.c: opens a training: options, checkpoints, vocabularies, corpus, model, optimiser, in the order in
 * which a mistake is found soonest. A training that the folder holds already goes on: with its vocabularies,
 * its lanes and its last checkpoint, after a check that whatever decides its digits is as it was.
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

static enum tfm_status read_corpus(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    const struct vocab *v = &t->vocab;
    struct pair_reader *reader;
    if (v->has_text)
        TRY(pairs_open(&reader, v->source_text, v->target_text, NULL, err));
    else
        TRY(pairs_open(&reader, o->source, o->target, o->tsv, err));
    enum tfm_status status = corpus_read(&t->corpus, reader, t->pool, err);
    pairs_free(reader);
    return status;
}

/* A name with a mistake is told now, not when the vocabulary has been trained. */
static enum tfm_status check_files(const struct tfm_train_options *o, struct tfm_error *err)
{
    const char *const paths[] = { o->source,       o->target,    o->tsv,          o->valid_source,
                                  o->valid_target, o->valid_tsv, o->source_vocab, o->target_vocab };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (paths[i] != NULL && strcmp(paths[i], "-") != 0 && access(paths[i], R_OK) != 0)
            return err_io(err, "cannot open %s", paths[i]);
    }
    return TFM_OK;
}

static enum tfm_status open_data(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    TRY(vocab_init(&t->vocab, o, t->has_resumed, err));
    TRY(corpus_init(&t->corpus, t->vocab.source, t->vocab.target, o->max_length, err));
    TRY(corpus_init(&t->sampled, t->vocab.source, t->vocab.target, o->max_length, err));
    TRY(read_corpus(t, err));
    vocab_remove_text(&t->vocab);
    const struct corpus *c = &t->corpus;
    long n_read = c->n + c->n_empty + c->n_long;
    if (c->n == 0)
        return err_set(
            err, TFM_EFORMAT,
            "%s: no pair to train on: of %ld read, %ld are empty on a side and %ld longer than %d pieces "
            "(--max-length)",
            o->tsv != NULL ? o->tsv : o->source, n_read, c->n_empty, c->n_long, o->max_length);
    report_note(o,
                "corpus: %d of %ld pairs, %zu source and %zu target pieces; left out: %ld empty on a side, "
                "%ld longer than %d pieces (--max-length)",
                c->n, n_read, c->source.start[c->n], c->target.start[c->n], c->n_empty, c->n_long,
                o->max_length);
    TRY(batch_plan_init(&t->plan, c->n, err));
    return validate_init(&t->validate, &t->metrics, &t->vocab, o, t->pool, err);
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

static void list_settings(struct training *t)
{
    static const char *const ties[] = { "all", "target", "none" };
    const struct config *c = &t->config;
    struct settings *s = &t->settings;
    state_set(s, "--seed", "%" PRIu64, t->options.seed);
    state_set(s, "--mini-batch-words", "%d", t->options.mini_batch_words);
    state_set(s, "--enc-depth", "%d", c->encoder_layers);
    state_set(s, "--dec-depth", "%d", c->decoder_layers);
    state_set(s, "--dim-model", "%d", c->d_model);
    state_set(s, "--dim-ffn", "%d", c->ffn_dim);
    state_set(s, "--heads", "%d", c->heads);
    state_set(s, "--norm-position", "%s", c->pre_norm ? "pre" : "post");
    state_set(s, "--tied-embeddings", "%s", ties[c->tie]);
    state_set(s, "a corpus of", "%d pairs (fingerprint %016" PRIx64 ")", t->corpus.n, t->corpus.fingerprint);
}

static enum tfm_status resume(struct training *t, struct tfm_error *err)
{
    TRY(checkpoint_read_state(&t->checkpoints, "last", &t->state, &t->settings, err));
    TRY(checkpoint_read_blocks(&t->checkpoints, "last", &t->params, &t->optimizer, t->pool, err));
    t->seconds_before = t->state.seconds;
    t->saved_update = t->state.update;
    report_note(&t->options, "resumed at update %ld (epoch %d)", t->state.update, t->state.epoch);
    return TFM_OK;
}

static void begin(struct training *t)
{
    int n_lanes = t->options.threads < MAX_LANES ? t->options.threads : MAX_LANES;
    t->state = (struct train_state){ .epoch = 1, .n_lanes = n_lanes };
    t->saved_update = -1;
    params_init(&t->params, t->optimizer.weights, t->options.seed);
    if (t->optimizer.average != NULL)
        memcpy(t->optimizer.average, t->optimizer.weights, t->optimizer.size * sizeof(real));
}

static bool is_sampled(const struct training *t)
{
    return t->options.source_sampling > 0 || t->options.target_sampling > 0;
}

static enum tfm_status open_model(struct training *t, struct tfm_error *err)
{
    const struct config *c = &t->config;
    TRY(params_list(&t->params, c, err));
    TRY(optimizer_init(&t->optimizer, t->params.size, t->options.exponential_smoothing > 0, err));
    if (t->has_resumed)
        TRY(resume(t, err));
    else
        begin(t);
    params_bind(&t->weights, c, t->optimizer.weights);
    params_bind(&t->judged_weights, c, (real *)training_judged(t));
    net_bind(&t->net, c, &t->weights);
    net_bind(&t->judged_net, c, &t->judged_weights);
    report_note(&t->options,
                "model: %d+%d layers, width %d, %d and %d pieces, %zu parameters; %d lane%s; OpenBLAS for %s",
                c->encoder_layers, c->decoder_layers, c->d_model, c->source_vocab_size, c->vocab_size,
                t->params.size, t->state.n_lanes, t->state.n_lanes == 1 ? "" : "s", gemm_kernels());
    int longest = is_sampled(t) ? t->options.max_length + 1 : corpus_longest(&t->corpus);
    int longest_valid = corpus_longest(&t->validate.corpus);
    return lanes_init(&t->lanes, t->state.n_lanes, t->options.threads,
                      longest > longest_valid ? longest : longest_valid, t->options.r_drop > 0 ? 2 : 1, c,
                      t->params.size, err);
}

/* ---- place ---- */

enum tfm_status training_plan_epoch(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    t->seen = &t->corpus;
    if (is_sampled(t)) {
        const float alpha[2] = { o->source_sampling, o->target_sampling };
        uint64_t key = rng_key(o->seed, (uint64_t)t->state.epoch, 0, RANDOM_PIECES);
        TRY(corpus_sample(&t->sampled, &t->corpus, alpha, key, t->pool, err));
        t->seen = &t->sampled;
    }
    batch_plan_make(&t->plan, t->seen, o->seed, t->state.epoch, o->mini_batch_words);
    t->epoch_pairs = 0;
    for (int i = 0; i < t->state.batch; i++) {
        int n;
        batch_pairs(&t->plan, i, &n);
        t->epoch_pairs += n;
    }
    return TFM_OK;
}

void training_set_point(struct training *t)
{
    t->point.update = t->state.update;
    t->point.epochs = t->state.epoch - 1 + (double)t->epoch_pairs / t->corpus.n;
    t->point.target_tokens = t->state.target_tokens;
    t->point.minutes = training_seconds(t) / 60;
}

enum tfm_status training_find_place(struct training *t, struct tfm_error *err)
{
    struct train_state *s = &t->state;
    int batch = s->batch;
    s->batch = 0; /* it comes from a file and is not believed yet */
    TRY(training_plan_epoch(t, err));
    if (batch > t->plan.n)
        return err_set(err, TFM_EFORMAT, "%s/checkpoint-%ld/state.json: batch %d of an epoch that has %d",
                       t->checkpoints.folder.data, s->update, batch, t->plan.n);
    s->batch = batch;
    TRY(training_plan_epoch(t, err));
    training_set_point(t);
    return TFM_OK;
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
    list_settings(t);
    TRY(open_model(t, err));
    return training_find_place(t, err);
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
    vocab_release(&t->vocab);
    checkpoint_release(&t->checkpoints);
    breakdown_free(t->breakdown);
    pool_free(t->pool);
}
