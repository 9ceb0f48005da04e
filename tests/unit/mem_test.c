/*
 * mem_test.c: heap blocks are aligned, zeroed and counted, sizes that wrap are refused, and the n-th request
 * fails when a test wants it to.
 */
#include "base/mem.h"

#include <stdint.h>

#include "check.h"

static bool is_zero(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static void test_alloc(void)
{
    struct tfm_error err;
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 1000003 };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i];
        char *block = mem_alloc(size, &err);
        CHECK(block != NULL && (uintptr_t)block % 64 == 0, "%zu bytes are aligned to 64", size);
        CHECK(is_zero(block, size), "%zu bytes are zero", size);
        memset(block, 0xff, size);
        mem_free(block);
    }
    char *large = mem_alloc_unset((size_t)5 << 20, &err);
    CHECK(large != NULL && (uintptr_t)large % 64 == 0, "a block that is not zeroed is aligned, too");
    memset(large, 0xff, (size_t)5 << 20);
    mem_free(large);
    mem_free(NULL);
    for (size_t less = 0; less < 130; less += 43) {
        CHECK(mem_alloc(SIZE_MAX - less, &err) == NULL, "the address space less %zu bytes is refused", less);
        CHECK_INT(err.status, TFM_ENOMEM, "  with the right status");
    }
    CHECK(mem_alloc(SIZE_MAX, NULL) == NULL, "a failure without an error to write to");
}

static void test_grow(void)
{
    struct tfm_error err;
    int *block = mem_grow(NULL, 0, 3, sizeof(int), &err);
    CHECK(block != NULL && block[0] == 0 && block[2] == 0, "growing NULL is allocating");
    block[0] = 7;
    block[2] = 9;
    CHECK(mem_grow(block, 3, 2, sizeof(int), &err) == block, "a block never shrinks");
    CHECK(mem_grow(block, 3, 3, sizeof(int), &err) == block, "nor is copied for nothing");
    int *grown = mem_grow(block, 3, 5000, sizeof(int), &err);
    CHECK(grown[0] == 7 && grown[1] == 0 && grown[2] == 9, "content moves along");
    CHECK(is_zero((char *)(grown + 3), 4997 * sizeof(int)), "new elements are zero");
    CHECK(mem_grow(grown, 5000, SIZE_MAX / 2, sizeof(int), &err) == NULL, "a product that wraps is refused");
    mem_fail_after(0);
    CHECK(mem_grow(grown, 5000, 10000, sizeof(int), &err) == NULL && grown[2] == 9,
          "the old block stays valid on failure");
    mem_fail_after(-1);
    mem_free(grown);
}

static void test_count_and_fail(void)
{
    struct tfm_error err;
    long before = mem_allocations();
    char *copy = mem_strdup("Straße", &err);
    CHECK_STR(copy, "Straße", "strdup");
    mem_free(copy);
    CHECK_INT(mem_allocations() - before, 1, "one allocation is counted");

    mem_fail_after(2);
    void *a = mem_alloc(10, &err), *b = mem_alloc(10, &err), *c = mem_alloc(10, &err),
         *d = mem_alloc(10, &err);
    CHECK(a != NULL && b != NULL && c == NULL && d != NULL, "after two allocations one fails, and no other");
    CHECK_INT(err.status, TFM_ENOMEM, "and says so");
    mem_fail_after(0);
    CHECK(mem_strdup("x", &err) == NULL, "strdup fails too");
    mem_free(a);
    mem_free(b);
    mem_free(d);
}

int main(void)
{
    test_alloc();
    test_grow();
    test_count_and_fail();
    return check_done();
}
