/*
 * kern_test.c: every kernel of every tier against the reference tier, bit for bit, over sizes around the
 * lanes and primes and over zeros, large and small values and noise; and the reference against formulas in
 * double.
 */
#include "num/kern.h"

#include "base/rng.h"
#include "check.h"
#include "num/f16.h"

#define MAX 4096

static const int sizes[] = { 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 97, 128, 251, 256, 512 };
enum {
    N_SIZES = sizeof(sizes) / sizeof(*sizes),
    N_FILLS = 4
};

static void fill(real *x, int n, int kind, uint64_t key)
{
    for (int i = 0; i < n; i++) {
        double noise = rng_normal(rng_key(key, (uint64_t)i, 0, 0));
        x[i] = (real)(kind == 0 ? noise : kind == 1 ? 0 : kind == 2 ? noise * 1e4 : noise * 1e-20);
    }
}

static bool same(const real *a, const real *b, size_t n)
{
    return memcmp(a, b, sizeof(real) * n) == 0;
}

static bool same_rows(const struct kern *k, int n, int kind)
{
    const struct kern *ref = &kern_ref;
    static real x[MAX], y[MAX], a[MAX], b[MAX], w[MAX], v[MAX], w2[MAX], v2[MAX];
    bool ok = true;
    fill(x, MAX, kind, 1);
    fill(y, MAX, kind, 2);
    ok &= k->sum_squares(x, (size_t)n) == ref->sum_squares(x, (size_t)n);
    ok &= k->logsumexp(x, n) == ref->logsumexp(x, n);
#define IN_PLACE(from, ...)       \
    memcpy(a, from, sizeof(a));   \
    memcpy(b, from, sizeof(b));   \
    {                             \
        const struct kern *t = k; \
        real *o = a;              \
        __VA_ARGS__;              \
        t = ref;                  \
        o = b;                    \
        __VA_ARGS__;              \
    }                             \
    ok &= same(a, b, MAX)
    IN_PLACE(x, t->softmax(o, n, (real)0.3));
    IN_PLACE(x, t->softmax_backward(o, y, n, (real)0.3));
    IN_PLACE(x, t->add(o, y, (size_t)n));
    IN_PLACE(x, t->multiply(o, y, (size_t)n));
    IN_PLACE(x, t->scale(o, (real)1.7, (size_t)n));
    for (int act = ACT_NONE; act <= ACT_SWISH; act++) {
        IN_PLACE(y, t->act(o, x, (size_t)n, (enum kern_act)act));
        IN_PLACE(x, t->act_backward(o, y, (size_t)n, (enum kern_act)act));
    }
    IN_PLACE(x, t->sigmoid(o, o, (size_t)n));
    IN_PLACE(x, t->sigmoid_backward(o, y, (size_t)n));
    IN_PLACE(x, t->gate(o, x, y, x + 1, n));
    fill(w, MAX, 0, 13);
    for (int l = 0; l < MAX; l++)
        v[l] = v2[l] = w2[l] = w[l];
    IN_PLACE(x, t->gate_backward(o, t == k ? w : w2, t == k ? v : v2, x, y, x + 1, y + 1, n));
    ok &= same(w, w2, MAX) && same(v, v2, MAX);
    IN_PLACE(x, t->gate_tanh(o, o, (size_t)n));
    IN_PLACE(x, t->gate_tanh_backward(o, y, (size_t)n));
    IN_PLACE(x, t->dropout(o, x, n, 12345, (real)0.3));
    IN_PLACE(x, t->additive(o, y, y + 7, n + 1, y + 11, n, 5));
    fill(w, MAX, 0, 14);
    for (int l = 0; l < MAX; l++)
        v[l] = v2[l] = w2[l] = w[l];
    IN_PLACE(x,
             t->additive_backward(o, t == k ? w : w2, t == k ? v : v2, y, y + 1, y + 7, n + 1, y + 11, n, 5));
    ok &= same(w, w2, MAX) && same(v, v2, MAX);
    double nll[2], loss[2];
    memcpy(a, x, sizeof(a));
    memcpy(b, x, sizeof(b));
    loss[0] = k->xent(a, n, n / 2, (real)0.1, true, &nll[0]);
    loss[1] = ref->xent(b, n, n / 2, (real)0.1, true, &nll[1]);
    ok &= same(a, b, MAX) && nll[0] == nll[1] && loss[0] == loss[1];
    memcpy(a, x, sizeof(a));
    memcpy(b, x, sizeof(b));
    memcpy(w, y, sizeof(w));
    memcpy(w2, y, sizeof(w2));
    loss[0] = k->xent_twins(a, w, v, n, n / 2, (real)0.1, 5, &nll[0]);
    loss[1] = ref->xent_twins(b, w2, v2, n, n / 2, (real)0.1, 5, &nll[1]);
    ok &= same(a, b, MAX) && same(w, w2, MAX) && nll[0] == nll[1] && loss[0] == loss[1];
    memcpy(a, x, sizeof(a));
    memcpy(b, x, sizeof(b));
    fill(v, MAX, 0, 3);
    for (int l = 0; l < MAX; l++)
        v2[l] = v[l] = v[l] < 0 ? -v[l] : v[l];
    fill(w, MAX, 0, 4);
    memcpy(w2, w, sizeof(w));
    k->adam(a, w, v, y, (size_t)n, (real)0.5, (real)0.9, (real)0.98, (real)0.01, (real)1e-9, (real)0.001);
    ref->adam(b, w2, v2, y, (size_t)n, (real)0.5, (real)0.9, (real)0.98, (real)0.01, (real)1e-9, (real)0.001);
    ok &= same(a, b, MAX) && same(w, w2, MAX) && same(v, v2, MAX);
    return ok;
}

