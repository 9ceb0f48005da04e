/*
 * glossary.h: terms and how they are to be translated, from a file of lines source<TAB>target. Where a source
 * term occurs in a sentence as whole words, its target term has to come in the translation (terms.h).
 */
#ifndef TFM_DECODE_GLOSSARY_H
#define TFM_DECODE_GLOSSARY_H

#include "base/str.h"
#include "decode/terms.h"
#include "text/spm.h"

struct glossary {
    int n;
    struct glossary_entry *entries; /* [n] in the order of their source terms' bytes */
    struct term *terms;             /* [n] of the entries */
    struct str text;                /* all terms, each with a NUL behind it */
    struct ints pieces;
    bool *ends_word, *goes_on; /* [target pieces] (terms.h) */
    bool ignore_case;
};

/* Terms are cut and compared as the vocabularies do it. */
enum tfm_status glossary_read(struct glossary **glossary, const char *path, bool ignore_case,
                              const struct spm *source, const struct spm *target, struct tfm_error *err);
void glossary_free(struct glossary *glossary);

struct glossary_match {
    int term;       /* of g->terms */
    int first, end; /* source pieces of the line that it stands in: first .. end - 1 */
};

/* What is found in a line, and scratch for it. Starts as all zeros. */
struct glossary_finds {
    struct ints matches;     /* of struct glossary_match */
    struct str plain, lower; /* the latter also for what is taken of the text */
    struct ints ends;
};

/* The terms of a line, in the order in which they stand in it. They do not overlap: of two that
 * would, the longer one is taken. */
enum tfm_status glossary_find(struct glossary_finds *finds, const struct glossary_match **matches, int *n,
                              const struct glossary *g, const char *text, const struct spm *source,
                              struct tfm_error *err);
void glossary_release(struct glossary_finds *finds);

#endif
