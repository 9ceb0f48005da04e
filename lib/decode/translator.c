/*
 * translator.c: tfm_translate: from lines of text to lines of text. On the sentence's way: cmd_translate
 * calls tfm_translate, which runs three rounds over a pool of workers, each item on whichever is free:
 *     1. every line becomes pieces (spm_encode), in which terms of a glossary are looked for;
 *     2. the sentences, longest first, cut into batches, are searched (search_batch);
 *     3. the pieces found for every line become text (result_make, spm_decode).
 * A line of more than max_length pieces is cut into parts (plan.c) that are searched as sentences of their
 * own. To score a pair is to search with the whole target forced, so that a score is the one that the search
 * would have found. All that a call finds lies in the workers' `kept` arenas until the next call, so that
 * pointers stay good and a warm translator allocates nothing.
 */
#include "decode/translator.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "decode/worker.h"
#include "model/model.h"
#include "num/gemm.h"
#include "text/utf8.h"

#define KEPT_SIZE  ((size_t)4 << 30)  /* address space of a worker for the results of one call */
#define LEAST_SIZE ((size_t)64 << 20) /* of each arena where address space is limited */

/* ---- creation ---- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void release_arenas(struct tfm_translator *t)
{
    for (int i = 0; i < t->n_workers; i++) {
        arena_release(&t->workers[i].scratch);
        arena_release(&t->workers[i].kept);
    }
}

/* Reserves at most `limit` bytes for each arena of each worker, alike for all; false where the system does
 * not grant that, or would have little left for all else. */
static bool reserve_arenas(struct tfm_translator *t, size_t limit)
{
    size_t most = plan_scratch(t->options.max_length, t->options.mini_batch, &t->search, t->net);
    size_t scratch = smaller(most, limit), kept = smaller(KEPT_SIZE, limit);
    struct arena rest = { 0 };
    bool granted = true;
    for (int i = 0; i < t->n_workers && granted; i++) {
        struct worker *worker = &t->workers[i];
        granted = arena_init(&worker->scratch, scratch, NULL) == TFM_OK && worker->scratch.size >= scratch &&
                  arena_init(&worker->kept, kept, NULL) == TFM_OK && worker->kept.size >= kept;
    }
    granted = granted && arena_init(&rest, LEAST_SIZE, NULL) == TFM_OK;
    arena_release(&rest);
    if (!granted)
        release_arenas(t);
    return granted;
}

/* As much as the workers can use or, where address space is limited, as they can all have. */
static enum tfm_status init_arenas(struct tfm_translator *t, struct tfm_error *err)
{
    int longest = t->options.max_length;
    size_t one = search_scratch_base(&t->search, t->net) +
                 search_scratch(&t->search, t->net, longest, longest + 1, /* </s> may be forced, too */
                                t->search.most_term_pieces);
    size_t limit = SIZE_MAX / 4;
    while (!reserve_arenas(t, limit)) {
        if (limit <= LEAST_SIZE)
            return err_set(
                err, TFM_ENOMEM,
                "no address space for twice %zu MiB of scratch memory for each of %d threads: use fewer "
                "(--cpu-threads), or raise the limit (ulimit -v)",
                LEAST_SIZE >> 20, t->n_workers);
        limit /= 2;
        if (limit < LEAST_SIZE)
            limit = LEAST_SIZE;
    }
    size_t size = t->workers[0].scratch.size;
    if (size < one)
        return err_set(err, TFM_ENOMEM,
                       "a sentence of %d pieces with beam size %d may need %zu MiB of scratch memory and "
                       "this process may have %zu; lower the maximal length, the beam size or the number of "
                       "threads, or raise the limit (ulimit -v)",
                       t->options.max_length, t->options.beam_size, one >> 20, size >> 20);
    return TFM_OK;
}

