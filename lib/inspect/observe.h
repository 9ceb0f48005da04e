/*
 * observe.h: the model run over one pair of sentences, or an encoder alone over one sentence, for the sake of
 * what a tap sees on the way.
 */
#ifndef TFM_INSPECT_OBSERVE_H
#define TFM_INSPECT_OBSERVE_H

#include "base/tap.h"
#include "model/model.h"

#define OBSERVE_SPACE      "\xe2\x96\x81" /* U+2581, as pieces have it */
#define OBSERVE_MAX_PIECES 1000           /* a sentence; attention weights grow with the square of it */

/* Appends the pieces of source and target, each with </s> at its end. target_text NULL: translated first.
 * An encoder alone has no target; its source may hold masks, written out. */
enum tfm_status observe_encode(struct ints *source, struct ints *target, const struct tfm_model *model,
                               const char *source_text, const char *target_text, int beam_size,
                               struct tfm_error *err);

/* Runs encoder, decoder and output layer over them; an encoder alone predicts all of its source's places. */
enum tfm_status observe_run(const struct tfm_model *model, const struct ints *source,
                            const struct ints *target, const struct tap *tap, struct tfm_error *err);

#endif
