/*
 * safetensors_int8_test.c: weights in whole numbers on disk: they survive the way there and back byte for
 * byte, are the same whether they are quantised in front of the file or behind it, and a file whose scales
 * are missing, misplaced or damaged is refused by name.
 */
#include "check.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/safetensors.h"
#include "num/int8.h"

/* Two tensors, for files made by hand: "a" [2, 3], quantisable, and "b" [3]. */
static struct param two[] = {
    { .name = "a", .rows = 2, .cols = 3, .quantisable = true },
    { .name = "b", .rows = 1, .cols = 3, .is_vector = true, .offset = 6, .kept_offset = 2 },
};
static const struct params two_params = { .list = two, .n = 2, .size = 9, .kept_size = 5 };

static void tiny_params(struct params *params, real **block)
{
    struct config config;
    struct tfm_error err;
    config_preset(&config, "tiny");
    config.source_vocab_size = config.vocab_size = 301;
    params_list(params, &config, &err);
    *block = mem_alloc(params->size * sizeof(real), &err);
    params_init(params, *block, 7);
    for (size_t i = 0; i < params->size; i += 3)
        (*block)[i] += (real)(0.01 * rng_normal(i));
}

/* What every matrix of block should be after the way through whole numbers. */
static real *rounded(const struct params *params, const real *block, int8_t *values, real *kept)
{
    struct tfm_error err;
    real *expected = mem_alloc(params->size * sizeof(real), &err);
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        size_t n = params_count(p);
        memcpy(expected + p->offset, block + p->offset, n * sizeof(real));
        if (!p->quantisable) {
            memcpy(kept + p->kept_offset, block + p->offset, n * sizeof(real));
            continue;
        }
        for (int row = 0; row < p->rows; row++) {
            size_t at = p->offset + (size_t)row * (size_t)p->cols;
            real scale = int8_quantise_row(values + at, block + at, p->cols);
            kept[p->kept_offset + (size_t)row] = scale;
            for (int j = 0; j < p->cols; j++)
                expected[at + (size_t)j] = scale * (real)values[at + (size_t)j];
        }
    }
    return expected;
}

static bool same_vectors(const struct loaded *loaded, const struct param *p, const real *expected)
{
    return memcmp(loaded_take_kept(loaded) + p->kept_offset, expected, params_count(p) * sizeof(real)) == 0;
}

static bool same_rows8(const struct loaded *loaded, const struct params *params, const int8_t *values,
                       const real *kept)
{
    enum {
        MOST = 5 /* rows at a time */
    };
    static int8_t room8[MOST * 512];
    static real room[512], scales[MOST];
    bool same = true;
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        if (!p->quantisable)
            same &= same_vectors(loaded, p, kept + p->kept_offset);
        for (int r = 0, n; p->quantisable && r < p->rows; r += n) {
            size_t cols = (size_t)p->cols;
            n = p->rows - r < MOST ? p->rows - r : MOST;
            const int8_t *rows = loaded_rows8(scales, room8, room, loaded, i, r, n);
            same &= memcmp(rows, values + p->offset + (size_t)r * cols, cols * (size_t)n) == 0 &&
                    memcmp(scales, kept + p->kept_offset + (size_t)r, (size_t)n * sizeof(real)) == 0;
            loaded_forget(loaded, i, r, n);
        }
    }
    return same;
}

static bool same_rows(const struct loaded *loaded, const struct params *params, const real *expected)
{
    static real row[512];
    bool same = true;
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        if (!p->quantisable)
            same &= same_vectors(loaded, p, expected + p->offset);
        for (int r = 0; p->quantisable && r < p->rows; r++) {
            loaded_row(row, loaded, i, r);
            same &= memcmp(row, expected + p->offset + (size_t)r * (size_t)p->cols,
                           (size_t)p->cols * sizeof(real)) == 0;
            loaded_forget(loaded, i, r, 1);
        }
    }
    return same;
}

static void close_loaded(struct loaded *loaded)
{
    mem_free(loaded_take_kept(loaded));
    loaded_free(loaded);
}

