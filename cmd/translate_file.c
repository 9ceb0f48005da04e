/*
 * translate_file.c: reads lines, translates them and prints what comes back, a window of lines at a time. A
 * window holds what can be read without waiting, up to a limit: so a line that comes alone through a pipe is
 * answered and flushed before the next is waited for, and a file is translated in large windows that the
 * library sorts and batches.
 */
#include "translate_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 1 << 20
};

struct window {
    struct record *record; /* [n] */
    char **text, **prefix; /* [n] of the records; prefixes lie behind the texts; NULL where there is none */
    long *number;          /* of the line in its file */
    size_t n, size, bytes;
    bool is_last; /* the file ends behind it */
};

static bool window_init(struct window *w, size_t size)
{
    *w = (struct window){ .size = size };
    w->record = calloc(size, sizeof(*w->record));
    w->text = calloc(size, sizeof(*w->text));
    w->prefix = calloc(size, sizeof(*w->prefix));
    w->number = calloc(size, sizeof(*w->number));
    return w->record != NULL && w->text != NULL && w->prefix != NULL && w->number != NULL;
}

static void window_release(struct window *w)
{
    free(w->record);
    free(w->text);
    free(w->prefix);
    free(w->number);
}

static void clear_window(struct window *w)
{
    for (size_t i = 0; i < w->n; i++)
        record_release(&w->record[i]);
    w->n = w->bytes = 0;
}

static long count_words(const char *text)
{
    static const char space[] = " \t";
    long n = 0;
    for (text += strspn(text, space); *text != '\0'; text += strspn(text, space), n++)
        text += strcspn(text, space);
    return n;
}

/* Waits for a line, and takes what else is at hand. On failure the window holds the lines before. */
static enum tfm_status fill_window(struct window *w, struct tfm_lines *lines, bool *all_utf8,
                                   const char *path, struct translation_job *job, struct tfm_error *err)
{
    do {
        struct tfm_line line;
        bool more;
        enum tfm_status status = tfm_lines_next(lines, &line, &more, err);
        w->is_last = status == TFM_OK && !more;
        if (status != TFM_OK || w->is_last)
            return status;
        if (!line.is_utf8 && *all_utf8) {
            *all_utf8 = false;
            if (!job->style->quiet)
                fprintf(stderr, "%s: %s: line %ld: not valid UTF-8, read as U+FFFD here and in later lines\n",
                        job->command, cmd_shown_path(path), line.number);
        }
        const char *text = job->style->record.format == RECORD_JSONL ? line.repaired : line.text;
        status =
            record_parse(&w->record[w->n], &job->style->record, text, cmd_shown_path(path), line.number, err);
        if (status != TFM_OK)
            return status;
        w->text[w->n] = w->record[w->n].text;
        w->prefix[w->n] = job->style->force_decode ? strchr(w->text[w->n], '\t') : NULL;
        if (w->prefix[w->n] != NULL)
            *w->prefix[w->n]++ = '\0';
        job->n_words += count_words(w->text[w->n]);
        w->number[w->n++] = line.number;
        w->bytes += strlen(line.text);
    } while (w->n < w->size && w->bytes < WINDOW_BYTES && !tfm_lines_would_wait(lines));
    return TFM_OK;
}

static void note_given(const struct translation_job *job, const char *path, long number)
{
    if (!job->style->quiet)
        fprintf(stderr, "%s: %s: line %ld: %s longer than --max-length, printed as it is\n", job->command,
                cmd_shown_path(path), number,
                tfm_model_is_language_model(job->model) ? "the beginning of a text is"
                                                        : "what is forced on it is");
}

static void note_result(const struct translation_job *job, const char *path, long number,
                        const struct tfm_translation *t)
{
    if (t->n_parts > 1 && !job->style->quiet)
        fprintf(stderr, "%s: %s: line %ld: longer than --max-length, translated in %d parts\n", job->command,
                cmd_shown_path(path), number, t->n_parts);
    if (t->cropped && !job->style->quiet)
        fprintf(stderr, "%s: %s: line %ld: longer than --max-length, cropped\n", job->command,
                cmd_shown_path(path), number);
    if (t->n_terms_missing > 0 && !job->style->quiet)
        fprintf(stderr, "%s: %s: line %ld: the translation lacks %d of the terms that --glossary asks for\n",
                job->command, cmd_shown_path(path), number, t->n_terms_missing);
    if (t->limited && job->style->verbose)
        fprintf(stderr, "%s: %s: line %ld: ended by the length limit (--max-length%s)\n", job->command,
                cmd_shown_path(path), number, tfm_model_is_language_model(job->model) ? "" : "-factor");
}

/* The line on the terminal that tells how far the file is, or its end. */
static void show_progress(const struct translation_job *job, const char *path, long number, bool is_last)
{
    if (!job->style->progress)
        return;
    struct tfm_profile profile;
    tfm_translator_profile(&profile, job->translator);
    fputs("\r\033[K", stderr); /* to the line's begin, and clear it */
    if (!is_last)
        fprintf(stderr, "%s: %ld line%s, %.1f a second", cmd_shown_path(path), number, number == 1 ? "" : "s",
                profile.seconds > 0 ? (double)job->n_lines / profile.seconds : 0);
}

