/*
 * scores_test.c: candidates that are found part by part are those of all logits at once, sorted: sizes around those of
 * the parts and of the rows that are scored together, equal logits in several parts, forced, wanted and barred tokens,
 * punished repetitions, an ensemble, lists; every tier gives the reference's bits; drawn tokens see all logits.
 */
#include "decode/scores.h"

#include "base/rng.h"
#include "check.h"

enum {
    D = 24,
    MOST_V = 1100, /* three parts */
    MOST_ROWS = 300,
    MOST_MEMBERS = 2,
    BEST = 6,
    WANTED = 2,
    WIDTH = BEST + WANTED,
    STEP = 3
};

static real w[MOST_MEMBERS][(MOST_V + KERN_PANEL) * D], bias[MOST_MEMBERS][MOST_V],
    hidden[MOST_MEMBERS][MOST_ROWS * D];
static struct linear unembed[MOST_MEMBERS];
static real packed[MOST_MEMBERS][(MOST_V + KERN_PANEL) * D];
static struct beam_candidate found[MOST_ROWS * WIDTH], expected[MOST_ROWS * WIDTH];
static struct candidate_row rows[MOST_ROWS];
static int history[STEP];
static bool barred[2 * MOST_V];
static struct arena arena;
static int n_kept; /* times that memory was not given back */
static const struct config config = {
    .vocab_size = MOST_V, .unk_token_id = 1, .decoder_start_token_id = 0, .eos_token_id = 0
};

static void fill(real *x, size_t n, uint64_t key)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = (real)rng_normal(rng_key(key, i, 0, 0));
}

/* Members whose tokens t, t + 7, t + 550, ... have the same weights now and then: equal logits in one part and in two. */
static void make_members(int v, int n_rows)
{
    for (int m = 0; m < MOST_MEMBERS; m++) {
        fill(w[m], (size_t)v * D, (uint64_t)m + 1);
        fill(bias[m], (size_t)v, (uint64_t)m + 10);
        fill(hidden[m], (size_t)n_rows * D, (uint64_t)m + 20);
        for (int t = 0; t + 557 < v; t += 5) {
            memcpy(w[m] + (t + 7) * D, w[m] + t * D, sizeof(real) * D);
            memcpy(w[m] + (t + 557) * D, w[m] + t * D, sizeof(real) * D);
            bias[m][t + 7] = bias[m][t + 557] = bias[m][t];
        }
        memset(packed[m], 0, sizeof(packed[m]));
        linear_pack(packed[m], w[m], v, D);
        unembed[m] = (struct linear){ .out = v, .in = D, .packed = packed[m], .b = bias[m] };
    }
}

struct trial {
    int v, n_rows, n_members;
    bool lists; /* the logits are of tokens 2 i + 1 */
    struct candidate_options options;
};

static const float weights[MOST_MEMBERS] = { 0.75f, 0.25f };
static int list[MOST_V];

/* Rows of every kind: forced, with wanted tokens, with barred ones, late. */
static void make_rows(const struct trial *t)
{
    static int wanted[MOST_ROWS][WANTED];
    for (int i = 0; i < t->v; i++)
        list[i] = 2 * i + 1;
    for (int i = 0; i < 2 * MOST_V; i++)
        barred[i] = i % 3 == 1;
    for (int i = 0; i < STEP; i++)
        history[i] = t->lists ? list[i * t->v / STEP] : i * t->v / STEP;
    for (int i = 0; i < t->n_rows; i++) {
        rows[i] = (struct candidate_row){
            .step = STEP, .history = history, .forced = -1, .n = BEST, .width = WIDTH
        };
        rows[i].found = found + (size_t)i * WIDTH;
        rows[i].tokens = t->lists ? list : NULL;
        rows[i].n_tokens = t->lists ? t->v : 0;
        rows[i].n_draws = BEST;
        rows[i].key = rng_key(5, (uint64_t)i, 0, 0);
        int some = i * 37 % t->v, other = (i * 91 + t->v / 2) % t->v;
        if (i % 5 == 1)
            rows[i].forced = t->lists ? list[some] : some;
        if (i % 5 >= 3) {
            wanted[i][0] = t->lists ? list[some] : some;
            wanted[i][1] = t->lists ? list[other] : other;
            rows[i].wanted = wanted[i];
            rows[i].n_wanted = some == other ? 1 : WANTED;
            rows[i].is_unfinished = true;
        }
        rows[i].barred = i % 5 == 4 ? barred : NULL;
        rows[i].is_late = i % 10 == 8;
    }
}

