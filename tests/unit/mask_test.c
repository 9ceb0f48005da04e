/*
 * mask_test.c: the task of a masked language model: how many pieces are chosen and what becomes of them, that
 * each sentence gives a loss, that the choice depends on seed, sentence and position alone, and that loss and
 * gradient of such a batch are those of its parts.
 */
#include "train/mask.h"

#include <math.h>

#include "base/mem.h"
#include "toy_vocab.h"
#include "train/lanes.h"

enum {
    N_LINES = 2000,
    MASK = 1 /* <unk>, which the text does not have */
};

static struct tfm_error err;
static struct corpus corpus;
static struct arena arena;
static int pairs[N_LINES];

static void make_corpus(const struct spm *spm)
{
    struct text_block text = { 0 };
    struct str line = { 0 };
    for (int i = 0; i < N_LINES; i++) {
        toy_line(&line, i, 1);
        pairs[i] = i;
        toy_must(pairs_add(&text, (struct span){ line.data, line.len }, (struct span){ "", 0 },
                           (uint64_t)i + 50, &err),
                 &err);
    }
    toy_must(corpus_init(&corpus, spm, NULL, 100, 0, &err), &err);
    toy_must(corpus_add(&corpus, &text, NULL, &err), &err);
    pairs_release(&text);
    str_release(&line);
}

static struct mask mask_of(double rate, uint64_t seed)
{
    return (struct mask){ .rate = rate, .id = MASK, .vocab_size = spm_size(corpus.source.spm), .seed = seed };
}

/* The task of n lines from `first` on. */
static void take(struct tokens *source, struct tokens *target, int first, int n, int copies,
                 const struct mask *mask)
{
    batch_take(source, target, &corpus, pairs + first, n, copies, 1, &arena);
    mask_take(source, target, &corpus, pairs + first, n, mask, &arena);
}

/* ---- the law ---- */

static void test_rates(void)
{
    struct mask mask = mask_of(0.15, 9);
    struct tokens source, target, plain, same;
    size_t mark = arena_mark(&arena);
    batch_take(&plain, &same, &corpus, pairs, N_LINES, 1, 1, &arena);
    take(&source, &target, 0, N_LINES, 1, &mask);
    double expected = 0, n_masked = 0, n_stayed = 0;
    int n_wrong = 0, n_without = 0, n_ends = 0, n_counted = 0, *chosen = ARENA_TAKE(&arena, int, source.n);
    memset(chosen, 0, sizeof(int) * (size_t)source.n);
    for (int s = 0; s < source.n_sentences; s++) {
        int length = source.start[s + 1] - source.start[s] - 1, before = -1;
        expected += 0.15 * length + pow(0.85, length); /* one where chance chose none */
        n_without += target.start[s] == target.start[s + 1];
        n_counted += mask_count(&corpus, pairs[s], &mask) == target.start[s + 1] - target.start[s];
        for (int i = target.start[s]; i < target.start[s + 1]; i++) {
            int row = target.rows[i];
            n_wrong += row < source.start[s] || row <= before || target.ids[i] != plain.ids[row];
            n_ends += row == source.start[s + 1] - 1;
            n_masked += source.ids[row] == MASK;
            n_stayed += source.ids[row] == target.ids[i];
            chosen[row] = 1;
            before = row;
        }
    }
    for (int i = 0; i < source.n; i++)
        n_wrong += !chosen[i] && source.ids[i] != plain.ids[i];
    CHECK_INT(n_wrong, 0, "labels are the pieces at their rows, in order, and all others stay");
    CHECK_INT(n_without, 0, "each sentence has some");
    CHECK_INT(n_ends, 0, "no </s> is one");
    CHECK_INT(n_counted, N_LINES, "they are counted without being laid out");
    CHECK_NEAR(target.n / expected, 1, 0.03, "%d of %d pieces are chosen, where %.0f are expected", target.n,
               source.n - N_LINES, expected);
    CHECK_NEAR(n_masked / target.n, 0.8, 0.02, "of which %.3f are masked", n_masked / target.n);
    /* A piece that is drawn may be the one that was there, or the mask. */
    CHECK_NEAR(n_stayed / target.n, 0.1, 0.02, "and %.3f stay", n_stayed / target.n);
    arena_reset(&arena, mark);

    struct mask all = mask_of(1, 9);
    take(&source, &target, 0, N_LINES, 1, &all);
    CHECK_INT(target.n, source.n - N_LINES, "at a rate of 1 all pieces are chosen");
    struct mask least = mask_of(1e-9, 9);
    take(&source, &target, 0, N_LINES, 1, &least);
    CHECK_INT(target.n, N_LINES, "and at nearly 0 one of each sentence");
    arena_reset(&arena, mark);
}

static bool same_tokens(const struct tokens *a, const struct tokens *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, sizeof(int) * (size_t)a->n) == 0;
}

static void test_keys(void)
{
    struct mask mask = mask_of(0.15, 9), other = mask_of(0.15, 10);
    struct tokens source, target, again, targets;
    size_t mark = arena_mark(&arena);
    take(&source, &target, 0, 300, 1, &mask);
    take(&again, &targets, 0, 300, 1, &mask);
    CHECK(same_tokens(&source, &again) && same_tokens(&target, &targets), "the same seed masks alike");
    take(&again, &targets, 0, 300, 1, &other);
    CHECK(!same_tokens(&target, &targets), "another seed, or update, does not");
    int n_wrong = 0;
    for (int i = 0; i < 300; i++) {
        struct tokens line, labels;
        take(&line, &labels, i, 1, 1, &mask);
        n_wrong += labels.n != target.start[i + 1] - target.start[i] ||
                   memcmp(labels.ids, target.ids + target.start[i], sizeof(int) * (size_t)labels.n) != 0 ||
                   memcmp(line.ids, source.ids + source.start[i], sizeof(int) * (size_t)line.n) != 0;
    }
    CHECK_INT(n_wrong, 0, "a line is masked in the same way in any batch");
    take(&again, &targets, 0, 300, 2, &mask);
    n_wrong = targets.n != 2 * target.n ||
              memcmp(targets.ids, targets.ids + target.n, sizeof(int) * (size_t)target.n);
    for (int i = 0; i < target.n && n_wrong == 0; i++)
        n_wrong +=
            targets.rows[i] != target.rows[i] || targets.rows[target.n + i] != target.rows[i] + source.n;
    CHECK(n_wrong == 0 && again.key[0] != again.key[300],
          "both passes of R-Drop mask alike, and drop otherwise");
    arena_reset(&arena, mark);
}

