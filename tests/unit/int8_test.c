/*
 * int8_test.c: products of whole numbers. Every tier, the reference too, against sums in 64 bits worked out here, bit
 * for bit, over sizes around the lanes, primes and real shapes, over noise, zeros and +-127 everywhere (where an
 * instruction that saturates would show); weights that survive the way through their scales; chosen rows.
 */
#include "num/int8.h"

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "nn/linear.h"

enum fill {
    NOISE,
    ZEROS,
    MOST,
    ALTERNATING,
    LEAST,
    N_FILLS
};

static void *take(size_t size)
{
    struct tfm_error err;
    void *p = mem_alloc(size, &err);
    if (p == NULL)
        exit(1);
    return p;
}

static real *noise(size_t n, uint64_t key)
{
    real *x = take(n * sizeof(*x));
    for (size_t i = 0; i < n; i++)
        x[i] = (real)rng_normal(rng_key(key, i, 0, 0));
    return x;
}

static int8_t filled(enum fill fill, uint64_t key, size_t i)
{
    switch (fill) {
    case ZEROS: return 0;
    case MOST: return 127;
    case LEAST: return -127;
    case ALTERNATING: return i % 2 ? 127 : -127;
    default: return (int8_t)((int)rng_below(rng_key(key, i, 0, 0), 255) - 127);
    }
}

struct product { /* y [n, out] of whole numbers, as reals to be quantised and as they are */
    int n, out, in;
    int8_t *x, *w, *packed, *q;
    real *values, *x_scales, *scales, *bias, *y, *expected;
};

static void product_init(struct product *p, int n, int out, int in, enum fill x_fill, enum fill w_fill)
{
    size_t n_x = (size_t)n * (size_t)in, n_w = (size_t)out * (size_t)in, n_y = (size_t)n * (size_t)out;
    *p = (struct product){ .n = n, .out = out, .in = in, .x = take(n_x), .w = take(n_w) };
    for (size_t i = 0; i < n_w; i++)
        p->w[i] = filled(w_fill, 2, i);
    p->values = take(n_x * sizeof(real));
    p->x_scales = take((size_t)n * sizeof(real));
    for (int i = 0; i < n;
         i++) { /* 127 is in every row, so that the row's scale is what it is multiplied by */
        real scale = (real)ldexp(1, i % 5 - 2);
        for (int j = 0; j < in; j++) {
            size_t at = (size_t)i * (size_t)in + (size_t)j;
            p->x[at] = j == i % in && x_fill == NOISE ? 127 : filled(x_fill, 1, at);
            p->values[at] = scale * (real)p->x[at];
        }
    }
    p->q = take((size_t)n * int8_stride(in));
    p->packed = take(int8_packed_size(out, in));
    int8_pack(p->packed, p->w, 0, out, in);
    p->scales = noise((size_t)out, 3);
    p->bias = noise((size_t)out, 4);
    p->y = take(n_y * sizeof(real));
    p->expected = take(n_y * sizeof(real));
}

