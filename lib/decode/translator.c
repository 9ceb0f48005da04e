/*
 * translator.c: tfm_translate: from lines of text to lines of text. On the sentence's way: cmd_translate
 * calls tfm_translate, which runs three rounds over a pool of workers, each item on whichever is free:
 *     1. every line becomes pieces (spm_encode);
 *     2. the sentences, longest first, cut into batches, are searched (search_batch);
 *     3. the pieces found for every line become text (spm_decode).
 * A line of more than max_length pieces is cut at words into parts that are searched as sentences of their
 * own. All that a call finds lies in the workers' `kept` arenas until the next call, so that pointers stay
 * good and a warm translator allocates nothing.
 */
#include "decode/translator.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "decode/plan.h"
#include "model/model.h"
#include "text/utf8.h"

#define KEPT_SIZE         ((size_t)4 << 30)  /* address space of a worker for the results of one call */
#define LEAST_SIZE        ((size_t)64 << 20) /* of each arena where address space is limited */
#define MAX_BEAM          64
#define MAX_LENGTH        10000
#define MAX_LENGTH_FACTOR 100
#define MAX_NORMALIZE     10
#define MAX_MINI_BATCH    10000
#define MAX_THREADS       1024

struct worker {
    struct arena scratch, kept;
    struct ints pieces; /* of one line */
    struct str text;    /* of one line */
    enum tfm_status status;
    struct tfm_error err; /* valid when status is not TFM_OK */
};

struct tfm_translator {
    const struct net *net;
    const struct spm *source, *target;
    const struct kern *kern;
    struct tfm_translate_options options;
    struct search_options search;
    struct pool *pool;
    int n_workers;
    struct worker *workers;

    /* of the call */
    const char *const *texts;
    struct plan plan;
    struct plan_line *lines; /* these two grow where a call has more lines than all before */
    struct tfm_translation *translations;
    size_t lines_cap, translations_cap;
};

/* ---- options ---- */

void tfm_translate_options_init(struct tfm_translate_options *options)
{
    *options = (struct tfm_translate_options){
        .beam_size = 5,
        .normalize = 1,
        .max_length_factor = 3,
        .max_length = 500,
        .n_best = 1,
        .mini_batch = 64,
    };
}

static enum tfm_status check_range(const char *what, long value, long min, long max, struct tfm_error *err)
{
    if (value >= min && value <= max)
        return TFM_OK;
    return err_set(err, TFM_EINVAL, "%s is %ld; it must be from %ld to %ld", what, value, min, max);
}

static enum tfm_status check_options(const struct tfm_translate_options *o, struct tfm_error *err)
{
    TRY(check_range("the beam size", o->beam_size, 1, MAX_BEAM, err));
    TRY(check_range("the maximal length (of a line, in pieces)", o->max_length, 1, MAX_LENGTH, err));
    TRY(check_range("the batch size (in sentences)", o->mini_batch, 1, MAX_MINI_BATCH, err));
    TRY(check_range("the number of threads (0: one a core)", o->threads, 0, MAX_THREADS, err));
    if (o->n_best < 1 || o->n_best > o->beam_size)
        return err_set(err, TFM_EINVAL,
                       "the number of hypotheses wanted a line is %d; it must be from 1 to the beam size, %d",
                       o->n_best, o->beam_size);
    if (!(o->normalize >= 0 && o->normalize <= MAX_NORMALIZE))
        return err_set(err, TFM_EINVAL, "the exponent of length normalization is %g; it must be from 0 to %d",
                       (double)o->normalize, MAX_NORMALIZE);
    if (!(o->max_length_factor >= 0 && o->max_length_factor <= MAX_LENGTH_FACTOR))
        return err_set(err, TFM_EINVAL, "the maximal length factor is %g; it must be from 0 to %d",
                       (double)o->max_length_factor, MAX_LENGTH_FACTOR);
    return TFM_OK;
}

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

