/*
 * chrf.c: chrF, the F-score of character n-grams. Over the whole corpus, for
 * each order n = 1..6: precision p_n = matches / n-grams of the hypotheses, recall r_n = matches / n-grams
 * of the references. With p and r their means over the orders that occur on both sides,
 *     chrF = 100 (1 + beta^2) p r / (beta^2 p + r),  beta = 2.
 * White space is left out. A line whose reference is too short for an order gives no n-grams of its
 * hypothesis either. Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation"; counted as
 * sacreBLEU 2 does.
 */
#include "text/chrf.h"

#include <string.h>

#include "text/ngram.h"

enum { ORDER = 6 };

/* Replaces cps by the characters of the line, without white space; `text` is scratch. */
static enum tfm_status characters(struct ints *cps, struct str *text, const char *line, struct tfm_error *err)
{
    str_clear(text);
    TRY(utf8_repair(text, line, strlen(line), err));
    cps->n = 0;
    TRY(ints_reserve(cps, text->len, err));
    uint32_t cp = 0;
    for (size_t i = 0; i < text->len;) {
        i += (size_t)utf8_next(text->data + i, text->len - i, &cp);
        if (!ngram_is_space(cp))
            cps->data[cps->n++] = (int)cp;
    }
    return TFM_OK;
}

static void add_line(struct ngram_counts *sum, const struct ngram_counts *line)
{
    for (int o = 0; o < ORDER; o++) {
        sum->hypothesis[o] += line->reference[o] > 0 ? line->hypothesis[o] : 0;
        sum->reference[o] += line->reference[o];
        sum->match[o] += line->match[o];
    }
}

static double f_score(const struct ngram_counts *sum)
{
    const double beta2 = 2.0 * 2.0;
    double precision = 0, recall = 0;
    int orders = 0;
    for (int o = 0; o < ORDER; o++) {
        if (sum->hypothesis[o] > 0 && sum->reference[o] > 0) {
            precision += (double)sum->match[o] / (double)sum->hypothesis[o];
            recall += (double)sum->match[o] / (double)sum->reference[o];
            orders++;
        }
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (1 + beta2) * precision * recall / (beta2 * precision + recall);
}

enum tfm_status chrf_score(const char *const *hypotheses, const char *const *references, size_t n,
                           double *score, struct tfm_error *err)
{
    struct ngrams ngrams = { 0 };
    struct ints hypothesis = { 0 }, reference = { 0 };
    struct str text = { 0 };
    struct ngram_counts sum = { 0 }, line;
    enum tfm_status status = TFM_OK;
    for (size_t i = 0; i < n && status == TFM_OK; i++) {
        status = characters(&hypothesis, &text, hypotheses[i], err);
        if (status == TFM_OK)
            status = characters(&reference, &text, references[i], err);
        if (status == TFM_OK)
            status = ngram_match(&ngrams, &hypothesis, &reference, ORDER, &line, err);
        if (status == TFM_OK)
            add_line(&sum, &line);
    }
    ngram_release(&ngrams);
    ints_release(&hypothesis);
    ints_release(&reference);
    str_release(&text);
    *score = f_score(&sum);
    return status;
}
