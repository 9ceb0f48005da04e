/*
 * place.c: leads a training through its epochs: from batch to batch, from window to window, pass to pass.
 * The place is the state's (epoch, window, batch); from it follow the pairs of the next batch and how many
 * epochs are done, counted in pairs as they are read: a window of which half of the kept pairs were trained
 * on counts as half done.
 */
#include "train/place.h"

#include <inttypes.h>

#include "base/rng.h"
#include "train/report.h"

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

void place_report_tally(const struct training *t)
{
    const struct tfm_train_options *o = &t->options;
    const struct tally *tally = &t->state.tally;
    if (t->corpus.is_text) {
        report_note(o,
                    "corpus: %ld of %" PRIu64
                    " lines, %ld pieces; left out: %ld empty, %ld longer than %d pieces (--max-length)",
                    tally->kept, t->windows.pass_pairs, tally->source_pieces, tally->empty, tally->too_long,
                    o->max_length);
        return;
    }
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

/* Pairs that are trained without their alignment. */
static void report_unguided(const struct training *t)
{
    if (t->corpus.n_unguided > 0)
        report_note(
            &t->options,
            "guided alignment: %ld of %d pairs are trained without, since their pieces make other words than "
            "spaces do",
            t->corpus.n_unguided, t->corpus.n);
}

static enum tfm_status no_pair(const struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    const struct tally *tally = &t->state.tally;
    struct str name = { 0 };
    TRY(bitext_name(&name, &o->corpora[0], err));
    const char *others = o->n_corpora > 1 ? " and others" : "";
    const char *unit = t->corpus.is_text ? "line" : "pair";
    uint64_t n_pairs = windows_pairs(&t->windows);
    enum tfm_status status;
    if (t->windows.pass_pairs == 0 && n_pairs > 0)
        status = err_set(err, TFM_EINVAL, "%s%s: a pass sees none of %" PRIu64 " %ss: raise --weights",
                         name.data, others, n_pairs, unit);
    else
        status =
            err_set(err, TFM_EFORMAT,
                    "%s%s: no %s to train on: of %" PRIu64
                    " read, %ld are empty%s, %ld longer than %d pieces (--max-length) and %ld "
                    "too unequal (--max-length-ratio)",
                    name.data, others, unit, t->windows.pass_pairs, tally->empty,
                    t->corpus.is_text ? "" : " on a side", tally->too_long, o->max_length, tally->unequal);
    str_release(&name);
    return status;
}

/* The training has come to the state's window. What was left out is told when the first pass has come to its
 * last one: at the start, where there is one. */
static enum tfm_status begin_window(struct training *t, struct tfm_error *err)
{
    TRY(load_window(t, err));
    if (t->state.epoch > 1)
        return TFM_OK;
    count_window(t);
    report_unguided(t);
    if (t->state.window + 1 < t->windows.n)
        return TFM_OK;
    if (t->state.tally.kept == 0)
        return no_pair(t, err);
    place_report_tally(t);
    return TFM_OK;
}

enum tfm_status place_begin(struct training *t, struct tfm_error *err)
{
    TRY(begin_window(t, err));
    set_point(t);
    return TFM_OK;
}

/* At the end of a window fewer batches are left. The layers see one micro-batch at a time all the same, so
 * memory does not grow with their number. */
enum tfm_status place_next_pairs(struct training *t, struct ints *pairs, struct tfm_error *err)
{
    struct train_state *s = &t->state;
    while (s->batch == t->plan.n) {
        s->batch = 0;
        if (++s->window == t->windows.n) {
            s->window = 0;
            s->epoch++;
            s->epoch_pairs = 0;
        }
        breakdown_to(t->breakdown, PROFILE_READ);
        TRY(begin_window(t, err));
        breakdown_to(t->breakdown, PROFILE_OTHER);
    }
    int left = t->plan.n - s->batch;
    int n = left < t->options.optimizer_delay ? left : t->options.optimizer_delay;
    TRY(batch_join(pairs, &t->plan, t->seen, s->batch, n, err));
    s->batch += n;
    return TFM_OK;
}

void place_count_pairs(struct training *t, int n)
{
    t->state.epoch_pairs += n;
    t->trained_pairs += n;
    set_point(t);
}

static enum tfm_status outside(const struct training *t, const char *what, int found, const char *whole,
                               int n, struct tfm_error *err)
{
    return err_set(err, TFM_EFORMAT, "%s/checkpoint-%ld/" CHECKPOINT_STATE ": %s %d of %s that has %d",
                   t->checkpoints.folder.data, t->state.update, what, found, whole, n);
}

/* With another --source-sampling or --target-sampling than before, a window may have fewer batches than were
 * done of it: then it is done. */
enum tfm_status place_find(struct training *t, struct tfm_error *err)
{
    struct train_state *s = &t->state;
    if (s->window >= t->windows.n)
        return outside(t, "window", s->window, "an epoch", t->windows.n, err);
    TRY(load_window(t, err));
    if (s->batch > t->corpus.n)
        return outside(t, "batch", s->batch, "a window", t->plan.n, err);
    if (s->batch > t->plan.n)
        s->batch = t->plan.n;
    for (int i = 0; i < s->batch; i++) {
        int n;
        batch_pairs(&t->plan, i, &n);
        t->trained_pairs += n;
    }
    set_point(t);
    return TFM_OK;
}
