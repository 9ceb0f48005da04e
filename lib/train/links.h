/*
 * links.h: alignments of pairs of lines, between their words, as guided alignment takes them.
 */
#ifndef TFM_TRAIN_LINKS_H
#define TFM_TRAIN_LINKS_H

#include "train/pairs.h"

/* Cuts the two texts' alignment out of a line such as "0-0 1-2": source and target word of each link, from 0,
 * words being what spaces separate. Appends it as that of pair number `pair`. What is no such link, or of a
 * word that is not there, is an error that names the file and the line. */
enum tfm_status links_parse(struct links *links, size_t pair, struct span line, const struct span texts[2],
                            const char *file, uint64_t number, struct tfm_error *err);

/* Appends links [n] in order, of pair number `pair`; n_words of both sides. Pairs before that were not named have
 * none. */
enum tfm_status links_add(struct links *links, size_t pair, const struct link *list, size_t n,
                          const int n_words[2], struct tfm_error *err);
void links_clear(struct links *links);
void links_release(struct links *links);

/* The links of a pair, by target word and then by source word, each once; *n is 0 where there are none. */
const struct link *links_of(const struct links *links, size_t pair, size_t *n);

#endif
