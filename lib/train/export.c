/*
 * export.c: writes the trained weights as a model folder that translates, with their provenance: what they
 * were trained on, for how long, with which seed, and how good they were found. Files are named without their
 * folders, which are nobody's business.
 */
#include "train/export.h"

#include <inttypes.h>

#include "base/file.h"

static int set_name(json_t *object, const char *field, const char *path)
{
    if (path == NULL)
        return 0;
    /* A name that is not UTF-8 cannot stand in JSON. */
    json_t *name = json_string(path_base(path));
    return json_object_set_new(object, field, name != NULL ? name : json_string("(name not in UTF-8)"));
}

static int set_names(json_t *object, const struct tfm_corpus *corpus)
{
    bool is_text = corpus->target == NULL;
    return set_name(object, is_text ? "text" : "source", corpus->source) ||
           set_name(object, "target", corpus->target) || set_name(object, "tsv", corpus->tsv) ||
           set_name(object, "alignment", corpus->alignment);
}

/* One corpus is named by the fields themselves, several by a list of such fields and weights. */
static int set_corpora(json_t *object, const struct tfm_train_options *o)
{
    if (o->n_corpora == 1)
        return set_names(object, &o->corpora[0]);
    json_t *list = json_array();
    int failed = json_object_set_new(object, "corpora", list);
    for (int i = 0; i < o->n_corpora && !failed; i++) {
        double weight = o->corpora[i].weight;
        json_t *corpus = json_pack("{s:f}", "weight", weight > 0 ? weight : 1);
        failed = json_array_append_new(list, corpus) || set_names(corpus, &o->corpora[i]);
    }
    return failed;
}

/* What is not of every training. */
static int set_kind(json_t *object, const struct tfm_train_options *o, const struct train_state *state)
{
    if (o->arch == TFM_ARCH_ENCODER && json_object_set_new(object, "mask_rate", json_real(o->mask_rate)) != 0)
        return -1;
    return state->pretrained[0] != '\0' ? set_name(object, "pretrained", state->pretrained) : 0;
}

static int set_score(json_t *object, enum metric metric, const struct score *score)
{
    return score->has_best ? json_object_set_new(object, train_options_metric(metric), json_real(score->best))
                           : 0;
}

/* The weights of losses on heads, under their names. */
static int set_head_losses(json_t *object, const struct tfm_train_options *o, const struct config *config)
{
    struct head_loss losses[TFM_MAX_HEAD_LOSSES];
    struct head_terms terms;
    if (o->n_head_losses == 0)
        return 0;
    head_terms_bind(losses, &terms, o, config);
    json_t *list = json_object();
    int failed = json_object_set_new(object, "head_losses", list);
    for (int i = 0; i < o->n_head_losses && !failed; i++)
        failed = json_object_set_new(list, terms.list[i].name, json_real(o->head_losses[i].weight));
    return failed;
}

static json_t *provenance(const struct tfm_train_options *o, const struct config *config,
                          const struct train_state *state, const struct schedule_point *point,
                          uint64_t n_pairs)
{
    char seed[32];
    snprintf(seed, sizeof(seed), "%" PRIu64, o->seed);
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:I, s:f, s:f, s:I, s:f, s:i}", "tfm", TFM_VERSION, "preset", o->preset,
                  "seed", seed, "pairs", (json_int_t)n_pairs, "learn_rate", o->learn_rate, "epochs",
                  point->epochs, "updates", (json_int_t)point->update, "target_tokens", point->target_tokens,
                  "mini_batch_words", o->mini_batch_words);
    int failed = object == NULL || set_corpora(object, o) || set_head_losses(object, o, config) ||
                 set_kind(object, o, state) ||
                 json_object_set_new(object, "seconds", json_real(state->seconds));
    for (int m = 0; m < N_METRICS && !failed; m++)
        failed = set_score(object, (enum metric)m, &state->scores[m]);
    if (failed) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum tfm_status export_model(const struct tfm_train_options *options, const struct config *config,
                             const struct params *params, const real *weights,
                             const struct train_state *state, const struct schedule_point *point,
                             uint64_t n_pairs, struct pool *pool, struct tfm_error *err)
{
    json_t *training = provenance(options, config, state, point, n_pairs);
    if (training == NULL)
        return err_set(err, TFM_ENOMEM, "no memory to describe the model in %s", options->model);
    enum tfm_status status = model_write(options->model, config, training, params, weights,
                                         options->f16 ? TENSOR_F16 : TENSOR_F32, false, pool, err);
    json_decref(training);
    return status;
}
