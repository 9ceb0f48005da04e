/*
 * output.c: writes a file under a temporary name beside it, fsyncs and renames it, so that a reader never
 * meets half a translation and a failed run leaves the old file. A symbolic link is followed: its target is
 * replaced. What has a name that ends with .gz is compressed. Pipes, devices and standard output are written
 * to as they are. A signal that ends the program removes the temporary file first.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* The temporary file of this moment, for the signal handler; "" where there is none. */
static char unfinished[PATH_MAX + 32];

static void remove_unfinished(int signal_number)
{
    if (unfinished[0] != '\0')
        unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
            action.sa_handler = remove_unfinished;
            sigaction(signals[i], &action, NULL);
        }
    }
}

static bool is_stdout(const char *path)
{
    return path == NULL || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static const char *shown_path(const struct output *out)
{
    return out->path != NULL ? out->path : "standard output";
}

/* Creates a temporary file beside the target, whose permissions it gets. */
static int create_temporary(struct output *out, const struct stat *target)
{
    for (int i = 0; i < 100; i++) {
        char name[sizeof(unfinished)];
        int n = snprintf(name, sizeof(name), "%s.tmp-%ld-%d", out->path, (long)getpid(), i);
        if (n >= (int)sizeof(name)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return -1;
        memcpy(unfinished, name, (size_t)n + 1);
        catch_signals();
        if (target != NULL && fchmod(fd, target->st_mode & 0777) != 0)
            errno = 0; /* a file of somebody else's: the new one has our own permissions */
        out->temporary = strdup(name);
        return fd;
    }
    return -1;
}

/* ---- compression ---- */

static ssize_t write_gzip(void *cookie, const char *bytes, size_t n)
{
    return gzwrite(cookie, bytes, (unsigned)n); /* 0, for stdio a failure too, where it fails */
}

static int close_gzip(void *cookie)
{
    return gzclose(cookie) == Z_OK ? 0 : -1;
}

/* A stream that compresses what is written into fd, which it owns; NULL on failure. */
static FILE *open_gzip(int fd)
{
    gzFile gzip = gzdopen(fd, "wb");
    if (gzip == NULL)
        return NULL;
    FILE *file = fopencookie(gzip, "w", (cookie_io_functions_t){ .write = write_gzip, .close = close_gzip });
    if (file == NULL)
        gzclose(gzip);
    return file;
}

static bool is_gzip_name(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

/* ---- the output ---- */

static void abandon(struct output *out)
{
    if (out->path != NULL && out->file != NULL)
        fclose(out->file);
    if (out->temporary != NULL)
        unlink(out->temporary);
    unfinished[0] = '\0';
    free(out->temporary);
    free(out->path);
    if (out->fd > 0)
        close(out->fd);
    *out = (struct output){ 0 };
}

enum tfm_status output_open(struct output *out, const char *path, struct tfm_error *err)
{
    *out = (struct output){ .file = stdout };
    if (is_stdout(path))
        return TFM_OK;
    struct stat target;
    bool exists = stat(path, &target) == 0;
    bool is_direct = exists && !S_ISREG(target.st_mode);
    out->file = NULL;
    out->path = exists && !is_direct ? realpath(path, NULL) : strdup(path);
    if (out->path == NULL)
        return cmd_error(err, TFM_EIO, "cannot write %s: %s", path, strerror(errno));
    int fd = -1;
    if (is_direct)
        fd = open(path, O_WRONLY | O_CLOEXEC);
    else if (!exists || access(path, W_OK) == 0)
        fd = create_temporary(out, exists ? &target : NULL);
    if (fd >= 0 && !is_direct)
        out->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd >= 0 && (is_direct || (out->temporary != NULL && out->fd > 0)) &&
        (out->file = is_gzip_name(path) ? open_gzip(fd) : fdopen(fd, "w")) != NULL)
        return TFM_OK;
    cmd_error(err, TFM_EIO, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    abandon(out);
    return TFM_EIO;
}

static enum tfm_status write_failed(const struct output *out, struct tfm_error *err)
{
    return cmd_error(err, TFM_EIO, "cannot write %s: %s", shown_path(out), strerror(errno));
}

enum tfm_status output_flush(struct output *out, struct tfm_error *err)
{
    if (fflush(out->file) != 0 || ferror(out->file))
        return write_failed(out, err);
    return TFM_OK;
}

static enum tfm_status commit(struct output *out, struct tfm_error *err)
{
    enum tfm_status status = output_flush(out, err);
    if (out->path != NULL) {
        if (fclose(out->file) != 0 && status == TFM_OK)
            status = write_failed(out, err);
        out->file = NULL;
    }
    if (status == TFM_OK && out->temporary != NULL && fsync(out->fd) != 0)
        status = write_failed(out, err);
    if (status == TFM_OK && out->temporary != NULL) {
        if (rename(out->temporary, out->path) != 0) {
            status = write_failed(out, err);
        } else {
            unfinished[0] = '\0';
            free(out->temporary);
            out->temporary = NULL;
        }
    }
    return status;
}

enum tfm_status output_end(struct output *out, enum tfm_status status, struct tfm_error *err)
{
    if (status == TFM_OK)
        status = commit(out, err);
    abandon(out);
    return status;
}

bool output_is_input(const char *path, const char *input)
{
    struct stat in, out;
    int status_in = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &in) : stat(input, &in);
    int status_out = is_stdout(path) ? fstat(STDOUT_FILENO, &out) : stat(path, &out);
    return status_in == 0 && status_out == 0 && S_ISREG(in.st_mode) && in.st_dev == out.st_dev &&
           in.st_ino == out.st_ino;
}