/* Reserves at most `limit` bytes for each arena of each worker, alike for all; false where the system does not
 * grant that, or would have little left for all else. */
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
    size_t one = search_scratch_base(t->net) + search_scratch(&t->search, t->net, t->options.max_length);
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
    int threads = t->options.threads > 0 ? t->options.threads : pool_cores();
    TRY(plan_init(&t->plan, t->options.max_length, err));
    t->workers = mem_alloc((size_t)threads * sizeof(*t->workers), err);
    if (t->workers == NULL)
        return TFM_ENOMEM;
    t->n_workers = threads;
    TRY(pool_new(&t->pool, threads, err)); /* its stacks come first: they do not shrink */
    return init_arenas(t, err);
}

enum tfm_status translator_new(struct tfm_translator **translator, const struct net *net,
                               const struct spm *source, const struct spm *target, const struct kern *kern,
                               const struct tfm_translate_options *options, struct tfm_error *err)
{
    *translator = NULL;
    TRY(check_options(options, err));
    struct tfm_translator *t = mem_alloc(sizeof(*t), err);
    if (t == NULL)
        return TFM_ENOMEM;
    t->net = net;
    t->source = source;
    t->target = target;
    t->kern = kern;
    t->options = *options;
    t->search = (struct search_options){
        .beam_size = options->beam_size,
        .n_best = options->n_best,
        .normalize = options->normalize,
        .max_length_factor = options->max_length_factor,
        .allow_unk = options->allow_unk,
    };
    enum tfm_status status = translator_init(t, err);
    if (status != TFM_OK) {
        tfm_translator_free(t);
        return status;
    }
    *translator = t;
    return TFM_OK;
}

enum tfm_status tfm_translator_new(struct tfm_translator **translator, const struct tfm_model *model,
                                   const struct tfm_translate_options *options, struct tfm_error *err)
{
    *translator = NULL;
    if (model->broken != NULL) /* inspect can still look at it, and so makes its translator itself */
        return err_set(err, TFM_EFORMAT,
                       "%s: the weights %s are not all finite numbers, so the model cannot translate: get it anew, "
                       "or see with tfm inspect what it holds",
                       model->folder, model->broken->name);
    return translator_new(translator, &model->net, model->source, model->target, model->kern, options, err);
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
    }
    mem_free(t->workers);
    mem_free(t->lines);
    mem_free(t->translations);
    plan_release(&t->plan);
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

/* Memory that lasts until the next call, or NULL. */
static void *keep(struct worker *worker, size_t size)
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

static void encode_line(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    const char *text = t->texts[i];
    size_t len = strlen(text);
    if (worker->status != TFM_OK || utf8_is_blank(text, len))
        return;
    worker->pieces.n = 0;
    worker->status = spm_encode(t->source, text, len, &worker->pieces, &worker->err);
    size_t n = worker->pieces.n;
    if (worker->status == TFM_OK && n > INT_MAX / 2)
        worker->status = err_set(&worker->err, TFM_EINVAL, "a line has more than %d pieces", INT_MAX / 2);
    if (worker->status != TFM_OK || n == 0)
        return;
    int *pieces = keep(worker, n * sizeof(int));
    if (pieces == NULL)
        return;
    memcpy(pieces, worker->pieces.data, n * sizeof(int));
    t->lines[i] = (struct plan_line){ .pieces = pieces, .n_pieces = (int)n };
}

/* ---- round 2: search ---- */

static void translate_batch(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    struct run run = { .arena = &worker->scratch, .kern = t->kern };
    search_batch(t->plan.batches[i].sentences, t->plan.batches[i].n, &t->search, t->net, &worker->kept, &run);
}

/* ---- round 3: pieces to text ---- */

static const char *keep_text(struct worker *worker)
{
    char *text = keep(worker, worker->text.len + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, worker->text.len > 0 ? worker->text.data : "", worker->text.len + 1);
    return text;
}

