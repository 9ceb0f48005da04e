/*
 * progress.c: turns the events of a training into lines. The log lines keep Marian's form, which other tools
 * read:
 *
 *     [2026-11-29 17:00:01] Ep. 1 : Up. 200 : Sen. 6,400 : Cost 5.12345678 : Time 12.30s : ...
 *     [2026-11-29 17:03:10] [valid] Ep. 1 : Up. 500 : bleu : 12.3411 : new best
 *
 * On a terminal the first kind is not printed but becomes the progress line at the bottom.
 */
#include "progress.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "attention_lines.h"
#include "event_file.h"
#include "profile_lines.h"
#include "quote.h"
#include "stop.h"
#include "terminal.h"

enum {
    LINE_SIZE = 5000 /* room for all losses on heads */
};

/* ---- files ---- */

/* The folders that a path begins with. Files are often wanted in the model's folder, which the training itself
 * has not made yet. Where one cannot be made, a file cannot be either, and that is told. */
static void make_folders(const char *path)
{
    char folder[PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
        size_t len = (size_t)(slash - path);
        if (len > 0 && len < sizeof(folder)) {
            memcpy(folder, path, len);
            folder[len] = '\0';
            mkdir(folder, 0777);
        }
    }
}

static FILE *open_file(const char *path, struct tfm_error *err)
{
    make_folders(path);
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        cmd_error(err, TFM_EIO, "cannot write %s: %s", path, strerror(errno));
    return file;
}

static enum tfm_status open_scalars(struct progress *progress, const char *folder, struct tfm_error *err)
{
    make_folders(folder);
    mkdir(folder, 0777);
    progress->scalars = event_file_open(folder, progress->scalars_path, sizeof(progress->scalars_path));
    return progress->scalars != NULL
               ? TFM_OK
               : cmd_error(err, TFM_EIO, "cannot write a file in %s: %s", folder, strerror(errno));
}

/* Hands on what was written. A file that cannot be written any more is given up, and the training goes on. */
static void flush_file(FILE **file, const char *path)
{
    if (fflush(*file) == 0 && !ferror(*file))
        return;
    fprintf(stderr, "tfm train: cannot write %s: %s; going on without it\n", path, strerror(errno));
    fclose(*file);
    *file = NULL;
}

enum tfm_status progress_init(struct progress *progress, bool quiet, const struct progress_files *files,
                              struct tfm_error *err)
{
    *progress = (struct progress){ .quiet = quiet, .log_path = files->log, .json_path = files->json };
    clock_gettime(CLOCK_MONOTONIC, &progress->last);
    if ((files->log != NULL && (progress->log = open_file(files->log, err)) == NULL) ||
        (files->json != NULL && (progress->json = open_file(files->json, err)) == NULL) ||
        (files->tensorboard != NULL && open_scalars(progress, files->tensorboard, err) != TFM_OK)) {
        progress_release(progress);
        return TFM_EIO;
    }
    return TFM_OK;
}

void progress_release(struct progress *progress)
{
    if (progress->shown[0] != '\0')
        fputc('\n', stderr);
    progress->shown[0] = '\0';
    if (progress->log != NULL)
        fclose(progress->log);
    if (progress->json != NULL)
        fclose(progress->json);
    if (progress->scalars != NULL)
        fclose(progress->scalars);
    progress->log = progress->json = progress->scalars = NULL;
}

/* ---- lines ---- */

/* 1234567 as 1,234,567 */
static const char *with_commas(long number, char *text, size_t size)
{
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%ld", number);
    size_t to = 0;
    for (size_t i = 0; i < n && to + 2 < size; i++) {
        text[to++] = digits[i];
        if (i + 1 < n && (n - i - 1) % 3 == 0)
            text[to++] = ',';
    }
    text[to] = '\0';
    return text;
}

/* Appends what the losses on heads were. */
static void format_terms(const struct tfm_train_event *e, char *text)
{
    size_t len = strlen(text);
    for (int i = 0; i < e->n_terms && len < LINE_SIZE; i++)
        len +=
            (size_t)snprintf(text + len, LINE_SIZE - len, " : %s %.4f", e->terms[i].name, e->terms[i].value);
}

