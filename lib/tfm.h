/*
 * tfm.h: the public interface of libtfm, which trains, runs and explains Transformer translation models.
 *
 * Example: translate two lines with a model folder (compiled and run by the tests).
 *
 *     #include <stdio.h>
 *     #include <tfm.h>
 *
 *     int main(int argc, char **argv)
 *     {
 *         const char *lines[] = { "Good morning.", "Where is the station?" };
 *         struct tfm_error err;
 *         struct tfm_translate_options options;
 *         struct tfm_model *model = NULL;
 *         struct tfm_translator *translator = NULL;
 *         const struct tfm_translation *result = NULL;
 *         int failed = 1;
 *
 *         tfm_translate_options_init(&options);
 *         if (tfm_model_open(&model, argc > 1 ? argv[1] : "models/en-de", &err) == TFM_OK &&
 *             tfm_translator_new(&translator, model, &options, &err) == TFM_OK &&
 *             tfm_translate(translator, lines, 2, &result, &err) == TFM_OK) {
 *             for (int i = 0; i < 2; i++)
 *                 puts(result[i].hypotheses[0].text);
 *             failed = 0;
 *         } else {
 *             fprintf(stderr, "%s\n", err.message);
 *         }
 *         tfm_translator_free(translator);
 *         tfm_model_free(model);
 *         return failed;
 *     }
 *
 * Rules that hold everywhere: text is UTF-8; a function that can fail returns an enum tfm_status and writes
 * one sentence (what was found, what was expected, what to do) into the struct tfm_error given last; the
 * library prints nothing, never exits, and reads no environment variable except TFM_CPU. Strings handed out
 * belong to the object that gave them. A model may be shared by all threads; a translator belongs to one
 * thread at a time. No pointer may be NULL unless its comment says so; the last one, err, may.
 *
 * This header includes nothing of the project, so every file of the library may use the types that it names.
 */
#ifndef TFM_H
#define TFM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFM_VERSION "0.1.0"

#if defined(__GNUC__)
#define TFM_API __attribute__((visibility("default")))
#else
#define TFM_API
#endif

/* ---- errors ---- */

enum tfm_status {
    TFM_OK = 0,
    TFM_EINVAL,    /* an option or argument that makes no sense */
    TFM_EIO,       /* a file could not be opened, read or written */
    TFM_EFORMAT,   /* a file does not hold what it should */
    TFM_ENOMEM,    /* memory could not be had */
    TFM_EDIVERGED, /* training met a NaN or an infinite value */
    TFM_ESTOPPED,  /* the caller asked to stop; everything was saved */
};

struct tfm_error {
    enum tfm_status status;
    char message[1000]; /* one sentence without a final newline */
};

TFM_API const char *tfm_version(void);

/* ---- the machine ---- */

/* Lets the library use at most the kernels of one tier: "ref", "avx2", "vnni", "amx" or "auto". It can only take
 * features away. Applies to models opened and trainings started afterwards; the environment variable TFM_CPU
 * does the same. */
TFM_API enum tfm_status tfm_set_cpu(const char *tier, struct tfm_error *err);
TFM_API const char *tfm_cpu(void); /* the tier in use */

/* ---- models ---- */

struct tfm_model;

enum tfm_precision { /* of weights */
    TFM_PRECISION_KEEP, /* as they are */
    TFM_PRECISION_FP32,
    TFM_PRECISION_FP16, /* on disk only */
    TFM_PRECISION_INT8, /* matrices in whole numbers with a scale for each row; faster, and near to fp32 */
};

/* Opens a model folder (see tfm-model(5)). The model is read-only from then on. */
TFM_API enum tfm_status tfm_model_open(struct tfm_model **model, const char *folder, struct tfm_error *err);
/* The same, and chooses what it multiplies by: INT8 quantises weights in floats, FP32 turns whole numbers into
 * floats; KEEP is what tfm_model_open does: INT8 where the weights are that on disk, else FP32. */
TFM_API enum tfm_status tfm_model_open_as(struct tfm_model **model, const char *folder,
                                          enum tfm_precision precision, struct tfm_error *err);

/* Who multiplies matrices of floats. */
enum tfm_gemm {
    TFM_GEMM_OWN,    /* the library's kernels, in float: the same digits on every CPU */
    TFM_GEMM_BLAS,   /* OpenBLAS, whose last digits depend on the CPU and on the size of a batch. Holds it to one
                        thread, in the whole process */
    TFM_GEMM_BF16X3, /* training on CPUs with AMX: each float as the sum of two bf16, which leaves an error near
                        float's own (Henry, Tang and Heinecke 2019) */
    TFM_GEMM_BF16    /* the same, of numbers rounded to bf16: 8 bits */
};

