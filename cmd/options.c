/*
 * options.c: parses a command line by a command's table of options.
 *
 *     --name VALUE   --name=VALUE   -x VALUE   -xVALUE
 *     -xyz (flags)   -- (only operands follow)   - (an operand: standard input)
 *
 * Names are whole (a prefix is refused, so that scripts survive new options); `_` counts as `-` in long
 * names. Values are read in the C locale, since no command ever sets another one. Wrong usage is one line
 * that names the option, what was found and what was expected.
 */
#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define NAME_LENGTH_MAX 63 /* no option's name is longer */

struct parser {
    const struct option_table *table;
    char *fields;
    int argc;
    char **argv;
    int next;  /* the argument to look at next */
    bool help; /* -h was given */
};

/* The option being read. */
struct given {
    const struct option_spec *spec;
    const char *shown;  /* as the user wrote it, with dashes */
    const char *joined; /* the value in the same argument, or NULL */
};

int options_wrong(const struct option_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", table->command);
    if (table->place != NULL)
        fprintf(stderr, "%s: ", table->place);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (%s -h shows the options)\n", table->command);
    va_end(args);
    return EXIT_USAGE;
}

/* ---- names ---- */

/* True when `name` begins with what was typed. */
static bool same_start(const char *typed, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '\0' || (typed[i] == '_' ? '-' : typed[i]) != name[i])
            return false;
    }
    return true;
}

static bool same_name(const char *typed, size_t len, const char *name)
{
    return name != NULL && same_start(typed, len, name) && name[len] == '\0';
}

static const struct option_spec *find_long(const struct option_table *table, const char *typed, size_t len)
{
    for (int i = 0; i < table->n; i++) {
        const struct option_spec *spec = &table->options[i];
        if (same_name(typed, len, spec->name) || same_name(typed, len, spec->alias))
            return spec;
    }
    return NULL;
}

static const struct option_spec *find_letter(const struct option_table *table, char letter)
{
    for (int i = 0; i < table->n; i++) {
        if (table->options[i].letter == letter)
            return &table->options[i];
    }
    return NULL;
}

/* Characters to insert, delete or replace to turn one name into the other (Levenshtein). */
static int edit_distance(const char *typed, size_t len, const char *name)
{
    int row[NAME_LENGTH_MAX + 1];
    size_t width = strlen(name);
    assert(width <= NAME_LENGTH_MAX);
    for (size_t j = 0; j <= width; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= len; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= width; j++) {
            int replaced = diagonal + !same_start(&typed[i - 1], 1, &name[j - 1]);
            int shifted = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < shifted ? replaced : shifted;
        }
    }
    return row[width];
}

/* The name that may have been meant: one that begins with what was typed, or one a few letters away; or
 * NULL. */
static const char *nearest_name(const struct option_table *table, const char *typed, size_t len)
{
    const char *nearest = NULL;
    int limit = len < 4 ? 2 : 4; /* from this distance on it is another word, not a slip */
    for (int i = 0; i < table->n * 2 && len > 0 && len <= NAME_LENGTH_MAX; i++) {
        const struct option_spec *spec = &table->options[i / 2];
        const char *name = i % 2 == 0 ? spec->name : spec->alias;
        if (name == NULL)
            continue;
        int distance = same_start(typed, len, name) ? 0 : edit_distance(typed, len, name);
        if (distance < limit) {
            limit = distance;
            nearest = name;
        }
    }
    return nearest;
}

static int unknown_option(const struct option_table *table, const char *typed, size_t len)
{
    const char *name = nearest_name(table, typed, len);
    if (name == NULL)
        return options_wrong(table, "unknown option '--%.*s'", (int)len, typed);
    return options_wrong(table, "unknown option '--%.*s'; is '--%s' meant?", (int)len, typed, name);
}

/* ---- values ---- */

