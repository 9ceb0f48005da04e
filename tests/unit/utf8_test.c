/*
 * utf8_test.c: all code points there and back, the malformed forms of RFC 3629 and Unicode's table 3-8, blank
 * lines and widths.
 */
#include <locale.h>
#include <wctype.h>

#include "text/utf8.h"

#include "check.h"

/* Writes the bytes that UTF-8 would give cp, surrogates and too large ones included. */
static size_t encode(uint32_t cp, char bytes[4])
{
    if (cp < 0x80) {
        bytes[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6)
        bytes[i] = (char)(0x80 | (cp & 0x3f));
    bytes[0] = (char)((0xf00 >> n & 0xff) | cp);
    return n;
}

static void check_all_code_points(void)
{
    uint32_t wrong = 0;
    for (uint32_t cp = 0; cp < 0x200000; cp++) {
        char bytes[4];
        uint32_t found = 0xffffffff;
        size_t n = encode(cp, bytes);
        bool exists = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
        int len = utf8_next(bytes, n, &found);
        wrong += exists ? len != (int)n || found != cp : len != 0 || found != 0xffffffff;
        wrong += n > 1 && utf8_next(bytes, n - 1, &found) != 0;
        wrong += utf8_is_valid(bytes, n) != exists;
    }
    CHECK_INT(wrong, 0, "every code point, whole and cut short");

    uint32_t cp = 7;
    CHECK(utf8_next("", 0, &cp) == 0 && cp == 7, "no text");
    CHECK(utf8_next("", 1, &cp) == 1 && cp == 0, "NUL is a character");
    CHECK(utf8_is_valid(NULL, 0) && utf8_is_valid("a\0b", 3), "valid with NUL, and empty");
}

static void check_overlong(void)
{
    static const char *const forms[] = { "\xc0\x80",
                                         "\xc1\xbf",
                                         "\xe0\x80\x80",
                                         "\xe0\x9f\xbf",
                                         "\xf0\x80\x80\x80",
                                         "\xf0\x8f\xbf\xbf",
                                         "\xf8\x88\x80\x80\x80",
                                         "\xfe",
                                         "\xff",
                                         "\x80",
                                         "\xbf" };
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        uint32_t cp;
        CHECK(utf8_next(forms[i], strlen(forms[i]), &cp) == 0, "malformed form %zu", i);
    }
}

#define R "\xef\xbf\xbd"

static void check_repair(void)
{
    static const struct {
        const char *text, *repaired;
    } cases[] = {
        { "", "" },
        { "plain", "plain" },
        { "na\xc3\xafve \xf0\x9f\x98\x80", "na\xc3\xafve \xf0\x9f\x98\x80" },
        { "\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A" },   /* Unicode, table 3-8 */
        { "\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A" },   /* table 3-9 */
        { "\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B" }, /* table 3-10 */
        { "\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A" },           /* table 3-11 */
        { "caf\xe9", "caf" R },                                            /* Latin-1 */
        { "\xe2\x82", R },
        { "\xff\xff"
          "a"
          "\xff",
          R R "a" R },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct str out = { 0 };
        bool done = utf8_repair(&out, cases[i].text, strlen(cases[i].text), NULL) == TFM_OK;
        CHECK_STR(done ? out.data : "failed", cases[i].repaired, "repair %zu", i);
        str_release(&out);
    }
    struct str out = { 0 };
    CHECK(str_add(&out, "x", 1, NULL) == TFM_OK && utf8_repair(&out, "a\0\xff", 3, NULL) == TFM_OK &&
              utf8_repair(&out, NULL, 0, NULL) == TFM_OK && out.len == 6 &&
              memcmp(out.data, "xa\0" R, 7) == 0,
          "repair appends, keeps NUL, takes empty text");
    str_release(&out);
}

static void check_blank(void)
{
    CHECK(utf8_is_blank("", 0) && utf8_is_blank(" \t\r\v\f\0", 6), "ASCII white space and NUL are blank");
    CHECK(utf8_is_blank("\xc2\xa0\xc2\x85\xe1\x9a\x80\xe2\x80\x80\xe2\x80\xa9\xe3\x80\x80\xef\xbb\xbf", 20),
          "so are other spaces and the byte order mark");
    CHECK(!utf8_is_blank(" . ", 3) && !utf8_is_blank("\xe2\x80\x8b", 3) && !utf8_is_blank("\x1f", 1),
          "others are not");
    CHECK(!utf8_is_blank("\xff", 1), "nor is what is malformed");
    int spaces = 0;
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++)
        spaces += utf8_is_space(cp);
    CHECK_INT(spaces, 25, "code points with the property White_Space");
}