/* With rms the norm has no beta. */
static bool same_norm(const struct kern *k, int d, int kind, bool rms)
{
    enum {
        ROWS = 5
    };
    static real x[ROWS * 512], dy[ROWS * 512], out[2][ROWS * 512], dx[2][ROWS * 512], stats[2][2 * ROWS];
    static real gamma[512], beta[512], dgamma[2][512], dbeta[2][512], column[2][512];
    const struct kern *tiers[2] = { k, &kern_ref };
    fill(x, ROWS * d, kind, 5);
    fill(dy, ROWS * d, 0, 6);
    fill(gamma, d, 0, 7);
    fill(beta, d, 0, 8);
    for (int t = 0; t < 2; t++) {
        memset(dgamma[t], 0, sizeof(dgamma[t]));
        memset(dbeta[t], 0, sizeof(dbeta[t]));
        memset(column[t], 0, sizeof(column[t]));
        tiers[t]->norm(out[t], stats[t], x, gamma, rms ? NULL : beta, ROWS, d, (real)1e-5);
        tiers[t]->norm_backward(dx[t], dgamma[t], rms ? NULL : dbeta[t], dy, x, stats[t], gamma, ROWS, d);
        tiers[t]->bias(out[t], beta, ROWS, d);
        tiers[t]->bias_backward(column[t], dy, ROWS, d);
    }
    size_t all = (size_t)ROWS * (size_t)d;
    return same(out[0], out[1], all) && same(dx[0], dx[1], all) && same(stats[0], stats[1], 2 * ROWS) &&
           same(dgamma[0], dgamma[1], (size_t)d) && same(dbeta[0], dbeta[1], (size_t)d) &&
           same(column[0], column[1], (size_t)d);
}

