/*
 * dryrun.c: a training that is opened and not begun. So that mistakes are found as a real start finds them,
 * nothing is done in another way here: the training is opened by training_init, but in a scratch folder, to
 * which a training that the model folder holds is linked, file by file. What is said names the model folder
 * instead. The time is that of some updates with a learning rate of zero, whose result is thrown away.
 */
#include "train/dryrun.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/model.h"
#include "train/report.h"
#include "train/training.h"

#define MAX_UPDATES 12
#define MAX_SECONDS 5.0
#define MIB         (1024.0 * 1024.0)

struct dryrun {
    const struct tfm_train_options *asked;
    char *scratch; /* the folder that stands for the model's */
};

/* ---- names ---- */

/* The text with the model's folder for the scratch one. */
static void rename_folder(char *out, size_t size, const char *text, const struct dryrun *d)
{
    size_t n = 0;
    const char *found;
    while (n < size && (found = strstr(text, d->scratch)) != NULL) {
        n += (size_t)snprintf(out + n, size - n, "%.*s%s", (int)(found - text), text, d->asked->model);
        text = found + strlen(d->scratch);
    }
    if (n < size)
        snprintf(out + n, size - n, "%s", text);
}

static void pass_event(void *user, const struct tfm_train_event *event)
{
    const struct dryrun *d = user;
    char text[3000];
    struct tfm_train_event renamed = *event;
    rename_folder(text, sizeof(text), event->text != NULL ? event->text : "", d);
    renamed.text = event->text != NULL ? text : NULL;
    report_event(d->asked, &renamed);
}

/* ---- the folders ---- */

/* That a training could make the folder, or write to it. */
static enum tfm_status check_writable(const char *model, struct tfm_error *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s", model);
    struct stat found;
    if (stat(path, &found) == 0 && access(path, W_OK) != 0)
        return err_io(err, "cannot write to the folder %s", path);
    while (stat(path, &found) != 0) {
        if (errno != ENOENT)
            return err_io(err, "cannot make the folder %s", model);
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path)
            snprintf(path, sizeof(path), "%s", slash == NULL ? "." : "/");
        else
            *slash = '\0';
    }
    if (!S_ISDIR(found.st_mode))
        return err_set(err, TFM_EIO, "cannot make the folder %s: there is a file of that name", path);
    return access(path, W_OK) == 0 ? TFM_OK : err_io(err, "cannot make the folder %s", model);
}

/* Links an entry of a folder into another one; a link is copied. */
static enum tfm_status link_entry(const char *from, const char *to, const char *name, struct tfm_error *err)
{
    char source[4096], target[4096], value[4096];
    struct stat found;
    snprintf(source, sizeof(source), "%s/%s", from, name);
    snprintf(target, sizeof(target), "%s/%s", to, name);
    if (lstat(source, &found) != 0)
        return TFM_OK;
    ssize_t n = readlink(source, value, sizeof(value) - 1);
    int failed;
    if (n >= 0) {
        value[n] = '\0';
        failed = symlink(value, target);
    } else if (strcmp(name, "last") == 0) { /* is an error, which must be found */
        failed = mkdir(target, 0777);
    } else {
        failed = realpath(source, value) == NULL || symlink(value, target) != 0;
    }
    return failed ? err_io(err, "cannot make the link %s", target) : TFM_OK;
}

static enum tfm_status link_checkpoints(const char *from, const char *to, struct tfm_error *err)
{
    DIR *dir = opendir(from);
    if (dir == NULL)
        return errno == ENOENT ? TFM_OK : err_io(err, "cannot read the folder %s", from);
    enum tfm_status status = dir_make(to, err);
    struct dirent *entry;
    while (status == TFM_OK && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            status = link_entry(from, to, entry->d_name, err);
    }
    closedir(dir);
    return status;
}

static enum tfm_status link_model(const struct dryrun *d, struct tfm_error *err)
{
    static const char *const files[] = { MODEL_CONFIG, MODEL_VOCAB, MODEL_SOURCE_VOCAB, MODEL_TARGET_VOCAB };
    char from[4096], to[4096], last[4096];
    snprintf(from, sizeof(from), "%s/checkpoints", d->asked->model);
    snprintf(to, sizeof(to), "%s/checkpoints", d->scratch);
    snprintf(last, sizeof(last), "%s/checkpoints/last", d->asked->model);
    TRY(link_checkpoints(from, to, err));
    TRY(link_entry(d->asked->model, d->scratch, files[0], err));
    for (size_t i = 1; file_exists(last) && i < sizeof(files) / sizeof(files[0]); i++)
        TRY(link_entry(d->asked->model, d->scratch, files[i], err));
    return TFM_OK;
}

