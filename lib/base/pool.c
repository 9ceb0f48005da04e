/*
 * pool.c: fork-join threads. A run is announced under the mutex by a new round number; its tasks are handed
 * out by one atomic counter, so that they start in order as workers become free. A run calls up no more
 * workers than it has tasks, and with one task or one thread everything happens on the caller's thread.
 */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

struct worker {
    struct pool *pool;
    pthread_t thread;
    int number; /* from 1: the caller of pool_run is worker 0 */
};

struct pool {
    int n_threads;
    int n_started; /* threads that exist, the caller's not counted */
    struct worker *workers;
    atomic_bool is_running;
    atomic_long next; /* task to be handed out */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake, done;
    unsigned long round;
    bool must_stop;
    int n_called; /* workers that take part in this round, the caller counted */
    int n_busy;   /* of them, those not finished, the caller not counted */
    int n;
    pool_task *task;
    void *arg;
};

static void run_tasks(struct pool *pool, pool_task *task, void *arg, int n, int worker)
{
    for (;;) {
        long i = atomic_fetch_add(&pool->next, 1);
        if (i >= n)
            return;
        task(arg, (int)i, worker);
    }
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct pool *pool = worker->pool;
    unsigned long round = 0;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->round == round && !pool->must_stop)
            pthread_cond_wait(&pool->wake, &pool->mutex);
        if (pool->must_stop)
            break;
        round = pool->round;
        if (worker->number >= pool->n_called)
            continue;
        pool_task *task = pool->task;
        void *task_arg = pool->arg;
        int n = pool->n;
        pthread_mutex_unlock(&pool->mutex);
        run_tasks(pool, task, task_arg, n, worker->number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->n_busy == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static enum tfm_status start_threads(struct pool *pool, struct tfm_error *err)
{
    /* Signals belong to the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    for (int i = 0; i < pool->n_threads - 1 && !failed; i++) {
        struct worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->number = i + 1;
        failed = pthread_create(&worker->thread, NULL, worker_main, worker);
        if (!failed)
            pool->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        char reason[128];
        return err_set(err, TFM_ENOMEM, "only %d of %d threads could be started: %s", pool->n_started + 1,
                       pool->n_threads, strerror_r(failed, reason, sizeof(reason)));
    }
    return TFM_OK;
}

enum tfm_status pool_new(struct pool **pool, int n_threads, struct tfm_error *err)
{
    assert(n_threads >= 1);
    *pool = NULL;
    struct pool *p = mem_alloc(sizeof(*p), err);
    if (p == NULL)
        return TFM_ENOMEM;
    p->n_threads = n_threads;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->workers = mem_alloc((size_t)n_threads * sizeof(*p->workers), err);
    enum tfm_status status = p->workers != NULL ? start_threads(p, err) : TFM_ENOMEM;
    if (status != TFM_OK) {
        pool_free(p);
        return status;
    }
    *pool = p;
    return TFM_OK;
}

void pool_free(struct pool *pool)
{
    if (pool == NULL)
        return;
    assert(!atomic_load(&pool->is_running));
    pthread_mutex_lock(&pool->mutex);
    pool->must_stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    mem_free(pool->workers);
    mem_free(pool);
}

int pool_threads(const struct pool *pool)
{
    return pool != NULL ? pool->n_threads : 1;
}

void pool_run(struct pool *pool, int n, pool_task *task, void *arg)
{
    if (pool == NULL) {
        for (int i = 0; i < n; i++)
            task(arg, i, 0);
        return;
    }
    bool was_running = atomic_exchange(&pool->is_running, true);
    assert(!was_running); /* neither from within a task nor from two threads at once */
    (void)was_running;
    int n_called = n < pool->n_threads ? n : pool->n_threads;
    atomic_store(&pool->next, 0);
    if (n_called > 1) {
        pthread_mutex_lock(&pool->mutex);
        pool->task = task;
        pool->arg = arg;
        pool->n = n;
        pool->n_called = n_called;
        pool->n_busy = n_called - 1;
        pool->round++;
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    run_tasks(pool, task, arg, n, 0);
    if (n_called > 1) {
        pthread_mutex_lock(&pool->mutex);
        while (pool->n_busy > 0)
            pthread_cond_wait(&pool->done, &pool->mutex);
        pthread_mutex_unlock(&pool->mutex);
    }
    atomic_store(&pool->is_running, false);
}

int pool_cores(void)
{
    /* The set must have room for every processor of the machine, or the call is refused. */
    for (int limit = CPU_SETSIZE; limit <= 1 << 20; limit *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)limit);
        if (set == NULL)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)limit);
        int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0)
            return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
