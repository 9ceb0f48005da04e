/*
 * alignment.c: makes alignments out of cross-attention, after the search: result_make calls alignment_make
 * for each hypothesis where the caller asked for alignments. With a [T, S] the attention of a part's pieces,
 * </s> in its last column, u(i) the unit (word or piece) of piece i and |t| the pieces of unit t,
 *     A[t, s] = 1/|t| sum_{i: u(i)=t} sum_{j: u(j)=s} a[i, j] / sum_{j < S-1} a[i, j].
 * The parts of a long line know nothing of each other: their alignments lie along the diagonal.
 */
#include "decode/alignment.h"

#include <string.h>

/* What piece i of n is: the number of its unit, counted on from `unit`, that of the piece before. A part of a
 * source may go on with a word of the part before. */
static int next_unit(const struct tfm_translator *t, const struct spm *spm, int piece, int unit,
                     bool is_first)
{
    bool starts = t->options.alignment == TFM_ALIGN_PIECES || is_first || spm_is_word_start(spm, piece);
    return unit + starts;
}

static int n_without_end(const struct tfm_translator *t, const struct search_hypothesis *found)
{
    int n = found->n_pieces;
    return n - (n > 0 && found->pieces[n - 1] == t->net->config->eos_token_id);
}

/* Units of both sides of all parts. */
static void count_units(struct tfm_hypothesis *out, const struct tfm_translator *t,
                        const struct plan_line *line, int rank)
{
    int source = -1, target = -1;
    for (int p = 0; p < line->n_parts; p++) {
        const struct search_sentence *part = &line->parts[p];
        const struct search_hypothesis *found = &part->hypotheses[rank];
        for (int j = 0; j < part->n_pieces; j++)
            source = next_unit(t, t->source, part->pieces[j], source, source < 0);
        for (int i = 0, n = n_without_end(t, found); i < n; i++)
            target = next_unit(t, t->target, found->pieces[i], target, i == 0);
    }
    out->n_source_units = source + 1;
    out->n_target_units = target + 1;
}

/* Adds the attention row of one target piece to the row of its unit. */
static void add_row(float *row, const struct tfm_translator *t, const struct search_sentence *part,
                    const float *attention, int source_unit)
{
    float sum = 0;
    for (int j = 0; j < part->n_pieces; j++)
        sum += attention[j];
    for (int j = 0; j < part->n_pieces; j++) {
        source_unit = next_unit(t, t->source, part->pieces[j], source_unit, source_unit < 0);
        if (sum > 0)
            row[source_unit] += attention[j] / sum;
    }
}

static void add_part(float *weights, const struct tfm_translator *t, const struct search_sentence *part,
                     const struct search_hypothesis *found, int n_source_units, int *source_unit,
                     int *target_unit)
{
    int width = part->n_pieces + 1, n = n_without_end(t, found), n_here = 0;
    for (int i = 0; i < n; i++) {
        int unit = next_unit(t, t->target, found->pieces[i], *target_unit, i == 0);
        n_here = unit == *target_unit ? n_here + 1 : 1;
        *target_unit = unit;
        float *row = weights + (size_t)unit * (size_t)n_source_units;
        add_row(row, t, part, found->attention + (size_t)i * (size_t)width, *source_unit);
        bool is_last = i + 1 == n || next_unit(t, t->target, found->pieces[i + 1], unit, false) != unit;
        for (int s = 0; s < n_source_units && is_last && n_here > 1; s++)
            row[s] /= (float)n_here;
    }
    for (int j = 0; j < part->n_pieces; j++)
        *source_unit = next_unit(t, t->source, part->pieces[j], *source_unit, *source_unit < 0);
}

bool alignment_make(struct tfm_hypothesis *out, const struct tfm_translator *t, struct worker *worker,
                    const struct plan_line *line, int rank)
{
    count_units(out, t, line, rank);
    size_t size = (size_t)out->n_target_units * (size_t)out->n_source_units * sizeof(float);
    float *weights = worker_keep(worker, size);
    if (weights == NULL)
        return false;
    memset(weights, 0, size);
    int source_unit = -1, target_unit = -1;
    for (int p = 0; p < line->n_parts; p++)
        add_part(weights, t, &line->parts[p], &line->parts[p].hypotheses[rank], out->n_source_units,
                 &source_unit, &target_unit);
    out->alignment = weights;
    return true;
}

int alignment_best_piece(const struct search_sentence *part, const struct search_hypothesis *found, int i)
{
    const float *row = found->attention + (size_t)i * ((size_t)part->n_pieces + 1);
    int best = 0;
    for (int j = 1; j < part->n_pieces; j++)
        if (row[j] > row[best])
            best = j;
    return best;
}