/* A number as a whole, without spaces around it. */
static bool parse_double(const char *text, double *value)
{
    char *end;
    if (!isdigit((unsigned char)*text) && *text != '-' && *text != '.')
        return false;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static bool parse_whole(const char *text, long long *value)
{
    char *end;
    if (!isdigit((unsigned char)*text) && *text != '-')
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static bool parse_seed(const char *text, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool parse_interval(const char *text, struct tfm_interval *interval)
{
    size_t digits = strspn(text, "0123456789.");
    char number[32];
    if (digits == 0 || digits >= sizeof(number))
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    double amount;
    if (!parse_double(number, &amount))
        return false;
    text += digits;
    switch (*text) {
    case 'K':
        amount *= 1e3;
        text++;
        break;
    case 'M':
        amount *= 1e6;
        text++;
        break;
    case 'G':
        amount *= 1e9;
        text++;
        break;
    default: break;
    }
    static const struct {
        const char *name;
        enum tfm_unit unit;
        double factor;
    } units[] = { { "", TFM_UPDATES, 1 },        { "u", TFM_UPDATES, 1 },   { "e", TFM_EPOCHS, 1 },
                  { "t", TFM_TARGET_TOKENS, 1 }, { "min", TFM_MINUTES, 1 }, { "h", TFM_MINUTES, 60 } };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) == 0) {
            *interval = (struct tfm_interval){ amount * units[i].factor, units[i].unit };
            return true;
        }
    }
    return false;
}

/* The place of a word among those between the bars of "one|two|three"; -1: it is none of them. */
static int find_word(const char *words, const char *text)
{
    size_t len = strlen(text);
    for (int i = 0;; i++) {
        size_t width = strcspn(words, "|");
        if (width == len && memcmp(words, text, len) == 0)
            return i;
        if (words[width] == '\0')
            return -1;
        words += width + 1;
    }
}

/* Whether a string names a file or a folder, and so cannot be empty. */
static bool is_path(const struct option_spec *spec)
{
    return spec->bare == NULL &&
           (strcmp(spec->argument, "FILE") == 0 || strcmp(spec->argument, "FOLDER") == 0);
}

/* Says which values an option takes. */
static void describe_expected(const struct option_spec *spec, char *text, size_t size)
{
    const char *kind = spec->kind == OPTION_INT ? "a whole number" : "a number";
    if (spec->kind == OPTION_SEED)
        snprintf(text, size, "a whole number, not negative");
    else if (spec->kind == OPTION_INTERVAL)
        snprintf(text, size,
                 "an amount of training such as 10e (epochs), 5000 or 5Ku (updates), 1Gt (target tokens), "
                 "50min");
    else if (spec->kind == OPTION_STRING && is_path(spec))
        snprintf(text, size, "the name of a %s", strcmp(spec->argument, "FILE") == 0 ? "file" : "folder");
    else if (spec->kind == OPTION_STRING || spec->kind == OPTION_ENUM)
        snprintf(text, size, "%s", spec->argument);
    else if (spec->max >= INT_MAX)
        snprintf(text, size, "%s, at least %.15g", kind, spec->min);
    else
        snprintf(text, size, "%s from %.15g to %.15g", kind, spec->min, spec->max);
}

/* Puts a value into its field; false where it is none that the option takes. */
static bool assign(const struct option_spec *spec, char *fields, const char *text)
{
    void *field = fields + spec->offset;
    double number;
    long long whole;
    int word;
    switch (spec->kind) {
    case OPTION_INT:
        if (!parse_whole(text, &whole) || whole < (long long)spec->min || whole > (long long)spec->max)
            return false;
        *(int *)field = (int)whole;
        return true;
    case OPTION_FLOAT:
    case OPTION_DOUBLE:
        if (!parse_double(text, &number) || number < spec->min || number > spec->max)
            return false;
        if (spec->kind == OPTION_FLOAT)
            *(float *)field = (float)number;
        else
            *(double *)field = number;
        return true;
    case OPTION_SEED: return parse_seed(text, field);
    case OPTION_INTERVAL: return parse_interval(text, field);
    case OPTION_ENUM:
        if ((word = find_word(spec->argument, text)) < 0)
            return false;
        *(unsigned *)field = (unsigned)word;
        return true;
    case OPTION_STRING:
        if (*text == '\0' && is_path(spec)) /* nearly always from a variable that is not set */
            return false;
        if (strchr(spec->argument, '|') != NULL && find_word(spec->argument, text) < 0)
            return false;
        *(const char **)field = text;
        return true;
    case OPTION_HEADING:
    case OPTION_HELP:
    case OPTION_FLAG:
    case OPTION_CORPUS:
    case OPTION_NAMES:
    case OPTION_PAIR: break;
    }
    assert(!"an option that takes no value");
    return false;
}

/* ---- arguments ---- */

/* True for an argument that looks like an option rather than like a value or an operand. */
static bool is_option(const char *text)
{
    return text[0] == '-' && text[1] != '\0' && text[1] != '.' && !isdigit((unsigned char)text[1]);
}

