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
    double score;
};

size_t beam_bytes(int size, int limit)
{
    size_t hypotheses = (size_t)size;
    return hypotheses *
               (sizeof(struct beam_hypothesis) + sizeof(struct beam_ending) + sizeof(struct beam_choice)) +
           (1 + hypotheses * (size_t)limit) * sizeof(struct beam_node) + (size_t)4 * 64;
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

/* Ends a hypothesis: puts it behind all that rank higher or as high. */
static void end_hypothesis(struct beam *beam, int node, double score, bool limited)
{
    int n_pieces = beam->step;
    struct beam_ending ending = { .node = node, .n_pieces = n_pieces, .score = score, .limited = limited };
    ending.normalized_score = n_pieces > 0 ? score / pow(n_pieces, beam->options.normalize) : score;

    assert(beam->n_ended < beam->options.size);
    int at = beam->n_ended++;
    for (; at > 0; at--) {
        const struct beam_ending *before = &beam->ended[at - 1];
        if (before->limited == limited ? before->normalized_score >= ending.normalized_score : limited)
            break;
        beam->ended[at] = *before;
    }
    beam->ended[at] = ending;
}

static void end_all(struct beam *beam)
{
    for (int h = 0; h < beam->n_live; h++)
        end_hypothesis(beam, beam->live[h].node, beam->live[h].score, true);
    beam->n_live = 0;
}

/* True when no live hypothesis can still come among the n_best: an equal score would rank behind. */
static bool is_settled(const struct beam *beam)
{
    int n_best = beam->options.n_best;
    return beam->n_live > 0 && beam->n_ended >= n_best &&
           beam->live[0].score / beam->limit_norm <= beam->ended[n_best - 1].normalized_score;
}

void beam_step(struct beam *beam, const struct beam_candidate *candidates)
{
    assert(beam->n_live > 0 && beam->step < beam->limit);
    int n = choose(beam, candidates, beam->options.size - beam->n_ended);
    if (n == 0) { /* nothing may follow: only a broken model's scores (not numbers) bring this about */
        end_all(beam);
        return;
    }
    beam->step++;
    beam->n_live = 0;
    for (int i = 0; i < n; i++) {
        const struct beam_choice *choice = &beam->chosen[i];
        int node = add_node(beam, choice->parent, choice->token, choice->token_score);
        if (choice->token == beam->options.eos)
            end_hypothesis(beam, node, choice->score, false);
        else
            beam->live[beam->n_live++] = (struct beam_hypothesis){ .node = node, .score = choice->score };
    }
    if (beam->step == beam->limit)
        end_all(beam);
    else if (is_settled(beam))
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