/* The event as a log line without its time. */
static void format_event(const struct tfm_train_event *e, double seconds, char *text)
{
    char sentences[32];
    switch (e->kind) {
    case TFM_EVENT_NOTE: snprintf(text, LINE_SIZE, "%s", e->text); break;
    case TFM_EVENT_SAVED: snprintf(text, LINE_SIZE, "Saved %s", e->text); break;
    case TFM_EVENT_PROGRESS:
        snprintf(
            text, LINE_SIZE,
            "Ep. %ld : Up. %ld : Sen. %s : Cost %.8f : Time %.2fs : %.2f words/s : gNorm %.4f : L.r. %.4e",
            e->epoch, e->update, with_commas(e->sentences, sentences, sizeof(sentences)), e->loss, seconds,
            e->tokens_per_second, e->gradient_norm, e->learn_rate);
        format_terms(e, text);
        break;
    case TFM_EVENT_VALID:
        if (e->best)
            snprintf(text, LINE_SIZE, "[valid] Ep. %ld : Up. %ld : %s : %g : new best", e->epoch, e->update,
                     e->metric, e->value);
        else
            snprintf(text, LINE_SIZE, "[valid] Ep. %ld : Up. %ld : %s : %g : stalled %d times", e->epoch,
                     e->update, e->metric, e->value, e->stalled);
        break;
    case TFM_EVENT_PROFILE:
    case TFM_EVENT_ATTENTION: break; /* have lines of their own */
    }
}

static void print_line(FILE *file, time_t now, const char *text)
{
    char when[32];
    struct tm local;
    localtime_r(&now, &local);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &local);
    fprintf(file, "[%s] %s\n", when, text);
}

static void print_terms(FILE *file, const struct tfm_train_event *e)
{
    if (e->n_terms == 0)
        return;
    fputs(", \"head_losses\": {", file);
    for (int i = 0; i < e->n_terms; i++) {
        fprintf(file, "%s\"%s\": ", i > 0 ? ", " : "", e->terms[i].name);
        quote_number(file, e->terms[i].value);
    }
    fputc('}', file);
}

static void print_json(FILE *file, const struct tfm_train_event *e)
{
    static const char *const kinds[] = {
        [TFM_EVENT_NOTE] = "note",   [TFM_EVENT_PROGRESS] = "progress", [TFM_EVENT_VALID] = "valid",
        [TFM_EVENT_SAVED] = "saved", [TFM_EVENT_PROFILE] = "profile",   [TFM_EVENT_ATTENTION] = "attention"
    };
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(file, "{\"time\": \"%s\", \"event\": \"%s\"", when, kinds[e->kind]);
    if (e->kind != TFM_EVENT_NOTE) { /* which has no place in the training */
        fprintf(file, ", \"update\": %ld, \"epoch\": %ld, \"sentences\": %ld", e->update, e->epoch,
                e->sentences);
        quote_field(file, "seconds", e->seconds);
    }
    if (e->kind == TFM_EVENT_PROGRESS) {
        quote_field(file, "target_tokens", e->target_tokens);
        quote_field(file, "loss", e->loss);
        quote_field(file, "learn_rate", e->learn_rate);
        quote_field(file, "gradient_norm", e->gradient_norm);
        quote_field(file, "tokens_per_second", e->tokens_per_second);
        quote_field(file, "seconds_left", e->seconds_left >= 0 ? e->seconds_left : (double)NAN);
        print_terms(file, e);
    } else if (e->kind == TFM_EVENT_VALID) {
        fprintf(file, ", \"metric\": \"%s\"", e->metric);
        quote_field(file, "value", e->value);
        fprintf(file, ", \"best\": %s, \"stalled\": %d", e->best ? "true" : "false", e->stalled);
    } else if (e->kind == TFM_EVENT_PROFILE) {
        profile_json(file, e->profile);
    } else if (e->kind == TFM_EVENT_ATTENTION) {
        attention_json(file, e);
    } else {
        fputs(", \"text\": ", file);
        quote_json(file, e->text);
    }
    fputs("}\n", file);
}

