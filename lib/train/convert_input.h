/*
 * convert_input.h: what `tfm convert` reads: a model folder, or a checkpoint of a training, whose model's
 * config.json and vocabularies are two folders above it.
 */
#ifndef TFM_TRAIN_CONVERT_INPUT_H
#define TFM_TRAIN_CONVERT_INPUT_H

#include "model/model.h"

struct convert_input {
    const char *name; /* as the caller has it */
    char *folder;     /* without links */
    char *model;      /* the folder with config.json and the vocabularies */
    bool is_checkpoint;
    bool is_smoothed; /* its weights are the checkpoint's running mean */
};

/* To be released also after a failure. */
enum tfm_status convert_input_open(struct convert_input *input, const char *name, struct tfm_error *err);
void convert_input_release(struct convert_input *input);

/* Replaces path by that of the weights. Of a checkpoint these are the running mean (which must be there), the
 * weights themselves, or the one that the training would export. */
enum convert_weights {
    CONVERT_SMOOTHED,
    CONVERT_RAW,
    CONVERT_EXPORTED
};
enum tfm_status convert_input_find_weights(struct str *path, struct convert_input *input,
                                           enum convert_weights which, struct tfm_error *err);

/* Replaces path by that of a checkpoint's state.json. */
enum tfm_status convert_input_find_state(struct str *path, const struct convert_input *input,
                                         struct tfm_error *err);

struct convert_vocabularies { /* as bytes; an entry without data: there is no such file */
    struct {
        char *data;
        size_t size;
    } file[3];
};

/* The names of a model's vocabularies, in the order of the entries; NULL behind the last. */
const char *convert_input_vocabulary(int i);

enum tfm_status convert_input_read_vocabularies(struct convert_vocabularies *v,
                                                const struct convert_input *input, struct tfm_error *err);
void convert_input_release_vocabularies(struct convert_vocabularies *v);

/* An error unless both inputs' models have the same sizes and conventions and the same vocabularies, byte for
 * byte: else their mean would mean nothing. */
enum tfm_status convert_input_check_same(const struct convert_input *a, const struct convert_input *b,
                                         struct tfm_error *err);

#endif
