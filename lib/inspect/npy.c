/*
 * npy.c: NumPy's format, version 1.0 (NEP 1): the bytes "\x93NUMPY" 1 0, the length of the header in two
 * bytes, the header (a Python dictionary, filled up with spaces and ended by a line feed so that the data
 * starts at a multiple of 64), the data.
 */
#include "inspect/npy.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define PREAMBLE 10 /* bytes before the header */
#define ALIGN 64

static void write_header(FILE *out, const int *shape, int n_dims)
{
    char header[4 * ALIGN];
    int len = snprintf(header, sizeof(header), "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < n_dims; i++)
        len += snprintf(header + len, sizeof(header) - (size_t)len, "%d, ", shape[i]);
    len += snprintf(header + len, sizeof(header) - (size_t)len, ")}");
    int padded = (PREAMBLE + len + 1 + ALIGN - 1) / ALIGN * ALIGN - PREAMBLE;
    assert(padded <= (int)sizeof(header));
    memset(header + len, ' ', (size_t)(padded - len));
    header[padded - 1] = '\n';

    fwrite("\x93NUMPY\x01\x00", 1, 8, out);
    putc(padded & 0xff, out);
    putc(padded >> 8, out);
    fwrite(header, 1, (size_t)padded, out);
}

void npy_write(FILE *out, const float *x, const int *shape, int n_dims)
{
    assert(n_dims >= 1 && n_dims <= 8);
    write_header(out, shape, n_dims);
    size_t n = 1;
    for (int i = 0; i < n_dims; i++)
        n *= (size_t)shape[i];
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof(bits));
        unsigned char bytes[] = { bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff, bits >> 24 };
        fwrite(bytes, 1, sizeof(bytes), out);
    }
}
