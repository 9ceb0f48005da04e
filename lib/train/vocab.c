/*
 * vocab.c: where a training's vocabularies come from. Given ones are copied byte for byte; a training that goes
 * on has those in its folder; else SentencePiece learns them from the corpus, both sides jointly for tied
 * embeddings. For that the corpus is written as plain text first, whatever it comes as
 * (gzip, tab-separated, a pipe), and read from there afterwards, so that each source is read once.
 */
#include "train/vocab.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "train/pairs.h"
#include "train/report.h"

#define SHARED_FILE "vocab.spm"
#define SOURCE_FILE "source.spm"
#define TARGET_FILE "target.spm"

struct paths { /* in the model folder */
    struct str shared, source, target;
};

static void paths_release(struct paths *paths)
{
    str_release(&paths->shared);
    str_release(&paths->source);
    str_release(&paths->target);
}

static enum tfm_status paths_join(struct paths *paths, const char *folder, struct tfm_error *err)
{
    TRY(path_join(&paths->shared, folder, SHARED_FILE, err));
    TRY(path_join(&paths->source, folder, SOURCE_FILE, err));
    return path_join(&paths->target, folder, TARGET_FILE, err);
}

/* ---- given vocabularies ---- */

struct bytes {
    char *data;
    size_t size;
};

static bool same_bytes(const struct bytes *a, const struct bytes *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* A training that goes on must be given the vocabulary it has. */
static enum tfm_status check_same(const char *path, const struct bytes *given, const char *given_path,
                                  struct tfm_error *err)
{
    struct bytes found;
    TRY(file_read(path, &found.data, &found.size, err));
    bool is_same = same_bytes(&found, given);
    mem_free(found.data);
    if (!is_same)
        return err_set(
            err, TFM_EINVAL,
            "the training in this folder began with another vocabulary (%s) than %s: leave --vocabs out to "
            "go on, or name another --model",
            path, given_path);
    return TFM_OK;
}

static enum tfm_status place_file(const char *path, const struct bytes *given, const char *given_path,
                                  bool goes_on, struct tfm_error *err)
{
    return goes_on ? check_same(path, given, given_path, err)
                   : file_write(path, given->data, given->size, err);
}

static enum tfm_status place_given(const struct paths *paths, const struct bytes *source,
                                   const struct bytes *target, const struct tfm_train_options *options,
                                   bool goes_on, struct tfm_error *err)
{
    const char *source_path = options->source_vocab, *target_path = options->target_vocab;
    if (same_bytes(source, target))
        return place_file(paths->shared.data, source, source_path, goes_on, err);
    if (options->tie == TFM_TIE_ALL)
        return err_set(err, TFM_EINVAL,
                       "%s and %s are two vocabularies, but embeddings tied on both sides need one: use "
                       "--tied-embeddings target or none",
                       source_path, target_path);
    if (!goes_on)
        unlink(paths->shared.data); /* left by an earlier start, it would be taken for both */
    TRY(place_file(paths->source.data, source, source_path, goes_on, err));
    return place_file(paths->target.data, target, target_path, goes_on, err);
}

/* Before it is copied. */
static enum tfm_status check_vocabulary(const char *path, struct tfm_error *err)
{
    struct spm *spm;
    TRY(spm_open(&spm, path, err));
    spm_free(spm);
    return TFM_OK;
}

static enum tfm_status use_given(const struct paths *paths, const struct tfm_train_options *options,
                                 bool goes_on, struct tfm_error *err)
{
    struct bytes source = { 0 }, target = { 0 };
    enum tfm_status status = check_vocabulary(options->source_vocab, err);
    if (status == TFM_OK)
        status = check_vocabulary(options->target_vocab, err);
    if (status == TFM_OK)
        status = file_read(options->source_vocab, &source.data, &source.size, err);
    if (status == TFM_OK)
        status = file_read(options->target_vocab, &target.data, &target.size, err);
    if (status == TFM_OK)
        status = place_given(paths, &source, &target, options, goes_on, err);
    mem_free(source.data);
    mem_free(target.data);
    return status;
}

/* ---- trained vocabularies ---- */

static enum tfm_status write_line(FILE *file, const struct str *line, const char *path, struct tfm_error *err)
{
    if (fwrite(line->data, 1, line->len, file) != line->len || putc('\n', file) == EOF)
        return err_io(err, "cannot write %s", path);
    return TFM_OK;
}

static enum tfm_status copy_pairs(FILE *source, FILE *target, struct vocab *vocab, struct pair_reader *reader,
                                  struct tfm_error *err)
{
    struct str source_line = { 0 }, target_line = { 0 };
    bool more = true;
    enum tfm_status status = TFM_OK;
    while (status == TFM_OK) {
        status = pairs_read(reader, &source_line, &target_line, &more, err);
        if (status != TFM_OK || !more)
            break;
        status = write_line(source, &source_line, vocab->source_text, err);
        if (status == TFM_OK)
            status = write_line(target, &target_line, vocab->target_text, err);
    }
    str_release(&source_line);
    str_release(&target_line);
    return status;
}

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

/* Writes the corpus as two plain files. */
static enum tfm_status write_text(struct vocab *vocab, const struct tfm_train_options *options,
                                  struct tfm_error *err)
{
    FILE *source = NULL, *target = NULL;
    struct pair_reader *reader = NULL;
    enum tfm_status status = pairs_open(&reader, options->source, options->target, options->tsv, err);
    if (status == TFM_OK)
        status = open_text(&source, vocab->source_text, err);
    if (status == TFM_OK)
        status = open_text(&target, vocab->target_text, err);
    if (status == TFM_OK)
        status = copy_pairs(source, target, vocab, reader, err);
    status = close_text(source, vocab->source_text, status, err);
    status = close_text(target, vocab->target_text, status, err);
    pairs_free(reader);
    return status;
}

static enum tfm_status name_text(struct vocab *vocab, const char *folder, struct tfm_error *err)
{
    struct str path = { 0 };
    enum tfm_status status = path_join(&path, folder, "source.txt.tmp", err);
    if (status == TFM_OK && (vocab->source_text = mem_strdup(path.data, err)) == NULL)
        status = TFM_ENOMEM;
    if (status == TFM_OK)
        status = path_join(&path, folder, "target.txt.tmp", err);
    if (status == TFM_OK && (vocab->target_text = mem_strdup(path.data, err)) == NULL)
        status = TFM_ENOMEM;
    str_release(&path);
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
                                     .type = options->vocab_type };
    report_note(options, "training the vocabulary %s (%s, up to %d pieces)", model_path, options->vocab_type,
                options->vocab_size);
    return spm_train(&how, err);
}