struct tfm_open_options {
    enum tfm_precision precision; /* Default TFM_PRECISION_KEEP */
    enum tfm_gemm gemm; /* OWN or, not with int8, BLAS. Default TFM_GEMM_OWN */
    int max_positions; /* learned positions: both tables are stretched or squeezed to so many rows, linearly; 0: as
                          they are, and a line that is longer is squeezed into them. Default 0 */
    bool shortlist;    /* read the model's own shortlist, where it has one, at the same time as all else: for
                          translators with the shortlist "auto", each of which reads it for itself otherwise.
                          Default false */
};

TFM_API void tfm_open_options_init(struct tfm_open_options *options);
TFM_API enum tfm_status tfm_model_open_with(struct tfm_model **model, const char *folder,
                                            const struct tfm_open_options *options, struct tfm_error *err);
TFM_API enum tfm_precision tfm_model_precision(const struct tfm_model *model); /* FP32 or INT8 */
TFM_API bool tfm_model_is_language_model(const struct tfm_model *model); /* of plain text: it has no source */
TFM_API const char *tfm_model_folder(const struct tfm_model *model);           /* as it was given */
TFM_API void tfm_model_free(struct tfm_model *model);

/* The piece with this id in the target vocabulary, U+2581 standing for a space; NULL when there is none. */
TFM_API const char *tfm_target_piece(const struct tfm_model *model, int id);

/* ---- translation ---- */

enum tfm_sampling {
    TFM_SAMPLING_NONE, /* beam search */
    TFM_SAMPLING_FULL, /* each piece is drawn from the whole distribution */
    TFM_SAMPLING_TOPK, /* from the sampling_top_k most probable pieces (Fan et al. 2018) */
    TFM_SAMPLING_TOPP, /* from the fewest pieces with sampling_top_p together (Holtzman et al. 2020) */
};

enum tfm_align {
    TFM_ALIGN_NONE,
    TFM_ALIGN_WORDS, /* as pieces make them: a word begins with a piece that begins with a space */
    TFM_ALIGN_PIECES,
};

struct tfm_translate_options {
    int beam_size;           /* hypotheses kept a step; 1 is greedy search. Default 5 */
    float normalize;         /* finished hypotheses rank by score / length^normalize; 0: the sum. Default 1 */
    float max_length_factor; /* target pieces at most: factor * source pieces + 10. Not for a language model.
                                Default 3 */
    int max_length;          /* source pieces translated in one go; a longer line is cut behind the end of a
                                sentence or a clause, or at a word, translated in parts and joined again. Of a
                                language model the pieces of a beginning at most, and 10 less than those of a
                                text. Default 500 */
    bool max_length_crop;    /* leave out the rest of a longer line instead. Default false */
    int min_length;          /* target pieces at least, as far as the longest allows. Default 0 */
    int n_best;              /* hypotheses returned a line, at most beam_size; samples when drawing. Default 1 */
    bool allow_unk;          /* may produce the unknown piece. Default false */
    bool replace_unk;        /* may produce it, and puts in its place what it looks at most: source characters that
                                the vocabulary lacks, or else a source word. Default false */
    enum tfm_align alignment; /* hypotheses come with an alignment. Default TFM_ALIGN_NONE */
    int alignment_layer;     /* the decoder layer whose cross-attention makes it, from 0; -1: the default, the last.
                                Default -1 */
    int no_repeat_ngram_size; /* no n-gram of so many pieces comes twice in a translation; 0: off. Default 0 */
    float repetition_penalty; /* x > 1: the logit l of a piece that has come already is l / x, or l * x where it
                                is negative (Keskar et al. 2019). Scores are those of what results. Default 1 */
    enum tfm_sampling output_sampling; /* Default TFM_SAMPLING_NONE */
    int sampling_top_k;      /* Default 10 */
    float sampling_top_p;    /* Default 0.9 */
    float temperature;       /* logits are divided by it before drawing; scores are the model's. Default 1 */
    uint64_t seed;           /* of drawing. What is drawn depends on it, on the model, on the line and on how
                                many lines the translator was given before, and on nothing else. Default 1 */
    const char *shortlist;   /* a file of tfm_shortlist: only target pieces that it lists for a sentence may come in
                                its translation, and scores are probabilities among them. "auto": the model's own,
                                where it has one; "off": none. Drawing and scoring use none. Default "auto" */
    const char *glossary;    /* a file of lines source term<TAB>target term (tfm-translate(1)): where the one stands in
                                a line, the other has to come in its translation. For these lines the beam is wider
                                by a place for each piece of a target term, 16 at most. Not for scoring. Default
                                NULL */
    bool glossary_ignore_case; /* of source terms. Default false */
    int mini_batch;          /* sentences decoded together by a worker, at most. Default 32 */
    int threads;             /* workers; 0 is one a core. Default 0 */
    bool profile;            /* take the time of each part, for tfm_translator_profile. Default false */
};

