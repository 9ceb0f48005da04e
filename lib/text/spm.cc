/*
 * spm.cc: SentencePiece behind a C interface (Kudo and Richardson 2018, "SentencePiece: a simple and language
 * independent subword tokenizer and detokenizer for neural text processing"). The only C++ file: no exception
 * leaves it, and SentencePiece's log is silenced. A sentence enters the model through spm_encode and leaves
 * it through spm_decode. Training sees the text twice: once to count it, once to hand the trainer its lines,
 * or an evenly spaced part of them if there are more than memory and time would like.
 */
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

extern "C" {
#include "base/file.h"
#include "base/line.h"
#include "base/mem.h"
#include "text/utf8.h"
}
#include "text/spm.h"

/* Exported by the library; its public headers do not declare it in all versions. */
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

struct spm {
    sentencepiece::SentencePieceProcessor processor;
    int size, eos, unk;
    bool is_bpe;
    std::string text; /* of all pieces, each with a NUL behind it */
    struct piece {
        size_t at; /* in text */
        float score;
        bool is_text;
    };
    std::vector<piece> pieces;
};

namespace {

constexpr char WORD_START[] = "\xe2\x96\x81"; /* U+2581 */

/* Normalisation can make text eleven times as long, and SentencePiece counts bytes in an int. */
constexpr size_t LONGEST_LINE = (size_t)64 << 20;

/* Encoding takes some 150 bytes of memory a byte of text, so a long line is encoded stretch by stretch. */
constexpr size_t LONGEST_STRETCH = (size_t)64 << 10;

/* What a vocabulary is trained on at most. SentencePiece needs some 25 bytes of memory a byte of text. */
constexpr uint64_t MAX_TRAIN_LINES = 2000000, MAX_TRAIN_BYTES = 100000000;
constexpr size_t MAX_TRAIN_LINE = 16384;

/* SentencePiece adds up floats thread by thread, so another number of threads would give another model. */
constexpr char TRAIN_THREADS[] = "4";

constexpr uint64_t TYPE_BPE = 2; /* of TrainerSpec.ModelType */
constexpr uint64_t PIECE_NORMAL = 1, PIECE_USER_DEFINED = 4; /* of ModelProto.SentencePiece.Type */

void silence_log()
{
    static const bool is_silent = (sentencepiece::logging::SetMinLogLevel(3), true); /* 3: fatal */
    (void)is_silent;
}

/* Runs a call that may throw, which the standard library does for lack of memory or threads. */
template <typename Call> enum tfm_status guarded(struct tfm_error *err, Call call)
{
    try {
        return call();
    } catch (const std::exception &e) {
        return err_set(err, TFM_ENOMEM, "SentencePiece has not enough memory (%s)", e.what());
    }
}

/* A status without the place in SentencePiece's source: "src/x.cc(1) [a == b] reason" gives "reason". */
std::string reason_of(const sentencepiece::util::Status &status)
{
    std::string text = status.message();
    size_t end = text.find("] ");
    if (end != std::string::npos)
        text.erase(0, end + 2);
    else if (!text.empty() && text.back() == ']')
        text.clear();
    while (!text.empty() && (text.back() == '.' || text.back() == ' '))
        text.pop_back();
    return text;
}

bool is_clean(const char *text, size_t len)
{
    return (len == 0 || std::memchr(text, '\0', len) == nullptr) && utf8_is_valid(text, len);
}

/* Owns its bytes, whatever is thrown. */
struct Text : str {
    Text() : str{}
    {
    }

    ~Text()
    {
        str_release(this);
    }

    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;
};

/* Replaces out by text with malformed UTF-8 as U+FFFD and NUL bytes as spaces. */
enum tfm_status clean(std::string *out, const char *text, size_t len, struct tfm_error *err)
{
    Text repaired;
    TRY(utf8_repair(&repaired, text, len, err));
    out->assign(repaired.data, repaired.len);
    std::replace(out->begin(), out->end(), '\0', ' ');
    return TFM_OK;
}

/* False for lines that normalisation would leave empty, on which the trainer would end the process if it had
 * no others, and for those with U+2585, which it keeps for itself. */
bool is_trainable(const std::string &line)
{
    if (line.size() > MAX_TRAIN_LINE)
        return false;
    bool has_text = false;
    uint32_t cp = 0;
    int len;
    for (size_t i = 0; i < line.size(); i += (size_t)len) {
        len = utf8_next(line.data() + i, line.size() - i, &cp);
        if (cp == 0x2585)
            return false;
        bool is_space = utf8_is_space(cp) || cp == 0x2581 || cp == 0xfffd;
        has_text = has_text || (!is_space && utf8_width(line.data() + i, (size_t)len) > 0);
    }
    return has_text;
}

/* The trainable lines of some files, one after the other. */
class Lines {
  public:
    Lines(const char *const *files, int n_files) : files_(files), n_files_(n_files)
    {
    }

