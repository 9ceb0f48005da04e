/*
 * embed.c: token embeddings: rows of a table, and back, each row's gradient added to its token's.
 */
#include "nn/embed.h"

void embed_forward(real *y, const int *ids, const struct linear *table, real scale, int n,
                   const struct run *run)
{
    size_t d = (size_t)table->in;
    for (int i = 0; i < n; i++, y += d) {
        linear_row(y, table, ids[i]);
        run->kern->scale(y, scale, d);
    }
}

void embed_backward(real *dtable, const real *dy, const int *ids, int d, real scale, int n)
{
    for (int i = 0; i < n; i++, dy += d) {
        real *row = dtable + (size_t)ids[i] * d;
        for (int j = 0; j < d; j++)
            row[j] += scale * dy[j];
    }
}