static void test_round_trip(struct pool *pool, const char *suffix)
{
    struct params params;
    struct loaded *loaded;
    struct tfm_error err = { 0 };
    real *block, *found;
    enum tensor_type type;
    tiny_params(&params, &block);
    int8_t *values = mem_alloc(params.size, &err);
    real *kept = mem_alloc(params.kept_size * sizeof(real), &err);
    real *expected = rounded(&params, block, values, kept);
    const char *int8 = check_path("int8.safetensors%s", suffix),
               *f32 = check_path("f32.safetensors%s", suffix),
               *again = check_path("again.safetensors%s", suffix);
    CHECK(safetensors_write(int8, &params, block, TENSOR_I8, pool, &err) == TFM_OK &&
              safetensors_write(f32, &params, block, TENSOR_F32, pool, &err) == TFM_OK,
          "%s: written", suffix);
    CHECK(safetensors_open(&found, int8, &params, &type, pool, &err) == TFM_OK, "%s: read: %s", suffix,
          err.message);
    CHECK(type == TENSOR_I8 && memcmp(found, expected, params.size * sizeof(real)) == 0,
          "%s: as reals they are scale * q", suffix);
    CHECK(safetensors_write(again, &params, found, TENSOR_I8, NULL, &err) == TFM_OK &&
              check_same_files(int8, again),
          "%s: these, written again, give the same bytes", suffix);
    mem_free(found);

    const char *files[] = { int8, f32 };
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "F32" : "I8";
        CHECK(safetensors_load(&loaded, files[i], &params, TFM_PRECISION_INT8, pool, &err) == TFM_OK &&
                  loaded_is_int8(loaded) && same_rows8(loaded, &params, values, kept),
              "%s: whole numbers of %s, quantised in front of the file or behind it", suffix, name);
        close_loaded(loaded);
        CHECK(safetensors_load(&loaded, files[i], &params, TFM_PRECISION_FP32, pool, &err) == TFM_OK &&
                  !loaded_is_int8(loaded) && same_rows(loaded, &params, i ? block : expected),
              "%s: reals of %s", suffix, name);
        close_loaded(loaded);
        CHECK(safetensors_load(&loaded, files[i], &params, TFM_PRECISION_KEEP, pool, &err) == TFM_OK &&
                  loaded_is_int8(loaded) == (i == 0),
              "%s: as they are", suffix);
        close_loaded(loaded);
    }
    mem_free(values);
    mem_free(kept);
    mem_free(expected);
    mem_free(block);
    params_release(&params);
}

/* ---- files made by hand ---- */

#define ENTRY(name, type, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* b at 0, the scales of a at 12, a at 20: 26 bytes. */
static enum tfm_status read_made(const char *header, float scale, int number, real *block,
                                 struct tfm_error *err)
{
    const char *path = check_path("made.safetensors");
    struct str file = { 0 };
    const float floats[] = { 1, 2, 3, 0.5f, scale };
    const int8_t numbers[] = { 1, -2, 3, 127, (int8_t)number, -127 };
    uint64_t length = strlen(header);
    enum tensor_type type;
    *err = (struct tfm_error){ 0 };
    str_add(&file, (const char *)&length, 8, err);
    str_add(&file, header, (size_t)length, err);
    str_add(&file, (const char *)floats, sizeof(floats), err);
    str_add(&file, (const char *)numbers, sizeof(numbers), err);
    file_write(path, file.data, file.len, err);
    str_release(&file);
    return safetensors_read(path, &two_params, block, &type, NULL, err);
}

#define A    ENTRY("a", "I8", "[2,3]", "[20,26]")
#define B    ENTRY("b", "F32", "[3]", "[0,12]")
#define S    ENTRY("a.scale", "F32", "[2]", "[12,20]")
#define GOOD "{" S "," A "," B "}"