struct tfm_hypothesis {
    const char *text;           /* without line end */
    double score;               /* sum of the pieces' log-probabilities (natural logarithm), </s> included */
    double normalized_score;    /* score / n_pieces^normalize */
    int n_pieces;               /* pieces, </s> included */
    const int *pieces;          /* [n_pieces] ids in the target vocabulary */
    const float *piece_scores;  /* [n_pieces] log-probabilities */
    const float *alignment;     /* [n_target_units, n_source_units] how much a word (or piece) of the translation
                                   looks at each of the source: the mean of a layer's heads without </s>. A row sums
                                   to 1. NULL unless asked for, and of a blank line */
    int n_target_units, n_source_units;
};

struct tfm_translation {
    int n_hypotheses; /* best first. A blank line has one empty hypothesis; 0 only where what was to be forced, or
                         a pair to score, has more than max_length pieces */
    const struct tfm_hypothesis *hypotheses;
    bool limited; /* the length limit ended the best hypothesis */
    int n_parts;  /* > 1: the line was longer than max_length and translated in parts */
    bool cropped; /* the line was longer than max_length and its rest left out */
    int n_terms_missing; /* of the glossary, that the best hypothesis should hold and does not */
};

struct tfm_profile_part {
    const char *name; /* "feed-forward" */
    double seconds;   /* of all threads, divided by their number: the parts' sum is that of the profile */
    double flop;      /* of its matrix products, 2 m n k each; 0: it has none */
};

struct tfm_profile { /* where the time of a training or of a translator went */
    double seconds;  /* of this run */
    int threads;
    int n_parts;
    const struct tfm_profile_part *parts;
    double peak_flops; /* a second: what matrix products of 1024 x 1024 reach on all threads at once; 0: not
                          measured */
    double memory;     /* bytes that the process had at most; 0: not known. Of them ... */
    double memory_weights;   /* ... weights, the optimiser's moments, the running mean */
    double memory_gradients; /* ... of all lanes */
    double memory_scratch;   /* ... activations of all threads, at most */
};

struct tfm_translator;

TFM_API void tfm_translate_options_init(struct tfm_translate_options *options);
TFM_API enum tfm_status tfm_translator_new(struct tfm_translator **translator, const struct tfm_model *model,
                                           const struct tfm_translate_options *options,
                                           struct tfm_error *err);

/* The same with several models (at most TFM_MAX_MODELS) that translate together: the log-probability of a piece
 * is the mean of theirs, by their weights (NULL: equal; only their ratios matter). Their vocabularies must be
 * the same, architecture and size may differ. What belongs to one model, alignments and a shortlist "auto", is
 * that of the first. */
#define TFM_MAX_MODELS 16
TFM_API enum tfm_status tfm_translator_new_ensemble(struct tfm_translator **translator,
                                                    const struct tfm_model *const *models,
                                                    const float *weights, int n_models,
                                                    const struct tfm_translate_options *options,
                                                    struct tfm_error *err);
TFM_API void tfm_translator_free(struct tfm_translator *translator);

/* Translates n lines (without line ends; a line with only white space gives an empty text). A language model
 * takes each line, also an empty one, as the beginning of a text, and goes on with it. result[0..n-1]
 * are in the order of the lines and stay valid until the next call on this translator. The text of a line
 * does not depend on the other lines, on the batch size, on the number of threads or on the CPU. */
TFM_API enum tfm_status tfm_translate(struct tfm_translator *translator, const char *const *lines, size_t n,
                                      const struct tfm_translation **result, struct tfm_error *err);

/* The same, where the translation of line i begins with the pieces of prefixes[i] (NULL or "": with
 * anything); what follows may go on with its last word. A language model takes no prefix beside its line. */
TFM_API enum tfm_status tfm_translate_forced(struct tfm_translator *translator, const char *const *lines,
                                             const char *const *prefixes, size_t n,
                                             const struct tfm_translation **result, struct tfm_error *err);

/* Scores given pairs: the one hypothesis of line i is targets[i], with the scores that the model gives it; a
 * translation has the score that it was found with. Lines are not cut, and blank ones are scored, too. A
 * language model scores the lines, and its targets are NULL. */
TFM_API enum tfm_status tfm_score(struct tfm_translator *translator, const char *const *lines,
                                  const char *const *targets, size_t n,
                                  const struct tfm_translation **result, struct tfm_error *err);

/* Where the time of all calls went: `seconds` is that spent in them; of the memory only `memory` is told. The
 * parts are valid until the next call; their times are 0 without options.profile. */
TFM_API void tfm_translator_profile(struct tfm_profile *profile, struct tfm_translator *translator);

/* ---- lines of text ---- */

/* Reads text line by line, as tfm_translate wants it: from a plain or gzip file (told by its first bytes),
 * from a pipe, or from standard input ("-"). A gzip file that is damaged or truncated is an error that names
 * file and line. */
struct tfm_lines;

struct tfm_line {
    const char *text; /* without its line end (\n or \r\n); NUL bytes are spaces. Valid until the next call */
    long number;      /* from 1 */
    bool is_utf8;     /* false: malformed somewhere; tfm_translate reads U+FFFD there */
    const char *repaired; /* text with U+FFFD there, valid as long; where text is well-formed, text itself */
};

