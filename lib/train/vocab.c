/*
 * vocab.c: where a training's vocabularies come from. Given ones, or those of the model to begin with, are
 * copied byte for byte; a training that goes on has those in its folder; else SentencePiece learns them from
 * the corpora, both sides jointly for tied embeddings. That of a masked language model has a piece for what
 * is hidden: where a given one has none, it becomes the last. SentencePiece is given plain text, about a
 * million pairs taken from all over the corpora in blocks of lines (or all pairs, where there are no more),
 * whatever the weights.
 */
#include "train/vocab.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/convert_input.h"
#include "train/report.h"
#include "train/train_options.h"

#define SAMPLE_PAIRS 1000000 /* SentencePiece takes 2,000,000 lines */

struct paths { /* in the model folder */
    struct str shared, source, target;
    struct str source_text, target_text; /* to learn from; there only while that is done */
};

static bool has_one_vocabulary(const struct tfm_train_options *options)
{
    return options->tie == TFM_TIE_ALL || train_options_is_text(options);
}

static void paths_release(struct paths *paths)
{
    str_release(&paths->shared);
    str_release(&paths->source);
    str_release(&paths->target);
    str_release(&paths->source_text);
    str_release(&paths->target_text);
}

static enum tfm_status paths_join(struct paths *paths, const char *folder, struct tfm_error *err)
{
    TRY(path_join(&paths->shared, folder, MODEL_VOCAB, err));
    TRY(path_join(&paths->source, folder, MODEL_SOURCE_VOCAB, err));
    TRY(path_join(&paths->target, folder, MODEL_TARGET_VOCAB, err));
    TRY(path_join(&paths->source_text, folder, "source.txt.tmp", err));
    return path_join(&paths->target_text, folder, "target.txt.tmp", err);
}

/* ---- given vocabularies ---- */

struct given { /* a vocabulary, of one side */
    const char *name;
    struct str bytes;
};

