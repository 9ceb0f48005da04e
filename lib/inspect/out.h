/*
 * out.h: writing to a stream that the caller gave.
 */
#ifndef TFM_INSPECT_OUT_H
#define TFM_INSPECT_OUT_H

#include <locale.h>

#include "base/json.h"

struct out {
    FILE *file;
    locale_t c_locale, before;
};

/* From here to out_end, this thread writes numbers with a decimal point whatever its locale. */
enum tfm_status out_begin(struct out *out, FILE *file, struct tfm_error *err);

/* Flushes, so that a full disk shows here. `status` is what the writing returned: if it failed, that is
 * passed on. */
enum tfm_status out_end(struct out *out, enum tfm_status status, struct tfm_error *err);

/* Any text as a JSON string: malformed UTF-8 becomes U+FFFD. NULL: no memory. */
json_t *out_string(const char *text);

#endif
