/*
 * npy_test.c: the bytes of an array for NumPy: header, alignment, order and byte order of the data.
 */
#include "inspect/npy.h"

#include <stdint.h>

#include "check.h"

static void check_array(const int *shape, int n_dims, const float *x, int n, const char *header)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    npy_write(out, x, shape, n_dims);
    fclose(out);
    const unsigned char *b = (const unsigned char *)bytes;
    size_t data = size - 4 * (size_t)n;
    CHECK(size >= 4 * (size_t)n + 64 && memcmp(bytes, "\x93NUMPY\x01\x00", 8) == 0, "magic and version");
    CHECK_INT(b[8] + 256 * b[9], (long long)data - 10, "length of the header");
    CHECK_INT(data % 64, 0, "the data is aligned");
    CHECK_INT(bytes[data - 1], '\n', "the header ends with a line feed");
    CHECK(memcmp(bytes + 10, header, strlen(header)) == 0 &&
              strspn(bytes + 10 + strlen(header), " ") == data - 11 - strlen(header),
          "header %s", header);
    int wrong = 0;
    for (int i = 0; i < n; i++) {
        const unsigned char *v = b + data + 4 * (size_t)i;
        uint32_t bits = v[0] | (uint32_t)v[1] << 8 | (uint32_t)v[2] << 16 | (uint32_t)v[3] << 24;
        float value;
        memcpy(&value, &bits, 4);
        wrong += value != x[i];
    }
    CHECK_INT(wrong, 0, "all %d values", n);
    free(bytes);
}

int main(void)
{
    static float x[60];
    for (int i = 0; i < 60; i++)
        x[i] = (float)i * 0.37f - 5;
    check_array((const int[]){ 2, 3, 2, 5 }, 4, x, 60,
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 2, 5, )}");
    check_array((const int[]){ 7 }, 1, x, 7, "{'descr': '<f4', 'fortran_order': False, 'shape': (7, )}");
    return check_done();
}
