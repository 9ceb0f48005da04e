/*
 * file.c: whole files and folders. What is written goes to "<path>.tmp-<process>-<number>" first, is fsynced
 * and then renamed, and the folder is fsynced, so that neither a reader nor a power cut ever meets half a
 * file. Two writers of the same path do not disturb each other; the last to commit wins.
 */
#include "base/file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define BUFFER_SIZE    ((size_t)64 << 10)
#define LONGEST_STREAM ((size_t)256 << 20) /* of a pipe or device, which may have no end, read as a whole */

struct file_writer {
    char *path;
    struct str temporary; /* empty where the target is written to directly */
    int fd;
    size_t n; /* bytes in buffer */
    char buffer[BUFFER_SIZE];
};

/* ---- reading ---- */

static enum tfm_status read_all(int fd, const char *path, char **data, size_t *size, struct tfm_error *err)
{
    struct stat status;
    /* The size is a hint: files grow, and those of /proc and pipes have none. One byte more notices the end
     * at once. */
    bool is_known = fstat(fd, &status) == 0;
    size_t cap = is_known && status.st_size > 0 ? (size_t)status.st_size + 1 : BUFFER_SIZE;
    size_t most = is_known && S_ISREG(status.st_mode) ? SIZE_MAX : LONGEST_STREAM;
    size_t n = 0;
    char *block = mem_alloc(cap + 1, err);
    if (block == NULL)
        return TFM_ENOMEM;
    for (;;) {
        if (n >= most) {
            mem_free(block);
            return err_set(err, TFM_EFORMAT, "%s: is no regular file and has not ended after %zu MiB", path,
                           most >> 20);
        }
        if (n == cap) {
            char *grown = mem_grow(block, cap + 1, cap * 2 + 1, 1, err);
            if (grown == NULL) {
                mem_free(block);
                return TFM_ENOMEM;
            }
            block = grown;
            cap *= 2;
        }
        ssize_t got = read(fd, block + n, cap - n);
        if (got == 0)
            break;
        if (got > 0) {
            n += (size_t)got;
        } else if (errno != EINTR) {
            err_io(err, "cannot read %s", path);
            mem_free(block);
            return TFM_EIO;
        }
    }
    *data = block;
    *size = n;
    return TFM_OK;
}

enum tfm_status file_read(const char *path, char **data, size_t *size, struct tfm_error *err)
{
    *data = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_io(err, "cannot open %s", path);
    enum tfm_status status = read_all(fd, path, data, size, err);
    close(fd);
    return status;
}

static enum tfm_status map_fd(const char **data, size_t *size, int fd, const char *path,
                              struct tfm_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return err_io(err, "cannot read %s", path);
    if (!S_ISREG(info.st_mode))
        return err_set(err, TFM_EIO, "%s is not a regular file", path);
    if (info.st_size == 0) /* of which nothing can be mapped */
        return TFM_OK;
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_io(err, "cannot map %s", path);
    *data = map;
    *size = (size_t)info.st_size;
    return TFM_OK;
}

enum tfm_status file_map(const char **data, size_t *size, const char *path, struct tfm_error *err)
{
    *data = NULL;
    *size = 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would wait for its writer */
    if (fd < 0)
        return err_io(err, "cannot open %s", path);
    enum tfm_status status = map_fd(data, size, fd, path, err);
    close(fd);
    return status;
}

