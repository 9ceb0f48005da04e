/*
 * safetensors_test.c: weights survive the way to disk and back, byte for byte; files that lie about
 * themselves are refused with a sentence that names the tensor; running out of memory leaves nothing
 * behind.
 */
#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "model/safetensors.h"

/* Two tensors, for files made by hand: "a" [2, 3] and "b" [3]. */
static struct param two[] = {
    { .name = "a", .rows = 2, .cols = 3, .offset = 0 },
    { .name = "b", .rows = 1, .cols = 3, .is_vector = true, .offset = 6 },
};
static const struct params two_params = { .list = two, .n = 2, .size = 9, .kept_size = 9 };

static void tiny_params(struct params *params, real **block)
{
    struct config config;
    struct tfm_error err;
    config_preset(&config, "tiny");
    config.source_vocab_size = config.vocab_size = 301;
    params_list(params, &config, &err);
    *block = mem_alloc(params->size * sizeof(real), &err);
    params_init(params, *block, 7);
}

static void test_round_trip(struct pool *pool, const char *name, enum tensor_type type)
{
    struct params params;
    real *block, *found;
    enum tensor_type found_type;
    struct tfm_error err = { 0 };
    tiny_params(&params, &block);
    const char *first = check_path("%s", name), *second = check_path("second.safetensors.gz"),
               *alone = check_path("alone.safetensors.gz");
    bool is_gzip = strstr(name, ".gz") != NULL;
    if (!is_gzip) {
        second = check_path("second.safetensors");
        alone = check_path("alone.safetensors");
    }
    CHECK(safetensors_write(first, &params, block, type, pool, &err) == TFM_OK, "%s is written", name);
    CHECK(safetensors_open(&found, first, &params, &found_type, pool, &err) == TFM_OK, "%s is read", name);
    CHECK_INT(found_type, type, "%s: its type", name);
    double worst = 0;
    for (size_t i = 0; i < params.size; i++)
        worst = check_worse(worst, fabs((double)(block[i] - found[i])) / fmax(fabs((double)block[i]), 6.2e-5));
    CHECK_NEAR(worst, 0, type == TENSOR_F16 ? 0x1p-11 : 0, "%s: its values", name);
    CHECK(safetensors_write(second, &params, found, type, pool, &err) == TFM_OK &&
              check_same_files(first, second),
          "%s: read and written again gives the same bytes", name);
    CHECK(safetensors_write(alone, &params, block, type, NULL, &err) == TFM_OK &&
              check_same_files(first, alone),
          "%s: without a pool too", name);
    memset(found, 0, params.size * sizeof(real));
    CHECK(safetensors_read(alone, &params, found, &found_type, NULL, &err) == TFM_OK &&
              safetensors_write(second, &params, found, type, NULL, &err) == TFM_OK &&
              check_same_files(first, second),
          "%s: read into a block that is there", name);
    mem_free(found);
    mem_free(block);
    params_release(&params);
}

static void test_gunzip(void)
{
    char command[2000];
    struct params params;
    real *block;
    struct tfm_error err;
    tiny_params(&params, &block);
    const char *zipped = check_path("x.safetensors.gz"), *plain = check_path("x.safetensors"),
               *out = check_path("x.out");
    safetensors_write(zipped, &params, block, TENSOR_F16, NULL, &err);
    safetensors_write(plain, &params, block, TENSOR_F16, NULL, &err);
    snprintf(command, sizeof(command), "gzip -dc '%s' > '%s'", zipped, out);
    CHECK(system(command) == 0 && check_same_files(plain, out), "gunzip gives the plain file");

    char *data;
    size_t size;
    uint64_t length;
    file_read(plain, &data, &size, &err);
    memcpy(&length, data, 8);
    CHECK(length % 8 == 0 && data[8] == '{' && size == 8 + length + 2 * params.size,
          "a header of whole 8 bytes");
    mem_free(data);
    mem_free(block);
    params_release(&params);
}