static enum tfm_status translator_init(struct tfm_translator *t, struct tfm_error *err)
{
    if (t->options.glossary != NULL)
        TRY(glossary_read(&t->glossary, t->options.glossary, t->options.glossary_ignore_case, t->source,
                          t->target, err));
    t->search.most_term_pieces = t->glossary != NULL ? TERMS_PIECES : 0;
    int threads = t->options.threads > 0 ? t->options.threads : pool_cores();
    TRY(plan_init(&t->plan, t->options.max_length, err));
    t->workers = mem_alloc((size_t)threads * sizeof(*t->workers), err);
    if (t->workers == NULL)
        return TFM_ENOMEM;
    t->n_workers = threads;
    TRY(pool_new(&t->pool, threads, err)); /* its stacks come first: they do not shrink */
    for (int i = 0; i < threads && t->options.profile; i++)
        t->workers[i].profile = &t->workers[i].watch;
    return init_arenas(t, err);
}

enum tfm_status translator_new(struct tfm_translator **translator, const struct net *net,
                               const struct spm *source, const struct spm *target, const struct kern *kern,
                               const struct tfm_translate_options *options, const struct shortlist *shortlist,
                               struct tfm_error *err)
{
    struct ensemble one = { .n = 1, .nets = { net }, .weights = { 1 } };
    return translator_new_ensemble(translator, &one, source, target, kern, options, shortlist, err);
}

enum tfm_status translator_new_ensemble(struct tfm_translator **translator, const struct ensemble *ensemble,
                                        const struct spm *source, const struct spm *target,
                                        const struct kern *kern, const struct tfm_translate_options *options,
                                        const struct shortlist *shortlist, struct tfm_error *err)
{
    const struct net *net = ensemble->nets[0];
    *translator = NULL;
    TRY(translate_options_check(options, net->config, err));
    struct tfm_translator *t = mem_alloc(sizeof(*t), err);
    if (t == NULL)
        return TFM_ENOMEM;
    t->ensemble = *ensemble;
    t->net = net;
    t->source = source;
    t->target = target;
    t->kern = kern;
    t->options = *options;
    translate_options_search(&t->search, options, net->config);
    t->search.shortlist = shortlist;
    t->search.n_more = t->ensemble.n - 1;
    t->search.more = t->ensemble.nets + 1;
    t->search.weights = t->ensemble.weights;
    enum tfm_status status = translator_init(t, err);
    if (status != TFM_OK) {
        tfm_translator_free(t);
        return status;
    }
    *translator = t;
    return TFM_OK;
}

/* What is drawn is drawn from all of the model's distribution. *own is to be freed: what the model has
 * stays its. */
static enum tfm_status open_shortlist(const struct shortlist **shortlist, struct shortlist **own,
                                      const struct tfm_model *model,
                                      const struct tfm_translate_options *options, struct tfm_error *err)
{
    const char *name = options->shortlist;
    struct str path = { 0 };
    *shortlist = *own = NULL;
    if (name == NULL || strcmp(name, "off") == 0 || options->output_sampling != TFM_SAMPLING_NONE)
        return TFM_OK;
    bool is_models = strcmp(name, "auto") == 0;
    if (is_models && model->shortlist != NULL) {
        *shortlist = model->shortlist;
        return TFM_OK;
    }
    enum tfm_status status = is_models ? path_join(&path, model->folder, SHORTLIST_FILE, err) : TFM_OK;
    if (status == TFM_OK && (!is_models || file_exists(path.data)))
        status = shortlist_read(own, is_models ? path.data : name, model->source, model->target, err);
    str_release(&path);
    *shortlist = *own;
    return status;
}

enum tfm_status tfm_translator_new(struct tfm_translator **translator, const struct tfm_model *model,
                                   const struct tfm_translate_options *options, struct tfm_error *err)
{
    return tfm_translator_new_ensemble(translator, &model, NULL, 1, options, err);
}

