/*
 * checkpoint.c: the folder of checkpoints. A checkpoint is written as .checkpoint-N.tmp (which checkpoint-*
 * does not name in a shell), every file fsynced, then renamed; then links are replaced by a rename, `last` at
 * the end; then what no link names is removed, but for some of the newest. So at every moment `last` names a
 * whole checkpoint, whatever kills the program. state.json is state.c's.
 */
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "model/model.h"

#define PREFIX     "checkpoint-"
#define BEST       "best-"
#define LAST_TO_BE "last.tmp"
#define MAX_LINKS  (1 + N_METRICS) /* last, best-* */

/* ---- names ---- */

/* NAME.tmp of a checkpoint, or NAME.tmp-<process>-<number> of a file (base/file.c). */
static bool is_temporary(const char *name)
{
    const char *tmp = strstr(name, ".tmp");
    long process;
    int number, end = 0;
    if (tmp == NULL || tmp == name)
        return false;
    return tmp[4] == '\0' || (sscanf(tmp, ".tmp-%ld-%d%n", &process, &number, &end) == 2 && tmp[end] == '\0');
}

static enum tfm_status remove_entry(const char *folder, const char *name, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, folder, name, err);
    if (status == TFM_OK && unlink(path.data) != 0)
        status = dir_remove(path.data, err);
    str_release(&path);
    return status;
}

/* Removes every entry of the folder that is among those told by name. */
static enum tfm_status remove_where(const char *folder, bool (*is_among)(const char *name, void *arg),
                                    void *arg, struct tfm_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return err_io(err, "cannot read the folder %s", folder);
    enum tfm_status status = TFM_OK;
    struct dirent *entry;
    while (status == TFM_OK && (entry = readdir(dir)) != NULL) {
        if (is_among(entry->d_name, arg))
            status = remove_entry(folder, entry->d_name, err);
    }
    closedir(dir);
    return status;
}

static bool is_half_written(const char *name, void *arg)
{
    (void)arg;
    return is_temporary(name);
}

/* In the model's folder, which may hold files of the user's, only what a training writes there. */
static bool is_half_model(const char *name, void *arg)
{
    static const char *const written[] = { MODEL_CONFIG,       MODEL_WEIGHTS, MODEL_VOCAB, MODEL_SOURCE_VOCAB,
                                           MODEL_TARGET_VOCAB, "source.txt",  "target.txt" };
    (void)arg;
    for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++) {
        size_t len = strlen(written[i]);
        if (strncmp(name, written[i], len) == 0 && strncmp(name + len, ".tmp", 4) == 0)
            return is_temporary(name);
    }
    return false;
}

struct kept {
    char names[MAX_LINKS][64];
    int n;
    int oldest, newest; /* updates of the checkpoints that are kept without a name */
};

/* N of checkpoint-N; false where the name is another. */
static bool read_update(const char *name, int *update)
{
    int end = 0;
    return sscanf(name, PREFIX "%d%n", update, &end) == 1 && name[end] == '\0';
}

/* A checkpoint that another of its number has replaced; what a kill left of that (base/file.c). */
static bool is_replaced(const char *name)
{
    int update, end = 0;
    long process;
    return sscanf(name, PREFIX "%d.old-%ld%n", &update, &process, &end) == 2 && name[end] == '\0';
}

static bool is_unwanted(const char *name, void *arg)
{
    const struct kept *kept = arg;
    int update;
    if (is_replaced(name))
        return true;
    if (!read_update(name, &update)) /* not of the training's making */
        return false;
    if (update >= kept->oldest && update <= kept->newest)
        return false;
    for (int i = 0; i < kept->n; i++) {
        if (strcmp(name, kept->names[i]) == 0)
            return false;
    }
    return true;
}

