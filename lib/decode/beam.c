/*
 * beam.c: the beam of one sentence; the rule is told in beam.h. Its place on the sentence's way: search.c
 * feeds the tokens of the live hypotheses to the decoder, makes candidates of the logits and calls
 * beam_step.
 *
 * The history is a tree of nodes that point to their parents. Nothing is copied when hypotheses branch or
 * change places: pieces, scores and cache rows of a hypothesis are found by walking from its last node to
 * the start symbol. Scores are summed in double, in the order of the pieces, so they depend on nothing but
 * the hypothesis itself.
 */
#include "decode/beam.h"

#include <assert.h>
#include <math.h>
#include <string.h>

struct beam_choice {
    int parent; /* node */
    int token;
    float token_score;
    int option; /* with terms: that it was */
    double score;
};

struct beam_option {
    struct beam_choice choice;
    struct terms_state state;
    double rank; /* score and bias */
    int bank;    /* -1: chosen already */
};

int beam_width(int size, const struct terms *terms)
{
    return terms != NULL ? size + 2 * terms->n : size;
}

size_t beam_bytes(int size, int limit, const struct terms *terms)
{
    size_t hypotheses = (size_t)size;
    size_t options = terms != NULL ? hypotheses * (size_t)beam_width(size, terms) : 0;
    size_t weights = terms != NULL ? hypotheses * (size_t)terms->n : 0;
    return hypotheses * (sizeof(struct beam_hypothesis) + sizeof(struct beam_ending) +
                         sizeof(struct beam_choice) + sizeof(struct terms_state)) +
           options * sizeof(struct beam_option) + weights * sizeof(float) +
           (1 + hypotheses * (size_t)limit) * sizeof(struct beam_node) + (size_t)7 * 64;
}

static int add_node(struct beam *beam, int parent, int token, float score)
{
    beam->nodes[beam->n_nodes] =
        (struct beam_node){ .parent = parent, .token = token, .row = -1, .score = score };
    return beam->n_nodes++;
}

void beam_init(struct beam *beam, const struct beam_options *options, int start_token, int limit,
               struct arena *arena)
{
    assert(options->size >= 1 && options->n_best >= 1 && options->n_best <= options->size);
    assert(options->normalize >= 0 && limit >= 1);
    *beam = (struct beam){ .options = *options, .limit = limit };
    beam->limit_norm = pow(limit, options->normalize);
    beam->live = ARENA_TAKE(arena, struct beam_hypothesis, options->size);
    beam->ended = ARENA_TAKE(arena, struct beam_ending, options->size);
    beam->nodes = ARENA_TAKE(arena, struct beam_node, 1 + (size_t)options->size * (size_t)limit);
    beam->chosen = ARENA_TAKE(arena, struct beam_choice, options->size);
    beam->live[0] = (struct beam_hypothesis){ .node = add_node(beam, -1, start_token, 0), .score = 0 };
    beam->n_live = 1;
    if (options->terms == NULL)
        return;
    assert(options->size > terms_places(options->terms->n_pieces) &&
           options->terms->n_pieces <= TERMS_PIECES);
    beam->states = ARENA_TAKE(arena, struct terms_state, options->size);
    beam->weighed = ARENA_TAKE(arena, struct beam_option,
                               (size_t)options->size * (size_t)beam_width(options->size, options->terms));
    beam->states[0] = (struct terms_state){ 0 };
    beam->weights = ARENA_TAKE(arena, float, options->size * options->terms->n);
    for (int i = 0; i < options->size * options->terms->n; i++)
        beam->weights[i] = 1;
}

int beam_token(const struct beam *beam, int h)
{
    assert(h >= 0 && h < beam->n_live);
    return beam->nodes[beam->live[h].node].token;
}

void beam_rows(struct beam *beam, int h, int row, int *rows)
{
    assert(h >= 0 && h < beam->n_live);
    int node = beam->live[h].node;
    beam->nodes[node].row = row;
    for (int i = beam->step; i >= 0; i--) {
        rows[i] = beam->nodes[node].row;
        node = beam->nodes[node].parent;
    }
}

void beam_history(const struct beam *beam, int h, int *history)
{
    assert(h >= 0 && h < beam->n_live);
    int node = beam->live[h].node;
    for (int i = beam->step - 1; i >= 0; i--) {
        history[i] = beam->nodes[node].token;
        node = beam->nodes[node].parent;
    }
}