TFM_API enum tfm_status tfm_lines_open(struct tfm_lines **lines, const char *path, struct tfm_error *err);
TFM_API void tfm_lines_free(struct tfm_lines *lines);

/* The next line; *more is false at the end. A byte order mark before the first line is left out. */
TFM_API enum tfm_status tfm_lines_next(struct tfm_lines *lines, struct tfm_line *line, bool *more,
                                       struct tfm_error *err);

/* True when tfm_lines_next would have to wait for the other end of a pipe or for a terminal. */
TFM_API bool tfm_lines_would_wait(struct tfm_lines *lines);

/* ---- training ---- */

enum tfm_unit { TFM_UPDATES, TFM_EPOCHS, TFM_TARGET_TOKENS, TFM_MINUTES };

struct tfm_interval { /* an amount of training: "10e", "100Ku", "1Gt", "50min" */
    double amount;    /* 0: never */
    enum tfm_unit unit;
};

enum tfm_decay {
    TFM_DECAY_INV_SQRT, /* learn_rate * sqrt(warmup / update) (Vaswani et al. 2017, section 5.3) */
    TFM_DECAY_COSINE,   /* learn_rate * (1 + cos(pi * done / after)) / 2 (Loshchilov and Hutter 2017) */
    TFM_DECAY_LINEAR,   /* learn_rate * (1 - done / after) */
    TFM_DECAY_NONE,
};

enum tfm_norm_position { TFM_NORM_PRE, TFM_NORM_POST, TFM_NORM_PRESET };
enum tfm_cell { TFM_CELL_ATTENTION, TFM_CELL_SSRU, TFM_CELL_PRESET };
enum tfm_norm { TFM_LAYER_NORM, TFM_RMS_NORM };
enum tfm_activation { /* the last two have a gate */
    TFM_ACTIVATION_RELU,
    TFM_ACTIVATION_GELU,
    TFM_ACTIVATION_GELU_TANH,
    TFM_ACTIVATION_SWISH,
    TFM_ACTIVATION_SWIGLU,
    TFM_ACTIVATION_GEGLU,
};
enum tfm_init { TFM_INIT_XAVIER, TFM_INIT_DEPTH_SCALED };
enum tfm_arch { TFM_ARCH_TRANSFORMER, TFM_ARCH_RNN, TFM_ARCH_DECODER, TFM_ARCH_ENCODER };
enum tfm_rnn_cell { TFM_RNN_GRU, TFM_RNN_LSTM };
enum tfm_rnn_attention { TFM_RNN_ADDITIVE, TFM_RNN_DOT, TFM_RNN_GENERAL };
enum tfm_tie { TFM_TIE_ALL, TFM_TIE_TARGET, TFM_TIE_NONE };

enum tfm_attention_function { /* the score of query q and key k in a head */
    TFM_ATTENTION_DOT,         /* q . k */
    TFM_ATTENTION_ADDITIVE,    /* v . tanh(q + k), v trained for each head (Bahdanau et al. 2015) */
};
enum tfm_attention_scale { TFM_SCALE_SQRT, TFM_SCALE_NONE };

enum tfm_positions {      /* how a model tells positions; formulas in tfm-model(5) */
    TFM_POSITIONS_HALVES,      /* sinusoids added to embeddings: all sines, then all cosines, as Marian has them */
    TFM_POSITIONS_INTERLEAVED, /* ... in turns (Vaswani et al. 2017) */
    TFM_POSITIONS_LEARNED,     /* a trained vector for each */
    TFM_POSITIONS_ROPE,        /* queries and keys of self-attention turned by it (Su et al. 2021) */
    TFM_POSITIONS_ALIBI,       /* scores of self-attention less by the distance (Press et al. 2021) */
    TFM_POSITIONS_RELATIVE,    /* ... plus what was learned for the distance (Raffel et al. 2020) */
    TFM_POSITIONS_NONE,
    TFM_POSITIONS_PRESET
};

enum tfm_event_kind {
    TFM_EVENT_NOTE,     /* `text` alone says what happened (pairs left out, resumed, stopped early) */
    TFM_EVENT_PROGRESS, /* every disp_freq */
    TFM_EVENT_VALID,    /* one metric of a validation */
    TFM_EVENT_SAVED,    /* `text` is the checkpoint's folder */
    TFM_EVENT_PROFILE,  /* `profile`, at the end */
    TFM_EVENT_ATTENTION, /* `heads`, at each validation; `text` is the folder with the pictures */
};

/* Attention: of the encoder or the decoder to itself, and of the decoder to the encoder; AUTO is the last of
 * them that a model has, and a choice alone. */
enum tfm_part { TFM_ENCODER, TFM_DECODER, TFM_CROSS, TFM_PART_AUTO };

