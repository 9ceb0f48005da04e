/*
 * toy_vocab.h: a small vocabulary for tests of the trainer, trained on lines that are made here.
 */
#ifndef TFM_TESTS_TOY_VOCAB_H
#define TFM_TESTS_TOY_VOCAB_H

#include "base/file.h"
#include "base/rng.h"
#include "check.h"
#include "text/spm.h"

/* Ends the test program with the sentence of a failure that nothing can go on from. */
static inline void toy_must(enum tfm_status status, const struct tfm_error *err)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err->message, "", "a step that must work");
    exit(check_done());
}

/* Line i of a toy language: 1 to 12 words. */
static inline void toy_line(struct str *line, int i, uint64_t language)
{
    static const char *const words[] = { "ka", "lomi", "tersun", "ble", "na", "vierpu", "öl", "sunka" };
    struct tfm_error err;
    int n = 1 + (int)rng_below(rng_key(language, (uint64_t)i, 0, 0), 12);
    str_clear(line);
    for (int w = 0; w < n; w++)
        toy_must(str_printf(line, &err, "%s%s", w > 0 ? " " : "",
                            words[rng_below(rng_key(language, (uint64_t)i, (uint64_t)w, 1), 8)]),
                 &err);
}

static inline const char *toy_file(const char *name, int n_lines, uint64_t language)
{
    struct str text = { 0 }, line = { 0 };
    struct tfm_error err;
    for (int i = 0; i < n_lines; i++) {
        toy_line(&line, i, language);
        toy_must(str_printf(&text, &err, "%s\n", line.data), &err);
    }
    const char *path = check_path("%s", name);
    toy_must(file_write(path, text.data, text.len, &err), &err);
    str_release(&text);
    str_release(&line);
    return path;
}

static inline struct spm *toy_vocab(void)
{
    struct tfm_error err;
    struct spm *spm;
    const char *files[] = { toy_file("toy.txt", 400, 1) };
    struct spm_train_options how = { .files = files,
                                     .n_files = 1,
                                     .model_path = check_path("toy.spm"),
                                     .vocab_size = 40,
                                     .type = "unigram" };
    toy_must(spm_train(&how, &err), &err);
    toy_must(spm_open(&spm, how.model_path, &err), &err);
    return spm;
}

#endif
