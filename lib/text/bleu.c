/*
 * bleu.c: corpus BLEU, for validation. With p_n the share of the hypotheses' n-grams that
 * their references have too (each at most as often), h and r the words of all hypotheses and references,
 *     BLEU = 100 min(1, exp(1 - r / h)) (p_1 p_2 p_3 p_4)^(1/4),
 * where the k-th order without any match counts as 2^-k matches. Papineni et al. 2002, "BLEU: a method for
 * automatic evaluation of machine translation"; smoothing: Chen and Cherry 2014, method 3. Words are those
 * of the NIST script mteval-v13a: four substitutions set off punctuation. They look at pairs of neighbours
 * and only tell ASCII characters apart, so they may run over bytes; a substitution goes from left to right
 * and never sees a character twice.
 */
#include "text/bleu.h"

#include <math.h>
#include <string.h>

#include "text/ngram.h"

enum { ORDER = 4 };

struct scratch { /* of a corpus, reused line after line */
    struct ngrams ngrams;
    struct str text, spare;
    struct str hypothesis_text, reference_text;
    struct ints hypothesis, reference;
};

static void release_scratch(struct scratch *scratch)
{
    ngram_release(&scratch->ngrams);
    str_release(&scratch->text);
    str_release(&scratch->spare);
    str_release(&scratch->hypothesis_text);
    str_release(&scratch->reference_text);
    ints_release(&scratch->hypothesis);
    ints_release(&scratch->reference);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_no_digit(char c)
{
    return !is_digit(c);
}

static bool is_stop(char c)
{
    return c == '.' || c == ',';
}

static bool is_dash(char c)
{
    return c == '-';
}

/* Set off wherever it stands: ASCII punctuation but ' , - . */
static bool is_punctuation(char c)
{
    return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Replaces each `from` by `to`, which is not longer. */
static void replace(struct str *text, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to), len = 0;
    for (size_t i = 0; i < text->len;) {
        if (text->len - i >= n_from && memcmp(text->data + i, from, n_from) == 0) {
            memcpy(text->data + len, to, n_to);
            len += n_to;
            i += n_from;
        } else {
            text->data[len++] = text->data[i++];
        }
    }
    text->len = len;
}

/* Drops the white space at the end. */
static void trim(struct str *text)
{
    size_t end = 0;
    uint32_t cp = 0;
    for (size_t i = 0; i < text->len;) {
        i += (size_t)utf8_next(text->data + i, text->len - i, &cp);
        if (!ngram_is_space(cp))
            end = i;
    }
    text->len = end;
}

/* Replaces `out` by `in` with spaces around all punctuation. */
static enum tfm_status set_off(struct str *out, const struct str *in, struct tfm_error *err)
{
    str_clear(out);
    for (size_t i = 0; i < in->len; i++) {
        const char spaced[] = { ' ', in->data[i], ' ' };
        if (is_punctuation(in->data[i]))
            TRY(str_add(out, spaced, 3, err));
        else
            TRY(str_add(out, in->data + i, 1, err));
    }
    return TFM_OK;
}

/* Replaces `out` by `in` with "ab" as "a b " (or " a b" if `before`) wherever is_a(a) and is_b(b). */
static enum tfm_status split_pairs(struct str *out, const struct str *in, bool (*is_a)(char),
                                   bool (*is_b)(char), bool before, struct tfm_error *err)
{
    str_clear(out);
    for (size_t i = 0; i < in->len; i++) {
        if (i + 1 < in->len && is_a(in->data[i]) && is_b(in->data[i + 1])) {
            const char spaced[] = { ' ', in->data[i], ' ', in->data[i + 1], ' ' };
            TRY(str_add(out, before ? spaced : spaced + 1, 4, err));
            i++;
        } else {
            TRY(str_add(out, in->data + i, 1, err));
        }
    }
    return TFM_OK;
}

/* Replaces `out` by the line with white space between its words. */
static enum tfm_status separate_words(struct scratch *scratch, struct str *out, const char *line,
                                      struct tfm_error *err)
{
    struct str *text = &scratch->text, *spare = &scratch->spare;
    str_clear(text);
    TRY(utf8_repair(text, line, strlen(line), err));
    trim(text);
    replace(text, "<skipped>", "");
    replace(text, "-\n", "");
    replace(text, "\n", " ");
    replace(text, "&quot;", "\"");
    replace(text, "&amp;", "&");
    replace(text, "&lt;", "<");
    replace(text, "&gt;", ">");
    /* A space at either end stands for the neighbour that the first and last character lack. */
    str_clear(spare);
    TRY(str_add(spare, " ", 1, err));
    TRY(str_add(spare, text->len > 0 ? text->data : "", text->len, err));
    TRY(str_add(spare, " ", 1, err));
    TRY(set_off(text, spare, err));
    TRY(split_pairs(spare, text, is_no_digit, is_stop, false, err));
    TRY(split_pairs(text, spare, is_stop, is_no_digit, true, err));
    return split_pairs(out, text, is_digit, is_dash, false, err);
}

/* Replaces `words` by the numbers of the text's words, which are the same in both texts of a pair. */
static enum tfm_status number_words(struct ngrams *ngrams, struct ints *words, const struct str *text,
                                    struct tfm_error *err)
{
    words->n = 0;
    int word = 0; /* 0: between words */
    for (size_t i = 0; i < text->len;) {
        uint32_t cp = 0;
        int len = utf8_next(text->data + i, text->len - i, &cp);
        if (!ngram_is_space(cp)) {
            word = ngram_extend(ngrams, word, (int)cp);
        } else if (word > 0) {
            TRY(ints_add(words, &word, 1, err));
            word = 0;
        }
        i += (size_t)len;
    }
    return word > 0 ? ints_add(words, &word, 1, err) : TFM_OK;
}

static enum tfm_status count_line(struct scratch *scratch, const char *hypothesis, const char *reference,
                                  struct ngram_counts *sum, struct tfm_error *err)
{
    struct ngram_counts line;
    TRY(separate_words(scratch, &scratch->hypothesis_text, hypothesis, err));
    TRY(separate_words(scratch, &scratch->reference_text, reference, err));
    TRY(ngram_start(&scratch->ngrams, scratch->hypothesis_text.len + scratch->reference_text.len, err));
    TRY(number_words(&scratch->ngrams, &scratch->hypothesis, &scratch->hypothesis_text, err));
    TRY(number_words(&scratch->ngrams, &scratch->reference, &scratch->reference_text, err));
    TRY(ngram_match(&scratch->ngrams, &scratch->hypothesis, &scratch->reference, ORDER, &line, err));
    for (int o = 0; o < ORDER; o++) {
        sum->hypothesis[o] += line.hypothesis[o];
        sum->reference[o] += line.reference[o];
        sum->match[o] += line.match[o];
    }
    return TFM_OK;
}

static double score_of(const struct ngram_counts *sum)
{
    if (sum->match[0] == 0 || sum->hypothesis[ORDER - 1] == 0)
        return 0;
    double log_precision = 0, smooth = 1;
    for (int o = 0; o < ORDER; o++) {
        double match = (double)sum->match[o];
        if (sum->match[o] == 0) {
            smooth /= 2;
            match = smooth;
        }
        log_precision += log(match / (double)sum->hypothesis[o]);
    }
    double ratio = (double)sum->reference[0] / (double)sum->hypothesis[0];
    return 100 * exp(fmin(0, 1 - ratio) + log_precision / ORDER);
}

enum tfm_status bleu_score(const char *const *hypotheses, const char *const *references, size_t n,
                           double *score, struct tfm_error *err)
{
    struct scratch scratch = { 0 };
    struct ngram_counts sum = { 0 };
    enum tfm_status status = TFM_OK;
    for (size_t i = 0; i < n && status == TFM_OK; i++)
        status = count_line(&scratch, hypotheses[i], references[i], &sum, err);
    release_scratch(&scratch);
    *score = score_of(&sum);
    return status;
}