/* All shapes of the product; with ROWS more rows the first ones must not change. */
static bool same_gemm(const struct kern *k, int n, int depth)
{
    enum {
        M = 19
    };
    static real a[M * 512], b[512 * 512], packed[512 * 528], c[2][M * 512], one[512];
    fill(a, M * depth, 0, 9);
    fill(b, depth * n, 0, 10);
    fill(packed, (n + 15) / 16 * 16 * depth, 0, 11);
    bool ok = true;
    for (int m = 1; m <= M; m++) {
        for (int add = 0; add < 2; add++) {
            fill(c[0], M * n, 0, 12);
            memcpy(c[1], c[0], sizeof(c[0]));
            k->gemm(c[0], n, a, depth, 1, b, n, m, n, depth, add);
            kern_ref.gemm(c[1], n, a, depth, 1, b, n, m, n, depth, add);
            ok &= same(c[0], c[1], (size_t)(M * n));
        }
        k->gemm(c[0], n, a, 1, m, b, n, m, n, depth, false); /* a transposed */
        kern_ref.gemm(c[1], n, a, 1, m, b, n, m, n, depth, false);
        ok &= same(c[0], c[1], (size_t)(m * n));
        k->linear(c[0], a, packed, m, n, depth);
        kern_ref.linear(c[1], a, packed, m, n, depth);
        ok &= same(c[0], c[1], (size_t)(m * n));
        k->linear(one, a + (size_t)(m - 1) * (size_t)depth, packed, 1, n, depth);
        ok &= same(one, c[0] + (size_t)(m - 1) * (size_t)n, (size_t)n);
    }
    return ok;
}

/* Of rows in order and of rows named, some twice, against the definitions. */
static bool same_rearranged(const struct kern *k, int n, int d)
{
    enum {
        M = 19,
        WIDTH = 512
    };
    static real x[M * WIDTH], got[2][M * WIDTH], rows[M * WIDTH], p[M];
    static int index[M];
    int height = n < M ? n : M, wrong = 0;
    fill(x, M * WIDTH, 0, 13);
    fill(p, M, 0, 14);
    for (int l = 0; l < height; l++)
        index[l] = (l * l + 3) % M;
    k->transpose(got[0], M, x, WIDTH, NULL, height, d);
    k->transpose(got[1], M, x, WIDTH, index, height, d);
    for (int l = 0; l < height; l++) {
        memcpy(rows + l * d, x + index[l] * WIDTH, sizeof(real) * (size_t)d);
        for (int j = 0; j < d; j++)
            wrong += got[0][j * M + l] != x[l * WIDTH + j] || got[1][j * M + l] != x[index[l] * WIDTH + j];
    }
    k->mix(got[0], p, x, WIDTH, index, height, d);
    kern_ref.gemm(got[1], d, p, height, 1, rows, d, 1, d, height, false);
    return wrong == 0 && same(got[0], got[1], (size_t)d);
}

static void check_tier(enum cpu_tier tier)
{
    const struct kern *k = kern_for(tier);
    const char *name = cpu_tier_name(tier);
    if (tier > cpu_best()) {
        SKIP("this machine has no %s", name);
        return;
    }
    bool rows = true, norms = true, products = true;
    for (int s = 0; s < N_SIZES; s++) {
        for (int kind = 0; kind < N_FILLS; kind++) {
            rows &= same_rows(k, sizes[s], kind);
            norms &= same_norm(k, sizes[s], kind, false) && same_norm(k, sizes[s], kind, true);
        }
        for (int d = 0; d < N_SIZES; d += 3)
            products &= same_gemm(k, sizes[s], sizes[d]) && same_rearranged(k, sizes[s], sizes[d]);
    }
    CHECK(rows, "%s: kernels of a row give the reference's bits", name);
    CHECK(norms, "%s: norms and biases give the reference's bits", name);
    CHECK(products, "%s: products give the reference's bits, whatever the number of rows", name);
}

