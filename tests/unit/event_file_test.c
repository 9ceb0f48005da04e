/*
 * event_file_test.c: TensorBoard's event files, read by a reader of our own: frames and their check sums, the
 * fields of each message, numbers of all sizes; CRC-32C against the known values of RFC 3720, appendix B.4.
 */
#include "../../cmd/event_file.h"

#include <math.h>

#include "check.h"

struct event {
    double wall_time;
    uint64_t step;
    char version[40], tag[120];
    float value;
    bool has_value;
};

static uint64_t little(const unsigned char *bytes, int n)
{
    uint64_t number = 0;
    while (n-- > 0)
        number = number << 8 | bytes[n];
    return number;
}

static uint64_t varint(const unsigned char **at)
{
    uint64_t number = 0;
    int shift = 0;
    do {
        number |= (uint64_t)(**at & 0x7f) << shift;
        shift += 7;
    } while (*(*at)++ & 0x80);
    return number;
}

/* One message; a field of bytes that is a message is read by calling this again. */
static void read_message(struct event *event, const unsigned char *at, const unsigned char *end, int depth)
{
    while (at < end) {
        uint64_t key = varint(&at), n;
        switch (key << 4 | (uint64_t)depth) {
        case (1 << 3 | 1) << 4 | 0:
            n = little(at, 8);
            memcpy(&event->wall_time, &n, 8);
            at += 8;
            break;
        case (2 << 3 | 0) << 4 | 0: event->step = varint(&at); break;
        case (3 << 3 | 2) << 4 | 0:
        case (1 << 3 | 2) << 4 | 2:
            n = varint(&at);
            memcpy(depth == 0 ? event->version : event->tag, at, n);
            at += n;
            break;
        case (5 << 3 | 2) << 4 | 0:
        case (1 << 3 | 2) << 4 | 1:
            n = varint(&at);
            read_message(event, at, at + n, depth + 1);
            at += n;
            break;
        case (2 << 3 | 5) << 4 | 2: {
            uint32_t bits = (uint32_t)little(at, 4);
            memcpy(&event->value, &bits, 4);
            event->has_value = true;
            at += 4;
            break;
        }
        default: CHECK(false, "an unknown field, key %d, depth %d", (int)key, depth); return;
        }
    }
    CHECK(at == end, "a message ends where its length says");
}

static bool is_masked(const unsigned char *crc, const unsigned char *data, size_t size)
{
    uint32_t rotated = (uint32_t)little(crc, 4) - 0xa282ead8u;
    return (rotated >> 17 | rotated << 15) == event_file_crc(data, size);
}

/* The next record of a file in memory. */
static struct event read_record(const unsigned char **at, const unsigned char *end)
{
    struct event event = { 0 };
    uint64_t size = end - *at >= 16 ? little(*at, 8) : 0;
    if (!CHECK(size > 0 && size <= (uint64_t)(end - *at) - 16, "a record of %d bytes", (int)size))
        return event;
    CHECK(is_masked(*at + 8, *at, 8), "its length is sealed");
    CHECK(is_masked(*at + 12 + size, *at + 12, size), "its data are sealed");
    read_message(&event, *at + 12, *at + 12 + size, 0);
    *at += 16 + size;
    return event;
}

static void test_crc(void)
{
    unsigned char bytes[32] = { 0 };
    CHECK(event_file_crc("123456789", 9) == 0xe3069283, "CRC of 123456789");
    CHECK(event_file_crc("", 0) == 0, "CRC of nothing");
    CHECK(event_file_crc(bytes, 32) == 0x8a9136aa, "CRC of 32 bytes of zeros");
    memset(bytes, 0xff, sizeof(bytes));
    CHECK(event_file_crc(bytes, 32) == 0x62a8ab43, "CRC of 32 bytes of ones");
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    CHECK(event_file_crc(bytes, 32) == 0x46dd794e, "CRC of 0 .. 31");
}

static void test_file(void)
{
    static const struct {
        long step;
        const char *tag;
        double value;
    } written[] = { { 1, "train/loss", 5.25 },
                    { 127, "a", -0.0 },
                    { 128, "valid/bleu", 1e30 },
                    { 3000000000, "train/learn_rate", 1e-45 },
                    { 5, "infinite", INFINITY } };
    enum {
        N = sizeof(written) / sizeof(written[0])
    };
    char path[700], other[700];
    FILE *file = event_file_open(check_tmp(), path, sizeof(path));
    FILE *second = event_file_open(check_tmp(), other, sizeof(other));
    if (!CHECK(file != NULL && second != NULL, "two files in one folder"))
        return;
    CHECK(strcmp(path, other) != 0, "have two names");
    CHECK(strstr(path, "/events.out.tfevents.") != NULL, "of the kind that is looked for: %s", path);
    for (int i = 0; i < N; i++)
        event_file_add(file, 1e9 + i + 0.5, written[i].step, written[i].tag, written[i].value);
    CHECK(fclose(file) == 0 && fclose(second) == 0, "they are written");

    static unsigned char data[4096];
    file = fopen(path, "rb");
    size_t size = file != NULL ? fread(data, 1, sizeof(data), file) : 0;
    const unsigned char *at = data, *end = data + size;
    struct event event = read_record(&at, end);
    CHECK_STR(event.version, "brain.Event:2", "the first record tells the version");
    CHECK(!event.has_value && event.wall_time > 1e9, "and the time");
    for (int i = 0; i < N; i++) {
        event = read_record(&at, end);
        CHECK_STR(event.tag, written[i].tag, "a tag");
        CHECK(event.has_value && event.value == (float)written[i].value, "its value %g", written[i].value);
        CHECK(event.step == (uint64_t)written[i].step && event.wall_time == 1e9 + i + 0.5,
              "its step %ld and its time", written[i].step);
    }
    CHECK(at == end, "and that is all");
    if (file != NULL)
        fclose(file);
}

static void test_refused(void)
{
    char path[700], short_path[10];
    CHECK(event_file_open("/nowhere/at/all", path, sizeof(path)) == NULL, "a folder that is not there");
    CHECK(event_file_open(check_tmp(), short_path, sizeof(short_path)) == NULL, "a name that does not fit");
}

int main(void)
{
    test_crc();
    test_file();
    test_refused();
    return check_done();
}
