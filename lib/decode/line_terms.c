/*
 * line_terms.c: with a glossary, between the first round of a call of tfm_translate and the second: looks for the
 * terms of each line and hands them to the sentences that are searched for it, its parts. A part gets the terms
 * that begin in it; of more than TERMS_PIECES pieces those at the end are left out, and reported as missing.
 */
#include "decode/worker.h"

/* Gives a part of a line the terms that begin in it, as many as may be; returns how many are left out. */
static int keep_terms(const struct tfm_translator *t, struct worker *worker, const struct plan_line *line,
                      struct search_sentence *part, const struct glossary_match *matches, int n)
{
    int begin = (int)(part->pieces - line->pieces), end = begin + part->n_pieces;
    while (n > 0 && matches->first < begin)
        matches++, n--;
    while (n > 0 && matches[n - 1].first >= end)
        n--;
    if (n == 0)
        return 0;
    struct terms *terms = worker_keep(worker, sizeof(*terms));
    const struct term **list = worker_keep(worker, (size_t)n * sizeof(*list));
    struct terms_place *places = worker_keep(worker, (size_t)n * sizeof(*places));
    if (worker->status != TFM_OK)
        return 0;
    *terms = (struct terms){
        .list = list, .places = places, .ends_word = t->glossary->ends_word, .goes_on = t->glossary->goes_on
    };
    for (int i = 0; i < n; i++) {
        const struct term *term = &t->glossary->terms[matches[i].term];
        if (terms->n_pieces + term->n > TERMS_PIECES)
            continue;
        places[terms->n] = (struct terms_place){ matches[i].first - begin,
                                                 (matches[i].end < end ? matches[i].end : end) - begin };
        list[terms->n++] = term;
        terms->n_pieces += term->n;
    }
    part->terms = terms;
    return n - terms->n;
}

void line_terms_find(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    struct plan_line *line = &t->lines[i];
    const struct glossary_match *matches;
    int n;
    if (worker->status != TFM_OK || line->n_parts == 0)
        return;
    worker->status =
        glossary_find(&worker->finds, &matches, &n, t->glossary, t->texts[i], t->source, &worker->err);
    for (int p = 0; p < line->n_parts && worker->status == TFM_OK; p++)
        line->n_terms_left += keep_terms(t, worker, line, &line->parts[p], matches, n);
}
