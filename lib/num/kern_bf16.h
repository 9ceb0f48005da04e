/*
 * kern_bf16.h: matrix products of training on the tiles of AMX, which multiply pairs of bf16 (the upper half of a
 * float) and add in float. One term: both factors rounded to bf16, relative error up to 2^-9 a factor. Three terms: each
 * factor is the sum of two bf16, x = high + low to 2^-18, and a b is taken as high high + high low + low high (Henry,
 * Tang and Heinecke 2019, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision
 * computations"): nearly float's own error at a third of the speed.
 *
 * A tile of a is [16 rows, 16 pairs], one of b [16 pairs, 16 columns]; pair p holds the depths p and p + 16 of a block
 * of 32: in which order the depth is added does not matter as long as both factors agree. kern_amx.c includes it.
 *
 *     tiles 0 1    sums: rows of panel i, columns of panel j, j + 1         4 5    a: panel i, i + 1
 *           2 3          rows of panel i + 1                                6 7    b: panel j, j + 1
 */
#define BF16_DEPTH 32  /* of a tile */
#define BF16_TILE  256 /* reals that take as much room: 1 KiB */
#define BF16_STEPS (PRODUCT_DEPTH / BF16_DEPTH)

/* Tiles of 16 lines of a factor: all `high` tiles of PRODUCT_DEPTH, then all `low` ones. */
#define BF16_PANEL (2 * BF16_STEPS * BF16_TILE)

/* A factor, or a block of it, as lines (rows of a, columns of b) over the depth: element (line, depth) at x[line *
 * by_line + depth * by_depth], one of both 1. */
struct bf16_lines {
    const real *x;
    size_t by_line, by_depth;
};

/* One vector: of line i the first or (half 1) second 16 depths, or of depth i or i + 16 all lines; zero behind
 * n_lines and n_depths. */
static inline __attribute__((always_inline)) V bf16_load(const struct bf16_lines *f, int i, int half,
                                                         int n_lines, int n_depths, const bool is_along,
                                                         const bool is_full)
{
    const real *at = f->x + (is_along ? (size_t)i * f->by_line + (size_t)half * 16
                                      : (size_t)(i + 16 * half) * f->by_depth);
    if (is_full)
        return V_load(at);
    int n = is_along ? n_depths - 16 * half : n_lines, lines = is_along ? n_lines : n_depths - 16 * half;
    return i < lines && n > 0 ? V_load_n(at, n < 16 ? n : 16) : V_set(0);
}

/* One tile. With lines_first it is [line, pair], else [pair, line]. The booleans are constants where this is called. */
static inline __attribute__((always_inline)) void bf16_tile(real *tile, const struct bf16_lines *f,
                                                            int n_lines, int n_depths, const bool is_along,
                                                            const bool lines_first, const bool has_low,
                                                            const bool is_full)
{
    V high[16], low[16];
    for (int i = 0; i < 16; i++) {
        V even = bf16_load(f, i, 0, n_lines, n_depths, is_along, is_full);
        V odd = bf16_load(f, i, 1, n_lines, n_depths, is_along, is_full);
        high[i] = V_bf16_pair(even, odd);
        if (has_low)
            low[i] = V_bf16_pair(V_sub(even, V_bf16_even(high[i])), V_sub(odd, V_bf16_odd(high[i])));
    }
    if (is_along != lines_first) {
        V_transpose(high);
        if (has_low)
            V_transpose(low);
    }
    for (int i = 0; i < 16; i++) {
        V_store(tile + 16 * i, high[i]);
        if (has_low)
            V_store(tile + BF16_STEPS * BF16_TILE + 16 * i, low[i]);
    }
}

/* Panels of 16 lines, an even number of them. */
static inline __attribute__((always_inline)) void bf16_panels(real *panels, struct bf16_lines f, int n_lines,
                                                              int depth, const bool is_along,
                                                              const bool lines_first, const bool has_low)
{
    for (int i = 0; i < (n_lines + 31) / 32 * 32; i += 16, panels += BF16_PANEL) {
        int lines = n_lines - i;
        for (int l = 0; l < depth; l += BF16_DEPTH) {
            struct bf16_lines at = { f.x + (size_t)i * f.by_line + (size_t)l * f.by_depth, f.by_line,
                                     f.by_depth };
            real *tile = panels + l / BF16_DEPTH * BF16_TILE;
            if (lines >= 16 && depth - l >= BF16_DEPTH)
                bf16_tile(tile, &at, 16, BF16_DEPTH, is_along, lines_first, has_low, true);
            else
                bf16_tile(tile, &at, lines < 16 ? lines : 16, depth - l < BF16_DEPTH ? depth - l : BF16_DEPTH,
                          is_along, lines_first, has_low, false);
        }
    }
}

static inline __attribute__((always_inline)) void bf16_pack(real *panels, struct bf16_lines f, int n_lines,
                                                            int depth, const bool lines_first,
                                                            const bool has_low)
{
    if (f.by_depth == 1)
        bf16_panels(panels, f, n_lines, depth, true, lines_first, has_low);
    else
        bf16_panels(panels, f, n_lines, depth, false, lines_first, has_low);
}

/* Where a tile of sums is read and written: in c, or, where c ends within it, in `edge`. */
struct bf16_sums {
    real *at;
    size_t stride; /* in bytes */
};

