/*
 * event_file.c: TensorBoard's event files, without its libraries. A file is a sequence of records (TFRecord):
 *
 *     length (8 bytes, little-endian)   masked CRC-32C of the length   data   masked CRC-32C of the data
 *
 * The data is a protocol buffer, tensorflow.Event: wall_time = 1 (double), step = 2 (int64), file_version = 3
 * (string, in the first record only), summary = 5 (message); a summary has values = 1 (message) with
 * tag = 1 (string) and simple_value = 2 (float). A mask keeps a CRC from being that of data with a CRC in it.
 */
#include "event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TAG_LONGEST = 100,
    RECORD_LONGEST = 64 + TAG_LONGEST
};
enum {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5
}; /* how a field is laid out */

uint32_t event_file_crc(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0); /* the polynomial, its bits reversed */
    }
    return ~crc;
}

struct message {
    unsigned char data[RECORD_LONGEST];
    size_t size;
};

static void put_bytes(struct message *m, const void *bytes, size_t size)
{
    memcpy(m->data + m->size, bytes, size);
    m->size += size;
}

/* The lowest `size` bytes of a number, little-endian. */
static void put_number(struct message *m, uint64_t number, int size)
{
    for (int i = 0; i < size; i++)
        m->data[m->size++] = (unsigned char)(number >> 8 * i);
}

/* Seven bits a byte, the lowest first; the highest bit tells that more follow. */
static void put_varint(struct message *m, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        m->data[m->size++] = (unsigned char)(number | 0x80);
    m->data[m->size++] = (unsigned char)number;
}

static void put_key(struct message *m, int field, int layout)
{
    put_varint(m, (uint64_t)(field << 3 | layout));
}

static void put_text(struct message *m, int field, const void *text, size_t size)
{
    put_key(m, field, BYTES);
    put_varint(m, size);
    put_bytes(m, text, size);
}

static void put_double(struct message *m, int field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_key(m, field, FIXED64);
    put_number(m, bits, 8);
}

static void put_float(struct message *m, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_key(m, field, FIXED32);
    put_number(m, bits, 4);
}

static uint32_t masked_crc(const struct message *m)
{
    uint32_t crc = event_file_crc(m->data, m->size);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void write_record(FILE *file, const struct message *event)
{
    struct message length = { .size = 0 }, end = { .size = 0 };
    put_number(&length, event->size, 8);
    put_number(&length, masked_crc(&length), 4);
    put_number(&end, masked_crc(event), 4);
    fwrite(length.data, 1, length.size, file);
    fwrite(event->data, 1, event->size, file);
    fwrite(end.data, 1, end.size, file);
}

FILE *event_file_open(const char *folder, char *path, size_t size)
{
    static const char version[] = "brain.Event:2";
    time_t now = time(NULL);
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < 1000; i++) {
        int n = snprintf(path, size, "%s/events.out.tfevents.%lld.tfm.%ld.%d", folder, (long long)now,
                         (long)getpid(), i);
        if (n < 0 || (size_t)n >= size) {
            errno = ENAMETOOLONG;
            return NULL;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        return NULL;
    FILE *file = fdopen(fd, "w");
    if (file == NULL) {
        int problem = errno;
        close(fd);
        errno = problem;
        return NULL;
    }
    struct message event = { .size = 0 };
    put_double(&event, 1, (double)now);
    put_text(&event, 3, version, sizeof(version) - 1);
    write_record(file, &event);
    return file;
}

void event_file_add(FILE *file, double wall_time, long step, const char *tag, double value)
{
    struct message entry = { .size = 0 }, summary = { .size = 0 }, event = { .size = 0 };
    size_t len = strlen(tag);
    put_text(&entry, 1, tag, len < TAG_LONGEST ? len : TAG_LONGEST);
    put_float(&entry, 2, (float)value);
    put_text(&summary, 1, entry.data, entry.size);
    put_double(&event, 1, wall_time);
    put_key(&event, 2, VARINT);
    put_varint(&event, (uint64_t)step);
    put_text(&event, 5, summary.data, summary.size);
    write_record(file, &event);
}