/* The best `room` continuations of all live hypotheses, best first. Returns how many there are. */
static int choose(struct beam *beam, const struct beam_candidate *candidates, int room)
{
    int n = 0;
    for (int h = 0; h < beam->n_live; h++) {
        const struct beam_candidate *candidate = candidates + (size_t)h * (size_t)beam->options.size;
        for (int c = 0; c < beam->options.size && candidate[c].token >= 0; c++) {
            double score = beam->live[h].score + candidate[c].score;
            /* An equal one stays in front: it is of an earlier hypothesis, or a smaller token. */
            int at = n;
            while (at > 0 && score > beam->chosen[at - 1].score)
                at--;
            if (at == room)
                break; /* the rest of this hypothesis is worse still */
            if (n < room)
                n++;
            memmove(beam->chosen + at + 1, beam->chosen + at, (size_t)(n - 1 - at) * sizeof(*beam->chosen));
            beam->chosen[at] = (struct beam_choice){ .parent = beam->live[h].node,
                                                     .token = candidate[c].token,
                                                     .token_score = candidate[c].score,
                                                     .score = score };
        }
    }
    return n;
}

/* ---- with terms ---- */

/* All continuations of all live hypotheses, with what they have of the terms. Returns how many there are. */
static int weigh(struct beam *beam, const struct beam_candidate *candidates)
{
    const struct terms *terms = beam->options.terms;
    int width = beam_width(beam->options.size, terms), n = 0;
    for (int h = 0; h < beam->n_live; h++) {
        const struct beam_candidate *candidate = candidates + (size_t)h * (size_t)width;
        for (int c = 0; c < width && candidate[c].token >= 0; c++) {
            struct beam_option *option = &beam->weighed[n];
            option->choice = (struct beam_choice){ .parent = beam->live[h].node,
                                                   .token = candidate[c].token,
                                                   .token_score = candidate[c].score,
                                                   .option = n++,
                                                   .score = beam->live[h].score + candidate[c].score };
            option->state = terms_next(terms, &beam->states[h], candidate[c].token,
                                       beam->weights + (size_t)h * (size_t)terms->n);
            option->rank = option->choice.score + option->state.bias + option->state.pending;
            option->bank = terms_progress(&option->state);
        }
    }
    return n;
}

/* The best option of a bank (-1: of all banks) that is not chosen, the first of equal ones; or NULL. */
static struct beam_option *best_of(struct beam *beam, int n_options, int bank)
{
    struct beam_option *best = NULL;
    for (int i = 0; i < n_options; i++) {
        struct beam_option *option = &beam->weighed[i];
        if ((bank < 0 ? option->bank >= 0 : option->bank == bank) &&
            (best == NULL || option->rank > best->rank))
            best = option;
    }
    return best;
}

/* How many of `room` places a bank gets; all banks alike, the last what is over. Where there are more
 * banks than places it is those that hold something, n_filled of them, and one each at least: the fullest
 * come first. */
static int bank_share(const struct beam *beam, int bank, bool is_filled, int n_filled, int room)
{
    int n_banks = beam->options.terms->n_pieces + 1;
    if (n_banks > TERMS_PLACES + 1)
        return !is_filled ? 0 : n_filled < room ? room / n_filled : 1;
    return bank == n_banks - 1 ? room / n_banks + room % n_banks : room / n_banks;
}

/* What `choose` does, bank by bank. */
static int choose_by_banks(struct beam *beam, const struct beam_candidate *candidates, int room)
{
    int n_banks = beam->options.terms->n_pieces + 1, n_options = weigh(beam, candidates), n = 0;
    int n_filled = 0;
    bool is_filled[TERMS_PIECES + 1] = { false };
    for (int i = 0; i < n_options; i++) {
        n_filled += !is_filled[beam->weighed[i].bank];
        is_filled[beam->weighed[i].bank] = true;
    }
    for (int bank = n_banks - 1; bank >= -1 && n < room; bank--) {
        int share = bank < 0 ? room - n : bank_share(beam, bank, is_filled[bank], n_filled, room);
        struct beam_option *option;
        for (; share > 0 && n < room && (option = best_of(beam, n_options, bank)) != NULL; share--) {
            int at = n++;
            for (; at > 0 && option->rank > beam->weighed[beam->chosen[at - 1].option].rank; at--)
                beam->chosen[at] = beam->chosen[at - 1];
            beam->chosen[at] = option->choice;
            option->bank = -1;
        }
    }
    return n;
}

