/*
 * plan.c: cuts lines into sentences and sentences into batches. On the sentence's way: tfm_translate plans
 * between spm_encode and search_batch. A plan decides who is translated with whom and when, never what
 * comes out. Its arrays are kept from call to call, and sorting is by counting, so that a plan no larger
 * than an earlier one allocates nothing.
 */
#include "decode/plan.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "text/abbrev.h"
#include "text/utf8.h"

#define BATCH_PIECES 4096 /* source pieces of a batch at most: more rows make no product faster */

enum tfm_status plan_init(struct plan *plan, int max_length, struct tfm_error *err)
{
    *plan = (struct plan){ .max_length = max_length };
    plan->count = mem_alloc(((size_t)max_length + 1) * sizeof(*plan->count), err);
    return plan->count != NULL ? TFM_OK : TFM_ENOMEM;
}

void plan_release(struct plan *plan)
{
    mem_free(plan->sentences);
    mem_free(plan->sorted);
    mem_free(plan->batches);
    mem_free(plan->count);
    *plan = (struct plan){ 0 };
}

enum tfm_status plan_reserve(void *array, size_t *cap, size_t n, size_t element, struct tfm_error *err)
{
    void **block = array;
    if (n <= *cap)
        return TFM_OK;
    size_t new_cap = *cap * 2 > n ? *cap * 2 : n;
    void *grown = mem_grow(*block, *cap, new_cap, element, err);
    if (grown == NULL)
        return TFM_ENOMEM;
    *block = grown;
    *cap = new_cap;
    return TFM_OK;
}

