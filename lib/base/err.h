/*
 * err.h: how the library reports what the world can cause. The sentence is written once, where it happened,
 * into the caller's struct tfm_error; everyone above passes the status up unchanged.
 */
#ifndef TFM_BASE_ERR_H
#define TFM_BASE_ERR_H

#include "tfm.h"

/* Writes the sentence and returns `status`, so that one can say: return err_set(err, TFM_EFORMAT, "..."). */
enum tfm_status err_set(struct tfm_error *err, enum tfm_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* TFM_EIO with the sentence "<what>: <strerror(errno)>". */
enum tfm_status err_io(struct tfm_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The one error-forwarding macro. */
#define TRY(call)                         \
    do {                                  \
        enum tfm_status status_ = (call); \
        if (status_ != TFM_OK)            \
            return status_;               \
    } while (0)

#endif