static void test_damaged(void)
{
    static const struct {
        const char *header;
        float scale;
        int number;
        const char *message;
    } cases[] = {
        { "{" A "," B "}", 1, 1, "tensor a of I8 has no scales: a.scale is missing" },
        { "{" A "," B "," ENTRY("a.scale", "F32", "[3]", "[12,24]") "}", 1, 1,
          "tensor a.scale has the shape [3], expected [2]" },
        { "{" A "," B "," ENTRY("a.scale", "F32", "[2,1]", "[12,20]") "}", 1, 1,
          "tensor a.scale has the shape [2,1], expected [2]" },
        { "{" A "," B "," ENTRY("a.scale", "F16", "[2]", "[12,16]") "}", 1, 1,
          "tensor a.scale has the dtype F16, expected F32" },
        { "{" A "," B "," ENTRY("a.scale", "F32", "[2]", "[12,28]") "}", 1, 1,
          "tensor a.scale has 16 bytes" },
        { "{" A "," B "," ENTRY("a.scale", "F32", "[2]", "[10,18]") "}", 1, 1, "overlap" },
        { "{" A "," B "," ENTRY("a.scale", "F32", "[2]", "[19,27]") "}", 1, 1, "cut short: tensor a.scale" },
        { "{" A "," B "," S "," ENTRY("b.scale", "F32", "[1]", "[26,30]") "}", 1, 1,
          "tensor b.scale has no place" },
        { "{" A "," S "," ENTRY("b", "I8", "[3]", "[0,3]") "}", 1, 1,
          "tensor b has the dtype I8, expected F32 or F16" },
        { "{" B "," S "," ENTRY("a", "U8", "[2,3]", "[20,26]") "}", 1, 1,
          "tensor a has the dtype U8, expected F32, F16 or I8" },
        { "{" B "," S "," ENTRY("a", "F32", "[2,3]", "[20,44]") "}", 1, 1, "cut short: tensor a ends" },
        { GOOD, (float)NAN, 1, "tensor a.scale holds" },
        { GOOD, (float)INFINITY, 1, "tensor a.scale holds inf, expected finite numbers from 0 on" },
        { GOOD, -0.5f, 1, "tensor a.scale holds -0.5" },
        { GOOD, 1, -128, "tensor a holds -128, expected numbers from -127 to 127" },
    };
    real x[9];
    struct tfm_error err;
    CHECK(read_made(GOOD, 2, -4, x, &err) == TFM_OK, "a file of another writer is read: %s", err.message);
    CHECK(x[0] == 0.5f && x[1] == -1 && x[3] == 254 && x[4] == -8 && x[5] == -254 && x[6] == 1 && x[8] == 3,
          "with the right values");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        enum tfm_status status = read_made(cases[i].header, cases[i].scale, cases[i].number, x, &err);
        if (!CHECK(status == TFM_EFORMAT && strstr(err.message, cases[i].message) != NULL, "refused: %s",
                   cases[i].message))
            check_note("%s", err.message);
    }
    /* Scales of a matrix that is not in whole numbers. */
    const char *path = check_path("both.safetensors");
    struct str file = { 0 };
    const char *header = "{" ENTRY("a", "F32", "[2,3]", "[0,24]") "," ENTRY(
        "a.scale", "F32", "[2]", "[24,32]") "," ENTRY("b", "F32", "[3]", "[32,44]") "}";
    uint64_t length = strlen(header);
    enum tensor_type type;
    static const char zeros[44];
    str_add(&file, (const char *)&length, 8, &err);
    str_add(&file, header, (size_t)length, &err);
    str_add(&file, zeros, sizeof(zeros), &err);
    file_write(path, file.data, file.len, &err);
    str_release(&file);
    CHECK(safetensors_read(path, &two_params, x, &type, NULL, &err) == TFM_EFORMAT &&
              strstr(err.message, "there is a tensor a.scale, but a has the dtype F32, expected I8") != NULL,
          "refused: scales without whole numbers");
}

/* Reads the bytes of a file with something in the place of what was there. */
static enum tfm_status read_patched(const struct str *file, size_t at, const void *bytes, size_t n,
                                    struct tfm_error *err)
{
    real x[9];
    enum tensor_type type;
    struct str copy = { 0 };
    const char *path = check_path("patched.safetensors");
    str_add(&copy, file->data, file->len, err);
    memcpy(copy.data + at, bytes, n);
    file_write(path, copy.data, copy.len, err);
    str_release(&copy);
    return safetensors_read(path, &two_params, x, &type, NULL, err);
}

/* Written, they lie behind the scales of the rows: a.scale [0, 8], a.input_scale [8, 12], b [12, 24], a
 * [24, 30]. */
