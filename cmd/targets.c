/*
 * targets.c: plans the files of `tfm translate --output-dir` before any work, so that nothing is written
 * over: neither an input, whatever name it goes by, nor another input's translation. Both are found by
 * sorting, since a folder's worth of files can be many thousands.
 */
#include "targets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct claim { /* of an input on a target */
    const char *path, *input;
};

struct identity { /* of an input, which may have several names */
    dev_t device;
    ino_t inode;
    const char *input;
};

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static int compare_identities(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static enum tfm_status no_memory(struct tfm_error *err)
{
    return cmd_error(err, TFM_ENOMEM, "no memory for the names of the files");
}

/* ---- names ---- */

static enum tfm_status name_target(char **path, const char *folder, const char *suffix, const char *input,
                                   struct tfm_error *err)
{
    const char *slash = strrchr(input, '/');
    const char *name = slash != NULL ? slash + 1 : input;
    int len = (int)strlen(name);
    if (strcmp(input, "-") == 0)
        return cmd_error(err, TFM_EINVAL, "option --output-dir needs files with names, found '-'");
    if (len > 3 && strcmp(name + len - 3, ".gz") == 0)
        len -= 3;
    if (len == 0)
        return cmd_error(err, TFM_EINVAL, "option --output-dir needs files with names, found '%s'", input);
    if (asprintf(path, "%s/%.*s%s", folder, len, name, suffix != NULL ? suffix : "") < 0) {
        *path = NULL;
        return no_memory(err);
    }
    return TFM_OK;
}

/* ---- checks ---- */

static enum tfm_status check_distinct(const struct targets *t, char **inputs, struct tfm_error *err)
{
    enum tfm_status status = TFM_OK;
    struct claim *claims = calloc((size_t)t->n, sizeof(*claims));
    if (claims == NULL)
        return no_memory(err);
    for (int i = 0; i < t->n; i++)
        claims[i] = (struct claim){ t->path[i], inputs[i] };
    qsort(claims, (size_t)t->n, sizeof(*claims), compare_claims);
    for (int i = 1; i < t->n && status == TFM_OK; i++) {
        if (compare_claims(&claims[i - 1], &claims[i]) == 0)
            status = cmd_error(err, TFM_EINVAL, "%s and %s would both be translated into %s",
                               claims[i - 1].input, claims[i].input, claims[i].path);
    }
    free(claims);
    return status;
}

/* The input that is the same file as the target, by whatever name, or NULL. */
static const char *find_overwritten(const char *target, const struct identity *sorted, size_t n)
{
    struct stat found;
    if (stat(target, &found) != 0)
        return NULL;
    struct identity wanted = { found.st_dev, found.st_ino, NULL };
    const struct identity *same = bsearch(&wanted, sorted, n, sizeof(*sorted), compare_identities);
    return same != NULL ? same->input : NULL;
}

static enum tfm_status check_inputs_stay(const struct targets *t, char **inputs, struct tfm_error *err)
{
    enum tfm_status status = TFM_OK;
    size_t n = 0;
    struct identity *identities = calloc((size_t)t->n, sizeof(*identities));
    if (identities == NULL)
        return no_memory(err);
    for (int i = 0; i < t->n; i++) {
        struct stat found;
        if (stat(inputs[i], &found) == 0)
            identities[n++] = (struct identity){ found.st_dev, found.st_ino, inputs[i] };
    }
    qsort(identities, n, sizeof(*identities), compare_identities);
    for (int i = 0; i < t->n && status == TFM_OK; i++) {
        const char *input = find_overwritten(t->path[i], identities, n);
        if (input != NULL)
            status = cmd_error(
                err, TFM_EINVAL,
                "the translation of %s would overwrite the input %s; give another --output-dir or a "
                "--suffix",
                inputs[i], input);
    }
    free(identities);
    return status;
}

enum tfm_status targets_init(struct targets *targets, const char *folder, const char *suffix, char **inputs,
                             int n, struct tfm_error *err)
{
    enum tfm_status status = TFM_OK;
    *targets = (struct targets){ .path = calloc((size_t)n, sizeof(*targets->path)) };
    if (targets->path == NULL)
        return no_memory(err);
    for (; targets->n < n && status == TFM_OK; targets->n++)
        status = name_target(&targets->path[targets->n], folder, suffix, inputs[targets->n], err);
    if (status == TFM_OK)
        status = check_distinct(targets, inputs, err);
    if (status == TFM_OK)
        status = check_inputs_stay(targets, inputs, err);
    if (status != TFM_OK)
        targets_release(targets);
    return status;
}

void targets_release(struct targets *targets)
{
    for (int i = 0; i < targets->n; i++)
        free(targets->path[i]);
    free(targets->path);
    *targets = (struct targets){ 0 };
}

/* ---- the folder ---- */

enum tfm_status targets_make_folder(const char *folder, struct tfm_error *err)
{
    char part[PATH_MAX];
    for (const char *end = folder; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        if (snprintf(part, sizeof(part), "%.*s", (int)(end - folder), folder) >= (int)sizeof(part))
            return cmd_error(err, TFM_EIO, "cannot make the folder %s: %s", folder, strerror(ENAMETOOLONG));
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return cmd_error(err, TFM_EIO, "cannot make the folder %s: %s", part, strerror(errno));
    }
    return TFM_OK;
}