static void find(const struct trial *t, const struct kern *kern)
{
    struct scores_member members[MOST_MEMBERS];
    for (int m = 0; m < t->n_members; m++)
        members[m] = (struct scores_member){ &unembed[m], hidden[m] };
    struct run run = { .arena = &arena, .kern = kern };
    size_t mark = arena_mark(&arena);
    memset(found, 0, sizeof(found));
    scores_find(rows, t->n_rows, members, t->n_members, weights, &t->options, &config, &run);
    n_kept += arena_mark(&arena) != mark;
}

/* ---- the same, all logits at once ---- */

static double log_sum(const double *x, int n)
{
    double most = x[0], sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* Mixed log-probabilities of all tokens of a row. */
static void log_probabilities(double *p, const struct trial *t, int row)
{
    static double x[MOST_V];
    for (int m = 0; m < t->n_members; m++) {
        for (int i = 0; i < t->v; i++) {
            x[i] = (double)bias[m][i];
            for (int j = 0; j < D; j++)
                x[i] += (double)w[m][i * D + j] * (double)hidden[m][row * D + j];
        }
        for (int i = 0; i < t->v && t->options.repetition_penalty != 1; i++)
            for (int h = 0; h < STEP; h++)
                if (history[h] == (t->lists ? list[i] : i))
                    x[i] = x[i] > 0 ? x[i] / t->options.repetition_penalty
                                    : x[i] * t->options.repetition_penalty;
        double sum = log_sum(x, t->v);
        for (int i = 0; i < t->v; i++)
            p[i] = (m > 0 ? p[i] : 0) + (t->n_members > 1 ? (double)weights[m] : 1) * (x[i] - sum);
    }
}

static bool is_allowed(const struct candidate_row *row, int token)
{
    return token != 1 && !(token == 0 && row->is_unfinished) && !(row->barred && row->barred[token]);
}

/* How far what was found in a row is from what should be: its scores' largest error, or 1e9 for other tokens. Where
 * several tokens are equally good to 1e-6, any of them will do. */
static double row_error(const struct trial *t, int i)
{
    static double p[MOST_V];
    static bool taken[2 * MOST_V];
    const struct candidate_row *row = &rows[i];
    double worst = 0;
    log_probabilities(p, t, i);
    memset(taken, 0, sizeof(taken));
    int n = row->is_late ? 0 : BEST, k = 0;
    for (; k < WIDTH && row->found[k].token >= 0; k++) {
        int token = row->found[k].token, place = t->lists ? token / 2 : token;
        double best = -INFINITY;
        for (int j = 0; j < t->v; j++) {
            int other = t->lists ? list[j] : j;
            if (!taken[other] && is_allowed(row, other))
                best = fmax(best, p[j]);
        }
        bool is_wanted = false;
        for (int j = 0; j < row->n_wanted; j++)
            is_wanted |= row->wanted[j] == token;
        if (taken[token] || place >= t->v || (row->forced >= 0 && token != row->forced))
            return 1e9;
        if (row->forced < 0 && k < n && (p[place] < best - 1e-6 || !is_allowed(row, token)))
            return 1e9;
        if (row->forced < 0 && k >= n && !is_wanted)
            return 1e9;
        taken[token] = true;
        worst = check_worse(worst, fabs((double)row->found[k].score - p[place]));
    }
    for (int j = 0; j < row->n_wanted && row->forced < 0; j++)
        if (!taken[row->wanted[j]])
            return 1e9;
    return row->forced >= 0 ? (k == 1 ? worst : 1e9) : k >= n ? worst : 1e9;
}

static void check_trial(const struct trial *t)
{
    make_members(t->v, t->n_rows);
    make_rows(t);
    find(t, &kern_ref);
    double worst = 0;
    int unordered = 0;
    for (int i = 0; i < t->n_rows; i++) {
        worst = check_worse(worst, row_error(t, i));
        for (int k = 1; k < (rows[i].is_late || rows[i].forced >= 0 ? 0 : BEST); k++) {
            const struct beam_candidate *a = &rows[i].found[k - 1], *b = &rows[i].found[k];
            unordered += !(a->score > b->score || (a->score == b->score && a->token < b->token));
        }
    }
    CHECK(worst < 1e-5, "%d tokens%s, %d rows, %d members: the best of all logits (%.1e)", t->v,
          t->lists ? " of a list" : "", t->n_rows, t->n_members, worst);
    CHECK_INT(unordered, 0, "best first, the smaller of equal ones first");
    memcpy(expected, found, sizeof(found));
    for (int tier = CPU_AVX2; tier <= (int)cpu_best(); tier++) {
        find(t, kern_for((enum cpu_tier)tier));
        CHECK(memcmp(found, expected, sizeof(found)) == 0, "%s: the reference's bits",
              cpu_tier_name((enum cpu_tier)tier));
    }
}

/* A row's candidates do not depend on the rows beside it. */
static void test_alone(void)
{
    struct trial t = { MOST_V, MOST_ROWS, 1, false, { .n = BEST, .repetition_penalty = 1 } };
    make_members(t.v, t.n_rows);
    make_rows(&t);
    find(&t, kern_for(cpu_best()));
    memcpy(expected, found, sizeof(found));
    int wrong = 0;
    for (int i = 0; i < MOST_ROWS; i += 13) {
        struct scores_member member = { &unembed[0], hidden[0] + (size_t)i * D };
        struct run run = { .arena = &arena, .kern = kern_for(cpu_best()) };
        scores_find(&rows[i], 1, &member, 1, weights, &t.options, &config, &run);
        wrong += memcmp(&found[i * WIDTH], &expected[i * WIDTH], WIDTH * sizeof(*found)) != 0;
    }
    CHECK_INT(wrong, 0, "a row alone has the candidates that it has among others");
}

static void test_draws(void)
{
    struct trial t = { MOST_V, 40, 1, false, { .n = BEST, .repetition_penalty = 1 } };
    t.options.draw = (struct draw_options){ .kind = TFM_SAMPLING_TOPK, .top_k = 3, .temperature = 1 };
    make_members(t.v, t.n_rows);
    make_rows(&t);
    for (int i = 0; i < t.n_rows; i++)
        rows[i].forced = -1, rows[i].n_wanted = 0, rows[i].barred = NULL;
    find(&t, &kern_ref);
    int strange = 0, later_parts = 0;
    static double p[MOST_V];
    for (int i = 0; i < t.n_rows; i++) {
        log_probabilities(p, &t, i);
        for (int k = 0; k < BEST; k++) {
            int token = rows[i].found[k].token, better = 0;
            for (int j = 0; j < t.v; j++)
                better += is_allowed(&rows[i], j) && p[j] > p[token] + 1e-6;
            strange += better >= 3 || fabs(p[token] - (double)rows[i].found[k].score) > 1e-5;
            later_parts += token >= 600;
        }
    }
    CHECK(strange == 0 && later_parts > 0,
          "draws are from the best of all logits: %d are not, %d from the second half", strange, later_parts);
}

int main(void)
{
    struct tfm_error err;
    if (arena_init(&arena, (size_t)16 << 20, &err) != TFM_OK)
        return 1;
    static const int sizes[][2] = {
        { 12, 3 }, { 511, 20 }, { 512, 257 }, { 513, 256 }, { MOST_V, MOST_ROWS }
    };
    for (int i = 0; i < 5; i++)
        for (int members = 1; members <= MOST_MEMBERS; members++)
            for (int lists = 0; lists < 2; lists++) {
                struct trial t = {
                    sizes[i][0], sizes[i][1], members, lists, { .n = BEST, .repetition_penalty = 1 }
                };
                t.options.repetition_penalty = i % 2 ? 1.3 : 1;
                check_trial(&t);
            }
    test_alone();
    test_draws();
    CHECK_INT(n_kept, 0, "memory is given back");
    arena_release(&arena);
    return check_done();
}
