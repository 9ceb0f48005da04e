/*
 * dump.c: attention weights as JSON (one row of weights a line) and as tab-separated values (one weight a
 * line). Weights have seven digits, about what a float holds. A weight that is not finite, which only a
 * broken model gives, is null in JSON.
 */
#include "inspect/dump.h"

#include <math.h>
#include <string.h>

#include "inspect/out.h"

static enum tfm_status json_pieces(FILE *out, const char *name, const char **pieces, int n,
                                   struct tfm_error *err)
{
    json_t *list = json_array();
    int failed = 0;
    for (int i = 0; i < n && !failed; i++)
        failed = json_array_append_new(list, out_string(pieces[i])); /* which refuses a NULL */
    if (!failed) {
        fprintf(out, "\"%s\": ", name);
        failed = json_dumpf(list, out, 0);
        fputs(",\n", out);
    }
    json_decref(list);
    /* A stream that failed is found at the end. */
    return failed && !ferror(out) ? err_set(err, TFM_ENOMEM, "no memory to write attention") : TFM_OK;
}

static void json_map(FILE *out, const float *map, int rows, int cols)
{
    for (int i = 0; i < rows; i++) {
        fputs(i == 0 ? "[[" : ",\n[", out);
        for (int j = 0; j < cols; j++) {
            float w = map[(size_t)i * (size_t)cols + (size_t)j];
            fputs(j > 0 ? ", " : "", out);
            if (isfinite(w))
                fprintf(out, "%.7g", w);
            else
                fputs("null", out);
        }
        putc(']', out);
    }
    putc(']', out);
}

enum tfm_status dump_json(FILE *out, const struct attention *a, struct tfm_error *err)
{
    putc('{', out);
    TRY(json_pieces(out, "source", a->source, a->n_source, err));
    TRY(json_pieces(out, "target", a->target, a->n_target, err));
    fprintf(out, "\"part\": \"%s\",\n", config_part_name(a->part));
    TRY(json_pieces(out, "queries", a->queries, a->n_queries, err));
    TRY(json_pieces(out, "keys", a->keys, a->n_keys, err));
    fputs("\"layers\": [", out);
    for (int layer = 0; layer < a->n_layers; layer++) {
        fprintf(out, "%s{\"layer\": %d, \"heads\": [\n", layer > 0 ? ",\n" : "", a->layer + layer);
        for (int head = 0; head < a->n_heads; head++) {
            fprintf(out, "%s{\"head\": %d, \"weights\":\n", head > 0 ? ",\n" : "", a->head + head);
            json_map(out, attention_map(a, layer, head), a->n_queries, a->n_keys);
            putc('}', out);
        }
        fputs("]}", out);
    }
    fputs("]}\n", out);
    return TFM_OK;
}

static void tsv_piece(FILE *out, const char *piece)
{
    static const char special[] = "\\\t\n\r", letter[] = "\\tnr";
    for (; *piece != '\0'; piece++) {
        const char *found = strchr(special, *piece);
        if (found != NULL) {
            putc('\\', out);
            putc(letter[found - special], out);
        } else {
            putc(*piece, out);
        }
    }
}

void dump_tsv(FILE *out, const struct attention *a)
{
    fputs("layer\thead\tquery_index\tquery\tkey_index\tkey\tweight\n", out);
    for (int layer = 0; layer < a->n_layers; layer++) {
        for (int head = 0; head < a->n_heads; head++) {
            const float *w = attention_map(a, layer, head);
            for (int q = 0; q < a->n_queries; q++) {
                for (int k = 0; k < a->n_keys; k++) {
                    fprintf(out, "%d\t%d\t%d\t", a->layer + layer, a->head + head, q);
                    tsv_piece(out, a->queries[q]);
                    fprintf(out, "\t%d\t", k);
                    tsv_piece(out, a->keys[k]);
                    fprintf(out, "\t%.7g\n", *w++);
                }
            }
        }
    }
}
