/*
 * quote.c: writes strings and numbers of JSON. What the commands print holds nothing more than these, in flat
 * objects, so this takes the place of a JSON library.
 */
#include "quote.h"

#include <math.h>

/* Length of the well-formed UTF-8 character (RFC 3629) at text, which a NUL ends; 0 where there is none. */
static int character_length(const unsigned char *text)
{
    int n = text[0] < 0x80   ? 1
            : text[0] < 0xc2 ? 0
            : text[0] < 0xe0 ? 2
            : text[0] < 0xf0 ? 3
            : text[0] < 0xf5 ? 4
                             : 0;
    for (int i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    if (text[0] == 0xe0 && text[1] < 0xa0) /* longer than needed */
        return 0;
    if (text[0] == 0xed && text[1] > 0x9f) /* half of a UTF-16 pair */
        return 0;
    if ((text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xf4 && text[1] > 0x8f)) /* too long, beyond U+10FFFF */
        return 0;
    return n;
}

void quote_json(FILE *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    putc('"', out);
    while (*p != '\0') {
        int n = character_length(p);
        if (n == 0)
            fputs("\xef\xbf\xbd", out);
        else if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p == '\n')
            fputs("\\n", out);
        else if (*p == '\t')
            fputs("\\t", out);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(out, "\\u%04x", *p);
        else
            fwrite(p, 1, (size_t)n, out);
        p += n > 0 ? n : 1;
    }
    putc('"', out);
}

void quote_number(FILE *out, double number)
{
    if (isfinite(number))
        fprintf(out, "%.9g", number);
    else
        fputs("null", out);
}

void quote_field(FILE *out, const char *name, double number)
{
    fprintf(out, ", \"%s\": ", name);
    quote_number(out, number);
}
