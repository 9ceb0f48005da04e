/*
 * draw_test.c: tokens drawn from logits: frequencies are the probabilities, the head of top-k and top-p is what
 * it should be, ties and forbidden tokens, the key decides, and memory is given back.
 */
#include "decode/draw.h"

#include <math.h>

#include "base/rng.h"
#include "check.h"

enum {
    V = 300,
    N = 20000
};

static struct arena arena;
static struct run run = { .arena = &arena };
static real logits[V];
static int tokens[N], count[V];

static void draw(const struct draw_options *options, uint64_t key)
{
    memset(count, 0, sizeof(count));
    draw_tokens(tokens, N, logits, V, options, key, &run);
    for (int i = 0; i < N; i++)
        if (tokens[i] >= 0 && tokens[i] < V)
            count[tokens[i]]++;
}

/* The greatest deviation of a frequency from p_i ~ exp(x_i / T) over the tokens allowed, in standard
 * deviations. */
static double worst_deviation(const bool *allowed, double temperature)
{
    double sum = 0, worst = 0;
    for (int i = 0; i < V; i++)
        sum += allowed[i] ? exp((double)logits[i] / temperature) : 0;
    for (int i = 0; i < V; i++) {
        double p = allowed[i] ? exp((double)logits[i] / temperature) / sum : 0;
        double deviation = sqrt(N * p * (1 - p)) + 0.5;
        worst = check_worse(worst, fabs(count[i] - N * p) / deviation);
    }
    return worst;
}

static void allow_best(bool *allowed, int k)
{
    for (int i = 0; i < V; i++) {
        int before = 0;
        for (int j = 0; j < V; j++)
            before += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
        allowed[i] = before < k;
    }
}

static void test_frequencies(void)
{
    bool allowed[V];
    for (int i = 0; i < V; i++)
        logits[i] = i % 7 == 3 ? -INFINITY : (real)(3 * rng_normal(rng_key(4, (uint64_t)i, 0, 0)));
    for (int i = 0; i < V; i++)
        allowed[i] = logits[i] > -INFINITY;
    for (int t = 1; t <= 2; t++) {
        struct draw_options full = { .kind = TFM_SAMPLING_FULL, .temperature = t };
        draw(&full, 1);
        double worst = worst_deviation(allowed, t);
        CHECK(worst < 5, "temperature %d: frequencies fit the probabilities within %.1f deviations", t,
              worst);
    }
    struct draw_options top = { .kind = TFM_SAMPLING_TOPK, .top_k = 12, .temperature = 1 };
    allow_best(allowed, 12);
    draw(&top, 2);
    CHECK(worst_deviation(allowed, 1) < 5, "top-k draws from the k best, in proportion");
    top.top_k = V + 5;
    draw(&top, 2);
    CHECK(worst_deviation(memset(allowed, 1, sizeof(allowed)), 1) < 5,
          "a k beyond all tokens draws from all");
    top.top_k = 1;
    draw(&top, 3);
    allow_best(allowed, 1);
    CHECK(worst_deviation(allowed, 1) == 0, "top-1 is the best");
}

static void test_nucleus(void)
{
    static const double p[5] = { 0.1, 0.4, 0.15, 0.3, 0.05 };
    for (int i = 0; i < V; i++)
        logits[i] = i < 5 ? (real)log(p[i]) : -INFINITY;
    static const struct {
        double p;
        int n;
    } cases[] = { { 0.3, 1 }, { 0.5, 2 }, { 0.75, 3 }, { 0.9, 4 }, { 1, 5 } };
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct draw_options o = { .kind = TFM_SAMPLING_TOPP, .top_p = cases[c].p, .temperature = 1 };
        bool allowed[V];
        allow_best(allowed, cases[c].n);
        draw(&o, c);
        CHECK(worst_deviation(allowed, 1) < 5, "top-p %g draws from %d tokens", cases[c].p, cases[c].n);
    }
}

static void test_odd(void)
{
    struct draw_options o = { .kind = TFM_SAMPLING_TOPK, .top_k = 3, .temperature = 1 };
    for (int i = 0; i < V; i++)
        logits[i] = 1;
    draw(&o, 1);
    CHECK_INT(count[0] + count[1] + count[2], N, "of equal tokens the smaller ones are taken");
    static int first[N];
    memcpy(first, tokens, sizeof(first));
    draw(&o, 1);
    CHECK(memcmp(first, tokens, sizeof(first)) == 0, "the same key draws the same");
    draw(&o, 2);
    CHECK(memcmp(first, tokens, sizeof(first)) != 0, "another key draws otherwise");
    for (int kind = TFM_SAMPLING_FULL; kind <= TFM_SAMPLING_TOPP; kind++) {
        o = (struct draw_options){
            .kind = (enum tfm_sampling)kind, .top_k = 2, .top_p = 0.5, .temperature = 1
        };
        for (int i = 0; i < V; i++)
            logits[i] = -INFINITY;
        draw(&o, 1);
        CHECK_INT(tokens[0], -1, "kind %d: where all is forbidden nothing is drawn", kind);
        logits[7] = 0;
        draw(&o, 1);
        CHECK_INT(count[7], N, "kind %d: where one is allowed it is drawn", kind);
        logits[9] = NAN;
        draw_tokens(tokens, 1, logits, V, &o, 1, &run);
        CHECK(tokens[0] >= -1 && tokens[0] < V, "kind %d: what is no number does no harm", kind);
    }
    CHECK(arena.used == 0 && arena.peak <= draw_bytes(V), "memory is given back, and no more than was said");
}

int main(void)
{
    struct tfm_error err;
    enum cpu_tier tier;
    if (!CHECK(arena_init(&arena, (size_t)1 << 26, &err) == TFM_OK && cpu_current(&tier, &err) == TFM_OK,
               "ready"))
        return check_done();
    run.kern = kern_for(tier);
    test_frequencies();
    test_nucleus();
    test_odd();
    arena_release(&arena);
    return check_done();
}