enum tfm_verdict {
    TFM_HEAD_LIVE,
    TFM_HEAD_UNIFORM,   /* relative_entropy > 0.98: it looks everywhere alike */
    TFM_HEAD_ON_END,    /* on_end > 0.95 */
    TFM_HEAD_ON_FIRST,  /* on_first > 0.95 */
    TFM_HEAD_ON_ITSELF, /* on_itself > 0.95 */
};

struct tfm_head { /* an attention head: means over the queries that see two keys or more */
    enum tfm_part part;
    int layer, head;         /* from 0 */
    double entropy;          /* of a query's weights, nats */
    double relative_entropy; /* the same as a part of what equal weights have, ln(keys): 0 to 1 */
    double distance;         /* between a query and what it looks at, in pieces; CROSS: NaN */
    double on_end;           /* weight of </s> at the end; DECODER, which never reads it: NaN */
    double on_first;         /* weight of the first key; DECODER: of the start symbol */
    double on_itself;        /* weight of the query's own place; CROSS: NaN */
    enum tfm_verdict verdict;
};

enum tfm_head_loss_kind { /* of a row of attention weights p, for the query at place i; formulas in tfm-train(1) */
    TFM_HEAD_ENTROPY,       /* -sum p ln p */
    TFM_HEAD_SPARSITY,      /* sum of the square roots of p */
    TFM_HEAD_DISTANCE,      /* sum p |i - j|, of self-attention */
    TFM_HEAD_ALIGNMENT_CE,  /* -sum a ln p, of CROSS, with the weights a that the corpora's alignments give ... */
    TFM_HEAD_ALIGNMENT_MSE, /* ... or sum (p - a)^2 (guided alignment, Chen et al. 2016) */
};

struct tfm_head_loss { /* a term of a training's loss: weight * the mean over the rows of a head */
    enum tfm_part part;
    int layer;     /* from 0; -1: the last */
    int head;      /* from 0; -1: each of the layer */
    enum tfm_head_loss_kind kind;
    double weight; /* positive makes the value smaller; 0 only reports it */
};

#define TFM_MAX_HEAD_LOSSES 64

struct tfm_head_term { /* such a term, in reports */
    const char *name;  /* "encoder.2.3:entropy" */
    double value;      /* mean without its weight, since the last report; NaN where there was no row */
};

struct tfm_train_event {
    enum tfm_event_kind kind;
    const char *text;
    long update;
    long epoch;               /* from 1 */
    long sentences;           /* pairs seen in this epoch */
    double target_tokens;     /* seen in all */
    double loss;              /* PROGRESS: label-smoothed cross-entropy since the last one, nats a token */
    double learn_rate;
    double gradient_norm;     /* of the last update, before clipping */
    double tokens_per_second; /* source + target since the last PROGRESS */
    double seconds;           /* of training, all runs together */
    double seconds_left;      /* estimate; negative when unknown */
    const char *metric;       /* VALID: one of valid_metrics */
    double value;
    bool best;                /* VALID: the best so far */
    int stalled;              /* VALID: validations since the best */
    const struct tfm_profile *profile; /* PROFILE: valid during the call */
    const struct tfm_head *heads; /* ATTENTION: [n_heads], encoder, decoder, cross; valid during the call */
    int n_heads;
    const struct tfm_head_term *terms; /* PROGRESS: [n_terms] of head_losses; valid during the call */
    int n_terms;
};

/* A parallel text: files, plain or gzip, "-" for standard input, or commands such as "zcat a.gz b.gz |". For
 * TFM_ARCH_ENCODER, and to make a language model with TFM_ARCH_DECODER, a text alone: source, or a column of tsv
 * (source_field, with the target_field 0). */
struct tfm_corpus {
    const char *source, *target; /* a line of one is the translation of that line of the other. NULL: tsv ... */
    const char *tsv;             /* ... or one with source<TAB>target a line. NULL: source and target */
    const char *alignment;       /* for guided alignment: pairs of words as in "0-0 1-2", a line for each pair; NULL:
                                    none. Only tfm_train looks at it */
    double weight;               /* how often each pair is seen in a pass; 0 is 1 */
};

