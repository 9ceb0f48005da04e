/*
 * pool_test.c: every task runs once whatever the numbers of tasks and threads, results are visible after the
 * run, and running a pool from within its own task is caught.
 */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "check.h"

enum {
    MOST = 1000
};

struct record {
    int runs[MOST]; /* plain ints: the pool itself must order them */
    int workers[MOST];
    atomic_int last; /* task begun last by the only thread */
    bool in_order;
    pthread_t caller;
    atomic_bool caller_is_zero;
};

static void note_task(void *arg, int i, int worker)
{
    struct record *r = arg;
    r->runs[i]++;
    r->workers[i] = worker;
    if (worker == 0 && !pthread_equal(pthread_self(), r->caller))
        atomic_store(&r->caller_is_zero, false);
}

static void order_task(void *arg, int i, int worker)
{
    struct record *r = arg;
    (void)worker;
    r->in_order = r->in_order && i == atomic_fetch_add(&r->last, 1);
}

static bool run_once_each(struct pool *pool, struct record *r, int n)
{
    memset(r->runs, 0, sizeof(r->runs));
    pool_run(pool, n, note_task, r);
    for (int i = 0; i < MOST; i++) {
        if (r->runs[i] != (i < n) || r->workers[i] < 0 || r->workers[i] >= pool_threads(pool))
            return false;
    }
    return true;
}

static void test_counts(void)
{
    static struct record r;
    struct tfm_error err;
    struct pool *pool;
    r.caller = pthread_self();
    atomic_store(&r.caller_is_zero, true);
    for (int threads = 1; threads <= 9; threads += 2) {
        CHECK_INT(pool_new(&pool, threads, &err), TFM_OK, "a pool of %d", threads);
        CHECK_INT(pool_threads(pool), threads, "has %d threads", threads);
        memset(r.workers, 0, sizeof(r.workers));
        bool good = true;
        for (int n = 0; n <= 20; n++)
            good = good && run_once_each(pool, &r, n);
        for (int round = 0; round < 200; round++)
            good = good && run_once_each(pool, &r, round % 7);
        good = good && run_once_each(pool, &r, MOST);
        CHECK(good, "every task runs once on %d threads", threads);
        pool_free(pool);
    }
    CHECK(atomic_load(&r.caller_is_zero), "the caller alone is worker 0");
    pool_free(NULL);

    pool_new(&pool, 1, &err);
    r.in_order = true;
    pool_run(pool, MOST, order_task, &r);
    CHECK(r.in_order && atomic_load(&r.last) == MOST, "one thread runs the tasks in order");
    pool_free(pool);
    atomic_store(&r.last, 0);
    pool_run(NULL, MOST, order_task, &r);
    CHECK(r.in_order && atomic_load(&r.last) == MOST && pool_threads(NULL) == 1, "so does no pool at all");
    CHECK(pool_cores() >= 1, "there is a core");
}

static void inner_run(void *arg, int i, int worker)
{
    struct pool **pools = arg;
    static int sums[16];
    (void)worker;
    if (i == 0)
        pool_run(pools[1], 1, inner_run, &(struct pool *[]){ NULL, pools[1] });
    sums[i]++;
}

static void sum_task(void *arg, int i, int worker)
{
    (void)worker;
    ((long *)arg)[i] = i;
}

static void other_pool_task(void *arg, int i, int worker)
{
    long values[8];
    struct pool **pools = arg;
    (void)worker;
    pool_run(pools[i], 8, sum_task, values);
}

static void test_nesting(void)
{
    struct pool *outer, *inner[2];
    pool_new(&outer, 2, NULL);
    pool_new(&inner[0], 2, NULL);
    pool_new(&inner[1], 2, NULL);
    pool_run(outer, 2, other_pool_task, inner);
    CHECK(true, "a task may run another pool");
    pool_free(inner[0]);
    pool_free(inner[1]);
    pool_free(outer);

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct pool *pool;
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        signal(SIGABRT, SIG_DFL);
        freopen("/dev/null", "w", stderr);
        pool_new(&pool, 1, NULL);
        pool_run(pool, 1, inner_run, &(struct pool *[]){ NULL, pool });
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "but not its own");
}

static void test_no_memory(void)
{
    struct tfm_error err;
    struct pool *pool;
    for (int n = 0; n < 2; n++) {
        mem_fail_after(n);
        CHECK_INT(pool_new(&pool, 3, &err), TFM_ENOMEM, "no memory for allocation %d", n);
        CHECK(pool == NULL, "  and no pool");
    }
    mem_fail_after(-1);
}

int main(void)
{
    test_counts();
    test_nesting();
    test_no_memory();
    return check_done();
}
