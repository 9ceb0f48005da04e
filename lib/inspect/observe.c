/*
 * observe.c: shows an observer every named value on a sentence's way through the model. The target is forced:
 * row t of the decoder has read the start symbol and the pieces before t, and predicts piece t. Encoder and
 * decoder are those of translation, only with a tap, so what is seen is what translates. The output layer
 * comes last:
 *     decoder.logits [T, V] = hidden unembed^T + bias
 * An encoder alone, a masked language model, has encoder.logits [S, V], where row s predicts piece s.
 */
#include "inspect/observe.h"

#include <assert.h>
#include <string.h>

#include "decode/translator.h"
#include "model/decoder.h"

static enum tfm_status encode_text(struct ints *ids, const struct spm *spm, int eos, const char *text,
                                   const char *side, struct tfm_error *err)
{
    TRY(spm_encode(spm, text, strlen(text), ids, err));
    if (ids->n > OBSERVE_MAX_PIECES)
        return err_set(err, TFM_EINVAL, "the %s has %zu pieces, more than %d: give a shorter sentence", side,
                       ids->n, OBSERVE_MAX_PIECES);
    return ints_add(ids, &eos, 1, err);
}

/* The best translation of one line, as pieces, ended by </s> even where the length limit ended it. */
static enum tfm_status add_translation(struct ints *ids, struct tfm_translator *translator, int eos,
                                       const char *source_text, struct tfm_error *err)
{
    const struct tfm_translation *result;
    TRY(tfm_translate(translator, &source_text, 1, &result, err));
    const struct tfm_hypothesis *best = &result->hypotheses[0];
    if (best->n_pieces > OBSERVE_MAX_PIECES)
        return err_set(err, TFM_EINVAL,
                       "the translation has %d pieces, more than %d: give a shorter sentence", best->n_pieces,
                       OBSERVE_MAX_PIECES);
    TRY(ints_add(ids, best->pieces, (size_t)best->n_pieces, err));
    if (best->n_pieces == 0 || best->pieces[best->n_pieces - 1] != eos)
        TRY(ints_add(ids, &eos, 1, err));
    return TFM_OK;
}

static enum tfm_status translate_text(struct ints *ids, const struct tfm_model *model,
                                      const char *source_text, int beam_size, struct tfm_error *err)
{
    struct tfm_translate_options options;
    struct tfm_translator *translator = NULL;
    tfm_translate_options_init(&options);
    options.beam_size = beam_size;
    options.max_length = OBSERVE_MAX_PIECES; /* in one part: parts have no attention in common */
    options.mini_batch = 1;
    options.threads = 1;
    TRY(translator_new(&translator, &model->net, model->source, model->target, model->kern, &options, NULL,
                       err));
    enum tfm_status status = add_translation(ids, translator, model->config.eos_token_id, source_text, err);
    tfm_translator_free(translator);
    return status;
}

/* A mask hides a piece with the space before it, so the piece for that space goes. */
static void join_masks(struct ints *ids, const struct tfm_model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++) {
        bool is_space = strcmp(spm_piece(model->source, ids->data[i]), OBSERVE_SPACE) == 0;
        if (!is_space || ids->data[i + 1] != model->config.mask_token_id) /* </s> is the last */
            ids->data[n++] = ids->data[i];
    }
    ids->n = n;
}

enum tfm_status observe_encode(struct ints *source, struct ints *target, const struct tfm_model *model,
                               const char *source_text, const char *target_text, int beam_size,
                               struct tfm_error *err)
{
    int eos = model->config.eos_token_id;
    if (model->config.task == CONFIG_LANGUAGE_MODEL) {
        if (target_text != NULL)
            return err_set(err, TFM_EINVAL,
                           "this model is a language model, which reads one text: found a second one");
        TRY(ints_add(source, &eos, 1, err));
        return encode_text(target, model->target, eos, source_text, "text", err);
    }
    TRY(encode_text(source, model->source, eos, source_text, "source", err));
    if (model->config.architecture == CONFIG_ENCODER_ONLY) {
        join_masks(source, model);
        return target_text == NULL
                   ? TFM_OK
                   : err_set(err, TFM_EINVAL,
                             "this model is an encoder alone, which reads one sentence: found a "
                             "target, too");
    }
    if (target_text == NULL)
        return translate_text(target, model, source_text, beam_size, err);
    return encode_text(target, model->target, eos, target_text, "target", err);
}

