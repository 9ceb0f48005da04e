/*
 * utf8.h: UTF-8 (RFC 3629).
 */
#ifndef TFM_TEXT_UTF8_H
#define TFM_TEXT_UTF8_H

#include "base/str.h"

/* Length in bytes of the well-formed character at text (0: malformed, or n is 0); *cp gets the code point. */
int utf8_next(const char *text, size_t n, uint32_t *cp);
bool utf8_is_valid(const char *text, size_t n);
/* Appends text with each maximal malformed part replaced by U+FFFD. */
enum tfm_status utf8_repair(struct str *out, const char *text, size_t n, struct tfm_error *err);
bool utf8_is_space(uint32_t cp);                /* Unicode White_Space */
bool utf8_is_blank(const char *text, size_t n); /* nothing but White_Space, NUL and U+FEFF */
int utf8_width(const char *text, size_t n);     /* columns in a terminal: combining 0, East Asian wide 2 */

#endif
