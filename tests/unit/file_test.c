/*
 * file_test.c: files are written whole or not at all, folders are made, replaced and removed, and what the
 * world refuses is named.
 */
#include "base/file.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"

static struct tfm_error err;

/* The content of a file, or the error; valid until the next call. */
static const char *content(const char *path)
{
    static char text[1000];
    char *data;
    size_t size;
    if (file_read(path, &data, &size, &err) != TFM_OK) {
        snprintf(text, sizeof(text), "%s", err.message);
    } else {
        snprintf(text, sizeof(text), "%s", data);
        mem_free(data);
    }
    return text;
}

static int n_entries(const char *path)
{
    DIR *dir = opendir(path);
    int n = -2; /* . and .. */
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static void put(const char *path, const char *text)
{
    if (file_write(path, text, strlen(text), &err) != TFM_OK)
        check_note("%s", err.message);
}

static void test_read_and_write(void)
{
    char *data;
    size_t size;
    CHECK_INT(file_write(check_path("a"), "one\0two", 7, &err), TFM_OK, "write");
    CHECK_INT(file_read(check_path("a"), &data, &size, &err), TFM_OK, "read");
    CHECK(size == 7 && memcmp(data, "one\0two", 8) == 0, "  the same, with a NUL behind");
    mem_free(data);
    CHECK_INT(file_write(check_path("a"), NULL, 0, &err), TFM_OK, "write nothing over it");
    CHECK_INT(file_read(check_path("a"), &data, &size, &err), TFM_OK, "read nothing");
    CHECK(size == 0 && data != NULL && data[0] == '\0', "  is an empty block");
    mem_free(data);
    CHECK_INT(file_read("/proc/self/status", &data, &size, &err), TFM_OK, "a file that says it has no bytes");
    CHECK(size > 100 && strncmp(data, "Name:", 5) == 0, "  is read to its end");
    mem_free(data);
    CHECK(file_exists(check_path("a")) && file_exists(check_tmp()) && !file_exists(check_path("b")),
          "what exists");

    struct file_writer *writer;
    CHECK_INT(file_create(&writer, check_path("pieces"), &err), TFM_OK, "a file in pieces");
    struct str expected = { 0 };
    static char piece[200000];
    for (size_t n = 0; n < sizeof(piece); n = n * 3 + 1) {
        memset(piece, 'a' + (int)(n % 23), n);
        CHECK_INT(file_add(writer, piece, n, &err), TFM_OK, "  add %zu bytes", n);
        str_add(&expected, piece, n, &err);
    }
    CHECK(!file_exists(check_path("pieces")), "  is not there before it is complete");
    CHECK_INT(file_commit(writer, &err), TFM_OK, "  commit");
    CHECK_INT(file_read(check_path("pieces"), &data, &size, &err), TFM_OK, "  read");
    CHECK(size == expected.len && memcmp(data, expected.data, size) == 0, "  all pieces in order");
    mem_free(data);
    str_release(&expected);

    struct file_writer *first, *second;
    file_create(&first, check_path("a"), &err);
    CHECK_INT(file_create(&second, check_path("a"), &err), TFM_OK, "two writers of one name");
    file_add(first, "first", 5, &err);
    file_add(second, "second", 6, &err);
    file_commit(second, &err);
    CHECK_STR(content(check_path("a")), "second", "  do not disturb each other");
    file_commit(first, &err);
    CHECK_STR(content(check_path("a")), "first", "  and the last one wins");
    file_create(&first, check_path("a"), &err);
    file_add(first, "third", 5, &err);
    file_abandon(first);
    file_abandon(NULL);
    CHECK_STR(content(check_path("a")), "first", "an abandoned file changes nothing");
    CHECK_INT(n_entries(check_tmp()), 2, "no temporary file is left");
    struct stat status;
    stat(check_path("a"), &status);
    mode_t mask = umask(022);
    umask(mask);
    CHECK_INT(status.st_mode & 0777, 0666 & ~mask, "a file has the usual permissions");
}

/* In a child: writes more than the limit on file sizes allows. */
static int write_beyond_limit(const char *path)
{
    static char data[100000];
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 50000, 50000 });
    enum tfm_status status = file_write(path, data, sizeof(data), &err);
    return status == TFM_EIO && strstr(err.message, "/limited: File too large") != NULL ? 42 : 1;
}

