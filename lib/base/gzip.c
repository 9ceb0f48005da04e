/*
 * gzip.c: gzip files (RFC 1952) of many members, so that threads deflate and inflate them side by side. A
 * member is, all numbers being little-endian,
 *     1f 8b 08 04, time 0 (4 bytes), extra flags 0, system 255
 *     12 (2 bytes), 'T' 'F', 8 (2 bytes), length of the member (8 bytes)
 *     deflated data, its CRC-32 (4 bytes), its length before modulo 2^32 (4 bytes)
 * The file's bytes depend on the data and on zlib's version only, not on the threads.
 */
#include "base/gzip.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"

#define MEMBER_SIZE   ((size_t)4 << 20)
#define HEADER_SIZE   24
#define TRAILER_SIZE  8
#define LEAST_MEMBER  18   /* header without fields, trailer; deflated data takes two bytes at least */
#define DEFLATE_RATIO 1032 /* deflate shrinks no further: 258 bytes from two bits */
#define STORED_ABOVE  85   /* percent that deflate leaves of a member: then it is stored */
#define PART          ((size_t)1 << 30) /* zlib counts in unsigned int */

bool gzip_is_name(const char *path)
{
    size_t len = strlen(path);
    return len > 3 && strcmp(path + len - 3, ".gz") == 0;
}

