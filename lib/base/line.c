/*
 * line.c: the line reader. Bytes go from read(2) into `raw`, from there, inflated where the file is gzip, to
 * the end of `text`, and lines are cut from the front of `text`. zlib's own gzread is no use here: on a pipe
 * it waits until its buffer is full, while a line typed into `gzip | tfm` or into a terminal should be
 * answered at once. So nothing here reads while a whole line is at hand.
 */
#include "base/line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"

#define CHUNK ((size_t)64 << 10)

enum kind {
    KIND_UNKNOWN, /* the first bytes are not there yet */
    KIND_PLAIN,
    KIND_GZIP,    /* inside a member */
    KIND_BETWEEN, /* behind a member */
    KIND_PADDING, /* in zeros behind the last member, as tapes leave them */
};

struct line_reader {
    char *path;
    int fd;
    enum kind kind;
    long number;
    z_stream z;
    bool z_begun;
    bool z_full; /* the last call of inflate filled the room it had: there may be more */
    bool at_end; /* of the file */
    size_t raw_begin, raw_end;
    size_t searched; /* of text, from begin: no line end in there */
    size_t begin;    /* of what is not yet returned in text */
    struct str text;
    struct tfm_error failure; /* kept: what has failed would not read on at the right place */
    unsigned char raw[CHUNK];
};

enum tfm_status line_open_fd(struct line_reader **reader, int fd, const char *name, struct tfm_error *err)
{
    *reader = NULL;
    struct line_reader *r = mem_alloc(sizeof(*r), err);
    char *path = r != NULL ? mem_strdup(name, err) : NULL;
    if (path == NULL) {
        mem_free(r);
        if (fd > STDIN_FILENO)
            close(fd);
        return TFM_ENOMEM;
    }
    r->path = path;
    r->fd = fd;
    *reader = r;
    return TFM_OK;
}

enum tfm_status line_open(struct line_reader **reader, const char *path, struct tfm_error *err)
{
    *reader = NULL;
    if (strcmp(path, "-") == 0)
        return line_open_fd(reader, STDIN_FILENO, "standard input", err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_io(err, "cannot open %s", path);
    return line_open_fd(reader, fd, path, err);
}

void line_free(struct line_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd > STDIN_FILENO)
        close(reader->fd);
    if (reader->z_begun)
        inflateEnd(&reader->z);
    str_release(&reader->text);
    mem_free(reader->path);
    mem_free(reader);
}

const char *line_path(const struct line_reader *reader)
{
    return reader->path;
}

long line_number(const struct line_reader *reader)
{
    return reader->number;
}

/* Names the line at the end of text: those before it are good and will be returned first. */
static enum tfm_status gzip_error(const struct line_reader *r, const char *what, struct tfm_error *err)
{
    long number = r->number + 1;
    for (size_t i = r->begin; i < r->text.len; i++)
        number += r->text.data[i] == '\n';
    return err_set(err, TFM_EFORMAT, "%s: line %ld: %s", r->path, number, what);
}

/* Waits for bytes and adds them to raw, which has room. */
static enum tfm_status read_raw(struct line_reader *r, struct tfm_error *err)
{
    if (r->raw_begin > 0) {
        memmove(r->raw, r->raw + r->raw_begin, r->raw_end - r->raw_begin);
        r->raw_end -= r->raw_begin;
        r->raw_begin = 0;
    }
    for (;;) {
        ssize_t n = read(r->fd, r->raw + r->raw_end, CHUNK - r->raw_end);
        if (n >= 0) {
            r->raw_end += (size_t)n;
            r->at_end = n == 0;
            return TFM_OK;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&(struct pollfd){ .fd = r->fd, .events = POLLIN }, 1, -1);
        else if (errno != EINTR)
            return err_io(err, "cannot read %s", r->path);
    }
}

static enum tfm_status too_long(const struct line_reader *r, struct tfm_error *err)
{
    return err_set(err, TFM_EFORMAT, "%s: line %ld is longer than %zu MiB; is this a text file?", r->path,
                   r->number + 1, LINE_LONGEST >> 20);
}

/* Makes room for a chunk at the end of text, at its front if lines were returned from there. */
static enum tfm_status make_room(struct line_reader *r, struct tfm_error *err)
{
    struct str *text = &r->text;
    if (r->begin > 0) {
        memmove(text->data, text->data + r->begin, text->len - r->begin);
        text->len -= r->begin;
        r->begin = 0;
    }
    if (text->len > LINE_LONGEST)
        return too_long(r, err);
    return str_reserve(text, CHUNK, err);
}

/* Tells the kind of file from its first two bytes, or what comes behind a gzip member. */
static enum tfm_status tell_kind(struct line_reader *r, struct tfm_error *err)
{
    const unsigned char *raw = r->raw + r->raw_begin;
    size_t n = r->raw_end - r->raw_begin;
    bool is_first = r->kind == KIND_UNKNOWN;
    if (n == 0 || (n == 1 && raw[0] == 0x1f && !r->at_end))
        return TFM_OK;
    if (n < 2 || raw[0] != 0x1f || raw[1] != 0x8b) {
        if (!is_first && raw[0] != 0)
            return gzip_error(r, "the gzip data is followed by something else", err);
        r->kind = is_first ? KIND_PLAIN : KIND_PADDING;
        return TFM_OK;
    }
    if (is_first) {
        r->z.zalloc = mem_zlib_alloc;
        r->z.zfree = mem_zlib_free;
        if (inflateInit2(&r->z, 16 + MAX_WBITS) != Z_OK) /* + 16: with the header and the checksum of gzip */
            return err_set(err, TFM_ENOMEM, "%s: no memory to inflate it", r->path);
        r->z_begun = true;
    } else {
        inflateReset(&r->z);
    }
    r->kind = KIND_GZIP;
    return TFM_OK;
}

