/*
 * stop.c: notes the first signal that asks the program to end, for commands that leave nothing half done: a
 * training is saved, a folder that is being written is removed.
 */
#include "stop.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

volatile int stop_signal;

static volatile sig_atomic_t pipes_count = true;

/* A second signal ends the program at once, but not within a second of the first: one wish to end may come
 * twice, as from timeout(1), which tells the process and its group. Nor SIGPIPE, which every line to a closed
 * pipe raises. */
static void request_stop(int signal_number)
{
    static struct timespec first;
    struct timespec now;
    if (signal_number == SIGPIPE && !pipes_count)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (stop_signal == 0) {
        stop_signal = signal_number;
        first = now;
    } else if (signal_number != SIGPIPE &&
               (now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 >= 1000) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

void stop_by_pipes(bool do_count)
{
    pipes_count = do_count;
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
