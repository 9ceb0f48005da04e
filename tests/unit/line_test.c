/*
 * line_test.c: lines from files, pipes and gzip: every kind of line end, damage that is named, and answers on
 * a pipe as soon as a line is there.
 */
#include "base/line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "check.h"

static char path[600];

/* Appends text as one gzip member; flushes after every line if by_line is true. */
static void add_member(struct str *out, const char *text, size_t len, bool by_line)
{
    z_stream z = { 0 };
    unsigned char buffer[4096];
    deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    for (size_t at = 0, n = 0; at < len || at == 0; at += n) {
        const char *end = by_line ? memchr(text + at, '\n', len - at) : NULL;
        n = end != NULL ? (size_t)(end - text) + 1 - at : len - at;
        z.next_in = (unsigned char *)(uintptr_t)(text + at);
        z.avail_in = (unsigned int)n;
        do {
            z.next_out = buffer;
            z.avail_out = sizeof(buffer);
            deflate(&z, at + n == len ? Z_FINISH : Z_SYNC_FLUSH);
            str_add(out, (char *)buffer, sizeof(buffer) - z.avail_out, NULL);
        } while (z.avail_out == 0);
        if (len == 0)
            break;
    }
    deflateEnd(&z);
}

/* Reads all lines of `path` into out, each followed by '|'. */
static enum tfm_status read_lines(struct str *out, struct tfm_error *err)
{
    struct line_reader *reader;
    struct str line = { 0 };
    bool more = true;
    str_clear(out);
    str_add(out, "", 0, NULL);
    enum tfm_status status = line_open(&reader, path, err);
    if (status != TFM_OK)
        return status;
    while ((status = line_read(reader, &line, &more, err)) == TFM_OK && more) {
        str_add(out, line.data, line.len, NULL);
        str_add(out, "|", 1, NULL);
    }
    line_free(reader);
    str_release(&line);
    return status;
}

static void write_file(const void *data, size_t size)
{
    struct tfm_error err;
    if (file_write(path, data, size, &err) != TFM_OK)
        check_note("%s", err.message);
}

static void test_line_ends(void)
{
    static const struct {
        const char *name, *text, *lines;
    } cases[] = {
        { "empty file", "", "" },
        { "one line", "a\n", "a|" },
        { "no final line end", "a\nb", "a|b|" },
        { "empty lines", "\n\na\n\n", "||a||" },
        { "CRLF", "a\r\nb\r\n\r\n", "a|b||" },
        { "mixed ends", "a\r\nb\nc\r\nd", "a|b|c|d|" },
        { "carriage returns elsewhere are text", "\ra\rb\r\r\nc\r", "\ra\rb\r|c\r|" },
        { "byte order mark",
          "\xef\xbb\xbf"
          "a\n\xef\xbb\xbf"
          "b\n",
          "a|\xef\xbb\xbf"
          "b|" },
        { "byte order mark alone", "\xef\xbb\xbf", "" },
        { "byte order mark and line end", "\xef\xbb\xbf\r\n", "|" },
        { "half a byte order mark", "\xef\xbb", "\xef\xbb|" },
        { "first byte of gzip alone", "\x1f", "\x1f|" },
        { "first byte of gzip and text", "\x1f\nx", "\x1f|x|" },
        { "invalid UTF-8 is passed on", "\xff\xfe\n", "\xff\xfe|" },
    };
    struct str found = { 0 }, zip = { 0 };
    struct tfm_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t len = strlen(cases[i].text);
        write_file(cases[i].text, len);
        CHECK(read_lines(&found, &err) == TFM_OK, "%s is read", cases[i].name);
        CHECK_STR(found.data, cases[i].lines, "  and gives its lines");
        str_clear(&zip);
        add_member(&zip, cases[i].text, len, false);
        write_file(zip.data, zip.len);
        CHECK(read_lines(&found, &err) == TFM_OK, "  in gzip, too");
        CHECK_STR(found.data, cases[i].lines, "  with the same lines");
    }
    write_file("a\0b\n\0\nc", 7);
    CHECK(read_lines(&found, &err) == TFM_OK && found.len == 8 && memcmp(found.data, "a\0b|\0|c|", 8) == 0,
          "NUL bytes are bytes of a line");
    str_release(&found);
    str_release(&zip);
}

