/*
 * heatmap.c: attention weights as a map of percentages: a row a query, a column a key, pieces along both
 * sides.
 *
 *             ▁The  ▁red  ▁door  </s>
 *     ▁Die      88     4      7     .
 *     ▁rote      3    90      6     .
 *
 * Column labels are written across while that fits the terminal, else downwards over narrow columns, and what
 * is wider still is cut into bands. Shades are steps of the square root of a weight, so that small ones can
 * be told apart.
 */
#include "inspect/heatmap.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "text/utf8.h"

#define DEFAULT_WIDTH 100
#define MIN_WIDTH 20
#define NARROW 3          /* a column with two digits */
#define MAX_ROW_LABEL 20  /* columns of a row's label */
#define MAX_TALL_LABEL 12 /* characters of a label written downwards */
#define ELLIPSIS "\xe2\x80\xa6"

/* What the maps of one call have in common. */
struct map_style {
    const struct attention *a;
    bool color, mean; /* mean: of a layer's heads */
    bool across;      /* column labels */
    int width;        /* of the terminal */
    int row_label;    /* columns of a row's label */
};

/* ---- labels ---- */

/* A character and the combining characters behind it. */
struct glyph {
    const char *bytes;
    int len, width;
};

/* Takes the next glyph off a text; false at its end. A control character (a piece may hold any) must not
 * reach the terminal, and malformed bytes neither: both become U+FFFD. */
static bool next_glyph(struct glyph *glyph, const char **text)
{
    const char *at = *text;
    uint32_t cp;
    if (*at == '\0')
        return false;
    int len = utf8_next(at, strlen(at), &cp);
    if (len == 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) {
        *glyph = (struct glyph){ "\xef\xbf\xbd", 3, 1 };
        *text = at + (len > 0 ? len : 1);
        return true;
    }
    *glyph = (struct glyph){ at, len, utf8_width(at, (size_t)len) };
    for (at += len; *at != '\0'; at += len) {
        len = utf8_next(at, strlen(at), &cp);
        if (len == 0 || cp < 0xa0 || utf8_width(at, (size_t)len) > 0)
            break;
        glyph->len += len;
    }
    *text = at;
    return true;
}

static int label_width(const char *label)
{
    struct glyph glyph;
    int width = 0;
    while (next_glyph(&glyph, &label))
        width += glyph.width;
    return width;
}

static enum tfm_status add_spaces(struct str *line, int n, struct tfm_error *err)
{
    return n > 0 ? str_printf(line, err, "%*s", n, "") : TFM_OK;
}

/* A label, cut with an ellipsis where it is wider than `width`. */
static enum tfm_status add_label(struct str *line, const char *label, int width, bool to_right,
                                 struct tfm_error *err)
{
    int full = label_width(label), room = full > width ? width - 1 : width, used = 0;
    if (to_right)
        TRY(add_spaces(line, width - full, err));
    struct glyph glyph;
    while (next_glyph(&glyph, &label) && used + glyph.width <= room) {
        TRY(str_add(line, glyph.bytes, (size_t)glyph.len, err));
        used += glyph.width;
    }
    if (full > width) {
        TRY(str_add(line, ELLIPSIS, strlen(ELLIPSIS), err));
        used++;
    }
    return to_right ? TFM_OK : add_spaces(line, width - used, err);
}

/* Characters of a label that is written downwards. */
static int label_height(const char *label)
{
    struct glyph glyph;
    int n = 0;
    while (next_glyph(&glyph, &label))
        n++;
    return n < MAX_TALL_LABEL ? n : MAX_TALL_LABEL;
}

/* Line `line_number` of a label written downwards, from the top, into a narrow column; below 0 it has not
 * begun. */
static enum tfm_status add_tall_label(struct str *line, const char *label, int line_number,
                                      struct tfm_error *err)
{
    struct glyph glyph = { "", 0, 0 };
    const char *rest = label;
    for (int i = 0; i <= line_number; i++)
        next_glyph(&glyph, &rest);
    if (line_number == MAX_TALL_LABEL - 1 && *rest != '\0')
        glyph = (struct glyph){ ELLIPSIS, (int)strlen(ELLIPSIS), 1 };
    TRY(add_spaces(line, NARROW - glyph.width, err));
    return str_add(line, glyph.bytes, (size_t)glyph.len, err);
}

/* ---- lines ---- */

/* Ends a line and starts the next. */
static void flush_line(FILE *out, struct str *line)
{
    while (line->len > 0 && line->data[line->len - 1] == ' ')
        line->len--;
    fwrite(line->data, 1, line->len, out);
    putc('\n', out);
    str_clear(line);
}

static int column_width(const struct map_style *style, int key)
{
    int width = style->across ? label_width(style->a->keys[key]) + 1 : NARROW;
    return width > NARROW ? width : NARROW;
}

static enum tfm_status write_column_labels(FILE *out, struct str *line, const struct map_style *style,
                                           int first, int end, struct tfm_error *err)
{
    const char **keys = style->a->keys;
    int height = 1;
    for (int k = first; k < end && !style->across; k++)
        height = label_height(keys[k]) > height ? label_height(keys[k]) : height;
    for (int i = 0; i < height; i++) {
        TRY(add_spaces(line, style->row_label, err));
        for (int k = first; k < end; k++) {
            if (style->across)
                TRY(add_label(line, keys[k], column_width(style, k), true, err));
            else
                TRY(add_tall_label(line, keys[k], i - (height - label_height(keys[k])), err));
        }
        flush_line(out, line);
    }
    return TFM_OK;
}

