/*
 * bleu.h: corpus BLEU (Papineni et al. 2002), equal to sacreBLEU's default (Post 2018): its "13a" tokenizer,
 * 4-grams, exponential smoothing, brevity penalty.
 */
#ifndef TFM_TEXT_BLEU_H
#define TFM_TEXT_BLEU_H

#include "base/err.h"

/* *score in 0..100. One reference a hypothesis; lines are NUL-terminated UTF-8, malformed parts count as
 * U+FFFD. No lines at all, or no word in common, score 0. */
enum tfm_status bleu_score(const char *const *hypotheses, const char *const *references, size_t n,
                           double *score, struct tfm_error *err);

#endif
