/*
 * api.c: the parts of tfm.h that belong to no single folder: the version, the choice of kernels, and
 * training, where the trainer is given the translator that it validates with, since train/ and decode/ do
 * not know each other. The other functions of tfm.h stand in the files of their subject (lines_api.c,
 * compare_api.c, model.c, translator.c, train_options.c and those of inspect/).
 */
#include "base/mem.h"
#include "decode/translator.h"
#include "inspect/watch.h"
#include "num/cpu.h"
#include "train/dryrun.h"
#include "train/train_options.h"
#include "train/trainer.h"

const char *tfm_version(void)
{
    return TFM_VERSION;
}

enum tfm_status tfm_set_cpu(const char *tier, struct tfm_error *err)
{
    return cpu_set(tier, err);
}

const char *tfm_cpu(void)
{
    enum cpu_tier tier;
    struct tfm_error err;
    /* A TFM_CPU that cannot be had fails with its own message where a model is opened. */
    return cpu_tier_name(cpu_current(&tier, &err) == TFM_OK ? tier : cpu_best());
}

/* Validation's translations: beam search with the default options, of whole lines. */
static enum tfm_status translate_lines(void *user, const struct net *net, const struct spm *source,
                                       const struct spm *target, const char *const *lines, size_t n,
                                       int threads, char **texts, struct tfm_error *err)
{
    (void)user;
    struct tfm_translate_options options;
    tfm_translate_options_init(&options);
    options.threads = threads;
    enum cpu_tier tier;
    TRY(cpu_current(&tier, err));
    struct tfm_translator *translator;
    TRY(translator_new(&translator, net, source, target, kern_for(tier), &options, NULL, err));

    const struct tfm_translation *result;
    enum tfm_status status = tfm_translate(translator, lines, n, &result, err);
    size_t done = 0;
    for (; done < n && status == TFM_OK; done++) {
        texts[done] = mem_strdup(result[done].hypotheses[0].text, err);
        if (texts[done] == NULL) {
            status = TFM_ENOMEM;
            break;
        }
    }
    tfm_translator_free(translator);
    if (status != TFM_OK)
        while (done > 0)
            mem_free(texts[--done]);
    return status;
}

enum tfm_status tfm_train(const struct tfm_train_options *options, struct tfm_error *err)
{
    struct train_callbacks callbacks = { .translate = translate_lines };
    struct watch *watch = NULL;
    if (options->watch_attention != NULL) {
        TRY(watch_new(&watch, options->watch_attention, train_options_is_text(options), err));
        callbacks.watch = watch_view;
        callbacks.user = watch;
    }
    enum tfm_status status =
        options->dry_run != NULL ? dryrun_run(options, err) : trainer_run(options, &callbacks, err);
    watch_free(watch);
    return status;
}