static void put_number(unsigned char *bytes, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_number(const unsigned char *bytes, int n)
{
    uint64_t value = 0;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* ---- writing ---- */

struct packing { /* of one member */
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_size, out_cap;
    bool failed;
};

/* Deflates at a level into p->out behind the header; false if memory or room runs out. */
static bool deflate_member(struct packing *p, int level)
{
    z_stream z = { .zalloc = mem_zlib_alloc, .zfree = mem_zlib_free };
    if (deflateInit2(&z, level, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) /* minus: no header */
        return false;
    z.next_in = (unsigned char *)(uintptr_t)p->in; /* zlib takes it without const and does not write to it */
    z.avail_in = (unsigned int)p->in_size;
    z.next_out = p->out + HEADER_SIZE;
    z.avail_out = (unsigned int)(p->out_cap - HEADER_SIZE - TRAILER_SIZE);
    int result = deflate(&z, Z_FINISH);
    p->out_size = HEADER_SIZE + (size_t)(z.next_out - (p->out + HEADER_SIZE)) + TRAILER_SIZE;
    deflateEnd(&z);
    return result == Z_STREAM_END;
}

static void pack_task(void *arg, int i, int worker)
{
    (void)worker;
    struct packing *p = (struct packing *)arg + i;
    p->failed = !deflate_member(p, Z_DEFAULT_COMPRESSION);
    /* What hardly shrinks is read ten times as fast when it is stored. */
    if (!p->failed && p->out_size > p->in_size / 100 * STORED_ABOVE)
        p->failed = !deflate_member(p, Z_NO_COMPRESSION);
    if (p->failed)
        return;
    static const unsigned char head[16] = { 0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 12, 0, 'T', 'F', 8, 0 };
    memcpy(p->out, head, sizeof(head));
    put_number(p->out + sizeof(head), p->out_size, 8);
    unsigned char *trailer = p->out + p->out_size - TRAILER_SIZE;
    put_number(trailer, crc32(0, p->in, (unsigned int)p->in_size), 4);
    put_number(trailer + 4, p->in_size, 4);
}

/* The size of the piece that begins at `at`. */
static size_t piece_size(size_t at, size_t size, size_t first_size)
{
    if (at == 0 && first_size > 0)
        return first_size;
    return size - at < MEMBER_SIZE ? size - at : MEMBER_SIZE;
}

/* Gives a piece to p, with room for its member however badly it deflates. */
static enum tfm_status load_piece(struct packing *p, const unsigned char *in, size_t in_size,
                                  struct tfm_error *err)
{
    size_t cap = in_size + in_size / 7 + 256;
    if (cap > p->out_cap) {
        mem_free(p->out);
        p->out_cap = 0;
        p->out = mem_alloc(cap, err);
        if (p->out == NULL)
            return TFM_ENOMEM;
        p->out_cap = cap;
    }
    p->in = in;
    p->in_size = in_size;
    return TFM_OK;
}

/* Writes all members, n_slots at a time. */
static enum tfm_status write_members(struct file_writer *writer, const unsigned char *data, size_t size,
                                     size_t first_size, struct packing *slots, int n_slots, struct pool *pool,
                                     struct tfm_error *err)
{
    size_t at = 0;
    do { /* at least once: a file of no bytes has one member */
        int n = 0;
        do {
            size_t piece = piece_size(at, size, first_size);
            TRY(load_piece(&slots[n++], data + at, piece, err));
            at += piece;
        } while (at < size && n < n_slots);
        pool_run(pool, n, pack_task, slots);
        for (int i = 0; i < n; i++) {
            if (slots[i].failed)
                return err_set(err, TFM_ENOMEM, "no memory to deflate %zu bytes", slots[i].in_size);
            TRY(file_add(writer, slots[i].out, slots[i].out_size, err));
        }
    } while (at < size);
    return TFM_OK;
}

enum tfm_status gzip_write(const char *path, const void *data, size_t size, size_t first_size,
                           struct pool *pool, struct tfm_error *err)
{
    assert(first_size <= size && first_size <= PART);
    int n_slots = pool_threads(pool);
    struct file_writer *writer = NULL;
    struct packing *slots = mem_alloc((size_t)n_slots * sizeof(*slots), err);
    if (slots == NULL)
        return TFM_ENOMEM;
    enum tfm_status status = file_create(&writer, path, err);
    if (status == TFM_OK)
        status = write_members(writer, data, size, first_size, slots, n_slots, pool, err);
    if (status == TFM_OK)
        status = file_commit(writer, err);
    else
        file_abandon(writer);
    for (int i = 0; i < n_slots; i++)
        mem_free(slots[i].out);
    mem_free(slots);
    return status;
}

/* ---- reading ---- */

struct unpacking { /* of one member */
    const unsigned char *in;
    size_t in_size;
    unsigned char *out;
    size_t out_size;
    const char *problem; /* NULL: none */
    bool no_memory;
};

static bool is_gzip(const unsigned char *in, size_t size)
{
    return size >= 2 && in[0] == 0x1f && in[1] == 0x8b;
}

/* The length that a member gives for itself, or 0 if it gives none or one that cannot be. */
static size_t member_size(const unsigned char *in, size_t left)
{
    if (left < HEADER_SIZE + TRAILER_SIZE || !is_gzip(in, left) || (in[3] & 4) == 0)
        return 0;
    size_t end = 12 + get_number(in + 10, 2); /* of the extra field */
    for (size_t at = 12; at + 4 <= end && end <= left;) {
        size_t field = get_number(in + at + 2, 2);
        if (in[at] == 'T' && in[at + 1] == 'F' && field == 8 && at + 12 <= end) {
            uint64_t n = get_number(in + at + 4, 8);
            return n >= end + TRAILER_SIZE && n <= left && n <= PART ? (size_t)n : 0;
        }
        at += 4 + field;
    }
    return 0;
}

/* Counts the members and adds up their inflated sizes, which their last four bytes give; 0 if the members do
 * not say how long they are. A size that deflate cannot reach is not believed, so that a small file cannot
 * ask for much. Fills in members if it is not NULL. */
static size_t find_members(const unsigned char *in, size_t size, struct unpacking *members, size_t *total)
{
    size_t n = 0;
    *total = 0;
    for (size_t at = 0; at < size; n++) {
        size_t in_size = member_size(in + at, size - at);
        if (in_size == 0)
            return 0;
        size_t out_size = get_number(in + at + in_size - 4, 4);
        if (out_size > in_size * DEFLATE_RATIO || out_size > PART)
            return 0;
        if (members != NULL)
            members[n] = (struct unpacking){ .in = in + at, .in_size = in_size, .out_size = out_size };
        *total += out_size;
        at += in_size;
    }
    return n;
}

static void unpack_task(void *arg, int i, int worker)
{
    (void)worker;
    struct unpacking *u = (struct unpacking *)arg + i;
    z_stream z = { .zalloc = mem_zlib_alloc, .zfree = mem_zlib_free };
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) { /* + 16: with the header and the checksum of gzip */
        u->no_memory = true;
        return;
    }
    z.next_in = (unsigned char *)(uintptr_t)u->in; /* zlib takes it without const and does not write to it */
    z.avail_in = (unsigned int)u->in_size;
    z.next_out = u->out;
    z.avail_out = (unsigned int)u->out_size;
    int result = inflate(&z, Z_FINISH);
    u->no_memory = result == Z_MEM_ERROR;
    if (result != Z_STREAM_END)
        u->problem = z.msg != NULL ? z.msg : "incorrect length";
    else if (z.avail_in > 0 || z.avail_out > 0)
        u->problem = "incorrect length";
    inflateEnd(&z);
}

static enum tfm_status read_members(const char *path, struct unpacking *members, size_t n, unsigned char *out,
                                    struct pool *pool, struct tfm_error *err)
{
    for (size_t i = 0; i < n; i++) {
        members[i].out = out;
        out += members[i].out_size;
    }
    pool_run(pool, (int)n, unpack_task, members);
    for (size_t i = 0; i < n; i++) {
        if (members[i].no_memory)
            return err_set(err, TFM_ENOMEM, "no memory to inflate %s", path);
        if (members[i].problem != NULL)
            return err_set(err, TFM_EFORMAT,
                           "%s: the gzip data is damaged (member %zu of %zu: %s); get the file anew", path,
                           i + 1, n, members[i].problem);
    }
    return TFM_OK;
}

static enum tfm_status too_large(const char *path, size_t most, struct tfm_error *err)
{
    return err_set(err, TFM_EFORMAT,
                   "%s: inflates to more than the %zu bytes that there can be; get the file anew", path,
                   most);
}

/* Inflates member after member into a block that grows. */
static enum tfm_status read_in_order(const char *path, z_stream *z, const unsigned char *in, size_t size,
                                     size_t most, char **out, size_t *out_size, struct tfm_error *err)
{
    /* The size at the end is right for a file of one member; otherwise it is a wrong guess, no harm. */
    size_t hint = size >= LEAST_MEMBER ? get_number(in + size - 4, 4) : 0;
    size_t cap = (hint < size * DEFLATE_RATIO && hint < most ? hint : size < most ? size : most) + 1024;
    size_t at = 0, n = 0;
    *out = mem_alloc(cap, err);
    if (*out == NULL)
        return TFM_ENOMEM;
    for (;;) {
        if (n == cap) {
            char *grown = mem_grow(*out, cap, cap * 2, 1, err);
            if (grown == NULL)
                return TFM_ENOMEM;
            *out = grown;
            cap *= 2;
        }
        size_t in_part = size - at < PART ? size - at : PART;
        size_t out_part = cap - n < PART ? cap - n : PART;
        z->next_in = (unsigned char *)(uintptr_t)(in + at);
        z->avail_in = (unsigned int)in_part;
        z->next_out = (unsigned char *)*out + n;
        z->avail_out = (unsigned int)out_part;
        int result = inflate(z, Z_NO_FLUSH);
        at += in_part - z->avail_in;
        n += out_part - z->avail_out;
        *out_size = n;
        if (n > most)
            return too_large(path, most, err);
        if (result == Z_STREAM_END) {
            if (!is_gzip(in + at, size - at))
                break;
            inflateReset(z);
        } else if (result == Z_MEM_ERROR) {
            return err_set(err, TFM_ENOMEM, "no memory to inflate %s", path);
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return err_set(err, TFM_EFORMAT, "%s: the gzip data is damaged (%s); get the file anew", path,
                           z->msg != NULL ? z->msg : "wrong header");
        } else if (at == size && n < cap) {
            return err_set(err, TFM_EFORMAT, "%s: the gzip data ends early; the file is truncated", path);
        }
    }
    for (; at < size; at++) { /* zeros are padding, as tapes leave it */
        if (in[at] != 0)
            return err_set(err, TFM_EFORMAT, "%s: the gzip data is followed by something else", path);
    }
    return TFM_OK;
}

/* Inflates a file that is in memory. On failure *out may still be a block. */
static enum tfm_status inflate_file(const char *path, const unsigned char *in, size_t size, size_t most,
                                    char **out, size_t *out_size, struct pool *pool, struct tfm_error *err)
{
    if (!is_gzip(in, size))
        return err_set(err, TFM_EFORMAT, "%s: is not a gzip file", path);
    size_t n = find_members(in, size, NULL, out_size);
    if (n == 0 || n > INT32_MAX) {
        z_stream z = { .zalloc = mem_zlib_alloc, .zfree = mem_zlib_free };
        if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
            return err_set(err, TFM_ENOMEM, "no memory to inflate %s", path);
        enum tfm_status status = read_in_order(path, &z, in, size, most, out, out_size, err);
        inflateEnd(&z);
        return status;
    }
    if (*out_size > most)
        return too_large(path, most, err);
    struct unpacking *members = mem_alloc(n * sizeof(*members), err);
    if (members == NULL)
        return TFM_ENOMEM;
    find_members(in, size, members, out_size);
    *out = mem_alloc_unset(*out_size, err);
    enum tfm_status status =
        *out == NULL ? TFM_ENOMEM : read_members(path, members, n, (unsigned char *)*out, pool, err);
    mem_free(members);
    return status;
}

enum tfm_status gzip_read(const char *path, size_t most, char **data, size_t *size, struct pool *pool,
                          struct tfm_error *err)
{
    const char *in;
    size_t in_size;
    *data = NULL;
    *size = 0;
    TRY(file_map(&in, &in_size, path, err));
    enum tfm_status status =
        inflate_file(path, (const unsigned char *)in, in_size, most, data, size, pool, err);
    file_unmap(in, in_size);
    if (status != TFM_OK) {
        mem_free(*data);
        *data = NULL;
        *size = 0;
    }
    return status;
}
