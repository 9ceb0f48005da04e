/*
 * predict.c: fills the gaps of a text with an encoder alone, a masked language model (Devlin et al. 2019):
 * for each mask the pieces that are the most probable in its place, with p = softmax(encoder.logits). A tap
 * collects them, so that what is shown is what the model gives whoever looks. Several masks are filled each
 * for itself, with the others hidden.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/limit.h"
#include "base/mem.h"
#include "inspect/observe.h"
#include "inspect/out.h"

#define MAX_TOP_K 1000

struct candidate {
    int id;
    double p;
};

struct gaps {
    const struct tfm_model *model;
    struct ints ids;   /* of the text, with </s> */
    struct ints masks; /* where in it they are */
    int top_k;
    struct candidate *list; /* [masks, top_k], the best first */
};

void tfm_predict_options_init(struct tfm_predict_options *options)
{
    *options = (struct tfm_predict_options){ .top_k = 5, .format = TFM_TEXT };
}

/* ---- predictions ---- */

/* Equal ones in the order of their ids. */
static void insert(struct candidate *list, int n, struct candidate new)
{
    if (!(new.p > list[n - 1].p))
        return;
    int i = n - 1;
    for (; i > 0 && new.p > list[i - 1].p; i--)
        list[i] = list[i - 1];
    list[i] = new;
}

/* The best n of a row of logits, with their probabilities. */
static void choose(struct candidate *list, int n, const real *logits, int vocab)
{
    double best = -HUGE_VAL, sum = 0;
    for (int j = 0; j < vocab; j++)
        best = logits[j] > best ? (double)logits[j] : best;
    for (int k = 0; k < n; k++)
        list[k] = (struct candidate){ 0, -1 };
    for (int j = 0; j < vocab; j++) {
        double p = exp((double)logits[j] - best);
        sum += p;
        insert(list, n, (struct candidate){ j, p });
    }
    for (int k = 0; k < n; k++)
        list[k].p /= sum;
}

static void collect(void *user, const char *name, int layer, int head, const real *x, int rows, int cols,
                    int stride)
{
    struct gaps *gaps = user;
    (void)layer, (void)head, (void)rows;
    if (strcmp(name, "encoder.logits") != 0)
        return;
    for (size_t i = 0; i < gaps->masks.n; i++)
        choose(gaps->list + i * (size_t)gaps->top_k, gaps->top_k,
               x + (size_t)gaps->masks.data[i] * (size_t)stride, cols);
}

static enum tfm_status find_masks(struct gaps *gaps, const char *text, struct tfm_error *err)
{
    struct ints none = { 0 };
    TRY(observe_encode(&gaps->ids, &none, gaps->model, text, NULL, 1, err));
    for (int i = 0; i < (int)gaps->ids.n; i++) {
        if (gaps->ids.data[i] == gaps->model->config.mask_token_id)
            TRY(ints_add(&gaps->masks, &i, 1, err));
    }
    if (gaps->masks.n == 0)
        return err_set(err, TFM_EINVAL,
                       "there is no " MODEL_MASK_PIECE " in \"%.200s\": put one where a piece is missing",
                       text);
    return TFM_OK;
}

static enum tfm_status fill(struct gaps *gaps, const char *text, struct tfm_error *err)
{
    struct tap tap = { collect, gaps };
    struct ints none = { 0 };
    TRY(find_masks(gaps, text, err));
    gaps->list = mem_alloc(gaps->masks.n * (size_t)gaps->top_k * sizeof(*gaps->list), err);
    return gaps->list != NULL ? observe_run(gaps->model, &gaps->ids, &none, &tap, err) : TFM_ENOMEM;
}

/* ---- output ---- */

struct filled {
    struct str text;
    struct ints ids;
};

/* The text with a piece in the place of a mask; the others stay, with a space before. */
static enum tfm_status fill_in(struct filled *filled, const struct gaps *gaps, int mask, int id,
                               struct tfm_error *err)
{
    const struct spm *spm = gaps->model->source;
    int space = spm_piece_id(spm, OBSERVE_SPACE, strlen(OBSERVE_SPACE));
    filled->ids.n = 0;
    for (int i = 0; i < (int)gaps->ids.n; i++) {
        int own = i == mask ? id : gaps->ids.data[i];
        if (i != mask && own == gaps->model->config.mask_token_id && space >= 0)
            TRY(ints_add(&filled->ids, &space, 1, err));
        TRY(ints_add(&filled->ids, &own, 1, err));
    }
    str_clear(&filled->text);
    TRY(str_reserve(&filled->text, 1, err));
    filled->text.data[0] = '\0';
    return spm_decode(spm, filled->ids.data, filled->ids.n, &filled->text, err);
}

static const struct candidate *candidates_of(const struct gaps *gaps, int mask)
{
    return gaps->list + (size_t)mask * (size_t)gaps->top_k;
}

