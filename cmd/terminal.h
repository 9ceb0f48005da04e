/*
 * terminal.h: what the commands ask of a terminal.
 */
#ifndef TFM_CMD_TERMINAL_H
#define TFM_CMD_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Columns of the terminal that a stream writes to; 0 where it is none. */
int terminal_columns(FILE *stream);

/* True when a stream may be written to with colours: a terminal that can, and no NO_COLOR in the
 * environment. */
bool terminal_has_color(FILE *stream);

#endif
