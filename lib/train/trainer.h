/*
 * trainer.h: the training loop (tfm-train(1)). Translations for validation come through a callback, so that
 * train/ knows nothing of decode/.
 */
#ifndef TFM_TRAIN_TRAINER_H
#define TFM_TRAIN_TRAINER_H

#include "model/model.h"

struct train_view {        /* what an observer is shown of a training */
    const struct net *net; /* plain */
    const struct kern *kern;
    struct pool *pool;
    const struct spm *source, *target;
    const struct ints *pairs; /* [2 * n_pairs]: source, target, source ..., each with </s> */
    int n_pairs;
    const char *folder; /* for pictures */
};

struct train_callbacks {
    /* Translates lines with a net packed for translation; texts [n] are strings the callee allocates one by
     * one (mem_free; after a failure, none is left). */
    enum tfm_status (*translate)(void *user, const struct net *net, const struct spm *source,
                                 const struct spm *target, const char *const *lines, size_t n, int threads,
                                 char **texts, struct tfm_error *err);
    /* Looks at the net that was validated; heads belong to the callee and are valid until its next call. NULL
     * where nobody asked for it. */
    enum tfm_status (*watch)(void *user, const struct train_view *view, const struct tfm_head **heads,
                             int *n_heads, struct tfm_error *err);
    void *user;
};

enum tfm_status trainer_run(const struct tfm_train_options *options, const struct train_callbacks *callbacks,
                            struct tfm_error *err);

#endif
