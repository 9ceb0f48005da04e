/*
 * quote.h: text as a JSON string.
 */
#ifndef TFM_CMD_QUOTE_H
#define TFM_CMD_QUOTE_H

#include <stdio.h>

/* Writes text with quotes, escaped (RFC 8259). Bytes that are no UTF-8 become U+FFFD. */
void quote_json(FILE *out, const char *text);

/* Writes a number in its shortest form of at most 9 digits; NaN and infinity, which JSON lacks, as null. */
void quote_number(FILE *out, double number);

/* The same as a further field of an object: with a comma and its name before it. */
void quote_field(FILE *out, const char *name, double number);

#endif
