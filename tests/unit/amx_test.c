/*
 * amx_test.c: the tiles of AMX, emulated, against the reference: every number of rows up to three blocks, outputs and
 * columns that fill panels and tiles or do not. Machines that have AMX test the real ones in int8_test.c and laws_test.c.
 */
#include "amx_emulated.h"
#include "check.h"

#define KERN_TABLE kern_emulated
#define INT8_AMX
#define V_of_sums(p) V_of(*(const I *)(const void *)(p))
#include "../../lib/num/kern_ref.c"

enum {
    MAX_ROWS = 70,
    MAX_OUT = 100,
    MAX_IN = 200
};

static const int outs[] = { 1, 15, 16, 17, 32, 33, 48, 96, 100 };
static const int ins[] = { 1, 3, 4, 16, 60, 63, 64, 65, 100, 128, 192, 199 };

static int8_t weights[MAX_OUT * MAX_IN], packed[(MAX_OUT + 16) * (MAX_IN + 8)], q[MAX_ROWS * (MAX_IN + 16)];
static real scales[MAX_OUT], bias[MAX_OUT], x[MAX_ROWS * MAX_IN], q_scales[MAX_ROWS];
static real found[MAX_ROWS * MAX_OUT], expected[MAX_ROWS * MAX_OUT];

static int wrong_rows(int out, int in)
{
    int wrong = 0;
    memset(packed, 0, sizeof(packed));
    int8_pack(packed, weights, 0, out, in);
    for (int n = 1; n <= MAX_ROWS; n++) {
        kern_ref.quantise(q, q_scales, x, n, in, 0);
        for (int form = 0; form < 2; form++) {
            const real *b = form ? bias : NULL;
            enum kern_act act = form ? ACT_RELU : ACT_NONE;
            memset(found, 0, sizeof(found));
            kern_emulated.linear8(found, q, q_scales, packed, scales, b, n, out, in, act);
            kern_ref.linear8(expected, q, q_scales, packed, scales, b, n, out, in, act);
            wrong += memcmp(found, expected, sizeof(real) * (size_t)n * (size_t)out) != 0;
        }
    }
    return wrong;
}

int main(void)
{
    for (int i = 0; i < MAX_OUT * MAX_IN; i++)
        weights[i] = (int8_t)((int)rng_below((uint64_t)i, 255) - 127);
    for (int i = 0; i < MAX_OUT; i++) {
        scales[i] = (real)rng_normal((uint64_t)i + 1000000);
        bias[i] = (real)rng_normal((uint64_t)i + 2000000);
    }
    for (int i = 0; i < MAX_ROWS * MAX_IN; i++)
        x[i] = (real)rng_normal((uint64_t)i + 3000000);
    for (size_t o = 0; o < sizeof(outs) / sizeof(*outs); o++) {
        int wrong = 0;
        for (size_t i = 0; i < sizeof(ins) / sizeof(*ins); i++)
            wrong += wrong_rows(outs[o], ins[i]);
        CHECK_INT(wrong, 0, "%d outputs, any columns and rows: the sums of the reference", outs[o]);
    }
    return check_done();
}
