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
#define SLICE_ROWS  1024 /* many panels, and few enough for the last thread not to be waited for */

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
    char *rooms;            /* for each worker a row of reals and a panel of whole numbers */
    int n_slices;
    struct slice { /* rows of a matrix that one worker packs */
        int param, row, n;
    } *slices;
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
    bool are_known = loaded_is_int8(p->loaded);
    for (int row = 0; row < l->out; row += p->params->list[param++].rows) {
        p->matrices->places[param] = (struct matrix_place){ .linear = l, .row = row };
        real scale = loaded_input_scale(p->loaded, param);
        are_known = are_known && scale > 0;
        l->in_scale = scale > l->in_scale ? scale : l->in_scale; /* matrices of one product have the widest */
    }
    l->in_scale = are_known ? l->in_scale : 0;
    if (loaded_is_int8(p->loaded)) {
        l->packed8 = to;
        l->scales = l->w;
    } else if (p->in_panels) {
        l->packed = to;
    }
    l->w = l->packed == NULL && l->packed8 == NULL ? to : NULL;
}

/* The bytes behind the last row and behind the last columns: what is before them will be written. */
static void zero_rest(const struct packing *p, int i)
{
    const struct linear *l = p->linears[i];
    char *to = (char *)p->matrices->packed + p->at[i];
    size_t size = packed_bytes(l, loaded_is_int8(p->loaded)), last = size;
    if (l->packed8 != NULL)
        last = l->in % INT8_GROUP == 0 ? (size_t)l->out / INT8_PANEL * int8_panel_size(l->in) : 0;
    else if (p->in_panels)
        last = (size_t)l->out / KERN_PANEL * KERN_PANEL * (size_t)l->in * sizeof(real);
    memset(to + last, 0, size - last);
}

static void pack_rows8(const struct packing *p, const struct slice *slice, char *rooms)
{
    const struct matrix_place *place = &p->matrices->places[slice->param];
    real *room = (real *)(void *)rooms, *scales = p->kept + p->params->list[slice->param].kept_offset;
    int8_t *room8 = (int8_t *)(room + p->cols), *packed = (int8_t *)(uintptr_t)place->linear->packed8;
    for (int done = 0, n; done < slice->n; done += n) {
        int row = slice->row + done;
        n = slice->n - done < INT8_PANEL ? slice->n - done : INT8_PANEL;
        const int8_t *rows = loaded_rows8(scales + row, room8, room, p->loaded, slice->param, row, n);
        int8_pack(packed, rows, place->row + row, n, place->linear->in);
    }
}

/* A row that is not finite leaves a NaN in the place of its scale. */
static void pack_reals(const struct packing *p, const struct slice *slice, char *rooms)
{
    const struct matrix_place *place = &p->matrices->places[slice->param];
    const struct linear *l = place->linear;
    real *values = (real *)(void *)rooms, *scales = p->kept + p->params->list[slice->param].kept_offset;
    for (int row = slice->row; row < slice->row + slice->n; row++) {
        loaded_row(values, p->loaded, slice->param, row);
        if (p->in_panels)
            linear_pack_row((real *)(uintptr_t)l->packed, values, place->row + row, l->in);
        else
            memcpy((real *)(uintptr_t)l->w + (size_t)(place->row + row) * (size_t)l->in, values,
                   sizeof(real) * (size_t)l->in);
        real sum = 0;
        for (int j = 0; j < l->in; j++)
            sum += values[j] - values[j]; /* 0, or NaN */
        scales[row] = sum;
    }
}

static size_t room_size(const struct packing *p)
{
    return p->cols * (sizeof(real) + INT8_PANEL);
}

static void pack_slice(void *arg, int i, int worker)
{
    const struct packing *p = arg;
    const struct slice *slice = &p->slices[i];
    char *rooms = p->rooms + (size_t)worker * room_size(p);
    if (loaded_is_int8(p->loaded))
        pack_rows8(p, slice, rooms);
    else
        pack_reals(p, slice, rooms);
    loaded_forget(p->loaded, slice->param, slice->row, slice->n);
}

/* Counts the slices, and fills them in if they are there. */
static void cut_slices(struct packing *p)
{
    p->n_slices = 0;
    for (int i = 0; i < p->params->n; i++) {
        int rows = p->matrices->places[i].linear != NULL ? p->params->list[i].rows : 0;
        for (int row = 0; row < rows; row += SLICE_ROWS, p->n_slices++) {
            int n = rows - row < SLICE_ROWS ? rows - row : SLICE_ROWS;
            if (p->slices != NULL)
                p->slices[p->n_slices] = (struct slice){ .param = i, .row = row, .n = n };
        }
    }
}

static enum tfm_status pack_all(struct packing *p, struct pool *pool, struct tfm_error *err)
{
    cut_slices(p);
    p->slices = mem_alloc((size_t)p->n_slices * sizeof(*p->slices), err);
    p->rooms = mem_alloc((size_t)pool_threads(pool) * room_size(p), err);
    if (p->slices == NULL || p->rooms == NULL)
        return TFM_ENOMEM;
    cut_slices(p);
    pool_run(pool, p->n_slices, pack_slice, p);
    return TFM_OK;
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
    matrices->places = mem_alloc((size_t)params->n * sizeof(*matrices->places), err);
    matrices->packed = matrices->places != NULL ? mem_alloc_unset(matrices->size, err) : NULL;
    if (matrices->packed == NULL)
        return TFM_ENOMEM;
    for (int i = 0; i < p.n; i++) {
        place_linear(&p, i);
        zero_rest(&p, i);
    }
    enum tfm_status status = pack_all(&p, pool, err);
    mem_free(p.slices);
    mem_free(p.rooms);
    net_share(net);
    return status;
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
