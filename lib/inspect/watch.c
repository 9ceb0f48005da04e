/*
 * watch.c: looks at the attention of a model in training. The trainer calls with the net that was just
 * validated and a sample of validation pairs; the sample gives the numbers (heads.c), and the sentences that
 * the user chose, or the first two of the sample, give pictures (svg.c): a file for each of them and each
 * part of the model. Targets are forced, so that pictures of different updates show the same pieces.
 */
#include "inspect/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "base/mem.h"
#include "inspect/attention.h"
#include "inspect/heads.h"
#include "inspect/observe.h"
#include "inspect/out.h"
#include "inspect/svg.h"

#define N_DRAWN    2  /* pairs of the sample that are drawn where none were chosen */
#define MAX_CHOSEN 50 /* sentences: more is a mistake in the name of the file */

struct chosen {
    char *source, *target; /* a text alone has no target: NULL */
};

struct watch {
    struct chosen list[MAX_CHOSEN];
    int n;
    bool is_text;
    struct tfm_head *heads;
};

/* ---- the file of sentences ---- */

static enum tfm_status add_line(struct watch *w, const struct line_reader *reader, char *line,
                                struct tfm_error *err)
{
    char *tab = w->is_text ? NULL : strchr(line, '\t');
    if (!w->is_text && (tab == NULL || strchr(tab + 1, '\t') != NULL))
        return err_set(err, TFM_EFORMAT,
                       "%s, line %ld: a line to watch is a source sentence, one tab and its target",
                       line_path(reader), line_number(reader));
    if (w->n == MAX_CHOSEN)
        return err_set(err, TFM_EFORMAT,
                       "%s has more than %d lines, each of which would be drawn: choose some",
                       line_path(reader), MAX_CHOSEN);
    struct chosen *chosen = &w->list[w->n++];
    if (tab != NULL) {
        *tab = '\0';
        chosen->target = mem_strdup(tab + 1, err);
    }
    chosen->source = mem_strdup(line, err);
    return chosen->source != NULL && (w->is_text || chosen->target != NULL) ? TFM_OK : TFM_ENOMEM;
}

static enum tfm_status read_file(struct watch *w, const char *path, struct tfm_error *err)
{
    struct line_reader *reader;
    struct str line = { 0 };
    bool more = true;
    TRY(line_open(&reader, path, err));
    enum tfm_status status = TFM_OK;
    while (status == TFM_OK) {
        status = line_read(reader, &line, &more, err);
        if (status != TFM_OK || !more)
            break;
        status = add_line(w, reader, line.len > 0 ? line.data : (char[]){ "" }, err);
    }
    str_release(&line);
    line_free(reader);
    if (status == TFM_OK && w->n == 0)
        status = err_set(err, TFM_EFORMAT, "%s has no line to watch", path);
    return status;
}

enum tfm_status watch_new(struct watch **watch, const char *sentences, bool is_text, struct tfm_error *err)
{
    *watch = NULL;
    struct watch *w = mem_alloc(sizeof(*w), err);
    if (w == NULL)
        return TFM_ENOMEM;
    w->is_text = is_text;
    enum tfm_status status = *sentences != '\0' ? read_file(w, sentences, err) : TFM_OK;
    if (status != TFM_OK) {
        watch_free(w);
        return status;
    }
    *watch = w;
    return TFM_OK;
}

void watch_free(struct watch *w)
{
    if (w == NULL)
        return;
    for (int i = 0; i < w->n; i++) {
        mem_free(w->list[i].source);
        mem_free(w->list[i].target);
    }
    mem_free(w->heads);
    mem_free(w);
}

/* ---- pictures ---- */

/* Atomically, so that a viewer never sees half a picture. */
static enum tfm_status write_picture(const char *path, const struct attention *a, struct tfm_error *err)
{
    struct out out;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return err_set(err, TFM_ENOMEM, "no memory to draw attention");
    enum tfm_status status = out_begin(&out, file, err);
    if (status == TFM_OK)
        status = out_end(&out, svg_write(file, a, err), err);
    if (fclose(file) != 0 && status == TFM_OK)
        status = err_set(err, TFM_ENOMEM, "no memory to draw attention");
    if (status == TFM_OK)
        status = file_write(path, text, size, err);
    free(text);
    return status;
}

static enum tfm_status draw_pair(const struct tfm_model *model, const struct ints *source,
                                 const struct ints *target, const char *folder, int number,
                                 struct tfm_error *err)
{
    enum tfm_status status = TFM_OK;
    struct str path = { 0 };
    for (enum tfm_part part = TFM_ENCODER; part <= TFM_CROSS && status == TFM_OK; part++) {
        const struct config *c = &model->config;
        struct attention a = { .part = part,
                               .n_layers = config_attention_layers(c, part),
                               .n_heads = c->heads };
        if (a.n_layers == 0)
            continue;
        str_clear(&path);
        status = str_printf(&path, err, "%s/%d-%s.svg", folder, number, config_part_name(part));
        if (status == TFM_OK)
            status = attention_collect(&a, model, source, target, err);
        if (status == TFM_OK)
            status = write_picture(path.data, &a, err);
        attention_release(&a);
    }
    str_release(&path);
    return status;
}

static enum tfm_status draw_chosen(const struct watch *w, const struct tfm_model *model, const char *folder,
                                   struct tfm_error *err)
{
    enum tfm_status status = TFM_OK;
    struct ints source = { 0 }, target = { 0 };
    for (int i = 0; i < w->n && status == TFM_OK; i++) {
        source.n = target.n = 0;
        status = observe_encode(&source, &target, model, w->list[i].source, w->list[i].target, 1, err);
        if (status == TFM_OK)
            status = draw_pair(model, &source, &target, folder, i + 1, err);
    }
    ints_release(&source);
    ints_release(&target);
    return status;
}

static enum tfm_status draw(const struct watch *w, const struct tfm_model *model,
                            const struct train_view *view, struct tfm_error *err)
{
    TRY(dir_make(view->folder, err));
    if (w->n > 0)
        return draw_chosen(w, model, view->folder, err);
    for (int i = 0; i < view->n_pairs && i < N_DRAWN; i++)
        TRY(draw_pair(model, &view->pairs[2 * i], &view->pairs[2 * i + 1], view->folder, i + 1, err));
    return TFM_OK;
}

/* ---- the whole ---- */

enum tfm_status watch_view(void *user, const struct train_view *view, const struct tfm_head **heads,
                           int *n_heads, struct tfm_error *err)
{
    struct watch *w = user;
    struct tfm_model *model = mem_alloc(sizeof(*model), err); /* what an observer needs of one */
    if (model == NULL)
        return TFM_ENOMEM;
    model->config = *view->net->config;
    model->net = *view->net;
    model->source = (struct spm *)view->source;
    model->target = (struct spm *)view->target;
    model->kern = view->kern;
    *n_heads = heads_count(&model->config);
    if (w->heads == NULL)
        w->heads = mem_alloc((size_t)*n_heads * sizeof(*w->heads), err);
    enum tfm_status status = w->heads != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK)
        status = heads_measure(w->heads, model, view->pairs, view->n_pairs, view->pool, err);
    if (status == TFM_OK)
        status = draw(w, model, view, err);
    *heads = w->heads;
    mem_free(model);
    return status;
}
