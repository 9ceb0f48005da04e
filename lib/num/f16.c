/*
 * f16.c: IEEE half precision: 1 sign bit, 5 of exponent (bias 15), 10 of mantissa. Plain integer arithmetic:
 * it runs once a weight, when a model is opened or written.
 */
#include "num/f16.h"

#include <string.h>

static float decode(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023, bits;
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24, exact in float */
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | mantissa << 13;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static uint16_t encode(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00; /* NaN */
    if (bits >= 0x477ff000)   /* 65520 and more round to infinity */
        return sign | 0x7c00;
    if (bits < 0x38800000) {  /* below 2^-14: let float addition round at 2^-24 */
        float magnitude;
        memcpy(&magnitude, &bits, sizeof(bits));
        magnitude += 0.5f;
        memcpy(&bits, &magnitude, sizeof(bits));
        return sign | (uint16_t)(bits - 0x3f000000);
    }
    bits += 0xfff + (bits >> 13 & 1);
    return sign | (uint16_t)((bits - (112u << 23)) >> 13);
}

void f16_decode(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = decode(x[i]);
}

void f16_encode(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = encode(x[i]);
}