/* The next argument as a value of the option; NULL and a report where there is none. An argument that looks
 * like an option is refused: nearly always a value was forgotten, and --name=VALUE can still say it. */
static const char *next_value(struct parser *p, const struct given *given)
{
    if (p->next < p->argc && !is_option(p->argv[p->next]))
        return p->argv[p->next++];
    if (p->next < p->argc)
        options_wrong(p->table, "option %s needs %s, found the option '%s'", given->shown,
                      given->spec->argument, p->argv[p->next]);
    else
        options_wrong(p->table, "option %s needs %s, found the end of the line", given->shown,
                      given->spec->argument);
    return NULL;
}

static int parse_pair(struct parser *p, const struct given *given, const char **pair)
{
    const char *bare = given->spec->bare; /* of the second value, a number */
    double number;
    pair[0] = given->joined != NULL ? given->joined : next_value(p, given);
    if (pair[0] == NULL)
        return EXIT_USAGE;
    if (bare != NULL && (p->next == p->argc || !parse_double(p->argv[p->next], &number))) {
        pair[1] = bare;
        return OPTIONS_GO_ON;
    }
    if (strchr(given->spec->argument, '[') != NULL && (p->next == p->argc || is_option(p->argv[p->next]))) {
        pair[1] = NULL;
        return OPTIONS_GO_ON;
    }
    pair[1] = next_value(p, given);
    return pair[1] != NULL ? OPTIONS_GO_ON : EXIT_USAGE;
}

static int parse_corpus(struct parser *p, const struct given *given)
{
    struct corpus_list *corpora = (struct corpus_list *)(void *)(p->fields + given->spec->offset);
    struct tfm_corpus *list = realloc(corpora->list, ((size_t)corpora->n + 1) * sizeof(*list));
    if (list == NULL)
        return options_wrong(p->table, "no memory for the corpora");
    corpora->list = list;
    struct tfm_corpus *corpus = &list[corpora->n++];
    const char *files[2];
    *corpus = (struct tfm_corpus){ 0 };
    if (strchr(given->spec->argument, ' ') != NULL) {
        int status = parse_pair(p, given, files);
        corpus->source = files[0];
        corpus->target = files[1];
        return status;
    }
    corpus->tsv = given->joined != NULL ? given->joined : next_value(p, given);
    return corpus->tsv != NULL ? OPTIONS_GO_ON : EXIT_USAGE;
}

static int parse_name(struct parser *p, const struct given *given)
{
    struct option_names *names = (struct option_names *)(void *)(p->fields + given->spec->offset);
    assert(given->spec->max >= 1 && given->spec->max <= OPTION_NAMES_MAX);
    if (names->n == (int)given->spec->max)
        return options_wrong(p->table, "option %s: found more than %d of them", given->shown, names->n);
    const char *name = given->joined != NULL ? given->joined : next_value(p, given);
    if (name == NULL)
        return EXIT_USAGE;
    names->list[names->n++] = name;
    return OPTIONS_GO_ON;
}

static int parse_value(struct parser *p, const struct given *given)
{
    const struct option_spec *spec = given->spec;
    if (spec->kind == OPTION_PAIR)
        return parse_pair(p, given, (const char **)(void *)(p->fields + spec->offset));
    if (spec->kind == OPTION_CORPUS)
        return parse_corpus(p, given);
    if (spec->kind == OPTION_NAMES)
        return parse_name(p, given);
    const char *text = given->joined;
    double number;
    if (text == NULL && spec->bare != NULL) { /* the next argument is the value only if it reads as one */
        const char *next = p->next < p->argc ? p->argv[p->next] : NULL;
        bool is_value =
            next != NULL && (spec->kind == OPTION_STRING ? !is_option(next) : parse_double(next, &number));
        text = is_value ? next : spec->bare;
        p->next += is_value;
    }
    if (text == NULL && (text = next_value(p, given)) == NULL)
        return EXIT_USAGE;
    if (assign(spec, p->fields, text))
        return OPTIONS_GO_ON;
    char expected[200];
    describe_expected(spec, expected, sizeof(expected));
    return options_wrong(p->table, "option %s: found '%s', expected %s", given->shown, text, expected);
}

static bool takes_value(const struct option_spec *spec)
{
    return spec->kind != OPTION_FLAG && spec->kind != OPTION_HELP;
}

static void set_flag(struct parser *p, const struct option_spec *spec)
{
    if (spec->kind == OPTION_HELP)
        p->help = true;
    else
        *(bool *)(p->fields + spec->offset) = true;
}

