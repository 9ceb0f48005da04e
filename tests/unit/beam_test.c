/*
 * beam_test.c: the rule of decode/beam.h: which hypotheses live on, which end, in what order; ties; the
 * length limit; cache rows. A toy language model (a table of log-probabilities that depends on the last
 * token) is searched and compared with greedy search and with the enumeration of all its sentences.
 */
#include "decode/beam.h"

#include "base/rng.h"
#include "check.h"

#define MAX_V    8
#define MAX_SIZE 4096
#define EOS      0
#define START    (-7) /* the toy model's only input that is no token */

static struct arena arena;

static struct beam new_beam(int size, int n_best, double normalize, int limit)
{
    struct beam beam;
    struct beam_options options = { .size = size, .n_best = n_best, .normalize = normalize, .eos = EOS };
    size_t before = arena_mark(&arena);
    beam_init(&beam, &options, START, limit, &arena);
    if (arena_mark(&arena) - before > beam_bytes(size, limit, NULL))
        CHECK(false, "beam_bytes is an upper bound for size %d, limit %d", size, limit);
    return beam;
}

/* ---- the toy model ---- */

struct toy {
    int v;
    float p[MAX_V + 1][MAX_V]; /* log-probabilities behind each token; the last row behind START */
};

static struct toy random_toy(uint64_t seed, int v, int steps_of)
{
    struct toy toy = { .v = v };
    for (int from = 0; from <= v; from++) {
        double sum = 0, x[MAX_V];
        for (int to = 0; to < v; to++) {
            x[to] = rng_unit(rng_key(seed, (uint64_t)from, (uint64_t)to, 0)) * 4;
            if (steps_of > 0) /* coarse values bring ties about */
                x[to] = floor(x[to] * steps_of) / steps_of;
            sum += exp(x[to]);
        }
        for (int to = 0; to < v; to++)
            toy.p[from][to] = (float)(x[to] - log(sum));
    }
    return toy;
}

static const float *toy_row(const struct toy *toy, int token)
{
    return toy->p[token == START ? toy->v : token];
}

/* The candidates of all live hypotheses, as search.c gives them. */
static void toy_candidates(struct beam_candidate *out, const struct toy *toy, const struct beam *beam)
{
    int size = beam->options.size;
    for (int h = 0; h < beam->n_live; h++, out += size) {
        const float *row = toy_row(toy, beam_token(beam, h));
        bool used[MAX_V] = { false };
        for (int c = 0; c < size; c++) {
            int best = -1;
            for (int v = 0; v < toy->v; v++)
                if (!used[v] && (best < 0 || row[v] > row[best]))
                    best = v;
            out[c].token = best;
            if (best < 0)
                break;
            out[c].score = row[best];
            used[best] = true;
        }
    }
}

static struct beam search_toy(const struct toy *toy, int size, int n_best, double normalize, int limit)
{
    static struct beam_candidate candidates[MAX_SIZE * 64];
    struct beam beam = new_beam(size, n_best, normalize, limit);
    while (beam.n_live > 0) {
        toy_candidates(candidates, toy, &beam);
        beam_step(&beam, candidates);
    }
    return beam;
}

static bool same_ending(const struct beam *a, const struct beam *b, int i)
{
    const struct beam_ending *x = &a->ended[i], *y = &b->ended[i];
    int p[64], q[64];
    float s[64], t[64];
    beam_pieces(a, x, p, s);
    beam_pieces(b, y, q, t);
    return x->n_pieces == y->n_pieces && x->score == y->score && x->limited == y->limited &&
           memcmp(p, q, sizeof(int) * (size_t)x->n_pieces) == 0 &&
           memcmp(s, t, sizeof(float) * (size_t)x->n_pieces) == 0;
}

/* The best sentence of at most limit pieces that ends with </s>, by trying all. */
static double best_of_all(const struct toy *toy, int token, int n_pieces, double score, int limit,
                          double normalize)
{
    double best = -INFINITY;
    const float *row = toy_row(toy, token);
    for (int v = 0; v < toy->v && n_pieces < limit; v++) {
        double s = score + row[v];
        double found = v == EOS ? s / pow(n_pieces + 1, normalize)
                                : best_of_all(toy, v, n_pieces + 1, s, limit, normalize);
        best = found > best ? found : best;
    }
    return best;
}

/* ---- tests ---- */

