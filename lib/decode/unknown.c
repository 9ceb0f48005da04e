/*
 * unknown.c: an unknown piece says only that something stands there; what it is can be copied from where the
 * model looks (Luong et al. 2015, "Addressing the rare word problem"). result_make calls unknown_replace
 * after spm_decode, which writes each unknown piece as " U+2047 ". If the source piece looked at is unknown
 * too, its characters are taken as they are, joined to what stands beside them; else the whole word, between
 * spaces.
 */
#include "decode/unknown.h"

#include <string.h>

#include "decode/alignment.h"

static const char mark[] = " \xe2\x81\x87 "; /* SentencePiece's text of an unknown piece */

/* Appends what stands in the source at piece `at` of the line. */
static enum tfm_status add_source(const struct tfm_translator *t, struct worker *worker, const char *text,
                                  const struct plan_line *line, int at)
{
    struct str *out = &worker->spare;
    if (line->pieces[at] == spm_unk(t->source))
        return spm_surface(t->source, text, strlen(text), (size_t)at, 1, out, &worker->err);
    int first = at, end = at + 1;
    while (first > 0 && !spm_is_word_start(t->source, line->pieces[first]))
        first--;
    while (end < line->n_pieces && !spm_is_word_start(t->source, line->pieces[end]))
        end++;
    if (out->len > 0 && out->data[out->len - 1] != ' ')
        TRY(str_add(out, " ", 1, &worker->err));
    return spm_surface(t->source, text, strlen(text), (size_t)first, (size_t)(end - first), out,
                       &worker->err);
}

enum tfm_status unknown_replace(const struct tfm_translator *t, struct worker *worker, size_t from,
                                const char *source_text, const struct plan_line *line,
                                const struct search_sentence *part, const struct search_hypothesis *found)
{
    int unk = spm_unk(t->target), before = (int)(part->pieces - line->pieces);
    const char *text = worker->text.data + from;
    bool is_replaced = false;
    str_clear(&worker->spare);
    for (int i = 0; i < found->n_pieces && part->n_pieces > 0; i++) {
        const char *at = found->pieces[i] == unk ? strstr(text, mark) : NULL;
        if (at == NULL)
            continue;
        int source = before + alignment_best_piece(part, found, i);
        TRY(str_add(&worker->spare, text, (size_t)(at - text), &worker->err));
        TRY(add_source(t, worker, source_text, line, source));
        text = at + strlen(mark);
        if (line->pieces[source] != spm_unk(t->source) && *text != ' ' && *text != '\0')
            TRY(str_add(&worker->spare, " ", 1, &worker->err));
        is_replaced = true;
    }
    if (!is_replaced)
        return TFM_OK;
    TRY(str_add(&worker->spare, text, strlen(text), &worker->err));
    worker->text.len = from;
    return str_add(&worker->text, worker->spare.data, worker->spare.len, &worker->err);
}