/* ---- the report ---- */

/* Runs updates that move nothing; false: stopped. */
static bool run_updates(struct training *t, int *n_done, double *tokens, double *seconds,
                        struct tfm_error *err)
{
    struct lanes_run how = training_lanes_run(t, &t->net, t->state.update + 1);
    double began = training_clock();
    *n_done = 0;
    *tokens = *seconds = 0;
    for (int i = 0; i < t->plan.n && *n_done < MAX_UPDATES; i++) {
        int n;
        const int *pairs = batch_pairs(&t->plan, (t->state.batch + i) % t->plan.n, &n);
        double start = training_clock(), n_target = 0;
        if (t->options.stop != NULL && *t->options.stop != 0)
            return false;
        if (lanes_split(&t->lanes, t->seen, pairs, n, err) != TFM_OK)
            return false;
        for (int j = 0; j < n; j++)
            n_target += corpus_length(&t->seen->target, pairs[j]);
        lanes_forward_backward(&t->lanes, &how);
        optimizer_reduce(&t->optimizer, &t->lanes, t->kern, t->pool);
        struct optimizer_step step = { .update = t->state.update + 1, .gradient_scale = 1 / n_target };
        optimizer_apply(&t->optimizer, &t->lanes, &step, t->kern, t->pool);
        if (i == 0 && t->plan.n > 1) /* memory was touched for the first time */
            continue;
        *tokens += n_target;
        *seconds += training_clock() - start;
        ++*n_done;
        if (training_clock() - began > MAX_SECONDS)
            break;
    }
    return true;
}

/* Target tokens of the window at hand, </s> counted. */
static double tokens_of_window(const struct training *t)
{
    return (double)t->seen->target.start[t->seen->n] + t->seen->n;
}

/* Windows of that size in a pass. */
static double windows_of_pass(const struct training *t)
{
    return (double)t->windows.pass_pairs / (double)t->window_pairs;
}

static double tokens_of_pass(const struct training *t)
{
    return tokens_of_window(t) * windows_of_pass(t);
}

static double updates_of_pass(const struct training *t)
{
    int delay = t->options.optimizer_delay;
    return (t->plan.n + delay - 1) / delay * windows_of_pass(t);
}

/* Target tokens from here to --after; negative: not known. */
static double tokens_left(const struct training *t)
{
    const struct tfm_interval *after = &t->options.after;
    double left = after->amount - schedule_amount(&t->point, after->unit);
    double each = after->unit == TFM_UPDATES         ? tokens_of_pass(t) / updates_of_pass(t)
                  : after->unit == TFM_EPOCHS        ? tokens_of_pass(t)
                  : after->unit == TFM_TARGET_TOKENS ? 1
                                                     : -1;
    return after->amount > 0 && each > 0 ? fmax(0, left) * each : -1;
}

static void report_sizes(const struct training *t)
{
    const struct tfm_train_options *o = &t->options;
    double block = (double)(t->params.size * sizeof(real));
    double state = block * (t->optimizer.average != NULL ? 4 : 3), gradients = block * t->lanes.n,
           scratch = 0;
    for (int i = 0; i < t->lanes.n_arenas; i++)
        scratch += (double)t->lanes.arena[i].size;
    report_note(
        o,
        "memory: at most %.0f MiB: weights and moments %.1f, gradients %.1f, activations %.1f; with the "
        "corpus, validation and libraries beside it",
        (state + gradients + scratch) / MIB, state / MIB, gradients / MIB, scratch / MIB);
    report_note(o,
                "disk: %.1f MiB a checkpoint, of which %d may be kept at once; %.1f MiB the model, at most",
                state / MIB, t->metrics.n + o->keep_last + 1, block / (o->f16 ? 2 : 1) / MIB);
}

static bool is_finished(const struct training *t)
{
    bool is_stalled = t->metrics.n > 0 && t->options.early_stopping > 0 &&
                      t->state.scores[t->metrics.list[t->metrics.n - 1]].stalled >= t->options.early_stopping;
    return t->has_resumed && (is_stalled || schedule_is_over(&t->options.after, &t->point));
}

