/*
 * heads.h: what each attention head does, in a few numbers (struct tfm_head) over a sample of sentence pairs.
 */
#ifndef TFM_INSPECT_HEADS_H
#define TFM_INSPECT_HEADS_H

#include "base/pool.h"
#include "model/model.h"

/* Heads of all parts of a model that have any: encoder, decoder, cross; in each, layer by layer. */
int heads_count(const struct config *config);

/* Fills heads [heads_count] from n pairs: source i in pairs[2i], its target in pairs[2i + 1], both with
 * </s>. The pairs are looked at side by side, with the same digits on any number of threads. */
enum tfm_status heads_measure(struct tfm_head *heads, const struct tfm_model *model, const struct ints *pairs,
                              int n, struct pool *pool, struct tfm_error *err);

#endif