static void test_greedy(void)
{
    int wrong = 0, limited = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct toy toy = random_toy(seed, 2 + (int)(seed % 7), seed % 2 ? 2 : 0);
        struct beam beam = search_toy(&toy, 1, 1, 1, 12);
        int pieces[12], token = START, i = 0;
        float scores[12];
        beam_pieces(&beam, &beam.ended[0], pieces, scores);
        double sum = 0;
        for (; i < beam.ended[0].n_pieces; i++) {
            const float *row = toy_row(&toy, token);
            token = 0;
            for (int v = 1; v < toy.v; v++)
                if (row[v] > row[token])
                    token = v;
            wrong += pieces[i] != token || scores[i] != row[token];
            sum += row[token];
        }
        wrong += beam.n_ended != 1 || sum != beam.ended[0].score || (token == EOS) == beam.ended[0].limited;
        wrong += beam.ended[0].normalized_score != sum / beam.ended[0].n_pieces || (token != EOS && i != 12);
        limited += beam.ended[0].limited;
        arena_reset(&arena, 0);
    }
    CHECK_INT(wrong, 0, "size 1 takes the best token at each step, the smallest of equal ones");
    CHECK(limited > 0 && limited < 200, "%d of 200 greedy searches met the limit", limited);
}

/* With room for every hypothesis the best sentence of all is found. */
static void test_exhaustive(void)
{
    int wrong = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct toy toy = random_toy(1000 + seed, 4, seed % 3 == 0 ? 2 : 0);
        double normalize = (double)(seed % 4) * 0.5;
        struct beam beam = search_toy(&toy, 4 * 4 * 4 * 4 * 4, 1, normalize, 5);
        double best = best_of_all(&toy, START, 0, 0, 5, normalize);
        wrong += beam.ended[0].limited || fabs(beam.ended[0].normalized_score - best) > 1e-12;
        arena_reset(&arena, 0);
    }
    CHECK_INT(wrong, 0, "a beam with room for all finds the best of all sentences");
}

/* Stopping early changes nothing among the n_best. With n_best = size there is no early stop. */
static void test_early_stop(void)
{
    int wrong = 0, earlier = 0, disordered = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct toy toy = random_toy(2000 + seed, 3 + (int)(seed % 6), seed % 5 == 0 ? 2 : 0);
        int size = 1 + (int)(seed % 9);
        double normalize = (double)(seed % 3) * 0.6;
        struct beam full = search_toy(&toy, size, size, normalize, 20);
        for (int n_best = 1; n_best <= size; n_best++) {
            struct beam beam = search_toy(&toy, size, n_best, normalize, 20);
            earlier += beam.n_nodes < full.n_nodes;
            wrong += beam.n_ended < n_best;
            for (int i = 0; i < n_best && beam.n_ended >= n_best; i++)
                wrong += !same_ending(&full, &beam, i);
        }
        wrong += full.n_ended != size;
        for (int i = 1; i < full.n_ended; i++) {
            const struct beam_ending *a = &full.ended[i - 1], *b = &full.ended[i];
            disordered += a->limited > b->limited ||
                          (a->limited == b->limited && a->normalized_score < b->normalized_score);
        }
        arena_reset(&arena, 0);
    }
    CHECK_INT(wrong, 0, "the n_best do not depend on n_best");
    CHECK_INT(disordered, 0, "ended hypotheses are in order, limited ones last");
    CHECK(earlier > 100, "%d searches stopped early", earlier);
}

static void test_ties(void)
{
    struct beam beam = new_beam(3, 1, 0, 9);
    beam_step(&beam, (struct beam_candidate[]){ { 4, -1 }, { 5, -1 }, { 6, -2 } });
    CHECK(beam_token(&beam, 0) == 4 && beam_token(&beam, 1) == 5 && beam_token(&beam, 2) == 6,
          "live ones are in order");
    /* -3 four times: twice from the first hypothesis, once from each other */
    beam_step(&beam, (struct beam_candidate[]){ { 1, -2 },
                                                { 3, -2 },
                                                { 9, -7 },
                                                { 2, -2 },
                                                { 9, -7 },
                                                { 9, -7 },
                                                { 7, -1 },
                                                { 9, -7 },
                                                { 9, -7 } });
    CHECK(beam_token(&beam, 0) == 1 && beam_token(&beam, 1) == 3 && beam_token(&beam, 2) == 2,
          "of equal scores the earlier hypothesis wins, then the smaller token");
    /* Equal normalised scores: the one that ended first ranks first. */
    beam_step(&beam, (struct beam_candidate[]){ { EOS, 0 },
                                                { -1, 0 },
                                                { -1, 0 },
                                                { 8, 0 },
                                                { -1, 0 },
                                                { -1, 0 },
                                                { -1, 0 },
                                                { -1, 0 },
                                                { -1, 0 } });
    CHECK(beam.n_live == 0 && beam.n_ended == 1, "a live one that can only draw level does not go on");
    arena_reset(&arena, 0);
}