    ~Lines()
    {
        line_free(reader_);
    }

    Lines(const Lines &) = delete;
    Lines &operator=(const Lines &) = delete;

    /* Replaces line by the next one; *more is false after the last. */
    enum tfm_status read(std::string *line, bool *more, struct tfm_error *err)
    {
        for (*more = true;;) {
            if (reader_ == nullptr) {
                if (file_ == n_files_) {
                    *more = false;
                    return TFM_OK;
                }
                TRY(line_open(&reader_, files_[file_++], err));
            }
            bool has_line;
            TRY(line_read(reader_, &raw_, &has_line, err));
            if (!has_line) {
                line_free(reader_);
                reader_ = nullptr;
                continue;
            }
            TRY(clean(line, raw_.data, raw_.len, err));
            if (is_trainable(*line))
                return TFM_OK;
        }
    }

  private:
    const char *const *files_;
    int n_files_, file_ = 0;
    struct line_reader *reader_ = nullptr;
    Text raw_;
};

/* Hands the trainer `keep` of `total` lines, evenly spaced. A failure ends the lines. */
class Sample : public sentencepiece::SentenceIterator {
  public:
    Sample(const struct spm_train_options *options, uint64_t total, uint64_t keep, struct tfm_error *err)
        : lines_(options->files, options->n_files), total_(total), keep_(keep), err_(err)
    {
        Next();
    }

    bool done() const override
    {
        return !more_;
    }

    void Next() override
    {
        bool is_kept = false;
        while (more_ && !is_kept) {
            failure_ = lines_.read(&line_, &more_, err_);
            if (failure_ != TFM_OK)
                more_ = false;
            is_kept = (n_ + 1) * keep_ / total_ > n_ * keep_ / total_;
            n_++;
        }
    }

    const std::string &value() const override
    {
        return line_;
    }

    sentencepiece::util::Status status() const override
    {
        using namespace sentencepiece::util;
        return failure_ == TFM_OK ? Status() : Status(StatusCode::kUnknown, "the text cannot be read");
    }

    enum tfm_status failure() const
    {
        return failure_;
    }

