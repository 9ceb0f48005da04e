/*
 * str_test.c: strings and arrays that grow, and error sentences that are cut at a character.
 */
#include "base/str.h"

#include <errno.h>

#include "base/mem.h"
#include "check.h"

static void test_str(void)
{
    struct tfm_error err;
    struct str s = { 0 };
    CHECK_INT(str_add(&s, "", 0, &err), TFM_OK, "adding nothing");
    CHECK_STR(s.data, "", "makes an empty text");
    CHECK_INT(str_add(&s, NULL, 0, &err), TFM_OK, "NULL of no bytes is nothing");
    str_add(&s, "a\0b", 3, &err);
    CHECK(s.len == 3 && memcmp(s.data, "a\0b", 4) == 0, "NUL bytes are bytes");
    str_clear(&s);
    CHECK(s.len == 0 && s.data[0] == '\0', "clear");
    for (int i = 0; i < 1000; i++)
        str_printf(&s, &err, "%d,", i);
    CHECK(s.len == 3890 && strcmp(s.data + 3882, "998,999,") == 0, "a thousand prints");
    str_clear(&s);
    str_printf(&s, &err, "%10000d|", 1);
    CHECK(s.len == 10001 && s.data[10000] == '|', "a print longer than the room");
    str_printf(&s, &err, "%s", "");
    CHECK_INT(s.len, 10001, "a print of nothing");

    size_t cap = s.cap;
    str_add(&s, "x", 1, &err);
    mem_fail_after(0);
    CHECK_INT(str_reserve(&s, cap, &err), TFM_ENOMEM, "a failed growth says so");
    mem_fail_after(-1);
    CHECK(s.len == 10002 && s.data[10000] == '|', "and leaves the content");
    CHECK_INT(str_reserve(&s, SIZE_MAX - 5, &err), TFM_ENOMEM, "a size that wraps is refused");
    str_release(&s);
    CHECK(s.data == NULL && s.len == 0 && s.cap == 0, "released");
    str_release(&s);
    str_clear(&s);
}

static void test_ints(void)
{
    struct tfm_error err;
    struct ints a = { 0 };
    for (int i = 0; i < 1000; i += 2)
        ints_add(&a, (int[]){ i, i + 1 }, 2, &err);
    bool in_order = a.n == 1000;
    for (int i = 0; in_order && i < 1000; i++)
        in_order = a.data[i] == i;
    CHECK(in_order, "a thousand ints in order");
    CHECK_INT(ints_add(&a, NULL, 0, &err), TFM_OK, "adding nothing");
    CHECK_INT(ints_reserve(&a, 100000, &err), TFM_OK, "reserve");
    CHECK(a.cap >= 101000 && a.n == 1000 && a.data[999] == 999, "makes room and nothing else");
    CHECK_INT(ints_reserve(&a, SIZE_MAX / 4, &err), TFM_ENOMEM, "a size that wraps is refused");
    ints_release(&a);
    CHECK(a.data == NULL && a.n == 0, "released");
}

static void test_errors(void)
{
    struct tfm_error err;
    CHECK_INT(err_set(&err, TFM_EFORMAT, "%s: line %d", "x", 3), TFM_EFORMAT, "err_set returns the status");
    CHECK_INT(err.status, TFM_EFORMAT, "and stores it");
    CHECK_STR(err.message, "x: line 3", "and the sentence");
    errno = ENOENT;
    CHECK_INT(err_io(&err, "cannot open %s", "x"), TFM_EIO, "err_io returns TFM_EIO");
    CHECK_STR(err.message, "cannot open x: No such file or directory", "and adds the system's reason");
    CHECK_INT(err_set(NULL, TFM_EINVAL, "x"), TFM_EINVAL, "without an error only the status");
    CHECK_INT(err_io(NULL, "x"), TFM_EIO, "with errno, too");

    char text[1100];
    for (int lead = 0; lead < 4;
         lead++) { /* each way in which the end can fall into a character of 4 bytes */
        memset(text, 'x', sizeof(text));
        for (size_t i = (size_t)lead; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 4);
        text[sizeof(text) - 1] = '\0';
        err_set(&err, TFM_EINVAL, "%s", text);
        size_t len = strlen(err.message);
        CHECK(len > 990 && (len - (size_t)lead) % 4 == 0, "a long sentence is cut at a character (%d)", lead);
    }
    memset(text, 'x', 999);
    text[999] = '\0';
    err_set(&err, TFM_EINVAL, "%s", text);
    CHECK_INT(strlen(err.message), 999, "a sentence that just fits is whole");
    errno = EIO;
    err_io(&err, "%s", text);
    CHECK_INT(strlen(err.message), 999, "a reason that does not fit is left out");
}

int main(void)
{
    test_str();
    test_ints();
    test_errors();
    return check_done();
}
