/*
 * shortlist_build.c: tfm_shortlist: a lexical shortlist (model/shortlist.h) from a parallel corpus, tokenised
 * as the model does it. The lists of the source pieces are their most probable target pieces by IBM model 1
 * (lexicon.h), and the target piece that is spelled alike, since names and numbers are copied.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limit.h"
#include "base/mem.h"
#include "model/model.h"
#include "model/shortlist.h"
#include "train/bitext.h"
#include "train/lexicon.h"

#define MOST_PAIRS   1000000 /* learnt from */
#define MOST_PIECES  500     /* of a side of a pair */
#define BLOCK_LINES  4096
#define ROW_CELLS    1024 /* of the lexicon for a source piece while it is learnt */
#define ITERATIONS   5
#define SAMPLE_PAIRS 10000 /* that coverage is measured on */
#define MOST_LISTED  100000

struct building {
    const struct tfm_shortlist_options *options;
    struct tfm_model *model;
    struct pool *pool;
    struct bitext *texts; /* [n_texts] open */
    int n_texts;
    struct corpus corpus;
    struct lexicon lexicon;
    struct shortlist *list;
};

void tfm_shortlist_options_init(struct tfm_shortlist_options *options)
{
    *options = (struct tfm_shortlist_options){ .first = 50, .best = 50, .threshold = 1e-4f };
}

static enum tfm_status check_options(const struct tfm_shortlist_options *o, struct tfm_error *err)
{
    if (o->model == NULL)
        return err_set(err, TFM_EINVAL, "no model is named to make a shortlist for");
    if (o->corpora == NULL || o->n_corpora < 1)
        return err_set(err, TFM_EINVAL, "no corpus is named to make a shortlist from");
    if (o->first < 1 || o->first > MOST_LISTED || o->best < 0 || o->best > MOST_LISTED)
        return err_set(err, TFM_EINVAL,
                       "a shortlist of the %d first and the %d best cannot be: expected 1 to %d and 0 to %d",
                       o->first, o->best, MOST_LISTED, MOST_LISTED);
    const struct limit limits[] = { { "the least probability of a listed piece", o->threshold, 0, 1 },
                                    { "the number of threads (0: one a core)", o->threads, 0, 1024 } };
    return LIMIT_CHECK(limits, err);
}

/* ---- the corpus ---- */

static enum tfm_status open_texts(struct building *b, uint64_t *n_pairs, struct tfm_error *err)
{
    const struct tfm_shortlist_options *o = b->options;
    struct columns columns = { o->source_field, o->target_field };
    *n_pairs = 0;
    b->texts = mem_alloc((size_t)o->n_corpora * sizeof(*b->texts), err);
    if (b->texts == NULL)
        return TFM_ENOMEM;
    for (; b->n_texts < o->n_corpora; b->n_texts++) {
        char name[32];
        snprintf(name, sizeof(name), "shortlist-%d", b->n_texts + 1);
        struct spool spool = { .folder = o->scratch != NULL ? o->scratch : "/tmp", .name = name };
        struct bitext *text = &b->texts[b->n_texts];
        struct tfm_corpus corpus = o->corpora[b->n_texts];
        corpus.alignment = NULL; /* is learnt here (lexicon.c) */
        TRY(bitext_open(text, &corpus, &columns, BLOCK_LINES, &spool, b->pool, err));
        *n_pairs += text->n_pairs;
    }
    return TFM_OK;
}

/* Where there are too many pairs, blocks at even distances are read. */
static enum tfm_status read_texts(struct building *b, struct text_block *block, struct tfm_error *err)
{
    uint64_t n_pairs, seen = 0, taken = 0;
    TRY(open_texts(b, &n_pairs, err));
    for (int t = 0; t < b->n_texts; t++) {
        const struct bitext *text = &b->texts[t];
        for (int i = 0; i < text->n_blocks; i++) {
            uint64_t n = (uint64_t)bitext_block_pairs(text, i);
            seen += n;
            if (n_pairs > MOST_PAIRS &&
                (double)taken + (double)n > (double)seen / (double)n_pairs * MOST_PAIRS)
                continue;
            taken += n;
            pairs_clear(block);
            TRY(bitext_read(block, text, i, NULL, 0, err));
            TRY(corpus_add(&b->corpus, block, b->pool, err));
        }
    }
    if (b->corpus.n == 0)
        return err_set(err, TFM_EFORMAT,
                       "there is no pair to make a shortlist from: of %" PRIu64
                       " pairs %ld lack a side and %ld have more than %d pieces on one",
                       n_pairs, b->corpus.n_empty, b->corpus.n_long, MOST_PIECES);
    return TFM_OK;
}

