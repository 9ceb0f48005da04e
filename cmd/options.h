/*
 * options.h: one table of options a command. The table drives the parser, the text of -h and the test that
 * compares both with the man page (through the hidden first argument --list-options), so that none of them
 * can fall behind.
 *
 * Each entry names the field of the command's own struct that its value goes to; the kind of value follows
 * from the field's type, and the default that -h shows is what the field holds before parsing.
 */
#ifndef TFM_CMD_OPTIONS_H
#define TFM_CMD_OPTIONS_H

#include "tfm.h"

enum option_kind {
    OPTION_HEADING, /* an entry without a name: its help is the heading of the entries that follow */
    OPTION_HELP,
    OPTION_FLAG,
    OPTION_INT,
    OPTION_SEED,
    OPTION_FLOAT,
    OPTION_DOUBLE,
    OPTION_STRING,   /* with '|' in its argument's name: one of the words between the bars */
    OPTION_PAIR,     /* two strings, given one after the other; the second one may lack with `bare`, which then is
                        it, or where its name stands in brackets, "SRC [TRG]" */
    OPTION_ENUM,     /* the words between the bars are the enumerators, from 0 on */
    OPTION_INTERVAL, /* an amount of training: 10e, 100Ku, 1Gt */
    OPTION_CORPUS,   /* a corpus more: two files or one, as the argument's name has two words or one */
    OPTION_NAMES,    /* a string more; max of them, at most OPTION_NAMES_MAX */
};

#define OPTION_NAMES_MAX 64

struct option_names { /* the strings given, in their order */
    const char *list[OPTION_NAMES_MAX];
    int n;
};

struct corpus_list { /* what options of a kind were given, in their order */
    struct tfm_corpus *list; /* free it */
    int n;
};

struct option_spec {
    const char *name;  /* long name, without dashes */
    const char *alias; /* a second long name that users of other tools know; or NULL */
    char letter;       /* short name, or 0 */
    enum option_kind kind;
    size_t offset;        /* of the field */
    const char *argument; /* name of the value in help; "SRC TRG" or "SRC [TRG]" for two */
    const char *bare;     /* what the option means without a value; NULL: a value is needed */
    double min, max;      /* of a number */
    const char *standard; /* the default in words, where the field's content does not say it; "" for none */
    const char *help;
};

/* Initialises .kind and .offset from a field of a struct. */
#define OPTION_FIELD(type, field)                                                                            \
    .offset = offsetof(type, field), .kind = _Generic(((type *)0)->field,              \
                                                      bool: OPTION_FLAG,               \
                                                      int: OPTION_INT,                 \
                                                      uint64_t: OPTION_SEED,           \
                                                      float: OPTION_FLOAT,             \
                                                      double: OPTION_DOUBLE,           \
                                                      const char *: OPTION_STRING,     \
                                                      const char **: OPTION_PAIR,      \
                                                      unsigned: OPTION_ENUM,           \
                                                      struct corpus_list: OPTION_CORPUS, \
                                                      struct option_names: OPTION_NAMES, \
                                                      struct tfm_interval: OPTION_INTERVAL)

/* Entries that several commands share. */
#define OPTION_HELP_ENTRY                                                                                    \
    {                                                                                                        \
        .name = "help", .letter = 'h', .kind = OPTION_HELP, .help = "print this help and end"                \
    }
#define OPTION_CPU_HELP "use at most the kernels of this tier: ref, avx2, vnni, amx or auto"

struct option_table {
    const char *command;            /* "tfm translate" */
    const char *usage;              /* what follows it */
    const char *summary;            /* one sentence */
    void (*defaults)(void *fields); /* fills in the command's struct */
    const struct option_spec *options;
    int n;
    const char *place; /* where the words stand that are parsed, for messages; NULL: on the command line */
};

#define OPTIONS_GO_ON -1

/* Fills the command's struct from argv[1..], after its defaults. Operands are moved to argv[1..*n_operands].
 * Returns OPTIONS_GO_ON, or the exit status of a command that is done: after -h, or after wrong usage was
 * reported. */
int options_parse(const struct option_table *table, void *fields, int argc, char **argv, int *n_operands);

/* The same over what the struct holds already. */
int options_apply(const struct option_table *table, void *fields, int argc, char **argv, int *n_operands);

/* Reads the value of --tsv-fields, two numbers of columns, or one where target is NULL; a text of NULL leaves
 * them as they are. */
int options_columns(const struct option_table *table, const char *text, int *source, int *target);

/* Reads the value of an option that gives each of the n corpora, or models, a weight: "2,1,0.5". */
int options_weights(const struct option_table *table, const char *name, const char *text, double *weights, int n,
                    const char *of_what);

/* Reports wrong usage, "<command>: [<place>: ]<sentence>", and returns the exit status, 2. */
int options_wrong(const struct option_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* options_help.c: prints the help, or one tab-separated line an option: name, letter, argument, default,
 * alias ("-" where there is none). */
void options_help(const struct option_table *table, const void *defaults);
void options_list(const struct option_table *table, const void *defaults);

#endif