/* ---- the loss ---- */

static struct config make_config(const struct spm *spm)
{
    struct config config;
    config_preset(&config, "tiny");
    config.architecture = CONFIG_ENCODER_ONLY;
    config.encoder_layers = 1;
    config.decoder_layers = 0;
    config.d_model = 16;
    config.ffn_dim = 24;
    config.heads = 2;
    config.source_vocab_size = config.vocab_size = spm_size(spm);
    config.eos_token_id = spm_eos(spm);
    config.unk_token_id = spm_unk(spm);
    config.mask_token_id = MASK;
    return config;
}

struct outcome {
    struct xent_sum sum, evaluated;
    double n_labels, n_evaluated;
    real *gradient; /* of all lanes */
};

static void run(struct outcome *out, const struct config *config, int n_lanes, int threads, double r_drop)
{
    struct params params;
    struct lanes lanes;
    struct weights weights;
    struct pool *pool;
    struct net *net = mem_alloc(sizeof(*net), &err);
    toy_must(params_list(&params, config, &err), &err);
    struct lanes_size size = { n_lanes, threads, corpus_longest(&corpus), r_drop > 0 ? 2 : 1, false };
    toy_must(lanes_init(&lanes, &size, config, params.size, &err), &err);
    toy_must(pool_new(&pool, threads, &err), &err);
    real *block = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, block, 1);
    params_bind(&weights, config, block);
    net_bind(net, config, &weights);
    struct lanes_run how = { .corpus = &corpus,
                             .net = net,
                             .kern = kern_for(CPU_REF),
                             .pool = pool,
                             .criterion = { 0.1f, (real)r_drop },
                             .seed = 1,
                             .mask = mask_of(0.15, 4),
                             .update_seed = 7 };
    toy_must(lanes_split(&lanes, &corpus, pairs, 400, &err), &err);
    out->n_labels = lanes_labels(&lanes, &how);
    out->sum = lanes_forward_backward(&lanes, &how);
    out->gradient = calloc(params.size, sizeof(real));
    for (int l = 0; l < n_lanes; l++)
        for (size_t i = 0; i < params.size; i++)
            out->gradient[i] += lanes.lane[l].gradient[i];
    toy_must(lanes_evaluate(&out->evaluated, &out->n_evaluated, &lanes, &how, &err), &err);
    mem_free(block);
    mem_free(net);
    pool_free(pool);
    lanes_release(&lanes);
    params_release(&params);
}

static void test_loss(const struct spm *spm)
{
    struct config config = make_config(spm);
    struct mask mask = mask_of(0.15, 4);
    struct outcome one, three, twice;
    double n_labels = 0, n_all = 0, log_v = log(config.vocab_size);
    for (int i = 0; i < N_LINES; i++) {
        n_labels += i < 400 ? mask_count(&corpus, i, &mask) : 0;
        n_all += mask_count(&corpus, i, &mask);
    }
    run(&one, &config, 3, 1, 0);
    run(&three, &config, 3, 3, 0);
    CHECK_NEAR(one.n_labels, n_labels, 0, "the chosen pieces of the batch are counted");
    CHECK_NEAR(one.n_evaluated, n_all, 0, "and those of an evaluation");
    CHECK(one.sum.loss / n_labels > 0.8 * log_v && one.sum.loss / n_labels < 1.8 * log_v,
          "a model that was not trained guesses: loss %.3f a piece", one.sum.loss / n_labels);
    CHECK(one.sum.loss == three.sum.loss && one.evaluated.nll == three.evaluated.nll,
          "loss %.17g on any number of threads", one.sum.loss);
    CHECK(one.evaluated.right == three.evaluated.right && one.evaluated.right >= 0 &&
              (double)one.evaluated.right < n_all / 2,
          "%ld of %.0f are right by chance", one.evaluated.right, n_all);
    CHECK(one.sum.right == 0, "which is not looked at in training");
    double difference = 0, largest = 0;
    struct params params;
    toy_must(params_list(&params, &config, &err), &err);
    for (size_t i = 0; i < params.size; i++) {
        difference =
            check_worse(difference, fabs((double)one.gradient[i] - (double)three.gradient[i]));
        largest = fmax(largest, fabs((double)one.gradient[i]));
    }
    CHECK(difference == 0 && largest > 0, "so are gradients");
    config.dropout = 0;
    run(&twice, &config, 2, 1, 5);
    run(&three, &config, 2, 1, 0);
    CHECK_NEAR(twice.sum.loss / three.sum.loss, 1, 1e-5, "R-Drop without dropout has the loss of one pass");
    params_release(&params);
    free(one.gradient);
    free(twice.gradient);
}

int main(void)
{
    struct spm *spm = toy_vocab();
    make_corpus(spm);
    toy_must(arena_init(&arena, 64 << 20, &err), &err);
    test_rates();
    test_keys();
    test_loss(spm);
    arena_release(&arena);
    corpus_release(&corpus);
    spm_free(spm);
    return check_done();
}
