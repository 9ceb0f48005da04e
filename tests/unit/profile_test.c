/*
 * profile_test.c: the stopwatch; the floating-point operations that a pass over a small model counts, against
 * the sum made by hand from its shapes; and the profile of a training, which must add up to its time, and
 * change no digit of it.
 */
#include "base/mem.h"
#include "model/loss.h"
#include "toy_vocab.h"
#include "train/breakdown.h"

static struct tfm_error err;

static void test_stopwatch(void)
{
    struct profile p = { 0 };
    double began = profile_clock();
    profile_to(NULL, PROFILE_FFN);
    profile_product(NULL, 1, 2, 3);
    profile_to(&p, PROFILE_FFN);
    profile_product(&p, 2, 3, 5);
    while (profile_clock() - began < 0.02) {
    }
    profile_to(&p, PROFILE_NORM);
    profile_to(&p, PROFILE_FFN);
    profile_product(&p, 1, 1, 7);
    profile_to(&p, PROFILE_AWAY);
    double whole = profile_clock() - began;
    CHECK(p.seconds[PROFILE_FFN] >= 0.015 && p.seconds[PROFILE_FFN] <= whole,
          "time goes to the running part");
    CHECK_INT((long)p.flop[PROFILE_FFN], 2 * 2 * 3 * 5 + 2 * 7, "and products, of two turns");
    CHECK_INT((long)p.flop[PROFILE_NORM], 0, "not to others");
}

/* ---- operations ---- */

enum {
    D = 8,
    F = 12,
    V = 10,
    LAYERS = 2
};

static const int source_ids[] = { 3, 7, 5, 0, 9, 0 }, source_start[] = { 0, 4, 6 };
static const int target_ids[] = { 2, 3, 5, 4, 0, 7, 0 }, target_start[] = { 0, 5, 7 };
static const uint64_t sentence_keys[] = { 1, 2 };

/* Runs a batch of two pairs (4 and 5 tokens, 2 and 2) and leaves the operations in p. */
static void run_batch(struct profile *p, bool pre_norm, bool backward)
{
    struct config c = { .encoder_layers = LAYERS,
                        .decoder_layers = LAYERS,
                        .d_model = D,
                        .heads = 2,
                        .ffn_dim = F,
                        .activation = TFM_ACTIVATION_RELU,
                        .pre_norm = pre_norm,
                        .norm_epsilon = 1e-6,
                        .source_vocab_size = V,
                        .vocab_size = V,
                        .tie = TFM_TIE_ALL,
                        .dropout = 0.1 };
    struct params params;
    struct weights weights, grad;
    static struct net net;
    struct arena arena;
    toy_must(params_list(&params, &c, &err), &err);
    real *block = mem_alloc(2 * params.size * sizeof(real), &err);
    params_init(&params, block, 1);
    params_bind(&weights, &c, block);
    params_bind(&grad, &c, block + params.size);
    net_bind(&net, &c, &weights);
    toy_must(arena_init(&arena, (size_t)1 << 24, &err), &err);
    struct run run = {
        .arena = &arena, .kern = kern_for(CPU_REF), .profile = p, .keep = backward, .dropout = backward
    };
    struct tokens source = { 2, 6, source_ids, source_start, sentence_keys, NULL };
    struct tokens target = { 2, 7, target_ids, target_start, sentence_keys, NULL };
    struct xent_sum sum = { 0 };
    struct criterion criterion = { 0 };
    *p = (struct profile){ 0 };
    loss_batch(&sum, NULL, backward ? &grad : NULL, &source, &target, &criterion, &net, &run);
    profile_to(p, PROFILE_AWAY);
    arena_release(&arena);
    mem_free(block);
    params_release(&params);
}

