/*
 * draw.c: sampling from the softmax of a row of logits,
 *     p_i = exp(x_i / T) / sum_j exp(x_j / T),
 * or from a head of it. The head is found with a heap of the tokens, most probable first (of equals the
 * smaller token), so that only as much is sorted as is drawn from. A draw walks along the probabilities until
 * their sum passes u times the sum of all (inversion), u uniform from the key. The softmax is the kernels'
 * own and sums are double in a fixed order, so that a draw is the same on any processor.
 */
#include "decode/draw.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

struct heap { /* of tokens; the most probable at the root */
    int *ids;
    int n;
    const real *p;
};

static bool comes_before(const struct heap *heap, int a, int b)
{
    const real *p = heap->p;
    return p[a] > p[b] || (p[a] == p[b] && a < b);
}

static void sift_down(struct heap *heap, int at)
{
    int id = heap->ids[at];
    for (int child; (child = 2 * at + 1) < heap->n; at = child) {
        if (child + 1 < heap->n && comes_before(heap, heap->ids[child + 1], heap->ids[child]))
            child++;
        if (!comes_before(heap, heap->ids[child], id))
            break;
        heap->ids[at] = heap->ids[child];
    }
    heap->ids[at] = id;
}

static int pop(struct heap *heap)
{
    int id = heap->ids[0];
    heap->ids[0] = heap->ids[--heap->n];
    if (heap->n > 0)
        sift_down(heap, 0);
    return id;
}

/* The tokens to draw from, into `kept`, most probable first; returns how many. */
static int take_head(int *kept, struct heap *heap, const struct draw_options *options)
{
    int k = options->kind == TFM_SAMPLING_TOPK ? options->top_k : heap->n, n = 0;
    double least = options->kind == TFM_SAMPLING_TOPP ? options->top_p : 2, sum = 0;
    while (n < k && heap->n > 0 && sum < least) {
        int id = pop(heap);
        if (!(heap->p[id] > 0))
            break;
        kept[n++] = id;
        sum += (double)heap->p[id];
    }
    return n;
}

/* One of the n tokens, `ids` or where that is NULL 0 .. n-1. */
static int draw_one(const int *ids, int n, const real *p, double sum, uint64_t key)
{
    double left = rng_unit(key) * sum;
    int last = -1;
    for (int i = 0; i < n; i++) {
        int id = ids != NULL ? ids[i] : i;
        if (!(p[id] > 0))
            continue;
        last = id; /* rounding may leave something over at the end */
        left -= (double)p[id];
        if (left < 0)
            break;
    }
    return last;
}

size_t draw_bytes(int v)
{
    return (sizeof(real) + 2 * sizeof(int)) * (size_t)v + (size_t)3 * 64;
}

void draw_tokens(int *tokens, int n, const real *logits, int v, const struct draw_options *options,
                 uint64_t key, const struct run *run)
{
    size_t mark = arena_mark(run->arena);
    real *p = ARENA_TAKE(run->arena, real, v);
    int *ids = NULL, n_kept = v;
    memcpy(p, logits, sizeof(real) * (size_t)v);
    run->kern->softmax(p, v, (real)(1 / options->temperature));
    for (int i = 0; i < v; i++)
        if (!(logits[i] > -INFINITY)) /* the kernel's exp has no zero */
            p[i] = 0;
    if (options->kind != TFM_SAMPLING_FULL) {
        struct heap heap = { .ids = ARENA_TAKE(run->arena, int, v), .n = v, .p = p };
        for (int i = 0; i < v; i++)
            heap.ids[i] = i;
        for (int i = v / 2 - 1; i >= 0; i--)
            sift_down(&heap, i);
        ids = ARENA_TAKE(run->arena, int, v);
        n_kept = take_head(ids, &heap, options);
    }
    double sum = 0;
    for (int i = 0; i < n_kept; i++)
        sum += (double)p[ids != NULL ? ids[i] : i];
    for (int j = 0; j < n; j++)
        tokens[j] = isfinite(sum) ? draw_one(ids, n_kept, p, sum, rng_key(key, (uint64_t)j, 0, 0)) : -1;
    arena_reset(run->arena, mark);
}
