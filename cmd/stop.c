/*
 * stop.c: notes the first signal that asks the program to end, for commands that leave nothing half done: a
 * training is saved, a folder that is being written is removed.
 */
#include "stop.h"

#include <signal.h>
#include <stddef.h>

volatile int stop_signal;

static void request_stop(int signal_number)
{
    if (stop_signal == 0)
        stop_signal = signal_number;
    /* A second signal ends the program at once. Not so SIGPIPE, which every line to a closed pipe raises. */
    if (signal_number != SIGPIPE) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGHUP, SIG_DFL);
    }
}

void stop_catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction action;
        /* A signal that is ignored, as under nohup, stays so. */
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
            action.sa_handler = request_stop;
            action.sa_flags = SA_RESTART;
            sigaction(signals[i], &action, NULL);
        }
    }
}
