/*
 * unknown.h: text in the place of unknown pieces of a translation: what was forced or what a term says there, or,
 * with replace_unk, source text.
 */
#ifndef TFM_DECODE_UNKNOWN_H
#define TFM_DECODE_UNKNOWN_H

#include "decode/worker.h"

/* Puts it into the worker's text, which from byte `from` on is the decoded text of what was found for a part
 * of the line. replace_unk needs attention. */
enum tfm_status unknown_replace(const struct tfm_translator *t, struct worker *worker, size_t from,
                                int line_number, const struct search_sentence *part,
                                const struct search_hypothesis *found);

#endif