/* ---- numbers for TensorBoard ---- */

static void write_scalars(FILE *file, const struct tfm_train_event *e)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double time = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    char tag[64];
    if (e->kind == TFM_EVENT_PROGRESS) {
        event_file_add(file, time, e->update, "train/loss", e->loss);
        event_file_add(file, time, e->update, "train/learn_rate", e->learn_rate);
        event_file_add(file, time, e->update, "train/gradient_norm", e->gradient_norm);
        event_file_add(file, time, e->update, "train/tokens_per_second", e->tokens_per_second);
        for (int i = 0; i < e->n_terms; i++) {
            snprintf(tag, sizeof(tag), "train/%s", e->terms[i].name);
            event_file_add(file, time, e->update, tag, e->terms[i].value);
        }
    } else if (e->kind == TFM_EVENT_VALID) {
        snprintf(tag, sizeof(tag), "valid/%s", e->metric);
        event_file_add(file, time, e->update, tag, e->value);
    }
}

/* ---- the terminal ---- */

static void format_progress(const struct tfm_train_event *e, char *text, size_t size)
{
    char update[32], speed[32], left[48] = "";
    if (e->seconds_left >= 0 && e->seconds_left < 1e8) {
        long s = (long)(e->seconds_left + 0.5);
        snprintf(left, sizeof(left), "  %ld:%02ld:%02ld left", s / 3600, s / 60 % 60, s % 60);
    }
    snprintf(text, size, "update %s  epoch %ld  loss %.4f  %s tokens/s%s",
             with_commas(e->update, update, sizeof(update)), e->epoch, e->loss,
             with_commas((long)e->tokens_per_second, speed, sizeof(speed)), left);
}

static void show_on_terminal(struct progress *progress, const struct tfm_train_event *e, time_t now,
                             const char *line)
{
    fputs("\r\033[K", stderr); /* to the line's begin, and clear it */
    if (e->kind == TFM_EVENT_PROGRESS)
        format_progress(e, progress->shown, sizeof(progress->shown));
    else
        print_line(stderr, now, line);
    fprintf(stderr, "%.*s", terminal_columns(stderr) - 1, progress->shown);
}

/* A line of an event, to wherever lines go, with the same time everywhere. */
static void show_line(struct progress *progress, const struct tfm_train_event *event, const char *line)
{
    time_t now = time(NULL);
    if (!progress->quiet && terminal_columns(stderr) > 0)
        show_on_terminal(progress, event, now, line);
    else if (!progress->quiet)
        print_line(stderr, now, line);
    if (progress->log != NULL) {
        stop_by_pipes(false); /* a log that nobody reads any more is given up */
        print_line(progress->log, now, line);
        flush_file(&progress->log, progress->log_path);
        stop_by_pipes(true);
    }
}

struct showing {
    struct progress *progress;
    const struct tfm_train_event *event;
};

static void show_one(void *user, const char *text)
{
    const struct showing *showing = user;
    show_line(showing->progress, showing->event, text);
}

void progress_event(void *user, const struct tfm_train_event *event)
{
    struct progress *progress = user;
    struct showing showing = { progress, event };
    char line[LINE_SIZE];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - progress->last.tv_sec) + 1e-9 * (double)(now.tv_nsec - progress->last.tv_nsec);
    if (event->kind == TFM_EVENT_PROGRESS)
        progress->last = now;
    if (event->kind == TFM_EVENT_PROFILE) {
        profile_lines(event->profile, show_one, &showing);
    } else if (event->kind == TFM_EVENT_ATTENTION) {
        attention_lines(event, show_one, &showing);
    } else {
        format_event(event, seconds, line);
        show_line(progress, event, line);
    }
    stop_by_pipes(false);
    if (progress->json != NULL) {
        print_json(progress->json, event);
        flush_file(&progress->json, progress->json_path);
    }
    if (progress->scalars != NULL) {
        write_scalars(progress->scalars, event);
        flush_file(&progress->scalars, progress->scalars_path);
    }
    stop_by_pipes(true);
}
