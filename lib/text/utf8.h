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
/* A letter or digit of a script that sets words apart by spaces: between two of them no word ends. */
bool utf8_is_joined(uint32_t cp);
uint32_t utf8_lower(uint32_t cp); /* of Latin, Greek, Cyrillic and Armenian capitals; no longer in UTF-8 */
enum tfm_status utf8_add(struct str *out, uint32_t cp, struct tfm_error *err); /* appends a character */
int utf8_width(const char *text, size_t n); /* columns in a terminal: combining 0, East Asian wide 2 */

#endif
