/*
 * mem.c: the only place that asks the system for heap memory. Blocks are zeroed and aligned to 64 bytes (a
 * cache line, and a whole AVX-512 register), and every request is counted, so that tests can prove that a
 * warm translator allocates nothing and can let the n-th request fail. The pages of a large block come from
 * the system when they are first touched, and that takes longer than to fill them: so huge ones are asked
 * for.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEM_ALIGN 64
#define HUGE_PAGE ((size_t)2 << 20)

static atomic_long n_allocations;
static atomic_long fail_after = -1;

/* True when a test wants this very request to fail. */
static bool must_fail(void)
{
    long left = atomic_load(&fail_after);
    while (left >= 0) {
        if (atomic_compare_exchange_weak(&fail_after, &left, left - 1))
            return left == 0;
    }
    return false;
}

/* A wish: where the system has no such pages, or others, the usual ones serve. */
static void ask_for_huge_pages(const char *block, size_t size)
{
    uintptr_t from = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t to = ((uintptr_t)block + size) / HUGE_PAGE * HUGE_PAGE;
    if (to > from)
        madvise((void *)from, to - from, MADV_HUGEPAGE);
}

static size_t rounded(size_t size)
{
    return ((size > 0 ? size : 1) + MEM_ALIGN - 1) / MEM_ALIGN * MEM_ALIGN;
}

void *mem_alloc_unset(size_t size, struct tfm_error *err)
{
    atomic_fetch_add(&n_allocations, 1);
    void *block = NULL;
    if (!must_fail() && size <= PTRDIFF_MAX - MEM_ALIGN)
        block = aligned_alloc(MEM_ALIGN, rounded(size));
    if (block == NULL) {
        err_set(err, TFM_ENOMEM, "no memory for a block of %zu bytes", size);
        return NULL;
    }
    ask_for_huge_pages(block, size);
    return block;
}

void *mem_alloc(size_t size, struct tfm_error *err)
{
    void *block = mem_alloc_unset(size, err);
    return block != NULL ? memset(block, 0, rounded(size)) : NULL;
}

void *mem_grow(void *block, size_t old_count, size_t new_count, size_t element, struct tfm_error *err)
{
    if (block != NULL && new_count <= old_count)
        return block;
    if (element != 0 && new_count > SIZE_MAX / element) {
        err_set(err, TFM_ENOMEM, "no memory for %zu elements of %zu bytes", new_count, element);
        return NULL;
    }
    void *grown = mem_alloc(new_count * element, err);
    if (grown != NULL && block != NULL) {
        memcpy(grown, block, old_count * element);
        mem_free(block);
    }
    return grown;
}

char *mem_strdup(const char *text, struct tfm_error *err)
{
    size_t size = strlen(text) + 1;
    char *copy = mem_alloc(size, err);
    return copy ? memcpy(copy, text, size) : NULL;
}

void mem_free(void *block)
{
    free(block);
}

void *mem_zlib_alloc(void *user, unsigned int items, unsigned int size)
{
    (void)user;
    return mem_alloc((size_t)items * size, NULL);
}

void mem_zlib_free(void *user, void *block)
{
    (void)user;
    mem_free(block);
}

long mem_allocations(void)
{
    return atomic_load(&n_allocations);
}

void mem_fail_after(long n)
{
    atomic_store(&fail_after, n);
}

double mem_peak(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && kib == 0 && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "VmHWM: %ld", &kib);
    if (file != NULL)
        fclose(file);
    return 1024.0 * (double)kib;
}
