/*
 * state.c: where a training stands, as JSON. Numbers are written with all their digits, so that a sum that is
 * read goes on as if it had never been written. The settings that decide every digit of a training are kept
 * as the user knows them, and compared one by one.
 */
#include "train/state.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"

#define STATE_FORMAT_VERSION 2

void state_set(struct settings *settings, const char *name, const char *format, ...)
{
    assert(settings->n < STATE_MAX_SETTINGS);
    struct setting *setting = &settings->list[settings->n++];
    va_list args;
    va_start(args, format);
    setting->name = name;
    setting->is_late = false;
    int len = vsnprintf(setting->value, sizeof(setting->value), format, args);
    va_end(args);
    assert(len >= 0 && len < (int)sizeof(setting->value));
    (void)len; /* what is cut off would not be compared */
}

static json_t *score_to_json(const struct score *score)
{
    if (!score->has_best)
        return json_object();
    return json_pack("{s:f, s:i}", "best", score->best, "stalled", score->stalled);
}

static json_t *tally_to_json(const struct tally *t)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "pairs", (json_int_t)t->kept, "source_pieces",
                     (json_int_t)t->source_pieces, "target_pieces", (json_int_t)t->target_pieces, "empty",
                     (json_int_t)t->empty, "too_long", (json_int_t)t->too_long, "unequal",
                     (json_int_t)t->unequal);
}

