/*
 * view.c: hands the net that was just validated to an observer, with the first pairs of the validation set
 * that can be scored: the same at each validation, so that the numbers of updates can be compared.
 */
#include "train/view.h"

#include "base/mem.h"
#include "train/report.h"

#define N_SAMPLE 100

static enum tfm_status copy_side(struct ints *ids, const struct corpus_side *side, int pair,
                                 struct tfm_error *err)
{
    int n = corpus_length(side, pair);
    TRY(ints_reserve(ids, (size_t)n, err));
    corpus_copy(ids->data, side, pair);
    ids->n = (size_t)n;
    return TFM_OK;
}

static enum tfm_status show(const struct training *t, const struct train_callbacks *callbacks,
                            struct ints *pairs, int n, struct tfm_train_event *event, struct tfm_error *err)
{
    const struct corpus *c = &t->validate.corpus;
    bool has_source = t->config.task != CONFIG_LANGUAGE_MODEL;
    for (int i = 0; i < n; i++) {
        TRY(has_source ? copy_side(&pairs[2 * i], &c->source, i, err)
                       : ints_add(&pairs[2 * i], &c->source.eos, 1, err));
        TRY(copy_side(&pairs[2 * i + 1], &c->target, i, err));
    }
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s/attention/update-%ld", t->options.model, event->update);
    struct train_view view = { .net = &t->judged_net,
                               .kern = t->kern,
                               .pool = t->pool,
                               .source = t->vocab.source,
                               .target = t->vocab.target,
                               .pairs = pairs,
                               .n_pairs = n,
                               .folder = folder };
    TRY(callbacks->watch(callbacks->user, &view, &event->heads, &event->n_heads, err));
    event->text = folder;
    report_event(&t->options, event);
    return TFM_OK;
}

enum tfm_status view_attention(const struct training *t, const struct train_callbacks *callbacks,
                               struct tfm_train_event *event, struct tfm_error *err)
{
    int n = t->validate.corpus.n < N_SAMPLE ? t->validate.corpus.n : N_SAMPLE;
    struct ints *pairs = mem_alloc(2 * (size_t)n * sizeof(*pairs), err);
    if (pairs == NULL)
        return TFM_ENOMEM;
    struct tfm_error found;
    enum tfm_status status = show(t, callbacks, pairs, n, event, &found);
    for (int i = 0; i < 2 * n; i++)
        ints_release(&pairs[i]);
    mem_free(pairs);
    if (status == TFM_ENOMEM)
        return err_set(err, status, "%s", found.message);
    if (status != TFM_OK)
        report_note(&t->options, "attention is not shown: %s", found.message);
    return TFM_OK;
}
