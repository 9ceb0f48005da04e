/*
 * err.c: writes the one sentence that says what went wrong into the caller's struct tfm_error. A NULL error
 * is allowed: the caller then only wants the status. A sentence that is too long for the message is cut at a
 * character.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Drops a UTF-8 sequence that the end of the buffer has cut in two. */
static void trim_cut_character(char *text, size_t len)
{
    size_t lead = len;
    while (lead > 0 && len - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0)
        return;
    unsigned char c = (unsigned char)text[lead - 1];
    size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    if (len - (lead - 1) < need)
        text[lead - 1] = '\0';
}

static void write_message(struct tfm_error *err, enum tfm_status status, const char *format, va_list args)
{
    err->status = status;
    int n = vsnprintf(err->message, sizeof(err->message), format, args);
    if (n < 0)
        err->message[0] = '\0';
    else if ((size_t)n >= sizeof(err->message))
        trim_cut_character(err->message, sizeof(err->message) - 1);
}

enum tfm_status err_set(struct tfm_error *err, enum tfm_status status, const char *format, ...)
{
    if (err == NULL)
        return status;
    va_list args;
    va_start(args, format);
    write_message(err, status, format, args);
    va_end(args);
    return status;
}

enum tfm_status err_io(struct tfm_error *err, const char *format, ...)
{
    int code = errno;
    if (err == NULL)
        return TFM_EIO;
    va_list args;
    va_start(args, format);
    write_message(err, TFM_EIO, format, args);
    va_end(args);
    char reason[128];
    size_t len = strlen(err->message);
    snprintf(err->message + len, sizeof(err->message) - len, ": %s",
             strerror_r(code, reason, sizeof(reason)));
    return TFM_EIO;
}
