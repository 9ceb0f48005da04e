/*
 * kern_int8.h: the int8 kernels, once, over each tier's vectors: V (16 reals), I (16 sums of 32 bits), W (16
 * times 4 weights) and X (4 activations, 16 times). kern_body.h includes it.
 *     q = round(x * 127 / max|x|)     y = act(fma(sum over j of q_j w_j, scale of x * scale of w, bias))
 * Sums of 32 bits are exact whatever their order: below 2^17 columns, products of up to 127^2 do not leave them.
 * What follows is rounded in the order that stands here. So all tiers give the same bits, and a row's result
 * depends on nothing but the row.
 */

/* Activations below this count as zeros: the inverse of the scale stays finite. */
#define QUANTISE_TINY ((real)1e-30)

/* max|x|, in which a NaN counts as nothing */
static inline real row_extent(const real *x, int n)
{
    V high = V_set(0), low = V_set(0);
    int j = 0;
    for (; j + 16 <= n; j += 16) {
        V value = V_load(x + j);
        high = V_max(value, high);
        low = V_min(value, low);
    }
    if (j < n) {
        V value = V_load_n(x + j, n - j);
        high = V_max(value, high);
        low = V_min(value, low);
    }
    return V_most(V_max(high, V_sub(V_set(0), low)));
}

/* A NaN becomes -127. */
static inline V quantised(V x, V inverse)
{
    return V_min(V_max(V_mul(x, inverse), V_set(-127)), V_set(127));
}

static void body_quantise(int8_t *q, real *scales, const real *x, int n, int d, real fixed)
{
    for (int i = 0; i < n; i++, x += d) {
        real scale = fixed, inverse = 1 / fixed;
        if (fixed == 0) {
            real extent = row_extent(x, d);
            scale = extent < QUANTISE_TINY ? 0 : extent / 127;
            inverse = extent < QUANTISE_TINY ? 0 : 127 / extent;
        }
        scales[i] = scale;
        V times = V_set(inverse);
        int j = 0;
        for (; j + 16 <= d; j += 16, q += 16)
            Q_store(q, quantised(V_load(x + j), times));
        if (j < d) {
            Q_store(q, quantised(V_load_n(x + j, d - j), times));
            q += 16;
        }
    }
}

/* A tile's sums stay in registers only when its loops are laid out in full, early. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

struct int8_product {     /* what all tiles share */
    const int8_t *q;      /* [n, int8_stride(in)] */
    const real *q_scales; /* [n] */
    size_t q_stride, panel_size;
    const int8_t *panels;
    const real *scales, *bias; /* [out] */
    int groups, out;
    bool relu; /* taken while the sums are at hand; other functions follow behind them */
    real *y;   /* [n, out] */
};

struct int8_outputs { /* those of a panel */
    V scale, bias;
    int at, lanes;
};

static inline __attribute__((always_inline)) struct int8_outputs int8_outputs(const struct int8_product *t, int p)
{
    int at = p * INT8_PANEL, lanes = t->out - at < 16 ? t->out - at : 16;
    struct int8_outputs o = { V_load_n(t->scales + at, lanes),
                              t->bias ? V_load_n(t->bias + at, lanes) : V_set(0), at, lanes };
    return o;
}

/* From the sums of row i to its outputs. */
static inline __attribute__((always_inline)) void int8_finish(const struct int8_product *t,
                                                              const struct int8_outputs *o, int i, V sum)
{
    V y = V_fma(sum, V_mul(V_set(t->q_scales[i]), o->scale), o->bias);
    if (t->relu)
        y = V_max(y, V_set(0));
    V_store_n(t->y + (size_t)i * (size_t)t->out + o->at, y, o->lanes);
}

#ifdef INT8_AMX
#include "num/kern_amx.h"
#else
/* `rows` rows from i on against `cols` panels from p on; constants where this is called. */
static inline __attribute__((always_inline)) void int8_tile(const struct int8_product *t, int i, int p,
                                                            const int rows, const int cols)
{
    I sum[INT8_MAX_ROWS][INT8_MAX_COLS];
    const int8_t *panel = t->panels + (size_t)p * t->panel_size, *w = panel + INT8_CELL;
    const int8_t *q = t->q + (size_t)i * t->q_stride;
    size_t q_stride = t->q_stride, panel_size = t->panel_size;
    UNROLL for (int v = 0; v < cols; v++) UNROLL for (int r = 0; r < rows; r++) sum[r][v] =
        I_start(panel + (size_t)v * panel_size);
    for (int g = 0; g < t->groups; g++, w += INT8_CELL, q += INT8_GROUP) {
        W cell[INT8_MAX_COLS];
        UNROLL for (int v = 0; v < cols; v++) cell[v] = W_load(w + (size_t)v * panel_size);
        UNROLL for (int r = 0; r < rows; r++)
        {
            X x = X_load(q + (size_t)r * q_stride);
            UNROLL for (int v = 0; v < cols; v++) sum[r][v] = I_dot(sum[r][v], x, cell[v]);
        }
    }
    UNROLL for (int v = 0; v < cols; v++)
    {
        struct int8_outputs o = int8_outputs(t, p + v);
        UNROLL for (int r = 0; r < rows; r++) int8_finish(t, &o, i + r, V_of(sum[r][v]));
    }
}

/* All rows against `cols` panels. */
static inline __attribute__((always_inline)) void int8_column(const struct int8_product *t, int n, int p,
                                                              const int cols)
{
    int i = 0;
    for (; n - i >= INT8_ROWS; i += INT8_ROWS)
        int8_tile(t, i, p, INT8_ROWS, cols);
#define LAST(rows)                          \
    case rows:                              \
        if (rows < INT8_ROWS)               \
            int8_tile(t, i, p, rows, cols); \
        break
    switch (n - i) {
        LAST(1);
        LAST(2);
        LAST(3);
        LAST(4);
        LAST(5);
        LAST(6);
        LAST(7);
    }
#undef LAST
}

/* Panels go by INT8_COLS where many rows share them, and by INT8_MAX_COLS where a single row would leave the
 * multipliers waiting for each other. */
static void int8_all(const struct int8_product *t, int n)
{
    int p = 0, n_panels = (t->out + INT8_PANEL - 1) / INT8_PANEL;
    if (n == 1)
        for (; n_panels - p >= INT8_MAX_COLS; p += INT8_MAX_COLS)
            int8_tile(t, 0, p, 1, INT8_MAX_COLS);
    for (; n_panels - p >= INT8_COLS; p += INT8_COLS)
        int8_column(t, n, p, INT8_COLS);
    for (; p < n_panels; p++)
        int8_column(t, n, p, 1);
}
#endif

static void body_linear8(real *y, const int8_t *q, const real *q_scales, const int8_t *panels,
                         const real *scales, const real *bias, int n, int out, int in, enum kern_act act)
{
    struct int8_product t = { .q = q,
                              .q_scales = q_scales,
                              .q_stride = int8_stride(in),
                              .panel_size = int8_panel_size(in),
                              .panels = panels,
                              .scales = scales,
                              .bias = bias,
                              .groups = (in + INT8_GROUP - 1) / INT8_GROUP,
                              .out = out,
                              .relu = act == ACT_RELU,
                              .y = y };
    int8_all(&t, n);
    if (!t.relu)
        body_act(y, y, (size_t)n * (size_t)out, act);
}
