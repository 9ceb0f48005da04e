/*
 * kern_product.h: the matrix products of training. Both factors and the sums are cut into blocks that stay in the
 * second cache; a block of b is laid into panels of 16 columns that follow each other in memory, one pair of which
 * stays in the first cache while the rows of a pass by; a is read as it lies, or laid anew where its columns lie
 * together, or its rows where they fall into the same lines of the first cache.
 * (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication".) kern_body.h includes it.
 *
 * Each element is one chain of fma over the whole depth, which goes on through memory from block to block: the same
 * bits as body_gemm, on all tiers.
 */

/* `depth` rows of `cols` columns of b as panels [depth, 16]; lanes behind the last column are not used. */
static void pack_panels(real *panels, const real *x, struct factor b, int depth, int cols)
{
    if (b.row == 1) {
        for (int j = 0; j < cols; j += 16)
            body_transpose(panels + (size_t)j * depth, 16, x + (size_t)j * b.col, b.col, NULL,
                           cols - j < 16 ? cols - j : 16, depth);
        return;
    }
    for (int l = 0; l < depth; l++, x += b.row) /* row by row, as memory is read best */
        for (int j = 0; j < cols; j += 16)
            V_store(panels + (size_t)j * depth + 16 * l, V_load_n(x + j, cols - j < 16 ? cols - j : 16));
}

/* A block of a, its element (i, l) at x[i * row + l], against the block of b from row l and column j on. */
static void product_block(real *c, int ldc, const real *x, int row, struct factor b, int l, int j, int m,
                          int n, int k, bool add, real *panels)
{
    int cols = n - j < PRODUCT_COLS ? n - j : PRODUCT_COLS;
    pack_panels(panels, b.x + (size_t)l * b.row + (size_t)j * b.col, b, k, cols);
    columns(c + j, ldc, x, row, 1, panels, 16, (size_t)k * 16, m, cols, k, add || l > 0);
}

/* Some rows of a; those of moderate length stay in the second cache themselves, so that the sums of a block of columns
 * can be finished there, and are not fetched from afar for each block of the depth. */
static void product_rows(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add,
                         real *scratch)
{
    real *panels = scratch, *laid = scratch + PRODUCT_COLS * PRODUCT_DEPTH;
    bool lies_well = a.col == 1 && a.row % PRODUCT_ALIAS != 0;
    if (lies_well && k <= 2 * PRODUCT_DEPTH) {
        for (int j = 0; j < n; j += PRODUCT_COLS)
            for (int l = 0; l == 0 || l < k; l += PRODUCT_DEPTH)
                product_block(c, ldc, a.x + l, a.row, b, l, j, m, n,
                              k - l < PRODUCT_DEPTH ? k - l : PRODUCT_DEPTH, add, panels);
        return;
    }
    for (int l = 0; l == 0 || l < k; l += PRODUCT_DEPTH) {
        int depth = k - l < PRODUCT_DEPTH ? k - l : PRODUCT_DEPTH;
        const real *x = a.x + (size_t)l * a.col;
        if (a.col != 1)
            body_transpose(laid, PRODUCT_DEPTH, x, a.col, NULL, depth, m);
        for (int i = 0; a.col == 1 && !lies_well && i < m; i++)
            memcpy(laid + (size_t)i * PRODUCT_DEPTH, x + (size_t)i * a.row, sizeof(real) * (size_t)depth);
        for (int j = 0; j < n; j += PRODUCT_COLS)
            product_block(c, ldc, lies_well ? x : laid, lies_well ? a.row : PRODUCT_DEPTH, b, l, j, m, n, depth,
                          add, panels);
    }
}

static void body_product(real *c, int ldc, struct factor a, struct factor b, int m, int n, int k, bool add,
                         real *scratch)
{
    for (int i = 0; i < m; i += PRODUCT_ROWS, c += (size_t)PRODUCT_ROWS * ldc) {
        struct factor rows = { a.x + (size_t)i * a.row, a.row, a.col };
        product_rows(c, ldc, rows, b, m - i < PRODUCT_ROWS ? m - i : PRODUCT_ROWS, n, k, add, scratch);
    }
}