static json_t *settings_to_json(const struct settings *settings)
{
    json_t *object = json_object();
    int failed = object == NULL;
    for (int i = 0; i < settings->n && !failed; i++)
        failed = json_object_set_new(object, settings->list[i].name, json_string(settings->list[i].value));
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/* Under the names of the metrics. */
static int add_scores(json_t *object, const struct score *scores)
{
    int failed = 0;
    for (int m = 0; m < N_METRICS && !failed; m++)
        failed = json_object_set_new(object, train_options_metric((enum metric)m), score_to_json(&scores[m]));
    return failed;
}

/* Value and rows of each, under its name; nothing where there are none. */
static int add_terms(json_t *object, const struct head_terms *terms)
{
    if (terms->n == 0)
        return 0;
    json_t *list = json_object();
    int failed = json_object_set_new(object, "head_losses", list);
    for (int i = 0; i < terms->n && !failed; i++) {
        const struct head_term *term = &terms->list[i];
        failed = json_object_set_new(list, term->name, json_pack("[f, f]", term->sum.value, term->sum.rows));
    }
    return failed;
}

static int add_pretrained(json_t *object, const char *name)
{
    if (*name == '\0')
        return 0;
    json_t *text = json_string(name); /* NULL where it is not UTF-8 */
    return json_object_set_new(object, "pretrained",
                               text != NULL ? text : json_string("(name not in UTF-8)"));
}

enum tfm_status state_write(const struct train_state *s, const struct settings *settings, const char *path,
                            struct tfm_error *err)
{
    /* json_pack takes over the "o" values, also when it fails. */
    json_t *root = json_pack(
        "{s:i, s:I, s:i, s:i, s:i, s:I, s:f, s:i, s:f, s:f, s:b, s:b, s:b, s:f, s:o, s:o}", "format_version",
        STATE_FORMAT_VERSION, "update", (json_int_t)s->update, "epoch", s->epoch, "window", s->window,
        "batch", s->batch, "sentences", (json_int_t)s->epoch_pairs, "target_tokens", s->target_tokens,
        "lanes", s->n_lanes, "loss_sum", s->loss_sum, "loss_tokens", s->loss_tokens, "validation_is_due",
        (int)s->valid_is_due, "has_average", (int)s->has_average, "is_ended", (int)s->is_ended, "seconds",
        s->seconds, "first_pass", tally_to_json(&s->tally), "settings", settings_to_json(settings));
    if (root == NULL || add_scores(root, s->scores) != 0 || add_terms(root, &s->terms) != 0 ||
        add_pretrained(root, s->pretrained) != 0) {
        json_decref(root);
        return err_set(err, TFM_ENOMEM, "no memory to write %s", path);
    }
    enum tfm_status status = json_write(root, path, err);
    json_decref(root);
    return status;
}

static enum tfm_status read_score(struct score *score, const json_t *root, const char *name, const char *path,
                                  struct tfm_error *err)
{
    const json_t *object = json_object_get(root, name);
    *score = (struct score){ .has_best = json_object_get(object, "best") != NULL };
    if (!score->has_best)
        return TFM_OK;
    TRY(json_get_real(object, "best", -HUGE_VAL, HUGE_VAL, &score->best, path, err));
    return json_get_int(object, "stalled", 0, INT_MAX, &score->stalled, path, err);
}

static enum tfm_status get_long(const json_t *object, const char *name, long *value, const char *path,
                                struct tfm_error *err)
{
    double number;
    TRY(json_get_real(object, name, 0, 0x1p53, &number, path, err));
    *value = (long)number;
    return TFM_OK;
}

static enum tfm_status read_tally(struct tally *t, const json_t *root, const char *path,
                                  struct tfm_error *err)
{
    const json_t *object = json_object_get(root, "first_pass");
    TRY(get_long(object, "pairs", &t->kept, path, err));
    TRY(get_long(object, "source_pieces", &t->source_pieces, path, err));
    TRY(get_long(object, "target_pieces", &t->target_pieces, path, err));
    TRY(get_long(object, "empty", &t->empty, path, err));
    TRY(get_long(object, "too_long", &t->too_long, path, err));
    return get_long(object, "unequal", &t->unequal, path, err);
}

static enum tfm_status read_terms(struct head_terms *terms, json_t *root, const char *path,
                                  struct tfm_error *err)
{
    json_t *list = json_object_get(root, "head_losses"), *numbers;
    const char *name;
    terms->n = 0;
    json_object_foreach(list, name, numbers)
    {
        struct head_term *term = &terms->list[terms->n];
        const json_t *value = json_array_get(numbers, 0), *rows = json_array_get(numbers, 1);
        if (terms->n == TFM_MAX_HEAD_LOSSES || !json_is_number(value) || !json_is_number(rows))
            return err_set(err, TFM_EFORMAT,
                           "%s: head_losses: %s: found no pair of numbers, or too many of them", path, name);
        snprintf(term->name, sizeof(term->name), "%s", name);
        term->sum = (struct head_sum){ json_number_value(value), json_number_value(rows) };
        terms->n++;
    }
    return TFM_OK;
}

static enum tfm_status check_settings(const json_t *root, const struct settings *settings, const char *path,
                                      struct tfm_error *err)
{
    const json_t *object = json_object_get(root, "settings");
    for (int i = 0; i < settings->n; i++) {
        const struct setting *setting = &settings->list[i];
        const char *before;
        if (setting->is_late && json_object_get(object, setting->name) == NULL)
            continue;
        TRY(json_get_string(object, setting->name, &before, path, err));
        if (strcmp(before, setting->value) != 0)
            return err_set(
                err, TFM_EINVAL,
                "the training in this folder began with %s %s, and now it is %s: it goes on only as it "
                "began; give the same again or name another --model (%s)",
                setting->name, before, setting->value, path);
    }
    return TFM_OK;
}

static enum tfm_status read_fields(struct train_state *s, const struct settings *settings, json_t *root,
                                   const char *path, struct tfm_error *err)
{
    int version, update;
    TRY(json_get_int(root, "format_version", 1, INT_MAX, &version, path, err));
    if (version > STATE_FORMAT_VERSION)
        return err_set(err, TFM_EFORMAT, "%s: written by a newer tfm (format version %d, this one reads %d)",
                       path, version, STATE_FORMAT_VERSION);
    if (version < STATE_FORMAT_VERSION)
        return err_set(
            err, TFM_EFORMAT,
            "%s: written by an older tfm (format version %d, this one reads %d), which must go on with "
            "it; or name another --model",
            path, version, STATE_FORMAT_VERSION);
    TRY(check_settings(root, settings, path, err));
    TRY(json_get_int(root, "update", 0, INT_MAX, &update, path, err));
    s->update = update;
    TRY(json_get_int(root, "epoch", 1, INT_MAX, &s->epoch, path, err));
    TRY(json_get_int(root, "window", 0, INT_MAX, &s->window, path, err));
    TRY(get_long(root, "sentences", &s->epoch_pairs, path, err));
    TRY(read_tally(&s->tally, root, path, err));
    TRY(json_get_int(root, "batch", 0, INT_MAX, &s->batch, path, err));
    TRY(json_get_real(root, "target_tokens", 0, HUGE_VAL, &s->target_tokens, path, err));
    TRY(json_get_int(root, "lanes", 1, 1 << 16, &s->n_lanes, path, err));
    TRY(json_get_real(root, "loss_sum", 0, HUGE_VAL, &s->loss_sum, path, err));
    TRY(json_get_real(root, "loss_tokens", 0, HUGE_VAL, &s->loss_tokens, path, err));
    TRY(read_terms(&s->terms, root, path, err));
    const char *pretrained = json_string_value(json_object_get(root, "pretrained"));
    snprintf(s->pretrained, sizeof(s->pretrained), "%s", pretrained != NULL ? pretrained : "");
    TRY(json_get_bool(root, "validation_is_due", &s->valid_is_due, path, err));
    s->has_average =
        json_is_true(json_object_get(root, "has_average"));        /* an earlier tfm did not write it ... */
    s->is_ended = json_is_true(json_object_get(root, "is_ended")); /* ... nor this */
    TRY(json_get_real(root, "seconds", 0, HUGE_VAL, &s->seconds, path, err));
    for (int m = 0; m < N_METRICS; m++)
        TRY(read_score(&s->scores[m], root, train_options_metric((enum metric)m), path, err));
    return TFM_OK;
}

enum tfm_status state_read(struct train_state *state, const struct settings *settings, const char *path,
                           struct tfm_error *err)
{
    json_t *root;
    TRY(json_read(&root, path, err));
    enum tfm_status status = read_fields(state, settings, root, path, err);
    json_decref(root);
    return status;
}
