/*
 * heatmap_test.c: attention weights as text for a terminal: labels across, downwards and in bands, means of
 * heads, the decoder's triangle, colours, and pieces that would upset a terminal.
 */
#include "inspect/heatmap.h"

#include "check.h"

/* The text of a map, without the legend above it. */
static char *draw(const struct attention *a, int width, bool color)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    enum tfm_status status = heatmap_write(out, a, width, color, NULL);
    fclose(out);
    char *map = status == TFM_OK ? strstr(text, "\n\n") : NULL;
    char *result = strdup(map != NULL ? map + 2 : "nothing");
    free(text);
    return result;
}

static void check_map(const struct attention *a, int width, bool color, const char *expected,
                      const char *name)
{
    char *text = draw(a, width, color);
    CHECK_STR(text, expected, "%s", name);
    free(text);
}

static struct attention map_of(enum tfm_part part, const char **queries, int n_queries, const char **keys,
                               int n_keys, float *weights)
{
    return (struct attention){ .part = part,
                               .layer = 3,
                               .n_layers = 1,
                               .head = 1,
                               .n_heads = 1,
                               .n_queries = n_queries,
                               .n_keys = n_keys,
                               .queries = queries,
                               .keys = keys,
                               .weights = weights };
}

static const char *german[] = { "▁Die", "▁rote", "▁Tür", "</s>" };
static const char *english[] = { "▁The", "▁red", "▁door", "</s>" };
static float weights[] = { 0.91f,  0.05f,   0.04f,  0.0f, 0.004f, 0.9951f, 0.0004f, 0.0005f,
                           0.005f, 0.0051f, 0.939f, 0.1f, 0.25f,  0.25f,   0.25f,   0.25f };

static void test_across(void)
{
    struct attention a = map_of(TFM_CROSS, german, 4, english, 4, weights);
    check_map(&a, 0, false,
              "cross layer 3 head 1\n"
              "      ▁The ▁red ▁door </s>\n"
              "▁Die    91    5     4    .\n"
              "▁rote    .   99     .    .\n"
              "▁Tür     1    1    94   10\n"
              "</s>    25   25    25   25\n",
              "a narrow map has its labels across");
    a.part = TFM_ENCODER;
    a.weights[0] = NAN;
    check_map(&a, 80, false,
              "encoder layer 3 head 1\n"
              "      ▁The ▁red ▁door </s>\n"
              "▁Die     ?    5     4    .\n"
              "▁rote    .   99     .    .\n"
              "▁Tür     1    1    94   10\n"
              "</s>    25   25    25   25\n",
              "a weight that is not a number");
    a.weights[0] = 0.91f;
}

static void test_downwards(void)
{
    struct attention a = map_of(TFM_CROSS, german, 4, english, 4, weights);
    check_map(&a, 20, false,
              "cross layer 3 head 1\n"
              "             ▁\n"
              "       ▁  ▁  d  <\n"
              "       T  r  o  /\n"
              "       h  e  o  s\n"
              "       e  d  r  >\n"
              "▁Die  91  5  4  .\n"
              "▁rote  . 99  .  .\n"
              "▁Tür   1  1 94 10\n"
              "</s>  25 25 25 25\n",
              "labels that do not fit across are written downwards");

    const char *keys[] = { "a", "bb", "本", "ccc", "e\xcc\x81t", "e", "internationally" };
    const char *queries[] = { "x" };
    float row[] = { 0.1f, 0.2f, 0.3f, 0.1f, 0.1f, 0.1f, 0.1f };
    a = map_of(TFM_CROSS, queries, 1, keys, 7, row);
    check_map(&a, 1, false,
              "cross layer 3 head 1, columns 1 to 6 of 7\n"
              "            c\n"
              "      b     c  e\xcc\x81\n"
              "   a  b 本  c  t  e\n"
              "x 10 20 30 10 10 10\n"
              "\n"
              "cross layer 3 head 1, columns 7 to 7 of 7\n"
              "   i\n   n\n   t\n   e\n   r\n   n\n   a\n   t\n   i\n   o\n   n\n   …\n"
              "x 10\n",
              "a wide map is cut into bands, a long label is cut short");
}

static void test_labels(void)
{
    const char *keys[] = { "\x1b[31m", "a\nb", "\xff", "日本" };
    const char *queries[] = { "extraordinarily long", "", "日本語日本語日本語日本語" };
    float rows[12] = { 0 };
    struct attention a = map_of(TFM_CROSS, queries, 3, keys, 4, rows);
    check_map(&a, 50, false,
              "cross layer 3 head 1\n"
              "                 �[31m a�b  � 日本\n"
              "extraordinarily…     .   .  .    .\n"
              "                     .   .  .    .\n"
              "日本語日本語日…      .   .  .    .\n",
              "long labels are cut, controls and malformed bytes are replaced");
}

static void test_mean(void)
{
    const char *pieces[] = { "a", "b" };
    float maps[] = { 0.1f, 0.9f, 0.2f, 0.8f, 0.3f, 0.7f, 0.4f, 0.6f,
                     0.9f, 0.1f, 0.8f, 0.2f, 0.7f, 0.3f, 0.6f, 0.4f };
    struct attention a = map_of(TFM_ENCODER, pieces, 2, pieces, 2, maps);
    a.layer = a.head = 0;
    a.n_layers = a.n_heads = 2;
    check_map(&a, 80, false,
              "encoder layer 0, mean of 2 heads\n"
              "   a  b\n"
              "a 20 80\n"
              "b 30 70\n"
              "\n"
              "encoder layer 1, mean of 2 heads\n"
              "   a  b\n"
              "a 80 20\n"
              "b 70 30\n",
              "several layers and heads: the mean of each layer");
    a.n_layers = 1;
    a.layer = 5;
    check_map(&a, 80, false,
              "encoder layer 5 head 0\n"
              "   a  b\n"
              "a 10 90\n"
              "b 20 80\n"
              "\n"
              "encoder layer 5 head 1\n"
              "   a  b\n"
              "a 30 70\n"
              "b 40 60\n",
              "one layer: each head");
}

static void test_decoder(void)
{
    const char *queries[] = { "a", "b", "</s>" }, *keys[] = { "<start>", "a", "b" };
    float maps[] = { 1, 0, 0, 0.5f, 0.5f, 0, 0.2f, 0.3f, 0.5f };
    struct attention a = map_of(TFM_DECODER, queries, 3, keys, 3, maps);
    check_map(&a, 80, false,
              "decoder layer 3 head 1\n"
              "     <start>  a  b\n"
              "a         99\n"
              "b         50 50\n"
              "</s>      20 30 50\n",
              "what the decoder has not read yet is left empty");
}

static void test_color(void)
{
    const char *queries[] = { "x" }, *keys[] = { "a", "b", "c" };
    float row[] = { 0.01f, 0.19f, 0.8f };
    struct attention a = map_of(TFM_CROSS, queries, 1, keys, 3, row);
    check_map(&a, 80, true,
              "cross layer 3 head 1\n"
              "   a  b  c\n"
              "x  1\x1b[48;5;117;38;5;16m 19\x1b[0m\x1b[48;5;18;38;5;231m 80\x1b[0m\n",
              "shades");
}

int main(void)
{
    test_across();
    test_downwards();
    test_labels();
    test_mean();
    test_decoder();
    test_color();
    return check_done();
}
