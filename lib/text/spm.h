/*
 * spm.h: SentencePiece in C: tokenising, detokenising and training (Kudo and Richardson 2018). spm.cc is the
 * only C++ file of the project; exceptions and failures end there. A struct spm is read-only and shared by
 * threads. SentencePiece's own log, which is the process's, is switched off by spm_open and spm_train.
 */
#ifndef TFM_TEXT_SPM_H
#define TFM_TEXT_SPM_H

#include "base/str.h"

#ifdef __cplusplus
extern "C" {
#endif

struct spm;

enum tfm_status spm_open(struct spm **spm, const char *path, struct tfm_error *err);
void spm_free(struct spm *spm);

int spm_size(const struct spm *spm);
int spm_eos(const struct spm *spm); /* -1 where the vocabulary has none */
int spm_unk(const struct spm *spm);
const char *spm_piece(const struct spm *spm, int id); /* as in the vocabulary, with U+2581 for a space */
bool spm_is_word_start(const struct spm *spm, int id);
bool spm_is_text(const struct spm *spm, int id); /* not unknown, control, byte or unused */
int spm_piece_id(const struct spm *spm, const char *piece, size_t len); /* -1: no piece of text */
float spm_score(const struct spm *spm, int id); /* unigram: log-probability; BPE: the first merge is greatest */
bool spm_is_bpe(const struct spm *spm);

/* Appends the pieces' ids (no </s>). Invalid UTF-8 is replaced by U+FFFD before; NUL bytes count as spaces. A
 * line of more than 64 MiB is an error. */
enum tfm_status spm_encode(const struct spm *spm, const char *text, size_t len, struct ints *ids,
                           struct tfm_error *err);
/* Appends the text of the line that its pieces first .. first+n-1 stand for, unknown characters included, without
 * spaces. */
enum tfm_status spm_surface(const struct spm *spm, const char *text, size_t len, size_t first, size_t n,
                            struct str *out, struct tfm_error *err);
/* Appends the text as its pieces have it, normalised, with spaces and with unknown characters, and where each
 * piece ends in `out`. */
enum tfm_status spm_plain(const struct spm *spm, const char *text, size_t len, struct str *out, struct ints *ends,
                          struct tfm_error *err);
/* Appends the text of the pieces; control pieces such as </s> give nothing, <unk> gives " \u2047 ". */
enum tfm_status spm_decode(const struct spm *spm, const int *ids, size_t n, struct str *text,
                           struct tfm_error *err);

struct spm_train_options {
    const char *const *files; /* UTF-8 text, one sentence a line, plain or gzip; read twice, so no pipes */
    int n_files;
    const char *text_name;  /* what messages call the text; NULL: by its first file */
    const char *model_path; /* written atomically */
    int vocab_size;
    const char *type;   /* "unigram" or "bpe" */
    const char *symbol; /* a piece that text has only where it is written out, such as "<mask>"; NULL: none */
};

/* Ids as in Marian: </s> 0, <unk> 1, no <s>, no padding; all characters covered; text normalised by
 * SentencePiece's nmt_nfkc. A vocabulary size that the text cannot fill is lowered, for both types, rather
 * than refused; one with less room than the text has characters is an error. Of long texts 2,000,000 lines or
 * 100 MB, evenly spaced, are used; lines of more than 16 KiB are left out. The same text gives the same
 * bytes, run after run and on any machine: the threads are always four. */
enum tfm_status spm_train(const struct spm_train_options *options, struct tfm_error *err);

/* Appends to `out`, the bytes of a SentencePiece model, a piece more: such a symbol. */
enum tfm_status spm_add_symbol(struct str *out, const char *symbol, struct tfm_error *err);

#ifdef __cplusplus
}
#endif

#endif