static void format_time(char *text, size_t size, double seconds)
{
    snprintf(text, size, "%.0f:%02.0f:%02.0f", floor(seconds / 3600), floor(fmod(seconds, 3600) / 60),
             floor(fmod(seconds, 60)));
}

static void report_time(const struct training *t, int n, double tokens, double seconds)
{
    double left = tokens_left(t), rate = tokens / seconds;
    char pass[40], end[40], to_end[80] = "";
    format_time(pass, sizeof(pass), tokens_of_pass(t) / rate);
    format_time(end, sizeof(end), left / rate);
    if (left >= 0)
        snprintf(to_end, sizeof(to_end), ", %s to --after", end);
    report_note(
        &t->options,
        "time: about %s a pass%s, without validations and saves; from %d update%s at %.0f target tokens "
        "a second",
        pass, to_end, n, n == 1 ? "" : "s", rate);
}

static enum tfm_status report(struct training *t, struct tfm_error *err)
{
    const struct tfm_train_options *o = &t->options;
    int n;
    double tokens, seconds;
    if (t->has_resumed)
        report_note(o, "it stands at update %ld, %.2f epochs; %s", t->state.update, t->point.epochs,
                    is_finished(t) ? "it is finished: nothing would be trained"
                                   : "it would go on from there");
    report_note(o, "updates: about %.0f a pass of %.0f target tokens", updates_of_pass(t), tokens_of_pass(t));
    report_sizes(t);
    if (!is_finished(t)) {
        *err = (struct tfm_error){ 0 };
        if (!run_updates(t, &n, &tokens, &seconds, err))
            return err->status != TFM_OK ? err->status
                                         : err_set(err, TFM_ESTOPPED, "the dry run was stopped");
        report_time(t, n, tokens, seconds);
    }
    report_note(o, "dry run: nothing was trained, and nothing written");
    return TFM_OK;
}

/* ---- the whole ---- */

static void remove_scratch(const struct dryrun *d)
{
    struct tfm_error ignored; /* what happened before is the failure to tell */
    char checkpoints[4096];
    snprintf(checkpoints, sizeof(checkpoints), "%s/checkpoints", d->scratch);
    dir_remove(checkpoints, &ignored);
    dir_remove(d->scratch, &ignored);
}

static enum tfm_status open_and_report(struct dryrun *d, struct tfm_error *err)
{
    struct tfm_train_options options = *d->asked;
    struct training *t = mem_alloc(sizeof(*t), err);
    if (t == NULL)
        return TFM_ENOMEM;
    options.model = d->scratch;
    options.event = pass_event;
    options.user = d;
    options.profile = false;
    enum tfm_status status = training_init(t, &options, err);
    remove_scratch(d); /* all is in memory, and from here on the program may be killed without leaving it */
    if (status == TFM_OK)
        status = report(t, err);
    training_release(t);
    mem_free(t);
    return status;
}

static enum tfm_status run(struct dryrun *d, struct tfm_error *err)
{
    struct checkpoints running = { .lock = -1 };
    TRY(check_writable(d->asked->model, err));
    TRY(checkpoint_lock(&running, d->asked->model, err));
    enum tfm_status status = TFM_OK;
    if (mkdtemp(d->scratch) == NULL)
        status = err_io(err, "cannot make a folder for temporary files in %s (TMPDIR)", d->asked->dry_run);
    if (status == TFM_OK) {
        status = link_model(d, err);
        if (status == TFM_OK)
            status = open_and_report(d, err);
        remove_scratch(d);
    }
    checkpoint_release(&running);
    return status;
}

enum tfm_status dryrun_run(const struct tfm_train_options *options, struct tfm_error *err)
{
    struct tfm_train_options resolved;
    struct metric_list metrics;
    TRY(train_options_resolve(&resolved, &metrics, options, err));
    struct dryrun d = { .asked = options };
    struct str name = { 0 };
    struct tfm_error found;
    TRY(path_join(&name, options->dry_run, "tfm-dry-run-XXXXXX", err));
    d.scratch = name.data;
    enum tfm_status status = run(&d, &found);
    if (status != TFM_OK) {
        char message[sizeof(found.message)];
        rename_folder(message, sizeof(message), found.message, &d);
        err_set(err, status, "%s", message);
    }
    str_release(&name);
    return status;
}
