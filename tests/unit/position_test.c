/*
 * position_test.c: what the golden models are too small for: buckets of large distances, slopes, angles of large
 * positions, lines longer than a learned table, tables in other sizes.
 */
#include "nn/position.h"

#include "check.h"
#include "model/model.h"
#include "tiny_model.h"

static struct arena arena;
static struct run run;

/* Row 0 of heads 0 of the biases between `n` positions: bias[n - 1 + m] is that of distance m. */
static const real *biases(struct placement *place, const struct position *p, int n)
{
    *place = (struct placement){ .position = p, .longest = n };
    position_place(place, NULL, 0, 0, &run);
    return place->bias + n - 1;
}

/* Distances and the buckets that T5's code gives them. */
static void test_buckets(void)
{
    static const struct {
        int distance, encoder, decoder;
    } expected[] = {
        { 0, 0, 0 },     { -1, 1, 1 },     { -7, 7, 7 },     { -8, 8, 8 },     { -11, 8, 11 },
        { -12, 9, 12 },  { -15, 9, 15 },   { -16, 10, 16 },  { -18, 10, 16 },  { -19, 10, 17 },
        { -23, 11, 18 }, { -32, 12, 21 },  { -45, 12, 23 },  { -46, 13, 24 },  { -64, 14, 26 },
        { -91, 15, 29 }, { -127, 15, 31 }, { -128, 15, 31 }, { -500, 15, 31 }, { 1, 17, 0 },
        { 7, 23, 0 },    { 8, 24, 0 },     { 16, 26, 0 },    { 127, 31, 0 },   { 400, 31, 0 },
    };
    real table[POSITION_BUCKETS * 2];
    for (int i = 0; i < POSITION_BUCKETS; i++) {
        table[2 * i] = (real)i;
        table[2 * i + 1] = (real)(100 + i);
    }
    struct position encoder = {
        .kind = TFM_POSITIONS_RELATIVE, .d = 8, .heads = 2, .dim = 4, .table = table
    };
    struct position decoder = encoder;
    decoder.is_causal = true;
    struct placement a, b;
    const real *of_encoder = biases(&a, &encoder, 501), *of_decoder = biases(&b, &decoder, 501);
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        int m = expected[i].distance;
        CHECK_NEAR(of_encoder[m], expected[i].encoder, 0, "encoder: the bucket of %d", m);
        CHECK_NEAR(of_decoder[m], expected[i].decoder, 0, "decoder: the bucket of %d", m);
        CHECK_NEAR(of_encoder[1001 + m], 100 + expected[i].encoder, 0, "head 1: of %d", m);
    }
    arena_reset(&arena, 0);
}

static void test_slopes(void)
{
    struct position p = { .kind = TFM_POSITIONS_ALIBI, .d = 64, .heads = 8, .dim = 8 };
    struct placement place;
    const real *bias = biases(&place, &p, 300);
    CHECK_NEAR(bias[0], 0, 0, "no distance, no bias");
    CHECK_NEAR(bias[-1], -0.5, 0, "the first of eight heads halves");
    CHECK_NEAR(bias[-299], -149.5, 0, "for each step");
    CHECK_NEAR(bias[299], -149.5, 0, "to both sides");
    CHECK_NEAR(bias[7 * 599 - 4], -4.0 / 256, 0, "the last one has 2^-8");
    arena_reset(&arena, 0);
}

/* Scores after the turn depend on the distance alone. */
static void test_turn(void)
{
    enum {
        K = 8
    };
    struct position p = { .kind = TFM_POSITIONS_ROPE, .d = K, .heads = 1, .dim = K };
    static real rows[1000 * K];
    position_rows(rows, 0, 1000, &p);
    double first = 0;
    for (int shift = 0; shift < 900; shift += 299) {
        real x[2][K] = { { 1, 2, -1, 0.5, 3, 1, -2, 1 }, { 0.5, -1, 2, 1, 1, -3, 1, 2 } };
        int positions[] = { shift + 3, shift + 14 };
        struct placement place = { .position = &p, .positions = positions, .rows = rows };
        position_turn(x[0], K, 1, 2, false, &place);
        double dot = 0;
        for (int j = 0; j < K; j++)
            dot += (double)x[0][j] * (double)x[1][j];
        first = shift == 0 ? dot : first;
        CHECK_NEAR(dot, first, 1e-4, "RoPE: the score of positions %d and %d", shift + 3, shift + 14);
        position_turn(x[0], K, 1, 2, true, &place);
        CHECK_NEAR(x[1][5], -3, 1e-5, "and back");
    }
}

