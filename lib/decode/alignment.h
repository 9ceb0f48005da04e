/*
 * alignment.h: from the attention that target pieces pay to source pieces to a matrix over words or pieces of
 * a line. </s> is on neither side: a row of attention is divided by what it pays to the others. The row of a
 * word is the mean of its pieces' rows, the column of a word the sum of its pieces' columns, so that each row
 * of the matrix sums to 1.
 */
#ifndef TFM_DECODE_ALIGNMENT_H
#define TFM_DECODE_ALIGNMENT_H

#include "decode/worker.h"

/* Fills in the alignment of hypothesis `rank` of a line, of which there is one where the line has several
 * parts; false where memory is short, with the worker's status set. */
bool alignment_make(struct tfm_hypothesis *out, const struct tfm_translator *t, struct worker *worker,
                    const struct plan_line *line, int rank);

/* The source piece of the part that target piece i of a hypothesis looks at most, </s> left out. */
int alignment_best_piece(const struct search_sentence *part, const struct search_hypothesis *found, int i);

#endif
