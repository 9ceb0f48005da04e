/*
 * metric.h: corpus BLEU (Papineni et al. 2002; sacreBLEU's "13a" tokenizer, exponential smoothing) and chrF (Popovic
 * 2015; character n-grams to 6, beta 2, white space left out), equal to sacreBLEU's defaults.
 */
#ifndef TFM_TEXT_METRIC_H
#define TFM_TEXT_METRIC_H

#include "base/str.h"

/* Scores in 0..100; one reference a hypothesis; lines are NUL-terminated UTF-8. */
enum tfm_status metric_bleu(const char *const *hypotheses, const char *const *references, size_t n, double *score,
                            struct tfm_error *err);
enum tfm_status metric_chrf(const char *const *hypotheses, const char *const *references, size_t n, double *score,
                            struct tfm_error *err);

#endif
