/*
 * sample_test.c: random segmentations of both kinds: the text stays; without randomness they are those that
 * SentencePiece finds; the frequencies are those of the formulas; the same key gives the same.
 */
#include "text/sample.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/line.h"
#include "base/rng.h"
#include "check.h"

static struct tfm_error err;

static void make_text(struct str *text)
{
    static const char *const syllables[] = { "ka", "lo", "mi", "ter", "sun", "ö", "ble", "na", "vier", "pu" };
    for (uint64_t i = 0; i < 600; i++) {
        for (uint64_t w = 0; w < 6; w++) {
            uint64_t u = rng_below(rng_key(1, i, w, 1), 400), word = u * u;
            for (uint64_t s = 0; s < 2 + word % 3; s++)
                str_printf(text, &err, "%s", syllables[rng_below(rng_key(2, word, s, 0), 10)]);
            str_add(text, w < 5 ? " " : ".\n", w < 5 ? 1 : 2, &err);
        }
    }
}

static struct spm *train_on(const char *path, const char *type, int size)
{
    const char *files[] = { path };
    const char *model = check_path("%s.spm", type);
    struct spm_train_options options = {
        .files = files, .n_files = 1, .model_path = model, .vocab_size = size, .type = type
    };
    struct spm *spm = NULL;
    CHECK_INT(spm_train(&options, &err), TFM_OK, "%s: trained", type);
    CHECK_INT(spm_open(&spm, model, &err), TFM_OK, "%s: opened", type);
    return spm;
}

static void encode(struct ints *ids, const struct spm *spm, const char *text)
{
    ids->n = 0;
    spm_encode(spm, text, strlen(text), ids, &err);
}

static void draw(struct ints *out, struct sampler *sampler, const struct ints *ids, uint64_t key)
{
    out->n = 0;
    if (sampler_draw(sampler, out, ids->data, ids->n, key, &err) != TFM_OK)
        CHECK(false, "drawn: %s", err.message);
}

static bool same_ids(const struct ints *a, const struct ints *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->data, b->data, a->n * sizeof(*a->data)) == 0);
}

static bool same_text(const struct spm *spm, const struct ints *a, const struct ints *b)
{
    struct str x = { 0 }, y = { 0 };
    spm_decode(spm, a->data, a->n, &x, &err);
    spm_decode(spm, b->data, b->n, &y, &err);
    bool same = x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
    str_release(&x);
    str_release(&y);
    return same;
}

/* certain: an alpha with which the draw must be the best segmentation. */
static void check_lines(const struct spm *spm, const char *name, const char *path, double certain)
{
    struct line_reader *reader;
    struct str line = { 0 };
    struct ints ids = { 0 }, drawn = { 0 }, again = { 0 };
    struct sampler best, random;
    int n = 0, n_best = 0, n_text = 0, n_again = 0, n_other = 0;
    bool more = true;
    sampler_init(&best, spm, certain);
    sampler_init(&random, spm, 0.3);
    CHECK_INT(line_open(&reader, path, &err), TFM_OK, "%s: opens %s", name, path);
    while (line_read(reader, &line, &more, &err) == TFM_OK && more && n < 2000) {
        encode(&ids, spm, line.data);
        draw(&drawn, &best, &ids, (uint64_t)n);
        n_best += same_ids(&drawn, &ids);
        draw(&drawn, &random, &ids, (uint64_t)n);
        draw(&again, &random, &ids, (uint64_t)n);
        n_text += same_text(spm, &drawn, &ids);
        n_again += same_ids(&drawn, &again);
        n_other += !same_ids(&drawn, &ids);
        n++;
    }
    CHECK_INT(n_best, n, "%s: without randomness all are SentencePiece's own", name);
    CHECK_INT(n_text, n, "%s: the text stays", name);
    CHECK_INT(n_again, n, "%s: the same key gives the same", name);
    CHECK(n_other > n / 2, "%s: %d of %d lines are split in another way", name, n_other, n);
    line_free(reader);
    sampler_release(&best);
    sampler_release(&random);
    str_release(&line);
    ints_release(&ids);
    ints_release(&drawn);
    ints_release(&again);
}

/* Every segmentation of a word, with its weight. */
struct lattice {
    const struct spm *spm;
    const char *text;
    double alpha, total;
    struct {
        struct ints ids;
        double weight;
        int seen;
    } ways[2000];
    int n;
};

static void enumerate(struct lattice *l, size_t from, struct ints *ids, double log_weight)
{
    size_t len = strlen(l->text);
    if (from == len && l->n < 2000) {
        ints_add(&l->ways[l->n].ids, ids->data, ids->n, &err);
        l->ways[l->n].weight = exp(log_weight);
        l->total += l->ways[l->n++].weight;
    }
    for (size_t to = from + 1; to <= len; to++) {
        int id = spm_piece_id(l->spm, l->text + from, to - from);
        if (id < 0)
            continue;
        ints_add(ids, &id, 1, &err);
        enumerate(l, to, ids, log_weight + l->alpha * (double)spm_score(l->spm, id));
        ids->n--;
    }
}