static void test_map(void)
{
    const char *data;
    size_t size;
    put(check_path("mapped"), "some text");
    CHECK_INT(file_map(&data, &size, check_path("mapped"), &err), TFM_OK, "a file is mapped");
    CHECK(size == 9 && memcmp(data, "some text", 9) == 0, "  with its bytes");
    unlink(check_path("mapped"));
    CHECK(data[8] == 't', "  which stay when its name is gone");
    file_unmap(data, size);
    put(check_path("mapped"), "");
    CHECK(file_map(&data, &size, check_path("mapped"), &err) == TFM_OK && data == NULL && size == 0,
          "of an empty file there is nothing");
    file_unmap(data, size);
    CHECK(mkfifo(check_path("pipe"), 0600) == 0 &&
              file_map(&data, &size, check_path("pipe"), &err) == TFM_EIO && data == NULL,
          "a pipe is refused rather than waited for");
    CHECK(strstr(err.message, "/pipe is not a regular file") != NULL, "  and named");
    CHECK_INT(file_map(&data, &size, "/nowhere/x", &err), TFM_EIO, "a missing file");
    CHECK_STR(err.message, "cannot open /nowhere/x: No such file or directory", "  is named");
    unlink(check_path("pipe"));
    unlink(check_path("mapped"));
}

static void test_refusals(void)
{
    CHECK_STR(content("/nowhere/x"), "cannot open /nowhere/x: No such file or directory", "a missing file");
    CHECK_STR(content("/"), "cannot read /: Is a directory", "a folder is no file");
    CHECK_STR(content("/dev/zero"), "/dev/zero: is no regular file and has not ended after 256 MiB",
              "a file without an end is given up");
    CHECK_INT(file_write("/nowhere/x", "x", 1, &err), TFM_EIO, "a missing folder");
    CHECK_STR(err.message, "cannot write /nowhere/x: No such file or directory", "  is named");
    CHECK_INT(file_write(check_path("."), "x", 1, &err), TFM_EIO, "a folder cannot be written");
    CHECK(strstr(err.message, "/.: Is a directory") != NULL, "  and is named");
    CHECK_INT(file_write("", "x", 1, &err), TFM_EIO, "no name");

    CHECK_INT(file_write("/dev/full", "x", 1, &err), TFM_EIO, "a full disk");
    CHECK_STR(err.message, "cannot write /dev/full: No space left on device", "  is named");
    struct stat status;
    CHECK(stat("/dev/full", &status) == 0 && S_ISCHR(status.st_mode), "  and is still a device");
    CHECK_INT(file_write("/dev/null", "x", 1, &err), TFM_OK, "a device is written to directly");
    CHECK(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode), "  and is still one");

    put(check_path("limited"), "old");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(write_beyond_limit(check_path("limited")));
    int result = 0;
    waitpid(child, &result, 0);
    CHECK_INT(WEXITSTATUS(result), 42, "a limit on file sizes is named");
    CHECK_STR(content(check_path("limited")), "old", "  and the old file is whole");
    unlink(check_path("limited"));

    dir_make(check_path("readonly"), &err);
    chmod(check_path("readonly"), 0555);
    if (geteuid() == 0) {
        SKIP("root may write to a read-only folder");
    } else {
        CHECK_INT(file_write(check_path("readonly/x"), "x", 1, &err), TFM_EIO, "a read-only folder");
        CHECK(strstr(err.message, "readonly/x: Permission denied") != NULL, "  is named");
    }
    dir_remove(check_path("readonly"), &err);

    for (int n = 0; n < 3; n++) {
        mem_fail_after(n);
        CHECK_INT(file_write(check_path("none"), "x", 1, &err), TFM_ENOMEM, "no memory for allocation %d", n);
    }
    mem_fail_after(-1);
    CHECK(!file_exists(check_path("none")), "  and no file");
}