/* ---- endings ---- */

/* Whether ending a ranks before ending b, which came later. */
static bool ranks_before(const struct beam_ending *a, const struct beam_ending *b)
{
    if (a->limited != b->limited)
        return b->limited;
    return a->n_missing != b->n_missing ? a->n_missing < b->n_missing : a->rank >= b->rank;
}

/* Ends a hypothesis: puts it behind all that rank higher or as high. */
static void end_hypothesis(struct beam *beam, int node, double score, bool limited,
                           const struct terms_state *state)
{
    int n_pieces = beam->step;
    struct beam_ending ending = { .node = node, .n_pieces = n_pieces, .score = score, .limited = limited };
    double norm = n_pieces > 0 ? pow(n_pieces, beam->options.normalize) : 1;
    ending.normalized_score = ending.rank = score / norm;
    if (state != NULL) {
        ending.rank += state->bias;
        ending.n_missing = terms_missing(beam->options.terms, state);
    }

    assert(beam->n_ended < beam->options.size);
    int at = beam->n_ended++;
    for (; at > 0; at--) {
        if (ranks_before(&beam->ended[at - 1], &ending))
            break;
        beam->ended[at] = beam->ended[at - 1];
    }
    beam->ended[at] = ending;
}

static void end_all(struct beam *beam)
{
    for (int h = 0; h < beam->n_live; h++)
        end_hypothesis(beam, beam->live[h].node, beam->live[h].score, true,
                       beam->states != NULL ? &beam->states[h] : NULL);
    beam->n_live = 0;
}

/* True when no live hypothesis can still come among the n_best: an equal score would rank behind. */
static bool is_settled(const struct beam *beam)
{
    int n_best = beam->options.n_best;
    if (beam->n_live == 0 || beam->n_ended < n_best)
        return false;
    double best = beam->live[0].score / beam->limit_norm;
    for (int h = 0; h < beam->n_live && beam->states != NULL; h++) {
        double rank = beam->live[h].score / beam->limit_norm + beam->states[h].bias;
        best = h == 0 || rank > best ? rank : best;
    }
    return best <= beam->ended[n_best - 1].rank;
}

void beam_step(struct beam *beam, const struct beam_candidate *candidates)
{
    assert(beam->n_live > 0 && beam->step < beam->limit);
    const struct terms *terms = beam->options.terms;
    int room = beam->options.size - beam->n_ended;
    int n = terms != NULL ? choose_by_banks(beam, candidates, room) : choose(beam, candidates, room);
    if (n == 0) { /* nothing may follow: only a broken model's scores (not numbers) bring this about */
        end_all(beam);
        return;
    }
    beam->step++;
    beam->n_live = 0;
    for (int i = 0; i < n; i++) {
        const struct beam_choice *choice = &beam->chosen[i];
        int node = add_node(beam, choice->parent, choice->token, choice->token_score);
        const struct terms_state *state = terms != NULL ? &beam->weighed[choice->option].state : NULL;
        if (choice->token == beam->options.eos) {
            end_hypothesis(beam, node, choice->score, false, state);
            continue;
        }
        if (state != NULL)
            beam->states[beam->n_live] = *state;
        beam->live[beam->n_live++] = (struct beam_hypothesis){ .node = node, .score = choice->score };
    }
    bool is_full = terms != NULL && beam->n_ended >= beam->options.size - terms_places(terms->n_pieces);
    if (beam->step == beam->limit)
        end_all(beam);
    else if (is_full || is_settled(beam))
        beam->n_live = 0;
}

void beam_pieces(const struct beam *beam, const struct beam_ending *ending, int *pieces, float *scores)
{
    int node = ending->node;
    for (int i = ending->n_pieces - 1; i >= 0; i--) {
        pieces[i] = beam->nodes[node].token;
        scores[i] = beam->nodes[node].score;
        node = beam->nodes[node].parent;
    }
}

void beam_nodes(const struct beam *beam, const struct beam_ending *ending, int *nodes)
{
    int node = ending->node;
    for (int i = ending->n_pieces - 1; i >= 0; i--)
        nodes[i] = node = beam->nodes[node].parent;
}