static void check_reference(void)
{
    static real x[MAX], y[MAX], p[MAX];
    double worst = 0;
    fill(x, MAX, 0, 20);
    for (int s = 0; s < N_SIZES; s++) {
        int n = sizes[s];
        memcpy(p, x, sizeof(p));
        kern_ref.softmax(p, n, 2);
        double max = -1e300, sum = 0, exponentials = 0;
        for (int i = 0; i < n; i++)
            max = fmax(max, (double)x[i]);
        for (int i = 0; i < n; i++) {
            sum += exp(2 * ((double)x[i] - max));
            exponentials += exp((double)x[i]);
        }
        for (int i = 0; i < n; i++)
            worst = check_worse(worst, fabs((double)p[i] - exp(2 * ((double)x[i] - max)) / sum));
        worst = check_worse(worst, fabs((double)kern_ref.logsumexp(x, n) - log(exponentials)) / 10);
    }
    CHECK(worst < 2e-7, "the reference agrees with the formulas in double (%.1e)", worst);

    double relative = 0, slope = 0;
    for (int i = 0; i < MAX; i++)
        x[i] = (real)(i - MAX / 2) / 25; /* to +-82 */
    kern_ref.sigmoid(y, x, MAX);
    for (int i = 0; i < MAX; i++) {
        double s = 1 / (1 + exp(-(double)x[i]));
        relative = check_worse(relative, fabs((double)y[i] - s) / s);
        p[i] = 1;
    }
    kern_ref.sigmoid_backward(p, y, MAX);
    for (int i = 0; i < MAX; i++) {
        double e = exp(-fabs((double)x[i]));
        slope = check_worse(slope, fabs((double)p[i] - e / (1 + e) / (1 + e)));
    }
    CHECK(relative < 3e-7, "the sigmoid is right to %.1e of its value", relative);
    CHECK(slope < 2e-7, "and its derivative to %.1e", slope);
    for (int i = 0; i < MAX; i++)
        x[i] = (real)(i % 2 ? 1e30 : -1e30);
    kern_ref.sigmoid(y, x, MAX);
    bool limits = true;
    for (int i = 0; i < MAX; i++)
        limits &= i % 2 ? y[i] == 1 : y[i] >= 0 && y[i] < (real)1e-37;
    CHECK(limits, "far out it is 0 and 1");

    double tanh_error = 0;
    for (int i = 0; i < MAX; i++)
        x[i] = (real)(i - MAX / 2) / 64; /* to +-32 */
    kern_ref.gate_tanh(y, x, MAX);
    for (int i = 0; i < MAX; i++)
        tanh_error = check_worse(tanh_error, fabs((double)y[i] - tanh((double)x[i])));
    x[5] = (real)NAN;
    kern_ref.gate_tanh(p, x, 16);
    CHECK(isnan(p[5]) && !isnan(p[4]), "tanh of NaN is NaN");
    CHECK(tanh_error < 3e-7 && y[0] == -1 && y[MAX - 1] == 1 && y[MAX / 2] == 0, "tanh is right to %.1e",
          tanh_error);

    long kept = 0;
    for (int i = 0; i < MAX; i++)
        x[i] = 1;
    for (uint32_t key = 0; key < 64; key++) {
        kern_ref.dropout(y, x, MAX, key * 2654435761u, (real)0.3);
        for (int i = 0; i < MAX; i++)
            kept += y[i] > 0;
    }
    CHECK_NEAR((double)kept / (64 * MAX), 0.7, 0.003, "dropout keeps 1 - p of the elements");
}

/* ---- activation functions ---- */

static double activation(double x, enum kern_act act)
{
    double u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    switch (act) {
    case ACT_RELU: return fmax(x, 0);
    case ACT_GELU: return x * erfc(-x / sqrt(2)) / 2;
    case ACT_GELU_TANH: return x / (1 + exp(-2 * u));
    case ACT_SWISH: return x / (1 + exp(-x));
    default: return x;
    }
}

