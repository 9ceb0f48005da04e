/*
 * recipe.c: options from a file. Each line is parsed as if its words stood on the command line, the first with
 * two dashes before it; so its mistakes are told in the same words, with the line's place after them. A word
 * with spaces, such as a command that prints a corpus, stands in double quotes.
 */
#include "recipe.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define MAX_WORDS 64

/* Cuts a line at white space; the words' first one gets its dashes. Returns their number, or -1: no memory, too
 * many, or a quote without its end. */
static int split(const char *line, char **words)
{
    static const char space[] = " \t\r";
    int n = 0;
    for (line += strspn(line, space); *line != '\0' && *line != '#'; line += strspn(line, space)) {
        bool is_quoted = *line == '"';
        line += is_quoted;
        size_t len = strcspn(line, is_quoted ? "\"" : space), dashes = n == 0 ? 2 : 0;
        if (is_quoted && line[len] == '\0')
            return -1;
        char *word = n < MAX_WORDS ? malloc(dashes + len + 1) : NULL;
        if (word == NULL)
            return -1;
        memcpy(word, "--", dashes);
        memcpy(word + dashes, line, len);
        word[dashes + len] = '\0';
        words[n++] = word;
        line += len + is_quoted;
    }
    return n;
}

static int apply_line(const struct option_table *table, void *fields, const char *path,
                      const struct tfm_line *line)
{
    char *argv[MAX_WORDS + 1] = { NULL };
    int n_operands = 0, n = split(line->text, argv + 1);
    if (n < 0)
        return options_wrong(table, "%s, line %ld: more than %d words, or a quote without its end", path,
                             line->number, MAX_WORDS);
    if (n > 0 && strcmp(argv[1], "--recipe") == 0)
        return options_wrong(table, "%s, line %ld: a recipe cannot name another one", path, line->number);
    int status = n > 0 ? options_apply(table, fields, n + 1, argv, &n_operands) : OPTIONS_GO_ON;
    if (status == OPTIONS_GO_ON && n_operands > 0)
        return options_wrong(table, "%s, line %ld: unexpected word '%s'", path, line->number, argv[1]);
    if (status != OPTIONS_GO_ON)
        fprintf(stderr, "%s: this stands in %s, line %ld\n", table->command, path, line->number);
    return status;
}

static int apply_file(const struct option_table *table, void *fields, const char *path)
{
    struct tfm_error err;
    struct tfm_lines *lines;
    struct tfm_line line;
    bool more = true;
    if (tfm_lines_open(&lines, path, &err) != TFM_OK)
        return cmd_failed(table->command, &err);
    int status = OPTIONS_GO_ON;
    while (status == OPTIONS_GO_ON) {
        if (tfm_lines_next(lines, &line, &more, &err) != TFM_OK)
            status = cmd_failed(table->command, &err);
        if (!more)
            break;
        if (status == OPTIONS_GO_ON)
            status = apply_line(table, fields, path, &line);
    }
    tfm_lines_free(lines);
    return status;
}

int recipe_parse(const struct option_table *table, void *fields, const char *path, int argc, char **argv)
{
    int n_operands;
    table->defaults(fields);
    int status = apply_file(table, fields, path);
    return status == OPTIONS_GO_ON ? options_apply(table, fields, argc, argv, &n_operands) : status;
}