static void test_long_lines(void)
{
    struct str text = { 0 }, found = { 0 }, zip = { 0 };
    struct tfm_error err;
    size_t size = 10 << 20;
    char *line = mem_alloc(size, NULL);
    for (size_t i = 0; i < size; i++)
        line[i] = (char)('a' + (i * i >> 7) % 26);
    str_add(&text, "first\n", 6, NULL);
    str_add(&text, line, size, NULL);
    str_add(&text, "\r\nlast", 6, NULL);
    write_file(text.data, text.len);
    CHECK(read_lines(&found, &err) == TFM_OK && found.len == size + 12, "a line of 10 MB");
    CHECK(memcmp(found.data + 6, line, size) == 0 && strcmp(found.data + 6 + size, "|last|") == 0,
          "  is whole");
    add_member(&zip, text.data, text.len / 2, false);
    add_member(&zip, text.data + text.len / 2, text.len - text.len / 2, false);
    write_file(zip.data, zip.len);
    CHECK(read_lines(&found, &err) == TFM_OK && found.len == size + 12, "in two gzip members, too");
    CHECK(memcmp(found.data + 6, line, size) == 0 && strcmp(found.data + 6 + size, "|last|") == 0,
          "  it is whole");
    mem_free(line);

    str_clear(&text);
    for (int i = 0; i < 50000; i++) /* lines lie across the borders of all buffers */
        str_printf(&text, NULL, "%*d\n", i % 97, i);
    str_clear(&zip);
    add_member(&zip, text.data, text.len, false);
    for (size_t i = 0; i < text.len; i++)
        text.data[i] = text.data[i] == '\n' ? '|' : text.data[i];
    write_file(zip.data, zip.len);
    read_lines(&found, &err);
    CHECK(found.len == text.len && memcmp(found.data, text.data, text.len) == 0, "50000 lines in gzip");

    snprintf(path, sizeof(path), "/dev/zero");
    CHECK_INT(read_lines(&found, &err), TFM_EFORMAT, "an endless line is refused");
    CHECK_STR(err.message, "/dev/zero: line 1 is longer than 64 MiB; is this a text file?", "  by name");
    snprintf(path, sizeof(path), "%s/lines", check_tmp());

    size = LINE_LONGEST + 2;
    line = mem_alloc(size, NULL);
    memset(line, 'a', size);
    line[LINE_LONGEST] = '\n';
    write_file(line, LINE_LONGEST + 1);
    CHECK(read_lines(&found, &err) == TFM_OK && found.len == LINE_LONGEST + 1, "a line of 64 MiB");
    line[LINE_LONGEST] = 'a';
    line[LINE_LONGEST + 1] = '\n';
    write_file(line, size);
    CHECK_INT(read_lines(&found, &err), TFM_EFORMAT, "a byte more is refused");
    write_file(line, size - 1);
    CHECK_INT(read_lines(&found, &err), TFM_EFORMAT, "  without a line end, too");
    mem_free(line);
    str_release(&text);
    str_release(&found);
    str_release(&zip);
}

static void test_members(void)
{
    struct str zip = { 0 }, found = { 0 };
    struct tfm_error err;
    add_member(&zip, "one\ntw", 6, false);
    add_member(&zip, "", 0, false);
    add_member(&zip, "o\nthree\n", 8, false);
    add_member(&zip, "four", 4, false);
    write_file(zip.data, zip.len);
    CHECK_INT(read_lines(&found, &err), TFM_OK, "joined members are read");
    CHECK_STR(found.data, "one|two|three|four|", "  as one text");
    size_t len = zip.len;
    str_add(&zip, "\0\0\0\0\0", 5, NULL);
    write_file(zip.data, zip.len);
    CHECK_INT(read_lines(&found, &err), TFM_OK, "zeros behind the data are padding");
    str_add(&zip, "x", 1, NULL);
    write_file(zip.data, zip.len);
    CHECK_INT(read_lines(&found, &err), TFM_EFORMAT, "other bytes behind the padding are not");
    for (const char *tail = "x\0\x1f\0\x1f\x1f\0"; *tail != '\0'; tail += strlen(tail) + 1) {
        zip.len = len;
        str_add(&zip, tail, strlen(tail), NULL);
        write_file(zip.data, zip.len);
        CHECK_INT(read_lines(&found, &err), TFM_EFORMAT, "something else behind the data is an error");
        CHECK(strstr(err.message, "lines: line 4: the gzip data is followed by something else") != NULL,
              "  with its place");
    }
    str_release(&zip);
    str_release(&found);
}

