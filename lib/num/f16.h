/*
 * f16.h: IEEE half precision, the type of stored weights. Exact one way; round to nearest even the other.
 */
#ifndef TFM_NUM_F16_H
#define TFM_NUM_F16_H

#include <stddef.h>
#include <stdint.h>

void f16_decode(float *y, const uint16_t *x, size_t n);
void f16_encode(uint16_t *y, const float *x, size_t n); /* beyond 65504: infinity */

#endif