static int parse_long(struct parser *p, const char *text)
{
    size_t len = strcspn(text, "=");
    const struct option_spec *spec = find_long(p->table, text, len);
    if (spec == NULL)
        return unknown_option(p->table, text, len);
    char shown[NAME_LENGTH_MAX + 3];
    snprintf(shown, sizeof(shown), "--%.*s", (int)len, text);
    const char *joined = text[len] == '=' ? text + len + 1 : NULL;
    if (takes_value(spec))
        return parse_value(p, &(struct given){ spec, shown, joined });
    if (joined != NULL)
        return options_wrong(p->table, "option %s takes no value, found '%s'", shown, joined);
    set_flag(p, spec);
    return OPTIONS_GO_ON;
}

/* One argument of short options: flags, the last of which may be an option with a value. */
static int parse_letters(struct parser *p, const char *text)
{
    for (; *text != '\0'; text++) {
        const struct option_spec *spec = find_letter(p->table, *text);
        if (spec == NULL)
            return options_wrong(p->table, "unknown option '-%s'", text);
        char shown[] = { '-', *text, '\0' };
        if (takes_value(spec))
            return parse_value(p, &(struct given){ spec, shown, text[1] != '\0' ? text + 1 : NULL });
        set_flag(p, spec);
    }
    return OPTIONS_GO_ON;
}

static bool parse_columns(const char *text, int *source, int *target)
{
    int end = 0;
    if (strspn(text, "0123456789,") != strlen(text))
        return false;
    if (target == NULL)
        return sscanf(text, "%5d%n", source, &end) == 1 && text[end] == '\0' && *source > 0;
    return sscanf(text, "%5d,%5d%n", source, target, &end) == 2 && text[end] == '\0' && *source > 0 &&
           *target > 0;
}

int options_columns(const struct option_table *table, const char *text, int *source, int *target)
{
    if (text == NULL || parse_columns(text, source, target))
        return OPTIONS_GO_ON;
    return options_wrong(table, "option --tsv-fields: found '%s', expected %s", text,
                         target != NULL ? "two numbers of columns, as in 1,2"
                                        : "the number of one column, as in 2: there is one text");
}

int options_weights(const struct option_table *table, const char *name, const char *text, double *weights,
                    int n, const char *of_what)
{
    int found = 0;
    for (const char *at = text; at != NULL; found++) {
        char *end;
        double weight = isdigit((unsigned char)*at) || *at == '.' ? strtod(at, &end) : 0;
        if (!(weight > 0 && weight <= 1000) || (*end != ',' && *end != '\0'))
            return options_wrong(table,
                                 "option --%s: found '%s', expected numbers above 0, up to 1000, with commas "
                                 "between",
                                 name, text);
        if (found < n)
            weights[found] = weight;
        at = *end == ',' ? end + 1 : NULL;
    }
    if (found != n)
        return options_wrong(table, "option --%s: found %d weight%s, expected one for each %s: %d", name,
                             found, found == 1 ? "" : "s", of_what, n);
    return OPTIONS_GO_ON;
}

int options_apply(const struct option_table *table, void *fields, int argc, char **argv, int *n_operands)
{
    struct parser p = { table, fields, argc, argv, 1, false };
    *n_operands = 0;
    for (bool only_operands = false; p.next < argc && !p.help;) {
        char *text = argv[p.next++];
        int status = OPTIONS_GO_ON;
        if (!only_operands && strcmp(text, "--") == 0)
            only_operands = true;
        else if (!only_operands && strncmp(text, "--", 2) == 0)
            status = parse_long(&p, text + 2);
        else if (!only_operands && text[0] == '-' && text[1] != '\0')
            status = parse_letters(&p, text + 1);
        else
            argv[1 + (*n_operands)++] = text;
        if (status != OPTIONS_GO_ON)
            return status;
    }
    if (!p.help)
        return OPTIONS_GO_ON;
    table->defaults(fields); /* what was given before -h is no default */
    options_help(table, fields);
    return EXIT_SUCCESS;
}

int options_parse(const struct option_table *table, void *fields, int argc, char **argv, int *n_operands)
{
    *n_operands = 0;
    table->defaults(fields);
    if (argc == 2 && strcmp(argv[1], "--list-options") == 0) {
        options_list(table, fields);
        return EXIT_SUCCESS;
    }
    return options_apply(table, fields, argc, argv, n_operands);
}
