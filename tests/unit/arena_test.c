/*
 * arena_test.c: blocks of an arena are aligned, lie in order, are given back all at once; a large reservation
 * shrinks under a limit on address space, and asking for too much ends the program.
 */
#include "base/arena.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MIB ((size_t)1 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* a sanitizer needs more address space than any limit of ours */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SHADOW 1
#endif
#endif

static void test_take_and_reset(void)
{
    struct arena arena;
    struct tfm_error err;
    CHECK_INT(arena_init(&arena, 256 * MIB, &err), TFM_OK, "reserve 256 MiB");
    char *a = arena_take(&arena, 1);
    char *b = arena_take(&arena, 64);
    char *c = arena_take(&arena, 0);
    float *d = ARENA_TAKE(&arena, float, 100);
    CHECK((uintptr_t)a % 64 == 0 && b == a + 64 && c == b + 64 && (char *)d == c,
          "blocks lie in order, aligned");
    size_t mark = arena_mark(&arena);
    memset(arena_take(&arena, 200 * MIB), 1, 200 * MIB);
    CHECK(arena.peak >= 200 * MIB, "the peak is kept");
    arena_reset(&arena, mark);
    CHECK_INT(arena.used, mark, "reset gives back");
    char *again = arena_take(&arena, 200 * MIB);
    CHECK(again == arena.base + mark, "the same place is taken again");
    CHECK(again[0] == 1 && again[63 * MIB] == 1, "its nearest 64 MiB kept their pages");
    CHECK(again[65 * MIB] == 0 && again[200 * MIB - 1 - 4096] == 0, "those beyond were given back");
    again[200 * MIB - 1] = 1;
    arena_reset(&arena, 0);
    CHECK(arena_take(&arena, 256 * MIB) == arena.base, "the whole range may be taken");
    CHECK(arena_take(&arena, 0) != NULL && arena.used == arena.size, "and nothing more");
    arena_release(&arena);
    CHECK(arena.base == NULL, "released");
    arena_release(&arena);

    CHECK_INT(arena_init(&arena, 0, &err), TFM_OK, "an arena of nothing");
    arena_release(&arena);
    CHECK_INT(arena_init(&arena, SIZE_MAX, &err), TFM_OK,
              "an impossible reservation is halved until it is granted");
    *(char *)arena_take(&arena, 100) = 1;
    arena_release(&arena);
}

/* Runs f in a child; returns its wait status. */
static int in_child(void (*f)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        freopen("/dev/null", "w", stderr);
        f();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void take_too_much(void)
{
    struct arena arena;
    signal(SIGABRT, SIG_DFL);
    if (arena_init(&arena, MIB, NULL) == TFM_OK) {
        arena_take(&arena, MIB / 2);
        arena_take(&arena, MIB / 2 + 1);
    }
}

static void reserve_under_limit(void)
{
    struct arena arena;
    setrlimit(RLIMIT_AS, &(struct rlimit){ 512 * MIB, 512 * MIB });
    bool granted = arena_init(&arena, 4096 * MIB, NULL) == TFM_OK;
    _exit(granted && arena.size >= 64 * MIB && arena.size < 512 * MIB ? 42 : 1);
}

static void reserve_where_nothing_is_left(void)
{
    struct arena arena;
    struct tfm_error err;
    setrlimit(RLIMIT_AS, &(struct rlimit){ 32 * MIB, 32 * MIB });
    _exit(arena_init(&arena, 4096 * MIB, &err) == TFM_ENOMEM && arena.base == NULL ? 42 : 1);
}

int main(void)
{
    test_take_and_reset();
    int status = in_child(take_too_much);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "taking more than is left aborts");
#ifdef HAS_SHADOW
    SKIP("a limit on address space is more than a sanitizer bears");
    (void)reserve_under_limit;
    (void)reserve_where_nothing_is_left;
#else
    CHECK_INT(WEXITSTATUS(in_child(reserve_under_limit)), 42,
              "a limit on address space shrinks the reservation");
    CHECK_INT(WEXITSTATUS(in_child(reserve_where_nothing_is_left)), 42, "no room at all is an error");
#endif
    return check_done();
}