static enum tfm_status inflate_raw(struct line_reader *r, struct tfm_error *err)
{
    r->z.next_in = r->raw + r->raw_begin;
    r->z.avail_in = (unsigned int)(r->raw_end - r->raw_begin);
    r->z.next_out = (unsigned char *)r->text.data + r->text.len;
    r->z.avail_out = (unsigned int)CHUNK;
    int result = inflate(&r->z, Z_SYNC_FLUSH);
    r->raw_begin = r->raw_end - r->z.avail_in;
    r->text.len += CHUNK - r->z.avail_out;
    r->z_full = r->z.avail_out == 0;
    if (result == Z_STREAM_END) {
        r->kind = KIND_BETWEEN;
        r->z_full = false;
    } else if (result == Z_MEM_ERROR) {
        return err_set(err, TFM_ENOMEM, "%s: no memory to inflate it", r->path);
    } else if (result != Z_OK && result != Z_BUF_ERROR) { /* the latter: it needs more input */
        char what[200];
        snprintf(what, sizeof(what), "the gzip data is damaged (%s)",
                 r->z.msg != NULL ? r->z.msg : "wrong header");
        return gzip_error(r, what, err);
    }
    return TFM_OK;
}

/* Moves some of raw to text. */
static enum tfm_status decode_raw(struct line_reader *r, struct tfm_error *err)
{
    if (r->kind == KIND_UNKNOWN || r->kind == KIND_BETWEEN)
        TRY(tell_kind(r, err));
    if (r->kind == KIND_PLAIN) {
        TRY(make_room(r, err));
        size_t n = r->raw_end - r->raw_begin;
        memcpy(r->text.data + r->text.len, r->raw + r->raw_begin, n);
        r->text.len += n;
        r->raw_begin = r->raw_end;
    } else if (r->kind == KIND_GZIP) {
        TRY(make_room(r, err));
        TRY(inflate_raw(r, err));
    } else if (r->kind == KIND_PADDING) {
        for (; r->raw_begin < r->raw_end; r->raw_begin++) {
            if (r->raw[r->raw_begin] != 0)
                return gzip_error(r, "the gzip data is followed by something else", err);
        }
    }
    return TFM_OK;
}

/* True if the bytes at hand, raw included, might give more text. */
static bool can_decode(const struct line_reader *r)
{
    size_t n = r->raw_end - r->raw_begin;
    if (r->kind == KIND_UNKNOWN || r->kind == KIND_BETWEEN)
        return n >= 2 || (n == 1 && (r->at_end || r->raw[r->raw_begin] != 0x1f));
    return n > 0 || r->z_full;
}

/* Finds the next line end in the text at hand. */
static const char *find_line_end(struct line_reader *r)
{
    if (r->text.len - r->begin == r->searched)
        return NULL;
    const char *from = r->text.data + r->begin + r->searched;
    const char *end = memchr(from, '\n', r->text.len - r->begin - r->searched);
    r->searched = end != NULL ? (size_t)(end - r->text.data) - r->begin : r->text.len - r->begin;
    return end;
}

/* Returns the first n bytes of text as a line, and skips the line end behind them. */
static enum tfm_status cut_line(struct line_reader *r, size_t n, size_t n_end, struct str *line,
                                struct tfm_error *err)
{
    if (n > LINE_LONGEST) /* by less than a chunk */
        return too_long(r, err);
    const char *data = r->text.data + r->begin;
    size_t from = r->number == 0 && n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t to = n_end > 0 && n > from && data[n - 1] == '\r' ? n - 1 : n;
    str_clear(line);
    TRY(str_add(line, data + from, to - from, err));
    r->begin += n + n_end;
    r->searched = 0;
    r->number++;
    return TFM_OK;
}

/* Makes more text, if need be by waiting for it, or notes why that fails. False at the end. */
static bool advance(struct line_reader *r)
{
    if (r->failure.status != TFM_OK)
        return false;
    if (can_decode(r))
        return decode_raw(r, &r->failure) == TFM_OK;
    if (!r->at_end)
        return read_raw(r, &r->failure) == TFM_OK;
    if (r->kind == KIND_GZIP)
        gzip_error(r, "the gzip data ends early; the file is truncated", &r->failure);
    return false;
}

enum tfm_status line_read(struct line_reader *reader, struct str *line, bool *more, struct tfm_error *err)
{
    struct line_reader *r = reader;
    *more = false;
    const char *end;
    bool goes_on = true;
    while ((end = find_line_end(r)) == NULL && goes_on)
        goes_on = advance(r);
    if (end != NULL) {
        *more = true;
        return cut_line(r, (size_t)(end - r->text.data) - r->begin, 1, line, err);
    }
    if (r->failure.status != TFM_OK) {
        if (err != NULL)
            *err = r->failure;
        return r->failure.status;
    }
    size_t rest = r->text.len - r->begin;
    bool is_only_mark =
        r->number == 0 && rest == 3 && memcmp(r->text.data + r->begin, "\xef\xbb\xbf", 3) == 0;
    if (rest > 0 && !is_only_mark) {
        *more = true;
        return cut_line(r, rest, 0, line, err);
    }
    str_clear(line);
    return TFM_OK;
}

bool line_would_wait(struct line_reader *reader)
{
    struct line_reader *r = reader;
    while (find_line_end(r) == NULL) {
        if (!can_decode(r) && !r->at_end) {
            struct pollfd input = { .fd = r->fd, .events = POLLIN };
            if (poll(&input, 1, 0) == 0)
                return true;
        }
        if (!advance(r))
            return false;
    }
    return false;
}
