/*
 * gzip_test.c: gzip files of independent members: any size comes back, gunzip and the line reader read them,
 * the bytes do not depend on the threads, and no damaged or hostile file is taken for a good one.
 */
#include "base/gzip.h"

#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/line.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "check.h"

#define MIB ((size_t)1 << 20)

static char path[600];
static struct tfm_error err;

static void fill(char *data, size_t size, int kind)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t x = rng_at(77, (uint32_t)i);
        data[i] = kind == 0 ? 0 : kind == 1 ? (char)(x % 20) : (char)x;
    }
}

static bool comes_back(const char *data, size_t size, struct pool *pool)
{
    char *found;
    size_t n;
    if (gzip_read(path, SIZE_MAX, &found, &n, pool, &err) != TFM_OK) {
        check_note("%s", err.message);
        return false;
    }
    bool same = n == size && memcmp(found, data, size) == 0;
    mem_free(found);
    return same;
}

static void test_round_trip(void)
{
    static const struct {
        size_t size, first;
        int kind; /* 0 zeros, 1 compressible, 2 noise */
    } cases[] = {
        { 0, 0, 0 },
        { 1, 0, 2 },
        { 1, 1, 2 },
        { 100, 40, 1 },
        { 100, 100, 1 },
        { 70000, 0, 2 },
        { 4 * MIB, 0, 0 },
        { 4 * MIB - 1, 0, 0 },
        { 4 * MIB + 1, 0, 1 },
        { 5 * MIB, MIB, 0 },
        { MIB, 1000, 2 },
        { 9 * MIB, 5 * MIB, 0 },
        { 20 * MIB + 7, 7, 0 },
    };
    struct pool *pools[3] = { NULL };
    pool_new(&pools[1], 1, &err);
    pool_new(&pools[2], 3, &err);
    char *data = mem_alloc(21 * MIB, &err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t size = cases[i].size, n = 0, n_before = 0;
        char *bytes = NULL, *before = NULL;
        bool good = true, same = true;
        fill(data, size, cases[i].kind);
        for (int p = 0; p < 3; p++) {
            good = good && gzip_write(path, data, size, cases[i].first, pools[p], &err) == TFM_OK;
            good = good && comes_back(data, size, pools[2 - p]);
            file_read(path, &bytes, &n, &err);
            same = same && (p == 0 || (n == n_before && memcmp(bytes, before, n) == 0));
            mem_free(before);
            before = bytes;
            n_before = n;
        }
        mem_free(before);
        CHECK(good, "%zu bytes of kind %d come back", size, cases[i].kind);
        CHECK(same, "  with the same file on any number of threads");
        CHECK(cases[i].kind != 2 || n <= size + size / 1000 + 200, "  noise is stored (%zu bytes)", n);
        CHECK(cases[i].kind != 1 || size < MIB || n < size * 2 / 3, "  other data shrinks (%zu bytes)", n);
        char command[1500];
        snprintf(command, sizeof(command), "gunzip -c <%s | cmp -s - %s.plain", path, path);
        char plain[620];
        snprintf(plain, sizeof(plain), "%s.plain", path);
        file_write(plain, data, size, &err);
        CHECK_INT(system(command), 0, "  gunzip agrees");
    }
    mem_free(data);
    pool_free(pools[1]);
    pool_free(pools[2]);
}

/* Writes a file of three members and returns its bytes. */
static char *make_file(size_t *size, char *data, size_t data_size)
{
    char *bytes;
    for (size_t i = 0; i < data_size; i++)
        data[i] = (char)(rng_at(3, (uint32_t)i) % 26 + 'a');
    for (size_t i = 79; i < data_size; i += 80)
        data[i] = '\n';
    gzip_write(path, data, data_size, data_size / 3, NULL, &err);
    file_read(path, &bytes, size, &err);
    return bytes;
}

static enum tfm_status read_bytes(const char *bytes, size_t size, char **data, size_t *n)
{
    if (file_write(path, bytes, size, &err) != TFM_OK)
        check_note("%s", err.message);
    return gzip_read(path, SIZE_MAX, data, n, NULL, &err);
}

