/*
 * heatmap.h: attention weights as text for a terminal.
 */
#ifndef TFM_INSPECT_HEATMAP_H
#define TFM_INSPECT_HEATMAP_H

#include "inspect/attention.h"

/* One map a layer and head; where several layers and several heads are there, one map a layer, of the mean of
 * its heads. width: columns of the terminal (0: 100); a wider map is cut into bands of columns. color:
 * weights are also shaded, with ANSI codes. */
enum tfm_status heatmap_write(FILE *out, const struct attention *a, int width, bool color,
                              struct tfm_error *err);

#endif