static void test_learned(void)
{
    real table[4 * 2] = { 0, 10, 1, 20, 2, 40, 3, 80 };
    struct position p = { .kind = TFM_POSITIONS_LEARNED, .d = 2, .table = table, .length = 4 };
    int positions[] = { 0, 3, 6, 0, 3, 9 };
    struct attn_segment segments[] = { { .q_start = 0, .n_q = 3, .n_k = 7 },
                                       { .q_start = 3, .n_q = 3, .n_k = 4 } };
    struct placement place = { .position = &p, .positions = positions };
    position_place(&place, segments, 2, 6, &run);
    real x[6][2] = { { 0, 0 } };
    position_add(x[0], 6, &place, &run);
    const real expected[6][2] = { { 0, 10 }, { 1.5, 30 }, { 3, 80 }, { 0, 10 }, { 3, 80 }, { 3, 80 } };
    for (int i = 0; i < 6; i++)
        CHECK(x[i][0] == expected[i][0] && x[i][1] == expected[i][1], "row %d: %g %g", i, (double)x[i][0],
              (double)x[i][1]);
    arena_reset(&arena, 0);

    real seven[7 * 2], two[2 * 2], one[2], same[4 * 2];
    position_resize(seven, 7, table, 4, 2);
    CHECK(seven[0] == 0 && seven[2] == (real)0.5 && seven[3] == 15 && seven[4] == 1 && seven[13] == 80,
          "stretched to seven rows");
    position_resize(two, 2, table, 4, 2);
    CHECK(two[0] == 0 && two[1] == 10 && two[2] == 3 && two[3] == 80, "squeezed to two");
    position_resize(one, 1, table, 4, 2);
    CHECK(one[0] == 0 && one[1] == 10, "to one");
    position_resize(same, 4, table, 4, 2);
    CHECK(memcmp(same, table, sizeof(table)) == 0, "and to as many as before");
}

static void test_open(void)
{
    struct tfm_error err;
    struct tfm_model *other = NULL;
    struct tfm_model *model = tiny_open(
        "learned",
        &(struct tiny_options){ .seed = 1, .positions = TFM_POSITIONS_LEARNED, .max_positions = 9 });
    struct tfm_model *rope =
        tiny_open("rope", &(struct tiny_options){ .seed = 1, .positions = TFM_POSITIONS_ROPE });
    struct tfm_open_options options;
    tfm_open_options_init(&options);
    options.max_positions = 17;
    CHECK_INT(tfm_model_open_with(&other, model->folder, &options, &err), TFM_OK, "opened with 17 positions");
    const struct position *was = &model->net.target_position, *is = &other->net.target_position;
    CHECK(is->length == 17 && was->length == 9 && memcmp(is->table + 16 * 24, was->table + 8 * 24, 96) == 0 &&
              memcmp(is->table + 8 * 24, was->table + 4 * 24, 96) == 0,
          "of which every other is one of the nine");
    CHECK(memcmp(is->table, other->net.source_position.table, 96) != 0, "each side has its own");
    tfm_model_free(other);
    CHECK_INT(tfm_model_open_with(&other, rope->folder, &options, &err), TFM_EINVAL, "refused for RoPE");
    CHECK(other == NULL && strstr(err.message, "its positions are \"rope\"") != NULL, "and why: %s",
          err.message);
    options.max_positions = -1;
    CHECK_INT(tfm_model_open_with(&other, model->folder, &options, &err), TFM_EINVAL,
              "refused: -1 positions");
    tfm_model_free(model);
    tfm_model_free(rope);
}

int main(void)
{
    struct tfm_error err;
    if (!CHECK(arena_init(&arena, (size_t)64 << 20, &err) == TFM_OK, "arena"))
        return check_done();
    run = (struct run){ .arena = &arena, .kern = kern_for(CPU_REF) };
    test_buckets();
    test_slopes();
    test_turn();
    test_learned();
    test_open();
    arena_release(&arena);
    return check_done();
}
