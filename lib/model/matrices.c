/*
 * matrices.c: packs the matrices of a model that is opened. A linear of a net that is bound to a kept block
 * points, in place of a matrix, to the scales of its rows; so the first parameter of the linear is the one
 * whose scales begin there, and those that follow it (query, key and value are one linear) are the next
 * ones. The linears are packed side by side.
 */
#include "model/matrices.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "num/int8.h"

#define MAX_LINEARS (14 * CONFIG_MAX_LAYERS + 3)

struct packing {
    struct matrices *matrices;
    const struct params *params;
    const struct loaded *loaded;
    real *kept;
    bool in_panels; /* or else row by row */
    int n;
    struct linear *linears[MAX_LINEARS];
    size_t at[MAX_LINEARS]; /* bytes of `packed` */
    size_t cols;            /* of the widest */
    char *rooms;            /* for each worker a row of reals and one of whole numbers */
};

static size_t packed_bytes(const struct linear *l, bool is_int8)
{
    size_t size =
        is_int8 ? int8_packed_size(l->out, l->in) : linear_packed_size(l->out, l->in) * sizeof(real);
    return (size + 63) / 64 * 64;
}

static void add_linear(struct linear *l, void *arg)
{
    struct packing *p = arg;
    assert(p->n < MAX_LINEARS);
    p->linears[p->n] = l;
    p->at[p->n++] = p->matrices->size;
    p->matrices->size += packed_bytes(l, loaded_is_int8(p->loaded));
    p->cols = p->cols < (size_t)l->in ? (size_t)l->in : p->cols;
}

/* Points the linears to where their rows will be, and tells for each matrix in which of them it is. */
static void place_linear(struct packing *p, int i)
{
    struct linear *l = p->linears[i];
    void *to = (char *)p->matrices->packed + p->at[i];
    size_t offset = (size_t)(l->w - p->kept);
    int param = 0;
    while (p->params->list[param].kept_offset != offset)
        param++;
    for (int row = 0; row < l->out; row += p->params->list[param++].rows)
        p->matrices->places[param] = (struct matrix_place){ .linear = l, .row = row };
    if (loaded_is_int8(p->loaded)) {
        l->packed8 = to;
        l->scales = l->w;
    } else if (p->in_panels) {
        l->packed = to;
    }
    l->w = l->packed == NULL && l->packed8 == NULL ? to : NULL;
}

/* A row that is not finite leaves a NaN in the place of its scale. */
static void pack_param(void *arg, int i, int worker)
{
    const struct packing *p = arg;
    const struct param *param = &p->params->list[i];
    const struct matrix_place *place = &p->matrices->places[i];
    const struct linear *l = place->linear;
    if (l == NULL)
        return;
    real *row = (real *)(void *)(p->rooms + (size_t)worker * p->cols * (sizeof(real) + 1));
    int8_t *row8 = (int8_t *)(row + p->cols);
    real *scales = p->kept + param->kept_offset;
    for (int r = 0; r < param->rows; r++) {
        if (l->packed8 != NULL) {
            scales[r] = loaded_row8(row8, row, p->loaded, i, r);
            int8_pack_row((int8_t *)(uintptr_t)l->packed8, row8, place->row + r, l->in);
            continue;
        }
        loaded_row(row, p->loaded, i, r);
        if (p->in_panels)
            linear_pack_row((real *)(uintptr_t)l->packed, row, place->row + r, l->in);
        else
            memcpy((real *)(uintptr_t)l->w + (size_t)(place->row + r) * (size_t)l->in, row,
                   sizeof(real) * (size_t)l->in);
        real sum = 0;
        for (int j = 0; j < l->in; j++)
            sum += row[j] - row[j]; /* 0, or NaN */
        scales[r] = sum;
    }
    loaded_forget(p->loaded, i);
}

enum tfm_status matrices_pack(struct matrices *matrices, struct net *net, const struct params *params,
                              const struct loaded *loaded, real *kept, bool in_panels, struct pool *pool,
                              struct tfm_error *err)
{
    struct packing p = {
        .matrices = matrices, .params = params, .loaded = loaded, .kept = kept, .in_panels = in_panels
    };
    *matrices = (struct matrices){ 0 };
    net_each(net, add_linear, &p);
    p.cols = (p.cols + 15) / 16 * 16;
    size_t rooms = (size_t)pool_threads(pool) * p.cols * (sizeof(real) + 1);
    matrices->places = mem_alloc((size_t)params->n * sizeof(*matrices->places), err);
    matrices->packed = matrices->places != NULL ? mem_alloc(matrices->size, err) : NULL;
    p.rooms = matrices->packed != NULL ? mem_alloc(rooms, err) : NULL;
    if (p.rooms == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < p.n; i++)
        place_linear(&p, i);
    pool_run(pool, params->n, pack_param, &p);
    mem_free(p.rooms);
    net_share(net);
    return TFM_OK;
}

void matrices_release(struct matrices *matrices)
{
    mem_free(matrices->packed);
    mem_free(matrices->places);
    *matrices = (struct matrices){ 0 };
}

void matrices_values(real *values, const struct matrices *matrices, const struct params *params, int i,
                     const real *kept)
{
    const struct param *param = &params->list[i];
    const struct matrix_place *place = &matrices->places[i];
    if (place->linear == NULL) {
        memcpy(values, kept + param->kept_offset, params_count(param) * sizeof(real));
        return;
    }
    for (int row = 0; row < param->rows; row++)
        linear_row(values + (size_t)row * (size_t)param->cols, place->linear, place->row + row);
}
