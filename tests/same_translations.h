/*
 * same_translations.h: whether two translations are the same to the bit: texts, pieces, scores, and what is told of
 * the line. For tests that translate one thing in two ways.
 */
#ifndef TFM_TESTS_SAME_TRANSLATIONS_H
#define TFM_TESTS_SAME_TRANSLATIONS_H

#include <string.h>

#include "tfm.h"

static inline bool same(const struct tfm_translation *a, const struct tfm_translation *b)
{
    if (a->n_hypotheses != b->n_hypotheses || a->limited != b->limited || a->n_parts != b->n_parts ||
        a->n_terms_missing != b->n_terms_missing)
        return false;
    for (int h = 0; h < a->n_hypotheses; h++) {
        const struct tfm_hypothesis *x = &a->hypotheses[h], *y = &b->hypotheses[h];
        size_t n = (size_t)x->n_pieces;
        if (strcmp(x->text, y->text) != 0 || x->score != y->score ||
            x->normalized_score != y->normalized_score || x->n_pieces != y->n_pieces ||
            memcmp(x->pieces, y->pieces, n * sizeof(int)) != 0 ||
            memcmp(x->piece_scores, y->piece_scores, n * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* How many of n lines differ. */
static inline int differences(const struct tfm_translation *a, const struct tfm_translation *b, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += !same(&a[i], &b[i]);
    return found;
}

#endif