static int width(const char *text)
{
    return utf8_width(text, strlen(text));
}

static void check_width(void)
{
    CHECK_INT(utf8_width("", 0), 0, "width of nothing");
    CHECK_INT(width("plain text~"), 11, "of ASCII");
    CHECK_INT(width("\xc3\xa9t\xc3\xa9 \xd0\xbf\xd1\x80 \xce\xb1"), 8, "of Latin, Cyrillic, Greek");
    CHECK_INT(width("e\xcc\x81\xe2\x83\x9d"), 1, "of an e with marks");
    CHECK_INT(width("\xe6\x97\xa5\xe6\x9c\xac\xef\xbc\x81\xef\xbd\xb1"), 7,
              "of ideographs, full and half width");
    CHECK_INT(width("\xed\x95\x9c\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"), 4, "of Hangul, whole and in parts");
    CHECK_INT(width("\xf0\x9f\x98\x80\xe2\x80\x8d\xef\xb8\x8f\xef\xbb\xbf"), 2, "of an emoji and joiners");
    CHECK_INT(width("\xf0\xa0\x80\x80\xf3\xa0\x84\x80"), 2,
              "of plane 2 and a variation selector of plane 14");
    CHECK_INT(width("\x1b\x7f\xc2\x85\n"), 0, "of controls");
    CHECK_INT(width("\xc2\xad\xd8\x80"), 2, "of the soft hyphen and the Arabic number sign");
    CHECK_INT(width("\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xaf"), 2, "of Devanagari with a virama");
    CHECK_INT(width("a\xff\xe2\x82"), 3, "of malformed parts");
    CHECK_INT(utf8_width("a\0b", 3), 2, "of NUL");
}

/* ---- words and capitals ---- */

static void check_words(void)
{
    static const uint32_t joined[] = { 'a',   'Z',   '0',   '_',   0xe4,  0xdf,
                                       0x301, 0x3b1, 0x416, 0x5d0, 0x628, 0x928 };
    static const uint32_t apart[] = { ' ',    '-',    '.',    '\'',   0xa0,   0xab,   0x2019,  0x2013,
                                      0x2581, 0x3001, 0x732b, 0x3042, 0xac00, 0xff01, 0x1f916, 0xfffd };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(joined) / sizeof(*joined); i++)
        wrong += !utf8_is_joined(joined[i]);
    for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
        wrong += utf8_is_joined(apart[i]);
    CHECK_INT(wrong, 0, "letters and digits make words, marks and scripts without spaces do not");
}

static void check_lower(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (locale == (locale_t)0) {
        SKIP("no locale C.UTF-8");
        return;
    }
    int wrong = 0, left = 0, known = 0;
    char bytes[4];
    for (uint32_t cp = 0; cp < 0x11000; cp++) {
        uint32_t expected = (uint32_t)towlower_l((wint_t)cp, locale), found = utf8_lower(cp);
        wrong += found != cp && found != expected;
        bool is_common = cp < 0x180 || (cp >= 0x386 && cp < 0x3ac) || (cp >= 0x400 && cp < 0x557) ||
                         (cp >= 0x1e00 && cp < 0x1f00);
        left += is_common && found != expected && cp != 0x130 && cp != 0x4c0;
        known += found != cp;
        wrong += encode(found, bytes) > encode(cp, bytes);
    }
    freelocale(locale);
    CHECK(wrong == 0 && left == 0, "of %d capitals %d are wrong, and %d common ones are left as they are",
          known, wrong, left);
}

static void check_add(void)
{
    struct str out = { 0 };
    struct tfm_error err;
    int wrong = 0;
    for (uint32_t cp = 1; cp < 0x110000; cp++) {
        uint32_t back = 0;
        if (cp >= 0xd800 && cp < 0xe000)
            continue;
        str_clear(&out);
        wrong += utf8_add(&out, cp, &err) != TFM_OK || utf8_next(out.data, out.len, &back) != (int)out.len ||
                 back != cp;
    }
    CHECK_INT(wrong, 0, "a character that is added is read back");
    str_release(&out);
}

int main(void)
{
    check_all_code_points();
    check_overlong();
    check_repair();
    check_blank();
    check_width();
    check_words();
    check_lower();
    check_add();
    return check_done();
}