/* The name that a link holds; false where there is no such link. */
static bool read_link(const struct checkpoints *c, const char *link, char *name, size_t size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", c->folder.data, link);
    ssize_t n = readlink(path, name, size - 1);
    name[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* In ascending order. */
static enum tfm_status list_updates(struct ints *updates, const char *folder, struct tfm_error *err)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return err_io(err, "cannot read the folder %s", folder);
    enum tfm_status status = TFM_OK;
    struct dirent *entry;
    int update;
    while (status == TFM_OK && (entry = readdir(dir)) != NULL) {
        if (read_update(entry->d_name, &update))
            status = ints_add(updates, &update, 1, err);
    }
    closedir(dir);
    if (updates->n > 0)
        qsort(updates->data, updates->n, sizeof(*updates->data), compare_ints);
    return status;
}

/* The newest n up to the one named `last`: a later one was left by a run that was killed before it
 * counted. */
static enum tfm_status find_newest(struct kept *kept, const struct checkpoints *c, int n, const char *last,
                                   struct tfm_error *err)
{
    struct ints updates = { 0 };
    kept->oldest = 1; /* no update: the range is empty */
    if (!read_update(last, &kept->newest))
        return TFM_OK;
    enum tfm_status status = list_updates(&updates, c->folder.data, err);
    if (status == TFM_OK) {
        size_t up_to = 0;
        while (up_to < updates.n && updates.data[up_to] <= kept->newest)
            up_to++;
        kept->oldest = up_to >= (size_t)n ? updates.data[up_to - (size_t)n] : 0;
    }
    ints_release(&updates);
    return status;
}

enum tfm_status checkpoint_prune(const struct checkpoints *c, int n_newest, struct tfm_error *err)
{
    struct kept kept = { 0 };
    char link[64];
    kept.n += read_link(c, "last", kept.names[kept.n], sizeof(kept.names[0]));
    TRY(find_newest(&kept, c, n_newest, kept.names[0], err));
    for (int m = 0; m < N_METRICS; m++) {
        snprintf(link, sizeof(link), BEST "%s", train_options_metric((enum metric)m));
        kept.n += read_link(c, link, kept.names[kept.n], sizeof(kept.names[0]));
    }
    return remove_where(c->folder.data, is_unwanted, &kept, err);
}

/* ---- the folder ---- */

/* A first save that was killed, or failed, on its way: no checkpoint counts yet, and the name that `last` will
 * have stands in its temporary place. */
static bool is_first_save(const struct checkpoints *c)
{
    return !checkpoint_exists(c, "last") && checkpoint_exists(c, LAST_TO_BE);
}

static bool is_of_first_save(const char *name, void *arg)
{
    int update;
    (void)arg;
    return read_update(name, &update) || strncmp(name, BEST, strlen(BEST)) == 0;
}

/* A copy that follows links has folders where the names should be, and one that leaves links out has nothing.
 * Without its name `last` a training would begin again, and write over the model. */
static enum tfm_status check_last(const char *last, const char *folder, struct tfm_error *err)
{
    struct ints updates = { 0 };
    char target[64];
    if (readlink(last, target, sizeof(target)) >= 0)
        return TFM_OK;
    bool is_no_link = errno == EINVAL;
    enum tfm_status status = list_updates(&updates, folder, err);
    int newest = status == TFM_OK && updates.n > 0 ? updates.data[updates.n - 1] : -1;
    if (is_no_link)
        status = err_set(
            err, TFM_EFORMAT,
            "%s should be a symbolic link and is none, as in a copy made by a program that follows "
            "links: copy again with one that keeps them (cp -a, rsync -a), or replace it by a link to "
            "the checkpoint-N of the highest number",
            last);
    else if (newest >= 0)
        status = err_set(
            err, TFM_EFORMAT,
            "%s, the link that names the checkpoint to go on from, is missing, as in a copy made by a program "
            "that leaves links out: copy again with one that keeps them (cp -a, rsync -a), or make it with "
            "ln -s " PREFIX "%d %s; or name another --model",
            last, newest, last);
    ints_release(&updates);
    return status;
}

/* A training begins again, and the model that it may have exported already is its own to write over. */
static enum tfm_status forget_first_save(const struct checkpoints *c, const char *model, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, model, MODEL_CONFIG, err);
    if (status == TFM_OK && unlink(path.data) != 0 && errno != ENOENT)
        status = err_io(err, "cannot remove %s", path.data);
    str_release(&path);
    return status == TFM_OK ? remove_where(c->folder.data, is_of_first_save, NULL, err) : status;
}

static enum tfm_status check_links(const struct checkpoints *c, const char *model, struct tfm_error *err)
{
    struct str path = { 0 };
    if (is_first_save(c))
        return forget_first_save(c, model, err);
    enum tfm_status status = path_join(&path, c->folder.data, "last", err);
    if (status == TFM_OK)
        status = check_last(path.data, c->folder.data, err);
    str_release(&path);
    return status;
}

/* What a start makes in the model's folder before it trains; that folder itself is the last. */
static const char *const start_names[] = { "checkpoints", MODEL_VOCAB, MODEL_SOURCE_VOCAB, MODEL_TARGET_VOCAB,
                                           "" };
#define N_START_NAMES (int)(sizeof(start_names) / sizeof(start_names[0]))

static enum tfm_status note_missing(struct checkpoints *c, const char *model, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < N_START_NAMES && status == TFM_OK; i++) {
        status = path_join(&path, model, start_names[i], err);
        if (status == TFM_OK && !file_exists(path.data))
            c->made |= 1u << i;
    }
    str_release(&path);
    return status;
}