static void test_damage(void)
{
    struct str zip = { 0 }, text = { 0 }, found = { 0 }, whole = { 0 };
    struct tfm_error err;
    for (int i = 0; i < 40; i++)
        str_printf(&text, NULL, "line %d of some %d\n", i, i * 7919 % 1000);
    add_member(&zip, text.data, text.len, false);
    write_file(zip.data, zip.len);
    read_lines(&whole, &err);
    int wrong = 0, unnamed = 0;
    for (size_t len = 2; len < zip.len; len++) {
        write_file(zip.data, len);
        wrong += read_lines(&found, &err) != TFM_EFORMAT;
        unnamed += strstr(err.message, "the gzip data ends early; the file is truncated") == NULL;
        unnamed += strstr(err.message, "/lines: line ") == NULL;
    }
    CHECK_INT(wrong, 0, "a gzip file cut anywhere is an error");
    CHECK_INT(unnamed, 0, "  that says so");

    int caught = 0;
    wrong = 0;
    for (size_t bit = 0; bit < zip.len * 8; bit++) {
        zip.data[bit / 8] ^= (char)(1 << bit % 8);
        write_file(zip.data, zip.len);
        enum tfm_status status = read_lines(&found, &err);
        zip.data[bit / 8] ^= (char)(1 << bit % 8);
        caught += status == TFM_EFORMAT;
        /* Bits of the time and the system change nothing, and with another first byte it is no gzip file. */
        wrong += status != TFM_EFORMAT && bit >= 16 && strcmp(found.data, whole.data) != 0;
    }
    CHECK_INT(wrong, 0, "no flipped bit gives other lines unnoticed");
    CHECK(caught > (int)(zip.len - 12) * 8, "nearly all are caught (%d of %zu)", caught, zip.len * 8);

    zip.data[zip.len - 6] ^= 1;
    write_file(zip.data, zip.len);
    read_lines(&found, &err);
    CHECK(strstr(err.message, "/lines: line 41: the gzip data is damaged (incorrect data check)") != NULL,
          "a wrong checksum is named");
    struct line_reader *reader;
    struct str line = { 0 };
    bool more;
    line_open(&reader, path, &err);
    while (line_read(reader, &line, &more, &err) == TFM_OK)
        continue;
    memset(&err, 0, sizeof(err));
    CHECK_INT(line_read(reader, &line, &more, &err), TFM_EFORMAT, "reading on after an error");
    CHECK(!more && strstr(err.message, "incorrect data check") != NULL, "  meets it again");
    CHECK(!line_would_wait(reader), "  without waiting");
    line_free(reader);
    str_release(&line);
    str_release(&zip);
    str_release(&text);
    str_release(&found);
    str_release(&whole);
}

/* Puts a new pipe in the place of standard input and returns the end to write to. */
static int pipe_to_stdin(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    return ends[1];
}

/* Sends bytes one by one; after each reads all lines that do not wait. ready[i] is how many bytes line i
 * needs. */
