/*
 * abbrev.h: words whose full stop ends no sentence.
 */
#ifndef TFM_TEXT_ABBREV_H
#define TFM_TEXT_ABBREV_H

#include <stdbool.h>
#include <stddef.h>

/* Of a word of n bytes in UTF-8, without the full stop behind it; marks before it, as in "(Dr", do not count. */
bool abbrev_is(const char *word, size_t n);

#endif