struct tfm_train_options {
    /* data */
    const char *model;         /* the folder to write: required */
    const struct tfm_corpus *corpora; /* [n_corpora], which stays the caller's */
    int n_corpora;
    int source_field, target_field; /* columns of tab-separated files, from 1; both 0: they have just two */
    const char *valid_source, *valid_target, *valid_tsv; /* all NULL, the default: no validation */
    const char *source_vocab, *target_vocab; /* SentencePiece models; NULL: trained on the corpora */
    const char *pretrained;    /* a model folder or a checkpoint to begin with: its vocabularies, and each tensor
                                  that has a name of this model's, and then must have its shape. A training that
                                  goes on does not look at it. Default NULL */
    int vocab_size;            /* pieces of a vocabulary trained here. Default 8000 */
    const char *vocab_type;    /* "unigram" (default, also NULL) or "bpe" */
    int max_length;            /* longer pairs (pieces) are left out. Default 150 */
    double max_length_ratio;   /* and those with a side so many times as long as the other; 0: none. Default 0 */
    int shuffle_window;        /* pairs held in memory, and shuffled, at a time. Default 262144 */
    float source_sampling, target_sampling; /* segmentations drawn at random: for BPE the probability that a merge
                                  is left out (Provilkov et al. 2020), for unigram the exponent of the
                                  probabilities (Kudo 2018); 0: always the best one. Default 0 */
    /* architecture; 0 (or a dropout of -1) takes the preset's value */
    const char *preset;        /* "tiny", "small", "base" or "student". NULL: "tiny" */
    int encoder_layers, decoder_layers, dim_model, dim_ffn, heads;
    enum tfm_norm_position norm_position; /* before each sublayer (Xiong et al. 2020), with one norm more at the
                                  end, or after it (Vaswani et al. 2017). Default TFM_NORM_PRESET: the preset's */
    enum tfm_norm norm;        /* layer normalisation (Ba et al. 2016) or RMS normalisation, without mean and bias
                                  (Zhang and Sennrich 2019). Default TFM_LAYER_NORM */
    enum tfm_activation activation; /* inside the feed-forward layers. Default TFM_ACTIVATION_RELU */
    enum tfm_init init;        /* first values of matrices: Xavier's, uniform, or these divided by the square root of
                                  the layer (Zhang et al. 2019). Default TFM_INIT_XAVIER */
    enum tfm_cell dec_cell;    /* how a decoder layer knows its past: self-attention, or a recurrent unit in its
                                  place (SSRU, Kim et al. 2019). Default TFM_CELL_PRESET: the preset's */
    enum tfm_arch arch;        /* what layers are made of: of attention (Vaswani et al. 2017), or of recurrent
                                  cells (Bahdanau et al. 2015), which have one attention, to the source, and none of
                                  dim_ffn, heads, norm_position and dec_cell; or of attention, in a decoder alone that
                                  reads source and target as one sequence (Liu et al. 2018), or is a language model
                                  where the first corpus is a text alone: it has as many layers as
                                  the preset has in all, or decoder_layers; or of attention in an encoder alone, which
                                  learns to fill gaps in a text (Devlin et al. 2019). Default TFM_ARCH_TRANSFORMER */
    enum tfm_rnn_cell rnn_cell; /* of TFM_ARCH_RNN. Default TFM_RNN_GRU (Cho et al. 2014) */
    enum tfm_rnn_attention rnn_attention; /* how that compares decoder and source: additive (Bahdanau et al. 2015), by
                                  a product, or by a product behind a matrix (Luong et al. 2015). Default
                                  TFM_RNN_ADDITIVE */
    enum tfm_tie tie;          /* TFM_TIE_ALL needs one vocabulary for both sides */
    enum tfm_positions positions; /* Default TFM_POSITIONS_PRESET: the preset's, or TFM_POSITIONS_HALVES where those
                                  are TFM_POSITIONS_ROPE and attention is additive or a head's width odd */
    enum tfm_attention_function attention_function; /* Default TFM_ATTENTION_DOT */
    enum tfm_attention_scale attention_scale; /* scores of TFM_ATTENTION_DOT are divided by the square root of a head's
                                  width, or not. Default TFM_SCALE_SQRT */
    int kv_heads;              /* heads of keys and values, each for several of queries (Ainslie et al. 2023); divides
                                  the heads. 0: as many. Default 0 */
    int attention_window;      /* self-attention sees so many pieces to each side; 0: all. Default 0 */
    int max_positions;         /* of TFM_POSITIONS_LEARNED: rows of each side's table. Default 512 */
    float dropout, attention_dropout, activation_dropout;
    float layer_drop;          /* probability that an update leaves a layer out (Fan et al. 2019). Default 0 */
    /* optimiser */
    int mini_batch_words;      /* target pieces a batch, about. 0 takes the preset's value */
    int optimizer_delay;       /* batches an update: their gradients are summed. Default 1 */
    double learn_rate;         /* peak. 0 takes the preset's value */
    struct tfm_interval lr_warmup; /* linear rise to learn_rate; not in minutes. 0: the preset's */
    enum tfm_decay lr_decay;       /* cosine and linear reach zero at `after`. Default TFM_DECAY_INV_SQRT */
    float label_smoothing;     /* Default 0.1 */
    double mask_rate;          /* of TFM_ARCH_ENCODER: part of the pieces that are to be predicted. Default 0.15 */
    float r_drop;              /* weight of the divergence between two passes with other dropout (alpha of Liang
                                  et al. 2021); 0: one pass. Default 0 */
    float clip_norm;           /* 0: off. Default 1 */
    const struct tfm_head_loss *head_losses; /* [n_head_losses], at most TFM_MAX_HEAD_LOSSES: added to the loss. Default
                                  none. Those of alignments need corpora with alignments, and these need one */
    int n_head_losses;
    float weight_decay;        /* part of each matrix that an update takes away, times the learning rate
                                  (Loshchilov and Hutter 2019). Default 0 */
    uint64_t seed;             /* Default 1 */
    /* run */
    struct tfm_interval after; /* stop after; 0: never. A negative amount, the default: 0 where validations can stop
                                  the training (early_stopping), else 20 epochs */
    struct tfm_interval disp_freq, valid_freq, save_freq;
    const char *watch_attention; /* after each validation, report what each attention head does and draw these
                                    sentences, a file of lines source<TAB>target, into the folder
                                    MODEL/attention/update-N; "": the first pairs of the validation set.
                                    Default NULL, off */
    int keep_last;             /* the newest checkpoints that are kept beside the best. Default 1 */
    int early_stopping;        /* stop after so many validations without a new best; 0: off. Default 10 */
    const char *valid_metrics; /* some of "ce", "perplexity", "accuracy", "bleu", "chrf" with commas; the last one
                                  decides early stopping. Default NULL: "ce,bleu", of TFM_ARCH_ENCODER
                                  "accuracy,ce", of a language model "ce,perplexity" */
    float exponential_smoothing; /* the model validated and exported is a running mean of the weights that
                                    moves by this part an update; 0: off. Default 0.001 */
    bool f16;                  /* export weights as F16 (default) rather than F32 */
    int threads;               /* 0: one a core */
    const char *dry_run;       /* only say what the training would be, in notes: a folder for temporary files,
                                  which are removed again. The model folder stays as it is. Default NULL */
    enum tfm_gemm gemm;        /* Default TFM_GEMM_OWN */
    bool profile;              /* take the time of each part, for an event at the end */
    /* what the caller wants to be told, and may tell; each may be NULL */
    void (*event)(void *user, const struct tfm_train_event *event);
    void *user;
    volatile const int *stop;  /* a number stored here ends training after the update, saved: TFM_ESTOPPED */
};

