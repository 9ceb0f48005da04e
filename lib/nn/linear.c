/*
 * linear.c: y = x w^T + b, and back:
 *     dx = dy w        dw += dy^T x        db += sum over rows of dy
 * On the sentence's way: every layer multiplies by its weights here.
 */
#include "nn/linear.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "num/gemm.h"
#include "num/int8.h"

#define BLOCK8 64 /* rows quantised at a time: they stay in the second cache while all panels pass by */

static void note_extents(struct extents *extents, const real *x, const struct linear *l, int n)
{
    struct extent *e = extents->list;
    while (e < extents->list + extents->n && e->scales != l->scales)
        e++;
    if (e == extents->list + extents->n)
        return;
    for (; n > 0; n--, x += l->in) {
        double most = 0;
        for (int j = 0; j < l->in; j++)
            most = fmax(most, fabs((double)x[j]));
        e->rows++;
        e->sum += most;
        e->squares += most * most;
        e->most = fmax(e->most, most);
    }
}

struct linear_rows linear_ready(const real *x, const struct linear *l, int n, const struct run *run)
{
    struct linear_rows rows = { .n = n, .x = x };
    if (!l->packed8)
        return rows;
    if (run->extents)
        note_extents(run->extents, x, l, n);
    int8_t *q = ARENA_TAKE(run->arena, int8_t, (size_t)n * int8_stride(l->in));
    real *q_scales = ARENA_TAKE(run->arena, real, n);
    run->kern->quantise(q, q_scales, x, n, l->in, l->in_scale);
    rows.q = q;
    rows.q_scales = q_scales;
    return rows;
}

size_t linear_ready_size(int n, int in)
{
    return (size_t)n * (int8_stride(in) + sizeof(real)) + 128;
}

static void multiply8(real *y, const struct linear_rows *rows, const struct linear *l, enum kern_act act,
                      const struct run *run)
{
    run->kern->linear8(y, rows->q, rows->q_scales, l->packed8, l->scales, l->b, rows->n, l->out, l->in, act);
}

/* Quantised block by block: what is known of a row is found in that row. */
static void forward8(real *y, const real *x, const struct linear *l, enum kern_act act, int n,
                     const struct run *run)
{
    for (int block; n > 0; n -= block, x += (size_t)block * l->in, y += (size_t)block * l->out) {
        size_t mark = arena_mark(run->arena);
        block = n < BLOCK8 ? n : BLOCK8;
        struct linear_rows rows = linear_ready(x, l, block, run);
        multiply8(y, &rows, l, act, run);
        arena_reset(run->arena, mark);
    }
}

/* c [m, n] = or += a [m, k] b [k, n], for plain rows. */
static void multiply(real *c, struct factor a, struct factor b, int m, int n, int k, bool add,
                     const struct run *run)
{
    if (run->gemm == TFM_GEMM_BLAS) {
        gemm(c, n, a, b, m, n, k, add);
        return;
    }
    size_t mark = arena_mark(run->arena);
    real *scratch = ARENA_TAKE(run->arena, real, PRODUCT_SCRATCH);
    if (run->gemm == TFM_GEMM_OWN)
        run->kern->product(c, n, a, b, m, n, k, add, scratch);
    else
        run->kern->product_bf16(c, n, a, b, m, n, k, add, run->gemm == TFM_GEMM_BF16 ? 1 : 3, scratch);
    arena_reset(run->arena, mark);
}

/* A matrix of rows of so many columns, as a factor, and turned over. */
static struct factor plain(const real *x, int cols)
{
    return (struct factor){ x, cols, 1 };
}
static struct factor turned(const real *x, int cols)
{
    return (struct factor){ x, 1, cols };
}

static void forward(real *y, const real *x, const struct linear *l, int n, const struct run *run)
{
    if (l->packed)
        run->kern->linear(y, x, l->packed, n, l->out, l->in);
    else
        multiply(y, plain(x, l->in), turned(l->w, l->in), n, l->out, l->in, false, run);
    if (l->b)
        run->kern->bias(y, l->b, n, l->out);
}

void linear_forward(real *y, const real *x, const struct linear *l, int n, const struct run *run)
{
    if (l->packed8)
        forward8(y, x, l, ACT_NONE, n, run);
    else
        forward(y, x, l, n, run);
    profile_product(run->profile, n, l->out, l->in);
}

void linear_forward_act(real *y, const real *x, const struct linear *l, enum kern_act act, int n,
                        const struct run *run)
{
    if (l->packed8) {
        forward8(y, x, l, act, n, run);
        profile_product(run->profile, n, l->out, l->in);
        return;
    }
    linear_forward(y, x, l, n, run);
    run->kern->act(y, y, (size_t)n * (size_t)l->out, act);
}

size_t linear_scratch(int in)
{
    return linear_ready_size(BLOCK8, in);
}