static enum tfm_status read_corpus(struct building *b, struct tfm_error *err)
{
    struct text_block block = { 0 };
    TRY(corpus_init(&b->corpus, b->model->source, b->model->target, MOST_PIECES, 0, err));
    enum tfm_status status = read_texts(b, &block, err);
    pairs_release(&block);
    return status;
}

/* ---- the lists ---- */

struct ranked {
    double score;
    int id;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static int by_id(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The `most` with the highest scores, and `own` if it is a piece: ids [most + 1] ascending. */
static int rank(int *ids, struct ranked *ranked, int n, int most, int own)
{
    qsort(ranked, (size_t)n, sizeof(*ranked), by_score);
    n = n < most ? n : most;
    bool has_own = own < 0;
    for (int i = 0; i < n; i++)
        has_own = has_own || ranked[i].id == own;
    if (!has_own)
        ranked[n++].id = own;
    qsort(ranked, (size_t)n, sizeof(*ranked), by_id);
    for (int i = 0; i < n; i++)
        ids[i] = ranked[i].id;
    return n;
}

static int rank_frequent(int *ids, struct ranked *ranked, const struct building *b)
{
    int n = 0;
    for (int f = 0; f < b->lexicon.n_target; f++)
        if (b->lexicon.frequency[f] > 0)
            ranked[n++] = (struct ranked){ (double)b->lexicon.frequency[f], f };
    return rank(ids, ranked, n, b->options->first, spm_eos(b->model->target));
}

static int rank_translations(int *ids, struct ranked *ranked, const struct building *b, int e)
{
    const struct lexicon_row *row = &b->lexicon.rows[e];
    const char *piece = spm_piece(b->model->source, e);
    int n = 0;
    for (int i = 0; i < row->n; i++)
        if (row->p[i] > 0 && row->p[i] >= b->options->threshold)
            ranked[n++] = (struct ranked){ (double)row->p[i], row->target[i] };
    return rank(ids, ranked, n, b->options->best, spm_piece_id(b->model->target, piece, strlen(piece)));
}

static enum tfm_status fill_lists(struct building *b, struct ranked *ranked, struct tfm_error *err)
{
    struct shortlist *list = b->list;
    const struct tfm_shortlist_options *o = b->options;
    size_t best = (size_t)(o->best < ROW_CELLS ? o->best : ROW_CELLS) + 1;
    size_t first = (size_t)(o->first < list->n_target ? o->first : list->n_target) + 1;
    list->start = mem_alloc(((size_t)list->n_source + 2) * sizeof(*list->start), err);
    list->ids = mem_alloc((first + (size_t)list->n_source * best) * sizeof(*list->ids), err);
    if (list->start == NULL || list->ids == NULL)
        return TFM_ENOMEM;
    list->start[1] = (size_t)rank_frequent(list->ids, ranked, b);
    for (int e = 0; e < list->n_source; e++) {
        int n = rank_translations(list->ids + list->start[e + 1], ranked, b, e);
        list->start[e + 2] = list->start[e + 1] + (size_t)n;
        list->longest = n > list->longest ? n : list->longest;
    }
    return TFM_OK;
}

static enum tfm_status make_lists(struct building *b, struct tfm_error *err)
{
    b->list = mem_alloc(sizeof(*b->list), err);
    if (b->list == NULL)
        return TFM_ENOMEM;
    *b->list = (struct shortlist){ .n_source = b->lexicon.n_source, .n_target = b->lexicon.n_target };
    size_t n = (size_t)(b->lexicon.n_target > ROW_CELLS ? b->lexicon.n_target : ROW_CELLS) + 1;
    struct ranked *ranked = mem_alloc(n * sizeof(*ranked), err);
    enum tfm_status status = ranked != NULL ? fill_lists(b, ranked, err) : TFM_ENOMEM;
    mem_free(ranked);
    return status;
}

/* ---- how good they are ---- */

static enum tfm_status measure(const struct building *b, struct tfm_shortlist_report *report,
                               struct tfm_error *err)
{
    const struct shortlist *list = b->list;
    struct arena arena;
    size_t n_target = (size_t)list->n_target;
    TRY(arena_init(&arena, n_target * (sizeof(int) + 1) + sizeof(int) * 2 * (MOST_PIECES + 1) + 1024, err));
    int *ids = ARENA_TAKE(&arena, int, n_target);
    int *source = ARENA_TAKE(&arena, int, MOST_PIECES + 1),
        *target = ARENA_TAKE(&arena, int, MOST_PIECES + 1);
    int step = b->corpus.n / SAMPLE_PAIRS + 1, n_sentences = 0;
    double listed = 0, tokens = 0, covered = 0;
    for (int pair = 0; pair < b->corpus.n; pair += step, n_sentences++) {
        corpus_copy(source, &b->corpus.source, pair);
        corpus_copy(target, &b->corpus.target, pair);
        int n =
            shortlist_select(ids, list, source, corpus_length(&b->corpus.source, pair) - 1, NULL, 0, &arena);
        listed += n;
        for (int j = 0; j < corpus_length(&b->corpus.target, pair) - 1; j++, tokens++)
            covered += shortlist_find(ids, n, target[j]) >= 0;
    }
    arena_release(&arena);
    *report = (struct tfm_shortlist_report){
        .pairs = b->corpus.n,
        .list_pieces = (double)(list->start[list->n_source + 1] - list->start[1]) / list->n_source,
        .pieces = listed / n_sentences,
        .vocabulary = list->n_target,
        .coverage = covered / tokens,
    };
    return TFM_OK;
}

/* ---- the whole ---- */

static enum tfm_status write_list(const struct building *b, struct tfm_error *err)
{
    struct str path = { 0 };
    const struct tfm_shortlist_options *o = b->options;
    enum tfm_status status = o->output != NULL ? str_printf(&path, err, "%s", o->output)
                                               : path_join(&path, o->model, SHORTLIST_FILE, err);
    if (status == TFM_OK)
        status = shortlist_write(b->list, path.data, b->model->source, b->model->target, err);
    str_release(&path);
    return status;
}

static enum tfm_status build(struct building *b, struct tfm_shortlist_report *report, struct tfm_error *err)
{
    static const struct lexicon_options options = { .n_iterations = ITERATIONS, .most = ROW_CELLS };
    TRY(check_options(b->options, err));
    TRY(tfm_model_open(&b->model, b->options->model, err));
    if (b->model->config.architecture == CONFIG_ENCODER_ONLY || tfm_model_is_language_model(b->model))
        return err_set(err, TFM_EINVAL,
                       "%s is a model of plain text, which makes no translations to list pieces for",
                       b->options->model);
    TRY(pool_new(&b->pool, b->options->threads > 0 ? b->options->threads : pool_cores(), err));
    TRY(read_corpus(b, err));
    TRY(lexicon_train(&b->lexicon, &b->corpus, &options, b->pool, err));
    TRY(make_lists(b, err));
    if (report != NULL)
        TRY(measure(b, report, err));
    return write_list(b, err);
}

enum tfm_status tfm_shortlist(const struct tfm_shortlist_options *options,
                              struct tfm_shortlist_report *report, struct tfm_error *err)
{
    struct building b = { .options = options };
    enum tfm_status status = build(&b, report, err);
    shortlist_free(b.list);
    lexicon_release(&b.lexicon);
    corpus_release(&b.corpus);
    for (int i = 0; i < b.n_texts; i++)
        bitext_release(&b.texts[i]);
    mem_free(b.texts);
    pool_free(b.pool);
    tfm_model_free(b.model);
    return status;
}