static void product_release(struct product *p)
{
    void *all[] = {
        p->x, p->w, p->packed, p->q, p->values, p->x_scales, p->scales, p->bias, p->y, p->expected
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        mem_free(all[i]);
}

static void expect(struct product *p, bool relu, bool has_bias)
{
    for (int i = 0; i < p->n; i++) {
        real scale = (real)ldexp(1, i % 5 - 2);
        bool is_zero = true;
        for (int j = 0; j < p->in; j++)
            is_zero &= p->x[(size_t)i * (size_t)p->in + (size_t)j] == 0;
        scale = is_zero ? 0 : scale;
        for (int o = 0; o < p->out; o++) {
            int64_t sum = 0;
            for (int j = 0; j < p->in; j++)
                sum +=
                    p->x[(size_t)i * (size_t)p->in + (size_t)j] * p->w[(size_t)o * (size_t)p->in + (size_t)j];
            real y = fmaf((real)(int32_t)sum, scale * p->scales[o], has_bias ? p->bias[o] : 0);
            p->expected[(size_t)i * (size_t)p->out + (size_t)o] = relu && !(y > 0) ? 0 : y;
        }
    }
}

static bool fits(struct product *p, const struct kern *k)
{
    bool ok = true;
    for (int form = 0; form < 4; form++) {
        bool relu = form & 1, has_bias = form & 2;
        size_t size = (size_t)p->n * (size_t)p->out * sizeof(real);
        memset(p->y, 0xff, size);
        k->quantise(p->q, p->x_scales, p->values, p->n, p->in, 0);
        k->linear8(p->y, p->q, p->x_scales, p->packed, p->scales, has_bias ? p->bias : NULL, p->n, p->out,
                   p->in, relu ? ACT_RELU : ACT_NONE);
        expect(p, relu, has_bias);
        ok &= memcmp(p->y, p->expected, size) == 0;
    }
    return ok;
}

static void check_tier(enum cpu_tier tier)
{
    static const int ins[] = { 1, 3, 4, 5, 15, 16, 17, 31, 64, 97 },
                     outs[] = { 1, 15, 16, 17, 33, 64, 67, 130 };
    static const int real_shapes[][3] = {
        { 5, 256, 1536 }, { 33, 1536, 256 }, { 2, 2048, 512 }, { 1, 256, 2048 }
    };
    const char *name = cpu_tier_name(tier);
    const struct kern *k = kern_for(tier);
    if (tier > cpu_best()) {
        SKIP("this machine has no %s", name);
        return;
    }
    struct product p;
    bool small = true, extreme = true, large = true;
    for (size_t i = 0; i < sizeof(ins) / sizeof(*ins); i++) {
        for (size_t o = 0; o < sizeof(outs) / sizeof(*outs); o++) {
            for (int n = 0; n <= 19; n += n < 9 ? 1 : 10) {
                product_init(&p, n, outs[o], ins[i], NOISE, NOISE);
                small &= fits(&p, k);
                product_release(&p);
            }
        }
    }
    for (int x = 0; x < N_FILLS; x++) {
        for (int w = 0; w < N_FILLS; w++) {
            product_init(&p, 9, 37, 515, (enum fill)x, (enum fill)w);
            extreme &= fits(&p, k);
            product_release(&p);
        }
    }
    for (size_t s = 0; s < sizeof(real_shapes) / sizeof(*real_shapes); s++) {
        product_init(&p, real_shapes[s][0], real_shapes[s][1], real_shapes[s][2], NOISE, NOISE);
        large &= fits(&p, k);
        product_release(&p);
    }
    CHECK(small, "%s: sums are exact in sizes around the lanes, whatever the number of rows", name);
    CHECK(extreme, "%s: and with +-127 everywhere", name);
    CHECK(large, "%s: and in real shapes", name);
}

/* ---- activations ---- */

static bool quantises_as(const struct kern *k, const real *x, int d, real fixed, const int *expected,
                         real scale)
{
    int8_t q[32], unit[32 * 32] = { 0 }, *packed = take(int8_packed_size(32, 32));
    real found_scale, one[32], y[32], exact;
    bool ok = true;
    for (int j = 0; j < d; j++) { /* the unit matrix shows the numbers themselves */
        unit[j * d + j] = 1;
        one[j] = 1;
    }
    int8_pack(packed, unit, 0, d, d);
    k->quantise(q, &found_scale, x, 1, d, fixed);
    exact = 1;
    k->linear8(y, q, &exact, packed, one, NULL, 1, d, d, ACT_NONE);
    for (int j = 0; j < d; j++)
        ok &= y[j] == (real)expected[j];
    mem_free(packed);
    return ok && found_scale == scale;
}

static void check_quantise(enum cpu_tier tier)
{
    const struct kern *k = kern_for(tier);
    const char *name = cpu_tier_name(tier);
    if (tier > cpu_best()) {
        SKIP("this machine has no %s", name);
        return;
    }
    const real halves[] = { 127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999f, 100.5f, -127 };
    const int even[] = { 127, 0, 2, 2, 0, -2, 0, 100, -127 };
    CHECK(quantises_as(k, halves, 9, 0, even, 1), "%s: halves go to the even number", name);
    const real wide[] = { 1e30f, -1e30f, 3, 300, -0.6f };
    const int clipped[] = { 127, -127, 6, 127, -1 };
    CHECK(quantises_as(k, wide, 5, 0.5f, clipped, 0.5f),
          "%s: with a known scale, what is beyond it is cut off", name);
    const real tiny[] = { 1e-35f, -1e-40f, 0 };
    const int none[] = { 0, 0, 0 };
    CHECK(quantises_as(k, tiny, 3, 0, none, 0), "%s: what is next to nothing is nothing", name);
    const real broken[] = { (real)NAN, 127, (real)NAN, -3 };
    const int beside[] = { -127, 127, -127, -3 };
    CHECK(quantises_as(k, broken, 4, 0, beside, 1), "%s: a NaN has its number, too", name);
}

/* ---- weights ---- */

static void check_weights(void)
{
    enum {
        IN = 301
    };
    int8_t q[IN], again[IN];
    real back[IN];
    double worst = 0;
    bool same = true, most = true, exact = true;
    for (uint64_t row = 0; row < 200; row++) {
        real *w = noise(IN, row + 50);
        for (int j = 0; j < IN; j++)
            w[j] *= (real)ldexp(1, (int)(row % 60) - 40);
        real scale = int8_quantise_row(q, w, IN);
        int largest = 0;
        for (int j = 0; j < IN; j++) {
            back[j] = scale * (real)q[j];
            exact &= (double)back[j] == (double)scale * q[j];
            largest = abs(q[j]) > largest ? abs(q[j]) : largest;
            worst = check_worse(worst, fabs((double)(w[j] - back[j])) / (double)scale);
        }
        most &= largest == 127;
        same &= int8_quantise_row(again, back, IN) == scale && memcmp(q, again, IN) == 0;
        mem_free(w);
    }
    CHECK(exact, "scale * q is exact");
    CHECK(most, "the largest of a row is 127");
    CHECK(same, "quantised again they are the same");
    CHECK(worst <= 0.5, "no weight is off by more than half a step (%.3f)", worst);
    real odd[3] = { 0, 1e-31f, 0 };
    CHECK(int8_quantise_row(q, odd, 3) == 0 && q[1] == 0, "a row of zeros has the scale 0");
    odd[2] = (real)INFINITY;
    CHECK(isnan(int8_quantise_row(q, odd, 3)) && q[0] == 0, "a weight that is not finite has none");
}

/* ---- packing ---- */

/* The layout of int8.h, number by number. */
static bool is_packed(const int8_t *packed, const int8_t *q, int out, int in)
{
    bool same = true;
    for (int row = 0; row < (out + 15) / 16 * 16; row++) {
        const int8_t *panel = packed + (size_t)(row / 16) * int8_panel_size(in);
        int32_t start, sum = 0;
        for (int j = 0; j < (in + 3) / 4 * 4; j++) {
            int8_t expected = row < out && j < in ? q[row * in + j] : 0;
            same &= panel[64 + j / 4 * 64 + row % 16 * 4 + j % 4] == expected;
            sum += expected;
        }
        memcpy(&start, panel + row % 16 * 4, sizeof(start));
        same &= start == -128 * sum;
    }
    return same;
}

static void check_packing(void)
{
    static const int sizes[][2] = { { 1, 1 }, { 15, 7 }, { 16, 8 }, { 17, 9 }, { 40, 512 }, { 33, 1539 } };
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        int out = sizes[s][0], in = sizes[s][1];
        size_t n = (size_t)out * (size_t)in, size = int8_packed_size(out, in);
        bool whole = true, pieces = true;
        for (int fill = 0; fill < N_FILLS; fill++) {
            int8_t *q = take(n), *packed = take(size), *again = take(size);
            for (size_t i = 0; i < n; i++)
                q[i] = filled((enum fill)fill, 9, i);
            int8_pack(packed, q, 0, out, in);
            whole &= is_packed(packed, q, out, in);
            for (int row = 0, step = 1; row < out; row += step, step = step % 19 + 3) {
                int rows = out - row < step ? out - row : step;
                int8_pack(again, q + (size_t)row * (size_t)in, row, rows, in);
            }
            pieces &= memcmp(packed, again, size) == 0;
            mem_free(q);
            mem_free(packed);
            mem_free(again);
        }
        CHECK(whole, "%d rows of %d: packed as it is written down", out, in);
        CHECK(pieces, "  and rows that are packed bit by bit give the same");
    }
}

