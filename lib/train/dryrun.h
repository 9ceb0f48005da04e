/*
 * dryrun.h: what a training would be (--dry-run), without a trace of it.
 */
#ifndef TFM_TRAIN_DRYRUN_H
#define TFM_TRAIN_DRYRUN_H

#include "tfm.h"

/* Opens all that tfm_train would open, in a folder of its own inside options->dry_run that is removed again,
 * and reports sizes and the time it would take as notes. The model folder is only read. */
enum tfm_status dryrun_run(const struct tfm_train_options *options, struct tfm_error *err);

#endif
