/*
 * plan_test.c: where long lines are cut: behind sentences, also of scripts without spaces, but not behind
 * abbreviations; else behind clauses, else between words.
 */
#include <string.h>

#include "base/file.h"
#include "check.h"
#include "decode/plan.h"
#include "text/abbrev.h"

/* A vocabulary of single characters, more or less. */
static struct spm *open_vocabulary(void)
{
    static const char text[] =
        "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ .,;:!?()[]\"' 0123456789\n"
        "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbb\x8a\xe5\xa4\xa9\xe3\x80\x82\xe5\xbe\x88\xef\xbc\x81\xe5\xa5\xbd\xef"
        "\xbc"
        "\x9f\xe4\xbd\xa0\xef\xbc\x8c\xe3\x80\x8c\xe3\x80\x8d\n";
    struct tfm_error err;
    struct spm *spm = NULL;
    const char *files[] = { check_path("text") }, *path = check_path("vocab.spm");
    struct spm_train_options how = {
        .files = files, .n_files = 1, .model_path = path, .vocab_size = 100, .type = "bpe"
    };
    if (file_write(files[0], text, strlen(text), &err) != TFM_OK || spm_train(&how, &err) != TFM_OK ||
        spm_open(&spm, path, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "a vocabulary can be made");
        exit(check_done());
    }
    return spm;
}

/* Cuts text into parts of at most max_length pieces; the texts of the parts, with bars between them. */
static void check_cut(const struct spm *spm, const char *text, int max_length, const char *expected)
{
    struct ints ids = { 0 };
    struct str joined = { 0 };
    struct plan plan;
    struct tfm_error err;
    spm_encode(spm, text, strlen(text), &ids, &err);
    struct plan_line line = { .pieces = ids.data, .n_pieces = (int)ids.n };
    if (plan_init(&plan, max_length, &err) != TFM_OK || plan_cut(&plan, &line, 1, spm, &err) != TFM_OK)
        CHECK_STR(err.message, "", "a line can be cut");
    for (int i = 0; i < line.n_parts; i++) {
        str_add(&joined, "|", i > 0, &err);
        spm_decode(spm, line.parts[i].pieces, (size_t)line.parts[i].n_pieces, &joined, &err);
    }
    CHECK_STR(joined.data, expected, "a line of %zu pieces is cut where it ends something", ids.n);
    plan_release(&plan);
    str_release(&joined);
    ints_release(&ids);
}

static void test_cuts(const struct spm *spm)
{
    check_cut(spm, "ab cd. ef gh ij kl. mn op qr", 24, "ab cd. ef gh ij kl.|mn op qr");
    check_cut(spm, "ab cd ef. gh ij, kl mn op qr", 24, "ab cd ef.|gh ij, kl mn op qr");
    check_cut(spm, "ab cd ef gh ij, kl mn op qr", 24, "ab cd ef gh ij,|kl mn op qr");
    check_cut(spm, "He saw it. Then Dr. Low went home now.", 30, "He saw it.|Then Dr. Low went home now.");
    check_cut(spm, "He saw it. Then J. K. Low went home.", 30, "He saw it.|Then J. K. Low went home.");
    check_cut(spm, "Das ist so. Er hat z. B. ein Haus gut.", 30, "Das ist so.|Er hat z. B. ein Haus gut.");
    check_cut(spm, "Da ist Er hat z. B. ein Haus gut.", 20, "Da ist Er hat|z. B. ein Haus gut.");
    check_cut(spm, "Das ist so. Am 3. Mai kam (bzw. ging) er.", 32,
              "Das ist so.|Am 3. Mai kam (bzw. ging) er.");
    check_cut(spm, "a end. b end.) c end.\" d e f g h i j k", 26, "a end. b end.) c end.\"|d e f g h i j k");
}

/* The vocabulary makes the full-width marks narrow. */
static void test_unspaced(const struct spm *spm)
{
#define NI   "\xe4\xbd\xa0"
#define HAO  "\xe5\xa5\xbd"
#define STOP "\xe3\x80\x82"
    check_cut(spm, NI HAO HAO STOP NI HAO HAO HAO HAO, 8, NI HAO HAO STOP "|" NI HAO HAO HAO HAO);
    check_cut(spm, NI HAO HAO "\xef\xbc\x81" NI HAO HAO HAO HAO, 8, NI HAO HAO "!|" NI HAO HAO HAO HAO);
    check_cut(spm, NI HAO HAO "\xef\xbc\x9f" NI HAO HAO HAO HAO, 8, NI HAO HAO "?|" NI HAO HAO HAO HAO);
    check_cut(spm, NI HAO HAO HAO "\xef\xbc\x8c" NI HAO HAO HAO, 8, NI HAO HAO HAO ",|" NI HAO HAO HAO);
    check_cut(spm, "\xe3\x80\x8c" NI HAO STOP "\xe3\x80\x8d" NI HAO HAO HAO, 8,
              "\xe3\x80\x8c" NI HAO STOP "\xe3\x80\x8d|" NI HAO HAO HAO);
    check_cut(spm, "ab 1.5 cd 3!4 ef gh", 12, "ab 1.5 cd|3!4 ef gh");
}

static void test_abbreviations(void)
{
    static const char *const yes[] = { "Dr",
                                       "(Dr",
                                       ("\xe2\x80\x9e"
                                        "Prof"),
                                       "z",
                                       "z.B",
                                       "e.g",
                                       "U.S",
                                       "J",
                                       "\xc3\x84",
                                       "3",
                                       "31",
                                       "Ph.D",
                                       "bzw",
                                       "No",
                                       "St",
                                       "vs",
                                       "[cf",
                                       "zzgl",
                                       "Abb",
                                       "j\xc3\xa4hrl" };
    static const char *const no[] = { "",
                                      "house",
                                      "no",
                                      "etc",
                                      "1990",
                                      "Haus",
                                      "z.Be",
                                      "a..b",
                                      "fig2",
                                      "the",
                                      "3a",
                                      "(",
                                      "Doctorofphilosophyandmore" };
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        CHECK(abbrev_is(yes[i], strlen(yes[i])), "%s. ends no sentence", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
        CHECK(!abbrev_is(no[i], strlen(no[i])), "%s. may end one", no[i]);
}

int main(void)
{
    struct spm *spm = open_vocabulary();
    test_cuts(spm);
    test_unspaced(spm);
    test_abbreviations();
    spm_free(spm);
    return check_done();
}
