/*
 * stop.h: signals that ask a command to end in good order.
 */
#ifndef TFM_CMD_STOP_H
#define TFM_CMD_STOP_H

#include <stdbool.h>

/* The number of the signal that came, or 0: what the `stop` of the library's options points to. */
extern volatile int stop_signal;

/* SIGINT, SIGTERM, SIGHUP and SIGPIPE are noted from now on; another one than SIGPIPE, a second or more after
 * the first, ends the program at once. */
void stop_catch_signals(void);

/* Whether a write to a pipe without reader asks the program to end; it does until this says otherwise. */
void stop_by_pipes(bool do_count);

#endif