enum tfm_status tfm_translator_new_ensemble(struct tfm_translator **translator,
                                            const struct tfm_model *const *models, const float *weights,
                                            int n_models, const struct tfm_translate_options *options,
                                            struct tfm_error *err)
{
    struct ensemble ensemble;
    const struct shortlist *shortlist;
    struct shortlist *own;
    *translator = NULL;
    TRY(ensemble_init(&ensemble, models, weights, n_models, err));
    const struct tfm_model *model = models[0];
    TRY(translate_options_check(options, &model->config, err));
    for (int i = 0; i < n_models; i++)
        if (models[i]->gemm == TFM_GEMM_BLAS)
            TRY(gemm_open(options->threads > 0 ? options->threads : pool_cores(), err));
    TRY(open_shortlist(&shortlist, &own, model, options, err));
    enum tfm_status status = translator_new_ensemble(translator, &ensemble, model->source, model->target,
                                                     model->kern, options, shortlist, err);
    if (status == TFM_OK)
        (*translator)->shortlist = own;
    else
        shortlist_free(own);
    return status;
}

void translator_note(struct tfm_translator *t, struct extents *extents)
{
    assert(t->n_workers == 1);
    t->extents = extents;
}

void tfm_translator_free(struct tfm_translator *t)
{
    if (t == NULL)
        return;
    pool_free(t->pool);
    release_arenas(t);
    for (int i = 0; i < t->n_workers; i++) {
        ints_release(&t->workers[i].pieces);
        str_release(&t->workers[i].text);
        str_release(&t->workers[i].spare);
        glossary_release(&t->workers[i].finds);
    }
    mem_free(t->workers);
    mem_free(t->lines);
    mem_free(t->translations);
    plan_release(&t->plan);
    shortlist_free(t->shortlist);
    glossary_free(t->glossary);
    mem_free(t);
}

/* ---- memory of a call ---- */

static enum tfm_status no_room(const struct worker *worker, struct tfm_error *err)
{
    return err_set(
        err, TFM_ENOMEM,
        "the translations of one call do not fit into the %zu MiB set aside for them; lower the "
        "maximal length factor or the number of hypotheses wanted, or translate fewer lines at once",
        worker->kept.size >> 20);
}

static bool has_room(const struct worker *worker, size_t size)
{
    return size < worker->kept.size - worker->kept.used;
}

void *worker_keep(struct worker *worker, size_t size)
{
    if (!has_room(worker, size)) {
        worker->status = no_room(worker, &worker->err);
        return NULL;
    }
    return arena_take(&worker->kept, size);
}

/* Runs a round and passes on the first worker's failure, if any. */
static enum tfm_status run_round(struct tfm_translator *t, int n, pool_task *task, struct tfm_error *err)
{
    for (int i = 0; i < t->n_workers; i++)
        t->workers[i].status = TFM_OK;
    pool_run(t->pool, n, task, t);
    for (int i = 0; i < t->n_workers; i++)
        profile_to(t->workers[i].profile, PROFILE_AWAY);
    for (int i = 0; i < t->n_workers; i++) {
        if (t->workers[i].status == TFM_OK)
            continue;
        if (err != NULL)
            *err = t->workers[i].err;
        return t->workers[i].status;
    }
    return TFM_OK;
}

/* ---- round 1: text to pieces ---- */

/* The text's pieces, kept, with room for one more; *n of them. NULL on failure. */
static int *encode_text(struct worker *worker, const struct spm *spm, const char *text, int *n)
{
    worker->pieces.n = 0;
    worker->status = spm_encode(spm, text, strlen(text), &worker->pieces, &worker->err);
    size_t n_pieces = worker->pieces.n;
    if (worker->status == TFM_OK && n_pieces > INT_MAX / 2)
        worker->status = err_set(&worker->err, TFM_EINVAL, "a line has more than %d pieces", INT_MAX / 2);
    if (worker->status != TFM_OK)
        return NULL;
    int *pieces = worker_keep(worker, (n_pieces + 1) * sizeof(int));
    if (pieces != NULL && n_pieces > 0)
        memcpy(pieces, worker->pieces.data, n_pieces * sizeof(int));
    *n = (int)n_pieces;
    return pieces;
}

/* Leaves out the rest of the n pieces of a line where that is asked for. */
static void crop(struct plan_line *line, int *n, const struct tfm_translator *t)
{
    line->is_cropped = t->options.max_length_crop && !t->is_scoring && *n > t->options.max_length;
    if (line->is_cropped)
        *n = t->options.max_length;
}