static void test_input_scales(void)
{
    real block[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, found[9], scales[2] = { 0.25f, 0 }, none[2] = { 0 };
    struct params params = two_params;
    struct loaded *loaded;
    struct tfm_error err = { 0 };
    enum tensor_type type;
    const char *path = check_path("input.safetensors"), *again = check_path("input-again.safetensors");
    params.input_scales = scales;
    CHECK(safetensors_write(path, &params, block, TENSOR_I8, NULL, &err) == TFM_OK,
          "with a scale of inputs: written");
    params.input_scales = none;
    CHECK(safetensors_read(path, &params, found, &type, NULL, &err) == TFM_OK && none[0] == 0.25f &&
              none[1] == 0,
          "and read: %s", err.message);
    CHECK(safetensors_write(again, &params, found, TENSOR_I8, NULL, &err) == TFM_OK &&
              check_same_files(path, again),
          "and written again, the same bytes");
    CHECK(safetensors_load(&loaded, path, &two_params, TFM_PRECISION_KEEP, NULL, &err) == TFM_OK &&
              loaded_input_scale(loaded, 0) == 0.25f && loaded_input_scale(loaded, 1) == 0,
          "and loaded");
    close_loaded(loaded);
    CHECK(safetensors_write(again, &params, block, TENSOR_F32, NULL, &err) == TFM_OK &&
              safetensors_read(again, &params, found, &type, NULL, &err) == TFM_OK && none[0] == 0,
          "reals have none");

    struct str file = { 0 };
    char *data;
    size_t size;
    file_read(path, &data, &size, &err);
    str_add(&file, data, size, &err);
    static const float bad[] = { 0, -1, (float)NAN, (float)INFINITY };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(read_patched(&file, size - 30 + 8, &bad[i], sizeof(float), &err) == TFM_EFORMAT &&
                  strstr(err.message, "tensor a.input_scale holds") != NULL &&
                  strstr(err.message, "expected a finite number above 0") != NULL,
              "refused: %s", err.message);
    const char *entry = strstr(data + 8, "\"a.input_scale\"");
    size_t at = (size_t)(entry - data);
    CHECK(read_patched(&file, at + strlen("\"a.input_scale\":{\"dtype\":\"F32\",\"shape\":["), "2", 1,
                       &err) == TFM_EFORMAT &&
              strstr(err.message, "tensor a.input_scale has the shape [2], expected [1]") != NULL,
          "refused: %s", err.message);
    CHECK(read_patched(&file, at + 1, "b", 1, &err) == TFM_EFORMAT &&
              strstr(err.message, "tensor b.input_scale has no place") != NULL,
          "refused: %s", err.message);
    mem_free(data);
    str_release(&file);
}

static void test_not_finite(void)
{
    real block[9] = { 1, 2, (real)NAN, 4, 5, 6, 7, 8, 9 }, room[3], scales[2];
    int8_t room8[6];
    struct loaded *loaded;
    struct tfm_error err;
    const char *path = check_path("nan.safetensors");
    CHECK_INT(safetensors_write(path, &two_params, block, TENSOR_I8, NULL, &err), TFM_EINVAL,
              "NaN is refused");
    CHECK(strstr(err.message, "tensor a holds") != NULL, "by name: %s", err.message);
    safetensors_write(path, &two_params, block, TENSOR_F32, NULL, &err);
    CHECK(safetensors_load(&loaded, path, &two_params, TFM_PRECISION_INT8, NULL, &err) == TFM_OK &&
              loaded_rows8(scales, room8, room, loaded, 0, 0, 2) == room8 && isnan(scales[0]) &&
              isfinite(scales[1]) && loaded_take_kept(loaded)[2] == 7,
          "and marks its row where a file of F32 has it");
    close_loaded(loaded);
}

static void test_no_memory(enum tfm_precision precision)
{
    real block[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    struct loaded *loaded;
    struct tfm_error err;
    const char *path = check_path("memory.safetensors");
    enum tfm_status status = TFM_ENOMEM;
    long n = 0;
    CHECK(safetensors_write(path, &two_params, block, TENSOR_I8, NULL, &err) == TFM_OK, "written");
    for (; status != TFM_OK && n < 100; n++) {
        mem_fail_after(n);
        status = safetensors_load(&loaded, path, &two_params, precision, NULL, &err);
        mem_fail_after(-1);
        if (status == TFM_OK)
            close_loaded(loaded);
        if (status != TFM_OK && status != TFM_ENOMEM)
            break;
    }
    CHECK(status == TFM_OK && n > 3, "loading fails at each of %ld allocations, then not", n - 1);
}

int main(void)
{
    struct pool *pool;
    struct tfm_error err;
    if (pool_new(&pool, 3, &err) != TFM_OK)
        return 1;
    test_round_trip(pool, "");
    test_round_trip(pool, ".gz");
    pool_free(pool);
    test_damaged();
    test_input_scales();
    test_not_finite();
    test_no_memory(TFM_PRECISION_INT8);
    test_no_memory(TFM_PRECISION_FP32);
    return check_done();
}
