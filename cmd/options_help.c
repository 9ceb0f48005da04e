/*
 * options_help.c: a table of options as help for people (-h), wrapped to 80 columns, and as tab-separated
 * lines for the test that compares it with the man page (--list-options).
 */
#include <string.h>

#include "options.h"

enum {
    HELP_INDENT = 28,
    HELP_WIDTH = 80
};

static void format_interval(const struct tfm_interval *interval, char *text, size_t size)
{
    static const char units[] = { [TFM_UPDATES] = 'u', [TFM_EPOCHS] = 'e', [TFM_TARGET_TOKENS] = 't' };
    snprintf(text, size, "%.15g%c", interval->amount, units[interval->unit]);
}

/* The word number `index` of "one|two|three". */
static void format_word(const char *words, unsigned index, char *text, size_t size)
{
    for (; index > 0; index--)
        words += strcspn(words, "|") + 1;
    snprintf(text, size, "%.*s", (int)strcspn(words, "|"), words);
}

/* The default of an option as text; "" where it has none. */
static void format_default(const struct option_spec *spec, const void *defaults, char *text, size_t size)
{
    const void *field = (const char *)defaults + spec->offset;
    const char *string;
    text[0] = '\0';
    if (spec->standard != NULL) {
        snprintf(text, size, "%s", spec->standard);
        return;
    }
    switch (spec->kind) {
    case OPTION_INT: snprintf(text, size, "%d", *(const int *)field); break;
    case OPTION_SEED: snprintf(text, size, "%llu", (unsigned long long)*(const uint64_t *)field); break;
    case OPTION_FLOAT: snprintf(text, size, "%g", (double)*(const float *)field); break;
    case OPTION_DOUBLE: snprintf(text, size, "%g", *(const double *)field); break;
    case OPTION_ENUM: format_word(spec->argument, *(const unsigned *)field, text, size); break;
    case OPTION_INTERVAL: format_interval(field, text, size); break;
    case OPTION_STRING:
        string = *(const char *const *)field;
        snprintf(text, size, "%s", string != NULL ? string : "");
        break;
    case OPTION_HEADING:
    case OPTION_HELP:
    case OPTION_FLAG:
    case OPTION_CORPUS:
    case OPTION_NAMES:
    case OPTION_PAIR: break;
    }
}

/* Prints one word that ends before column HELP_WIDTH, on a new line if need be; returns the column
 * reached. */
static int print_word(const char *word, int len, int column)
{
    if (column > HELP_INDENT && column + 1 + len > HELP_WIDTH) {
        printf("\n%*s", HELP_INDENT, "");
        column = HELP_INDENT;
    }
    return column + printf("%s%.*s", column > HELP_INDENT ? " " : "", len, word);
}

static int print_words(const char *text, int column)
{
    while (*text != '\0') {
        int len = (int)strcspn(text, " ");
        column = print_word(text, len, column);
        text += len;
        text += strspn(text, " ");
    }
    return column;
}

static bool may_lack_value(const struct option_spec *spec)
{
    return spec->bare != NULL && spec->kind != OPTION_PAIR;
}

static void print_option(const struct option_spec *spec, const void *defaults)
{
    char letter[] = "    ";
    if (spec->letter != '\0')
        snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
    const char *argument = spec->argument != NULL ? spec->argument : "";
    int column = printf("  %.4s--%s", letter, spec->name);
    column += may_lack_value(spec) ? printf(" [%s]", argument)
                                   : printf("%s%s", *argument != '\0' ? " " : "", argument);
    if (column + 2 > HELP_INDENT)
        printf("\n%*s", HELP_INDENT, "");
    else
        printf("%*s", HELP_INDENT - column, "");
    column = print_words(spec->help, HELP_INDENT);
    char standard[100], note[130];
    format_default(spec, defaults, standard, sizeof(standard));
    int len = snprintf(note, sizeof(note), "(default %s)", standard);
    if (standard[0] != '\0')
        print_word(note, len, column);
    putchar('\n');
}

void options_help(const struct option_table *table, const void *defaults)
{
    printf("usage: %s %s\n\n%s\n", table->command, table->usage, table->summary);
    for (int i = 0; i < table->n; i++) {
        if (table->options[i].kind == OPTION_HEADING)
            printf("\n%s:\n", table->options[i].help);
        else
            print_option(&table->options[i], defaults);
    }
}

void options_list(const struct option_table *table, const void *defaults)
{
    for (int i = 0; i < table->n; i++) {
        const struct option_spec *spec = &table->options[i];
        if (spec->kind == OPTION_HEADING)
            continue;
        char standard[100];
        format_default(spec, defaults, standard, sizeof(standard));
        printf("%s\t%c\t%s%s%s\t%s\t%s\n", spec->name, spec->letter != '\0' ? spec->letter : '-',
               may_lack_value(spec) ? "[" : "", spec->argument != NULL ? spec->argument : "-",
               may_lack_value(spec) ? "]" : "", standard[0] != '\0' ? standard : "-",
               spec->alias != NULL ? spec->alias : "-");
    }
}