static void test_narrowing(void)
{
    struct beam beam = new_beam(3, 3, 1, 9);
    beam_step(&beam, (struct beam_candidate[]){ { 4, -1 }, { EOS, -1.5f }, { 6, -2 } });
    CHECK(beam.n_live == 2 && beam.n_ended == 1, "an ended hypothesis takes a place");
    beam_step(&beam, (struct beam_candidate[]){
                         { EOS, -2 }, { 1, -9 }, { 2, -9 }, { 1, -0.5f }, { 3, -5 }, { 2, -9 } });
    CHECK(beam.n_live == 1 && beam.n_ended == 2 && beam_token(&beam, 0) == 1, "two leave room for one");
    CHECK(beam.ended[0].n_pieces == 1 && beam.ended[0].normalized_score == -1.5 &&
              beam.ended[1].n_pieces == 2 && beam.ended[1].normalized_score == -1.5 &&
              beam.ended[1].score == -3,
          "scores are divided by the length, </s> included; equal ones stay in the order of ending");
    beam_step(&beam, (struct beam_candidate[]){ { EOS, -0.25f }, { 1, -9 }, { 2, -9 } });
    int pieces[3];
    float scores[3];
    beam_pieces(&beam, &beam.ended[0], pieces, scores);
    CHECK(beam.n_live == 0 && beam.n_ended == 3 && beam.ended[0].n_pieces == 3, "the last one may win");
    CHECK(pieces[0] == 6 && pieces[1] == 1 && pieces[2] == EOS, "pieces are those of its own history");
    CHECK(scores[0] == -2 && scores[1] == -0.5f && scores[2] == -0.25f, "and so are their scores");
    arena_reset(&arena, 0);
}

static void test_rows(void)
{
    struct beam beam = new_beam(2, 2, 1, 9);
    int rows[3];
    beam_rows(&beam, 0, 10, rows);
    CHECK_INT(rows[0], 10, "the start symbol's row");
    beam_step(&beam, (struct beam_candidate[]){ { 4, -1 }, { 5, -2 } });
    beam_rows(&beam, 0, 20, rows);
    CHECK(rows[0] == 10 && rows[1] == 20, "the first hypothesis' rows");
    beam_rows(&beam, 1, 21, rows);
    CHECK(rows[0] == 10 && rows[1] == 21, "the second's");
    beam_step(&beam, (struct beam_candidate[]){ { 6, -9 }, { 7, -9 }, { 6, -1 }, { 7, -2 } });
    beam_rows(&beam, 0, 30, rows);
    CHECK(rows[0] == 10 && rows[1] == 21 && rows[2] == 30, "rows follow a hypothesis that overtakes");
    beam_rows(&beam, 1, 31, rows);
    CHECK(rows[0] == 10 && rows[1] == 21 && rows[2] == 31, "two hypotheses share their past");
    arena_reset(&arena, 0);
}

static void test_limit(void)
{
    struct beam beam = new_beam(2, 1, 1, 2);
    beam_step(&beam, (struct beam_candidate[]){ { EOS, -8 }, { 5, -0.5f } });
    beam_step(&beam, (struct beam_candidate[]){ { 5, 0 }, { 6, -9 } });
    CHECK(beam.n_live == 0 && beam.n_ended == 2, "at the limit the search is over");
    CHECK(!beam.ended[0].limited && beam.ended[0].score == -8,
          "a hypothesis that ended ranks before one that was cut");
    CHECK(beam.ended[1].limited && beam.ended[1].n_pieces == 2 && beam.ended[1].normalized_score == -0.25,
          "the cut one has its score");
    arena_reset(&arena, 0);

    beam = new_beam(2, 1, 1, 5);
    beam_step(&beam, (struct beam_candidate[]){ { -1, 0 }, { -1, 0 } });
    CHECK(beam.n_live == 0 && beam.n_ended == 1 && beam.ended[0].n_pieces == 0 && beam.ended[0].limited &&
              beam.ended[0].normalized_score == 0,
          "without any candidate the hypothesis ends as it is");
    arena_reset(&arena, 0);
}

int main(void)
{
    struct tfm_error err;
    if (!CHECK(arena_init(&arena, (size_t)1 << 30, &err) == TFM_OK, "arena"))
        return check_done();
    test_greedy();
    test_exhaustive();
    test_early_stop();
    test_ties();
    test_narrowing();
    test_rows();
    test_limit();
    arena_release(&arena);
    return check_done();
}
