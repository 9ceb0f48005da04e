/*
 * trainer.h: the training loop (tfm-train(1)). Translations for validation come through a callback, so that
 * train/ knows nothing of decode/.
 */
#ifndef TFM_TRAIN_TRAINER_H
#define TFM_TRAIN_TRAINER_H

#include "model/model.h"

struct train_callbacks {
    /* Translates lines with a net packed for translation; texts [n] are strings the callee allocates one by
     * one (mem_free; after a failure, none is left). */
    enum tfm_status (*translate)(void *user, const struct net *net, const struct spm *source,
                                 const struct spm *target, const char *const *lines, size_t n, int threads,
                                 char **texts, struct tfm_error *err);
    void *user;
};

enum tfm_status trainer_run(const struct tfm_train_options *options, const struct train_callbacks *callbacks,
                            struct tfm_error *err);

#endif
