/*
 * dump.h: attention weights as data for other programs.
 */
#ifndef TFM_INSPECT_DUMP_H
#define TFM_INSPECT_DUMP_H

#include "inspect/attention.h"

/* {"source": [...], "target": [...], "part": "cross", "queries": [...], "keys": [...],
 *  "layers": [{"layer": 0, "heads": [{"head": 0, "weights": [[...], ...]}, ...]}, ...]} */
enum tfm_status dump_json(FILE *out, const struct attention *a, struct tfm_error *err);

/* A line with the names of the columns, then one line a weight. In a piece, a backslash, tab, line feed and
 * carriage return are written \\, \t, \n and \r. */
void dump_tsv(FILE *out, const struct attention *a);

#endif
