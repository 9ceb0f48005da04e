/*
 * unknown.h: source text in the place of unknown pieces of a translation.
 */
#ifndef TFM_DECODE_UNKNOWN_H
#define TFM_DECODE_UNKNOWN_H

#include "decode/worker.h"

/* Puts it into the worker's text, which from byte `from` on is the decoded text of what was found for a part
 * of the line. Needs attention. */
enum tfm_status unknown_replace(const struct tfm_translator *t, struct worker *worker, size_t from,
                                const char *source_text, const struct plan_line *line,
                                const struct search_sentence *part, const struct search_hypothesis *found);

#endif