void file_unmap(const char *data, size_t size)
{
    if (data != NULL)
        munmap((void *)(uintptr_t)data, size);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- writing ---- */

/* Opens the file to write into: the target itself where a rename would put a regular file in place of a
 * device. */
static enum tfm_status open_target(struct file_writer *w, struct tfm_error *err)
{
    struct stat status;
    if (stat(w->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        w->fd = open(w->path, O_WRONLY | O_CLOEXEC);
        return w->fd >= 0 ? TFM_OK : err_io(err, "cannot write %s", w->path);
    }
    for (int i = 0; i < 10000; i++) {
        str_clear(&w->temporary);
        TRY(str_printf(&w->temporary, err, "%s.tmp-%ld-%d", w->path, (long)getpid(), i));
        w->fd = open(w->temporary.data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            return TFM_OK;
        if (errno != EEXIST)
            break;
    }
    err_io(err, "cannot write %s", w->path);
    str_clear(&w->temporary); /* nothing of ours to be removed */
    return TFM_EIO;
}

enum tfm_status file_create(struct file_writer **writer, const char *path, struct tfm_error *err)
{
    *writer = NULL;
    struct file_writer *w = mem_alloc(sizeof(*w), err);
    if (w == NULL)
        return TFM_ENOMEM;
    w->fd = -1;
    w->path = mem_strdup(path, err);
    enum tfm_status status = w->path != NULL ? open_target(w, err) : TFM_ENOMEM;
    if (status != TFM_OK) {
        file_abandon(w);
        return status;
    }
    *writer = w;
    return TFM_OK;
}

enum tfm_status file_create_unnamed(struct file_writer **writer, const char *path, struct tfm_error *err)
{
    TRY(file_create(writer, path, err));
    unlink((*writer)->temporary.data);
    str_clear(&(*writer)->temporary);
    return TFM_OK;
}

static enum tfm_status write_bytes(struct file_writer *w, const char *data, size_t size,
                                   struct tfm_error *err)
{
    while (size > 0) {
        ssize_t n = write(w->fd, data, size);
        if (n < 0 && errno != EINTR)
            return err_io(err, "cannot write %s", w->path);
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return TFM_OK;
}

static enum tfm_status flush(struct file_writer *w, struct tfm_error *err)
{
    TRY(write_bytes(w, w->buffer, w->n, err));
    w->n = 0;
    return TFM_OK;
}

enum tfm_status file_add(struct file_writer *writer, const void *data, size_t size, struct tfm_error *err)
{
    struct file_writer *w = writer;
    if (size > BUFFER_SIZE - w->n)
        TRY(flush(w, err));
    if (size > BUFFER_SIZE)
        return write_bytes(w, data, size, err);
    if (size > 0)
        memcpy(w->buffer + w->n, data, size);
    w->n += size;
    return TFM_OK;
}

/* Makes a name in a folder durable. Some file systems cannot, and then there is nothing better to be done. */
static enum tfm_status sync_folder_of(const char *path, struct tfm_error *err)
{
    struct str folder = { 0 };
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    enum tfm_status status = str_printf(&folder, err, "%.*s.", (int)len, path);
    if (status == TFM_OK) {
        int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && fsync(fd) != 0 && errno == EIO)
            status = err_io(err, "cannot write to the folder of %s", path);
        if (fd >= 0)
            close(fd);
    }
    str_release(&folder);
    return status;
}

static enum tfm_status commit(struct file_writer *w, struct tfm_error *err)
{
    bool is_direct = w->temporary.len == 0;
    TRY(flush(w, err));
    if (fsync(w->fd) != 0 && !(is_direct && (errno == EINVAL || errno == ENOTSUP || errno == EROFS)))
        return err_io(err, "cannot write %s", w->path);
    int failed = close(w->fd);
    w->fd = -1;
    if (failed)
        return err_io(err, "cannot write %s", w->path);
    if (is_direct)
        return TFM_OK;
    if (rename(w->temporary.data, w->path) != 0)
        return err_io(err, "cannot rename %s to %s", w->temporary.data, w->path);
    str_clear(&w->temporary);
    return sync_folder_of(w->path, err);
}

enum tfm_status file_commit(struct file_writer *writer, struct tfm_error *err)
{
    enum tfm_status status = commit(writer, err);
    file_abandon(writer);
    return status;
}

void file_abandon(struct file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    if (writer->temporary.len > 0)
        unlink(writer->temporary.data);
    str_release(&writer->temporary);
    mem_free(writer->path);
    mem_free(writer);
}

enum tfm_status file_detach(struct file_writer *writer, int *fd, struct tfm_error *err)
{
    enum tfm_status status = flush(writer, err);
    *fd = -1;
    if (status == TFM_OK) {
        *fd = writer->fd;
        writer->fd = -1;
    }
    file_abandon(writer);
    return status;
}

enum tfm_status file_write(const char *path, const void *data, size_t size, struct tfm_error *err)
{
    struct file_writer *writer;
    TRY(file_create(&writer, path, err));
    enum tfm_status status = file_add(writer, data, size, err);
    if (status != TFM_OK) {
        file_abandon(writer);
        return status;
    }
    return file_commit(writer, err);
}

/* ---- folders ---- */

enum tfm_status dir_make(const char *path, struct tfm_error *err)
{
    struct str part = { 0 };
    enum tfm_status status = TFM_OK;
    for (const char *end = path; status == TFM_OK && *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        str_clear(&part);
        status = str_add(&part, path, (size_t)(end - path), err);
        if (status == TFM_OK && mkdir(part.data, 0777) != 0 && errno != EEXIST) {
            /* A folder that is there may forbid writing, or be on a file system that does. */
            int code = errno;
            struct stat found;
            bool is_there = stat(part.data, &found) == 0 && S_ISDIR(found.st_mode);
            errno = code;
            if (!is_there)
                status = err_io(err, "cannot make the folder %s", part.data);
        }
    }
    str_release(&part);
    TRY(status);
    struct stat found;
    if (stat(path, &found) != 0)
        return err_io(err, "cannot make the folder %s", path);
    if (!S_ISDIR(found.st_mode))
        return err_set(err, TFM_EIO, "cannot make the folder %s: there is a file of that name", path);
    return TFM_OK;
}

/* For file systems that cannot exchange two names: there is a moment in which `to` does not exist. */
static enum tfm_status replace_in_steps(const char *from, const char *to, struct tfm_error *err)
{
    struct str aside = { 0 };
    enum tfm_status status = str_printf(&aside, err, "%s.old-%ld", to, (long)getpid());
    if (status == TFM_OK && rename(to, aside.data) != 0)
        status = err_io(err, "cannot rename %s to %s", to, aside.data);
    else if (status == TFM_OK && rename(from, to) != 0) {
        status = err_io(err, "cannot rename %s to %s", from, to);
        rename(aside.data, to);
    } else if (status == TFM_OK) {
        status = sync_folder_of(to, err);
        if (status == TFM_OK)
            status = dir_remove(aside.data, err);
    }
    str_release(&aside);
    return status;
}

enum tfm_status dir_rename(const char *from, const char *to, struct tfm_error *err)
{
    int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_io(err, "cannot rename the folder %s", from);
    fsync(fd); /* the names in it, before its own */
    close(fd);
    if (rename(from, to) == 0) {
        TRY(sync_folder_of(from, err));
        return sync_folder_of(to, err);
    }
    if (errno != ENOTEMPTY && errno != EEXIST)
        return err_io(err, "cannot rename %s to %s", from, to);
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) != 0)
        return replace_in_steps(from, to, err);
    TRY(sync_folder_of(to, err));
    return dir_remove(from, err); /* which is now the old one */
}

/* Empties a folder; its folders too if deeper is true. Closes fd. */
static bool remove_entries(int fd, bool deeper)
{
    DIR *dir = fdopendir(fd);
    if (dir == NULL) {
        close(fd);
        return false;
    }
    bool done = true;
    struct dirent *entry;
    while (done && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
            continue;
        done = false;
        if (deeper && errno == EISDIR) {
            int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            done = sub >= 0 && remove_entries(sub, false) && unlinkat(fd, name, AT_REMOVEDIR) == 0;
        }
    }
    int code = errno;
    closedir(dir);
    errno = code;
    return done;
}

enum tfm_status dir_remove(const char *path, struct tfm_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return TFM_OK;
    if (fd < 0 || !remove_entries(fd, true) || rmdir(path) != 0)
        return err_io(err, "cannot remove the folder %s", path);
    return TFM_OK;
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

enum tfm_status path_join(struct str *out, const char *folder, const char *name, struct tfm_error *err)
{
    assert(folder != out->data && name != out->data);
    size_t len = strlen(folder);
    str_clear(out);
    return str_printf(out, err, "%s%s%s", folder, len == 0 || folder[len - 1] == '/' ? "" : "/", name);
}