  private:
    Lines lines_;
    uint64_t n_ = 0, total_, keep_;
    std::string line_;
    bool more_ = true;
    enum tfm_status failure_ = TFM_OK;
    struct tfm_error *err_;
};

/* Counts the lines of the text, and how many of them training will use. */
enum tfm_status count_lines(const struct spm_train_options *options, uint64_t *total, uint64_t *keep,
                            struct tfm_error *err)
{
    Lines lines(options->files, options->n_files);
    std::string line;
    uint64_t bytes = 0;
    bool more = true;
    for (*total = 0;; ++*total) {
        TRY(lines.read(&line, &more, err));
        if (!more)
            break;
        bytes += line.size() + 1;
    }
    *keep = *total < MAX_TRAIN_LINES ? *total : MAX_TRAIN_LINES;
    if (bytes > MAX_TRAIN_BYTES) {
        uint64_t fit = (uint64_t)((double)*total * ((double)MAX_TRAIN_BYTES / (double)bytes));
        *keep = *keep < fit ? *keep : fit;
    }
    return TFM_OK;
}

enum tfm_status check_options(const struct spm_train_options *options, struct tfm_error *err)
{
    if (std::strcmp(options->type, "unigram") != 0 && std::strcmp(options->type, "bpe") != 0)
        return err_set(err, TFM_EINVAL, "\"%s\" is no type of vocabulary: use unigram or bpe", options->type);
    if (options->vocab_size < 3)
        return err_set(err, TFM_EINVAL,
                       "a vocabulary of %d pieces has no room for text: ask for some thousands",
                       options->vocab_size);
    return TFM_OK;
}

const char *name_of(const struct spm_train_options *options)
{
    return options->text_name != nullptr ? options->text_name : options->files[0];
}

enum tfm_status training_failed(const struct spm_train_options *options, const std::string &reason,
                                struct tfm_error *err)
{
    constexpr char TOO_SMALL[] = "Vocabulary size is smaller than required_chars. %d vs %d";
    int asked, needed;
    if (std::sscanf(reason.c_str(), TOO_SMALL, &asked, &needed) == 2)
        return err_set(err, TFM_EINVAL,
                       "the text has %d different characters, each of which is a piece: ask for a vocabulary "
                       "of at least %d pieces rather than %d",
                       needed - 2 - (options->symbol != nullptr), needed, asked);
    return err_set(err, TFM_EINVAL, "SentencePiece cannot train a vocabulary on %s: %s", name_of(options),
                   reason.empty() ? "an internal check failed" : reason.c_str());
}

enum tfm_status train(const struct spm_train_options *options, std::string *model, struct tfm_error *err)
{
    uint64_t total = 0, keep = 0;
    TRY(count_lines(options, &total, &keep, err));
    if (total == 0)
        return err_set(err, TFM_EFORMAT, "%s: no text to train a vocabulary on: lines of letters are needed",
                       name_of(options));
    std::unordered_map<std::string, std::string> settings = {
        { "model_type", options->type },
        { "vocab_size", std::to_string(options->vocab_size) },
        { "hard_vocab_limit", "false" },
        { "character_coverage", "1" },
        { "eos_id", "0" },
        { "unk_id", "1" },
        { "bos_id", "-1" },
        { "pad_id", "-1" },
        { "normalization_rule_name", "nmt_nfkc" },
        { "max_sentence_length", std::to_string(MAX_TRAIN_LINE) },
        { "num_threads", TRAIN_THREADS },
    };
    if (options->symbol != nullptr)
        settings["user_defined_symbols"] = options->symbol;
    Sample sample(options, total, keep, err);
    sentencepiece::util::Status status = sentencepiece::SentencePieceTrainer::Train(settings, &sample, model);
    if (sample.failure() != TFM_OK)
        return sample.failure();
    return status.ok() ? TFM_OK : training_failed(options, reason_of(status), err);
}

/* The next varint of a protocol buffer; 0 at its end. */
uint64_t take_varint(std::string_view *proto)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !proto->empty(); shift += 7) {
        unsigned char byte = (unsigned char)proto->front();
        proto->remove_prefix(1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    return value;
}

/* Calls f(field, value, bytes) for each field of a protocol buffer: the value of a varint, the bytes of
 * all else. */
template <class F> void for_fields(std::string_view proto, F f)
{
    while (!proto.empty()) {
        uint64_t tag = take_varint(&proto), type = tag & 7, value = 0;
        size_t size = type == 1 ? 8 : type == 5 ? 4 : 0;
        if (type == 0 || type == 2)
            value = take_varint(&proto);
        if (type == 2)
            size = value < proto.size() ? (size_t)value : proto.size();
        size = std::min(size, proto.size());
        f(tag >> 3, value, proto.substr(0, size));
        proto.remove_prefix(size);
    }
}

/* What the processor tells of single pieces, too, but many times as slowly: sentencepiece_model.proto. */
void read_piece(struct spm *spm, std::string_view proto)
{
    spm::piece piece = { spm->text.size(), 0, true };
    std::string_view text;
    for_fields(proto, [&](uint64_t field, uint64_t value, std::string_view bytes) {
        if (field == 1)
            text = bytes;
        else if (field == 2 && bytes.size() == sizeof(piece.score))
            std::memcpy(&piece.score, bytes.data(), sizeof(piece.score));
        else if (field == 3)
            piece.is_text = value == PIECE_NORMAL || value == PIECE_USER_DEFINED;
    });
    spm->text.append(text).push_back('\0');
    spm->pieces.push_back(piece);
}

void read_proto(struct spm *spm, std::string_view proto)
{
    spm->text.reserve(proto.size());
    for_fields(proto, [&](uint64_t field, uint64_t, std::string_view bytes) {
        if (field == 1)
            read_piece(spm, bytes);
        else if (field == 2) /* trainer_spec, with its model_type */
            for_fields(bytes, [&](uint64_t inner, uint64_t value, std::string_view) {
                if (inner == 3)
                    spm->is_bpe = value == TYPE_BPE;
            });
    });
}

enum tfm_status load(struct spm *spm, const char *path, const char *data, size_t size, struct tfm_error *err)
{
    std::string_view proto(data, size);
    sentencepiece::util::Status status = spm->processor.LoadFromSerializedProto(proto);
    std::string reason = status.ok() ? "" : reason_of(status);
    if (status.ok()) {
        read_proto(spm, proto);
        spm->size = spm->processor.GetPieceSize();
        spm->eos = spm->processor.eos_id();
        spm->unk = spm->processor.unk_id();
    }
    if (!status.ok() || spm->pieces.size() != (size_t)spm->size)
        return err_set(err, TFM_EFORMAT,
                       "%s is no SentencePiece model%s%s%s: a file is needed that SentencePiece has trained "
                       "(.spm or .model)",
                       path, reason.empty() ? "" : " (", reason.c_str(), reason.empty() ? "" : ")");
    return TFM_OK;
}

/* The bytes of a line that are encoded in one go: all, or up to a single space between words, where no piece
 * goes on. A word that is longer than a stretch is cut between characters. */
size_t stretch_length(std::string_view line)
{
    if (line.size() <= LONGEST_STRETCH)
        return line.size();
    for (size_t i = LONGEST_STRETCH - 1; i > 0; i--) {
        if (line[i] == ' ' && line[i - 1] != ' ' && line[i + 1] != ' ')
            return i;
    }
    size_t n = LONGEST_STRETCH;
    while (((unsigned char)line[n] & 0xc0) == 0x80) /* the text is valid UTF-8: three steps at most */
        n--;
    return n;
}

enum tfm_status encode_stretch(const struct spm *spm, std::string_view text, struct ints *ids,
                               struct tfm_error *err)
{
    std::vector<int> found;
    sentencepiece::util::Status status = spm->processor.Encode(text, &found);
    if (!status.ok())
        return err_set(err, TFM_EFORMAT, "SentencePiece cannot split a line: %s", reason_of(status).c_str());
    return ints_add(ids, found.data(), found.size(), err);
}

/* Calls encode for each stretch of a line. */
template <class Encode>
enum tfm_status for_stretches(const char *text, size_t len, struct tfm_error *err, Encode encode)
{
    if (len > LONGEST_LINE)
        return err_set(err, TFM_EINVAL, "a line of %zu bytes is too long: at most %zu are possible", len,
                       LONGEST_LINE);
    return guarded(err, [&] {
        std::string cleaned;
        std::string_view line(text, len);
        if (!is_clean(text, len)) {
            TRY(clean(&cleaned, text, len, err));
            line = cleaned;
        }
        while (!line.empty()) {
            size_t n = stretch_length(line);
            TRY(encode(line.substr(0, n)));
            line.remove_prefix(n < line.size() && line[n] == ' ' ? n + 1 : n); /* each stretch begins a word */
        }
        return TFM_OK;
    });
}

} // namespace

