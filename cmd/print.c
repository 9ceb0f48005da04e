/*
 * print.c: prints translations, each on one line, whatever the model produces:
 *
 *     text                                                     plain
 *     text ||| WordScores= s1 s2 ...                           --word-scores
 *     id ||| text ||| [WordScores= ... |||] F0= sum ||| score  --n-best, as Marian does
 *     {"id": 0, "rank": 1, "text": "...", ...}                 --format json
 *
 * Where fields are separated by bars, a text's own run of three or more of them is written with &#124; for
 * each, so that a record can be split without doubt.
 */
#include "print.h"

#include <string.h>

#include "quote.h"

/* Prints text on one line. A model with single bytes as pieces can produce line ends; they become spaces. */
static void print_text(FILE *out, const char *text, bool escape_bars)
{
    while (*text != '\0') {
        size_t bars = strspn(text, "|");
        if (bars > 0) {
            for (size_t i = 0; i < bars; i++)
                fputs(escape_bars && bars >= 3 ? "&#124;" : "|", out);
            text += bars;
        } else {
            putc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
            text++;
        }
    }
}

static void print_word_scores(FILE *out, const struct tfm_hypothesis *h)
{
    fputs(" ||| WordScores=", out);
    for (int i = 0; i < h->n_pieces; i++)
        fprintf(out, " %.6f", (double)h->piece_scores[i]);
}

static void print_plain(FILE *out, const struct print_style *style, const struct tfm_hypothesis *h)
{
    print_text(out, h->text, style->word_scores);
    if (style->word_scores)
        print_word_scores(out, h);
    putc('\n', out);
}

static void print_n_best(FILE *out, const struct print_style *style, long id, const struct tfm_hypothesis *h)
{
    fprintf(out, "%ld ||| ", id);
    print_text(out, h->text, true);
    if (style->word_scores)
        print_word_scores(out, h);
    fprintf(out, " ||| F0= %.6f ||| %.6f\n", h->score, h->normalized_score);
}

static void print_json(FILE *out, const struct tfm_model *model, long id, int rank,
                       const struct tfm_translation *t)
{
    const struct tfm_hypothesis *h = &t->hypotheses[rank];
    fprintf(out, "{\"id\": %ld, \"rank\": %d, \"text\": ", id, rank + 1);
    quote_json(out, h->text);
    fputs(", \"score\": ", out);
    quote_number(out, h->score);
    fputs(", \"normalized_score\": ", out);
    quote_number(out, h->normalized_score);
    fputs(", \"pieces\": [", out);
    for (int i = 0; i < h->n_pieces; i++) {
        fputs(i > 0 ? ", " : "", out);
        quote_json(out, tfm_target_piece(model, h->pieces[i]));
    }
    fputs("], \"piece_scores\": [", out);
    for (int i = 0; i < h->n_pieces; i++) {
        fputs(i > 0 ? ", " : "", out);
        quote_number(out, (double)h->piece_scores[i]);
    }
    fprintf(out, "], \"limited\": %s, \"parts\": %d}\n", t->limited && rank == 0 ? "true" : "false",
            t->n_parts);
}

void print_translation(FILE *out, const struct print_style *style, const struct tfm_model *model, long id,
                       const struct tfm_translation *translation)
{
    int n = style->n_best ? translation->n_hypotheses : 1;
    for (int i = 0; i < n; i++) {
        if (style->format == PRINT_JSON)
            print_json(out, model, id, i, translation);
        else if (style->n_best)
            print_n_best(out, style, id, &translation->hypotheses[i]);
        else
            print_plain(out, style, &translation->hypotheses[i]);
    }
}
