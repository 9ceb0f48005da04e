/*
 * json_test.c: JSON files are read and written, and every wrong field gets a sentence of its own.
 */
#include "base/json.h"

#include "base/file.h"
#include "base/mem.h"
#include "check.h"

static struct tfm_error err;
static char path[600];

static json_t *parse(const char *text)
{
    json_error_t problem;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &problem);
    if (value == NULL)
        check_note("%s: %s", text, problem.text);
    return value;
}

static void test_files(void)
{
    static const char text[] = "{\"b\": [1, 2.5, null], \"a\": \"Stra\xc3\x9f"
                               "e\"}";
    json_t *root, *again;
    file_write(path, text, strlen(text), &err);
    CHECK_INT(json_read(&root, path, &err), TFM_OK, "read");
    CHECK_INT(json_write(root, path, &err), TFM_OK, "write");
    CHECK_INT(json_read(&again, path, &err), TFM_OK, "read again");
    CHECK(json_equal(root, again), "  gives the same");
    json_decref(again);
    char *data;
    size_t size;
    file_read(path, &data, &size, &err);
    CHECK_STR(data,
              "{\n  \"b\": [\n    1,\n    2.5,\n    null\n  ],\n  \"a\": \"Stra\xc3\x9f"
              "e\"\n}\n",
              "indented, in order, UTF-8 as it is");
    mem_free(data);
    CHECK_INT(json_write(root, "/dev/full", &err), TFM_EIO, "a full disk");
    CHECK_INT(json_write(root, "/nowhere/x", &err), TFM_EIO, "a missing folder");
    json_decref(root);

    static const struct {
        const char *text, *message;
    } bad[] = {
        { "", "line 1, column 0: not valid JSON" },
        { "{\"a\": 1", "line 1, column 7: not valid JSON" },
        { "{\n  \"a\": 1,\n}", "line 3, column 1: not valid JSON" },
        { "{\"a\": 1, \"a\": 2}", "duplicate object key" },
        { "{} x", "end of file expected" },
        { "[1, \"\xff\"]", "line 1" },
        { "[99999999999999999999]", "too big integer" },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        file_write(path, bad[i].text, strlen(bad[i].text), &err);
        CHECK_INT(json_read(&root, path, &err), TFM_EFORMAT, "bad JSON %zu", i);
        CHECK(root == NULL && strstr(err.message, path) == err.message &&
                  strstr(err.message, bad[i].message) != NULL,
              "  %s", err.message + strlen(path));
    }
    struct str deep = { 0 };
    for (int i = 0; i < 100000; i++)
        str_add(&deep, "[", 1, &err);
    file_write(path, deep.data, deep.len, &err);
    CHECK_INT(json_read(&root, path, &err), TFM_EFORMAT, "lists a hundred thousand deep");
    str_release(&deep);
    CHECK_INT(json_read(&root, "/nowhere/x", &err), TFM_EIO, "a missing file");
}

static void test_fields(void)
{
    json_t *object =
        parse("{\"n\": 512, \"x\": 0.5, \"whole\": 2.0, \"s\": \"text\", \"t\": true, \"f\": false,"
              " \"null\": null, \"list\": [], \"object\": {}, \"big\": 9223372036854775807}");
    int n = -1;
    double x = -1;
    bool b = false;
    const char *s = NULL;
    CHECK(json_get_int(object, "n", 1, 65536, &n, "c", &err) == TFM_OK && n == 512, "a whole number");
    CHECK(json_get_real(object, "x", 0, 1, &x, "c", &err) == TFM_OK && x == 0.5, "a number");
    CHECK(json_get_real(object, "n", 0, 1000, &x, "c", &err) == TFM_OK && x == 512,
          "a whole number is a number");
    CHECK(json_get_bool(object, "t", &b, "c", &err) == TFM_OK && b, "true");
    CHECK(json_get_bool(object, "f", &b, "c", &err) == TFM_OK && !b, "false");
    CHECK(json_get_string(object, "s", &s, "c", &err) == TFM_OK && strcmp(s, "text") == 0, "a string");

    static const struct {
        const char *field, *found;
    } wrong[] = {
        { "s", "found a string" },
        { "x", "found 0.5" },
        { "whole", "found 2.0" },
        { "t", "found true" },
        { "f", "found false" },
        { "null", "found null" },
        { "list", "found a list" },
        { "object", "found an object" },
        { "big", "found 9223372036854775807" },
        { "n", "found 512" },
    };
    n = -1;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected),
                 "c.json: field \"%s\": %s, expected a whole number from 1 to 511", wrong[i].field,
                 wrong[i].found);
        CHECK_INT(json_get_int(object, wrong[i].field, 1, 511, &n, "c.json", &err), TFM_EFORMAT,
                  "no whole number: %s", wrong[i].field);
        CHECK_STR(err.message, expected, "  and its sentence");
    }
    CHECK_INT(n, -1, "nothing is stored on failure");
    json_get_int(object, "missing", 1, 2, &n, "c.json", &err);
    CHECK_STR(err.message, "c.json: the field \"missing\" is missing; expected a whole number from 1 to 2",
              "a missing one");
    json_get_real(object, "x", 0, 0.25, &x, "c.json", &err);
    CHECK_STR(err.message, "c.json: field \"x\": found 0.5, expected a number from 0 to 0.25",
              "a number too large");
    json_get_real(object, "x", 1, HUGE_VAL, &x, "c.json", &err);
    CHECK_STR(err.message, "c.json: field \"x\": found 0.5, expected a number of at least 1",
              "a number too small");
    json_get_real(object, "s", -HUGE_VAL, HUGE_VAL, &x, "c.json", &err);
    CHECK_STR(err.message, "c.json: field \"s\": found a string, expected a number", "no number");
    json_get_bool(object, "n", &b, "c.json", &err);
    CHECK_STR(err.message, "c.json: field \"n\": found 512, expected true or false", "no truth value");
    json_get_string(object, "null", &s, "c.json", &err);
    CHECK_STR(err.message, "c.json: field \"null\": found null, expected a string", "no string");
    json_decref(object);

    json_t *list = parse("[1]");
    json_get_int(list, "n", 1, 2, &n, "c.json", &err);
    CHECK_STR(err.message, "c.json: found a list, expected an object with a field \"n\"", "no object");
    json_decref(list);
    json_get_int(NULL, "n", 1, 2, &n, "c.json", &err);
    CHECK_STR(err.message, "c.json: found nothing, expected an object with a field \"n\"",
              "nor one that is missing in its own object");
}

int main(void)
{
    snprintf(path, sizeof(path), "%s/c.json", check_tmp());
    test_files();
    test_fields();
    return check_done();
}