static enum tfm_status write_text(FILE *out, const struct gaps *gaps, struct filled *filled,
                                  struct tfm_error *err)
{
    for (int i = 0; i < (int)gaps->masks.n; i++) {
        const struct candidate *list = candidates_of(gaps, i);
        if (gaps->masks.n > 1)
            fprintf(out, "  mask %d\n", i + 1);
        for (int k = 0; k < gaps->top_k; k++) {
            TRY(fill_in(filled, gaps, gaps->masks.data[i], list[k].id, err));
            fprintf(out, "  %.6f  %s  %s\n", list[k].p, spm_piece(gaps->model->source, list[k].id),
                    filled->text.data);
        }
    }
    return TFM_OK;
}

/* Appends a mask with its predictions to a list. */
static enum tfm_status add_mask(json_t *list, const struct gaps *gaps, int mask, struct filled *filled,
                                struct tfm_error *err)
{
    json_t *predictions = json_array();
    int failed = json_array_append_new(
        list, json_pack("{s:i, s:o}", "place", gaps->masks.data[mask], "predictions", predictions));
    for (int k = 0; k < gaps->top_k && !failed; k++) {
        const struct candidate *c = &candidates_of(gaps, mask)[k];
        TRY(fill_in(filled, gaps, gaps->masks.data[mask], c->id, err));
        failed = json_array_append_new(
            predictions,
            json_pack("{s:o, s:i, s:o, s:o}", "piece", out_string(spm_piece(gaps->model->source, c->id)),
                      "id", c->id, "probability", isfinite(c->p) ? json_real(c->p) : json_null(), "text",
                      out_string(filled->text.data)));
    }
    return failed ? err_set(err, TFM_ENOMEM, "no memory to write predictions") : TFM_OK;
}

static enum tfm_status write_json(FILE *out, const struct gaps *gaps, const char *line, struct filled *filled,
                                  struct tfm_error *err)
{
    json_t *list = json_array(), *root = json_pack("{s:o, s:o}", "text", out_string(line), "masks", list);
    enum tfm_status status =
        root != NULL ? TFM_OK : err_set(err, TFM_ENOMEM, "no memory to write predictions");
    for (int i = 0; i < (int)gaps->masks.n && status == TFM_OK; i++)
        status = add_mask(list, gaps, i, filled, err);
    if (status == TFM_OK) {
        json_dumpf(root, out, JSON_REAL_PRECISION(9)); /* a stream that failed is found at the end */
        putc('\n', out);
    }
    json_decref(root);
    return status;
}

static enum tfm_status write_gaps(FILE *out, const struct gaps *gaps, const char *line,
                                  enum tfm_format format, struct tfm_error *err)
{
    struct filled filled = { .ids = { 0 } };
    enum tfm_status status;
    if (format == TFM_JSON) {
        status = write_json(out, gaps, line, &filled, err);
    } else {
        fprintf(out, "%s\n", line);
        status = write_text(out, gaps, &filled, err);
    }
    str_release(&filled.text);
    ints_release(&filled.ids);
    return status;
}

/* ---- the whole ---- */

static enum tfm_status check(const struct tfm_model *model, const struct tfm_predict_options *o,
                             struct tfm_error *err)
{
    const struct config *c = &model->config;
    if (c->architecture != CONFIG_ENCODER_ONLY)
        return err_set(
            err, TFM_EINVAL,
            "%s: only an encoder alone fills gaps (tfm train --arch encoder); this model's architecture is "
            "%s",
            model->folder, config_choice(c, "architecture"));
    const struct limit limits[] = { { "format", (int)o->format, 0, TFM_SVG },
                                    { "the number of predictions", o->top_k, 1, MAX_TOP_K } };
    TRY(LIMIT_CHECK(limits, err));
    if (o->format != TFM_TEXT && o->format != TFM_JSON)
        return err_set(err, TFM_EINVAL, "predictions are written as text or JSON only");
    return TFM_OK;
}

enum tfm_status tfm_predict(const struct tfm_model *model, const char *text,
                            const struct tfm_predict_options *options, FILE *file, struct tfm_error *err)
{
    assert(text != NULL && file != NULL);
    struct out out;
    TRY(check(model, options, err));
    int vocab = model->config.vocab_size;
    struct gaps gaps = { .model = model, .top_k = options->top_k < vocab ? options->top_k : vocab };
    enum tfm_status status = fill(&gaps, text, err);
    if (status == TFM_OK)
        status = out_begin(&out, file, err);
    if (status == TFM_OK)
        status = out_end(&out, write_gaps(file, &gaps, text, options->format, err), err);
    mem_free(gaps.list);
    ints_release(&gaps.ids);
    ints_release(&gaps.masks);
    return status;
}
