/*
 * scores.c: candidates part by part. On the sentence's way: search_batch calls scores_find with the decoder's output of
 * all live hypotheses, which calls linear_forward_ready and candidates_take for each part.
 */
#include "decode/scores.h"

#define TILE_ROWS  256 /* rows whose logits are in memory together ... */
#define TILE_COLS  512 /* ... of so many columns */
#define DRAWN_ROWS 32  /* rows whose logits are in memory together, of all columns, when tokens are drawn */

struct tile {
    const struct candidate_row *rows; /* [n] */
    int n, n_members;
    int v, cols, n_parts;                /* columns of all logits, of a part of them, and parts */
    const struct scores_member *members; /* [n_members] */
    const float *weights;                /* [n_members] */
    struct linear_rows *hidden;          /* [n_members] */
    real *logits, *more;                 /* [n, cols] of a part; of the members behind the first */
    real *sums;                          /* [n_members, n, n_parts] */
};

static int tile_rows(const struct candidate_options *options)
{
    return candidates_need_all(options) ? DRAWN_ROWS : TILE_ROWS;
}

static int tile_cols(const struct candidate_options *options, int v)
{
    return candidates_need_all(options) || v < TILE_COLS ? v : TILE_COLS;
}

static int count_parts(int v, int cols)
{
    return (v + cols - 1) / cols;
}

size_t scores_scratch(const struct candidate_options *options, int n, int v, int d, int n_members)
{
    int most = tile_rows(options), cols = tile_cols(options, v);
    size_t rows = (size_t)(n < most ? n : most), members = (size_t)n_members;
    size_t numbers = (members > 1 ? 2 : 1) * (size_t)cols + members * (size_t)count_parts(v, cols);
    size_t ready = linear_ready_size((int)rows, d) + sizeof(struct linear_rows);
    return sizeof(real) * rows * numbers + members * ready + candidates_bytes(options, v) + 4 * 64;
}

/* Puts what member m has into what those before it have: x = sum_m w_m y_m. */
static void mix(real *x, const real *y, int m, size_t n, const float *weights)
{
    real w = m > 1 ? 1 : (real)weights[0], w_m = (real)weights[m];
    for (size_t i = 0; i < n; i++)
        x[i] = w * x[i] + w_m * y[i];
}

static real *sum_at(const struct tile *tile, int m, int row, int part)
{
    return tile->sums + ((size_t)m * (size_t)tile->n + (size_t)row) * (size_t)tile->n_parts + part;
}

/* All rows' logits and candidates of one part. */
static void find_in_part(const struct tile *tile, int p, const struct candidate_options *options,
                         const struct config *config, const struct run *run)
{
    struct candidate_part part = { .from = p * tile->cols };
    part.n = tile->v - part.from < tile->cols ? tile->v - part.from : tile->cols;
    profile_to(run->profile, PROFILE_LOSS);
    for (int m = 0; m < tile->n_members; m++) {
        struct linear unembed = linear_part(tile->members[m].unembed, part.from, part.n);
        part.logits = m > 0 ? tile->more : tile->logits;
        linear_forward_ready(part.logits, &tile->hidden[m], &unembed, run);
        for (int i = 0; i < tile->n; i++, part.logits += part.n)
            *sum_at(tile, m, i, p) = candidates_sum(&part, &tile->rows[i], options, run);
        if (m > 0)
            mix(tile->logits, tile->more, m, (size_t)tile->n * (size_t)part.n, tile->weights);
    }
    profile_to(run->profile, PROFILE_SEARCH);
    part.logits = tile->logits;
    for (int i = 0; i < tile->n; i++, part.logits += part.n)
        candidates_take(&part, &tile->rows[i], options, config, run);
}

/* The logarithm of a row's sum over all parts. */
static real whole_sum(const struct tile *tile, int row, const struct run *run)
{
    real sum = 0;
    for (int m = 0; m < tile->n_members; m++) {
        const real *sums = sum_at(tile, m, row, 0);
        real whole = tile->n_parts > 1 ? run->kern->logsumexp(sums, tile->n_parts) : sums[0];
        if (m == 0)
            sum = whole;
        else
            mix(&sum, &whole, m, 1, tile->weights);
    }
    return sum;
}

static void find_in_tile(struct tile *tile, int first, const struct candidate_options *options,
                         const struct config *config, const struct run *run)
{
    size_t area = (size_t)tile->n * (size_t)tile->cols, n_sums = (size_t)tile->n * (size_t)tile->n_parts;
    tile->hidden = ARENA_TAKE(run->arena, struct linear_rows, tile->n_members);
    for (int m = 0; m < tile->n_members; m++) {
        const struct linear *unembed = tile->members[m].unembed;
        const real *hidden = tile->members[m].hidden + (size_t)first * (size_t)unembed->in;
        tile->hidden[m] = linear_ready(hidden, unembed, tile->n, run);
    }
    tile->logits = ARENA_TAKE(run->arena, real, area);
    tile->more = tile->n_members > 1 ? ARENA_TAKE(run->arena, real, area) : NULL;
    tile->sums = ARENA_TAKE(run->arena, real, n_sums * (size_t)tile->n_members);
    for (int i = 0; i < tile->n; i++)
        candidates_start(&tile->rows[i]);
    for (int p = 0; p < tile->n_parts; p++)
        find_in_part(tile, p, options, config, run);
    for (int i = 0; i < tile->n; i++)
        candidates_end(&tile->rows[i], whole_sum(tile, i, run));
}

void scores_find(const struct candidate_row *rows, int n, const struct scores_member *members, int n_members,
                 const float *weights, const struct candidate_options *options, const struct config *config,
                 const struct run *run)
{
    struct tile tile = { .n_members = n_members, .members = members, .weights = weights };
    tile.v = members[0].unembed->out;
    tile.cols = tile_cols(options, tile.v);
    tile.n_parts = count_parts(tile.v, tile.cols);
    for (int first = 0, most = tile_rows(options); first < n; first += most) {
        size_t mark = arena_mark(run->arena);
        tile.rows = rows + first;
        tile.n = n - first < most ? n - first : most;
        find_in_tile(&tile, first, options, config, run);
        arena_reset(run->arena, mark);
    }
}