/* Lines from `from` up to `to`; by halves where one call has no room for all that may be found. */
static enum tfm_status translate_lines(struct translation_job *job, const struct window *w, size_t from,
                                       size_t to, const char *path, struct output *out, struct tfm_error *err)
{
    const struct tfm_translation *result;
    enum tfm_status status =
        tfm_translate_forced(job->translator, (const char *const *)w->text + from,
                             (const char *const *)w->prefix + from, to - from, &result, err);
    if (status == TFM_ENOMEM && to - from > 1) {
        size_t middle = from + (to - from) / 2;
        status = translate_lines(job, w, from, middle, path, out, err);
        return status == TFM_OK ? translate_lines(job, w, middle, to, path, out, err) : status;
    }
    if (status != TFM_OK)
        return status;
    for (size_t i = from; i < to; i++) {
        struct tfm_hypothesis given = { .text = w->prefix[i] != NULL ? w->prefix[i] : w->text[i] };
        struct tfm_translation t = result[i - from];
        if (t.n_hypotheses == 0) { /* what it has to begin with is all that there is room for */
            t = (struct tfm_translation){ .hypotheses = &given, .n_hypotheses = 1, .n_parts = 1 };
            note_given(job, path, w->number[i]);
        }
        int n_shown = job->style->print.n_best && w->record[i].line != NULL ? t.n_hypotheses : 1;
        if (job->style->record.format == RECORD_PLAIN)
            print_translation(out->file, &job->style->print, job->model, job->n_lines - job->first_line, &t);
        for (int h = 0; h < n_shown && job->style->record.format != RECORD_PLAIN; h++)
            record_print(out->file, &job->style->record, &w->record[i], t.hypotheses[h].text);
        job->n_lines++;
        note_result(job, path, w->number[i], &t);
    }
    return TFM_OK;
}

static enum tfm_status translate_window(struct translation_job *job, const struct window *w, const char *path,
                                        struct output *out, struct tfm_error *err)
{
    show_progress(job, path, 0, true); /* notes get lines of their own */
    enum tfm_status status = translate_lines(job, w, 0, w->n, path, out, err);
    if (status != TFM_OK)
        return status;
    show_progress(job, path, w->number[w->n - 1], w->is_last);
    return output_flush(out, err);
}

enum tfm_status translate_file(struct translation_job *job, const char *path, struct output *out,
                               struct tfm_error *err)
{
    struct tfm_lines *lines;
    enum tfm_status status = tfm_lines_open(&lines, path, err);
    if (status != TFM_OK)
        return status;
    struct window window, *w = &window;
    if (!window_init(w, job->style->window_lines))
        status = cmd_error(err, TFM_ENOMEM, "no memory for %zu lines", job->style->window_lines);
    if (strcmp(path, "-") == 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !job->style->quiet)
        fprintf(stderr, "%s: type text, a sentence a line; Ctrl-D ends it\n", job->command);
    bool all_utf8 = true;
    while (status == TFM_OK && !w->is_last) {
        status = fill_window(w, lines, &all_utf8, path, job, err);
        struct tfm_error translate_err;
        if (w->n > 0 && translate_window(job, w, path, out, &translate_err) != TFM_OK && status == TFM_OK) {
            status = translate_err.status;
            *err = translate_err;
        }
        clear_window(w);
    }
    show_progress(job, path, 0, true);
    window_release(w);
    tfm_lines_free(lines);
    return status;
}

void translation_report(const struct translation_job *job)
{
    struct tfm_profile profile;
    tfm_translator_profile(&profile, job->translator);
    double seconds = profile.seconds > 0 ? profile.seconds : 1, flop = 0;
    for (int i = 0; i < profile.n_parts; i++)
        flop += profile.parts[i].flop;
    fprintf(stderr, "%s: %ld line%s, %ld word%s in %.2f s on %d thread%s: %.1f lines/s, %.1f words/s",
            job->command, job->n_lines, job->n_lines == 1 ? "" : "s", job->n_words,
            job->n_words == 1 ? "" : "s", profile.seconds, profile.threads, profile.threads == 1 ? "" : "s",
            (double)job->n_lines / seconds, (double)job->n_words / seconds);
    fprintf(stderr,
            ", products of %.1f GFLOP/s; ready after %.3f s; %.1f MiB at most\n%s: ", flop / seconds * 1e-9,
            job->ready, profile.memory / (1024 * 1024), job->command);
    for (int i = 0; i < profile.n_parts; i++)
        fprintf(stderr, "%s%s %.1f%%", i > 0 ? ", " : "", profile.parts[i].name,
                100 * profile.parts[i].seconds / seconds);
    fputc('\n', stderr);
}