/* What the translation of a line begins with, or all of it. */
static void encode_target(struct tfm_translator *t, struct worker *worker, struct plan_line *line,
                          const char *target)
{
    int *pieces = encode_text(worker, t->target, target, &line->n_forced);
    if (pieces == NULL)
        return;
    line->is_whole = t->is_scoring || t->texts == NULL;
    line->forced = pieces;
    if (t->texts == NULL && !t->is_scoring)
        crop(line, &line->n_forced, t);
    line->is_too_long =
        line->n_forced > t->options.max_length || (t->is_scoring && line->n_pieces > t->options.max_length);
    if (line->is_too_long)
        *line = (struct plan_line){ .is_too_long = true };
    else if (t->is_scoring)
        pieces[line->n_forced++] = t->net->config->eos_token_id;
}

static void encode_line(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    struct plan_line *line = &t->lines[i];
    const char *text = t->texts != NULL ? t->texts[i] : "";
    bool is_blank = utf8_is_blank(text, strlen(text));
    if (worker->status != TFM_OK || (is_blank && t->texts != NULL && !t->is_scoring))
        return;
    profile_to(worker->profile, PROFILE_TEXT);
    line->key = rng_key(t->options.seed, t->n_lines_before + (uint64_t)i, 0, 0);
    line->pieces = is_blank ? NULL : encode_text(worker, t->source, text, &line->n_pieces);
    if (worker->status != TFM_OK)
        return;
    crop(line, &line->n_pieces, t);
    if (t->targets != NULL && t->targets[i] != NULL)
        encode_target(t, worker, line, t->targets[i]);
}

/* ---- round 2: search ---- */

static void translate_batch(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    /* Here matrices are packed, and lie in plain rows only where BLAS was asked for. */
    struct run run = { .arena = &worker->scratch,
                       .kern = t->kern,
                       .gemm = TFM_GEMM_BLAS,
                       .profile = worker->profile,
                       .extents = t->extents };
    struct search_options search = t->search;
    if (t->is_scoring) /* a score is the model's, of any target */
        search.shortlist = NULL;
    search_batch(t->plan.batches[i].sentences, t->plan.batches[i].n, &search, t->net, &worker->kept, &run);
}

/* ---- the call ---- */

/* What to search, and whether all that may be found has room. */
static enum tfm_status plan_search(struct tfm_translator *t, size_t n_lines, struct tfm_error *err)
{
    struct plan_limits limits = { .mini_batch = t->options.mini_batch,
                                  .n_workers = t->n_workers,
                                  .scratch = SIZE_MAX };
    for (int i = 0; i < t->n_workers; i++)
        if (t->workers[i].scratch.size < limits.scratch)
            limits.scratch = t->workers[i].scratch.size;
    TRY(plan_cut(&t->plan, t->lines, n_lines, t->source, err));
    if (t->glossary != NULL && !t->is_scoring)
        TRY(run_round(t, (int)n_lines, line_terms_find, err));
    TRY(plan_batches(&t->plan, &limits, &t->search, t->net, err));
    for (int i = 0; i < t->n_workers; i++)
        if (!has_room(&t->workers[i], t->plan.results))
            return no_room(&t->workers[i], err);
    return TFM_OK;
}

static bool is_language_model(const struct tfm_translator *t)
{
    return t->net->config->task == CONFIG_LANGUAGE_MODEL;
}

/* lines NULL: those of a language model, all empty; targets NULL, or what is forced on each line (NULL:
 * nothing). */
