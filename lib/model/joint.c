/*
 * joint.c: source and target of a decoder-only model as one sequence (Liu et al. 2018, "Generating Wikipedia by
 * Summarizing Long Sequences"): s_1 ... s_n <start> t_1 ... t_m, where the row of <start> predicts t_1 and
 * that of t_m predicts </s>. In a batch of B pairs there are N = Ns - B + Nt rows, since a source gives up
 * its </s>.
 * On the sentence's way with --arch decoder: decoder_step calls joint_step, and block_forward has no
 * cross-attention.
 */
#include "model/joint.h"

#include <string.h>

void joint_lay(struct joint *joint, const struct tokens *source, const struct tokens *target,
               struct arena *arena)
{
    int n = target->n_sentences, *start = ARENA_TAKE(arena, int, n + 1);
    for (int s = 0; s <= n; s++)
        start[s] = source->start[s] - s + target->start[s];
    *joint = (struct joint){
        .source = source,
        .target = target,
        .tokens = { .n_sentences = n, .n = start[n], .start = start, .key = target->key },
    };
}

/* Sizes of sentence s. */
static int source_rows(const struct joint *joint, int s)
{
    return joint->source->start[s + 1] - joint->source->start[s] - 1;
}

static int target_rows(const struct joint *joint, int s)
{
    return joint->target->start[s + 1] - joint->target->start[s];
}

void joint_gather(real *x, const real *source, const real *target, const struct joint *joint, int d)
{
    for (int s = 0; s < joint->tokens.n_sentences; s++) {
        size_t n_source = (size_t)source_rows(joint, s) * (size_t)d;
        size_t n_target = (size_t)target_rows(joint, s) * (size_t)d;
        if (source != NULL)
            memcpy(x, source + (size_t)joint->source->start[s] * (size_t)d, n_source * sizeof(real));
        else
            memset(x, 0, n_source * sizeof(real));
        memcpy(x + n_source, target + (size_t)joint->target->start[s] * (size_t)d, n_target * sizeof(real));
        x += n_source + n_target;
    }
}

void joint_scatter(real *source, real *target, const real *x, const struct joint *joint, int d)
{
    for (int s = 0; s < joint->tokens.n_sentences; s++) {
        size_t n_source = (size_t)source_rows(joint, s) * (size_t)d;
        size_t n_target = (size_t)target_rows(joint, s) * (size_t)d;
        if (source != NULL) {
            real *rows = source + (size_t)joint->source->start[s] * (size_t)d;
            memcpy(rows, x, n_source * sizeof(real));
            memset(rows + n_source, 0, sizeof(real) * (size_t)d);
        }
        memcpy(target + (size_t)joint->target->start[s] * (size_t)d, x + n_source, n_target * sizeof(real));
        x += n_source + n_target;
    }
}

void joint_step(struct block_input *in, const int **positions, int n_source, struct arena *arena)
{
    struct attn_segment *self = ARENA_TAKE(arena, struct attn_segment, in->n_self);
    int *places = ARENA_TAKE(arena, int, in->n);
    for (int g = 0; g < in->n_cross; g++) {
        const struct attn_segment *cross = &in->cross[g];
        int n_before = cross->n_k - 1;
        for (int row = cross->q_start; row < cross->q_start + cross->n_q; row++) {
            const struct attn_segment *own = &in->self[row];
            int *k_rows = ARENA_TAKE(arena, int, n_before + own->n_k);
            for (int j = 0; j < n_before; j++)
                k_rows[j] = cross->k_start + j;
            for (int j = 0; j < own->n_k; j++)
                k_rows[n_before + j] = n_source + own->k_rows[j];
            self[row] = *own;
            self[row].n_k += n_before;
            self[row].k_rows = k_rows;
            places[row] = (*positions)[row] + n_before;
        }
    }
    in->self = self;
    *positions = places;
}

void joint_cross_weights(real *cross, const real *self, const struct block_input *in, int heads)
{
    for (int g = 0; g < in->n_cross; g++) {
        const struct attn_segment *to = &in->cross[g];
        for (int i = 0; i < to->n_q; i++) {
            int n_k = in->self[to->q_start + i].n_k; /* of all keys; the source's are the first */
            for (int h = 0; h < heads; h++, self += attn_row(n_k))
                memcpy(cross + ((size_t)h * (size_t)to->n_q + (size_t)i) * attn_row(to->n_k), self,
                       sizeof(real) * (size_t)to->n_k);
        }
        cross += (size_t)heads * (size_t)to->n_q * attn_row(to->n_k);
    }
}