static void test_damage(void)
{
    enum {
        SIZE = 600
    };
    char data[SIZE], *found;
    size_t size, n;
    char *bytes = make_file(&size, data, SIZE);
    int wrong = 0, caught = 0;
    for (size_t len = 0; len < size; len++) {
        enum tfm_status status = read_bytes(bytes, len, &found, &n);
        /* Cut just between two members it is a good file, but of less. */
        bool is_less = status == TFM_OK && n == SIZE / 3;
        wrong += status == TFM_OK ? !is_less : status != TFM_EFORMAT;
        wrong += status != TFM_OK && (found != NULL || n != 0);
        mem_free(found);
    }
    CHECK_INT(wrong, 0, "a file cut anywhere is an error");
    CHECK(strstr(err.message, "the gzip data ends early; the file is truncated") != NULL, "  that says so");
    wrong = 0;
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        enum tfm_status status = read_bytes(bytes, size, &found, &n);
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        caught += status == TFM_EFORMAT;
        wrong += status == TFM_OK ? n != SIZE || memcmp(found, data, SIZE) != 0 : status != TFM_EFORMAT;
        mem_free(found);
    }
    CHECK_INT(wrong, 0, "no flipped bit gives other data unnoticed");
    CHECK(caught > (int)(size - 2 * 22) * 8, "nearly all are caught (%d of %zu)", caught, size * 8);

    bytes[size - 8] ^= 1;
    CHECK_INT(read_bytes(bytes, size, &found, &n), TFM_EFORMAT, "a wrong checksum");
    CHECK(strstr(err.message, "the gzip data is damaged (member 2 of 2: incorrect data check)") != NULL,
          "  is named");
    mem_free(bytes);
}

/* Sets a little-endian number in a file of bytes, reads it, and puts the old one back. */
static enum tfm_status read_with(char *bytes, size_t size, size_t at, uint64_t value, int n_bytes)
{
    char old[8], *found;
    size_t n;
    memcpy(old, bytes + at, 8);
    for (int i = 0; i < n_bytes; i++)
        bytes[at + (size_t)i] = (char)(value >> (8 * i));
    enum tfm_status status = read_bytes(bytes, size, &found, &n);
    memcpy(bytes + at, old, 8);
    mem_free(found);
    return status;
}