enum tfm_status spm_open(struct spm **spm, const char *path, struct tfm_error *err)
{
    *spm = nullptr;
    silence_log();
    char *data = nullptr;
    size_t size = 0;
    TRY(file_read(path, &data, &size, err));
    enum tfm_status status = guarded(err, [&] {
        auto opened = std::make_unique<struct spm>();
        TRY(load(opened.get(), path, data, size, err));
        *spm = opened.release();
        return TFM_OK;
    });
    mem_free(data);
    return status;
}

void spm_free(struct spm *spm)
{
    delete spm;
}

int spm_size(const struct spm *spm)
{
    return spm->size;
}

int spm_eos(const struct spm *spm)
{
    return spm->eos;
}

int spm_unk(const struct spm *spm)
{
    return spm->unk;
}

const char *spm_piece(const struct spm *spm, int id)
{
    assert(id >= 0 && id < spm->size);
    return spm->text.c_str() + spm->pieces[(size_t)id].at;
}

bool spm_is_word_start(const struct spm *spm, int id)
{
    return std::strncmp(spm_piece(spm, id), WORD_START, sizeof(WORD_START) - 1) == 0;
}

bool spm_is_text(const struct spm *spm, int id)
{
    return spm->pieces[(size_t)id].is_text;
}

int spm_piece_id(const struct spm *spm, const char *piece, size_t len)
{
    int id = spm->processor.PieceToId(std::string_view(piece, len));
    return spm_is_text(spm, id) ? id : -1;
}

