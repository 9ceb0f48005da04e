/*
 * metric_checks.h: the checks of bleu_test and chrf_test: sacreBLEU's scores for odd texts and for files, and
 * the laws that hold whatever the text. The scores come from sacreBLEU 2.6, BLEU(force=True) and CHRF();
 * tests/bench/metric_check.py compares whole files. A test sets metric_score and calls metric_check_all.
 */
#ifndef TFM_TESTS_METRIC_CHECKS_H
#define TFM_TESTS_METRIC_CHECKS_H

#include "base/line.h"
#include "base/mem.h"
#include "check.h"

/* The function to be tested, bleu_score or chrf_score. */
static enum tfm_status (*metric_score)(const char *const *hypotheses, const char *const *references, size_t n,
                                       double *score, struct tfm_error *err);
static bool metric_is_bleu;

static const struct metric_case {
    const char *name;
    const char *hypotheses[3], *references[3]; /* NULL after the last line */
    double bleu, chrf;
} metric_cases[] = {
    { "one word wrong",
      { "The cat sat on the mat." },
      { "The cat sat on a mat." },
      48.892302243490, 71.422475630338 },
    { "too short",
      { "The cat sat on" },
      { "The cat sat on the mat in the sun." },
      22.313016014843, 41.105461356764 },
    { "too long",
      { "The cat sat on the mat in the sun." },
      { "The cat sat on the mat." },
      53.728496591177, 85.516297265873 },
    { "three orders without a match",
      { "the a cat the b" },
      { "the dog cat ran far" },
      12.703318703865, 15.999650381155 },
    { "no 4-gram at all",
      { "a b c" },
      { "a b c" },
      0.000000000000, 100.000000000000 },
    { "nothing in common",
      { "x y z w v" },
      { "a b c d e" },
      0.000000000000, 0.000000000000 },
    { "empty hypotheses among others",
      { "", "A man sleeps on a bench .", "" },
      { "A dog.", "A man sleeps on a bench.", "Two girls." },
      42.437284567695, 70.878642663759 },
    { "all empty",
      { "", "" },
      { "", "" },
      0.000000000000, 0.000000000000 },
    { "empty reference",
      { "a b c d e", "Hello there, you two." },
      { "", "Hello there, you two." },
      56.774042097613, 100.000000000000 },
    { "numbers, dashes",
      { "It cost $1,000.50 in 1990-1995, i.e. 5-6% more - at 3.", "See 1.2.3, .5, 5., 9--8 and x-9-y." },
      { "It costs $1,000.5 in 1990 - 1995, i.e. 5-6% more -- at 3 .",
        "See 1.2.3 , 0.5 , 5 . , 9-8 and x-9-y ." },
      64.490324540045, 79.238309894706 },
    { "entities",
      { "He said &quot;A &amp; B&quot; &lt;x&gt; &amp;lt; &amp;quot;." },
      { "He said \"A & B\" <x> < &quot;." },
      71.662583752827, 33.372584624567 },
    { "<skipped> and hyphens at line ends",
      { "a hyphen-\nated line\nbreak -<skipped>\nend and more-\n" },
      { "a hyphenated line break end and more" },
      80.910671157022, 74.518380807280 },
    { "stops in rows",
      { "Well... no.. a,,b ,. end." },
      { "Well ... no . . a , , b , . end ." },
      100.000000000000, 100.000000000000 },
    { "white space",
      { "a\302\240b\343\200\200c\td\034e\342\200\250f\302\205g h\342\200\213i \342\200\203" },
      { "a b c d e f g hi" },
      84.089641525371, 82.609380143655 },
    { "other scripts",
      { "Привет, мир! 日本語のテスト。١,٢ é e\314\201 👩\342\200\215👩" },
      { "Привет, мир. 日本語 のテスト。 ١,٢ e\314\201 é 👩\342\200\215👩!" },
      16.853397475765, 66.716810073305 },
    { "words many times",
      { "the the the the the the the" },
      { "the cat is on the mat the end" },
      7.492442692260, 16.507264585270 },
    { "punctuation",
      { "[a] {b} (c) d/e f_g h\\i j|k l~m n`o p^q r@s t=u 'v' \"w\" x:y;z!? #1 50% a&b *+<>" },
      { "[ a ] { b } ( c ) d / e f _ g h i j | k l ~ m n ` o p ^ q r @ s t = u ' v ' \" w \" x : y ; z ! "
        "? # 1 50 % a & b * + < >" },
      89.419391958688, 95.228782848888 },
};

enum { N_METRIC_CASES = sizeof(metric_cases) / sizeof(*metric_cases) };

static inline size_t metric_lines(const struct metric_case *c)
{
    size_t n = 0;
    while (n < 3 && c->hypotheses[n] != NULL)
        n++;
    return n;
}

/* Files with the scores of the first against the second, in the folder TFM_SHARED. */
static const struct metric_files {
    const char *hypotheses, *references;
    double bleu, chrf;
} metric_files[] = {
    { "data/ntrex/ntrex-a.por.gz", "data/ntrex/ntrex-a.por-BR.gz", 28.355977737681, 57.287718752008 },
    { "data/multi30k/val.de.gz", "data/multi30k/val.en.gz", 0.492163321006, 17.931071745461 },
};

enum { N_METRIC_FILES = sizeof(metric_files) / sizeof(*metric_files), MAX_METRIC_LINES = 2000 };

