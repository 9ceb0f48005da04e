/*
 * translator.h: what stands behind tfm_translate, for any packed net: tokenise, sort into batches, search
 * on a pool of workers, detokenise, back in order.
 */
#ifndef TFM_DECODE_TRANSLATOR_H
#define TFM_DECODE_TRANSLATOR_H

#include "decode/ensemble.h"
#include "decode/search.h"

enum tfm_status translator_new(struct tfm_translator **translator, const struct net *net,
                               const struct spm *source, const struct spm *target, const struct kern *kern,
                               const struct tfm_translate_options *options, const struct shortlist *shortlist,
                               struct tfm_error *err);
/* A shortlist, or NULL, is for translating and not for scoring. */
enum tfm_status translator_new_ensemble(struct tfm_translator **translator, const struct ensemble *ensemble,
                                        const struct spm *source, const struct spm *target,
                                        const struct kern *kern, const struct tfm_translate_options *options,
                                        const struct shortlist *shortlist, struct tfm_error *err);
/* Notes, from now on, how far what the first model multiplies in int8 reaches. Of one thread only. */
void translator_note(struct tfm_translator *translator, struct extents *extents);
/* Then tfm_translate, tfm_score and tfm_translator_free (tfm.h) */

/* translate_options.c */
enum tfm_status translate_options_check(const struct tfm_translate_options *options,
                                        const struct config *config, struct tfm_error *err);
void translate_options_search(struct search_options *search, const struct tfm_translate_options *options,
                              const struct config *config);

#endif
