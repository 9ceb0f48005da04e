/*
 * compare_api.c: how much the translations of two models differ, such as those of one model before and after
 * quantising: each model's are scored against references, and those of the second compared with those of the
 * first, by lines and by words. Words are compared with the edit distance of Levenshtein (1966), in which a
 * word put in, left out or replaced counts one; a row of its table is held at a time.
 */
#include <string.h>

#include "base/mem.h"
#include "text/bleu.h"
#include "text/chrf.h"

#define BLOCK 512 /* lines translated before `stop` is looked at again */
#define SPACE " \t\r\n"

struct texts { /* translations, as many as there are lines to translate */
    char **line;
    size_t n;
};

static void texts_release(struct texts *texts)
{
    for (size_t i = 0; i < texts->n; i++)
        mem_free(texts->line[i]);
    mem_free(texts->line);
}

/* ---- translating ---- */

static enum tfm_status translate_block(struct texts *out, struct tfm_translator *translator,
                                       const char *const *lines, size_t n, struct tfm_error *err)
{
    const struct tfm_translation *result;
    TRY(tfm_translate(translator, lines, n, &result, err));
    for (size_t i = 0; i < n; i++) {
        out->line[out->n] = mem_strdup(result[i].hypotheses[0].text, err);
        if (out->line[out->n] == NULL)
            return TFM_ENOMEM;
        out->n++;
    }
    return TFM_OK;
}

static enum tfm_status translate(struct texts *out, const struct tfm_model *model,
                                 const struct tfm_compare_options *o, struct tfm_error *err)
{
    struct tfm_translate_options options;
    tfm_translate_options_init(&options);
    options.threads = o->threads;
    out->line = mem_alloc((o->n_lines + 1) * sizeof(*out->line), err);
    if (out->line == NULL)
        return TFM_ENOMEM;
    struct tfm_translator *translator;
    TRY(tfm_translator_new(&translator, model, &options, err));
    enum tfm_status status = TFM_OK;
    while (status == TFM_OK && out->n < o->n_lines) {
        size_t left = o->n_lines - out->n;
        if (o->stop != NULL && *o->stop != 0)
            status = err_set(err, TFM_ESTOPPED, "stopped; the models were not compared");
        else
            status = translate_block(out, translator, o->sources + out->n, left < BLOCK ? left : BLOCK, err);
    }
    tfm_translator_free(translator);
    return status;
}

/* ---- words ---- */

/* The word at *text, which moves behind it; false where there is none. */
static bool next_word(const char **text, const char **word, size_t *len)
{
    *word = *text + strspn(*text, SPACE);
    *len = strcspn(*word, SPACE);
    *text = *word + *len;
    return *len > 0;
}

static size_t count_words(const char *text)
{
    const char *word;
    size_t n = 0, len;
    while (next_word(&text, &word, &len))
        n++;
    return n;
}

/* distance [words of b + 1] is scratch: its entry j is how far the words of a until now are from the first j
 * of b. */
static size_t edit_distance(const char *a, const char *b, size_t *distance)
{
    const char *word, *other;
    size_t len, other_len, n = count_words(b);
    for (size_t j = 0; j <= n; j++)
        distance[j] = j;
    while (next_word(&a, &word, &len)) {
        const char *rest = b;
        size_t diagonal = distance[0]++;
        for (size_t j = 1; next_word(&rest, &other, &other_len); j++) {
            bool same = len == other_len && memcmp(word, other, len) == 0;
            size_t best = diagonal + !same;
            diagonal = distance[j];
            best = distance[j] + 1 < best ? distance[j] + 1 : best;
            best = distance[j - 1] + 1 < best ? distance[j - 1] + 1 : best;
            distance[j] = best;
        }
    }
    return distance[n];
}

static enum tfm_status count_changes(struct tfm_comparison *c, const struct texts *a, const struct texts *b,
                                     struct tfm_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < b->n; i++) {
        size_t n = count_words(b->line[i]);
        most = n > most ? n : most;
    }
    size_t *distance = mem_alloc((most + 1) * sizeof(*distance), err);
    if (distance == NULL)
        return TFM_ENOMEM;
    for (size_t i = 0; i < a->n; i++) {
        c->words += count_words(a->line[i]);
        c->changed_words += edit_distance(a->line[i], b->line[i], distance);
        c->changed_lines += strcmp(a->line[i], b->line[i]) != 0;
    }
    mem_free(distance);
    return TFM_OK;
}

/* ---- the whole ---- */

/* A language model goes on with its line, and has nothing for one that is longer than its limit. */
static enum tfm_status check_models(const struct tfm_compare_options *o, struct tfm_error *err)
{
    for (int i = 0; i < 2; i++) {
        if (tfm_model_is_language_model(o->models[i]))
            return err_set(err, TFM_EINVAL,
                           "%s is a language model, which makes no translations to compare",
                           tfm_model_folder(o->models[i]));
    }
    return TFM_OK;
}

static enum tfm_status compare(struct tfm_comparison *c, struct texts *out,
                               const struct tfm_compare_options *o, struct tfm_error *err)
{
    for (int i = 0; i < 2; i++) {
        TRY(translate(&out[i], o->models[i], o, err));
        const char *const *texts = (const char *const *)out[i].line;
        TRY(bleu_score(texts, o->references, o->n_lines, &c->bleu[i], err));
        TRY(chrf_score(texts, o->references, o->n_lines, &c->chrf[i], err));
    }
    return count_changes(c, &out[0], &out[1], err);
}

enum tfm_status tfm_compare(const struct tfm_compare_options *options, struct tfm_comparison *comparison,
                            struct tfm_error *err)
{
    struct texts out[2] = { { .n = 0 } };
    *comparison = (struct tfm_comparison){ 0 };
    TRY(check_models(options, err));
    enum tfm_status status = compare(comparison, out, options, err);
    texts_release(&out[0]);
    texts_release(&out[1]);
    return status;
}