/* A weight as its percentage, at most "99", within `width` columns. */
static enum tfm_status add_weight(struct str *line, float weight, int width, bool color,
                                  struct tfm_error *err)
{
    /* Blues of the 256-colour palette, pale to dark, the letters black and then white. */
    static const int backgrounds[] = { 0, 195, 153, 117, 75, 33, 27, 18 };
    enum { N_SHADES = sizeof(backgrounds) / sizeof(*backgrounds), FIRST_DARK = 5 };
    if (!isfinite(weight))
        return str_printf(line, err, "%*s", width, "?");
    int percent = (int)lroundf(100 * weight), shade = (int)(sqrtf(weight) * N_SHADES);
    shade = shade < N_SHADES ? shade : N_SHADES - 1;
    bool shaded = color && shade > 0;
    if (shaded)
        TRY(str_printf(line, err, "\x1b[48;5;%d;38;5;%dm", backgrounds[shade],
                       shade < FIRST_DARK ? 16 : 231));
    if (percent == 0)
        TRY(str_printf(line, err, "%*s", width, "."));
    else
        TRY(str_printf(line, err, "%*d", width, percent < 99 ? percent : 99));
    return shaded ? str_add(line, "\x1b[0m", 4, err) : TFM_OK;
}

/* Of one head, or the mean of all. */
static float weight_at(const struct map_style *style, int layer, int head, int q, int k)
{
    const struct attention *a = style->a;
    size_t place = (size_t)q * (size_t)a->n_keys + (size_t)k;
    if (!style->mean)
        return attention_map(a, layer, head)[place];
    double sum = 0;
    for (int h = 0; h < a->n_heads; h++)
        sum += attention_map(a, layer, h)[place];
    return (float)(sum / a->n_heads);
}

/* Keys first .. end - 1 of a map. */
static enum tfm_status write_band(FILE *out, struct str *line, const struct map_style *style, int layer,
                                  int head, int first, int end, struct tfm_error *err)
{
    const struct attention *a = style->a;
    TRY(write_column_labels(out, line, style, first, end, err));
    for (int q = 0; q < a->n_queries; q++) {
        TRY(add_label(line, a->queries[q], style->row_label, false, err));
        for (int k = first; k < end; k++) {
            int width = column_width(style, k);
            if (a->part == TFM_DECODER && k > q) /* not yet read: nothing to look at */
                TRY(add_spaces(line, width, err));
            else
                TRY(add_weight(line, weight_at(style, layer, head, q, k), width, style->color, err));
        }
        flush_line(out, line);
    }
    return TFM_OK;
}

static enum tfm_status write_map(FILE *out, struct str *line, const struct map_style *style, int layer,
                                 int head, struct tfm_error *err)
{
    const struct attention *a = style->a;
    for (int first = 0, end; first < a->n_keys; first = end) {
        int used = style->row_label + column_width(style, first);
        for (end = first + 1; end < a->n_keys && used + column_width(style, end) <= style->width; end++)
            used += column_width(style, end);
        fprintf(out, "\n%s layer %d", config_part_name(a->part), a->layer + layer);
        if (style->mean)
            fprintf(out, ", mean of %d heads", a->n_heads);
        else
            fprintf(out, " head %d", a->head + head);
        if (end - first < a->n_keys)
            fprintf(out, ", columns %d to %d of %d", first + 1, end, a->n_keys);
        putc('\n', out);
        TRY(write_band(out, line, style, layer, head, first, end, err));
    }
    return TFM_OK;
}

/* ---- the whole ---- */

static void write_legend(FILE *out, const struct map_style *style)
{
    static const char joint[] =
        "Self-attention of a decoder alone: rows are the pieces of the source, then the target pieces\n"
        "being predicted, columns the pieces read up to there (the start symbol between the two).";
    static const char *const axes[] = {
        [TFM_ENCODER] = "Encoder self-attention: rows are source pieces, columns the source pieces\n"
                        "they look at.",
        [TFM_DECODER] = "Decoder self-attention: rows are the target pieces being predicted, columns the\n"
                        "pieces read up to there (the start symbol, then the target).",
        [TFM_CROSS] = "Cross-attention: rows are the target pieces being predicted, columns the source\n"
                      "pieces they look at.",
    };
    fprintf(out, "%s\nPercent of each row; \".\" is less than a half, 99 also stands for 100.\n",
            style->a->is_joint ? joint : axes[style->a->part]);
    if (style->mean)
        fputs("A map is the mean of a layer's heads; choose a layer or a head to see them singly.\n", out);
}

static struct map_style choose_style(const struct attention *a, int width, bool color)
{
    struct map_style style = { .a = a, .color = color };
    style.width = width <= 0 ? DEFAULT_WIDTH : width < MIN_WIDTH ? MIN_WIDTH : width;
    style.mean = a->n_layers > 1 && a->n_heads > 1;
    for (int q = 0; q < a->n_queries; q++) {
        int label = label_width(a->queries[q]);
        style.row_label = label > style.row_label ? label : style.row_label;
    }
    int most = style.width / 3 < MAX_ROW_LABEL ? style.width / 3 : MAX_ROW_LABEL;
    style.row_label = style.row_label < most ? style.row_label : most;

    style.across = true;
    int total = style.row_label;
    for (int k = 0; k < a->n_keys; k++)
        total += column_width(&style, k);
    style.across = total <= style.width;
    return style;
}

enum tfm_status heatmap_write(FILE *out, const struct attention *a, int width, bool color,
                              struct tfm_error *err)
{
    struct map_style style = choose_style(a, width, color);
    struct str line = { 0 };
    write_legend(out, &style);
    enum tfm_status status = TFM_OK;
    for (int layer = 0; layer < a->n_layers && status == TFM_OK; layer++) {
        for (int head = 0; head < (style.mean ? 1 : a->n_heads) && status == TFM_OK; head++)
            status = write_map(out, &line, &style, layer, head, err);
    }
    str_release(&line);
    return status;
}
