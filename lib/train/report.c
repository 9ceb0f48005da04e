/*
 * report.c: events go to the caller's function; the library itself prints nothing.
 */
#include "train/report.h"

#include <stdarg.h>

void report_event(const struct tfm_train_options *options, const struct tfm_train_event *event)
{
    if (options->event != NULL)
        options->event(options->user, event);
}

void report_note(const struct tfm_train_options *options, const char *format, ...)
{
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    report_event(options,
                 &(struct tfm_train_event){ .kind = TFM_EVENT_NOTE, .text = text, .seconds_left = -1 });
}