static bool same_bytes(const struct str *a, const struct str *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static enum tfm_status read_bytes(struct str *bytes, const char *path, struct tfm_error *err)
{
    char *data;
    size_t size;
    TRY(file_read(path, &data, &size, err));
    enum tfm_status status = str_add(bytes, data, size, err);
    mem_free(data);
    return status;
}

/* A training that goes on must be given the vocabulary it has. */
static enum tfm_status check_same(const char *path, const struct given *given, struct tfm_error *err)
{
    struct str found = { 0 };
    enum tfm_status status = read_bytes(&found, path, err);
    if (status == TFM_OK && !same_bytes(&found, &given->bytes))
        status = err_set(
            err, TFM_EINVAL,
            "the training in this folder began with another vocabulary (%s) than %s: leave --vocabs out to "
            "go on, or name another --model",
            path, given->name);
    str_release(&found);
    return status;
}

static enum tfm_status place_file(const char *path, const struct given *given, bool goes_on,
                                  struct tfm_error *err)
{
    return goes_on ? check_same(path, given, err)
                   : file_write(path, given->bytes.data, given->bytes.len, err);
}

static enum tfm_status place_given(const struct paths *paths, const struct given sides[2],
                                   const struct tfm_train_options *options, bool goes_on,
                                   struct tfm_error *err)
{
    if (same_bytes(&sides[0].bytes, &sides[1].bytes))
        return place_file(paths->shared.data, &sides[0], goes_on, err);
    if (has_one_vocabulary(options))
        return err_set(err, TFM_EINVAL,
                       "%s and %s are two vocabularies, but embeddings tied on both sides need one: use "
                       "--tied-embeddings target or none",
                       sides[0].name, sides[1].name);
    if (!goes_on)
        unlink(paths->shared.data); /* left by an earlier start, it would be taken for both */
    TRY(place_file(paths->source.data, &sides[0], goes_on, err));
    return place_file(paths->target.data, &sides[1], goes_on, err);
}

/* Opens a vocabulary before it is copied, reads it, and gives it the mask that it needs. */
static enum tfm_status read_given(struct given *given, const struct tfm_train_options *options,
                                  struct tfm_error *err)
{
    struct spm *spm;
    TRY(spm_open(&spm, given->name, err));
    bool has_mask = spm_piece_id(spm, MODEL_MASK_PIECE, strlen(MODEL_MASK_PIECE)) >= 0;
    spm_free(spm);
    TRY(read_bytes(&given->bytes, given->name, err));
    if (options->arch == TFM_ARCH_ENCODER && !has_mask)
        TRY(spm_add_symbol(&given->bytes, MODEL_MASK_PIECE, err));
    return TFM_OK;
}

static enum tfm_status use_given(const struct paths *paths, const char *source, const char *target,
                                 const struct tfm_train_options *options, bool goes_on, struct tfm_error *err)
{
    struct given sides[2] = { { .name = source }, { .name = target } };
    enum tfm_status status = read_given(&sides[0], options, err);
    if (status == TFM_OK)
        status = read_given(&sides[1], options, err);
    if (status == TFM_OK)
        status = place_given(paths, sides, options, goes_on, err);
    str_release(&sides[0].bytes);
    str_release(&sides[1].bytes);
    return status;
}

/* The vocabularies of the model to begin with. */
static enum tfm_status use_pretrained(const struct paths *paths, const struct tfm_train_options *options,
                                      struct tfm_error *err)
{
    struct convert_input input;
    struct paths its = { 0 };
    enum tfm_status status = convert_input_open(&input, options->pretrained, err);
    if (status == TFM_OK)
        status = paths_join(&its, input.model, err);
    if (status == TFM_OK && file_exists(its.shared.data))
        status = use_given(paths, its.shared.data, its.shared.data, options, false, err);
    else if (status == TFM_OK)
        status = use_given(paths, its.source.data, its.target.data, options, false, err);
    paths_release(&its);
    convert_input_release(&input);
    return status;
}

/* ---- trained vocabularies ---- */

static enum tfm_status open_text(FILE **file, const char *path, struct tfm_error *err)
{
    *file = fopen(path, "wbe");
    return *file != NULL ? TFM_OK : err_io(err, "cannot write %s", path);
}

static enum tfm_status close_text(FILE *file, const char *path, enum tfm_status status, struct tfm_error *err)
{
    if (file != NULL && fclose(file) != 0 && status == TFM_OK)
        return err_io(err, "cannot write %s", path);
    return status;
}

static enum tfm_status write_block(FILE *source, FILE *target, const struct paths *paths,
                                   const struct text_block *block, struct tfm_error *err)
{
    for (size_t i = 0; i < block->n; i++) {
        if (fputs(pairs_source(block, i), source) == EOF || putc('\n', source) == EOF)
            return err_io(err, "cannot write %s", paths->source_text.data);
        if (fputs(pairs_target(block, i), target) == EOF || putc('\n', target) == EOF)
            return err_io(err, "cannot write %s", paths->target_text.data);
    }
    return TFM_OK;
}

/* Every block of all texts, or every so many-th, so that there are SAMPLE_PAIRS pairs at most, about. */
static enum tfm_status write_sample(FILE *source, FILE *target, const struct paths *paths,
                                    const struct windows *w, struct text_block *block, struct tfm_error *err)
{
    uint64_t step = windows_pairs(w) / SAMPLE_PAIRS + 1, number = 0;
    for (int t = 0; t < w->n_texts; t++) {
        for (int b = 0; b < w->texts[t].n_blocks; b++) {
            if (number++ % step != 0)
                continue;
            pairs_clear(block);
            TRY(bitext_read(block, &w->texts[t], b, NULL, 0, err));
            TRY(write_block(source, target, paths, block, err));
        }
    }
    return TFM_OK;
}

/* Writes text to learn from as two plain files. */
static enum tfm_status write_text(const struct paths *paths, const struct windows *windows,
                                  struct tfm_error *err)
{
    FILE *source = NULL, *target = NULL;
    struct text_block block = { 0 };
    enum tfm_status status = open_text(&source, paths->source_text.data, err);
    if (status == TFM_OK)
        status = open_text(&target, paths->target_text.data, err);
    if (status == TFM_OK)
        status = write_sample(source, target, paths, windows, &block, err);
    status = close_text(source, paths->source_text.data, status, err);
    status = close_text(target, paths->target_text.data, status, err);
    pairs_release(&block);
    return status;
}

/* Trains on the text of one side, or on both; that text lies in files that the user has not named. */
static enum tfm_status train_one(const char *model_path, const char *const *files, int n_files,
                                 const char *text_name, const struct tfm_train_options *options,
                                 struct tfm_error *err)
{
    struct spm_train_options how = { .files = files,
                                     .n_files = n_files,
                                     .text_name = text_name,
                                     .model_path = model_path,
                                     .vocab_size = options->vocab_size,
                                     .type = options->vocab_type,
                                     .symbol = options->arch == TFM_ARCH_ENCODER ? MODEL_MASK_PIECE : NULL };
    report_note(options, "training the vocabulary %s (%s, up to %d pieces)", model_path, options->vocab_type,
                options->vocab_size);
    return spm_train(&how, err);
}

/* What messages call the text of a side (or of both, NULL). */
static enum tfm_status name_text(struct str *name, const struct tfm_train_options *options, const char *side,
                                 struct tfm_error *err)
{
    if (options->corpora[0].tsv == NULL && side != NULL)
        TRY(str_printf(name, err, "%s", side));
    else
        TRY(bitext_name(name, &options->corpora[0], err));
    return options->n_corpora == 1 ? TFM_OK : str_printf(name, err, " and others");
}

static enum tfm_status train_both(const struct paths *paths, const struct tfm_train_options *options,
                                  struct tfm_error *err)
{
    const char *files[] = { paths->source_text.data, paths->target_text.data };
    const struct tfm_corpus *first = &options->corpora[0];
    struct str source = { 0 }, target = { 0 }, both = { 0 };
    enum tfm_status status = name_text(&both, options, NULL, err);
    if (status == TFM_OK)
        status = name_text(&source, options, first->source, err);
    if (status == TFM_OK)
        status = name_text(&target, options, first->target, err);
    if (status == TFM_OK && has_one_vocabulary(options)) {
        status = train_one(paths->shared.data, files, 2, both.data, options, err);
    } else if (status == TFM_OK) {
        status = train_one(paths->source.data, &files[0], 1, source.data, options, err);
        if (status == TFM_OK)
            status = train_one(paths->target.data, &files[1], 1, target.data, options, err);
    }
    str_release(&source);
    str_release(&target);
    str_release(&both);
    return status;
}

/* What an earlier start left, before its first update, is trained anew, since that start may have had another
 * corpus or another --vocab-size. */
static enum tfm_status train(const struct paths *paths, const struct tfm_train_options *options,
                             const struct windows *windows, struct tfm_error *err)
{
    enum tfm_status status = write_text(paths, windows, err);
    if (status == TFM_OK)
        status = train_both(paths, options, err);
    unlink(paths->source_text.data);
    unlink(paths->target_text.data);
    if (status == TFM_OK && !has_one_vocabulary(options))
        unlink(paths->shared.data); /* it would be taken for both */
    return status;
}

/* ---- opening ---- */

static enum tfm_status prepare_files(const struct paths *paths, const struct tfm_train_options *options,
                                     const struct windows *windows, bool goes_on, struct tfm_error *err)
{
    if (options->source_vocab != NULL)
        return use_given(paths, options->source_vocab, options->target_vocab, options, goes_on, err);
    if (goes_on)
        return TFM_OK;
    return options->pretrained != NULL ? use_pretrained(paths, options, err)
                                       : train(paths, options, windows, err);
}

static enum tfm_status open_file(struct spm **spm, uint64_t *fingerprint, const char *path,
                                 struct tfm_error *err)
{
    char *data;
    size_t size;
    TRY(spm_open(spm, path, err));
    TRY(file_read(path, &data, &size, err));
    *fingerprint = rng_hash(*fingerprint, data, size);
    mem_free(data);
    return TFM_OK;
}

static enum tfm_status open_files(struct vocab *vocab, const struct paths *paths, bool is_shared,
                                  struct tfm_error *err)
{
    if (is_shared) {
        TRY(open_file(&vocab->source, &vocab->fingerprint, paths->shared.data, err));
        vocab->target = vocab->source;
    } else {
        TRY(open_file(&vocab->source, &vocab->fingerprint, paths->source.data, err));
        TRY(open_file(&vocab->target, &vocab->fingerprint, paths->target.data, err));
    }
    if (spm_eos(vocab->source) < 0 || spm_eos(vocab->target) < 0)
        return err_set(err, TFM_EFORMAT,
                       "the vocabulary has no </s>, which ends every sentence here: train one with "
                       "an end symbol (--eos_id)");
    if (spm_eos(vocab->source) != spm_eos(vocab->target) || spm_unk(vocab->source) != spm_unk(vocab->target))
        return err_set(
            err, TFM_EFORMAT,
            "</s> and <unk> are %d and %d in the source vocabulary but %d and %d in the target one: they "
            "must have the same numbers in both",
            spm_eos(vocab->source), spm_unk(vocab->source), spm_eos(vocab->target), spm_unk(vocab->target));
    return TFM_OK;
}

enum tfm_status vocab_init(struct vocab *vocab, const struct tfm_train_options *options,
                           const struct windows *windows, bool goes_on, struct tfm_error *err)
{
    struct paths paths = { 0 };
    struct str found = { 0 };
    bool is_shared;
    *vocab = (struct vocab){ 0 };
    enum tfm_status status = paths_join(&paths, options->model, err);
    if (status == TFM_OK)
        status = prepare_files(&paths, options, windows, goes_on, err);
    if (status == TFM_OK)
        status = model_find_vocabulary(&found, &is_shared, options->model, err);
    if (status == TFM_OK)
        status = open_files(vocab, &paths, is_shared, err);
    str_release(&found);
    paths_release(&paths);
    if (status != TFM_OK)
        vocab_release(vocab);
    return status;
}

void vocab_release(struct vocab *vocab)
{
    if (vocab->target != vocab->source)
        spm_free(vocab->target);
    spm_free(vocab->source);
    *vocab = (struct vocab){ 0 };
}
