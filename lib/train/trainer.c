/*
 * trainer.c: the training loop. An update: a batch, or some, in lanes, forward and back (lanes.c); the
 * gradients summed, clipped and applied (optimizer.c). Between updates, when they are due: progress,
 * validation, checkpoint. Everything that decides a digit is in the weights, the moments and the state, and
 * those are what a checkpoint holds; so a training that was stopped or killed goes on as if it had not been.
 */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/diverge.h"
#include "train/export.h"
#include "train/place.h"
#include "train/report.h"
#include "train/training.h"
#include "train/view.h"

struct trainer {
    struct training *t;
    const struct train_callbacks *callbacks;
    bool save_is_due;
    bool is_saved;                    /* the state is on disk as it is */
    long validated_update;            /* -1: none in this run */
    double learn_rate, gradient_norm; /* of the last update */
    struct ints pairs;                /* of the running update */
    double busy_seconds, busy_tokens; /* of updates since the last report; tokens of both sides */
    struct schedule_point first;      /* where this run began ... */
    double began;                     /* ... and when */
};

/* ---- reports ---- */

static struct tfm_train_event event_of(const struct trainer *r, enum tfm_event_kind kind)
{
    const struct training *t = r->t;
    return (struct tfm_train_event){ .kind = kind,
                                     .update = t->state.update,
                                     .epoch = t->state.epoch,
                                     .sentences = t->state.epoch_pairs,
                                     .target_tokens = t->state.target_tokens,
                                     .learn_rate = r->learn_rate,
                                     .gradient_norm = r->gradient_norm,
                                     .seconds = training_seconds(t),
                                     .seconds_left = -1 };
}

/* At the pace of this run, up to --after. */
static double seconds_left(const struct trainer *r)
{
    const struct tfm_interval *after = &r->t->options.after;
    double now = schedule_amount(&r->t->point, after->unit);
    double done = now - schedule_amount(&r->first, after->unit);
    if (!(after->amount > 0) || !(done > 0))
        return -1;
    return fmax(0, after->amount - now) / done * (training_clock() - r->began);
}

static void report_progress(struct trainer *r)
{
    struct train_state *s = &r->t->state;
    struct tfm_train_event event = event_of(r, TFM_EVENT_PROGRESS);
    struct tfm_head_term terms[TFM_MAX_HEAD_LOSSES];
    head_terms_report(terms, &s->terms);
    event.terms = terms;
    event.n_terms = s->terms.n;
    event.loss = s->loss_sum / s->loss_tokens;
    event.tokens_per_second = r->busy_tokens / r->busy_seconds;
    event.seconds_left = seconds_left(r);
    report_event(&r->t->options, &event);
    s->loss_sum = s->loss_tokens = 0;
    r->busy_seconds = r->busy_tokens = 0;
}

static void report_saved(const struct trainer *r)
{
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s/checkpoint-%ld", r->t->checkpoints.folder.data, r->t->state.update);
    struct tfm_train_event event = event_of(r, TFM_EVENT_SAVED);
    event.text = folder;
    report_event(&r->t->options, &event);
}

static void report_profile(const struct trainer *r)
{
    const struct training *t = r->t;
    struct tfm_profile profile;
    struct tfm_profile_part parts[N_PROFILE_PARTS];
    breakdown_sum(&profile, parts, t->breakdown, &t->optimizer, &t->lanes);
    struct tfm_train_event event = event_of(r, TFM_EVENT_PROFILE);
    event.profile = &profile;
    report_event(&t->options, &event);
}

/* ---- an update ---- */

static enum tfm_status check_loss(const struct trainer *r, long update, double loss, double norm,
                                  struct tfm_error *err)
{
    const struct training *t = r->t;
    struct diverge found = { .update = update,
                             .loss = loss,
                             .gradient_norm = norm,
                             .vocab_size = t->config.vocab_size,
                             .learn_rate = t->options.learn_rate };
    char saved[4096];
    if (t->saved_update >= 0) {
        snprintf(saved, sizeof(saved), "%s/checkpoint-%ld", t->checkpoints.folder.data, t->saved_update);
        found.saved = saved;
    }
    return diverge_check(&found, &t->params, t->optimizer.weights, t->lanes.lane[0].gradient, err);
}

static double count_tokens(const struct corpus_side *side, const struct ints *pairs)
{
    double n = 0;
    for (size_t i = 0; i < pairs->n; i++)
        n += corpus_length(side, pairs->data[i]);
    return n;
}

