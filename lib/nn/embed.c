/*
 * embed.c: token embeddings with sinusoidal positions. Sines and cosines are libm's in double, rounded once:
 * their last bits are beyond a float's.
 */
#include "nn/embed.h"

#include <math.h>

void embed_position_rows(real *rows, int from, int to, int d)
{
    int half = d / 2;
    double step = log(10000.0) / (half > 1 ? half - 1 : 1);
    for (int i = 0; i < half; i++) {
        double w = exp(-i * step);
        for (int pos = from; pos < to; pos++) {
            real *row = rows + (size_t)(pos - from) * d;
            row[i] = (real)sin(pos * w);
            row[half + i] = (real)cos(pos * w);
        }
    }
    if (d % 2)
        for (int pos = from; pos < to; pos++)
            rows[(size_t)(pos - from) * d + d - 1] = 0;
}

void embed_forward(real *y, const int *ids, const int *positions, const struct linear *table,
                   const real *position_rows, real scale, int n, const struct run *run)
{
    size_t d = (size_t)table->in;
    for (int i = 0; i < n; i++, y += d) {
        linear_row(y, table, ids[i]);
        run->kern->scale(y, scale, d);
        if (position_rows)
            run->kern->add(y, position_rows + (size_t)positions[i] * d, d);
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

int embed_positions(int *positions, const struct tokens *tokens)
{
    int longest = 0;
    for (int s = 0; s < tokens->n_sentences; s++) {
        int length = tokens->start[s + 1] - tokens->start[s];
        for (int i = 0; i < length; i++)
            positions[tokens->start[s] + i] = i;
        longest = length > longest ? length : longest;
    }
    return longest;
}
