/*
 * svg.c: attention weights as SVG 1.1: a grid of heat maps, a row a layer and a column a head; in each, a row
 * of squares a query and a column a key, the darker the more weight. Squares of one shade are one path, which
 * keeps the file small, and the pieces along the sides are written once and used by every map. Shades are
 * steps of the square root of a weight, as on the terminal (heatmap.c); what is under the first step stays
 * white.
 */
#include "inspect/svg.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "text/utf8.h"

#define CELL        14  /* side of a square */
#define FONT        11  /* size of the letters */
#define LETTER      6.8 /* width of one, about */
#define MAX_COLUMNS 20  /* of a piece along a side; the rest of it is cut */
#define GAP         18  /* between maps */
#define TITLE       16  /* height of the line above a map */
#define HEAD        44  /* of the lines above all */
#define N_SHADES    12
#define ELLIPSIS    "\xe2\x80\xa6"

struct layout {
    const struct attention *a;
    double left, top;     /* room for the pieces beside and above a map */
    double width, height; /* of a map with its gaps, and pieces above */
};

/* ---- text ---- */

/* Appends a piece so that XML can hold it: no markup, no control characters, none that are no characters. */
static enum tfm_status add_text(struct str *line, const char *text, struct tfm_error *err)
{
    int columns = 0;
    while (*text != '\0') {
        uint32_t cp;
        int len = utf8_next(text, strlen(text), &cp);
        bool is_bad = len == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xfffe || cp == 0xffff;
        columns += is_bad ? 1 : utf8_width(text, (size_t)len);
        if (columns > MAX_COLUMNS)
            return str_add(line, ELLIPSIS, strlen(ELLIPSIS), err);
        if (is_bad)
            TRY(str_add(line, "\xef\xbf\xbd", 3, err));
        else if (cp == '<' || cp == '>' || cp == '&')
            TRY(str_printf(line, err, "&%s;", cp == '<' ? "lt" : cp == '>' ? "gt" : "amp"));
        else
            TRY(str_add(line, text, (size_t)len, err));
        text += len > 0 ? len : 1;
    }
    return TFM_OK;
}

static double label_room(const char **labels, int n)
{
    int widest = 0;
    for (int i = 0; i < n; i++) {
        int width = 0, len;
        uint32_t cp;
        for (const char *text = labels[i]; *text != '\0'; text += len > 0 ? len : 1) {
            len = utf8_next(text, strlen(text), &cp);
            width += len > 0 ? utf8_width(text, (size_t)len) : 1;
        }
        width = width > MAX_COLUMNS ? MAX_COLUMNS + 1 : width;
        widest = width > widest ? width : widest;
    }
    return widest * LETTER + 6;
}

/* The pieces along a side as a group that maps use: queries end at the left edge, keys stand on the upper
 * one. */
static enum tfm_status write_labels(FILE *out, const char *id, const char **labels, int n, bool is_key,
                                    struct tfm_error *err)
{
    struct str line = { 0 };
    enum tfm_status status = TFM_OK;
    fprintf(out, "<g id=\"%s\"%s>\n", id, is_key ? "" : " text-anchor=\"end\"");
    for (int i = 0; i < n && status == TFM_OK; i++) {
        double at = (i + 0.5) * CELL + FONT * 0.35;
        str_clear(&line);
        status = add_text(&line, labels[i], err);
        const char *text = line.len > 0 ? line.data : "";
        if (is_key)
            fprintf(out, "<text transform=\"translate(%.1f,-4) rotate(-90)\">%s</text>\n", at, text);
        else
            fprintf(out, "<text x=\"-4\" y=\"%.1f\">%s</text>\n", at, text);
    }
    fputs("</g>\n", out);
    str_release(&line);
    return status;
}

/* ---- maps ---- */

static int shade_of(float weight)
{
    if (!(weight > 0)) /* nor what is not a number */
        return 0;
    int shade = (int)(sqrtf(weight) * (N_SHADES + 1));
    return shade < N_SHADES ? shade : N_SHADES;
}

/* From white to a dark blue. */
static void print_color(FILE *out, int shade)
{
    static const int dark[] = { 8, 48, 107 };
    double part = (double)shade / N_SHADES;
    fputs("#", out);
    for (int i = 0; i < 3; i++)
        fprintf(out, "%02x", (int)lround(255 + part * (dark[i] - 255)));
}

