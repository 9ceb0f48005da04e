/*
 * profile_lines.c: where the time of a training went, for people:
 *
 *     Profile: 61.30 s on 2 threads; matrices of 1024 x 1024 multiply with 170.2 GFLOP/s on all at once
 *       part                       seconds   share     GFLOP   GFLOP/s   of that
 *       feed-forward                 14.21   23.2%    1520.3     107.0       63%
 *
 * A part with matrix products does other work, too (biases, softmax, activations), so its rate is lower than
 * that of the products alone.
 */
#include "profile_lines.h"

#include "quote.h"

#define GIGA 1e9
#define MIB  (1024.0 * 1024.0)

static void format_part(char *text, size_t size, const struct tfm_profile *p,
                        const struct tfm_profile_part *part)
{
    double share = p->seconds > 0 ? 100 * part->seconds / p->seconds : 0;
    int n = snprintf(text, size, "  %-25s %9.2f  %5.1f%%", part->name, part->seconds, share);
    if (part->flop > 0 && part->seconds > 0 && n < (int)size) {
        double rate = part->flop / part->seconds;
        snprintf(text + n, size - (size_t)n, "  %8.1f  %8.1f     %4.0f%%", part->flop / GIGA, rate / GIGA,
                 100 * rate / p->peak_flops);
    }
}

void profile_lines(const struct tfm_profile *p, void (*line)(void *user, const char *text), void *user)
{
    char text[200];
    snprintf(text, sizeof(text),
             "Profile: %.2f s on %d thread%s; matrices of 1024 x 1024 multiply with %.1f GFLOP/s%s",
             p->seconds, p->threads, p->threads == 1 ? "" : "s", p->peak_flops / GIGA,
             p->threads == 1 ? "" : " on all at once");
    line(user, text);
    snprintf(text, sizeof(text), "  %-25s %9s  %6s  %8s  %8s   %s", "part", "seconds", "share", "GFLOP",
             "GFLOP/s", "of that");
    line(user, text);
    for (int i = 0; i < p->n_parts; i++) {
        format_part(text, sizeof(text), p, &p->parts[i]);
        line(user, text);
    }
    double rest = p->memory - p->memory_weights - p->memory_gradients - p->memory_scratch;
    snprintf(text, sizeof(text), "Memory: %.1f MiB at most", p->memory / MIB);
    line(user, text);
    const struct {
        const char *name;
        double bytes;
    } memory[] = { { "weights and moments", p->memory_weights },
                   { "gradients", p->memory_gradients },
                   { "activations", p->memory_scratch },
                   { "corpus, libraries, the rest", rest } };
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        snprintf(text, sizeof(text), "  %-27s %9.1f MiB", memory[i].name, memory[i].bytes / MIB);
        if (memory[i].bytes > 0) /* the rest is unknown where the whole is */
            line(user, text);
    }
}

void profile_json(FILE *file, const struct tfm_profile *p)
{
    quote_field(file, "profile_seconds", p->seconds);
    fprintf(file, ", \"threads\": %d", p->threads);
    quote_field(file, "peak_flops", p->peak_flops);
    quote_field(file, "memory", p->memory);
    quote_field(file, "memory_weights", p->memory_weights);
    quote_field(file, "memory_gradients", p->memory_gradients);
    quote_field(file, "memory_scratch", p->memory_scratch);
    fputs(", \"parts\": [", file);
    for (int i = 0; i < p->n_parts; i++) {
        fputs(i > 0 ? ", {\"part\": " : "{\"part\": ", file);
        quote_json(file, p->parts[i].name);
        quote_field(file, "seconds", p->parts[i].seconds);
        quote_field(file, "flop", p->parts[i].flop);
        putc('}', file);
    }
    putc(']', file);
}