static void test_f16(void)
{
    static const struct {
        double value, stored;
    } cases[] = {
        { 0, 0 },
        { -0.0, -0.0 },
        { 1 + 0x1p-11, 1 },
        { 1 + 0x1.8p-10, 1 + 0x1p-9 },
        { 65504, 65504 },
        { -65504, -65504 },
        { 0x1p-24, 0x1p-24 },
        { 0x1p-25, 0 },
        { 0x1.8p-25, 0x1p-24 },
    };
    real block[9], found[9];
    enum tensor_type type;
    struct tfm_error err;
    const char *path = check_path("f16.safetensors");
    for (int i = 0; i < 9; i++)
        block[i] = (real)cases[i].value;
    safetensors_write(path, &two_params, block, TENSOR_F16, NULL, &err);
    CHECK(safetensors_read(path, &two_params, found, &type, NULL, &err) == TFM_OK, "halves are read");
    for (int i = 0; i < 9; i++)
        CHECK((double)found[i] == cases[i].stored && !signbit(found[i]) == !signbit(cases[i].stored),
              "%a is stored as %a", cases[i].value, cases[i].stored);
    static const double beyond[] = { 65505, -1e6, INFINITY, NAN };
    for (int i = 0; i < 4; i++) {
        block[7] = (real)beyond[i];
        CHECK_INT(safetensors_write(path, &two_params, block, TENSOR_F16, NULL, &err), TFM_EINVAL,
                  "%g is refused as F16", beyond[i]);
        CHECK(strstr(err.message, "tensor b holds") != NULL, "by name: %s", err.message);
    }
    CHECK(safetensors_write(path, &two_params, block, TENSOR_F32, NULL, &err) == TFM_OK,
          "F32 takes anything");
}

/* Writes length, header and data_size bytes of data, and reads the file. */
static enum tfm_status read_made(uint64_t length, const char *header, size_t data_size, real *block,
                                 enum tensor_type *type, struct tfm_error *err)
{
    const char *path = check_path("made.safetensors");
    struct str file = { 0 };
    *err = (struct tfm_error){ 0 };
    str_add(&file, (const char *)&length, 8, err);
    str_add(&file, header, strlen(header), err);
    for (size_t i = 0; i < data_size / 4; i++) {
        float value = (float)i;
        str_add(&file, (const char *)&value, 4, err);
    }
    str_add(&file, "\0\0\0", data_size % 4, err);
    file_write(path, file.data, file.len, err);
    str_release(&file);
    return safetensors_read(path, &two_params, block, type, NULL, err);
}

#define ENTRY(name, type, shape, offsets) \
    "\"" name "\":{\"dtype\":" type ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F32 "\"F32\""
#define F16 "\"F16\""
#define A ENTRY("a", F32, "[2,3]", "[0,24]")
#define B ENTRY("b", F32, "[3]", "[24,36]")
#define A_AND_B(type, shape, offsets) "{" A "," ENTRY("b", type, shape, offsets) "}" /* a different b */

static void test_foreign(void)
{
    real x[9];
    enum tensor_type type;
    struct tfm_error err;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"}," B "," A "}";
    CHECK(read_made(strlen(header), header, 36, x, &type, &err) == TFM_OK, "metadata, any order: %s",
          err.message);
    CHECK(x[0] == 0 && x[5] == 5 && x[6] == 6 && x[8] == 8 && type == TENSOR_F32, "with the right values");
    /* Whatever the header's length, and thus the alignment of the data, is. */
    header = "{" A " ," B "}";
    CHECK(read_made(strlen(header), header, 36, x, &type, &err) == TFM_OK && x[4] == 4 && x[7] == 7,
          "unaligned data of F32");
    header = "{" ENTRY("b", F16, "[3]", "[0,6]") "," ENTRY("a", F32, "[2,3]", "[6,30]") "}";
    CHECK(read_made(strlen(header), header, 30, x, &type, &err) == TFM_OK && type == TENSOR_F32,
          "mixed types");
    CHECK(x[6] == 0 && x[7] == 0 && x[8] == 0, "halves between floats"); /* 0.0f and the low half of 1.0f */
}

