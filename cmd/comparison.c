/*
 * comparison.c: compares a model with the one that was made of it, on a parallel text:
 *
 *                      BLEU    chrF
 *     IN              41.93   60.28
 *     OUT             41.80   60.19
 *     lines changed   12 of 1000 (1.20 %)
 *     words changed   31 of 9000 (0.34 %)
 */
#include "comparison.h"

#include <stdlib.h>

#include "score_input.h"

static enum tfm_status add_pair(struct comparison *c, struct score_pair *pair, struct tfm_error *err)
{
    char *source = pair->source, *reference = pair->target;
    pair->source = pair->target = NULL;
    enum tfm_status status = line_list_add(&c->sources, source, err);
    if (status == TFM_OK)
        return line_list_add(&c->references, reference, err);
    free(reference);
    return status;
}

static enum tfm_status read_pairs(struct comparison *c, const char *source_path, const char *target_path,
                                  struct tfm_error *err)
{
    struct score_input input;
    struct score_pair pair = { 0 };
    bool more = true;
    enum tfm_status status = score_input_open(&input, SCORE_FILES, source_path, target_path, false, err);
    if (status != TFM_OK)
        return status;
    while (status == TFM_OK && (status = score_input_next(&input, &pair, &more, err)) == TFM_OK && more)
        status = add_pair(c, &pair, err);
    score_pair_release(&pair);
    score_input_close(&input);
    if (status == TFM_OK && c->sources.n == 0)
        status = cmd_error(err, TFM_EFORMAT, "%s and %s have no lines; expected some to translate",
                           source_path, target_path);
    return status;
}

/* A model that makes no translations has none to compare: a language model's texts are no such thing, and a
 * masked one makes none at all. */
static enum tfm_status check_translates(const struct tfm_model *model, struct tfm_error *err)
{
    if (tfm_model_is_language_model(model))
        return cmd_error(err, TFM_EINVAL,
                         "%s is a language model, which makes no translations to compare (--valid-sets)",
                         tfm_model_folder(model));
    struct tfm_translate_options options;
    struct tfm_translator *translator;
    tfm_translate_options_init(&options);
    options.threads = 1;
    enum tfm_status status = tfm_translator_new(&translator, model, &options, err);
    tfm_translator_free(translator);
    return status;
}

enum tfm_status comparison_open(struct comparison *c, const char *source_path, const char *target_path,
                                const char *folder, struct tfm_error *err)
{
    *c = (struct comparison){ 0 };
    enum tfm_status status = read_pairs(c, source_path, target_path, err);
    if (status == TFM_OK)
        status = tfm_model_open(&c->before, folder, err);
    return status == TFM_OK ? check_translates(c->before, err) : status;
}

static void print_part(const char *name, size_t part, size_t whole)
{
    printf("%s   %zu of %zu (%.2f %%)\n", name, part, whole,
           whole > 0 ? 100 * (double)part / (double)whole : 0);
}

enum tfm_status comparison_print(const struct comparison *c, const char *new_folder, volatile const int *stop,
                                 struct tfm_error *err)
{
    struct tfm_model *after;
    struct tfm_comparison found;
    enum tfm_status status = tfm_model_open(&after, new_folder, err);
    if (status != TFM_OK)
        return status;
    struct tfm_compare_options options = { .models = { c->before, after },
                                           .sources = (const char *const *)c->sources.line,
                                           .references = (const char *const *)c->references.line,
                                           .n_lines = c->sources.n,
                                           .stop = stop };
    status = tfm_compare(&options, &found, err);
    tfm_model_free(after);
    if (status != TFM_OK)
        return status;
    printf("%-14s %6s  %6s\n", "", "BLEU", "chrF");
    for (int i = 0; i < 2; i++)
        printf("%-14s %6.2f  %6.2f\n", i == 0 ? "IN" : "OUT", found.bleu[i], found.chrf[i]);
    print_part("lines changed", found.changed_lines, c->sources.n);
    print_part("words changed", found.changed_words, found.words);
    return TFM_OK;
}

void comparison_release(struct comparison *c)
{
    line_list_release(&c->sources);
    line_list_release(&c->references);
    tfm_model_free(c->before);
    *c = (struct comparison){ 0 };
}
