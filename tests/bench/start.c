/*
 * start.c: what a start of `tfm translate` takes: medians over many starts, each in a process of its own, of
 *     weights      found, read and packed for translation by themselves, on all cores
 *     vocabulary   the source's by itself, its pieces included
 *     shortlist    by itself
 *     ready        what --stats tells: from main() until the first line could be translated
 *     first_line   from the start of the process until the translation of a line that waits for it comes out
 *     whole        until that process is gone
 * In ms, as CSV. The folder's files are in the page cache: each start but the first finds them there.
 *     sh tests/bench/start.sh        or        build/tests/bench/start RUNS build/tfm FOLDER...
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "model/matrices.h"
#include "model/model.h"
#include "model/shortlist.h"

enum {
    MAX_RUNS = 1000,
    N_WHOLE = 3 /* ready, first_line, whole: of one process */
};

static const char line[] = "This is a line of some words.\n";

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    fprintf(stderr, "start: %s\n", err->message);
    exit(1);
}

/* ---- one part ---- */

static double start_weights(const char *folder)
{
    struct tfm_error err;
    struct config config;
    json_t *training;
    struct params params;
    struct str path = { 0 };
    must(model_read_config(&config, &training, folder, &err), &err);
    must(params_list(&params, &config, &err), &err);

    double began = now();
    static struct weights weights;
    static struct net net;
    struct matrices matrices;
    struct loaded *loaded;
    struct pool *pool;
    must(pool_new(&pool, pool_cores(), &err), &err);
    must(model_find_weights(&path, folder, &err), &err);
    must(safetensors_load(&loaded, path.data, &params, TFM_PRECISION_KEEP, pool, &err), &err);
    real *kept = loaded_take_kept(loaded);
    params_bind_kept(&weights, &config, kept);
    net_bind(&net, &config, &weights);
    must(matrices_pack(&matrices, &net, &params, loaded, kept, true, pool, &err), &err);
    loaded_free(loaded);
    pool_free(pool);
    return now() - began;
}

static struct spm *open_vocabulary(const char *folder, const char *name)
{
    struct tfm_error err;
    struct spm *spm;
    struct str path = { 0 };
    must(path_join(&path, folder, MODEL_VOCAB, &err), &err);
    if (!file_exists(path.data))
        must(path_join(&path, folder, name, &err), &err);
    must(spm_open(&spm, path.data, &err), &err);
    return spm;
}

static double start_vocabulary(const char *folder)
{
    double began = now();
    open_vocabulary(folder, MODEL_SOURCE_VOCAB);
    return now() - began;
}

static double start_shortlist(const char *folder)
{
    struct tfm_error err;
    struct shortlist *shortlist;
    struct str path = { 0 };
    must(path_join(&path, folder, SHORTLIST_FILE, &err), &err);
    if (!file_exists(path.data))
        return NAN;
    struct spm *source = open_vocabulary(folder, MODEL_SOURCE_VOCAB);
    struct spm *target = open_vocabulary(folder, MODEL_TARGET_VOCAB);
    double began = now();
    must(shortlist_read(&shortlist, path.data, source, target, &err), &err);
    return now() - began;
}

static const struct {
    const char *name;
    double (*start)(const char *folder);
} parts[] = { { "weights", start_weights },
              { "vocabulary", start_vocabulary },
              { "shortlist", start_shortlist } };

/* In a process that has done nothing yet: memory that is taken again would be faster. */
static double start_part(int part, const char *folder)
{
    int ends[2], status;
    double ms = NAN;
    if (pipe(ends) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        ms = parts[part].start(folder);
        _exit(write(ends[1], &ms, sizeof(ms)) == sizeof(ms) ? 0 : 1);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &ms, sizeof(ms)) != sizeof(ms))
        exit(1);
    close(ends[0]);
    waitpid(child, &status, 0);
    return ms;
}

/* ---- the whole ---- */

static void read_all(int fd, char *text, size_t room)
{
    size_t n = 0;
    for (ssize_t got; n + 1 < room && (got = read(fd, text + n, room - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
}

static void start_whole(double *ms, const char *tfm, const char *folder)
{
    int in[2], out[2], err[2], status;
    char text[4096];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        write(in[1], line, strlen(line)) < 0)
        exit(1);
    close(in[1]);
    double began = now();
    pid_t child = fork();
    if (child == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execl(tfm, tfm, "translate", "-m", folder, "-b", "1", "--stats", (char *)NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    bool is_there = read(out[0], text, 1) == 1;
    ms[1] = now() - began;
    read_all(err[0], text, sizeof(text));
    waitpid(child, &status, 0);
    ms[2] = now() - began;
    close(out[0]);
    close(err[0]);
    char *ready = strstr(text, "ready after ");
    if (!is_there || status != 0 || ready == NULL) {
        fprintf(stderr, "start: %s failed: %s\n", tfm, text);
        exit(1);
    }
    ms[0] = 1e3 * atof(ready + strlen("ready after "));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_median(const char *folder, const char *what, double *ms, int n)
{
    qsort(ms, (size_t)n, sizeof(*ms), compare);
    if (!isnan(ms[0]))
        printf("%s,%s,%.1f,%.1f\n", folder, what, ms[n / 2], ms[0]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static double ms[N_WHOLE][MAX_RUNS];
    int runs = argc > 3 ? atoi(argv[1]) : 0;
    if (runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: start RUNS TFM FOLDER...\n");
        return 2;
    }
    printf("model,part,median_ms,least_ms\n");
    for (int m = 3; m < argc; m++) {
        for (int part = 0; part < (int)(sizeof(parts) / sizeof(*parts)); part++) {
            for (int i = 0; i < runs; i++)
                ms[0][i] = start_part(part, argv[m]);
            print_median(argv[m], parts[part].name, ms[0], runs);
        }
        for (int i = 0; i < runs; i++) {
            double whole[N_WHOLE];
            start_whole(whole, argv[2], argv[m]);
            for (int k = 0; k < N_WHOLE; k++)
                ms[k][i] = whole[k];
        }
        static const char *const names[N_WHOLE] = { "ready", "first_line", "whole" };
        for (int k = 0; k < N_WHOLE; k++)
            print_median(argv[m], names[k], ms[k], runs);
    }
    return 0;
}