static void test_broken_headers(void)
{
    static const struct {
        const char *header;
        size_t data_size;
        const char *expected;
    } broken[] = {
        { "", 36, "not JSON" },
        { "{" A "," B, 36, "not JSON" },
        { "{" A "," B "}}", 36, "not JSON" },
        { "[1]", 0, "should be a JSON object" },
        { "null", 0, "not JSON" },
        { "{}", 0, "tensor a of the model that config.json describes is missing" },
        { "{" A "}", 24, "tensor b of the model" },
        { "{" A "," B "," ENTRY("c", F32, "[1]", "[36,40]") "}", 40, "tensor c has no place" },
        { "{" A "," A "," B "}", 36, "duplicate" },
        { "{" A ",\"b\":3}", 36, "tensor b has the dtype (none)" },
        { "{" A ",\"b\":[]}", 36, "tensor b has the dtype (none)" },
        { A_AND_B("\"BF16\"", "[3]", "[24,30]"), 30, "dtype BF16, expected F32 or F16" },
        { A_AND_B("32", "[3]", "[24,36]"), 36, "dtype (none)" },
        { "{" A ",\"b\":{\"dtype\":\"F32\",\"data_offsets\":[24,36]}}", 36, "shape (none), expected [3]" },
        { A_AND_B(F32, "\"3\"", "[24,36]"), 36, "shape \"3\", expected [3]" },
        { A_AND_B(F32, "[1,3]", "[24,36]"), 36, "shape [1,3], expected [3]" },
        { A_AND_B(F32, "[3.0]", "[24,36]"), 36, "shape [3.0], expected [3]" },
        { A_AND_B(F32, "[]", "[24,28]"), 28, "shape [], expected [3]" },
        { A_AND_B(F32, "[4294967299]", "[24,36]"), 36, "shape [4294967299]" },
        { A_AND_B(F32, "[-3]", "[24,36]"), 36, "shape [-3]" },
        { "{" ENTRY("a", F32, "[3,2]", "[0,24]") "," B "}", 36, "shape [3,2], expected [2,3]" },
        { "{" A ",\"b\":{\"dtype\":\"F32\",\"shape\":[3]}}", 36, "tensor b has no data_offsets" },
        { A_AND_B(F32, "[3]", "[24]"), 36, "no data_offsets" },
        { A_AND_B(F32, "[3]", "[24,36,48]"), 36, "no data_offsets" },
        { A_AND_B(F32, "[3]", "[24.0,36.0]"), 36, "no data_offsets" },
        { A_AND_B(F32, "[3]", "[36,24]"), 36, "no data_offsets" },
        { A_AND_B(F32, "[3]", "[-12,0]"), 36, "no data_offsets" },
        { A_AND_B(F32, "[3]", "[24,37]"), 37, "tensor b has 13 bytes, expected 12" },
        { A_AND_B(F16, "[3]", "[24,36]"), 36, "tensor b has 12 bytes, expected 6" },
        { A_AND_B(F32, "[3]", "[24,9223372036854775807]"), 36, "expected 12" },
        { A_AND_B(F32, "[3]", "[24,9223372036854775808]"), 36, "not JSON" },
        { A_AND_B(F32, "[3]", "[9223372036854775795,9223372036854775807]"), 36, "cut short" },
        { "{" A "," B "}", 35, "cut short: tensor b ends at byte 36 of 35 bytes" },
        { "{" A "," B "}", 0, "cut short: tensor a ends at byte 24 of 0 bytes" },
        { "{" A "," B "}", 40, "4 bytes at the end belong to no tensor" },
        { A_AND_B(F32, "[3]", "[20,32]"), 36, "the tensors a and b overlap" },
        { A_AND_B(F32, "[3]", "[0,12]"), 36, "overlap" },
        { A_AND_B(F32, "[3]", "[28,40]"), 40, "4 bytes before tensor b" },
        { "{" ENTRY("a", F32, "[2,3]", "[4,28]") "," ENTRY("b", F32, "[3]", "[28,40]") "}", 40,
          "4 bytes before tensor a" },
    };
    real block[9];
    enum tensor_type type;
    struct tfm_error err;
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        const char *header = broken[i].header;
        CHECK_INT(read_made(strlen(header), header, broken[i].data_size, block, &type, &err), TFM_EFORMAT,
                  "refused: %s", header);
        CHECK(strstr(err.message, broken[i].expected) != NULL, "and says: %s", err.message);
    }
}

static void test_broken_lengths(void)
{
    real block[9];
    enum tensor_type type;
    struct tfm_error err;
    const char *header = "{" A "," B "}";
    size_t size = strlen(header);
    static const uint64_t lengths[] = { 0,         1,          1000,           100000000,
                                        100000001, UINT64_MAX, UINT64_MAX - 7, 1ull << 63 };
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        CHECK_INT(read_made(lengths[i], header, 36, block, &type, &err), TFM_EFORMAT, "a length of %llu: %s",
                  (unsigned long long)lengths[i], err.message);
    CHECK_INT(read_made(size - 1, header, 36, block, &type, &err), TFM_EFORMAT, "a header cut: %s",
              err.message);
    CHECK_INT(read_made(size + 36, header, 36, block, &type, &err), TFM_EFORMAT, "data as header: %s",
              err.message);

    const char *path = check_path("short.safetensors");
    for (size_t n = 0; n < 8; n++) {
        file_write(path, "\0\0\0\0\0\0\0", n, &err);
        CHECK_INT(safetensors_read(path, &two_params, block, &type, NULL, &err), TFM_EFORMAT,
                  "a file of %zu bytes", n);
    }
    CHECK_INT(safetensors_read(check_tmp(), &two_params, block, &type, NULL, &err), TFM_EIO, "a folder: %s",
              err.message);
    CHECK_INT(safetensors_read(check_path("none"), &two_params, block, &type, NULL, &err), TFM_EIO,
              "no file: %s", err.message);
}