static void check_unigram_frequencies(const struct spm *spm)
{
    static struct lattice l;
    struct ints ids = { 0 }, drawn = { 0 };
    struct sampler sampler;
    double worst = 0;
    const int n_draws = 20000;
    l.spm = spm;
    l.text = "\xe2\x96\x81kaloter";
    l.alpha = 0.5;
    enumerate(&l, 0, &ids, 0);
    encode(&ids, spm, "kaloter");
    sampler_init(&sampler, spm, l.alpha);
    for (int d = 0; d < n_draws; d++) {
        draw(&drawn, &sampler, &ids, rng_key(9, (uint64_t)d, 0, 0));
        for (int i = 0; i < l.n; i++)
            l.ways[i].seen += same_ids(&l.ways[i].ids, &drawn);
    }
    for (int i = 0; i < l.n; i++) {
        double p = l.ways[i].weight / l.total, sigma = sqrt(p * (1 - p) / n_draws);
        worst = check_worse(worst, fabs((double)l.ways[i].seen / n_draws - p) / (sigma + 1e-4));
        ints_release(&l.ways[i].ids);
    }
    CHECK(l.n > 5 && worst < 5, "unigram: %d segmentations, each as often as P^alpha says (%.1f sigma)", l.n,
          worst);
    sampler_release(&sampler);
    ints_release(&ids);
    ints_release(&drawn);
}

static void check_bpe_frequencies(const struct spm *spm)
{
    struct ints ids = { 0 }, drawn = { 0 };
    struct sampler sampler;
    int whole = 0, merges;
    const int n_draws = 20000;
    sampler_init(&sampler, spm, 1);
    encode(&ids, spm, "ka");
    draw(&drawn, &sampler, &ids, 1);
    merges = (int)drawn.n - (int)ids.n;
    CHECK_INT((int)drawn.n, 3, "bpe: characters, where every merge is left out");
    sampler.alpha = 0.25;
    for (int d = 0; d < n_draws; d++) {
        draw(&drawn, &sampler, &ids, rng_key(9, (uint64_t)d, 0, 0));
        whole += same_ids(&drawn, &ids);
    }
    double p = pow(0.75, merges), sigma = sqrt(p * (1 - p) / n_draws);
    CHECK(merges > 0 && fabs((double)whole / n_draws - p) < 5 * sigma,
          "bpe: %d merges all happen with probability (1 - alpha)^%d: %.4f", merges, merges,
          (double)whole / n_draws);
    sampler_release(&sampler);
    ints_release(&ids);
    ints_release(&drawn);
}

/* Unknown characters stay unknown, and what surrounds them is drawn. */
static void check_unknown(const struct spm *spm, const char *name)
{
    struct ints ids = { 0 }, drawn = { 0 };
    struct sampler sampler;
    sampler_init(&sampler, spm, 0.5);
    encode(&ids, spm, "kalo \xe4\xb8\xad\xe6\x96\x87 terna");
    int kept = 0, n_unk = 0;
    for (uint64_t key = 0; key < 50; key++) {
        int n = 0;
        draw(&drawn, &sampler, &ids, key);
        for (size_t i = 0; i < drawn.n; i++)
            n += drawn.data[i] == spm_unk(spm);
        kept += n == 1;
    }
    for (size_t i = 0; i < ids.n; i++)
        n_unk += ids.data[i] == spm_unk(spm);
    CHECK(n_unk == 1 && kept == 50, "%s: an unknown word stays one piece", name);
    draw(&drawn, &sampler, &(struct ints){ 0 }, 1);
    CHECK_INT((int)drawn.n, 0, "%s: nothing gives nothing", name);
    sampler_release(&sampler);
    ints_release(&ids);
    ints_release(&drawn);
}

int main(void)
{
    struct str text = { 0 };
    const char *path = check_path("text");
    make_text(&text);
    file_write(path, text.data, text.len, &err);
    struct spm *bpe = train_on(path, "bpe", 300), *unigram = train_on(path, "unigram", 200);
    CHECK(spm_is_bpe(bpe) && !spm_is_bpe(unigram), "the kind is read from the model");
    check_lines(bpe, "bpe", path, 0);
    check_lines(unigram, "unigram", path, 200);
    check_bpe_frequencies(bpe);
    check_unigram_frequencies(unigram);
    check_unknown(bpe, "bpe");
    check_unknown(unigram, "unigram");
    spm_free(bpe);
    spm_free(unigram);
    str_release(&text);
    return check_done();
}
