/*
 * terms_test.c: the state of a hypothesis that has to hold terms, and beams that share their room in banks.
 */
#include "check.h"
#include "decode/beam.h"

enum {
    EOS = 0,
    MARK = 9,
    V = 20
};

static const bool ends_word[V] = { [MARK] = true }, goes_on[V] = { [7] = true };
static const int one[] = { 3, 4 }, longer[] = { 3, 4, 5 }, other[] = { 3, 6 }, twin[] = { 5, 5, 6 },
                 single[] = { 8 }, bare[] = { 7, 4 };

static struct terms_state walk(const struct terms *terms, const int *pieces, int n)
{
    struct terms_state state = { 0 };
    for (int i = 0; i < n; i++)
        state = terms_next(terms, &state, pieces[i], NULL);
    return state;
}

#define WALK(terms, ...) \
    walk((terms), (const int[]){ __VA_ARGS__ }, (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

static void check_wanted(const struct terms *terms, struct terms_state state, const char *expected,
                         const char *name)
{
    int pieces[2 * TERMS_PIECES], n = terms_wanted(pieces, terms, &state);
    char text[200] = "";
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "", pieces[i]);
    CHECK_STR(text, expected, "%s", name);
}

static void test_states(void)
{
    struct term a = { .pieces = one, .n = 2 }, b = { .pieces = other, .n = 2 },
                c = { .pieces = twin, .n = 3 }, d = { .pieces = single, .n = 1 };
    const struct term *list[] = { &a, &b, &c, &d, &d };
    struct terms terms = { .list = list, .n = 5, .n_pieces = 9, .ends_word = ends_word, .goes_on = goes_on };
    struct terms_state state = { 0 };
    check_wanted(&terms, state, "3 5 8", "at the begin each first piece is wanted, once");
    state = WALK(&terms, 1, 3);
    check_wanted(&terms, state, "4 6", "inside a term what goes on with any that begins so");
    CHECK(terms_progress(&state) == 1 && terms_missing(&terms, &state) == 5, "one piece is there, no term");
    state = WALK(&terms, 3, 4, 3, 6);
    CHECK(terms_progress(&state) == 4 && terms_missing(&terms, &state) == 3, "two terms are met");
    state = WALK(&terms, 3, 4, 3, 1);
    CHECK(terms_progress(&state) == 2 && state.done == 0, "what does not go on is lost");
    state = WALK(&terms, 5, 5, 5, 6);
    CHECK_INT(terms_progress(&state), 3, "a term is found behind its own begin");
    state = WALK(&terms, 5, 5, 8);
    CHECK_INT(terms_progress(&state), 1, "another term breaks one off");
    state = WALK(&terms, 8);
    CHECK_INT(terms_missing(&terms, &state), 4, "a term that is wanted twice is met once by one of it");
    state = WALK(&terms, 8, 1, 8, 8);
    CHECK_INT(terms_missing(&terms, &state), 3, "and twice by two, but not more often");
    CHECK(WALK(&terms, 8).is_closed && !WALK(&terms, 8, 1).is_closed,
          "its last word is closed just behind it");
    state = WALK(&terms, 3, 4, 3, 6, 5, 5, 6, 8, 8);
    CHECK_INT(terms_missing(&terms, &state), 0, "all terms are met");
    check_wanted(&terms, state, "", "nothing more is wanted");
}

static void test_overlaps(void)
{
    struct term a = { .pieces = one, .n = 2 }, b = { .pieces = longer, .n = 3 };
    const struct term *list[] = { &a, &b };
    struct terms terms = { .list = list, .n = 2, .n_pieces = 5, .ends_word = ends_word, .goes_on = goes_on };
    struct terms_state state = WALK(&terms, 3, 4, 5);
    CHECK(terms_missing(&terms, &state) == 1 && terms_progress(&state) == 2,
          "the shorter of two is met first");
    state = WALK(&terms, 3, 4, 5, 3, 4, 5);
    CHECK_INT(terms_missing(&terms, &state), 0, "and the longer one behind it");
}

static void test_bare(void)
{
    struct term a = { .pieces = one, .n = 2, .bare = bare, .n_bare = 2 };
    const struct term *list[] = { &a };
    struct terms terms = { .list = list, .n = 1, .n_pieces = 2, .ends_word = ends_word, .goes_on = goes_on };
    CHECK_INT(terms_missing(&terms, &(struct terms_state){ 0 }), 1, "one term");
    struct terms_state state = WALK(&terms, 1, 7, 4);
    CHECK_INT(terms_missing(&terms, &state), 1, "a bare form inside a word is none");
    state = WALK(&terms, 1, MARK);
    check_wanted(&terms, state, "3 7", "behind a mark both forms are wanted");
    state = WALK(&terms, 1, MARK, 7);
    check_wanted(&terms, state, "4", "and the one that was begun goes on");
    state = WALK(&terms, 1, MARK, 7, 4);
    CHECK_INT(terms_missing(&terms, &state), 0, "a bare form behind a mark is met");
}

static void test_bias(void)
{
    struct term a = { .pieces = one, .n = 2 }, b = { .pieces = single, .n = 1 };
    const struct term *list[] = { &a, &b };
    struct terms terms = { .list = list, .n = 2, .n_pieces = 3, .ends_word = ends_word, .goes_on = goes_on };
    struct terms_state state = { 0 };
    state = terms_next(&terms, &state, 3, (const float[]){ 0.5f, 1 });
    CHECK(state.bias == 0 && state.pending < 0, "a term that is begun is weighed");
    struct terms_state lost = terms_next(&terms, &state, 1, (const float[]){ 0.1f, 0.1f });
    CHECK(lost.bias == 0 && lost.pending == 0, "one that is broken off is not");
    double pending = state.pending;
    state = terms_next(&terms, &state, 4, (const float[]){ 0.1f, 0.1f });
    CHECK(state.bias == pending && state.pending == 0, "one that is met stays weighed as at its begin");
    state = terms_next(&terms, &state, 8, (const float[]){ 0.1f, 0.5f });
    CHECK_NEAR(state.bias, 2 * pending, 1e-9, "terms of one piece are weighed, too");
}

/* ---- beams ---- */

static struct arena arena;

/* A beam of one term, the single piece 8, and one place for all else. */
static void start(struct beam *beam, const struct terms *terms, int size, int limit)
{
    struct beam_options options = { .size = size, .n_best = 1, .normalize = 1, .eos = EOS, .terms = terms };
    size_t before = arena_mark(&arena);
    beam_init(beam, &options, EOS, limit, &arena);
    CHECK(arena_mark(&arena) - before <= beam_bytes(size, limit, terms), "beam_bytes is enough");
}

static void test_banks(void)
{
    struct term a = { .pieces = single, .n = 1 };
    const struct term *list[] = { &a };
    struct terms terms = { .list = list, .n = 1, .n_pieces = 1, .ends_word = ends_word, .goes_on = goes_on };
    CHECK_INT(beam_width(2, &terms), 4, "a row has the best and what terms want");
    struct beam beam;
    start(&beam, &terms, 2, 4);
    beam_step(&beam, (struct beam_candidate[]){ { 1, -1 }, { 2, -2 }, { 8, -9 }, { -1, 0 } });
    CHECK(beam.n_live == 2 && beam_token(&beam, 0) == 1 && beam_token(&beam, 1) == 8,
          "the term has a place of its own, though others are better");
    beam.weights[0] = 0.001f;
    beam_step(
        &beam,
        (struct beam_candidate[]){
            { 1, -1 }, { 2, -1.5f }, { 8, -1 }, { -1, 0 }, { 3, -1 }, { EOS, -2 }, { -1, 0 }, { -1, 0 } });
    CHECK(beam.n_live == 2 && beam_token(&beam, 0) == 1 && beam_token(&beam, 1) == 3,
          "a term that is begun at a wrong place ranks behind one with a worse score");
    beam_step(
        &beam,
        (struct beam_candidate[]){
            { 1, -1 }, { 2, -1.5f }, { 8, -20 }, { -1, 0 }, { EOS, -1 }, { 1, -2 }, { -1, 0 }, { -1, 0 } });
    CHECK(beam.n_live == 0 && beam.n_ended == 1 && beam.ended[0].n_missing == 0,
          "the search is over when all that remains is the term's place");
    CHECK_NEAR(beam.ended[0].score, -11, 1e-6, "a score is the sum of its pieces' scores");

    start(&beam, &terms, 2, 1);
    beam_step(&beam, (struct beam_candidate[]){ { 1, -1 }, { 2, -2 }, { 8, -9 }, { -1, 0 } });
    CHECK(beam.n_live == 0 && beam.n_ended == 2 && beam.ended[0].limited && beam.ended[0].n_missing == 0 &&
              beam.ended[1].n_missing == 1,
          "of those that the limit ends the one with more terms is the best");
    arena_reset(&arena, 0);
}

int main(void)
{
    struct tfm_error err;
    if (!CHECK(arena_init(&arena, (size_t)1 << 24, &err) == TFM_OK, "arena"))
        return check_done();
    test_states();
    test_overlaps();
    test_bare();
    test_bias();
    test_banks();
    arena_release(&arena);
    return check_done();
}