/* More than a pass can take: its results and, since a layer gives back what it took, one layer. */
static size_t scratch_size(const struct config *c, size_t n_source, size_t n_target)
{
    size_t n = n_source + n_target;
    size_t rows = n * (32 * (size_t)c->d_model + 2 * config_inner_size(c));
    size_t reals = rows + 4 * n * n + 2 * n_target * (size_t)c->vocab_size;
    return (reals + PRODUCT_SCRATCH) * sizeof(real) + ((size_t)1 << 20);
}

static enum tfm_status scratch_init(struct arena *arena, size_t size, struct tfm_error *err)
{
    TRY(arena_init(arena, size, err));
    if (arena->size >= size)
        return TFM_OK;
    arena_release(arena);
    return err_set(err, TFM_ENOMEM, "this pair of sentences may need %zu MiB of memory: give a shorter one",
                   size >> 20);
}

/* The target is each place of the source. */
static void predict_source(struct tokens *target, const struct tokens *source, struct arena *arena)
{
    int *rows = ARENA_TAKE(arena, int, source->n);
    for (int i = 0; i < source->n; i++)
        rows[i] = i;
    *target = *source;
    target->rows = rows;
}

enum tfm_status observe_run(const struct tfm_model *model, const struct ints *source,
                            const struct ints *target, const struct tap *tap, struct tfm_error *err)
{
    const struct config *config = &model->config;
    const struct net *net = &model->net;
    int source_start[] = { 0, (int)source->n }, target_start[] = { 0, (int)target->n };
    struct tokens source_tokens = { 1, (int)source->n, source->data, source_start, NULL, NULL };
    struct tokens target_tokens = { 1, (int)target->n, target->data, target_start, NULL, NULL };
    bool is_encoder = config->architecture == CONFIG_ENCODER_ONLY;

    struct arena arena;
    TRY(scratch_init(&arena, scratch_size(config, source->n, is_encoder ? source->n : target->n), err));
    if (is_encoder)
        predict_source(&target_tokens, &source_tokens, &arena);
    struct run run = { .arena = &arena, .kern = model->kern, .gemm = model->gemm, .tap = tap };
    real *memory = ARENA_TAKE(&arena, real, source->n * (size_t)config->d_model);
    real *hidden = ARENA_TAKE(&arena, real, (size_t)target_tokens.n * (size_t)config->d_model);
    real *logits = ARENA_TAKE(&arena, real, (size_t)target_tokens.n * (size_t)config->vocab_size);
    encoder_forward(memory, NULL, &source_tokens, net, &run);
    decoder_forward(hidden, NULL, &target_tokens, &source_tokens, memory, net, &run);
    linear_forward(logits, hidden, &net->unembed, target_tokens.n, &run);
    tap_show(tap, is_encoder ? "encoder" : "decoder", -1, "logits", -1, logits, target_tokens.n,
             config->vocab_size, config->vocab_size);
    arena_release(&arena);
    return TFM_OK;
}

struct listener {
    tfm_observer *observer;
    void *user;
};

static void show_value(void *user, const char *name, int layer, int head, const real *x, int rows, int cols,
                       int stride)
{
    const struct listener *listener = user;
    struct tfm_value value = { name, layer, head, rows, cols, stride, x };
    listener->observer(listener->user, &value);
}

enum tfm_status tfm_observe(const struct tfm_model *model, const char *source, const char *target,
                            tfm_observer *observer, void *user, struct tfm_error *err)
{
    assert(source != NULL && observer != NULL);
    struct listener listener = { observer, user };
    struct tap tap = { show_value, &listener };
    struct ints source_ids = { 0 }, target_ids = { 0 };
    enum tfm_status status = observe_encode(&source_ids, &target_ids, model, source, target, 1, err);
    if (status == TFM_OK)
        status = observe_run(model, &source_ids, &target_ids, &tap, err);
    ints_release(&source_ids);
    ints_release(&target_ids);
    return status;
}