/* Fills in the defaults. */
TFM_API void tfm_train_options_init(struct tfm_train_options *options);

/* Trains a model, or goes on with the training that the folder holds; see tfm-train(1). */
TFM_API enum tfm_status tfm_train(const struct tfm_train_options *options, struct tfm_error *err);

/* ---- other forms of a model ---- */

/* What is known of the numbers that a model's matrices multiply, from translating some text: a scale for
 * all inputs of a matrix in int8, in place of one for each that is found anew each time. */
struct tfm_calibration;

struct tfm_calibrate_options {
    const struct tfm_model *model; /* opened with TFM_PRECISION_INT8 */
    const char *const *sources;    /* [n_lines] to translate, without line ends: some hundred usual ones */
    size_t n_lines;
    volatile const int *stop; /* a number stored here ends the work: TFM_ESTOPPED. May be NULL */
};

TFM_API enum tfm_status tfm_calibrate(struct tfm_calibration **calibration,
                                      const struct tfm_calibrate_options *options, struct tfm_error *err);
TFM_API void tfm_calibration_free(struct tfm_calibration *calibration);

struct tfm_convert_options {
    const char *const *inputs;    /* [n_inputs] model folders, or checkpoints in a training's checkpoints/ */
    size_t n_inputs;              /* one; or some, with average */
    const char *output;           /* the model folder to write, which should not be there */
    bool average;                 /* the weights are the mean of those of all inputs, which must agree in
                                     config.json and vocabularies. Default false */
    bool smoothed;                /* take the running mean of a checkpoint's weights. Without it: of a single
                                     checkpoint what the training would export, for a mean the weights
                                     themselves. Default false */
    enum tfm_precision precision; /* of the weights on disk. Default TFM_PRECISION_KEEP: fp32 where a model
                                     folder given has it, else int8 where one has that, else fp16 */
    const struct tfm_calibration *calibration; /* of the one model given, to be written with it in int8; NULL:
                                     none. A model that has one already keeps it as long as it is int8. Default
                                     NULL */
    bool plain;                   /* write weights.safetensors, not compressed. Default false */
    bool force;                   /* a model in `output` is replaced, if nothing else is there. Default false */
    volatile const int *stop;     /* a number stored here ends the work, nothing written: TFM_ESTOPPED. May be
                                     NULL */
};

TFM_API void tfm_convert_options_init(struct tfm_convert_options *options);

/* Writes a model in another form; see tfm-convert(1). The folder appears whole or not at all. */
TFM_API enum tfm_status tfm_convert(const struct tfm_convert_options *options, struct tfm_error *err);

struct tfm_compare_options {
    const struct tfm_model *models[2]; /* such as a model and what tfm_convert made of it */
    const char *const *sources;        /* [n_lines] to translate, without line ends */
    const char *const *references;     /* [n_lines] their translations by people */
    size_t n_lines;
    int threads;                       /* 0: one a core */
    volatile const int *stop;          /* a number stored here ends the work: TFM_ESTOPPED. May be NULL */
};

