/*
 * sample.h: other segmentations of a text that was split into pieces, drawn at random, so that a training
 * sees its words in many forms: BPE-dropout for a vocabulary of byte-pair encoding, and subword
 * regularisation for a unigram language model.
 */
#ifndef TFM_TEXT_SAMPLE_H
#define TFM_TEXT_SAMPLE_H

#include <stdint.h>

#include "text/spm.h"

struct sampler {
    const struct spm *spm;
    /* BPE: the probability that a merge is left out. Unigram: the exponent of the pieces' probabilities,
     * small for wild segmentations and large for the best one. */
    double alpha;
    int longest; /* bytes of the longest piece */
    /* scratch */
    struct str word; /* text of the stretch that is split anew */
    struct ints at;  /* byte offsets of its characters, or symbols, and of its end */
    double
        *value; /* BPE: score of merging each symbol with the next; unigram: of all segmentations up to it */
    size_t value_cap;
};

void sampler_init(struct sampler *sampler, const struct spm *spm, double alpha);
void sampler_release(struct sampler *sampler);

/* Appends a segmentation of the text of ids [n] (as spm_encode gave them) to out: a function of ids, alpha
 * and key. Pieces that are not made of text (unknown, bytes, control) stay as they are. */
enum tfm_status sampler_draw(struct sampler *sampler, struct ints *out, const int *ids, size_t n,
                             uint64_t key, struct tfm_error *err);

#endif
