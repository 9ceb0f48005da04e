/*
 * mask.h: what a masked language model is to predict: which pieces of a text are chosen, and what it reads in
 * their places.
 */
#ifndef TFM_TRAIN_MASK_H
#define TFM_TRAIN_MASK_H

#include "train/batch.h"

struct mask {
    double rate; /* part of the pieces that is chosen; 0: nothing is masked, the model is of another kind */
    int id;      /* of the piece that stands for a hidden one */
    int vocab_size; /* from which other pieces are drawn */
    uint64_t seed;  /* of an update, or of a validation */
};

/* Turns what batch_take laid out of a text alone into a task: the source becomes the text as the model
 * reads it, the target the chosen pieces with the source's rows that predict them. Memory comes from the
 * arena. */
void mask_take(struct tokens *source, struct tokens *target, const struct corpus *corpus, const int *pairs,
               int n, const struct mask *mask, struct arena *arena);

/* The pieces that are chosen in a line of the corpus. */
int mask_count(const struct corpus *corpus, int pair, const struct mask *mask);

#endif