struct linear linear_part(const struct linear *l, int from, int n)
{
    struct linear part = *l;
    size_t before = (size_t)from * (size_t)l->in;
    part.out = n;
    part.w = l->w ? l->w + before : NULL;
    part.b = l->b ? l->b + from : NULL;
    part.packed = l->packed ? l->packed + before : NULL;
    if (l->packed8) {
        part.packed8 = l->packed8 + (size_t)(from / INT8_PANEL) * int8_panel_size(l->in);
        part.scales = l->scales + from;
    }
    return part;
}

void linear_forward_ready(real *y, const struct linear_rows *rows, const struct linear *l,
                          const struct run *run)
{
    if (l->packed8)
        multiply8(y, rows, l, ACT_NONE, run);
    else
        forward(y, rows->x, l, rows->n, run);
    profile_product(run->profile, rows->n, l->out, l->in);
}

void linear_backward_input(real *dx, bool add_dx, const real *dy, const struct linear *l, int n,
                           const struct run *run)
{
    multiply(dx, plain(dy, l->out), plain(l->w, l->in), n, l->in, l->out, add_dx, run);
    profile_product(run->profile, n, l->in, l->out);
}

void linear_backward(real *dx, bool add_dx, real *dw, real *db, const real *dy, const real *x,
                     const struct linear *l, int n, const struct run *run)
{
    if (dx)
        linear_backward_input(dx, add_dx, dy, l, n, run);
    multiply(dw, turned(dy, l->out), plain(x, l->in), l->out, l->in, n, true, run);
    if (db)
        run->kern->bias_backward(db, dy, n, l->out);
    profile_product(run->profile, n, l->in, l->out);
}

void linear_row(real *row, const struct linear *l, int out)
{
    if (l->packed8) {
        int8_row(row, l->packed8, l->scales[out], out, l->in);
        return;
    }
    if (!l->packed) {
        const real *w = l->w + (size_t)out * l->in;
        for (int j = 0; j < l->in; j++)
            row[j] = w[j];
        return;
    }
    const real *panel = l->packed + (size_t)(out / KERN_PANEL) * l->in * KERN_PANEL + out % KERN_PANEL;
    for (int j = 0; j < l->in; j++)
        row[j] = panel[(size_t)j * KERN_PANEL];
}

/* Panels [in, 16], whatever the form of the whole. */
static real *select_panels(const struct linear *l, const int *rows, int n, struct arena *arena)
{
    real *packed = ARENA_TAKE(arena, real, linear_packed_size(n, l->in));
    memset(packed, 0, sizeof(real) * linear_packed_size(n, l->in));
    for (int i = 0; i < n; i++) {
        if (!l->packed) {
            linear_pack_row(packed, l->w + (size_t)rows[i] * (size_t)l->in, i, l->in);
            continue;
        }
        const real *from =
            l->packed + (size_t)(rows[i] / KERN_PANEL) * l->in * KERN_PANEL + rows[i] % KERN_PANEL;
        real *to = packed + (size_t)(i / KERN_PANEL) * l->in * KERN_PANEL + i % KERN_PANEL;
        for (size_t j = 0; j < (size_t)l->in * KERN_PANEL; j += KERN_PANEL)
            to[j] = from[j];
    }
    return packed;
}

static const real *select_values(const real *x, const int *rows, int n, struct arena *arena)
{
    if (!x)
        return NULL;
    real *chosen = ARENA_TAKE(arena, real, n);
    for (int i = 0; i < n; i++)
        chosen[i] = x[rows[i]];
    return chosen;
}

void linear_select(struct linear *chosen, const struct linear *l, const int *rows, int n,
                   const struct run *run)
{
    struct arena *arena = run->arena;
    *chosen = (struct linear){ .out = n, .in = l->in, .in_scale = l->in_scale };
    chosen->b = select_values(l->b, rows, n, arena);
    if (!l->packed8) {
        chosen->packed = select_panels(l, rows, n, arena);
        return;
    }
    int8_t *packed8 = ARENA_TAKE(arena, int8_t, int8_packed_size(n, l->in));
    int8_select(packed8, l->packed8, rows, n, l->in);
    chosen->packed8 = packed8;
    chosen->scales = select_values(l->scales, rows, n, arena);
}

size_t linear_packed_size(int out, int in)
{
    return (size_t)((out + KERN_PANEL - 1) / KERN_PANEL) * KERN_PANEL * (size_t)in;
}

void linear_pack_row(real *packed, const real *w, int row, int in)
{
    real *panel = packed + (size_t)(row / KERN_PANEL) * (size_t)in * KERN_PANEL + row % KERN_PANEL;
    for (int j = 0; j < in; j++)
        panel[(size_t)j * KERN_PANEL] = w[j];
}

void linear_pack(real *packed, const real *w, int out, int in)
{
    for (int row = 0; row < out; row++)
        linear_pack_row(packed, w + (size_t)row * (size_t)in, row, in);
}
