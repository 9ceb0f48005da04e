/*
 * candidates.c: what may follow a hypothesis. On the sentence's way: scores_find calls candidates_sum and
 * candidates_take with the logits of each live hypothesis, as they come, part by part; search_batch hands
 * what is found to beam_step. For a token i of logit x_i
 *     x_i <- x_i / c if x_i > 0, else x_i * c     where i stands in it already (Keskar et al. 2019)
 *     score_i = x_i - log sum_j exp(x_j)
 * and then some tokens are forbidden, which leaves the scores of the others as they are: the unknown piece,
 * the start symbol, </s> before the least length, and each that would end an n-gram for the second time
 * (Paulus et al. 2018). A forced token, and one that goes on with a term that the translation has to hold, is
 * beyond all that: its score is the one that the model gives it. With a shortlist all this is about the
 * tokens on it: i is a place in the list until the end.
 */
#include "decode/candidates.h"

#include <math.h>
#include <string.h>

#include "model/shortlist.h"

#define BLOCK 128 /* logits that are looked at together when the best are sought */

bool candidates_need_all(const struct candidate_options *options)
{
    return options->draw.kind != TFM_SAMPLING_NONE;
}

bool candidates_need_history(const struct candidate_options *options)
{
    return options->no_repeat_ngram_size > 0 || options->repetition_penalty != 1;
}

size_t candidates_bytes(const struct candidate_options *options, int v)
{
    return candidates_need_all(options) ? draw_bytes(v) + sizeof(int) * (size_t)options->n + 64 : 0;
}

/* ---- the best ---- */

/* Whether any of a block is above the threshold: without a branch, so that a compiler makes vectors of it. */
static bool any_above(const real *x, real threshold)
{
    int any = 0;
    for (int i = 0; i < BLOCK; i++)
        any |= x[i] > threshold;
    return any;
}

/* The k best of those in `best` and of a part, best first, the earlier of equal ones first. Where fewer than
 * k are above -inf, the rest stay tokens of -1. Blocks without any that is good enough are passed over. */
static void take_best(struct beam_candidate *best, int k, const struct candidate_part *part)
{
    const real *x = part->logits;
    for (int start = 0, n = part->n; start < n; start += BLOCK) {
        int end = n - start < BLOCK ? n : start + BLOCK;
        if (end - start == BLOCK && !any_above(x + start, best[k - 1].score))
            continue;
        for (int i = start; i < end; i++) {
            if (!(x[i] > best[k - 1].score))
                continue;
            int at = k - 1;
            for (; at > 0 && x[i] > best[at - 1].score; at--)
                best[at] = best[at - 1];
            best[at] = (struct beam_candidate){ .token = part->from + i, .score = (float)x[i] };
        }
    }
}

/* ---- repetitions ---- */

static bool is_among(int token, const int *tokens, int n)
{
    for (int i = 0; i < n; i++)
        if (tokens[i] == token)
            return true;
    return false;
}

/* The logit of a token, or NULL where the part has none. */
static real *logit_of(const struct candidate_part *part, const struct candidate_row *row, int token)
{
    int place = row->tokens != NULL ? shortlist_find(row->tokens, row->n_tokens, token) : token;
    place -= part->from;
    return place >= 0 && place < part->n ? &part->logits[place] : NULL;
}

static struct beam_candidate candidate_at(const struct candidate_part *part, const real *logit)
{
    return (struct beam_candidate){ part->from + (int)(logit - part->logits), (float)*logit };
}

static void forbid_token(const struct candidate_part *part, const struct candidate_row *row, int token)
{
    real *logit = logit_of(part, row, token);
    if (logit != NULL)
        *logit = -INFINITY;
}

static void punish_repetitions(const struct candidate_part *part, const struct candidate_row *row,
                               real penalty)
{
    for (int i = 0; i < row->step; i++) {
        real *x = logit_of(part, row, row->history[i]);
        if (x == NULL || is_among(row->history[i], row->history, i)) /* once, however often it stands there */
            continue;
        *x = *x > 0 ? *x / penalty : *x * penalty;
    }
}

/* Forbids each token that followed earlier what the hypothesis ends with, the last size - 1 pieces. */
static void forbid_ngrams(const struct candidate_part *part, const struct candidate_row *row, int size)
{
    const int *history = row->history;
    int n = row->step, tail = size - 1;
    for (int i = 0; i + tail < n; i++)
        if (memcmp(history + i, history + n - tail, sizeof(int) * (size_t)tail) == 0)
            forbid_token(part, row, history[i + tail]);
}