void checkpoint_abandon(const struct checkpoints *c, const char *model)
{
    struct ints updates = { 0 };
    struct str path = { 0 };
    struct tfm_error ignored; /* a failure came before, or the program was stopped */
    enum tfm_status status = list_updates(&updates, c->folder.data, &ignored);
    bool is_needed = status != TFM_OK || updates.n > 0;
    for (int i = 0; i < N_START_NAMES && !is_needed && status == TFM_OK; i++) {
        status = path_join(&path, model, start_names[i], &ignored);
        if (status != TFM_OK || !(c->made & 1u << i))
            continue;
        if (i == 0)
            dir_remove(path.data, &ignored);
        else if (unlink(path.data) != 0)
            rmdir(path.data); /* stays where it holds anything */
    }
    ints_release(&updates);
    str_release(&path);
}

static enum tfm_status take_lock(struct checkpoints *c, const char *model, struct tfm_error *err)
{
    c->lock = open(c->folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->lock < 0)
        return err_io(err, "cannot open the folder %s", c->folder.data);
    if (flock(c->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return err_set(err, TFM_EIO,
                       "another training is running in %s: wait for its end or name another --model", model);
    const char *const written[] = { c->folder.data, model };
    for (int i = 0; i < 2; i++) {
        if (access(written[i], W_OK) != 0)
            return err_io(err, "cannot write to the folder %s", written[i]);
    }
    return TFM_OK;
}

enum tfm_status checkpoint_lock(struct checkpoints *c, const char *model, struct tfm_error *err)
{
    *c = (struct checkpoints){ .lock = -1 };
    enum tfm_status status = path_join(&c->folder, model, start_names[0], err);
    if (status == TFM_OK && file_exists(c->folder.data))
        status = take_lock(c, model, err);
    if (status != TFM_OK)
        checkpoint_release(c);
    return status;
}

enum tfm_status checkpoint_init(struct checkpoints *c, const char *model, struct tfm_error *err)
{
    *c = (struct checkpoints){ .lock = -1 };
    enum tfm_status status = path_join(&c->folder, model, start_names[0], err);
    if (status == TFM_OK)
        status = note_missing(c, model, err);
    if (status == TFM_OK)
        status = dir_make(model, err);
    if (status == TFM_OK)
        status = dir_make(c->folder.data, err);
    if (status == TFM_OK)
        status = take_lock(c, model, err);
    if (status == TFM_OK)
        status = check_links(c, model, err);
    if (status == TFM_OK)
        status = remove_where(c->folder.data, is_half_written, NULL, err);
    if (status == TFM_OK)
        status = remove_where(model, is_half_model, NULL, err);
    if (status != TFM_OK)
        checkpoint_release(c);
    return status;
}

void checkpoint_release(struct checkpoints *c)
{
    if (c->lock >= 0)
        close(c->lock);
    str_release(&c->folder);
    c->lock = -1;
}

bool checkpoint_exists(const struct checkpoints *c, const char *link)
{
    char name[64];
    return read_link(c, link, name, sizeof(name));
}

/* ---- writing ---- */

static enum tfm_status write_block(struct str *path, const char *folder, const char *name,
                                   const struct params *params, const real *block, struct pool *pool,
                                   struct tfm_error *err)
{
    if (block == NULL)
        return TFM_OK;
    TRY(path_join(path, folder, name, err));
    return safetensors_write(path->data, params, block, TENSOR_F32, pool, err);
}

static enum tfm_status write_files(struct str *path, const char *folder, const struct train_state *state,
                                   const struct settings *settings, const struct params *params,
                                   const struct optimizer *o, struct pool *pool, struct tfm_error *err)
{
    TRY(dir_make(folder, err));
    TRY(write_block(path, folder, CHECKPOINT_WEIGHTS, params, o->weights, pool, err));
    TRY(write_block(path, folder, CHECKPOINT_AVERAGE, params, o->average, pool, err));
    TRY(write_block(path, folder, CHECKPOINT_MOMENT1, params, o->moment1, pool, err));
    TRY(write_block(path, folder, CHECKPOINT_MOMENT2, params, o->moment2, pool, err));
    TRY(path_join(path, folder, CHECKPOINT_STATE, err));
    return state_write(state, settings, path->data, err);
}

enum tfm_status checkpoint_write(const struct checkpoints *c, const struct train_state *state,
                                 const struct settings *settings, const struct params *params,
                                 const struct optimizer *optimizer, struct pool *pool, struct tfm_error *err)
{
    struct str path = { 0 }, final = { 0 }, temporary = { 0 };
    enum tfm_status status = str_printf(&final, err, "%s/" PREFIX "%ld", c->folder.data, state->update);
    if (status == TFM_OK)
        status = str_printf(&temporary, err, "%s/." PREFIX "%ld.tmp", c->folder.data, state->update);
    if (status == TFM_OK)
        status = write_files(&path, temporary.data, state, settings, params, optimizer, pool, err);
    if (status == TFM_OK)
        status = dir_rename(temporary.data, final.data, err);
    if (status != TFM_OK && temporary.len > 0) {
        struct tfm_error ignored; /* the first failure is the one to tell */
        dir_remove(temporary.data, &ignored);
    }
    str_release(&path);
    str_release(&final);
    str_release(&temporary);
    return status;
}

enum tfm_status checkpoint_rewrite(const struct checkpoints *c, const struct train_state *state,
                                   const struct settings *settings, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status =
        str_printf(&path, err, "%s/" PREFIX "%ld/" CHECKPOINT_STATE, c->folder.data, state->update);
    if (status == TFM_OK)
        status = state_write(state, settings, path.data, err);
    str_release(&path);
    return status;
}

/* Leaves temporary, a link to checkpoint-N. */
static enum tfm_status write_link(const char *temporary, long update, struct tfm_error *err)
{
    char name[64];
    snprintf(name, sizeof(name), PREFIX "%ld", update);
    unlink(temporary);
    return symlink(name, temporary) == 0 ? TFM_OK : err_io(err, "cannot write the link %s", temporary);
}

enum tfm_status checkpoint_announce(const struct checkpoints *c, long update, struct tfm_error *err)
{
    struct str temporary = { 0 };
    enum tfm_status status = path_join(&temporary, c->folder.data, LAST_TO_BE, err);
    if (status == TFM_OK)
        status = write_link(temporary.data, update, err);
    fsync(c->lock); /* the folder itself */
    str_release(&temporary);
    return status;
}

enum tfm_status checkpoint_link(const struct checkpoints *c, const char *link, long update,
                                struct tfm_error *err)
{
    struct str path = { 0 }, temporary = { 0 };
    enum tfm_status status = path_join(&path, c->folder.data, link, err);
    if (status == TFM_OK)
        status = str_printf(&temporary, err, "%s.tmp", path.data);
    if (status == TFM_OK)
        status = write_link(temporary.data, update, err);
    if (status == TFM_OK && rename(temporary.data, path.data) != 0)
        status = err_io(err, "cannot write the link %s", path.data);
    fsync(c->lock);
    str_release(&path);
    str_release(&temporary);
    return status;
}

/* ---- reading ---- */

enum tfm_status checkpoint_read_state(const struct checkpoints *c, const char *link,
                                      struct train_state *state, const struct settings *settings,
                                      struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = str_printf(&path, err, "%s/%s/" CHECKPOINT_STATE, c->folder.data, link);
    if (status == TFM_OK)
        status = state_read(state, settings, path.data, err);
    str_release(&path);
    return status;
}

static enum tfm_status read_block(struct str *path, const char *folder, const char *name,
                                  const struct params *params, real *block, struct pool *pool,
                                  struct tfm_error *err)
{
    enum tensor_type type;
    TRY(path_join(path, folder, name, err));
    return safetensors_read(path->data, params, block, &type, pool, err);
}

static enum tfm_status read_blocks(struct str *path, const char *folder, const struct train_state *state,
                                   const struct params *params, struct optimizer *o, struct pool *pool,
                                   struct tfm_error *err)
{
    TRY(read_block(path, folder, CHECKPOINT_WEIGHTS, params, o->weights, pool, err));
    TRY(read_block(path, folder, CHECKPOINT_MOMENT1, params, o->moment1, pool, err));
    TRY(read_block(path, folder, CHECKPOINT_MOMENT2, params, o->moment2, pool, err));
    if (o->average == NULL)
        return TFM_OK;
    TRY(path_join(path, folder, CHECKPOINT_AVERAGE, err));
    if (state->has_average || file_exists(path->data))
        return read_block(path, folder, CHECKPOINT_AVERAGE, params, o->average, pool, err);
    memcpy(o->average, o->weights, o->size * sizeof(real)); /* the mean begins here */
    return TFM_OK;
}

enum tfm_status checkpoint_read_blocks(const struct checkpoints *c, const char *link,
                                       const struct train_state *state, const struct params *params,
                                       struct optimizer *optimizer, struct pool *pool, struct tfm_error *err)
{
    struct str path = { 0 }, folder = { 0 };
    enum tfm_status status = path_join(&folder, c->folder.data, link, err);
    if (status == TFM_OK)
        status = read_blocks(&path, folder.data, state, params, optimizer, pool, err);
    str_release(&path);
    str_release(&folder);
    return status;
}
