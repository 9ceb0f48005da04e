/*
 * rng_test.c: the random numbers are those of the published mixers, evenly spread, independent of order, and
 * the same on every machine.
 */
#include "base/rng.h"

#include "check.h"

static void test_mixers(void)
{
    /* The first outputs of splitmix64 seeded with 0: its state steps by the constant that rng_mix adds. */
    CHECK(rng_mix(0) == 0xe220a8397b1dcdafu, "the first number of splitmix64");
    CHECK(rng_mix(0x9e3779b97f4a7c15u) == 0x6e789e6aa1b965f4u, "the second");
    CHECK(rng_key(1, 2, 3, 4) != rng_key(1, 2, 4, 3) && rng_key(1, 2, 3, 4) != rng_key(2, 1, 3, 4),
          "the places of a key's parts matter");

    enum {
        N = 100000
    };
    int ones[32] = { 0 };
    for (uint32_t j = 0; j < N; j++) {
        uint32_t x = rng_at(12345, j);
        for (int b = 0; b < 32; b++)
            ones[b] += (int)(x >> b & 1);
    }
    int worst = 0;
    for (int b = 0; b < 32; b++)
        worst = abs(ones[b] - N / 2) > worst ? abs(ones[b] - N / 2) : worst;
    CHECK(worst < 800, "every bit of rng_at is one half of the time (off by %d of %d)", worst, N);
}

static void test_distributions(void)
{
    enum {
        N = 200000
    };
    double sum = 0, sum2 = 0, sum3 = 0, sum4 = 0, unit = 0;
    bool in_range = true;
    int counts[7] = { 0 };
    for (uint64_t i = 0; i < N; i++) {
        double x = rng_normal(rng_key(9, i, 0, 0)), u = rng_unit(rng_key(8, i, 0, 0));
        sum += x;
        sum2 += x * x;
        sum3 += x * x * x;
        sum4 += x * x * x * x;
        unit += u;
        in_range = in_range && u >= 0 && u < 1 && isfinite(x);
        counts[rng_below(rng_key(7, i, 0, 0), 7)]++;
    }
    CHECK(in_range, "uniform numbers lie in [0, 1), normal ones are finite");
    CHECK_NEAR(unit / N, 0.5, 0.003, "mean of uniform");
    CHECK_NEAR(sum / N, 0, 0.01, "mean of normal");
    CHECK_NEAR(sum2 / N, 1, 0.015, "variance of normal");
    CHECK_NEAR(sum3 / N, 0, 0.04, "skewness of normal");
    CHECK_NEAR(sum4 / N, 3, 0.1, "kurtosis of normal");
    int least = N, most = 0;
    for (int i = 0; i < 7; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    CHECK(least > N / 7 - 700 && most < N / 7 + 700, "rng_below is even (%d to %d)", least, most);
    CHECK_INT(rng_below(123, 1), 0, "below one there is only zero");
}

static void test_shuffle(void)
{
    enum {
        N = 1000
    };
    int a[N], b[N], seen[N] = { 0 };
    for (int i = 0; i < N; i++)
        a[i] = b[i] = i;
    rng_shuffle(5, a, N);
    rng_shuffle(5, b, N);
    CHECK(memcmp(a, b, sizeof(a)) == 0, "the same key shuffles the same way");
    int fixed = 0, all = 0;
    for (int i = 0; i < N; i++) {
        fixed += a[i] == i;
        all += seen[a[i]]++ == 0;
    }
    CHECK(all == N && fixed < 10, "a shuffle is a permutation that moves nearly all");
    rng_shuffle(6, b, N);
    CHECK(memcmp(a, b, sizeof(a)) != 0, "another key shuffles another way");

    int counts[6] = { 0 };
    for (uint64_t key = 0; key < 60000; key++) {
        int c[3] = { 0, 1, 2 };
        rng_shuffle(key, c, 3);
        counts[c[0] * 2 + (c[1] > c[2])]++;
    }
    bool even = true;
    for (int i = 0; i < 6; i++)
        even = even && abs(counts[i] - 10000) < 400;
    CHECK(even, "all orders of three are equally likely");
    rng_shuffle(1, a, 0);
    rng_shuffle(1, a, 1);
    CHECK(true, "nothing and one element can be shuffled");
}

int main(void)
{
    test_mixers();
    test_distributions();
    test_shuffle();
    return check_done();
}
