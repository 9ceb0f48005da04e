/*
 * windows.c: what a pass sees, and in which order. A text of weight w is visited block by block, floor(w)
 * times as a whole, and once more for the part of its pairs that the fraction is: of n pairs in all, the
 * block that ends with pair b and begins with pair a shows floor(f b) - floor(f a), chosen anew by (seed,
 * epoch). The visits are shuffled by (seed, epoch) and dealt to windows of about equal size. Where all fit
 * into one window there is nothing to be shuffled here: batch.c shuffles the pairs of a window.
 */
#include "train/windows.h"

#include <limits.h>
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/batch.h"

#define BLOCKS_PER_WINDOW 64    /* a window mixes pairs from so many places, at least */
#define BLOCK_LINES       4096  /* a block has no more */
#define ENCODED_PAIRS     16384 /* tokenised in one go */

/* ---- opening ---- */

static double weight_of(const struct tfm_corpus *corpus)
{
    return corpus->weight > 0 ? corpus->weight : 1;
}

static enum tfm_status open_texts(struct windows *w, const struct tfm_train_options *options,
                                  const char *folder, bool goes_on, struct pool *pool, struct tfm_error *err)
{
    struct columns columns = { options->source_field, options->target_field };
    int lines = options->shuffle_window / BLOCKS_PER_WINDOW;
    lines = lines < 1 ? 1 : lines > BLOCK_LINES ? BLOCK_LINES : lines;
    for (; w->n_texts < options->n_corpora; w->n_texts++) {
        int i = w->n_texts;
        char name[32];
        snprintf(name, sizeof(name), "corpus-%d", i + 1);
        struct spool spool = {
            .folder = folder, .name = name, .is_kept = true, .goes_on = goes_on, .stop = options->stop
        };
        TRY(bitext_open(&w->texts[i], &options->corpora[i], &columns, lines, &spool, pool, err));
        bitext_report(&w->texts[i], options);
        w->first[i + 1] = w->first[i] + w->texts[i].n_pairs;
        w->fingerprint = rng_mix(w->fingerprint ^ w->texts[i].fingerprint);
    }
    return TFM_OK;
}

bool windows_is_guided(const struct windows *w)
{
    for (int i = 0; i < w->n_texts; i++) {
        if (w->texts[i].is_aligned)
            return true;
    }
    return false;
}

/* Reads all pairs with an alignment once: a mistake in one is told before the training begins. */
static enum tfm_status prove_alignments(const struct windows *w, struct tfm_error *err)
{
    struct text_block text = { 0 };
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < w->n_texts; i++) {
        for (int b = 0; w->texts[i].is_aligned && b < w->texts[i].n_blocks && status == TFM_OK; b++) {
            status = bitext_read(&text, &w->texts[i], b, NULL, 0, err);
            pairs_clear(&text);
        }
    }
    pairs_release(&text);
    return status;
}

/* Pairs of the fraction's visit to a block. */
static int part_pairs(const struct bitext *text, int block, double fraction)
{
    double from = (double)block * text->block_lines, to = from + bitext_block_pairs(text, block);
    return (int)(floor(fraction * to) - floor(fraction * from));
}

static enum tfm_status list_visits(struct windows *w, const struct tfm_corpus *corpora, struct tfm_error *err)
{
    double most = 0;
    for (int t = 0; t < w->n_texts; t++)
        most += w->texts[t].n_blocks * (floor(weight_of(&corpora[t])) + 1);
    if (most > INT_MAX / 2)
        return err_set(
            err, TFM_EINVAL,
            "a pass through the corpora would visit %.0f blocks of lines, more than can be numbered: "
            "raise --shuffle-window or lower --weights",
            most);
    w->visits = mem_alloc((size_t)most * sizeof(*w->visits), err);
    w->order = mem_alloc((size_t)most * sizeof(*w->order), err);
    if (w->visits == NULL || w->order == NULL)
        return TFM_ENOMEM;
    for (int t = 0; t < w->n_texts; t++) {
        const struct bitext *text = &w->texts[t];
        int copies = (int)floor(weight_of(&corpora[t]));
        double fraction = weight_of(&corpora[t]) - copies;
        w->is_constant = w->is_constant && fraction == 0;
        for (int copy = 0; copy <= copies; copy++) {
            for (int b = 0; b < text->n_blocks; b++) {
                int n = copy < copies ? bitext_block_pairs(text, b) : part_pairs(text, b, fraction);
                if (n > 0)
                    w->visits[w->n_visits++] = (struct visit){ .text = t, .block = b, .n = n, .copy = copy };
                w->pass_pairs += (uint64_t)n;
            }
        }
    }
    return TFM_OK;
}