static enum tfm_status train_both(const struct paths *paths, const char *const *files,
                                  const struct tfm_train_options *options, struct tfm_error *err)
{
    const char *source = options->tsv != NULL ? options->tsv : options->source;
    const char *target = options->tsv != NULL ? options->tsv : options->target;
    if (options->tie != TFM_TIE_ALL) {
        TRY(train_one(paths->source.data, &files[0], 1, source, options, err));
        return train_one(paths->target.data, &files[1], 1, target, options, err);
    }
    struct str name = { 0 };
    enum tfm_status status = options->tsv != NULL ? str_printf(&name, err, "%s", source)
                                                  : str_printf(&name, err, "%s and %s", source, target);
    if (status == TFM_OK)
        status = train_one(paths->shared.data, files, 2, name.data, options, err);
    str_release(&name);
    return status;
}

/* What an earlier start left, before its first update, is trained anew, since that start may have had another
 * corpus or another --vocab-size. */
static enum tfm_status train(struct vocab *vocab, const struct paths *paths,
                             const struct tfm_train_options *options, struct tfm_error *err)
{
    const char *files[] = { vocab->source_text, vocab->target_text };
    vocab->has_text = true;
    TRY(write_text(vocab, options, err));
    TRY(train_both(paths, files, options, err));
    if (options->tie != TFM_TIE_ALL)
        unlink(paths->shared.data); /* it would be taken for both */
    return TFM_OK;
}

/* ---- opening ---- */

static enum tfm_status prepare_files(struct vocab *vocab, const struct paths *paths,
                                     const struct tfm_train_options *options, bool goes_on,
                                     struct tfm_error *err)
{
    if (options->source_vocab != NULL)
        return use_given(paths, options, goes_on, err);
    return goes_on ? TFM_OK : train(vocab, paths, options, err);
}

static enum tfm_status open_files(struct vocab *vocab, const struct paths *paths, struct tfm_error *err)
{
    if (file_exists(paths->shared.data)) {
        TRY(spm_open(&vocab->source, paths->shared.data, err));
        vocab->target = vocab->source;
    } else {
        TRY(spm_open(&vocab->source, paths->source.data, err));
        TRY(spm_open(&vocab->target, paths->target.data, err));
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

enum tfm_status vocab_init(struct vocab *vocab, const struct tfm_train_options *options, bool goes_on,
                           struct tfm_error *err)
{
    struct paths paths = { 0 };
    *vocab = (struct vocab){ 0 };
    enum tfm_status status = paths_join(&paths, options->model, err);
    if (status == TFM_OK)
        status = name_text(vocab, options->model, err);
    if (status == TFM_OK)
        status = prepare_files(vocab, &paths, options, goes_on, err);
    if (status == TFM_OK)
        status = open_files(vocab, &paths, err);
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
    vocab_remove_text(vocab);
    mem_free(vocab->source_text);
    mem_free(vocab->target_text);
    *vocab = (struct vocab){ 0 };
}

/* What a killed training left goes too. */
void vocab_remove_text(struct vocab *vocab)
{
    if (vocab->source_text != NULL)
        unlink(vocab->source_text);
    if (vocab->target_text != NULL)
        unlink(vocab->target_text);
    vocab->has_text = false;
}
