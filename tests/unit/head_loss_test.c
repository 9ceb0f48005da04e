/*
 * head_loss_test.c: values of losses on single heads against numbers made by hand, what they count, and gradients that
 * stay finite where a weight is 0. That gradients are right is for grad_double_test.c.
 */
#include "nn/head_loss.h"

#include <math.h>

#include "check.h"

#define N_Q 2
#define N_K 3

static const real rows[N_Q][KERN_PANEL] = { { 0.5f, 0.5f, 0 }, { 0.25f, 0.25f, 0.5f } }; /* attn_row(N_K) wide */
static const struct guide_link links[] = { { 0, 0.5f }, { 2, 0.5f } };
static const struct guide_row guide[] = { { 0 }, { 0 }, { 0 }, { links, 2 } };
static const struct attn_segment segment = { .q_start = 2, .n_q = N_Q, .k_start = 7, .n_k = N_K };

/* The value of one term over the rows, for head 1 of layer 0 of the part. */
static struct head_sum sum_of(enum tfm_part part, int head, enum tfm_head_loss_kind kind, const int *row_numbers)
{
    struct head_loss loss = { .part = part, .head = head, .kind = kind, .weight = 1 };
    struct head_sum sum = { 0 };
    struct head_losses losses = { .list = &loss, .n = 1, .guide = guide, .sums = &sum };
    struct attn attn = { .heads = 2, .part = part, .rows = row_numbers };
    head_loss_forward(&losses, rows[0], 1, &segment, &attn);
    return sum;
}

static double value_of(enum tfm_part part, enum tfm_head_loss_kind kind)
{
    return sum_of(part, 1, kind, NULL).value;
}

static void test_values(void)
{
    CHECK_NEAR(value_of(TFM_CROSS, TFM_HEAD_ENTROPY), 2.5 * log(2), 1e-7, "entropy");
    CHECK_NEAR(value_of(TFM_CROSS, TFM_HEAD_SPARSITY), 2 * sqrt(0.5) + 1 + sqrt(0.5), 1e-7, "sparsity");
    /* The two queries are the last of three places. */
    CHECK_NEAR(value_of(TFM_DECODER, TFM_HEAD_DISTANCE), 0.5 + (0.5 + 0.25), 1e-7, "distance");
    CHECK_NEAR(value_of(TFM_CROSS, TFM_HEAD_ALIGNMENT_CE), 0.5 * log(4) + 0.5 * log(2), 1e-7, "cross-entropy");
    CHECK_NEAR(value_of(TFM_CROSS, TFM_HEAD_ALIGNMENT_MSE), 2 * 0.0625, 1e-7, "squared differences");
}

static void test_counts(void)
{
    const int none[] = { 0, 0, 1, 2 }, both[] = { 0, 0, 3, 3 };
    CHECK_NEAR(sum_of(TFM_CROSS, -1, TFM_HEAD_ENTROPY, NULL).rows, 2, 0, "each head is meant");
    CHECK_NEAR(sum_of(TFM_CROSS, 0, TFM_HEAD_ENTROPY, NULL).rows, 0, 0, "another head is not");
    CHECK_NEAR(sum_of(TFM_CROSS, 1, TFM_HEAD_ALIGNMENT_CE, NULL).rows, 1, 0, "rows without links do not count");
    CHECK_NEAR(sum_of(TFM_CROSS, 1, TFM_HEAD_ALIGNMENT_CE, none).rows, 0, 0, "rows may have other numbers");
    CHECK_NEAR(sum_of(TFM_CROSS, 1, TFM_HEAD_ALIGNMENT_CE, both).rows, 2, 0, "as a recurrent decoder's have");
}

/* Weights that underflowed: gradients, and those behind a softmax, are numbers. */
static void test_zeros(void)
{
    static const real stuck[] = { 1, 0, 1e-44f };
    static const struct guide_link far[] = { { 1, 1 } };
    static const struct guide_row far_guide[] = { { far, 1 } };
    const struct attn_segment one = { .n_q = 1, .n_k = N_K };
    const struct attn attn = { .heads = 1, .part = TFM_CROSS };
    for (int kind = TFM_HEAD_ENTROPY; kind <= TFM_HEAD_ALIGNMENT_MSE; kind++) {
        struct head_loss loss = { .part = TFM_CROSS, .kind = (enum tfm_head_loss_kind)kind, .weight = 1000 };
        struct head_sum sum = { 0 };
        struct head_losses losses = {
            .list = &loss, .n = 1, .row_weight = { 1, 1, 1 }, .guide = far_guide, .sums = &sum
        };
        real dp[N_K] = { 0 };
        head_loss_forward(&losses, stuck, 0, &one, &attn);
        head_loss_backward(dp, &losses, stuck, 0, &one, &attn);
        bool is_finite = isfinite(sum.value);
        for (int j = 0; j < N_K; j++)
            is_finite = is_finite && isfinite(dp[j]) && isfinite(dp[j] * stuck[j]);
        CHECK(is_finite, "kind %d of a row that looks at one place", kind);
    }
}

int main(void)
{
    test_values();
    test_counts();
    test_zeros();
    return check_done();
}