static void feed(const char *name, const char *bytes, size_t n, const char *expected)
{
    struct tfm_error err;
    struct line_reader *reader;
    struct str line = { 0 }, found = { 0 };
    bool more = true, failed = false;
    int out = pipe_to_stdin();
    line_open(&reader, "-", &err);
    for (size_t i = 0; i < n; i++) {
        if (!line_would_wait(reader) || write(out, bytes + i, 1) != 1)
            failed = true;
        while (!failed && !line_would_wait(reader)) {
            failed = line_read(reader, &line, &more, &err) != TFM_OK || !more;
            str_printf(&found, NULL, "%s|", line.data);
        }
    }
    CHECK(!failed, "%s: byte by byte through a pipe", name);
    CHECK_STR(found.data, expected, "  each line is there when its last byte is");
    close(out);
    CHECK(!line_would_wait(reader), "  the end needs no waiting");
    CHECK(line_read(reader, &line, &more, &err) == TFM_OK && !more, "  and is noticed");
    CHECK(line_read(reader, &line, &more, &err) == TFM_OK && !more, "  twice");
    line_free(reader);
    str_release(&line);
    str_release(&found);
}

static void test_pipes(void)
{
    struct str zip = { 0 };
    struct tfm_error err;
    feed("plain", "Guten\n\nTag\r\n", 12, "Guten||Tag|");
    add_member(&zip, "Guten\n\nTag\r\n", 12, true);
    add_member(&zip, "x\nyy\n", 5, true);
    feed("gzip", zip.data, zip.len, "Guten||Tag|x|yy|");

    /* Ends in the middle of a member: the lines before it are given, then the error. */
    struct line_reader *reader;
    struct str line = { 0 };
    bool more;
    int out = pipe_to_stdin();
    CHECK(write(out, zip.data, zip.len - 20) == (ssize_t)zip.len - 20, "a pipe that breaks off");
    close(out);
    line_open(&reader, "-", &err);
    CHECK_STR(line_path(reader), "standard input", "the name of -");
    while (line_read(reader, &line, &more, &err) == TFM_OK && more)
        continue;
    CHECK(strstr(err.message, "standard input: line 4: the gzip data ends early") != NULL, "  says where");
    CHECK_INT(line_number(reader), 3, "  and counts the lines before");
    line_free(reader);

    out = pipe_to_stdin();
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);
        _exit(write(out, "late\n", 5) != 5);
    }
    close(out);
    line_open(&reader, "-", &err);
    CHECK(line_would_wait(reader), "a line that is late is waited for");
    CHECK_INT(line_read(reader, &line, &more, &err), TFM_OK, "  also where reading does not block");
    CHECK_STR(line.data, "late", "  and read");
    line_free(reader);
    str_release(&line);
    str_release(&zip);
}

static void test_failures(void)
{
    struct tfm_error err;
    struct line_reader *reader;
    struct str line = { 0 }, zip = { 0 };
    bool more;
    CHECK_INT(line_open(&reader, "/nowhere/x", &err), TFM_EIO, "a file that is missing");
    CHECK_STR(err.message, "cannot open /nowhere/x: No such file or directory", "  is named");
    line_open(&reader, "/", &err);
    CHECK_INT(line_read(reader, &line, &more, &err), TFM_EIO, "a folder cannot be read");
    CHECK_STR(err.message, "cannot read /: Is a directory", "  and is named");
    line_free(reader);
    line_free(NULL);

    for (int i = 0; i < 5000; i++)
        str_printf(&line, NULL, "line %d\n", i * 7919);
    add_member(&zip, line.data, line.len, false);
    write_file(zip.data, zip.len);
    struct str found = { 0 };
    int n = 0, wrong = 0;
    for (;; n++) {
        str_reserve(&found, 100000, NULL); /* so that only the reader needs memory */
        mem_fail_after(n);
        enum tfm_status status = read_lines(&found, &err);
        mem_fail_after(-1);
        if (status == TFM_OK)
            break;
        wrong += status != TFM_ENOMEM;
        str_release(&found);
    }
    CHECK(n > 4 && wrong == 0, "whichever of %d allocations fails, it is said", n);
    str_release(&found);
    str_release(&line);
    str_release(&zip);
}

int main(void)
{
    snprintf(path, sizeof(path), "%s/lines", check_tmp());
    test_line_ends();
    test_long_lines();
    test_members();
    test_damage();
    test_pipes();
    test_failures();
    return check_done();
}