static void test_hostile(void)
{
    enum {
        SIZE = 600
    };
    char data[SIZE], *found;
    size_t size, n;
    char *bytes = make_file(&size, data, SIZE);
    uint64_t first = (unsigned char)bytes[16];
    static const uint64_t lengths[] = {
        0, 1, 31, 32, 1000, UINT32_MAX, UINT64_MAX, UINT64_MAX - 15, (uint64_t)1 << 63
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        wrong += read_with(bytes, size, 16, lengths[i], 8) != TFM_OK;
    CHECK_INT(wrong, 0, "a length that cannot be is not believed, and the file is read in order");
    CHECK_INT(read_with(bytes, size, 16, first + 1, 8), TFM_OK, "nor one that leads to no member");
    CHECK_INT(read_with(bytes, size, 16, size, 8), TFM_EFORMAT, "a length over two members is an error");
    static const uint64_t sizes[] = { 0, SIZE / 3 - 1, SIZE / 3 + 1, 100000, INT32_MAX, UINT32_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        CHECK_INT(read_with(bytes, size, (size_t)first - 4, sizes[i], 4), TFM_EFORMAT,
                  "an inflated size of %llu is not believed", (unsigned long long)sizes[i]);
    CHECK_INT(read_with(bytes, size, size - 4, UINT32_MAX, 4), TFM_EFORMAT, "nor at the end of the file");
    for (uint64_t extra = 0; extra < 65536; extra += 4369)
        wrong += read_with(bytes, size, 10, extra, 2) == TFM_OK && extra != 12;
    CHECK_INT(wrong, 0, "extra fields of the wrong length");

    char tail[2000];
    memcpy(tail, bytes, size);
    memset(tail + size, 0, 100);
    CHECK(read_bytes(tail, size + 100, &found, &n) == TFM_OK && n == SIZE,
          "zeros behind the data are padding");
    mem_free(found);
    tail[size + 99] = 1;
    CHECK_INT(read_bytes(tail, size + 100, &found, &n), TFM_EFORMAT, "something else is not");
    CHECK(strstr(err.message, "the gzip data is followed by something else") != NULL, "  and is named");
    CHECK_INT(read_bytes("plain", 5, &found, &n), TFM_EFORMAT, "a plain file");
    CHECK(strstr(err.message, "is not a gzip file") != NULL, "  is named");
    CHECK_INT(read_bytes("", 0, &found, &n), TFM_EFORMAT, "an empty file is no gzip file");
    CHECK_INT(gzip_read("/nowhere/x.gz", SIZE_MAX, &found, &n, NULL, &err), TFM_EIO, "a missing file");
    CHECK_INT(gzip_write("/nowhere/x.gz", "x", 1, 0, NULL, &err), TFM_EIO, "a missing folder");
    CHECK_INT(gzip_write("/dev/full", "x", 1, 0, NULL, &err), TFM_EIO, "a full disk");
    mem_free(bytes);
}

/* Files as gzip(1) writes them, and members with other extra fields. */
static void test_foreign(void)
{
    static char data[300000];
    unsigned char buffer[400000];
    struct str file = { 0 };
    fill(data, sizeof(data), 1);
    for (int member = 0; member < 3; member++) {
        z_stream z = { 0 };
        unsigned char extra[] = "AB\3\0xyzTF\2\0zz";
        gz_header header = { .extra = extra, .extra_len = 13, .name = (unsigned char *)"name" };
        deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        if (member > 0)
            deflateSetHeader(&z, &header);
        z.next_in = (unsigned char *)data + member * 100000;
        z.avail_in = 100000;
        z.next_out = buffer;
        z.avail_out = sizeof(buffer);
        deflate(&z, Z_FINISH);
        str_add(&file, (char *)buffer, sizeof(buffer) - z.avail_out, &err);
        deflateEnd(&z);
        file_write(path, file.data, file.len, &err);
        CHECK(comes_back(data, 100000 * (size_t)(member + 1), NULL), "%d members without lengths",
              member + 1);
    }
    str_release(&file);

    static char zeros[3 << 20]; /* shrinks to a thousandth, so the block that it inflates into must grow */
    gzip_write(path, zeros, sizeof(zeros), 0, NULL, &err);
    char *bytes, *found;
    size_t size, n;
    file_read(path, &bytes, &size, &err);
    bytes[12] = 'X'; /* hides the length */
    CHECK(read_bytes(bytes, size, &found, &n) == TFM_OK && n == sizeof(zeros), "3 MiB of zeros in order");
    mem_free(found);
    str_add(&file, bytes, size, &err);
    str_add(&file, bytes, size, &err);
    CHECK(read_bytes(file.data, file.len, &found, &n) == TFM_OK && n == 2 * sizeof(zeros), "and twice");
    mem_free(found);
    mem_free(bytes);
    str_release(&file);
}

static void test_line_reader(void)
{
    enum {
        SIZE = 8000
    };
    char data[SIZE];
    size_t size;
    struct line_reader *reader;
    struct str line = { 0 }, all = { 0 };
    bool more;
    mem_free(make_file(&size, data, SIZE));
    line_open(&reader, path, &err);
    while (line_read(reader, &line, &more, &err) == TFM_OK && more)
        str_printf(&all, &err, "%s\n", line.data);
    line_free(reader);
    CHECK(all.len == SIZE && memcmp(all.data, data, SIZE) == 0,
          "the line reader reads the members as one text");
    str_release(&line);
    str_release(&all);
}

/* A small file can hold much more than there can be in it. */
static void test_most(void)
{
    static char data[6 << 20];
    char *found = NULL;
    size_t n, size = sizeof(data);
    for (int ours = 0; ours < 2; ours++) {
        const char *whose = ours ? "our members" : "one foreign member";
        if (ours) {
            gzip_write(path, data, size, 100, NULL, &err);
        } else {
            gzFile file = gzopen(path, "wb");
            gzwrite(file, data, (unsigned int)size);
            gzclose(file);
        }
        CHECK(gzip_read(path, size, &found, &n, NULL, &err) == TFM_OK && n == size, "%s: what may be there", whose);
        mem_free(found);
        CHECK_INT(gzip_read(path, size - 1, &found, &n, NULL, &err), TFM_EFORMAT, "%s: a byte more", whose);
        CHECK(found == NULL && strstr(err.message, "inflates to more than the 6291455 bytes") != NULL,
              "  is refused: %s", err.message);
        CHECK_INT(gzip_read(path, 10, &found, &n, NULL, &err), TFM_EFORMAT, "%s: much more", whose);
    }
}

static void test_no_memory(void)
{
    static char data[6 << 20];
    char *found = NULL;
    size_t n;
    fill(data, sizeof(data), 1);
    for (int what = 0; what < 2; what++) {
        int tries = 0, wrong = 0;
        for (enum tfm_status status = TFM_ENOMEM; status != TFM_OK; tries++) {
            mem_fail_after(tries);
            status = what == 0 ? gzip_write(path, data, sizeof(data), 100, NULL, &err)
                               : gzip_read(path, SIZE_MAX, &found, &n, NULL, &err);
            mem_fail_after(-1);
            wrong += status != TFM_OK && status != TFM_ENOMEM;
        }
        CHECK(tries > 4 && wrong == 0, "whichever of %d allocations fails in %s, it is said", tries,
              what == 0 ? "writing" : "reading");
    }
    mem_free(found);
}

int main(void)
{
    snprintf(path, sizeof(path), "%s/file.gz", check_tmp());
    test_round_trip();
    test_damage();
    test_hostile();
    test_foreign();
    test_line_reader();
    test_most();
    test_no_memory();
    return check_done();
}
