/*
 * calibration.h: what `tfm convert --calibrate` reads and measures before the new model is written.
 */
#ifndef TFM_CMD_CALIBRATION_H
#define TFM_CMD_CALIBRATION_H

#include "cmd.h"

/* Of the model in the folder, in int8, over the lines of a text. Free it with tfm_calibration_free. */
enum tfm_status calibration_make(struct tfm_calibration **calibration, const char *text, const char *folder,
                                 volatile const int *stop, struct tfm_error *err);

#endif
