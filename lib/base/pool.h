/*
 * pool.h: fork-join threads, the one owner of the cores. pool_run calls task(arg, i, worker) for i = 0..n-1,
 * each once, on the pool's threads (the caller is worker 0), in order of i as workers become free, and
 * returns when all are done. A NULL pool is the caller's thread alone.
 */
#ifndef TFM_BASE_POOL_H
#define TFM_BASE_POOL_H

#include "base/err.h"

struct pool;

typedef void pool_task(void *arg, int i, int worker);

enum tfm_status pool_new(struct pool **pool, int n_threads, struct tfm_error *err);
void pool_free(struct pool *pool);
int pool_threads(const struct pool *pool);
void pool_run(struct pool *pool, int n, pool_task *task, void *arg);

int pool_cores(void); /* cores this process may use */

#endif
