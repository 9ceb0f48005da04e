/*
 * result.c: the last round of a call of tfm_translate: for each line, from the pieces that the search found
 * to the hypotheses that the caller gets. On the sentence's way: tfm_translate lets the pool run result_make
 * for every line, which calls spm_decode. The parts of a line that was cut are joined again.
 */
#include <math.h>
#include <string.h>

#include "decode/alignment.h"
#include "decode/unknown.h"

static const char *keep_text(struct worker *worker)
{
    char *text = worker_keep(worker, worker->text.len + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, worker->text.len > 0 ? worker->text.data : "", worker->text.len + 1);
    return text;
}

/* Appends the text of what was found for a part of line i. */
static enum tfm_status add_text(const struct tfm_translator *t, struct worker *worker, int i,
                                const struct search_sentence *part, const struct search_hypothesis *found)
{
    size_t from = worker->text.len;
    TRY(spm_decode(t->target, found->pieces, (size_t)found->n_pieces, &worker->text, &worker->err));
    return worker->text.len > from ? unknown_replace(t, worker, from, i, part, found) : TFM_OK;
}

/* Hypothesis `rank` of line i, which was translated as a whole. */
static void finish_hypothesis(const struct tfm_translator *t, struct worker *worker,
                              struct tfm_hypothesis *out, int i, int rank)
{
    const struct plan_line *line = &t->lines[i];
    const struct search_hypothesis *found = &line->parts[0].hypotheses[rank];
    str_clear(&worker->text);
    worker->status = add_text(t, worker, i, &line->parts[0], found);
    if (worker->status != TFM_OK)
        return;
    *out = (struct tfm_hypothesis){ .text = keep_text(worker),
                                    .score = found->score,
                                    .normalized_score = found->normalized_score,
                                    .n_pieces = found->n_pieces,
                                    .pieces = found->pieces,
                                    .piece_scores = found->piece_scores };
    if (t->options.alignment != TFM_ALIGN_NONE)
        alignment_make(out, t, worker, line, rank);
}

/* The one hypothesis of a line in parts: the best of each part, texts joined by spaces, pieces laid end to
 * end. Without parts, of a blank line, it is empty. */
static void join_parts(const struct tfm_translator *t, struct worker *worker, struct tfm_hypothesis *out,
                       int at)
{
    const struct plan_line *line = &t->lines[at];
    size_t n = 0;
    for (int i = 0; i < line->n_parts; i++)
        n += (size_t)line->parts[i].hypotheses[0].n_pieces;
    int *pieces = worker_keep(worker, n * sizeof(*pieces));
    float *scores = pieces != NULL ? worker_keep(worker, n * sizeof(*scores)) : NULL;
    if (scores == NULL)
        return;
    *out = (struct tfm_hypothesis){ .n_pieces = (int)n, .pieces = pieces, .piece_scores = scores };
    str_clear(&worker->text);
    for (int i = 0; i < line->n_parts; i++) {
        const struct search_hypothesis *found = &line->parts[i].hypotheses[0];
        size_t n_found = (size_t)found->n_pieces, len = worker->text.len;
        memcpy(pieces, found->pieces, n_found * sizeof(*pieces));
        memcpy(scores, found->piece_scores, n_found * sizeof(*scores));
        pieces += n_found;
        scores += n_found;
        out->score += found->score;
        if (len > 0)
            worker->status = str_add(&worker->text, " ", 1, &worker->err);
        if (worker->status == TFM_OK)
            worker->status = add_text(t, worker, at, &line->parts[i], found);
        if (worker->status != TFM_OK)
            return;
        if (len > 0 && worker->text.len == len + 1) { /* the part is empty: no space either */
            worker->text.len = len;
            worker->text.data[len] = '\0';
        }
    }
    out->normalized_score = n > 0 ? out->score / pow((double)n, t->options.normalize) : 0;
    out->text = keep_text(worker);
    if (t->options.alignment != TFM_ALIGN_NONE && line->n_parts > 0)
        alignment_make(out, t, worker, line, 0);
}

void result_make(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    const struct plan_line *line = &t->lines[i];
    struct tfm_translation *translation = &t->translations[i];
    *translation = (struct tfm_translation){ .n_parts = line->n_parts, .cropped = line->is_cropped };
    if (worker->status != TFM_OK || line->is_too_long)
        return;
    profile_to(worker->profile, PROFILE_TEXT);
    int n = line->n_parts == 1 ? line->parts[0].n_hypotheses : 1;
    struct tfm_hypothesis *hypotheses = worker_keep(worker, (size_t)n * sizeof(*hypotheses));
    if (hypotheses == NULL)
        return;
    translation->n_hypotheses = n;
    translation->hypotheses = hypotheses;
    translation->n_terms_missing = line->n_terms_left;
    for (int part = 0; part < line->n_parts; part++) {
        translation->limited |= line->parts[part].hypotheses[0].limited;
        translation->n_terms_missing += line->parts[part].hypotheses[0].n_missing;
    }
    if (line->n_parts != 1) {
        join_parts(t, worker, &hypotheses[0], i);
        return;
    }
    for (int h = 0; h < n && worker->status == TFM_OK; h++)
        finish_hypothesis(t, worker, &hypotheses[h], i, h);
}
