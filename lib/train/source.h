/*
 * source.h: a text of the corpus as a plain file that can be read at any place, whatever it comes as: a file,
 * plain or gzip, standard input ("-"), a pipe, or a command (a name that ends in a vertical bar, as in
 * "zcat a.gz b.gz |", run by /bin/sh).
 */
#ifndef TFM_TRAIN_SOURCE_H
#define TFM_TRAIN_SOURCE_H

#include "base/err.h"

struct source {
    char *name; /* for messages */
    int fd;     /* of a plain file */
};

struct spool { /* where text goes that is not at hand as a plain file */
    const char *folder;
    const char *name;         /* the files' names begin so */
    bool is_kept;             /* text that can be read only once is kept ... */
    bool goes_on;             /* ... and taken from there by a training that goes on */
    volatile const int *stop; /* of the training, NULL: none */
};

/* True for what is no file: standard input or a command. */
bool source_is_stream(const char *path);

#define SOURCE_MAX 3

/* Opens the files of a corpus, at most SOURCE_MAX; parts names what each is: text that is kept is named so.
 * Those that can be read only once are read in step, a line of each in turn, since one program may write all.
 * A command that fails is an error. On failure nothing is open. */
enum tfm_status source_open(struct source *sources, const char *const *paths, const char *const *parts, int n,
                            const struct spool *spool, struct tfm_error *err);
void source_release(struct source *source);

/* Reads `size` bytes at a place; *n gets how many there were: fewer only at the end of the file. */
enum tfm_status source_read(const struct source *source, char *data, size_t size, uint64_t place, size_t *n,
                            struct tfm_error *err);

#endif