struct tfm_comparison {
    double bleu[2], chrf[2]; /* of each model, 0 to 100, as sacreBLEU counts them */
    size_t changed_lines;    /* translations of the second model that are not those of the first */
    size_t words;            /* of the first model's translations: what spaces separate */
    size_t changed_words;    /* put in, left out or replaced by the second, at least (edit distance) */
};

/* Translates the lines with both models, with the default options, and compares the translations. */
TFM_API enum tfm_status tfm_compare(const struct tfm_compare_options *options, struct tfm_comparison *comparison,
                                    struct tfm_error *err);

/* ---- shortlists ---- */

struct tfm_shortlist_options {
    const char *model;  /* the model folder, for its vocabularies: required */
    const char *output; /* the file to write; NULL: the model's own, shortlist.gz in its folder */
    const struct tfm_corpus *corpora; /* [n_corpora], which stays the caller's; weights are of no meaning here */
    int n_corpora;
    int source_field, target_field; /* columns of tab-separated files, from 1; both 0: they have just two */
    int first;          /* target pieces that are always in: the most frequent. Default 50 */
    int best;           /* and the most probable ones for each source piece, at most. Default 50 */
    float threshold;    /* of them only those with such a probability. Default 0.0001 */
    int threads;        /* 0: one a core */
    const char *scratch; /* the folder for temporary files, of text that is no plain file. NULL: /tmp */
};

struct tfm_shortlist_report {
    long pairs;           /* that were learnt from */
    double list_pieces;   /* of a source piece's list, on average */
    double pieces;        /* that may come in the translation of a sentence of the corpus, on average ... */
    int vocabulary;       /* ... of so many */
    double coverage;      /* part of the corpus's target pieces that may come where they do: 0 to 1 */
};

TFM_API void tfm_shortlist_options_init(struct tfm_shortlist_options *options);

/* Makes a lexical shortlist from a parallel corpus, with which translation is faster (tfm-shortlist(1)). Of
 * more than a million pairs so many are read, from all parts of the corpora. report may be NULL. */
TFM_API enum tfm_status tfm_shortlist(const struct tfm_shortlist_options *options,
                                      struct tfm_shortlist_report *report, struct tfm_error *err);

/* ---- a look inside ---- */

/* One intermediate value of the model, as an observer is shown it: a matrix of rows of floats. */
struct tfm_value {
    const char *name;  /* the name in tfm-inspect(1), such as "encoder.layers.0.self_attn.weights" */
    int layer;         /* -1 where it belongs to no layer */
    int head;          /* -1 where it belongs to no head */
    int rows, cols;
    int stride;        /* floats from one row to the next */
    const float *data; /* valid during the call only */
};

typedef void tfm_observer(void *user, const struct tfm_value *value);

/* Runs the model over one source line and a target line (NULL: translated first, greedily; a model of
 * TFM_ARCH_ENCODER or a language model has none: source is its text) and shows every named value on the way
 * to the observer. Observing changes no digit of any of them. */
TFM_API enum tfm_status tfm_observe(const struct tfm_model *model, const char *source, const char *target,
                                    tfm_observer *observer, void *user, struct tfm_error *err);

enum tfm_format { TFM_TEXT, TFM_JSON, TFM_TSV, TFM_NPY, TFM_SVG };

/* Writes what the model is: architecture, vocabularies, every tensor (TFM_TEXT or TFM_JSON). */
TFM_API enum tfm_status tfm_describe(const struct tfm_model *model, enum tfm_format format, FILE *out,
                                     struct tfm_error *err);

struct tfm_attention_options {
    enum tfm_part part; /* self-attention of encoder or decoder, or decoder over encoder. Default TFM_PART_AUTO */
    int layer;          /* from 0; -1: all */
    int head;           /* from 0; -1: all */
    enum tfm_format format;
    int width;          /* TFM_TEXT: columns of the terminal; 0: 100 */
    bool color;         /* TFM_TEXT: with ANSI colours */
};

TFM_API void tfm_attention_options_init(struct tfm_attention_options *options);

/* Writes attention weights with their pieces. target NULL: translated first (beam 5). TFM_NPY writes one
 * array [layers, heads, queries, keys] of float32, TFM_SVG a picture. */
TFM_API enum tfm_status tfm_attention(const struct tfm_model *model, const char *source, const char *target,
                                      const struct tfm_attention_options *options, FILE *out,
                                      struct tfm_error *err);

struct tfm_predict_options {
    int top_k;              /* pieces for each gap, at most 1000. Default 5 */
    enum tfm_format format; /* TFM_TEXT or TFM_JSON. Default TFM_TEXT */
};

TFM_API void tfm_predict_options_init(struct tfm_predict_options *options);

/* Writes what a model of TFM_ARCH_ENCODER would put in the place of each <mask> of a line: the most probable
 * pieces. */
TFM_API enum tfm_status tfm_predict(const struct tfm_model *model, const char *text,
                                    const struct tfm_predict_options *options, FILE *out,
                                    struct tfm_error *err);

#ifdef __cplusplus
}
#endif

#endif