static void check_activation(enum kern_act act, const char *name)
{
    static real x[MAX], y[MAX], slope[MAX];
    double error = 0, slope_error = 0, h = 1e-5;
    for (int i = 0; i < MAX; i++) {
        x[i] = (real)(i - MAX / 2) / 128; /* to +-16 */
        slope[i] = 1;
    }
    kern_ref.act(y, x, MAX, act);
    kern_ref.act_backward(slope, x, MAX, act);
    for (int i = 0; i < MAX; i++) {
        double at = (double)x[i], up = activation(at + h, act), down = activation(at - h, act);
        error = check_worse(error, fabs((double)y[i] - activation(at, act)) / fmax(1, fabs(at)));
        if (at != 0 || act != ACT_RELU)
            slope_error = check_worse(slope_error, fabs((double)slope[i] - (up - down) / (2 * h)));
    }
    CHECK(error < 3e-7, "%s is right to %.1e", name, error);
    CHECK(slope_error < 1e-6, "and its derivative to %.1e", slope_error);

    const real far[] = { (real)1e4, (real)-1e4, (real)1e18, (real)-1e18, 0, (real)1e-40, (real)-1e-40 };
    real one[] = { 1, 1, 1, 1, 1, 1, 1 };
    kern_ref.act(y, far, 7, act);
    kern_ref.act_backward(one, far, 7, act);
    bool limits = true;
    for (int i = 0; i < 7; i++) {
        real expected = far[i] > 1 ? far[i] : 0;
        limits &= fabsf(y[i] - expected) < (real)1e-19 && isfinite(one[i]);
        limits &= i > 3 || fabsf(one[i] - (far[i] > 0)) < (real)1e-19;
    }
    CHECK(limits, "far out it is 0 and x");
    const real nan = (real)NAN;
    kern_ref.act(y, &nan, 1, act);
    CHECK(act == ACT_RELU || isnan(y[0]), "and a NaN stays one");
}

/* ---- additive scores ---- */

/* With one column and v = 1 the additive score is the hyperbolic tangent alone. */
static void check_additive(void)
{
    static real k[MAX], y[MAX], dk[MAX], ones[MAX];
    real q = 0, v = 1, dq = 0, dv = 0;
    double worst = 0, slope = 0, sum = 0;
    for (int i = 0; i < MAX; i++) {
        k[i] = (real)(i - MAX / 2) / 40; /* to +-51 */
        ones[i] = 1;
    }
    kern_ref.additive(y, &q, k, MAX, &v, MAX, 1);
    kern_ref.additive_backward(&dq, dk, &dv, ones, &q, k, MAX, &v, MAX, 1);
    for (int i = 0; i < MAX; i++) {
        double t = tanh((double)k[i]);
        worst = check_worse(worst, fabs((double)y[i] - t));
        slope = check_worse(slope, fabs((double)dk[i] - (1 - t * t)));
        sum += 1 - t * t;
    }
    CHECK(worst < 2e-7, "the hyperbolic tangent is right to %.1e", worst);
    CHECK(slope < 4e-7, "and its derivative to %.1e", slope);
    CHECK_NEAR(dq, sum, 1e-3, "a query gets the sum over its keys");
    CHECK(y[0] == -1 && y[MAX - 1] == 1, "far out it is -1 and 1");
}

static void check_f16(void)
{
    bool ok = true;
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t in = (uint16_t)h, out;
        float f;
        f16_decode(&f, &in, 1);
        f16_encode(&out, &f, 1);
        bool nan = (h & 0x7c00) == 0x7c00 && (h & 0x3ff);
        ok &= nan ? isnan(f) && (out & 0x7e00) == 0x7e00 : in == out;
    }
    CHECK(ok, "every half survives the way to float and back");
    const float odd[] = { 65519.9f,      65520.0f, -1e30f,        1.00048828125f,
                          1.0014648438f, 2.98e-8f, 2.9802322e-8f, 8.9e-8f };
    const uint16_t expected[] = { 0x7bff, 0x7c00, 0xfc00, 0x3c00, 0x3c02, 0x0000, 0x0000, 0x0001 };
    uint16_t out[8];
    f16_encode(out, odd, 8);
    for (int i = 0; i < 8; i++)
        CHECK_INT(out[i], expected[i], "%.9g as a half", (double)odd[i]);
}

int main(void)
{
    for (int t = CPU_AVX2; t < CPU_N_TIERS; t++)
        check_tier((enum cpu_tier)t);
    check_reference();
    check_activation(ACT_RELU, "ReLU");
    check_activation(ACT_GELU, "GELU");
    check_activation(ACT_GELU_TANH, "GELU by tanh");
    check_activation(ACT_SWISH, "swish");
    check_additive();
    check_f16();
    return check_done();
}