static void test_make_and_remove(void)
{
    CHECK_INT(dir_make(check_path("d/e//f/"), &err), TFM_OK, "a folder with its parents");
    CHECK(file_exists(check_path("d/e/f")), "  is there");
    CHECK_INT(dir_make(check_path("d/e/f"), &err), TFM_OK, "  and may be there already");
    CHECK_INT(dir_make("/", &err), TFM_OK, "the root is there");
    CHECK_INT(dir_make("", &err), TFM_EIO, "no name");
    put(check_path("d/file"), "x");
    CHECK_INT(dir_make(check_path("d/file"), &err), TFM_EIO, "a file of that name");
    CHECK(strstr(err.message, "d/file: there is a file of that name") != NULL, "  is named");
    CHECK_INT(dir_make(check_path("d/file/g"), &err), TFM_EIO, "a file where a parent should be");
    CHECK(strstr(err.message, "/d/file") != NULL, "  is named");

    CHECK_INT(dir_remove(check_path("d"), &err), TFM_EIO, "folders in folders in a folder are not removed");
    CHECK(file_exists(check_path("d/e/f")), "  and are still there");
    rmdir(check_path("d/e/f"));
    put(check_path("outside"), "x");
    dir_make(check_path("d/e"), &err);
    put(check_path("d/e/file"), "x");
    put(check_path("d/e/.hidden"), "x");
    CHECK_INT(symlink(check_path("outside"), check_path("d/link")), 0, "(a link to a file outside)");
    CHECK_INT(symlink(check_tmp(), check_path("d/e/up")), 0, "(a link to a folder outside)");
    CHECK_INT(dir_remove(check_path("d"), &err), TFM_OK, "a folder with files, folders and links");
    CHECK(!file_exists(check_path("d")) && file_exists(check_path("outside")), "  is gone, and nothing else");
    CHECK_INT(dir_remove(check_path("d"), &err), TFM_OK, "  and need not be there");
    CHECK_INT(dir_remove(check_path("outside"), &err), TFM_EIO, "a file is no folder");
    unlink(check_path("outside"));
}

static void test_rename(void)
{
    dir_make(check_path("new"), &err);
    put(check_path("new/x"), "1");
    CHECK_INT(dir_rename(check_path("new"), check_path("end"), &err), TFM_OK, "a folder gets another name");
    CHECK_STR(content(check_path("end/x")), "1", "  with its files");
    CHECK(!file_exists(check_path("new")), "  and loses its own");
    dir_make(check_path("new"), &err);
    put(check_path("new/y"), "2");
    CHECK_INT(dir_rename(check_path("new"), check_path("end"), &err), TFM_OK, "a folder replaces another");
    CHECK(!file_exists(check_path("new")) && !file_exists(check_path("end/x")), "  of which nothing is left");
    CHECK_STR(content(check_path("end/y")), "2", "  and keeps its files");
    dir_make(check_path("empty"), &err);
    CHECK_INT(dir_rename(check_path("end/"), check_path("empty/"), &err), TFM_OK,
              "or an empty one, with slashes behind the names");
    CHECK_STR(content(check_path("empty/y")), "2", "  and keeps its files");
    CHECK_INT(dir_rename(check_path("none"), check_path("end"), &err), TFM_EIO, "a folder that is not there");
    put(check_path("file"), "x");
    CHECK_INT(dir_rename(check_path("empty"), check_path("file"), &err), TFM_EIO,
              "a folder does not replace a file");
    CHECK_INT(dir_rename(check_path("file"), check_path("empty"), &err), TFM_EIO, "a file is no folder");
    CHECK(file_exists(check_path("file")) && file_exists(check_path("empty/y")), "  and all is as it was");
}

static void test_join(void)
{
    struct str path = { 0 };
    path_join(&path, "a", "b", &err);
    CHECK_STR(path.data, "a/b", "join");
    path_join(&path, "a/", "b", &err);
    CHECK_STR(path.data, "a/b", "with a slash that is there");
    path_join(&path, "/", "b", &err);
    CHECK_STR(path.data, "/b", "with the root");
    path_join(&path, "", "b", &err);
    CHECK_STR(path.data, "b", "with no folder");
    str_release(&path);
}

int main(void)
{
    test_read_and_write();
    test_map();
    test_refusals();
    test_make_and_remove();
    test_rename();
    test_join();
    return check_done();
}