static enum tfm_status run_call(struct tfm_translator *t, const char *const *lines,
                                const char *const *targets, bool is_scoring, size_t n,
                                const struct tfm_translation **result, struct tfm_error *err)
{
    *result = NULL;
    if (n > INT_MAX / 2)
        return err_set(err, TFM_EINVAL, "%zu lines in one call; at most %d can be translated at once", n,
                       INT_MAX / 2);
    if (n == 0)
        return TFM_OK;
    TRY(plan_reserve(&t->lines, &t->lines_cap, n, sizeof(*t->lines), err));
    TRY(plan_reserve(&t->translations, &t->translations_cap, n, sizeof(*t->translations), err));
    memset(t->lines, 0, n * sizeof(*t->lines));
    for (int i = 0; i < t->n_workers; i++)
        arena_reset(&t->workers[i].kept, 0);

    double began = profile_clock();
    t->texts = lines;
    t->targets = targets;
    t->is_scoring = is_scoring;
    TRY(run_round(t, (int)n, encode_line, err));
    TRY(plan_search(t, n, err));
    TRY(run_round(t, t->plan.n_batches, translate_batch, err));
    TRY(run_round(t, (int)n, result_make, err));
    t->n_lines_before += n;
    t->seconds += profile_clock() - began;
    *result = t->translations;
    return TFM_OK;
}

/* A line is the beginning of a language model's text. */
enum tfm_status tfm_translate(struct tfm_translator *t, const char *const *lines, size_t n,
                              const struct tfm_translation **result, struct tfm_error *err)
{
    if (is_language_model(t))
        return run_call(t, NULL, lines, false, n, result, err);
    return run_call(t, lines, NULL, false, n, result, err);
}

enum tfm_status tfm_translate_forced(struct tfm_translator *t, const char *const *lines,
                                     const char *const *prefixes, size_t n,
                                     const struct tfm_translation **result, struct tfm_error *err)
{
    *result = NULL;
    if (!is_language_model(t))
        return run_call(t, lines, prefixes, false, n, result, err);
    for (size_t i = 0; i < n; i++)
        if (prefixes[i] != NULL && *prefixes[i] != '\0')
            return err_set(err, TFM_EINVAL,
                           "a language model goes on from its line: nothing else can be forced on it, found "
                           "\"%.100s\" (--force-decode)",
                           prefixes[i]);
    return tfm_translate(t, lines, n, result, err);
}

enum tfm_status tfm_score(struct tfm_translator *t, const char *const *lines, const char *const *targets,
                          size_t n, const struct tfm_translation **result, struct tfm_error *err)
{
    *result = NULL;
    if (is_language_model(t) != (targets == NULL))
        return err_set(err, TFM_EINVAL,
                       is_language_model(t) ? "a language model scores texts: found sources, too"
                                            : "this model scores translations: found texts without a source");
    return run_call(t, targets != NULL ? lines : NULL, targets != NULL ? targets : lines, true, n, result,
                    err);
}

void tfm_translator_profile(struct tfm_profile *profile, struct tfm_translator *t)
{
    static const struct {
        enum profile_part part;
        const char *name;
    } parts[] = { { PROFILE_TEXT, "text to pieces and back" },
                  { PROFILE_EMBED, "embeddings" },
                  { PROFILE_PROJECT, "attention projections" },
                  { PROFILE_ATTEND, "attention scores and mix" },
                  { PROFILE_FFN, "feed-forward" },
                  { PROFILE_NORM, "norm, residual" },
                  { PROFILE_LOSS, "output layer" },
                  { PROFILE_SEARCH, "search" } };
    const int n = sizeof(parts) / sizeof(parts[0]);
    double idle = t->seconds;
    *profile = (struct tfm_profile){ .seconds = t->seconds,
                                     .threads = t->n_workers,
                                     .n_parts = n + 1,
                                     .parts = t->parts,
                                     .memory = mem_peak() };
    for (int p = 0; p < n; p++) {
        t->parts[p] = (struct tfm_profile_part){ .name = parts[p].name };
        for (int i = 0; i < t->n_workers; i++) {
            t->parts[p].seconds += t->workers[i].watch.seconds[parts[p].part] / t->n_workers;
            t->parts[p].flop += t->workers[i].watch.flop[parts[p].part];
        }
        idle -= t->parts[p].seconds;
    }
    t->parts[n] = (struct tfm_profile_part){ .name = "threads without work", .seconds = idle };
}
