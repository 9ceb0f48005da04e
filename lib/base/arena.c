/*
 * arena.c: scratch memory in one reserved range of addresses. The range costs nothing until it is touched
 * (mmap with MAP_NORESERVE), so it can be generous, and blocks never move. Where the system refuses a large
 * range (a limit on address space, strict overcommit), the reservation is halved until it is granted, down to
 * 64 MiB.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA_ALIGN 64
#define ARENA_LEAST ((size_t)64 << 20) /* the smallest reservation tried, and the pages a reset keeps */

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

enum tfm_status arena_init(struct arena *arena, size_t reserve, struct tfm_error *err)
{
    *arena = (struct arena){ 0 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = reserve > SIZE_MAX / 4 ? SIZE_MAX / 4 : reserve;
    size = round_up(size > 0 ? size : 1, page);
    for (;;) {
        void *base =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base != MAP_FAILED) {
            arena->base = base;
            arena->size = size;
            return TFM_OK;
        }
        if (size <= ARENA_LEAST)
            break;
        size = size / 2 > ARENA_LEAST ? round_up(size / 2, page) : ARENA_LEAST;
    }
    return err_set(err, TFM_ENOMEM,
                   "no address space for %zu MiB of scratch memory (a limit such as ulimit -v?)",
                   round_up(size, (size_t)1 << 20) >> 20);
}

void arena_release(struct arena *arena)
{
    if (arena->base != NULL)
        munmap(arena->base, arena->size);
    *arena = (struct arena){ 0 };
}

void *arena_take(struct arena *arena, size_t size)
{
    /* Not an assert: going on in a build without asserts would write over foreign memory. */
    if (size > arena->size - arena->used) {
        fprintf(stderr, "arena_take: %zu bytes asked for, %zu of %zu left\n", size, arena->size - arena->used,
                arena->size);
        abort();
    }
    void *block = arena->base + arena->used;
    size_t end = round_up(arena->used + size, ARENA_ALIGN);
    arena->used = end < arena->size ? end : arena->size;
    if (arena->used > arena->peak)
        arena->peak = arena->used;
    return block;
}

void arena_reset(struct arena *arena, size_t mark)
{
    assert(mark <= arena->used);
    /* Pages near the mark are about to be used again; those far above it were an exception and go back. */
    if (arena->used - mark > ARENA_LEAST) {
        size_t from = round_up(mark + ARENA_LEAST, (size_t)sysconf(_SC_PAGESIZE));
        if (from < arena->used)
            madvise(arena->base + from, arena->used - from, MADV_DONTNEED);
    }
    arena->used = mark;
}