float spm_score(const struct spm *spm, int id)
{
    return spm->pieces[(size_t)id].score;
}

bool spm_is_bpe(const struct spm *spm)
{
    return spm->is_bpe;
}

enum tfm_status spm_encode(const struct spm *spm, const char *text, size_t len, struct ints *ids,
                           struct tfm_error *err)
{
    return for_stretches(text, len, err,
                         [&](std::string_view stretch) { return encode_stretch(spm, stretch, ids, err); });
}

/* Calls f(piece) for each piece of a text; of an unknown one it is the characters. */
template <typename F>
static enum tfm_status for_pieces(const struct spm *spm, const char *text, size_t len, struct tfm_error *err,
                                  F f)
{
    return for_stretches(text, len, err, [&](std::string_view stretch) {
        std::vector<std::string> pieces;
        sentencepiece::util::Status status = spm->processor.Encode(stretch, &pieces);
        if (!status.ok())
            return err_set(err, TFM_EFORMAT, "SentencePiece cannot split a line: %s",
                           reason_of(status).c_str());
        for (std::string &piece : pieces)
            TRY(f(piece));
        return TFM_OK;
    });
}

enum tfm_status spm_surface(const struct spm *spm, const char *text, size_t len, size_t first, size_t n,
                            struct str *out, struct tfm_error *err)
{
    size_t before = 0;
    return for_pieces(spm, text, len, err, [&](std::string &piece) {
        size_t at = before++, space;
        if (at < first || at - first >= n)
            return TFM_OK;
        while ((space = piece.find(WORD_START)) != std::string::npos)
            piece.erase(space, sizeof(WORD_START) - 1);
        return str_add(out, piece.data(), piece.size(), err);
    });
}

enum tfm_status spm_plain(const struct spm *spm, const char *text, size_t len, struct str *out,
                          struct ints *ends, struct tfm_error *err)
{
    return for_pieces(spm, text, len, err, [&](std::string &piece) {
        for (size_t space; (space = piece.find(WORD_START)) != std::string::npos;)
            piece.replace(space, sizeof(WORD_START) - 1, " ");
        TRY(str_add(out, piece.data(), piece.size(), err));
        int end = (int)out->len;
        return ints_add(ends, &end, 1, err);
    });
}

enum tfm_status spm_decode(const struct spm *spm, const int *ids, size_t n, struct str *text,
                           struct tfm_error *err)
{
    return guarded(err, [&] {
        std::string line;
        sentencepiece::util::Status status = spm->processor.Decode(std::vector<int>(ids, ids + n), &line);
        if (!status.ok())
            return err_set(err, TFM_EFORMAT, "SentencePiece cannot join pieces: %s",
                           reason_of(status).c_str());
        return str_add(text, line.data(), line.size(), err);
    });
}

enum tfm_status spm_add_symbol(struct str *out, const char *symbol, struct tfm_error *err)
{
    /* A field `pieces` more, of which a protocol buffer may have any number in any place: piece, score, type
     * (user defined). */
    size_t len = std::strlen(symbol);
    assert(len < 100);
    const char head[] = { 0x0a, (char)(len + 9), 0x0a, (char)len }, tail[] = { 0x15, 0, 0, 0, 0, 0x18, 4 };
    TRY(str_add(out, head, sizeof(head), err));
    TRY(str_add(out, symbol, len, err));
    return str_add(out, tail, sizeof(tail), err);
}

enum tfm_status spm_train(const struct spm_train_options *options, struct tfm_error *err)
{
    assert(options->n_files > 0);
    silence_log();
    return guarded(err, [&] {
        std::string model;
        TRY(check_options(options, err));
        TRY(train(options, &model, err));
        return file_write(options->model_path, model.data(), model.size(), err);
    });
}
