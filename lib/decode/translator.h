/*
 * translator.h: what stands behind tfm_translate, for any packed net: tokenise, sort into batches, search
 * on a pool of workers, detokenise, back in order.
 */
#ifndef TFM_DECODE_TRANSLATOR_H
#define TFM_DECODE_TRANSLATOR_H

#include "model/net.h"
#include "text/spm.h"

enum tfm_status translator_new(struct tfm_translator **translator, const struct net *net,
                               const struct spm *source, const struct spm *target, const struct kern *kern,
                               const struct tfm_translate_options *options, struct tfm_error *err);
/* then tfm_translate and tfm_translator_free (tfm.h) */

#endif
