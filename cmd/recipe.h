/*
 * recipe.h: options kept in a file, one a line: its name without dashes, then its values; # begins a comment.
 */
#ifndef TFM_CMD_RECIPE_H
#define TFM_CMD_RECIPE_H

#include "options.h"

/* Parses the command line again over a recipe: defaults, then the file, then what the command line says. The
 * strings of the file live until the program ends. Returns as options_parse does. */
int recipe_parse(const struct option_table *table, void *fields, const char *path, int argc, char **argv);

#endif