enum tfm_status windows_open(struct windows *w, const struct tfm_train_options *options, const char *folder,
                             bool goes_on, struct pool *pool, struct tfm_error *err)
{
    size_t n = (size_t)options->n_corpora, size = (size_t)options->shuffle_window;
    *w = (struct windows){ .seed = options->seed, .is_constant = true };
    w->texts = mem_alloc(n * sizeof(*w->texts), err);
    w->first = mem_alloc((n + 1) * sizeof(*w->first), err);
    enum tfm_status status = w->texts != NULL && w->first != NULL ? TFM_OK : TFM_ENOMEM;
    if (status == TFM_OK)
        status = open_texts(w, options, folder, goes_on, pool, err);
    if (status == TFM_OK)
        status = prove_alignments(w, err);
    if (status == TFM_OK)
        status = list_visits(w, options->corpora, err);
    if (status != TFM_OK) {
        windows_release(w);
        return status;
    }
    w->n = w->pass_pairs > size ? (int)((w->pass_pairs + size - 1) / size) : 1;
    w->is_constant = w->is_constant && w->n == 1;
    return TFM_OK;
}

void windows_release(struct windows *w)
{
    for (int i = 0; i < w->n_texts; i++)
        bitext_release(&w->texts[i]);
    mem_free(w->texts);
    mem_free(w->first);
    mem_free(w->visits);
    mem_free(w->order);
    *w = (struct windows){ 0 };
}

/* ---- loading ---- */

struct loading {
    struct windows *windows;
    struct corpus *corpus;
    int epoch;
    struct pool *pool;
    struct text_block text; /* not encoded yet */
    int *lines;             /* [BLOCK_LINES]: of a block, shuffled ... */
    bool *chosen;           /* [BLOCK_LINES]: ... and those of them that are seen */
};

static void order_visits(struct windows *w, int epoch)
{
    for (int i = 0; i < w->n_visits; i++)
        w->order[i] = i;
    if (w->n > 1)
        rng_shuffle(rng_key(w->seed, (uint64_t)epoch, 0, RANDOM_BLOCKS), w->order, w->n_visits);
}

static void choose_lines(const struct loading *l, const struct visit *visit, int n, uint64_t block_place)
{
    for (int i = 0; i < n; i++) {
        l->lines[i] = i;
        l->chosen[i] = false;
    }
    rng_shuffle(rng_key(l->windows->seed, (uint64_t)l->epoch, block_place, RANDOM_LINES), l->lines, n);
    for (int i = 0; i < visit->n; i++)
        l->chosen[l->lines[i]] = true;
}

static enum tfm_status encode(struct loading *l, struct tfm_error *err)
{
    TRY(corpus_add(l->corpus, &l->text, l->pool, err));
    pairs_clear(&l->text);
    return TFM_OK;
}

/* A pair's place is its number in the whole corpus; in further copies the numbers go on behind that. */
static enum tfm_status load_visit(struct loading *l, const struct visit *visit, struct tfm_error *err)
{
    const struct windows *w = l->windows;
    const struct bitext *text = &w->texts[visit->text];
    int n = bitext_block_pairs(text, visit->block);
    uint64_t place = w->first[visit->text] + (uint64_t)visit->copy * windows_pairs(w);
    if (visit->n < n)
        choose_lines(l, visit, n, place + (uint64_t)visit->block * (uint64_t)text->block_lines);
    TRY(bitext_read(&l->text, text, visit->block, visit->n < n ? l->chosen : NULL, place, err));
    return l->text.n >= ENCODED_PAIRS ? encode(l, err) : TFM_OK;
}

/* A window has the visits that begin in its part of the pass. */
static enum tfm_status load_window(struct loading *l, int window, uint64_t *begin, uint64_t *size,
                                   struct tfm_error *err)
{
    const struct windows *w = l->windows;
    uint64_t n = (uint64_t)w->n, place = 0;
    uint64_t from = w->pass_pairs * (uint64_t)window / n, to = w->pass_pairs * ((uint64_t)window + 1) / n;
    *size = 0;
    for (int i = 0; i < w->n_visits && place < to; i++) {
        const struct visit *visit = &w->visits[w->order[i]];
        if (place >= from) {
            TRY(load_visit(l, visit, err));
            *size += (uint64_t)visit->n;
        }
        place += (uint64_t)visit->n;
    }
    *begin = place - *size;
    return encode(l, err);
}

enum tfm_status windows_load(struct windows *w, struct corpus *corpus, int epoch, int window, uint64_t *begin,
                             uint64_t *n, struct pool *pool, struct tfm_error *err)
{
    struct loading l = { .windows = w, .corpus = corpus, .epoch = epoch, .pool = pool };
    corpus_clear(corpus);
    order_visits(w, epoch);
    l.lines = mem_alloc(BLOCK_LINES * sizeof(*l.lines), err);
    l.chosen = mem_alloc(BLOCK_LINES * sizeof(*l.chosen), err);
    enum tfm_status status =
        l.lines != NULL && l.chosen != NULL ? load_window(&l, window, begin, n, err) : TFM_ENOMEM;
    mem_free(l.lines);
    mem_free(l.chosen);
    pairs_release(&l.text);
    return status;
}