/* The lines of a file; 0 where it cannot be read. */
static inline size_t metric_read(const char *folder, const char *name, char *lines[MAX_METRIC_LINES])
{
    char path[1000];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    struct line_reader *reader;
    struct str line = { 0 };
    size_t n = 0;
    bool more;
    if (line_open(&reader, path, NULL) != TFM_OK)
        return 0;
    while (n < MAX_METRIC_LINES && line_read(reader, &line, &more, NULL) == TFM_OK && more)
        lines[n++] = mem_strdup(line.len > 0 ? line.data : "", NULL);
    line_free(reader);
    str_release(&line);
    return n;
}

static inline double metric_of(const char *const *hypotheses, const char *const *references, size_t n)
{
    double found = -1;
    struct tfm_error err;
    return metric_score(hypotheses, references, n, &found, &err) == TFM_OK ? found : -2;
}

static inline void metric_check_cases(void)
{
    for (int i = 0; i < N_METRIC_CASES; i++) {
        const struct metric_case *c = &metric_cases[i];
        double expected = metric_is_bleu ? c->bleu : c->chrf;
        CHECK_NEAR(metric_of(c->hypotheses, c->references, metric_lines(c)), expected, 1e-9, "%s", c->name);
    }
}

/* All cases as one corpus: sums, not means, and so in any order. */
static inline void metric_check_order(void)
{
    const char *hypotheses[3 * N_METRIC_CASES], *references[3 * N_METRIC_CASES];
    size_t n = 0;
    for (int i = 0; i < N_METRIC_CASES; i++) {
        for (size_t k = 0; k < metric_lines(&metric_cases[i]); k++, n++) {
            hypotheses[n] = metric_cases[i].hypotheses[k];
            references[n] = metric_cases[i].references[k];
        }
    }
    double forward = metric_of(hypotheses, references, n);
    for (size_t i = 0; i < n / 2; i++) {
        const char *swap = hypotheses[i];
        hypotheses[i] = hypotheses[n - 1 - i];
        hypotheses[n - 1 - i] = swap;
        swap = references[i];
        references[i] = references[n - 1 - i];
        references[n - 1 - i] = swap;
    }
    CHECK(forward > 0 && forward < 100, "a corpus of all cases");
    CHECK(metric_of(hypotheses, references, n) == forward, "the order of the lines does not matter");
    CHECK_NEAR(metric_of(references, references, n), 100, 1e-9, "a text against itself");
}

static inline void metric_check_odd(void)
{
    const char *bad[] = { "a man\xff sits \xe2\x82 on a \xed\xa0\x80 bench" };
#define REPLACED "\xef\xbf\xbd"
    const char *repaired[] = { "a man" REPLACED " sits " REPLACED " on a " REPLACED REPLACED REPLACED
                               " bench" };
#undef REPLACED
    CHECK_NEAR(metric_of(bad, repaired, 1), 100, 1e-9, "malformed UTF-8 counts as U+FFFD");
    CHECK(metric_of(NULL, NULL, 0) == 0, "no lines score 0");

    enum { LONG = 300000 };
    char *text = mem_alloc(LONG + 1, NULL);
    for (int i = 0; i < LONG; i++)
        text[i] = "ab c,d-1."[i * 7 % 1000 % 9];
    const char *line = text;
    CHECK_NEAR(metric_of(&line, &line, 1), 100, 1e-9, "a line of %d characters", LONG);
    mem_free(text);
}

static inline void metric_check_files(void)
{
    const char *folder = getenv("TFM_SHARED");
    static char *hypotheses[MAX_METRIC_LINES], *references[MAX_METRIC_LINES];
    for (int i = 0; i < N_METRIC_FILES; i++) {
        const struct metric_files *f = &metric_files[i];
        size_t n = folder != NULL ? metric_read(folder, f->hypotheses, hypotheses) : 0;
        size_t m = folder != NULL ? metric_read(folder, f->references, references) : 0;
        if (n > 0 && n == m) {
            double found = metric_of((const char *const *)hypotheses, (const char *const *)references, n);
            CHECK_NEAR(found, metric_is_bleu ? f->bleu : f->chrf, 1e-9, "%s", f->hypotheses);
        } else {
            SKIP("needs %s in TFM_SHARED", f->hypotheses);
        }
        while (n > 0)
            mem_free(hypotheses[--n]);
        while (m > 0)
            mem_free(references[--m]);
    }
}

static inline void metric_check_memory(void)
{
    const char *hypothesis = "A man, 35, sleeps on a bench - \xff.";
    const char *reference = "A man sleeps on the bench.";
    int failures = 0;
    bool clean = true;
    for (int n = 0; n < 100; n++) {
        struct tfm_error err = { 0 };
        double found;
        mem_fail_after(n);
        enum tfm_status status = metric_score(&hypothesis, &reference, 1, &found, &err);
        mem_fail_after(-1);
        if (status == TFM_OK)
            break;
        failures++;
        clean &= status == TFM_ENOMEM && err.status == TFM_ENOMEM;
    }
    CHECK(failures > 3 && clean, "every allocation may fail (%d did)", failures);
}

static inline void metric_check_all(void)
{
    metric_check_cases();
    metric_check_order();
    metric_check_odd();
    metric_check_files();
    metric_check_memory();
}

#endif