/* ---- all together ---- */

static void forbid(const struct candidate_part *part, const struct candidate_row *row,
                   const struct candidate_options *options, const struct config *config)
{
    if (!options->allow_unk && config->unk_token_id >= 0)
        forbid_token(part, row, config->unk_token_id);
    if (config->decoder_start_token_id != config->eos_token_id)
        forbid_token(part, row, config->decoder_start_token_id);
    if (row->step < options->min_length || row->is_unfinished)
        forbid_token(part, row, config->eos_token_id);
    if (options->no_repeat_ngram_size > 0)
        forbid_ngrams(part, row, options->no_repeat_ngram_size);
    for (int i = 0; row->barred != NULL && i < part->n; i++)
        if (row->barred[row->tokens != NULL ? row->tokens[part->from + i] : part->from + i])
            part->logits[i] = -INFINITY;
}

static void draw(const struct candidate_part *part, const struct candidate_row *row,
                 const struct candidate_options *options, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    int *tokens = ARENA_TAKE(run->arena, int, row->n_draws);
    draw_tokens(tokens, row->n_draws, part->logits, part->n, &options->draw, row->key, run);
    for (int i = 0; i < row->n_draws; i++)
        if (tokens[i] >= 0)
            row->found[i] = candidate_at(part, part->logits + tokens[i]);
    arena_reset(run->arena, mark);
}

void candidates_start(const struct candidate_row *row)
{
    for (int i = 0; i < row->width; i++)
        row->found[i] = (struct beam_candidate){ .token = -1, .score = -INFINITY };
}

real candidates_sum(const struct candidate_part *part, const struct candidate_row *row,
                    const struct candidate_options *options, const struct run *run)
{
    if (options->repetition_penalty != 1)
        punish_repetitions(part, row, (real)options->repetition_penalty);
    return run->kern->logsumexp(part->logits, part->n);
}

/* The candidates that terms ask for, before anything is forbidden: behind the best. */
static void take_wanted(const struct candidate_part *part, const struct candidate_row *row)
{
    for (int i = 0; i < row->n_wanted; i++) {
        const real *logit = logit_of(part, row, row->wanted[i]); /* search.c lists what terms hold */
        if (logit != NULL)
            row->found[row->n + i] = candidate_at(part, logit);
    }
}

void candidates_take(const struct candidate_part *part, const struct candidate_row *row,
                     const struct candidate_options *options, const struct config *config,
                     const struct run *run)
{
    if (row->forced >= 0) {
        const real *logit = logit_of(part, row, row->forced); /* search.c lists what is forced */
        if (logit != NULL)
            row->found[0] = candidate_at(part, logit);
        return;
    }
    take_wanted(part, row);
    forbid(part, row, options, config);
    if (candidates_need_all(options))
        draw(part, row, options, run);
    else if (!row->is_late)
        take_best(row->found, row->n, part);
}

/* Those wanted that are not among the best move up behind these. */
static void add_wanted(const struct candidate_row *row)
{
    struct beam_candidate *found = row->found;
    int n_best = 0;
    while (n_best < row->n && found[n_best].token >= 0)
        n_best++;
    int n = n_best;
    for (int i = 0; i < row->n_wanted; i++) {
        struct beam_candidate wanted = found[row->n + i];
        bool is_there = false;
        for (int j = 0; j < n_best; j++)
            is_there |= found[j].token == wanted.token;
        if (!is_there)
            found[n++] = wanted;
    }
    for (; n < row->n + row->n_wanted; n++)
        found[n].token = -1;
}

void candidates_end(const struct candidate_row *row, real sum)
{
    add_wanted(row);
    for (int i = 0; i < row->width && row->found[i].token >= 0; i++) {
        struct beam_candidate *found = &row->found[i];
        float score = found->score - (float)sum;
        if (isnan(score)) { /* a broken model: an infinite logit */
            found->token = -1;
            continue;
        }
        found->score = score < 0 ? score : 0; /* not above 0 by rounding: beam.c relies on it */
        if (row->tokens != NULL)
            found->token = row->tokens[found->token];
    }
}
