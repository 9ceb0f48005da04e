/*
 * recipe.c: options from a file. Each line is parsed as if its words stood on the command line, the first with
 * two dashes before it; so its mistakes are told in the same words, with the line's place before them. A word
 * with spaces, such as a command that prints a corpus, stands in double quotes.
 */
#include "recipe.h"

#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define MAX_WORDS 64

/* Adds a word with a prefix. */
static bool add_word(struct recipe *recipe, const char *prefix, const char *text, size_t len)
{
    char **words = realloc(recipe->words, ((size_t)recipe->n + 1) * sizeof(*words));
    if (words == NULL)
        return false;
    recipe->words = words;
    if (asprintf(&words[recipe->n], "%s%.*s", prefix, (int)len, text) < 0)
        return false;
    recipe->n++;
    return true;
}

/* Adds the words of a line, cut at white space; the first one gets its dashes. Returns their number, or -1: no
 * memory, too many, or a quote without its end. */
static int split(struct recipe *recipe, const char *line)
{
    static const char space[] = " \t\r";
    int n = 0;
    for (line += strspn(line, space); *line != '\0' && *line != '#'; line += strspn(line, space)) {
        bool is_quoted = *line == '"';
        line += is_quoted;
        size_t len = strcspn(line, is_quoted ? "\"" : space);
        if ((is_quoted && line[len] == '\0') || n == MAX_WORDS ||
            !add_word(recipe, n == 0 ? "--" : "", line, len))
            return -1;
        n++;
        line += len + is_quoted;
    }
    return n;
}

static int apply_words(struct recipe *recipe, const struct option_table *table, void *fields,
                       const char *text)
{
    char *argv[MAX_WORDS + 1] = { NULL };
    int n_operands = 0, n = split(recipe, text);
    if (n < 0)
        return options_wrong(table, "more than %d words, or a quote without its end", MAX_WORDS);
    if (n == 0)
        return OPTIONS_GO_ON;
    memcpy(argv + 1, recipe->words + recipe->n - n, (size_t)n * sizeof(*argv));
    if (strcmp(argv[1], "--recipe") == 0)
        return options_wrong(table, "a recipe cannot name another one");
    int status = options_apply(table, fields, n + 1, argv, &n_operands);
    if (status == OPTIONS_GO_ON && n_operands > 0)
        return options_wrong(table, "unexpected word '%s'", argv[1]);
    return status;
}

static int apply_line(struct recipe *recipe, const struct option_table *table, void *fields, const char *path,
                      const struct tfm_line *line)
{
    struct option_table here = *table;
    char *place;
    if (asprintf(&place, "%s, line %ld", path, line->number) < 0)
        return options_wrong(table, "no memory to read %s", path);
    here.place = place;
    int status = apply_words(recipe, &here, fields, line->text);
    free(place);
    return status;
}

static int apply_file(struct recipe *recipe, const struct option_table *table, void *fields, const char *path)
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
            status = apply_line(recipe, table, fields, path, &line);
    }
    tfm_lines_free(lines);
    return status;
}

int recipe_parse(struct recipe *recipe, const struct option_table *table, void *fields, const char *path,
                 int argc, char **argv)
{
    int n_operands;
    table->defaults(fields);
    int status = apply_file(recipe, table, fields, path);
    return status == OPTIONS_GO_ON ? options_apply(table, fields, argc, argv, &n_operands) : status;
}

void recipe_release(struct recipe *recipe)
{
    for (int i = 0; i < recipe->n; i++)
        free(recipe->words[i]);
    free(recipe->words);
    *recipe = (struct recipe){ 0 };
}
