/*
 * kern_product.h: the matrix products of training. Both factors and the sums are cut into blocks that stay in the
 * second cache; a block of b is laid into panels of 16 columns that follow each other in memory, one pair of which
 * stays in the first cache while the rows of a pass by; a is read as it lies, or, where its columns lie together,
 * turned over first.
 * (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication".) kern_body.h includes it.
 *
 * Each element is one chain of fma over the whole depth, which goes on through memory from block to block: the same
 * bits as body_gemm, on all tiers.
 */

/* `depth` rows of `cols` columns of b as panels [depth, 16]; lanes behind the last column are not used. */
static void pack_panels(real *panels, const real *x, struct factor b, int depth, int cols)
{
    for (int j = 0; j < cols; j += 16, panels += (size_t)depth * 16) {
        int width = cols - j < 16 ? cols - j : 16;
        if (b.row == 1)
            body_transpose(panels, 16, x + (size_t)j * b.col, b.col, NULL, width, depth);
        else
            for (int l = 0; l < depth; l++)
                V_store(panels + 16 * l, V_load_n(x + (size_t)l * b.row + j, width));
    }
}

/* A block of a against b's columns; its element (i, l) at x[i * row + l]. */
static void product_rows(real *c, int ldc, const real *x, int row, struct factor b, int b_from, int m, int n,
                         int k, bool add, real *panels)
{
    for (int j = 0; j < n; j += PRODUCT_COLS) {
        int cols = n - j < PRODUCT_COLS ? n - j : PRODUCT_COLS;
        pack_panels(panels, b.x + (size_t)b_from * b.row + (size_t)j * b.col, b, k, cols);
        columns(c + j, ldc, x, row, 1, panels, 16, (size_t)k * 16, m, cols, k, add);
    }
}

static void body_product(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add,
                         real *scratch)
{
    real *panels = scratch, *turned = scratch + PRODUCT_COLS * PRODUCT_DEPTH;
    for (int i = 0; i < m; i += PRODUCT_ROWS) {
        int rows = m - i < PRODUCT_ROWS ? m - i : PRODUCT_ROWS;
        for (int l = 0; l == 0 || l < k; l += PRODUCT_DEPTH) {
            int depth = k - l < PRODUCT_DEPTH ? k - l : PRODUCT_DEPTH;
            const real *x = a.x + (size_t)i * a.row + (size_t)l * a.col;
            if (a.col != 1)
                body_transpose(turned, PRODUCT_DEPTH, x, a.col, NULL, depth, rows);
            product_rows(c + (size_t)i * ldc, ldc, a.col == 1 ? x : turned,
                         a.col == 1 ? a.row : PRODUCT_DEPTH, b, l, rows, n, depth, add || l > 0, panels);
        }
    }
}