/* One hypothesis of a line that was translated as a whole. */
static void finish_hypothesis(const struct tfm_translator *t, struct worker *worker,
                              struct tfm_hypothesis *out, const struct search_hypothesis *found)
{
    str_clear(&worker->text);
    worker->status =
        spm_decode(t->target, found->pieces, (size_t)found->n_pieces, &worker->text, &worker->err);
    if (worker->status != TFM_OK)
        return;
    *out = (struct tfm_hypothesis){ .text = keep_text(worker),
                                    .score = found->score,
                                    .normalized_score = found->normalized_score,
                                    .n_pieces = found->n_pieces,
                                    .pieces = found->pieces,
                                    .piece_scores = found->piece_scores };
}

/* The one hypothesis of a line in parts: the best of each part, texts joined by spaces, pieces laid end to
 * end. Without parts, of a blank line, it is empty. */
static void join_parts(const struct tfm_translator *t, struct worker *worker, struct tfm_hypothesis *out,
                       const struct plan_line *line)
{
    size_t n = 0;
    for (int i = 0; i < line->n_parts; i++)
        n += (size_t)line->parts[i].hypotheses[0].n_pieces;
    int *pieces = keep(worker, n * sizeof(*pieces));
    float *scores = pieces != NULL ? keep(worker, n * sizeof(*scores)) : NULL;
    if (scores == NULL)
        return;
    *out = (struct tfm_hypothesis){ .n_pieces = (int)n, .pieces = pieces, .piece_scores = scores };
    str_clear(&worker->text);
    for (int i = 0; i < line->n_parts; i++) {
        const struct search_hypothesis *found = &line->parts[i].hypotheses[0];
        size_t n_found = (size_t)found->n_pieces, len = worker->text.len;
        memcpy(pieces, found->pieces, n_found * sizeof(*pieces));
        memcpy(scores, found->piece_scores, n_found * sizeof(*scores));
        pieces += n_found;
        scores += n_found;
        out->score += found->score;
        if (len > 0)
            worker->status = str_add(&worker->text, " ", 1, &worker->err);
        if (worker->status == TFM_OK)
            worker->status = spm_decode(t->target, found->pieces, n_found, &worker->text, &worker->err);
        if (worker->status != TFM_OK)
            return;
        if (len > 0 && worker->text.len == len + 1) { /* the part is empty: no space either */
            worker->text.len = len;
            worker->text.data[len] = '\0';
        }
    }
    out->normalized_score = n > 0 ? out->score / pow((double)n, t->options.normalize) : 0;
    out->text = keep_text(worker);
}

static void finish_line(void *arg, int i, int w)
{
    struct tfm_translator *t = arg;
    struct worker *worker = &t->workers[w];
    const struct plan_line *line = &t->lines[i];
    struct tfm_translation *translation = &t->translations[i];
    if (worker->status != TFM_OK)
        return;
    int n = line->n_parts == 1 ? line->parts[0].n_hypotheses : 1;
    struct tfm_hypothesis *hypotheses = keep(worker, (size_t)n * sizeof(*hypotheses));
    if (hypotheses == NULL)
        return;
    *translation =
        (struct tfm_translation){ .n_hypotheses = n, .hypotheses = hypotheses, .n_parts = line->n_parts };
    for (int part = 0; part < line->n_parts; part++)
        translation->limited |= line->parts[part].hypotheses[0].limited;
    if (line->n_parts != 1) {
        join_parts(t, worker, &hypotheses[0], line);
        return;
    }
    for (int h = 0; h < n && worker->status == TFM_OK; h++)
        finish_hypothesis(t, worker, &hypotheses[h], &line->parts[0].hypotheses[h]);
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
    TRY(plan_batches(&t->plan, &limits, &t->search, t->net, err));
    for (int i = 0; i < t->n_workers; i++)
        if (!has_room(&t->workers[i], t->plan.results))
            return no_room(&t->workers[i], err);
    return TFM_OK;
}

enum tfm_status tfm_translate(struct tfm_translator *t, const char *const *lines, size_t n,
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

    t->texts = lines;
    TRY(run_round(t, (int)n, encode_line, err));
    TRY(plan_search(t, n, err));
    TRY(run_round(t, t->plan.n_batches, translate_batch, err));
    TRY(run_round(t, (int)n, finish_line, err));
    *result = t->translations;
    return TFM_OK;
}
