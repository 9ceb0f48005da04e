/*
 * svg_test.c: attention weights as SVG: shades and runs of squares, the grid of maps, and pieces that XML
 * could not hold as they are.
 */
#include "inspect/svg.h"

#include "check.h"

static char *draw(const struct attention *a)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    enum tfm_status status = svg_write(out, a, NULL);
    fclose(out);
    CHECK_INT(status, TFM_OK, "drawn");
    return text;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

int main(void)
{
    const char *queries[] = { "▁Die", "<unk>" }, *keys[] = { "a&b", "\x01\xff", "</s>" };
    /* two layers of one head, two queries, three keys */
    float weights[] = { 1, 0, 0, 0.25f, 0.25f, 0.5f, 0, NAN, 0.001f, 1, 1, 1 };
    struct attention a = { .part = TFM_CROSS,
                           .layer = 1,
                           .n_layers = 2,
                           .head = 3,
                           .n_heads = 1,
                           .n_queries = 2,
                           .n_keys = 3,
                           .queries = queries,
                           .keys = keys,
                           .weights = weights };
    char *text = draw(&a);
    CHECK(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39) == 0, "it begins as SVG does");
    CHECK(strcmp(text + strlen(text) - 7, "</svg>\n") == 0, "and ends");
    CHECK(strstr(text, ">layer 1 head 3<") != NULL && strstr(text, ">layer 2 head 3<") != NULL, "two maps");
    CHECK(strstr(text, "<path fill=\"#08306b\" d=\"M0 0h1v1h-1z\"/>") != NULL,
          "a weight of 1 is the darkest");
    CHECK(strstr(text, "d=\"M0 1h2v1h-2z\"/>") != NULL, "two alike are one rectangle");
    CHECK(strstr(text, "d=\"M2 1h1v1h-1z\"/>") != NULL, "a half is another shade");
    CHECK(strstr(text, "<path fill=\"#08306b\" d=\"M0 1h3v1h-3z\"/>") != NULL, "a whole row");
    CHECK_INT(count(text, "<path"), 4, "nothing for small weights and for those that are not numbers");
    CHECK(strstr(text, "▁Die") != NULL && strstr(text, ">&lt;unk&gt;<") != NULL, "pieces beside a map");
    CHECK(strstr(text, ">a&amp;b<") != NULL && strstr(text, ">\xef\xbf\xbd\xef\xbf\xbd<") != NULL,
          "and above");
    CHECK_INT(count(text, "&lt;unk&gt;"), 1, "written once");
    CHECK_INT(count(text, "#queries") + count(text, "#keys"), 4, "and used by each map");
    free(text);

    const char *longest[] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b" };
    a.queries = longest;
    text = draw(&a);
    CHECK(strstr(text, ">aaaaaaaaaaaaaaaaaaaa\xe2\x80\xa6<") != NULL, "a long piece is cut");
    free(text);
    return check_done();
}
