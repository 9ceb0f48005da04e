/*
 * svg.h: attention weights as a picture that needs nothing else: one SVG file, for a browser or a paper.
 */
#ifndef TFM_INSPECT_SVG_H
#define TFM_INSPECT_SVG_H

#include "inspect/attention.h"

/* A row of maps a layer, a column a head. */
enum tfm_status svg_write(FILE *out, const struct attention *a, struct tfm_error *err);

#endif
