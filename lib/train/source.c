/*
 * source.c: makes a plain file of each text of the corpus. A plain file is read in place. A gzip file is
 * inflated into a file without a name, which lives as long as the training does. What can be read only once
 * (standard input, a pipe, a command) is written to a file that is kept with the checkpoints, whole or not at
 * all (base/file.h): a training that goes on reads that file, and so sees the text that it began with.
 */
#include "train/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/line.h"
#include "base/mem.h"

struct spooling {               /* of one text on its way into a file */
    struct line_reader *reader; /* NULL: the text is at hand */
    struct file_writer *writer;
    FILE *command; /* NULL: there is none */
    bool more;
    bool is_kept;
    struct str path; /* to be kept under */
};

static bool is_command(const char *path)
{
    size_t len = strlen(path);
    return len > 0 && path[len - 1] == '|';
}

bool source_is_stream(const char *path)
{
    return strcmp(path, "-") == 0 || is_command(path);
}

void source_release(struct source *source)
{
    if (source->name != NULL && source->fd >= 0)
        close(source->fd);
    mem_free(source->name);
    *source = (struct source){ .fd = -1 };
}

enum tfm_status source_read(const struct source *source, char *data, size_t size, uint64_t place, size_t *n,
                            struct tfm_error *err)
{
    for (*n = 0; *n < size;) {
        ssize_t got = pread(source->fd, data + *n, size - *n, (off_t)(place + *n));
        if (got == 0)
            break;
        if (got > 0)
            *n += (size_t)got;
        else if (errno != EINTR)
            return err_io(err, "cannot read %s", source->name);
    }
    return TFM_OK;
}

/* ---- opening ---- */

static enum tfm_status run_command(struct spooling *s, const char *path, struct tfm_error *err)
{
    struct str command = { 0 };
    TRY(str_add(&command, path, strlen(path) - 1, err));
    s->command = popen(command.data, "re");
    str_release(&command);
    int fd = s->command != NULL ? fcntl(fileno(s->command), F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (fd < 0)
        return err_io(err, "cannot run the command \"%s\"", path);
    return line_open_fd(&s->reader, fd, path, err);
}

static enum tfm_status open_kept(struct source *source, const char *path, struct tfm_error *err)
{
    source->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0)
        return err_io(err, "cannot open %s, the text of %s as this training read it first", path,
                      source->name);
    return TFM_OK;
}

static enum tfm_status begin_spooling(struct spooling *s, const char *path, struct tfm_error *err)
{
    s->more = true;
    TRY(is_command(path) ? run_command(s, path, err) : line_open(&s->reader, path, err));
    return s->is_kept ? file_create(&s->writer, s->path.data, err)
                      : file_create_unnamed(&s->writer, s->path.data, err);
}

/* A plain file is opened, for anything else spooling is begun. */
static enum tfm_status open_text(struct source *source, struct spooling *s, const char *path,
                                 const char *part, const struct spool *spool, struct tfm_error *err)
{
    struct stat found;
    unsigned char magic[2] = { 0 };
    bool is_stdin = strcmp(path, "-") == 0, is_once = true;
    source->name = mem_strdup(is_stdin ? "standard input" : path, err);
    if (source->name == NULL)
        return TFM_ENOMEM;
    if (!source_is_stream(path)) {
        if (stat(path, &found) != 0)
            return err_io(err, "cannot open %s", path);
        is_once = !S_ISREG(found.st_mode);
    }
    if (!is_once) {
        source->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (source->fd < 0)
            return err_io(err, "cannot open %s", path);
        if (pread(source->fd, magic, 2, 0) < 2 || magic[0] != 0x1f || magic[1] != 0x8b)
            return TFM_OK;
        close(source->fd);
        source->fd = -1;
    }
    s->is_kept = is_once && spool->is_kept;
    TRY(str_printf(&s->path, err, "%s/%s.%s", spool->folder, spool->name, part));
    return s->is_kept && spool->goes_on ? open_kept(source, s->path.data, err) : begin_spooling(s, path, err);
}

/* ---- spooling ---- */

/* A line of each in turn. */
static enum tfm_status copy_lines(struct spooling *spoolings, int n, volatile const int *stop,
                                  struct tfm_error *err)
{
    struct str line = { 0 };
    enum tfm_status status = TFM_OK;
    for (bool more = true; more && status == TFM_OK;) {
        more = false;
        for (int i = 0; i < n && status == TFM_OK; i++) {
            struct spooling *s = &spoolings[i];
            if (s->reader == NULL || !s->more)
                continue;
            status = line_read(s->reader, &line, &s->more, err);
            if (status == TFM_OK && s->more)
                status = file_add(s->writer, line.data, line.len, err);
            if (status == TFM_OK && s->more)
                status = file_add(s->writer, "\n", 1, err);
            more = more || s->more;
        }
        /* Also where that is why a command ended, which ^C tells to end as well. */
        if (status == TFM_OK && stop != NULL && *stop != 0)
            status = err_set(err, TFM_ESTOPPED, "stopped while the corpus was read; nothing was to be saved");
    }
    str_release(&line);
    return status;
}

static enum tfm_status end_command(struct spooling *s, const char *name, struct tfm_error *err)
{
    if (s->command == NULL)
        return TFM_OK;
    int ended = pclose(s->command);
    s->command = NULL;
    if (ended < 0)
        return err_io(err, "cannot learn how the command \"%s\" ended", name);
    if (WIFSIGNALED(ended))
        return err_set(err, TFM_EIO, "the command \"%s\" was ended by signal %d: its text is not whole", name,
                       WTERMSIG(ended));
    if (WEXITSTATUS(ended) != 0)
        return err_set(err, TFM_EIO,
                       "the command \"%s\" failed with exit status %d: its text may not be whole", name,
                       WEXITSTATUS(ended));
    return TFM_OK;
}

static enum tfm_status end_spooling(struct source *source, struct spooling *s, struct tfm_error *err)
{
    if (s->reader == NULL)
        return TFM_OK;
    TRY(end_command(s, source->name, err));
    struct file_writer *writer = s->writer;
    s->writer = NULL;
    if (!s->is_kept)
        return file_detach(writer, &source->fd, err);
    TRY(file_commit(writer, err));
    return open_kept(source, s->path.data, err);
}

/* The reader first: a command that still writes learns that nobody reads. */
static void spooling_release(struct spooling *s)
{
    line_free(s->reader);
    if (s->command != NULL)
        pclose(s->command);
    file_abandon(s->writer);
    str_release(&s->path);
}

enum tfm_status source_open(struct source *sources, const char *const *paths, const char *const *parts, int n,
                            const struct spool *spool, struct tfm_error *err)
{
    struct spooling spoolings[SOURCE_MAX] = { 0 };
    assert(n <= SOURCE_MAX);
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < n; i++)
        sources[i] = (struct source){ .fd = -1 };
    for (int i = 0; i < n && status == TFM_OK; i++)
        status = open_text(&sources[i], &spoolings[i], paths[i], parts[i], spool, err);
    if (status == TFM_OK)
        status = copy_lines(spoolings, n, spool->stop, err);
    for (int i = 0; i < n && status == TFM_OK; i++)
        status = end_spooling(&sources[i], &spoolings[i], err);
    for (int i = 0; i < n; i++) {
        spooling_release(&spoolings[i]);
        if (status != TFM_OK)
            source_release(&sources[i]);
    }
    return status;
}
