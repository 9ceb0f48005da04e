/*
 * worker.h: what the parts of a translator share: the state of a translator and of its workers, and memory
 * that lasts from a call to the next. For translator.c (the rounds), line_terms.c and result.c (parts of them).
 */
#ifndef TFM_DECODE_WORKER_H
#define TFM_DECODE_WORKER_H

#include "base/pool.h"
#include "base/str.h"
#include "decode/ensemble.h"
#include "decode/glossary.h"
#include "decode/plan.h"

struct worker {
    struct arena scratch, kept;
    struct ints pieces; /* of one line */
    struct str text;    /* of one line */
    struct str spare;   /* while it is changed */
    struct glossary_finds finds;
    struct profile *profile; /* NULL unless options.profile ... */
    struct profile watch;    /* ... and then this */
    enum tfm_status status;
    struct tfm_error err; /* valid when status is not TFM_OK */
};

struct tfm_translator {
    struct ensemble ensemble;
    const struct net *net; /* its first, of which attention is taken */
    const struct spm *source, *target;
    const struct kern *kern;
    struct shortlist *shortlist; /* read by this translator, or NULL */
    struct glossary *glossary;   /* likewise */
    struct extents *extents;     /* to be noted, or NULL */
    struct tfm_translate_options options;
    struct search_options search;
    struct pool *pool;
    int n_workers;
    struct worker *workers;

    uint64_t n_lines_before;                        /* translated in earlier calls */
    double seconds;                                 /* spent in calls */
    struct tfm_profile_part parts[N_PROFILE_PARTS]; /* of the profile given last */

    /* of the call */
    const char *const *texts;   /* NULL: those of a language model are all empty */
    const char *const *targets; /* NULL: nothing is forced */
    bool is_scoring;            /* the targets are whole translations */
    struct plan plan;
    struct plan_line *lines; /* these two grow where a call has more lines than all before */
    struct tfm_translation *translations;
    size_t lines_cap, translations_cap;
};

/* Memory that lasts until the next call, or NULL with the worker's status set. */
void *worker_keep(struct worker *worker, size_t size);

/* Before round 2, with a glossary, a task of the pool: looks for the terms of line i. */
void line_terms_find(void *translator, int i, int w);

/* Round 3, a task of the pool: makes translation i of the call out of what the search found for line i. */
void result_make(void *translator, int i, int w);

#endif
