/*
 * chrf.h: corpus chrF (Popovic 2015), equal to sacreBLEU's default (chrF2): character n-grams to order 6,
 * beta 2, white space left out.
 */
#ifndef TFM_TEXT_CHRF_H
#define TFM_TEXT_CHRF_H

#include "base/err.h"

/* *score in 0..100. One reference a hypothesis; lines are NUL-terminated UTF-8, malformed parts count as
 * U+FFFD. No lines at all, or no character in common, score 0. */
enum tfm_status chrf_score(const char *const *hypotheses, const char *const *references, size_t n,
                           double *score, struct tfm_error *err);

#endif