/* ---- linear ---- */

static void check_linear(struct arena *arena, bool is_int8)
{
    enum {
        OUT = 83,
        IN = 70,
        N = 131,
        CHOSEN = 37
    };
    struct run run = { .arena = arena, .kern = kern_for(cpu_best()) };
    real *w = noise(OUT * IN, 5), *b = noise(OUT, 6), *x = noise(N * IN, 7), scales[OUT];
    real *packed = take(linear_packed_size(OUT, IN) * sizeof(real));
    real *y = take(N * OUT * sizeof(real)), *one = take(OUT * sizeof(real)), row[IN];
    int8_t *q = take(OUT * IN), *packed8 = take(int8_packed_size(OUT, IN));
    const char *name = is_int8 ? "int8" : "fp32";
    for (int o = 0; o < OUT; o++)
        scales[o] = int8_quantise_row(q + o * IN, w + o * IN, IN);
    linear_pack(packed, w, OUT, IN);
    int8_pack(packed8, q, 0, OUT, IN);
    struct linear l = { .out = OUT, .in = IN, .b = b }, chosen;
    if (is_int8) {
        l.packed8 = packed8;
        l.scales = scales;
    } else {
        l.packed = packed;
    }
    int wrong = 0, rows[CHOSEN];
    linear_forward(y, x, &l, N, &run);
    for (int i = 0; i < N; i++) {
        linear_forward(one, x + i * IN, &l, 1, &run);
        wrong += memcmp(one, y + i * OUT, OUT * sizeof(real)) != 0;
    }
    CHECK_INT(wrong, 0, "%s: many rows at once give what each alone gives", name);
    for (int i = 0; i < CHOSEN; i++)
        rows[i] = (i * 29 + 3) % OUT;
    size_t mark = arena_mark(arena);
    linear_select(&chosen, &l, rows, CHOSEN, &run);
    wrong = 0;
    for (int i = 0; i < N; i++) {
        linear_forward(one, x + i * IN, &chosen, 1, &run);
        for (int c = 0; c < CHOSEN; c++)
            wrong += one[c] != y[i * OUT + rows[c]];
    }
    arena_reset(arena, mark);
    CHECK_INT(wrong, 0, "%s: chosen rows of the matrix give what all give", name);
    wrong = 0;
    for (int o = 0; o < OUT; o++) {
        linear_row(row, &l, o);
        for (int j = 0; j < IN; j++)
            wrong += row[j] != (is_int8 ? scales[o] * (real)q[o * IN + j] : w[o * IN + j]);
    }
    CHECK_INT(wrong, 0, "%s: a row comes back", name);
    linear_forward_act(one, x, &l, ACT_RELU, 1, &run);
    for (int o = 0; o < OUT; o++)
        wrong += one[o] != (y[o] > 0 ? y[o] : 0);
    CHECK_INT(wrong, 0, "%s: and with ReLU behind it", name);
    for (int act = ACT_GELU; act <= ACT_SWISH; act++) {
        real *expected = take(N * OUT * sizeof(real)), *found = take(N * OUT * sizeof(real));
        run.kern->act(expected, y, N * OUT, (enum kern_act)act);
        linear_forward_act(found, x, &l, (enum kern_act)act, N, &run);
        CHECK(memcmp(found, expected, N * OUT * sizeof(real)) == 0, "%s: and with activation function %d",
              name, act);
        mem_free(expected);
        mem_free(found);
    }
    arena->peak = 0;
    linear_forward(y, x, &l, N, &run);
    CHECK(arena->peak <= linear_scratch(IN), "%s: scratch is what was said", name);
    void *all[] = { w, b, x, packed, y, one, q, packed8 };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        mem_free(all[i]);
}

int main(void)
{
    for (int tier = CPU_REF; tier < CPU_N_TIERS; tier++) {
        check_tier((enum cpu_tier)tier);
        check_quantise((enum cpu_tier)tier);
    }
    check_weights();
    check_packing();
    struct arena arena;
    struct tfm_error err;
    if (CHECK(arena_init(&arena, (size_t)1 << 26, &err) == TFM_OK, "arena")) {
        check_linear(&arena, true);
        check_linear(&arena, false);
        arena_release(&arena);
    }
    return check_done();
}