static void apply_gradient(struct trainer *r, double n_labels)
{
    struct training *t = r->t;
    double clip = t->options.clip_norm;
    r->learn_rate = schedule_learn_rate(&t->options, &t->point);
    struct optimizer_step step = { .update = t->state.update,
                                   .learn_rate = r->learn_rate,
                                   .gradient_scale = 1 / n_labels,
                                   .average_rate = t->options.exponential_smoothing,
                                   .params = &t->params,
                                   .weight_decay = t->options.weight_decay };
    if (clip > 0 && r->gradient_norm > clip)
        step.gradient_scale *= clip / r->gradient_norm;
    optimizer_apply(&t->optimizer, &t->lanes, &step, t->kern, t->pool);
}

static enum tfm_status run_update(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    struct train_state *s = &t->state;
    struct schedule_point before = t->point;
    double began = training_clock();
    breakdown_to(t->breakdown, PROFILE_OTHER);
    TRY(place_next_pairs(t, &r->pairs, err));
    TRY(lanes_split(&t->lanes, t->seen, r->pairs.data, (int)r->pairs.n, err));

    struct lanes_run how = training_lanes_run(t, &t->net, s->update + 1);
    double n_source = count_tokens(&t->seen->source, &r->pairs);
    double n_target = count_tokens(&t->seen->target, &r->pairs), n_labels = lanes_labels(&t->lanes, &how);
    how.profiles = t->breakdown != NULL ? t->breakdown->lanes : NULL;
    /* Gradients are divided by n_labels, and a source row should count as one of all source rows. */
    how.heads.row_weight[TFM_ENCODER] *= (real)(n_labels / n_source);
    breakdown_to(t->breakdown, PROFILE_LANES);
    struct xent_sum sum = lanes_forward_backward(&t->lanes, &how);
    breakdown_to(t->breakdown, PROFILE_OPTIMIZE);
    r->gradient_norm = optimizer_reduce(&t->optimizer, &t->lanes, t->kern, t->pool) / n_labels;
    TRY(check_loss(r, s->update + 1, sum.loss / n_labels, r->gradient_norm, err));

    s->update++;
    s->is_ended = false;
    s->target_tokens += n_target;
    s->loss_sum += sum.loss;
    s->loss_tokens += n_labels;
    struct head_sum heads[TFM_MAX_HEAD_LOSSES] = { 0 };
    lanes_add_heads(heads, &t->lanes, s->terms.n);
    head_terms_add(&s->terms, heads);
    place_count_pairs(t, (int)r->pairs.n);
    apply_gradient(r, n_labels);
    breakdown_to(t->breakdown, PROFILE_OTHER);

    r->busy_seconds += training_clock() - began;
    r->busy_tokens += t->seen->is_text ? n_source : n_source + n_target;
    r->is_saved = false;
    r->save_is_due = schedule_is_due(&t->options.save_freq, &before, &t->point);
    s->valid_is_due = t->metrics.n > 0 && schedule_is_due(&t->options.valid_freq, &before, &t->point);
    if (schedule_is_due(&t->options.disp_freq, &before, &t->point))
        report_progress(r);
    return TFM_OK;
}

/* ---- saving ---- */

static const bool no_best[N_METRICS]; /* all false */

static enum tfm_status export_judged(const struct trainer *r, const struct train_state *state,
                                     struct tfm_error *err)
{
    const struct training *t = r->t;
    return export_model(&t->options, &t->config, &t->params, training_judged(t), state, &t->point,
                        windows_pairs(&t->windows), t->pool, err);
}

/* An update is checked by the loss of the next one; before a save, its own batch is run once more instead. */
static enum tfm_status check_weights(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    struct lanes_run how = training_lanes_run(t, &t->net, t->state.update);
    struct xent_sum sum = lanes_forward(&t->lanes, &how);
    return check_loss(r, t->state.update, sum.loss / lanes_labels(&t->lanes, &how), 0, err);
}

static enum metric deciding_metric(const struct training *t)
{
    return t->metrics.list[t->metrics.n - 1];
}

/* Gives the checkpoint the names it has earned, and exports the model if it is the best by the deciding
 * metric. */
static enum tfm_status keep_best(struct trainer *r, const struct train_state *state, const bool *is_best,
                                 struct tfm_error *err)
{
    const struct training *t = r->t;
    for (int i = 0; i < t->metrics.n; i++) {
        enum metric metric = t->metrics.list[i];
        char link[32];
        snprintf(link, sizeof(link), "best-%s", train_options_metric(metric));
        if (is_best[metric])
            TRY(checkpoint_link(&t->checkpoints, link, state->update, err));
        if (is_best[metric] && metric == deciding_metric(t))
            TRY(export_judged(r, state, err));
    }
    return TFM_OK;
}

/* Everything is written before the state counts (the name `last`, or a new state.json where that name is
 * given already): a training killed on the way goes on from before, and does the same again. is_best
 * [N_METRICS] comes from a validation of this update; all false without. */
