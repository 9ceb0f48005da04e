/*
 * translate_options.c: the defaults of struct tfm_translate_options, what each may be, and the options of the
 * search that follow from them.
 */
#include <limits.h>
#include <string.h>

#include "base/limit.h"
#include "decode/translator.h"

#define MAX_BEAM          64
#define MAX_LENGTH        10000
#define MAX_LENGTH_FACTOR 100
#define DEFAULT_LENGTH_FACTOR 3
#define MAX_NORMALIZE     10
#define MAX_PENALTY       100
#define MAX_TEMPERATURE   100
#define MAX_MINI_BATCH    10000
#define MAX_THREADS       1024

void tfm_translate_options_init(struct tfm_translate_options *options)
{
    *options = (struct tfm_translate_options){
        .beam_size = 5,
        .normalize = 1,
        .max_length_factor = DEFAULT_LENGTH_FACTOR,
        .max_length = 500,
        .n_best = 1,
        .alignment_layer = -1,
        .repetition_penalty = 1,
        .sampling_top_k = 10,
        .sampling_top_p = 0.9f,
        .temperature = 1,
        .seed = 1,
        .shortlist = "auto",
        .mini_batch = 32,
    };
}

static enum tfm_status check_range(const char *what, long value, long min, long max, struct tfm_error *err)
{
    if (value >= min && value <= max)
        return TFM_OK;
    return err_set(err, TFM_EINVAL, "%s is %ld; it must be from %ld to %ld", what, value, min, max);
}

/* min is a float, so that 0.01 as the least is not above the 0.01 that was given. */
static enum tfm_status check_number(const char *what, float value, float min, int max, struct tfm_error *err)
{
    if (value >= min && value <= (float)max)
        return TFM_OK;
    return err_set(err, TFM_EINVAL, "%s is %g; it must be from %g to %d", what, (double)value, (double)min,
                   max);
}

static enum tfm_status check_sampling(const struct tfm_translate_options *o, struct tfm_error *err)
{
    TRY(check_range("the number of tokens to draw from", o->sampling_top_k, 1, INT_MAX, err));
    TRY(check_number("the probability to draw from", o->sampling_top_p, 1e-6f, 1, err));
    return check_number("the temperature", o->temperature, 0.01f, MAX_TEMPERATURE, err);
}

/* A language model has no source, and nothing that comes from one. */
static enum tfm_status check_language_model(const struct tfm_translate_options *o, struct tfm_error *err)
{
    const struct {
        const char *name;
        bool is_given;
    } uses[] = {
        { "an alignment", o->alignment != TFM_ALIGN_NONE },
        { "the replacement of unknown pieces", o->replace_unk },
        { "a glossary", o->glossary != NULL },
        { "a shortlist",
          o->shortlist != NULL && strcmp(o->shortlist, "auto") != 0 && strcmp(o->shortlist, "off") != 0 },
        { "the maximal length factor", o->max_length_factor != DEFAULT_LENGTH_FACTOR },
    };
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        if (uses[i].is_given)
            return err_set(err, TFM_EINVAL,
                           "%s is of translations, which have a source: this model is a language model",
                           uses[i].name);
    return TFM_OK;
}

enum tfm_status translate_options_check(const struct tfm_translate_options *o, const struct config *config,
                                        struct tfm_error *err)
{
    const struct limit choices[] = {
        { "alignment", (int)o->alignment, 0, TFM_ALIGN_PIECES },
        { "output_sampling", (int)o->output_sampling, 0, TFM_SAMPLING_TOPP },
    };
    TRY(LIMIT_CHECK(choices, err));
    TRY(check_range("the beam size", o->beam_size, 1, MAX_BEAM, err));
    TRY(check_range("the maximal length (of a line, in pieces)", o->max_length, 1, MAX_LENGTH, err));
    TRY(check_range("the batch size (in sentences)", o->mini_batch, 1, MAX_MINI_BATCH, err));
    TRY(check_range("the number of threads (0: one a core)", o->threads, 0, MAX_THREADS, err));
    if (config->task == CONFIG_LANGUAGE_MODEL)
        TRY(check_language_model(o, err));
    int most = o->output_sampling != TFM_SAMPLING_NONE ? MAX_BEAM : o->beam_size;
    if (o->n_best < 1 || o->n_best > most)
        return err_set(err, TFM_EINVAL,
                       "the number of hypotheses wanted a line is %d; it must be from 1 to %s%d", o->n_best,
                       most == o->beam_size ? "the beam size, " : "", most);
    int n_layers = config_alignment_layers(config);
    if (o->alignment_layer < -1 || o->alignment_layer >= n_layers)
        return err_set(err, TFM_EINVAL,
                       "the layer that makes the alignment is %d; it must be from 0 to %d (-1: the default)",
                       o->alignment_layer, n_layers - 1);
    if (o->output_sampling != TFM_SAMPLING_NONE)
        TRY(check_sampling(o, err));
    if (o->output_sampling != TFM_SAMPLING_NONE && o->glossary != NULL)
        return err_set(err, TFM_EINVAL, "a glossary needs beam search, and this is sampling");
    TRY(check_range("the minimal length (of a translation, in pieces)", o->min_length, 0, MAX_LENGTH, err));
    TRY(check_range("the length of n-grams that may not come twice (0: any may)", o->no_repeat_ngram_size, 0,
                    MAX_LENGTH, err));
    TRY(check_number("the repetition penalty", o->repetition_penalty, 0.01f, MAX_PENALTY, err));
    TRY(check_number("the exponent of length normalization", o->normalize, 0, MAX_NORMALIZE, err));
    return check_number("the maximal length factor", o->max_length_factor, 0, MAX_LENGTH_FACTOR, err);
}

void translate_options_search(struct search_options *search, const struct tfm_translate_options *o,
                              const struct config *config)
{
    bool draws = o->output_sampling != TFM_SAMPLING_NONE;
    *search = (struct search_options){
        .beam_size = draws ? o->n_best : o->beam_size,
        .n_best = o->n_best,
        .normalize = o->normalize,
        .max_length_factor = o->max_length_factor,
        .max_text = config->task == CONFIG_LANGUAGE_MODEL ? o->max_length : 0,
        .align = o->alignment != TFM_ALIGN_NONE || o->replace_unk,
        .align_layer = o->alignment_layer >= 0 ? o->alignment_layer : config_alignment_layers(config) - 1,
        .candidates = { .allow_unk = o->allow_unk || o->replace_unk,
                        .min_length = o->min_length,
                        .no_repeat_ngram_size = o->no_repeat_ngram_size,
                        .repetition_penalty = o->repetition_penalty,
                        .draw = { .kind = o->output_sampling,
                                  .top_k = o->sampling_top_k,
                                  .top_p = o->sampling_top_p,
                                  .temperature = o->temperature } },
    };
    search->candidates.n = search->beam_size;
}
