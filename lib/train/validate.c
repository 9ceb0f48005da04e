/*
 * validate.c: judges weights on the validation set. Cross-entropy is the mean of -log p over all target
 * tokens, without label smoothing and dropout (pairs that are empty or over --max-length are left out),
 * perplexity its exponential, accuracy the part of the tokens that no other is more probable than; a masked
 * language model is asked for the same pieces each time. BLEU and chrF compare translations of all lines,
 * made as `tfm translate` would make them, with the other side.
 */
#include "train/validate.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "text/bleu.h"
#include "text/chrf.h"
#include "train/bitext.h"
#include "train/report.h"

#define BLOCK_LINES 4096 /* read at a time */
#define VALID_SEED  1    /* of masks, whatever the training's seed is */

static enum tfm_status read_blocks(struct validate *v, const struct bitext *bitext, struct tfm_error *err)
{
    for (int i = 0; i < bitext->n_blocks; i++)
        TRY(bitext_read(&v->text, bitext, i, NULL, 0, err));
    return TFM_OK;
}

static enum tfm_status read_set(struct validate *v, const struct tfm_train_options *o, const char *folder,
                                struct pool *pool, struct tfm_error *err)
{
    struct tfm_corpus files = { .source = o->valid_source, .target = o->valid_target, .tsv = o->valid_tsv };
    struct columns columns = { o->source_field, o->target_field };
    struct spool spool = { .folder = folder, .name = "valid", .stop = o->stop };
    struct bitext bitext;
    TRY(bitext_open(&bitext, &files, &columns, BLOCK_LINES, &spool, pool, err));
    bitext_report(&bitext, o);
    enum tfm_status status = read_blocks(v, &bitext, err);
    bitext_release(&bitext);
    return status == TFM_OK ? corpus_add(&v->corpus, &v->text, pool, err) : status;
}

enum tfm_status validate_init(struct validate *v, const struct metric_list *metrics,
                              const struct vocab *vocab, const struct tfm_train_options *o,
                              const char *folder, struct pool *pool, struct tfm_error *err)
{
    *v = (struct validate){ .metrics = *metrics };
    if (metrics->n == 0)
        return TFM_OK;
    const struct spm *target = train_options_is_text(o) ? NULL : vocab->target;
    enum tfm_status status = corpus_init(&v->corpus, vocab->source, target, o->max_length, 0, err);
    if (status == TFM_OK)
        status = read_set(v, o, folder, pool, err);
    if (status == TFM_OK && v->corpus.n == 0)
        status = err_set(err, TFM_EFORMAT,
                         "the validation set %s has nothing to be scored: of %zu lines, %ld are empty (on a "
                         "side) and %ld longer than %d pieces (--max-length)",
                         o->valid_tsv != NULL ? o->valid_tsv : o->valid_source, v->text.n, v->corpus.n_empty,
                         v->corpus.n_long, o->max_length);
    if (status != TFM_OK)
        validate_release(v);
    else if (v->corpus.n_empty + v->corpus.n_long > 0)
        report_note(o,
                    "validation set: %zu lines; cross-entropy leaves out %ld that are empty (on a side) and "
                    "%ld longer than %d pieces (--max-length)",
                    v->text.n, v->corpus.n_empty, v->corpus.n_long, o->max_length);
    return status;
}

void validate_release(struct validate *v)
{
    pairs_release(&v->text);
    corpus_release(&v->corpus);
    *v = (struct validate){ 0 };
}

/* All metrics of how probable targets are. */
static enum tfm_status score_targets(double *values, const struct validate *v, struct lanes *lanes,
                                     const struct lanes_run *how, struct tfm_error *err)
{
    struct xent_sum sum;
    double n_labels;
    struct lanes_run plain = *how;
    plain.corpus = &v->corpus;
    plain.criterion.smoothing = 0;
    plain.mask.seed = VALID_SEED;
    TRY(lanes_evaluate(&sum, &n_labels, lanes, &plain, err));
    values[METRIC_CE] = sum.nll / n_labels;
    values[METRIC_PERPLEXITY] = exp(values[METRIC_CE]);
    values[METRIC_ACCURACY] = (double)sum.right / n_labels;
    return TFM_OK;
}

/* Translates all lines and scores them, by all metrics of text. */
static enum tfm_status score_lines(double *values, const struct validate *v, const struct net *net,
                                   const struct vocab *vocab, const struct train_callbacks *callbacks,
                                   int threads, const char **lines, char **texts, struct tfm_error *err)
{
    size_t n = v->text.n;
    for (size_t i = 0; i < n; i++)
        lines[i] = pairs_source(&v->text, i);
    enum tfm_status status = callbacks->translate(callbacks->user, net, vocab->source, vocab->target, lines,
                                                  n, threads, texts, err);
    if (status != TFM_OK) {
        memset(texts, 0, n * sizeof(*texts)); /* it took back what it had made */
        return status;
    }
    for (size_t i = 0; i < n; i++)
        lines[i] = pairs_target(&v->text, i);
    TRY(bleu_score((const char *const *)texts, lines, n, &values[METRIC_BLEU], err));
    return chrf_score((const char *const *)texts, lines, n, &values[METRIC_CHRF], err);
}

static enum tfm_status translate_and_score(double *values, const struct validate *v, struct net *net,
                                           const struct vocab *vocab, const struct train_callbacks *callbacks,
                                           int threads, struct tfm_error *err)
{
    size_t n = v->text.n;
    real *packed = mem_alloc(net_packed_size(net) * sizeof(real), err);
    const char **lines = mem_alloc(n * sizeof(*lines), err);
    char **texts = mem_alloc(n * sizeof(*texts), err);
    enum tfm_status status = packed != NULL && lines != NULL && texts != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK) {
        net_pack(net, packed);
        status = score_lines(values, v, net, vocab, callbacks, threads, lines, texts, err);
    }
    for (size_t i = 0; texts != NULL && i < n; i++)
        mem_free(texts[i]);
    mem_free(texts);
    mem_free(lines);
    mem_free(packed);
    return status;
}

enum tfm_status validate_run(double *values, const struct validate *v, struct lanes *lanes,
                             const struct lanes_run *how, const struct config *config,
                             const struct weights *weights, const struct vocab *vocab,
                             const struct train_callbacks *callbacks, struct tfm_error *err)
{
    bool of_loss = false, of_text = false;
    for (int i = 0; i < v->metrics.n; i++) {
        enum metric metric = v->metrics.list[i];
        *(train_options_is_of_translations(metric) ? &of_text : &of_loss) = true;
    }
    if (of_loss)
        TRY(score_targets(values, v, lanes, how, err));
    if (!of_text)
        return TFM_OK;
    struct net *net = mem_alloc(sizeof(*net), err); /* large, and changed by packing */
    if (net == NULL)
        return TFM_ENOMEM;
    net_bind(net, config, weights);
    enum tfm_status status =
        translate_and_score(values, v, net, vocab, callbacks, pool_threads(how->pool), err);
    mem_free(net);
    return status;
}

bool validate_is_better(enum metric metric, double value, double than)
{
    return metric == METRIC_CE || metric == METRIC_PERPLEXITY ? value < than : value > than;
}
