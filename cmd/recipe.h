/*
 * recipe.h: options kept in a file, one a line: its name without dashes, then its values; # begins a comment.
 */
#ifndef TFM_CMD_RECIPE_H
#define TFM_CMD_RECIPE_H

#include "options.h"

struct recipe { /* the words of the file, which options point at; begin with all zero */
    char **words;
    int n;
};

/* Parses the command line again over a recipe: defaults, then the file, then what the command line says. Returns
 * as options_parse does. */
int recipe_parse(struct recipe *recipe, const struct option_table *table, void *fields, const char *path,
                 int argc, char **argv);
void recipe_release(struct recipe *recipe);

#endif
