/*
 * terminal.c: asks whether a stream is a terminal, how wide it is, and whether it may be written to with
 * colours.
 */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_UNKNOWN = 80 };

int terminal_columns(FILE *stream)
{
    struct winsize size;
    int fd = fileno(stream);
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_UNKNOWN;
}

bool terminal_has_color(FILE *stream)
{
    const char *refused = getenv("NO_COLOR");
    const char *type = getenv("TERM");
    return isatty(fileno(stream)) && (refused == NULL || *refused == '\0') &&
           (type != NULL && strcmp(type, "dumb") != 0);
}