#define RESERVE(plan, array, n, err) \
    plan_reserve(&(plan)->array, &(plan)->array##_cap, (n), sizeof(*(plan)->array), (err))

/* ---- where lines are cut ---- */

enum place {
    INSIDE,
    WORD,
    CLAUSE,
    SENTENCE
}; /* ends before a piece; the greater the better to cut at */

/* Marks that end a sentence or a clause, the wide ones of East Asia, which need no space behind them, last. (A
 * vocabulary may have made some of them narrow, which then need none before a letter of a script without spaces.)
 */
static const char *const sentence_marks[] = { ".", "!", "?", "…", "؟", "۔", "।", "。", "！", "？", "．" };
static const char *const clause_marks[] = { ",", ";", ":", "،", "؛", "–", "—", "，", "；", "：", "、" };
static const char *const closing_marks[] = { "\"", "'", ")", "]", "}", "»", "”", "’", "」", "』", "）" };
enum {
    N_MARKS = 11,
    FULL_STOP = 0,
    FIRST_WIDE_SENTENCE = 7,
    FIRST_WIDE_CLAUSE = 7
};

/* The mark that the n bytes of text end with, or -1. */
static int find_mark(const char *text, size_t n, const char *const *marks)
{
    for (int i = 0; i < N_MARKS; i++) {
        size_t len = strlen(marks[i]);
        if (n >= len && memcmp(text + n - len, marks[i], len) == 0)
            return i;
    }
    return -1;
}

/* Whether the word that a full stop stands behind is an abbreviation: the piece at `at` up to byte n, and
 * those of the same word before it. */
static bool is_abbreviation(const int *pieces, int at, size_t n, const struct spm *spm)
{
    char word[32];
    size_t len = sizeof(word);
    for (bool is_begin = false; !is_begin; n = at > 0 ? strlen(spm_piece(spm, pieces[--at])) : 0) {
        const char *text = spm_piece(spm, pieces[at]);
        if (n > len)
            return false;
        len -= n;
        memcpy(word + len, text, n);
        is_begin = at == 0 || spm_is_word_start(spm, pieces[at]);
    }
    return abbrev_is(word + len, sizeof(word) - len);
}

/* Whether a piece begins with a letter of a script without spaces. */
static bool is_unspaced(const char *piece)
{
    uint32_t cp = 0;
    return utf8_next(piece, strlen(piece), &cp) > 0 && cp >= 0x2e80 && !utf8_is_joined(cp);
}

/* What ends between pieces i - 1 and i. */
static enum place place_before(const int *pieces, int i, const struct spm *spm)
{
    bool word = spm_is_word_start(spm, pieces[i]), can_end = word || is_unspaced(spm_piece(spm, pieces[i]));
    int at = i - 1, mark;
    const char *text = spm_piece(spm, pieces[at]);
    size_t n = strlen(text);
    while (n > 0 && (mark = find_mark(text, n, closing_marks)) >= 0) { /* quotes behind a mark */
        n -= strlen(closing_marks[mark]);
        if (n == 0 && at > 0) {
            text = spm_piece(spm, pieces[--at]);
            n = strlen(text);
        }
    }
    mark = find_mark(text, n, sentence_marks);
    if (mark >= 0 && (can_end || mark >= FIRST_WIDE_SENTENCE))
        return mark == FULL_STOP && is_abbreviation(pieces, at, n - 1, spm) ? INSIDE : SENTENCE;
    mark = find_mark(text, n, clause_marks);
    if (mark >= 0 && (can_end || mark >= FIRST_WIDE_CLAUSE))
        return CLAUSE;
    return word ? WORD : INSIDE;
}

/* How many of the n pieces make the next part of a line: as many whole sentences as it holds; or, with a
 * clause's end late enough, the clauses; or about as many words as each other part will have. */
static int part_length(const int *pieces, int n, int max_length, const struct spm *spm)
{
    if (n <= max_length)
        return n;
    int n_parts = (n - 1) / max_length + 1, even = (n - 1) / n_parts + 1;
    int clause = 0, word = 0;
    for (int i = max_length; i > 0; i--) {
        enum place place = place_before(pieces, i, spm);
        if (place == SENTENCE)
            return i;
        if (place == CLAUSE && clause == 0)
            clause = i;
        if (place == WORD && (word == 0 || i >= even || word > even))
            word = i; /* the last one up to even, or else the first one behind it */
    }
    if (clause > max_length / 4)
        return clause;
    return word > 0 ? word : even; /* even: one endless word */
}

static int line_part(const struct plan *plan, const struct plan_line *line, int at, const struct spm *spm)
{
    return line->is_whole ? line->n_pieces
                          : part_length(line->pieces + at, line->n_pieces - at, plan->max_length, spm);
}

enum tfm_status plan_cut(struct plan *plan, struct plan_line *lines, size_t n, const struct spm *spm,
                         struct tfm_error *err)
{
    plan->n_sentences = 0;
    for (size_t i = 0; i < n; i++) {
        struct plan_line *line = &lines[i];
        line->n_parts = line->is_whole && line->n_pieces == 0;
        for (int at = 0; at < line->n_pieces; line->n_parts++)
            at += line_part(plan, line, at, spm);
        plan->n_sentences += (size_t)line->n_parts;
    }
    TRY(RESERVE(plan, sentences, plan->n_sentences, err));
    struct search_sentence *sentence = plan->sentences;
    for (size_t i = 0; i < n; i++) {
        struct plan_line *line = &lines[i];
        line->parts = sentence;
        for (int part = 0, at = 0; part < line->n_parts; part++, at += sentence++->n_pieces) {
            *sentence = (struct search_sentence){ .pieces = line->n_pieces > 0 ? line->pieces + at : NULL,
                                                  .n_pieces = line_part(plan, line, at, spm),
                                                  .key = rng_key(line->key, (uint64_t)part, 0, 0) };
            if (part == 0) {
                sentence->forced = line->forced;
                sentence->n_forced = line->n_forced;
            }
        }
    }
    return TFM_OK;
}

/* A batch's pieces cost most when they are all in the longest sentences. As many pieces may be forced.
 * Shortlists, which grow no more when they hold the whole vocabulary, cost most when the sentences are as
 * long as each other. Few sentences have many terms: there is room for one that has the most. */
size_t plan_scratch(int max_length, int mini_batch, const struct search_options *options,
                    const struct net *net)
{
    size_t longest = (size_t)(BATCH_PIECES / (max_length + 1) + 1);
    return search_scratch_base(options, net) +
           longest * search_scratch(options, net, max_length, max_length + 1, 0) +
           (size_t)mini_batch * search_scratch(options, net, 0, 0, 0) +
           (size_t)mini_batch * search_list_scratch(options, net, BATCH_PIECES / mini_batch + 1, 0, 0) +
           search_scratch(options, net, max_length, max_length + 1, options->most_term_pieces);
}

/* By which sentences are sorted: that of a language model has only what is forced. */
static int sentence_length(const struct plan *plan, const struct search_sentence *sentence)
{
    int n_forced = sentence->n_forced < plan->max_length ? sentence->n_forced : plan->max_length;
    return sentence->n_pieces > 0 ? sentence->n_pieces : n_forced;
}

/* Longest first, equal ones in input order. */
static void sort_sentences(struct plan *plan)
{
    memset(plan->count, 0, ((size_t)plan->max_length + 1) * sizeof(*plan->count));
    for (size_t i = 0; i < plan->n_sentences; i++)
        plan->count[sentence_length(plan, &plan->sentences[i])]++;
    for (int length = plan->max_length, before = 0; length >= 0; length--) {
        int here = plan->count[length];
        plan->count[length] = before;
        before += here;
    }
    for (size_t i = 0; i < plan->n_sentences; i++)
        plan->sorted[plan->count[sentence_length(plan, &plan->sentences[i])]++] = &plan->sentences[i];
}

/* With a shortlist each sentence has an unembedding of its own, which is read at every step: no more of them than
 * the second cache holds, once there are rows enough to keep the multipliers busy. */
static int listed_sentences(int beam_size)
{
    return beam_size > 1 ? 8 : 16;
}

enum tfm_status plan_batches(struct plan *plan, const struct plan_limits *limits,
                             const struct search_options *options, const struct net *net,
                             struct tfm_error *err)
{
    size_t n = plan->n_sentences, workers = (size_t)limits->n_workers;
    TRY(RESERVE(plan, sorted, n, err));
    TRY(RESERVE(plan, batches, n, err));
    sort_sentences(plan);
    size_t share = (n + workers - 1) / workers; /* no worker shall idle while another has two shares */
    size_t most = share < (size_t)limits->mini_batch ? share : (size_t)limits->mini_batch;
    if (options->shortlist != NULL && most > (size_t)listed_sentences(options->beam_size))
        most = (size_t)listed_sentences(options->beam_size);
    plan->n_batches = 0;
    plan->results = 0;
    for (size_t i = 0; i < n;) {
        struct plan_batch *batch = &plan->batches[plan->n_batches++];
        *batch = (struct plan_batch){ .sentences = &plan->sorted[i] };
        size_t pieces = 0, rows = 0, scratch = search_scratch_base(options, net);
        for (; i < n; i++, batch->n++) {
            int length = plan->sorted[i]->n_pieces, n_forced = plan->sorted[i]->n_forced;
            int n_terms = search_term_pieces(plan->sorted[i]);
            pieces += (size_t)length + 1;
            rows += search_rows(options, plan->sorted[i]);
            scratch += search_scratch(options, net, length, n_forced, n_terms);
            bool full = (size_t)batch->n == most || pieces > BATCH_PIECES || rows > INT_MAX ||
                        scratch > limits->scratch;
            if (full && batch->n > 0)
                break;
            plan->results += search_results(options, length, n_forced, n_terms);
        }
    }
    return TFM_OK;
}