static void test_operations(void)
{
    struct profile p;
    const long n_source = 6, n_target = 7;
    /* A layer multiplies rows by: encoder 3D D + D D; decoder the same, D D + D D for cross-attention, and
     * the encoder's rows by 2D D. Scores and mix are D multiplications a query and key each. */
    const long project = 2 * LAYERS * D * D * (4 * n_source + 6 * n_target + 2 * n_source);
    const long ffn = 2 * LAYERS * 2 * D * F * (n_source + n_target);
    const long attend = 2 * LAYERS * 2 * D * (4 * 4 + 2 * 2 + 5 * 5 + 2 * 2 + 5 * 4 + 2 * 2);
    const long loss = 2 * V * D * n_target;
    for (int i = 0; i < 4; i++) {
        bool pre_norm = i % 2, backward = i / 2;
        const char *name = backward   ? pre_norm ? "pre-norm, back, too" : "post-norm, back, too"
                           : pre_norm ? "pre-norm"
                                      : "post-norm";
        long factor = backward ? 3 : 1; /* the gradients of both factors are as much work as the product */
        run_batch(&p, pre_norm, backward);
        CHECK_INT((long)p.flop[PROFILE_PROJECT], factor * project, "%s: projections", name);
        CHECK_INT((long)p.flop[PROFILE_FFN], factor * ffn, "%s: feed-forward", name);
        CHECK_INT((long)p.flop[PROFILE_ATTEND], factor * attend, "%s: attention", name);
        CHECK_INT((long)p.flop[PROFILE_LOSS], factor * loss, "%s: output layer", name);
        CHECK(p.flop[PROFILE_EMBED] + p.flop[PROFILE_NORM] + p.flop[PROFILE_AWAY] == 0, "%s: no others",
              name);
        CHECK(p.seconds[PROFILE_EMBED] > 0 && p.seconds[PROFILE_NORM] > 0, "%s: but they take time", name);
    }
}

/* ---- a training ---- */

static struct tfm_profile seen;
static struct tfm_profile_part seen_parts[N_PROFILE_PARTS];
static int n_seen;

static void see(void *user, const struct tfm_train_event *event)
{
    (void)user;
    if (event->kind != TFM_EVENT_PROFILE)
        return;
    n_seen++;
    seen = *event->profile;
    memcpy(seen_parts, seen.parts, sizeof(*seen_parts) * (size_t)seen.n_parts);
}

static void train(const char *folder, bool profile)
{
    struct tfm_train_options o;
    tfm_train_options_init(&o);
    o.model = check_path("%s", folder);
    const struct tfm_corpus corpus = { .source = toy_file("en", 60, 1), .target = toy_file("de", 60, 2) };
    o.corpora = &corpus;
    o.n_corpora = 1;
    o.valid_source = toy_file("ven", 6, 3);
    o.valid_target = toy_file("vde", 6, 4);
    o.source_vocab = o.target_vocab = check_path("toy.spm");
    o.encoder_layers = o.decoder_layers = 1;
    o.dim_model = o.dim_ffn = 32;
    o.heads = 2;
    o.mini_batch_words = 200;
    o.after = (struct tfm_interval){ 8, TFM_UPDATES };
    o.threads = 2;
    o.profile = profile;
    o.event = see;
    toy_must(tfm_train(&o, &err), &err);
}

static void test_training(void)
{
    train("plain", false);
    CHECK_INT(n_seen, 0, "no profile where none was asked for");
    train("profiled", true);
    CHECK_INT(n_seen, 1, "one where it was");
    double sum = 0;
    int n_negative = 0, n_busy = 0;
    for (int i = 0; i < seen.n_parts; i++) {
        sum += seen_parts[i].seconds;
        n_negative += seen_parts[i].seconds < -1e-9;
        n_busy += seen_parts[i].seconds > 0;
        CHECK(seen_parts[i].name != NULL && strlen(seen_parts[i].name) <= 25, "part %d has a short name", i);
    }
    CHECK(fabs(sum - seen.seconds) < 1e-3 * seen.seconds, "the parts add up: %g s of %g", sum, seen.seconds);
    CHECK_INT(n_negative, 0, "none is negative");
    CHECK_INT(n_busy, seen.n_parts, "and each took some time");
    CHECK(seen.peak_flops > 1e6, "a peak was measured: %g", seen.peak_flops);
    double known = seen.memory_weights + seen.memory_gradients + seen.memory_scratch;
    CHECK(known > 0 && (seen.memory == 0 || seen.memory > known), "memory of %g holds %g", seen.memory,
          known);
    CHECK_NEAR(seen.memory_gradients * 2, seen.memory_weights, 1, "four blocks of weights, two lanes");
    char *plain, *profiled;
    size_t n_plain, n_profiled;
    toy_must(file_read(check_path("plain/weights.safetensors.gz"), &plain, &n_plain, &err), &err);
    toy_must(file_read(check_path("profiled/weights.safetensors.gz"), &profiled, &n_profiled, &err), &err);
    CHECK(n_plain == n_profiled && memcmp(plain, profiled, n_plain) == 0,
          "the weights are the same bit for bit");
    mem_free(plain);
    mem_free(profiled);
}

int main(void)
{
    spm_free(toy_vocab());
    test_stopwatch();
    test_operations();
    test_training();
    return check_done();
}
