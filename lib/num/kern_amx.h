/*
 * kern_amx.h: int8 products by AMX. A tile of weights is 16 cells of a panel (num/int8.h) as they lie: [16 groups, 16
 * outputs, 4 columns]; a tile of activations is 16 rows of 64 columns; their product adds to a tile of 16 x 16 sums.
 * Two tiles of rows meet two panels, so that each tile loaded is used twice. kern_int8.h includes it in place of its
 * own tiles of registers; sums are exact, so they are the same.
 *
 *     tiles 0 1    sums of the first rows: panel p, panel p + 1        4 5    activations: first rows, next rows
 *           2 3    sums of the next rows                               6 7    weights: panel p, panel p + 1
 */
#define AMX_ROWS   16
#define AMX_GROUPS 16                        /* of 4 columns: 64 bytes */
#define AMX_COLS   (AMX_GROUPS * INT8_GROUP) /* bytes of a row of a tile */

struct amx_config { /* as the processor reads it */
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* For tiles of n0 and n1 rows of activations. */
static void amx_configure(int n0, int n1)
{
    struct amx_config config = { .palette = 1 };
    int rows[8] = { n0, n0, n1, n1, n0, n1, AMX_GROUPS, AMX_GROUPS };
    for (int i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)rows[i];
        config.row_bytes[i] = (uint16_t)(rows[i] > 0 ? AMX_COLS : 0);
    }
    _tile_loadconfig(&config);
}

/* a: n0 + n1 rows of 64 columns, b: 16 cells of each panel. has_next: n1 > 0. */
static inline __attribute__((always_inline)) void amx_step(const int8_t *a, size_t stride, bool has_next,
                                                           const int8_t *b0, const int8_t *b1)
{
    _tile_loadd(4, a, stride);
    _tile_loadd(6, b0, INT8_CELL);
    _tile_dpbssd(0, 4, 6);
    if (b1) {
        _tile_loadd(7, b1, INT8_CELL);
        _tile_dpbssd(1, 4, 7);
    }
    if (!has_next)
        return;
    _tile_loadd(5, a + AMX_ROWS * stride, stride);
    _tile_dpbssd(2, 5, 6);
    if (b1)
        _tile_dpbssd(3, 5, 7);
}

/* The columns behind the last 64: copied in front of zeros. */
static void amx_rest(const int8_t *a, size_t stride, int rows, const int8_t *b0, const int8_t *b1, int groups)
{
    int8_t last_a[2 * AMX_ROWS][AMX_COLS] = { { 0 } }, last_b[2][AMX_GROUPS][AMX_COLS] = { { { 0 } } };
    for (int i = 0; i < rows; i++)
        memcpy(last_a[i], a + (size_t)i * stride, (size_t)groups * INT8_GROUP);
    memcpy(last_b[0], b0, (size_t)groups * INT8_CELL);
    if (b1)
        memcpy(last_b[1], b1, (size_t)groups * INT8_CELL);
    __asm__ volatile("" ::: "memory"); /* tiles are loaded behind the compiler's back */
    amx_step(last_a[0], AMX_COLS, rows > AMX_ROWS, last_b[0][0], b1 ? last_b[1][0] : NULL);
}

/* `rows` <= 32 rows from i on against panel p and, with has_two, the one behind it. */
static void amx_block(const struct int8_product *t, int i, int rows, int p, bool has_two)
{
    int32_t sums[4][AMX_ROWS][INT8_PANEL];
    bool has_next = rows > AMX_ROWS;
    const int8_t *a = t->q + (size_t)i * t->q_stride;
    const int8_t *b0 = t->panels + (size_t)p * t->panel_size + INT8_CELL,
                 *b1 = has_two ? b0 + t->panel_size : NULL;
    _tile_zero(0);
    _tile_zero(1);
    if (has_next) {
        _tile_zero(2);
        _tile_zero(3);
    }
    int groups = t->groups;
    for (; groups >= AMX_GROUPS; groups -= AMX_GROUPS, a += AMX_COLS, b0 += AMX_GROUPS * INT8_CELL) {
        amx_step(a, t->q_stride, has_next, b0, b1);
        b1 = b1 ? b1 + AMX_GROUPS * INT8_CELL : NULL;
    }
    if (groups > 0)
        amx_rest(a, t->q_stride, rows, b0, b1, groups);
    _tile_stored(0, sums[0], INT8_CELL);
    _tile_stored(1, sums[1], INT8_CELL);
    if (has_next) {
        _tile_stored(2, sums[2], INT8_CELL);
        _tile_stored(3, sums[3], INT8_CELL);
    }
    for (int v = 0; v <= has_two; v++) {
        struct int8_outputs o = int8_outputs(t, p + v);
        for (int r = 0; r < rows; r++)
            int8_finish(t, &o, i + r, V_of_sums(sums[2 * (r / AMX_ROWS) + v][r % AMX_ROWS]));
    }
}

static void int8_rows(const struct int8_product *t, int i, int rows)
{
    int n_panels = (t->out + INT8_PANEL - 1) / INT8_PANEL;
    amx_configure(rows < AMX_ROWS ? rows : AMX_ROWS, rows > AMX_ROWS ? rows - AMX_ROWS : 0);
    for (int p = 0; p < n_panels; p += 2)
        amx_block(t, i, rows, p, p + 1 < n_panels);
}

static void int8_all(const struct int8_product *t, int n)
{
    int i = 0;
    for (; n - i >= 2 * AMX_ROWS; i += 2 * AMX_ROWS)
        int8_rows(t, i, 2 * AMX_ROWS);
    if (n > i)
        int8_rows(t, i, n - i);
    _tile_release();
}
