/*
 * check.h: unit tests that speak TAP (the Test Anything Protocol, version 12). A test program calls CHECK and
 * its kind, each of which prints one numbered result, and ends with `return check_done();`. A failed check
 * says where it stands and what it found, and the program goes on.
 *
 * The environment: TFM_BUILD is the build folder, TFM_SHARED a folder with data that is not part of the
 * project (where it is missing, tests that need it call SKIP), TMPDIR a folder for temporary files.
 */
#ifndef TFM_TESTS_CHECK_H
#define TFM_TESTS_CHECK_H

#include <ftw.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_count, check_failures;
static char check_folder[512];

/* CHECK(condition, "name with %d", n): the name may be a format. */
#define CHECK(condition, ...) check_result((condition), __FILE__, __LINE__, #condition, __VA_ARGS__)

/* CHECK_INT(found, expected, "name"...), the same for strings (NULL allowed) and for numbers at most
 * `tolerance` apart. */
#define CHECK_INT(found, expected, ...) check_int((found), (expected), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_STR(found, expected, ...) check_str((found), (expected), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_NEAR(found, expected, tolerance, ...) \
    check_near((found), (expected), (tolerance), __FILE__, __LINE__, __VA_ARGS__)

/* SKIP("why"): counts as one skipped check. */
#define SKIP(...) check_skip(__VA_ARGS__)

/* The larger of two errors, where fmax would take the other one for NaN. */
static inline double check_worse(double a, double b)
{
    return isnan(a) || isnan(b) ? INFINITY : fmax(a, b);
}

__attribute__((format(printf, 2, 0))) static inline bool check_print(bool passed, const char *name,
                                                                     va_list args)
{
    printf("%s %d - ", passed ? "ok" : "not ok", ++check_count);
    vprintf(name, args);
    putchar('\n');
    check_failures += !passed;
    return passed;
}

/* Prints one line of diagnosis. Flushes, so that a crash loses nothing. */
__attribute__((format(printf, 1, 2))) static inline void check_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("# ");
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
    va_end(args);
}

__attribute__((format(printf, 5, 6))) static inline bool
check_result(bool passed, const char *file, int line, const char *condition, const char *name, ...)
{
    va_list args;
    va_start(args, name);
    check_print(passed, name, args);
    va_end(args);
    if (!passed)
        check_note("%s:%d: does not hold: %s", file, line, condition);
    fflush(stdout);
    return passed;
}

__attribute__((format(printf, 5, 6))) static inline bool
check_int(long long found, long long expected, const char *file, int line, const char *name, ...)
{
    va_list args;
    va_start(args, name);
    bool passed = check_print(found == expected, name, args);
    va_end(args);
    if (!passed)
        check_note("%s:%d: found %lld, expected %lld", file, line, found, expected);
    fflush(stdout);
    return passed;
}

__attribute__((format(printf, 5, 6))) static inline bool
check_str(const char *found, const char *expected, const char *file, int line, const char *name, ...)
{
    bool same = found == expected || (found != NULL && expected != NULL && strcmp(found, expected) == 0);
    va_list args;
    va_start(args, name);
    check_print(same, name, args);
    va_end(args);
    if (!same) {
        check_note("%s:%d: found    \"%s\"", file, line, found != NULL ? found : "(null)");
        check_note("%s:%d: expected \"%s\"", file, line, expected != NULL ? expected : "(null)");
    }
    fflush(stdout);
    return same;
}

__attribute__((format(printf, 6, 7))) static inline bool
check_near(double found, double expected, double tolerance, const char *file, int line, const char *name, ...)
{
    va_list args;
    va_start(args, name);
    bool passed = check_print(found == expected || fabs(found - expected) <= tolerance, name, args);
    va_end(args);
    if (!passed)
        check_note("%s:%d: found %.17g, expected %.17g within %g", file, line, found, expected, tolerance);
    fflush(stdout);
    return passed;
}

__attribute__((format(printf, 1, 2))) static inline void check_skip(const char *why, ...)
{
    va_list args;
    va_start(args, why);
    printf("ok %d - skipped # SKIP ", ++check_count);
    vprintf(why, args);
    putchar('\n');
    fflush(stdout);
    va_end(args);
}

static inline int check_remove(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

/* A folder of this program's own, made at the first call and removed by check_done. */
static inline const char *check_tmp(void)
{
    if (check_folder[0] == '\0') {
        const char *parent = getenv("TMPDIR");
        snprintf(check_folder, sizeof(check_folder), "%s/tfm-test-XXXXXX", parent != NULL ? parent : "/tmp");
        if (mkdtemp(check_folder) == NULL) {
            perror(check_folder);
            exit(1);
        }
    }
    return check_folder;
}

/* A path in that folder; the name may be a format. Valid until the eighth call after. */
__attribute__((format(printf, 1, 2))) static inline const char *check_path(const char *name, ...)
{
    static char paths[8][700];
    static int next;
    char *path = paths[next++ % 8];
    int len = snprintf(path, sizeof(paths[0]), "%s/", check_tmp());
    va_list args;
    va_start(args, name);
    vsnprintf(path + len, sizeof(paths[0]) - (size_t)len, name, args);
    va_end(args);
    return path;
}

/* Whether both files are there and hold the same bytes. */
static inline bool check_same_files(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    int p = EOF, q = 0;
    if (x != NULL && y != NULL) {
        do {
            p = getc(x);
            q = getc(y);
        } while (p == q && p != EOF);
    }
    if (x != NULL)
        fclose(x);
    if (y != NULL)
        fclose(y);
    return p == q;
}

static inline int check_done(void)
{
    if (check_folder[0] != '\0')
        nftw(check_folder, check_remove, 16, FTW_DEPTH | FTW_PHYS);
    printf("1..%d\n", check_count);
    return check_failures != 0 || fflush(stdout) != 0;
}

#endif
