/*
 * attention_lines.c: a line for each part of the model, which names the heads that stand out as layer.head:
 *
 *     [attention] Up. 500 : cross : entropy 1.2031 (44% of the most) : uniform 0.0 0.3, on </s> 3.1
 *
 * and all numbers of all heads as JSON.
 */
#include "attention_lines.h"

#include "quote.h"

enum {
    LINE_SIZE = 1200
};

static const char *const parts[] = {
    [TFM_ENCODER] = "encoder", [TFM_DECODER] = "decoder", [TFM_CROSS] = "cross"
};

static const struct {
    const char *name, *json;
} verdicts[] = { [TFM_HEAD_LIVE] = { "live", "live" },
                 [TFM_HEAD_UNIFORM] = { "uniform", "uniform" },
                 [TFM_HEAD_ON_END] = { "on </s>", "on_end" },
                 [TFM_HEAD_ON_FIRST] = { "on the first", "on_first" },
                 [TFM_HEAD_ON_ITSELF] = { "on itself", "on_itself" } };

/* Appends the heads of one verdict, of those of a part; returns where the text ends. Long lists are cut. */
static int add_verdict(char *text, int n, const struct tfm_head *heads, int n_heads, enum tfm_part part,
                       enum tfm_verdict verdict)
{
    int n_found = 0, n_part = 0;
    for (int i = 0; i < n_heads; i++) {
        n_part += heads[i].part == part;
        n_found += heads[i].part == part && heads[i].verdict == verdict;
    }
    if (n_found == 0)
        return n;
    n += snprintf(text + n, (size_t)(LINE_SIZE - n), "%s %s", text[n - 1] == ':' ? "" : ",",
                  verdicts[verdict].name);
    if (n_found == n_part)
        return n + snprintf(text + n, (size_t)(LINE_SIZE - n), " all %d", n_part);
    for (int i = 0; i < n_heads; i++) {
        if (heads[i].part != part || heads[i].verdict != verdict)
            continue;
        if (n > LINE_SIZE / 5 * (int)verdict) /* a share of the line for each verdict */
            return n + snprintf(text + n, (size_t)(LINE_SIZE - n), " ...");
        n += snprintf(text + n, (size_t)(LINE_SIZE - n), " %d.%d", heads[i].layer, heads[i].head);
    }
    return n;
}

void attention_lines(const struct tfm_train_event *e, void (*line)(void *user, const char *text), void *user)
{
    for (enum tfm_part part = TFM_ENCODER; part <= TFM_CROSS; part++) {
        char text[LINE_SIZE];
        double entropy = 0, relative = 0;
        int n_heads = 0;
        for (int i = 0; i < e->n_heads; i++) {
            if (e->heads[i].part != part)
                continue;
            n_heads++;
            entropy += e->heads[i].entropy;
            relative += e->heads[i].relative_entropy;
        }
        if (n_heads == 0) /* a recurrent unit in place of the decoder's self-attention */
            continue;
        int n = snprintf(text, sizeof(text),
                         "[attention] Up. %ld : %s : entropy %.4f (%.0f%% of the most) :", e->update,
                         parts[part], entropy / n_heads, 100 * relative / n_heads);
        int begin = n;
        for (enum tfm_verdict v = TFM_HEAD_UNIFORM; v <= TFM_HEAD_ON_ITSELF; v++)
            n = add_verdict(text, n, e->heads, e->n_heads, part, v);
        if (n == begin)
            snprintf(text + n, sizeof(text) - (size_t)n, " all %d heads are live", n_heads);
        line(user, text);
    }
}

void attention_json(FILE *file, const struct tfm_train_event *e)
{
    fputs(", \"folder\": ", file);
    quote_json(file, e->text);
    fputs(", \"heads\": [", file);
    for (int i = 0; i < e->n_heads; i++) {
        const struct tfm_head *h = &e->heads[i];
        fprintf(file, "%s{\"part\": \"%s\", \"layer\": %d, \"head\": %d", i > 0 ? ", " : "", parts[h->part],
                h->layer, h->head);
        quote_field(file, "entropy", h->entropy);
        quote_field(file, "relative_entropy", h->relative_entropy);
        quote_field(file, "distance", h->distance);
        quote_field(file, "on_end", h->on_end);
        quote_field(file, "on_first", h->on_first);
        quote_field(file, "on_itself", h->on_itself);
        fprintf(file, ", \"verdict\": \"%s\"}", verdicts[h->verdict].json);
    }
    putc(']', file);
}