static enum tfm_status save(struct trainer *r, const bool *is_best, struct tfm_error *err)
{
    struct training *t = r->t;
    struct train_state *s = &t->state;
    bool is_rewrite = t->saved_update == s->update;
    r->save_is_due = false;
    breakdown_to(t->breakdown, PROFILE_SAVE);
    if (r->is_saved)
        return TFM_OK;
    s->seconds = training_seconds(t);
    if (!is_rewrite) {
        s->has_average = t->optimizer.average != NULL;
        TRY(check_weights(r, err));
        TRY(checkpoint_announce(&t->checkpoints, s->update, err));
        TRY(checkpoint_write(&t->checkpoints, s, &t->settings, &t->params, &t->optimizer, t->pool, err));
    }
    TRY(keep_best(r, s, is_best, err));
    if (t->metrics.n == 0) /* without a validation the latest is the best */
        TRY(export_judged(r, s, err));
    if (is_rewrite)
        TRY(checkpoint_rewrite(&t->checkpoints, s, &t->settings, err));
    else
        TRY(checkpoint_link(&t->checkpoints, "last", s->update, err));
    t->saved_update = s->update;
    r->is_saved = true;
    TRY(checkpoint_prune(&t->checkpoints, t->options.keep_last, err));
    report_saved(r);
    return TFM_OK;
}

/* ---- validation ---- */

static bool judge(struct score *score, enum metric metric, double value)
{
    bool is_best = isfinite(value) && (!score->has_best || validate_is_better(metric, value, score->best));
    score->stalled = is_best ? 0 : score->stalled + 1;
    if (is_best) {
        score->has_best = true;
        score->best = value;
    }
    return is_best;
}

/* Validates the weights; state's scores and is_best [N_METRICS] tell what came out. */
static enum tfm_status validate(struct trainer *r, struct train_state *state, bool *is_best,
                                struct tfm_error *err)
{
    struct training *t = r->t;
    double values[N_METRICS];
    breakdown_to(t->breakdown, PROFILE_VALIDATE);
    struct lanes_run how = training_lanes_run(t, &t->judged_net, state->update);
    TRY(validate_run(values, &t->validate, &t->lanes, &how, &t->config, &t->judged_weights, &t->vocab,
                     r->callbacks, err));
    for (int i = 0; i < t->metrics.n; i++) {
        enum metric metric = t->metrics.list[i];
        struct score *score = &state->scores[metric];
        is_best[metric] = judge(score, metric, values[metric]);
        struct tfm_train_event event = event_of(r, TFM_EVENT_VALID);
        event.metric = train_options_metric(metric);
        event.value = values[metric];
        event.best = is_best[metric];
        event.stalled = score->stalled;
        report_event(&t->options, &event);
    }
    r->validated_update = state->update;
    if (r->callbacks->watch == NULL)
        return TFM_OK;
    struct tfm_train_event event = event_of(r, TFM_EVENT_ATTENTION);
    return view_attention(t, r->callbacks, &event, err);
}

static enum tfm_status run_validation(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    bool is_best[N_METRICS] = { false };
    t->state.valid_is_due = false;
    r->is_saved = false;
    TRY(validate(r, &t->state, is_best, err));
    for (int i = 0; i < N_METRICS; i++)
        r->save_is_due = r->save_is_due || is_best[i];
    return r->save_is_due ? save(r, is_best, err) : TFM_OK;
}

/* ---- the ends ---- */

static bool is_stopped(const struct trainer *r)
{
    return r->t->options.stop != NULL && *r->t->options.stop != 0;
}

static enum tfm_status stop(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    if (t->state.update == 0)
        return err_set(err, TFM_ESTOPPED, "stopped before the first update; nothing was to be saved");
    TRY(save(r, no_best, err));
    return err_set(err, TFM_ESTOPPED,
                   "stopped after update %ld; saved as %s/checkpoint-%ld: the same command goes on",
                   t->state.update, t->checkpoints.folder.data, t->state.update);
}

static bool is_stalled(const struct trainer *r)
{
    const struct training *t = r->t;
    return t->metrics.n > 0 && t->options.early_stopping > 0 &&
           t->state.scores[deciding_metric(t)].stalled >= t->options.early_stopping;
}

static bool is_finished(const struct trainer *r)
{
    return is_stalled(r) || schedule_is_over(&r->t->options.after, &r->t->point);
}

/* A validation at the end belongs to this end and not to the training, which may go on some day (with a later
 * --after) as if it had never ended: its scores decide what is kept and exported, and the saved state does
 * not know them. */
