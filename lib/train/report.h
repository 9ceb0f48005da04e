/*
 * report.h: what the trainer tells its caller.
 */
#ifndef TFM_TRAIN_REPORT_H
#define TFM_TRAIN_REPORT_H

#include "tfm.h"

/* Hands an event to the caller, if there is one who listens. */
void report_event(const struct tfm_train_options *options, const struct tfm_train_event *event);

/* A NOTE: one sentence without a final newline, cut where it is over-long. */
void report_note(const struct tfm_train_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