static struct bf16_sums bf16_sums(real *c, int ldc, int rows, int cols, bool add, real *edge)
{
    if (rows >= 16 && cols >= 16)
        return (struct bf16_sums){ c, sizeof(real) * (size_t)ldc };
    for (int i = 0; add && i < 16; i++)
        V_store(edge + 16 * i,
                i < rows && cols > 0 ? V_load_n(c + (size_t)i * ldc, cols < 16 ? cols : 16) : V_set(0));
    return (struct bf16_sums){ edge, sizeof(real) * 16 };
}

static void bf16_write_edge(real *c, int ldc, int rows, int cols, const real *edge)
{
    if (cols <= 0 || (rows >= 16 && cols >= 16))
        return;
    for (int i = 0; i < 16 && i < rows; i++)
        V_store_n(c + (size_t)i * ldc, V_load(edge + 16 * i), cols < 16 ? cols : 16);
}

#define BF16_LOAD(tile, panel) _tile_loadd(tile, panel, sizeof(real) * 16)
#define BF16_DOTS                \
    do {                         \
        _tile_dpbf16ps(0, 4, 6); \
        _tile_dpbf16ps(1, 4, 7); \
        _tile_dpbf16ps(2, 5, 6); \
        _tile_dpbf16ps(3, 5, 7); \
    } while (0)

/* Up to 32 x 32 sums: two panels of a against two of b. terms is a constant where this is called. */
static inline __attribute__((always_inline)) void bf16_block(real *c, int ldc, const real *a, const real *b,
                                                             int rows, int cols, int steps, bool add,
                                                             const int terms)
{
    const size_t panel = BF16_PANEL, low = BF16_STEPS * BF16_TILE;
    real edges[4][16 * 16], *at[4];
    struct bf16_sums s[4];
    for (int t = 0; t < 4; t++) {
        int i = 16 * (t / 2), j = 16 * (t % 2);
        at[t] = c + (size_t)i * ldc + j;
        s[t] = bf16_sums(at[t], ldc, rows - i, cols - j, add, edges[t]);
    }
    __asm__ volatile("" ::: "memory"); /* tiles are loaded behind the compiler's back */
    if (add) {
        _tile_loadd(0, s[0].at, s[0].stride);
        _tile_loadd(1, s[1].at, s[1].stride);
        _tile_loadd(2, s[2].at, s[2].stride);
        _tile_loadd(3, s[3].at, s[3].stride);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int l = 0; l < steps; l++, a += BF16_TILE, b += BF16_TILE) {
        BF16_LOAD(4, a);
        BF16_LOAD(5, a + panel);
        if (terms == 3) {
            BF16_LOAD(6, b + low);
            BF16_LOAD(7, b + panel + low);
            BF16_DOTS;
        }
        BF16_LOAD(6, b);
        BF16_LOAD(7, b + panel);
        BF16_DOTS;
        if (terms == 3) {
            BF16_LOAD(4, a + low);
            BF16_LOAD(5, a + panel + low);
            BF16_DOTS;
        }
    }
    _tile_stored(0, s[0].at, s[0].stride);
    _tile_stored(1, s[1].at, s[1].stride);
    _tile_stored(2, s[2].at, s[2].stride);
    _tile_stored(3, s[3].at, s[3].stride);
    __asm__ volatile("" ::: "memory");
    for (int t = 0; t < 4; t++)
        bf16_write_edge(at[t], ldc, rows - 16 * (t / 2), cols - 16 * (t % 2), edges[t]);
}

static inline __attribute__((always_inline)) void bf16_product(real *c, int ldc, struct factor a,
                                                               struct factor b, int m, int n, int k, bool add,
                                                               real *scratch, const int terms)
{
    real *b_panels = scratch, *a_panels = scratch + PRODUCT_COLS * PRODUCT_DEPTH;
    for (int i = 0; i < m; i += PRODUCT_ROWS) {
        int rows = m - i < PRODUCT_ROWS ? m - i : PRODUCT_ROWS;
        for (int l = 0; l == 0 || l < k; l += PRODUCT_DEPTH) {
            int depth = k - l < PRODUCT_DEPTH ? k - l : PRODUCT_DEPTH,
                steps = (depth + BF16_DEPTH - 1) / BF16_DEPTH;
            struct bf16_lines of_a = { a.x + (size_t)i * a.row + (size_t)l * a.col, a.row, a.col };
            bf16_pack(a_panels, of_a, rows, depth, true, terms == 3);
            for (int j = 0; j < n; j += PRODUCT_COLS) {
                int cols = n - j < PRODUCT_COLS ? n - j : PRODUCT_COLS;
                struct bf16_lines of_b = { b.x + (size_t)l * b.row + (size_t)j * b.col, b.col, b.row };
                bf16_pack(b_panels, of_b, cols, depth, false, terms == 3);
                for (int jj = 0; jj < cols; jj += 32)
                    for (int ii = 0; ii < rows; ii += 32)
                        bf16_block(c + (size_t)(i + ii) * ldc + j + jj, ldc,
                                   a_panels + (size_t)ii / 16 * BF16_PANEL,
                                   b_panels + (size_t)jj / 16 * BF16_PANEL, rows - ii, cols - jj, steps,
                                   add || l > 0, terms);
            }
        }
    }
}

static void body_product_bf16(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k,
                              bool add, int terms, real *scratch)
{
    amx_configure(AMX_ROWS, AMX_ROWS);
    if (terms == 3)
        bf16_product(c, ldc, a, b, m, n, k, add, scratch, 3);
    else
        bf16_product(c, ldc, a, b, m, n, k, add, scratch, 1);
    _tile_release();
}