static enum tfm_status validate_end(struct trainer *r, bool *is_best, struct tfm_error *err)
{
    struct training *t = r->t;
    struct train_state state = t->state;
    TRY(validate(r, &state, is_best, err));
    breakdown_to(t->breakdown, PROFILE_SAVE);
    TRY(keep_best(r, &state, is_best, err));
    return checkpoint_prune(&t->checkpoints, t->options.keep_last, err);
}

static enum tfm_status mark_end(struct trainer *r, struct tfm_error *err)
{
    r->t->state.is_ended = true;
    return checkpoint_rewrite(&r->t->checkpoints, &r->t->state, &r->t->settings, err);
}

static enum tfm_status finish(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    bool is_best[N_METRICS] = { false };
    TRY(save(r, no_best, err));
    if (is_stalled(r))
        report_note(&t->options, "stopped early: %d validations without a better %s",
                    t->options.early_stopping, train_options_metric(deciding_metric(t)));
    if (t->metrics.n > 0 && r->validated_update != t->state.update)
        TRY(validate_end(r, is_best, err));
    return mark_end(r, err);
}

static bool has_model(const struct training *t)
{
    struct str path = { 0 };
    struct tfm_error ignored; /* what is missing is written again */
    bool is_there = path_join(&path, t->options.model, MODEL_CONFIG, &ignored) == TFM_OK &&
                    file_exists(path.data) &&
                    model_find_weights(&path, t->options.model, &ignored) == TFM_OK;
    str_release(&path);
    return is_there;
}

/* There is nothing left to be trained; but the end may have been killed, or its model removed, and so is made
 * again. (Stalled validations were saved.) */
static enum tfm_status export_again(struct trainer *r, struct tfm_error *err)
{
    struct training *t = r->t;
    const struct train_state end = t->state;
    bool is_best[N_METRICS] = { false };
    char link[32] = "last";
    breakdown_to(t->breakdown, PROFILE_SAVE);
    report_note(&t->options, "the training in %s is finished (update %ld); the model is written again",
                t->options.model, t->state.update);
    if (t->metrics.n > 0) {
        if (!is_stalled(r))
            TRY(validate_end(r, is_best, err));
        if (is_best[deciding_metric(t)]) /* and written */
            return mark_end(r, err);
        snprintf(link, sizeof(link), "best-%s", train_options_metric(deciding_metric(t)));
    }
    if (checkpoint_exists(&t->checkpoints, link) && strcmp(link, "last") != 0) {
        TRY(checkpoint_read_state(&t->checkpoints, link, &t->state, &t->settings, err));
        TRY(checkpoint_read_blocks(&t->checkpoints, link, &t->state, &t->params, &t->optimizer, t->pool,
                                   err));
        TRY(place_find(t, err));
    }
    TRY(export_judged(r, &t->state, err));
    t->state = end;
    return mark_end(r, err);
}

/* Goes on with a training that had come to its end. */
static enum tfm_status end_again(struct trainer *r, struct tfm_error *err)
{
    const struct training *t = r->t;
    if (!t->state.is_ended || !has_model(t))
        return export_again(r, err);
    report_note(
        &t->options,
        "the training in %s is finished (update %ld), and nothing was changed; it goes on with a larger %s",
        t->options.model, t->state.update, is_stalled(r) ? "--early-stopping" : "--after");
    return TFM_OK;
}

static enum tfm_status train(struct trainer *r, struct tfm_error *err)
{
    for (;;) {
        if (is_stopped(r))
            return stop(r, err);
        if (r->t->state.valid_is_due)
            TRY(run_validation(r, err));
        if (r->save_is_due)
            TRY(save(r, no_best, err));
        if (is_finished(r))
            return finish(r, err);
        TRY(run_update(r, err));
    }
}

enum tfm_status trainer_run(const struct tfm_train_options *options, const struct train_callbacks *callbacks,
                            struct tfm_error *err)
{
    struct training *t = mem_alloc(sizeof(*t), err);
    if (t == NULL)
        return TFM_ENOMEM;
    struct trainer r = { .t = t, .callbacks = callbacks, .validated_update = -1 };
    enum tfm_status status = training_init(t, options, err);
    bool is_open = status == TFM_OK;
    r.first = t->point;
    r.began = training_clock();
    r.is_saved = t->has_resumed;
    if (status == TFM_OK)
        status =
            t->has_resumed && is_finished(&r) && !t->state.valid_is_due ? end_again(&r, err) : train(&r, err);
    ints_release(&r.pairs);
    if (is_open && t->breakdown != NULL && (status == TFM_OK || status == TFM_ESTOPPED))
        report_profile(&r);
    training_release(t);
    mem_free(t);
    return status;
}
