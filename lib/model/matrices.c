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
    int n;
    struct linear *linears[MAX_LINEARS];
    size_t at[MAX_LINEARS]; /* bytes of `packed` */
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
    p->matrices->size += packed_bytes(l, p->loaded->values != NULL);
}

static int first_param(const struct packing *p, const struct linear *l)
{
    size_t offset = (size_t)(l->w - p->loaded->kept);
    int i = 0;
    while (p->params->list[i].kept_offset != offset)
        i++;
    return i;
}

static void pack_linear(void *arg, int i, int worker)
{
    (void)worker;
    struct packing *p = arg;
    struct linear *l = p->linears[i];
    char *to = (char *)p->matrices->packed + p->at[i];
    int first = first_param(p, l);
    for (int row = 0, j = first; row < l->out; row += p->params->list[j++].rows)
        p->matrices->places[j] = (struct matrix_place){ .linear = l, .row = row };
    size_t offset = p->params->list[first].offset;
    if (p->loaded->values != NULL) {
        int8_pack((int8_t *)to, p->loaded->values + offset, l->out, l->in);
        l->packed8 = (int8_t *)to;
        l->scales = l->w;
    } else {
        linear_pack((real *)(void *)to, p->loaded->block + offset, l->out, l->in);
        l->packed = (real *)(void *)to;
    }
    l->w = NULL;
}

enum tfm_status matrices_pack(struct matrices *matrices, struct net *net, const struct params *params,
                              const struct loaded *loaded, struct pool *pool, struct tfm_error *err)
{
    struct packing p = { .matrices = matrices, .params = params, .loaded = loaded };
    *matrices = (struct matrices){ 0 };
    net_each(net, add_linear, &p);
    matrices->places = mem_alloc((size_t)params->n * sizeof(*matrices->places), err);
    matrices->packed = matrices->places != NULL ? mem_alloc(matrices->size, err) : NULL;
    if (matrices->packed == NULL)
        return TFM_ENOMEM;
    pool_run(pool, p.n, pack_linear, &p);
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
