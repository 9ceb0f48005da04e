/*
 * candidates.c: what may follow a hypothesis. On the sentence's way: search_batch calls candidates_sum and
 * candidates_find with the logits of each live hypothesis and hands what is found to beam_step. For a token i
 * of logit x_i
 *     x_i <- x_i / c if x_i > 0, else x_i * c     where i stands in it already (Keskar et al. 2019)
 *     score_i = x_i - log sum_j exp(x_j)
 * and then some tokens are forbidden, which leaves the scores of the others as they are: the unknown piece,
 * the start symbol, </s> before the least length, and each that would end an n-gram for the second time
 * (Paulus et al. 2018). A forced token, and one that goes on with a term that the translation has to hold, is
 * beyond all that: its score is the one that the model gives it. With a shortlist all this is about the tokens on it: i is a place in the list until the end.
 */
#include "decode/candidates.h"

#include <math.h>
#include <string.h>

#include "model/shortlist.h"

#define BLOCK 128 /* logits that are looked at together when the best are sought */

bool candidates_need_history(const struct candidate_options *options)
{
    return options->no_repeat_ngram_size > 0 || options->repetition_penalty != 1;
}

size_t candidates_bytes(const struct candidate_options *options, int v)
{
    return options->draw.kind != TFM_SAMPLING_NONE ? draw_bytes(v) + sizeof(int) * (size_t)options->n + 64
                                                   : 0;
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

/* The k best of x [n], best first, the earlier of equal ones first, into `best`; filled up with tokens of
 * -1 where there are not as many numbers above -inf. Blocks without any that is good enough are passed
 * over. */
static void take_best(struct beam_candidate *best, int k, const real *x, int n)
{
    for (int start = 0; start < n; start += BLOCK) {
        int end = n - start < BLOCK ? n : start + BLOCK;
        if (end - start == BLOCK && !any_above(x + start, best[k - 1].score))
            continue;
        for (int i = start; i < end; i++) {
            if (!(x[i] > best[k - 1].score))
                continue;
            int at = k - 1;
            for (; at > 0 && x[i] > best[at - 1].score; at--)
                best[at] = best[at - 1];
            best[at] = (struct beam_candidate){ .token = i, .score = (float)x[i] };
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

/* Where the logit of a token is, or -1. */
static int place_of(const struct candidate_row *row, int token)
{
    return row->tokens != NULL ? shortlist_find(row->tokens, row->n_tokens, token) : token;
}

static void forbid_token(real *logits, const struct candidate_row *row, int token)
{
    int place = place_of(row, token);
    if (place >= 0)
        logits[place] = -INFINITY;
}

static void punish_repetitions(real *logits, const struct candidate_row *row, real penalty)
{
    for (int i = 0; i < row->step; i++) {
        int place = place_of(row, row->history[i]);
        if (place < 0 || is_among(row->history[i], row->history, i)) /* once, however often it stands there */
            continue;
        real *x = &logits[place];
        *x = *x > 0 ? *x / penalty : *x * penalty;
    }
}

/* Forbids each token that followed earlier what the hypothesis ends with, the last size - 1 pieces. */
static void forbid_ngrams(real *logits, const struct candidate_row *row, int size)
{
    const int *history = row->history;
    int n = row->step, tail = size - 1;
    for (int i = 0; i + tail < n; i++)
        if (memcmp(history + i, history + n - tail, sizeof(int) * (size_t)tail) == 0)
            forbid_token(logits, row, history[i + tail]);
}

/* ---- all together ---- */

static int count_tokens(const struct candidate_row *row, const struct config *config)
{
    return row->tokens != NULL ? row->n_tokens : config->vocab_size;
}

static void forbid(real *logits, const struct candidate_row *row, const struct candidate_options *options,
                   const struct config *config)
{
    if (!options->allow_unk && config->unk_token_id >= 0)
        forbid_token(logits, row, config->unk_token_id);
    if (config->decoder_start_token_id != config->eos_token_id)
        forbid_token(logits, row, config->decoder_start_token_id);
    if (row->step < options->min_length || row->is_unfinished)
        forbid_token(logits, row, config->eos_token_id);
    if (options->no_repeat_ngram_size > 0)
        forbid_ngrams(logits, row, options->no_repeat_ngram_size);
    for (int i = 0, v = count_tokens(row, config); row->barred != NULL && i < v; i++)
        if (row->barred[row->tokens != NULL ? row->tokens[i] : i])
            logits[i] = -INFINITY;
}

static void draw(struct beam_candidate *candidates, const real *logits, const struct candidate_row *row,
                 const struct candidate_options *options, int v, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    int *tokens = ARENA_TAKE(run->arena, int, row->n_draws);
    draw_tokens(tokens, row->n_draws, logits, v, &options->draw, row->key, run);
    for (int i = 0; i < row->n_draws; i++)
        if (tokens[i] >= 0)
            candidates[i] = (struct beam_candidate){ tokens[i], (float)logits[tokens[i]] };
    arena_reset(run->arena, mark);
}

real candidates_sum(real *logits, const struct candidate_row *row, const struct candidate_options *options,
                    const struct config *config, const struct run *run)
{
    if (options->repetition_penalty != 1)
        punish_repetitions(logits, row, (real)options->repetition_penalty);
    return run->kern->logsumexp(logits, count_tokens(row, config));
}

/* The candidates that terms ask for, as places: into `wanted`, before anything is forbidden. */
static void take_wanted(struct beam_candidate *wanted, const real *logits, const struct candidate_row *row)
{
    for (int i = 0; i < row->n_wanted; i++) {
        int place = place_of(row, row->wanted[i]); /* search.c lists what terms hold */
        wanted[i] = (struct beam_candidate){ place, (float)logits[place] };
    }
}

/* Adds those of them that are not among the best, behind these. */
static void add_wanted(struct beam_candidate *candidates, const struct beam_candidate *wanted, int n_wanted)
{
    int n_best = 0;
    while (candidates[n_best].token >= 0)
        n_best++;
    for (int i = 0, n = n_best; i < n_wanted; i++) {
        bool is_there = false;
        for (int j = 0; j < n_best; j++)
            is_there |= candidates[j].token == wanted[i].token;
        if (!is_there)
            candidates[n++] = wanted[i];
    }
}

void candidates_find(const struct candidate_row *row, real *logits, real sum,
                     const struct candidate_options *options, const struct config *config,
                     const struct run *run)
{
    struct beam_candidate *candidates = row->found, wanted[2 * TERMS_PIECES];
    int v = count_tokens(row, config);
    for (int i = 0; i < row->width; i++)
        candidates[i] = (struct beam_candidate){ .token = -1, .score = -INFINITY };
    if (row->forced >= 0) {
        int place = place_of(row, row->forced); /* search.c lists what is forced */
        candidates[0] = (struct beam_candidate){ place, (float)logits[place] };
    } else {
        take_wanted(wanted, logits, row);
        forbid(logits, row, options, config);
        if (options->draw.kind != TFM_SAMPLING_NONE)
            draw(candidates, logits, row, options, v, run);
        else if (!row->is_late)
            take_best(candidates, row->n, logits, v);
        if (row->n_wanted > 0)
            add_wanted(candidates, wanted, row->n_wanted);
    }
    for (int i = 0; i < row->width && candidates[i].token >= 0; i++) {
        float score = candidates[i].score - (float)sum;
        if (isnan(score)) /* a broken model: an infinite logit */
            candidates[i].token = -1;
        else
            candidates[i].score = score < 0 ? score : 0; /* not above 0 by rounding: beam.c relies on it */
        if (row->tokens != NULL && candidates[i].token >= 0)
            candidates[i].token = row->tokens[candidates[i].token];
    }
}