/* All squares of each shade as one path, in units of a cell. Runs of a shade are one rectangle. */
static void write_cells(FILE *out, const float *map, int rows, int cols)
{
    fprintf(out, "<g transform=\"scale(%d)\">\n", CELL);
    for (int shade = 1; shade <= N_SHADES; shade++) {
        bool is_open = false;
        for (int i = 0; i < rows; i++) {
            for (int j = 0, end; j < cols; j = end) {
                const float *row = map + (size_t)i * (size_t)cols;
                for (end = j + 1; end < cols && shade_of(row[end]) == shade_of(row[j]); end++) {
                }
                if (shade_of(row[j]) != shade)
                    continue;
                if (!is_open) {
                    fputs("<path fill=\"", out);
                    print_color(out, shade);
                    fputs("\" d=\"", out);
                }
                is_open = true;
                fprintf(out, "M%d %dh%dv1h-%dz", j, i, end - j, end - j);
            }
        }
        if (is_open)
            fputs("\"/>\n", out);
    }
    fputs("</g>\n", out);
}

static void write_map(FILE *out, const struct layout *l, int layer, int head)
{
    const struct attention *a = l->a;
    double x = l->left + head * l->width, y = HEAD + layer * l->height + TITLE + l->top;
    fprintf(out, "<g transform=\"translate(%.1f,%.1f)\">\n", x, y);
    fprintf(out, "<text y=\"%.1f\" font-weight=\"bold\">layer %d head %d</text>\n", -l->top - 3,
            a->layer + layer, a->head + head);
    if (head == 0)
        fputs("<use xlink:href=\"#queries\"/>\n", out);
    fputs("<use xlink:href=\"#keys\"/>\n", out);
    write_cells(out, attention_map(a, layer, head), a->n_queries, a->n_keys);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#999\"/>\n</g>\n", a->n_keys * CELL,
            a->n_queries * CELL);
}

/* ---- the whole ---- */

static void write_legend(FILE *out, const struct attention *a)
{
    static const char joint[] =
        "Self-attention of a decoder alone: each row is a piece of the source or the target "
        "piece being predicted, its columns the pieces read up to there.";
    static const char *const axes[] = {
        [TFM_ENCODER] = "Encoder self-attention: each row is a source piece, its columns the source pieces "
                        "it looks at.",
        [TFM_DECODER] = "Decoder self-attention: each row is the target piece being predicted, its columns "
                        "the pieces read up to there.",
        [TFM_CROSS] = "Cross-attention: each row is the target piece being predicted, its columns the source "
                      "pieces it looks at.",
    };
    fprintf(out, "<text x=\"6\" y=\"15\">%s</text>\n<text x=\"6\" y=\"33\">weight 0</text>\n",
            a->is_joint ? joint : axes[a->part]);
    for (int shade = 0; shade <= N_SHADES; shade++) {
        fprintf(out, "<rect x=\"%d\" y=\"23\" width=\"%d\" height=\"%d\" fill=\"", 60 + shade * CELL, CELL,
                CELL);
        print_color(out, shade);
        fputs("\"/>\n", out);
    }
    fprintf(out, "<text x=\"%d\" y=\"33\">1, in steps of its square root</text>\n",
            66 + (N_SHADES + 1) * CELL);
}

enum tfm_status svg_write(FILE *out, const struct attention *a, struct tfm_error *err)
{
    struct layout l = { .a = a,
                        .left = label_room(a->queries, a->n_queries),
                        .top = label_room(a->keys, a->n_keys) };
    l.width = a->n_keys * CELL + GAP;
    l.height = TITLE + l.top + a->n_queries * CELL + GAP;
    double width = fmax(l.left + a->n_heads * l.width, 640), height = HEAD + a->n_layers * l.height;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "
            "width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"%d\">\n"
            "<title>%s attention</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<defs>\n",
            width, height, FONT, config_part_name(a->part));
    TRY(write_labels(out, "queries", a->queries, a->n_queries, false, err));
    TRY(write_labels(out, "keys", a->keys, a->n_keys, true, err));
    fputs("</defs>\n", out);
    write_legend(out, a);
    for (int layer = 0; layer < a->n_layers; layer++) {
        for (int head = 0; head < a->n_heads; head++)
            write_map(out, &l, layer, head);
    }
    fputs("</svg>\n", out);
    return TFM_OK;
}
