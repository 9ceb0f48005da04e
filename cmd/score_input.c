/*
 * score_input.c: reads pairs of lines, and says with file and line where two files do not fit together.
 */
#include "score_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum tfm_status score_input_open(struct score_input *input, enum score_kind kind, const char *source_path,
                                 const char *target_path, bool is_n_best, struct tfm_error *err)
{
    *input = (struct score_input){
        .source_path = source_path, .target_path = target_path, .kind = kind, .is_n_best = is_n_best, .id = -1
    };
    enum tfm_status status = tfm_lines_open(&input->target, target_path, err);
    if (status == TFM_OK && source_path != NULL)
        status = tfm_lines_open(&input->source, source_path, err);
    if (status != TFM_OK)
        score_input_close(input);
    return status;
}

void score_input_close(struct score_input *input)
{
    tfm_lines_free(input->source);
    tfm_lines_free(input->target);
    free(input->text);
    *input = (struct score_input){ 0 };
}

void score_pair_release(struct score_pair *pair)
{
    free(pair->source);
    free(pair->target);
    free(pair->line);
    *pair = (struct score_pair){ 0 };
}

static enum tfm_status copy(char **to, const char *text, size_t len, struct tfm_error *err)
{
    *to = strndup(text, len);
    return *to != NULL ? TFM_OK : cmd_error(err, TFM_ENOMEM, "no memory for a line");
}

/* ---- two files, or one ---- */

static enum tfm_status split_tabs(const struct score_input *input, struct score_pair *pair, const char *text,
                                  struct tfm_error *err)
{
    const char *tab = strchr(text, '\t');
    if (tab == NULL || strchr(tab + 1, '\t') != NULL)
        return cmd_error(
            err, TFM_EFORMAT, "%s: line %ld: found %s, expected source and target with one between",
            cmd_shown_path(input->target_path), pair->number, tab == NULL ? "no tab" : "several tabs");
    enum tfm_status status = copy(&pair->source, text, (size_t)(tab - text), err);
    return status == TFM_OK ? copy(&pair->target, tab + 1, strlen(tab + 1), err) : status;
}

static enum tfm_status count_rest(struct tfm_lines *lines, long *n, struct tfm_error *err)
{
    struct tfm_line line;
    enum tfm_status status;
    bool more = true;
    while ((status = tfm_lines_next(lines, &line, &more, err)) == TFM_OK && more)
        *n = line.number;
    return status;
}

static enum tfm_status next_of_two(struct score_input *input, struct score_pair *pair, bool *more,
                                   struct tfm_error *err)
{
    struct tfm_line source, target;
    bool more_source, more_target;
    enum tfm_status status = tfm_lines_next(input->source, &source, &more_source, err);
    if (status == TFM_OK)
        status = tfm_lines_next(input->target, &target, &more_target, err);
    if (status != TFM_OK)
        return status;
    *more = more_source && more_target;
    if (more_source != more_target) {
        long n = more_source ? source.number : target.number, fewer = n - 1;
        if ((status = count_rest(more_source ? input->source : input->target, &n, err)) != TFM_OK)
            return status;
        return cmd_error(err, TFM_EFORMAT, "%s has %ld lines and %s has %ld; they must have as many",
                         cmd_shown_path(input->source_path), more_source ? n : fewer,
                         cmd_shown_path(input->target_path), more_target ? n : fewer);
    }
    if (!*more)
        return TFM_OK;
    pair->number = target.number;
    status = copy(&pair->source, source.text, strlen(source.text), err);
    return status == TFM_OK ? copy(&pair->target, target.text, strlen(target.text), err) : status;
}

/* ---- lists of hypotheses ---- */

/* Makes the bars of a text that --n-best wrote with &#124; bars again: runs of three or more. */
static void restore_bars(char *text)
{
    static const char escaped[] = "&#124;";
    size_t len = sizeof(escaped) - 1;
    char *to = text;
    while (*text != '\0') {
        size_t n = 0;
        while (strncmp(text + n * len, escaped, len) == 0)
            n++;
        if (n >= 3) {
            memset(to, '|', n);
            to += n;
            text += n * len;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
}

/* Goes on in the source to line number `id`. */
static enum tfm_status find_source(struct score_input *input, long id, long number, struct tfm_error *err)
{
    if (id < input->id)
        return cmd_error(err, TFM_EFORMAT, "%s: line %ld: the id %ld comes behind %ld; ids must not fall",
                         cmd_shown_path(input->target_path), number, id, input->id);
    while (input->id < id) {
        struct tfm_line line;
        bool more;
        enum tfm_status status = tfm_lines_next(input->source, &line, &more, err);
        if (status != TFM_OK)
            return status;
        if (!more)
            return cmd_error(err, TFM_EFORMAT, "%s: line %ld: the id is %ld and %s has only %ld lines",
                             cmd_shown_path(input->target_path), number, id,
                             cmd_shown_path(input->source_path), input->id + 1);
        if (++input->id < id)
            continue;
        free(input->text);
        if ((status = copy(&input->text, line.text, strlen(line.text), err)) != TFM_OK)
            return status;
    }
    return TFM_OK;
}

static enum tfm_status split_n_best(struct score_input *input, struct score_pair *pair, const char *text,
                                    struct tfm_error *err)
{
    char *end;
    errno = 0;
    long id = strtol(text, &end, 10);
    const char *start = strncmp(end, " ||| ", 5) == 0 ? end + 5 : NULL;
    const char *stop = start != NULL ? strstr(start, " ||| ") : NULL;
    if (start != NULL && strncmp(start - 1, " ||| ", 5) == 0) /* an empty text between two separators */
        stop = start - 1;
    if (end == text || id < 0 || errno != 0 || stop == NULL)
        return cmd_error(err, TFM_EFORMAT, "%s: line %ld: expected 'id ||| text ||| features ||| score'",
                         cmd_shown_path(input->target_path), pair->number);
    enum tfm_status status = TFM_OK;
    if (input->source != NULL)
        status = find_source(input, id, pair->number, err);
    if (status == TFM_OK && input->source != NULL)
        status = copy(&pair->source, input->text, strlen(input->text), err);
    if (status == TFM_OK)
        status = copy(&pair->target, start, stop > start ? (size_t)(stop - start) : 0, err);
    if (status == TFM_OK)
        restore_bars(pair->target);
    return status == TFM_OK ? copy(&pair->line, text, strlen(text), err) : status;
}

enum tfm_status score_input_next(struct score_input *input, struct score_pair *pair, bool *more,
                                 struct tfm_error *err)
{
    struct tfm_line line;
    *pair = (struct score_pair){ 0 };
    enum tfm_status status;
    if (input->kind == SCORE_FILES && !input->is_n_best) {
        status = next_of_two(input, pair, more, err);
    } else {
        status = tfm_lines_next(input->target, &line, more, err);
        if (status == TFM_OK && *more) {
            pair->number = line.number;
            status = input->is_n_best            ? split_n_best(input, pair, line.text, err)
                     : input->kind == SCORE_TABS ? split_tabs(input, pair, line.text, err)
                                                 : copy(&pair->target, line.text, strlen(line.text), err);
        }
    }
    if (status != TFM_OK)
        score_pair_release(pair);
    return status;
}