/* Every file cut short is refused, and so is one with a byte too many. */
static void test_truncated(const char *name)
{
    real block[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, found[9] = { 0 };
    enum tensor_type type;
    struct tfm_error err;
    char *data;
    size_t size, n_refused = 0;
    const char *path = check_path("%s", name);
    safetensors_write(path, &two_params, block, TENSOR_F32, NULL, &err);
    file_read(path, &data, &size, &err);
    for (size_t n = 0; n < size; n++) {
        file_write(path, data, n, &err);
        n_refused += safetensors_read(path, &two_params, found, &type, NULL, &err) == TFM_EFORMAT;
    }
    CHECK_INT((long long)n_refused, (long long)size, "%s: refused whatever is missing at the end", name);
    CHECK(found[0] == 0 && found[8] == 0, "%s: and the block left alone", name);
    struct str longer = { 0 };
    str_add(&longer, data, size, &err);
    str_add(&longer, "x", 1, &err);
    file_write(path, longer.data, longer.len, &err);
    CHECK_INT(safetensors_read(path, &two_params, found, &type, NULL, &err), TFM_EFORMAT,
              "%s: and with more: %s", name, err.message);
    str_release(&longer);
    mem_free(data);
}

/* A config.json that promises terabytes is refused by the file's header, before memory is asked for. */
static void test_huge(void)
{
    struct config config;
    struct params params;
    real block[9] = { 0 }, *found;
    enum tensor_type type;
    struct tfm_error err;
    const char *path = check_path("huge.safetensors");
    safetensors_write(path, &two_params, block, TENSOR_F32, NULL, &err);
    config_preset(&config, "base");
    config.d_model = 65536;
    config.source_vocab_size = config.vocab_size = 16777216;
    params_list(&params, &config, &err);
    CHECK_INT(safetensors_open(&found, path, &params, &type, NULL, &err), TFM_EFORMAT, "terabytes: %s",
              err.message);
    CHECK(found == NULL, "leave no block");
    params_release(&params);
}

static void test_no_memory(const char *name)
{
    real block[9] = { 0 }, *found = NULL;
    enum tensor_type type;
    struct tfm_error err;
    const char *path = check_path("%s", name);
    enum tfm_status status = TFM_ENOMEM;
    long n = 0, n_wrong = 0;
    for (; status == TFM_ENOMEM; n++) {
        mem_fail_after(n);
        status = safetensors_write(path, &two_params, block, TENSOR_F16, NULL, &err);
        mem_fail_after(-1);
    }
    CHECK(status == TFM_OK && n > 1, "%s: writing fails at each of %ld allocations, then not", name, n - 1);
    status = TFM_ENOMEM;
    for (n = 0; status == TFM_ENOMEM; n++) {
        mem_fail_after(n);
        status = safetensors_open(&found, path, &two_params, &type, NULL, &err);
        mem_fail_after(-1);
        n_wrong += (status == TFM_OK) != (found != NULL);
    }
    CHECK(status == TFM_OK && n > 1, "%s: reading fails at each of %ld allocations, then not", name, n - 1);
    CHECK_INT(n_wrong, 0, "%s: a failure leaves no block", name);
    mem_free(found);
}

int main(void)
{
    struct pool *pool;
    struct tfm_error err;
    if (pool_new(&pool, 3, &err) != TFM_OK)
        return 1;
    test_round_trip(pool, "f32.safetensors", TENSOR_F32);
    test_round_trip(pool, "f32.safetensors.gz", TENSOR_F32);
    test_round_trip(pool, "f16.safetensors", TENSOR_F16);
    test_round_trip(pool, "f16.safetensors.gz", TENSOR_F16);
    pool_free(pool);
    test_gunzip();
    test_f16();
    test_foreign();
    test_broken_headers();
    test_broken_lengths();
    test_truncated("cut.safetensors");
    test_truncated("cut.safetensors.gz");
    test_huge();
    test_no_memory("memory.safetensors");
    test_no_memory("memory.safetensors.gz");
    return check_done();
}
