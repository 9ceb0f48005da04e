/*
 * unknown.c: an unknown piece says only that something stands there, which spm_decode writes as " U+2047 ".
 * What it is can be said where the piece was given: in a forced text, or in a term that the translation had to
 * hold. Else, if so wanted, it is copied from where the model looks (Luong et al. 2015, "Addressing the rare
 * word problem"): if the source piece looked at is unknown too, its characters are taken as they are, joined to
 * what stands beside them; else the whole word, between spaces. result_make calls unknown_replace after
 * spm_decode.
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

/* The term that piece i of a hypothesis belongs to, and which of the term's pieces it is; or NULL. */
static const struct term *find_term(int *at, const struct terms *terms, const int *pieces, int n, int i)
{
    struct terms_state state = { 0 };
    for (int j = 0; j < n && terms != NULL; j++) {
        uint64_t met = state.met;
        state = terms_next(terms, &state, pieces[j], NULL);
        if (state.met == met || j < i)
            continue;
        const struct term *term = terms->list[state.term];
        bool is_whole = j + 1 >= term->n &&
                        memcmp(pieces + j + 1 - term->n, term->pieces, sizeof(int) * (size_t)term->n) == 0;
        int first = j + 1 - (is_whole ? term->n : term->n_bare);
        *at = i - first + (is_whole ? 0 : term->n - term->n_bare);
        return first <= i ? term : NULL;
    }
    return NULL;
}

/* Goes past the mark that `*text` begins with, that of unknown piece i of a hypothesis, and appends what stands
 * there, or the mark where that cannot be said. */
static enum tfm_status add_piece(const char **text, const struct tfm_translator *t, struct worker *worker,
                                 int line_number, const struct search_sentence *part,
                                 const struct search_hypothesis *found, int i)
{
    const struct plan_line *line = &t->lines[line_number];
    struct str *out = &worker->spare;
    const char *given = i < part->n_forced ? t->targets[line_number] : NULL;
    int at = i;
    *text += strlen(mark);
    if (given == NULL) {
        const struct term *term = find_term(&at, part->terms, found->pieces, found->n_pieces, i);
        given = term != NULL ? term->text : NULL;
    }
    if (given != NULL)
        return spm_surface(t->target, given, strlen(given), (size_t)at, 1, out, &worker->err);
    if (!t->options.replace_unk || part->n_pieces == 0)
        return str_add(out, mark, strlen(mark), &worker->err);
    int source = (int)(part->pieces - line->pieces) + alignment_best_piece(part, found, i);
    TRY(add_source(t, worker, t->texts[line_number], line, source));
    if (line->pieces[source] != spm_unk(t->source) && **text != ' ' && **text != '\0')
        return str_add(out, " ", 1, &worker->err);
    return TFM_OK;
}

enum tfm_status unknown_replace(const struct tfm_translator *t, struct worker *worker, size_t from,
                                int line_number, const struct search_sentence *part,
                                const struct search_hypothesis *found)
{
    int unk = spm_unk(t->target);
    const char *begin = worker->text.data + from, *text = begin;
    str_clear(&worker->spare);
    for (int i = 0; i < found->n_pieces; i++) {
        const char *at = found->pieces[i] == unk ? strstr(text, mark) : NULL;
        if (at == NULL)
            continue;
        TRY(str_add(&worker->spare, text, (size_t)(at - text), &worker->err));
        text = at;
        TRY(add_piece(&text, t, worker, line_number, part, found, i));
    }
    if (text == begin)
        return TFM_OK;
    TRY(str_add(&worker->spare, text, strlen(text), &worker->err));
    worker->text.len = from;
    return str_add(&worker->text, worker->spare.data, worker->spare.len, &worker->err);
}
