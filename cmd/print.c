/*
 * print.c: prints translations, each on one line, whatever the model produces:
 *
 *     text                                                     plain
 *     text ||| 0-0 1-1 ||| WordScores= s1 s2 ...               --alignment, --word-scores
 *     id ||| text ||| [0-0 ... |||] [WordScores= ... |||] F0= sum ||| score  --n-best, as Marian does
 *     {"id": 0, "rank": 1, "text": "...", ...}                 --format json
 *
 * Where fields are separated by bars, a text's own run of three or more of them is written with &#124; for
 * each, so that a record can be split without doubt.
 */
#include "print.h"

#include <stdlib.h>
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

/* ---- alignments ---- */

bool print_parse_alignment(struct print_style *style, const char *text)
{
    char *end;
    if (strcmp(text, "hard") == 0 || strcmp(text, "soft") == 0) {
        style->alignment = *text == 'h' ? PRINT_HARD : PRINT_SOFT;
        return true;
    }
    style->alignment = PRINT_THRESHOLD;
    style->threshold = strtof(text, &end);
    return end != text && *end == '\0' && style->threshold >= 0 && style->threshold <= 1;
}

/* Whether source word s is one that the target word with these weights is shown to be aligned with. */
static bool is_aligned(const struct print_style *style, const float *row, int n, int s)
{
    if (style->alignment == PRINT_THRESHOLD)
        return row[s] > style->threshold;
    for (int other = 0; other < n; other++)
        if (row[other] > row[s] || (row[other] == row[s] && other < s))
            return false;
    return row[s] > 0;
}

static void print_soft(FILE *out, const struct tfm_hypothesis *h)
{
    for (int t = 0; t < h->n_target_units; t++)
        for (int s = 0; s < h->n_source_units; s++)
            fprintf(out, "%s%g",
                    s > 0   ? ","
                    : t > 0 ? " "
                            : "",
                    (double)h->alignment[(size_t)t * (size_t)h->n_source_units + (size_t)s]);
}

void print_alignment(FILE *out, const struct print_style *style, const struct tfm_hypothesis *h)
{
    if (style->alignment == PRINT_SOFT) {
        print_soft(out, h);
        return;
    }
    const char *space = "";
    for (int t = 0; t < h->n_target_units; t++) {
        const float *row = h->alignment + (size_t)t * (size_t)h->n_source_units;
        for (int s = 0; s < h->n_source_units; s++) {
            if (!is_aligned(style, row, h->n_source_units, s))
                continue;
            fprintf(out, "%s%d-%d", space, s, t);
            space = " ";
        }
    }
}

static void print_json_alignment(FILE *out, const struct print_style *style, const struct tfm_hypothesis *h)
{
    const char *comma = "";
    fputs(", \"alignment\": [", out);
    for (int t = 0; t < h->n_target_units; t++) {
        const float *row = h->alignment + (size_t)t * (size_t)h->n_source_units;
        if (style->alignment == PRINT_SOFT)
            fputs(t > 0 ? ", [" : "[", out);
        for (int s = 0; s < h->n_source_units; s++) {
            if (style->alignment == PRINT_SOFT) {
                fputs(s > 0 ? ", " : "", out);
                quote_number(out, (double)row[s]);
            } else if (is_aligned(style, row, h->n_source_units, s)) {
                fprintf(out, "%s[%d, %d]", comma, s, t);
                comma = ", ";
            }
        }
        if (style->alignment == PRINT_SOFT)
            putc(']', out);
    }
    putc(']', out);
}

/* ---- records ---- */

static void add_alignment(FILE *out, const struct print_style *style, const struct tfm_hypothesis *h)
{
    if (style->alignment == PRINT_NO_ALIGNMENT)
        return;
    fputs(" ||| ", out);
    print_alignment(out, style, h);
}

static void print_word_scores(FILE *out, const struct tfm_hypothesis *h)
{
    fputs(" ||| WordScores=", out);
    for (int i = 0; i < h->n_pieces; i++)
        fprintf(out, " %.6f", (double)h->piece_scores[i]);
}

static void print_plain(FILE *out, const struct print_style *style, const struct tfm_hypothesis *h)
{
    print_text(out, h->text, style->word_scores || style->alignment != PRINT_NO_ALIGNMENT);
    add_alignment(out, style, h);
    if (style->word_scores)
        print_word_scores(out, h);
    putc('\n', out);
}

static void print_n_best(FILE *out, const struct print_style *style, long id, const struct tfm_hypothesis *h)
{
    fprintf(out, "%ld ||| ", id);
    print_text(out, h->text, true);
    add_alignment(out, style, h);
    if (style->word_scores)
        print_word_scores(out, h);
    fprintf(out, " ||| F0= %.6f ||| %.6f\n", h->score, h->normalized_score);
}

static void print_json(FILE *out, const struct print_style *style, const struct tfm_model *model, long id,
                       int rank, const struct tfm_translation *t)
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
    putc(']', out);
    if (style->alignment != PRINT_NO_ALIGNMENT)
        print_json_alignment(out, style, h);
    fprintf(out, ", \"limited\": %s, \"parts\": %d}\n", t->limited && rank == 0 ? "true" : "false",
            t->n_parts);
}

void print_translation(FILE *out, const struct print_style *style, const struct tfm_model *model, long id,
                       const struct tfm_translation *translation)
{
    int n = style->n_best ? translation->n_hypotheses : 1;
    for (int i = 0; i < n; i++) {
        if (style->format == PRINT_JSON)
            print_json(out, style, model, id, i, translation);
        else if (style->n_best)
            print_n_best(out, style, id, &translation->hypotheses[i]);
        else
            print_plain(out, style, &translation->hypotheses[i]);
    }
}
