/*
 * amx_emulated.h: the instructions of AMX's tiles that kern_amx.h uses, in plain C, so that its logic is tested on any
 * machine. What the processor would refuse ends the program.
 */
#ifndef TFM_TESTS_AMX_EMULATED_H
#define TFM_TESTS_AMX_EMULATED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int rows, row_bytes;
    unsigned char bytes[16][64];
} emulated_tiles[8];

static void emulated_require(int condition)
{
    if (!condition)
        abort();
}

static void _tile_loadconfig(const void *config)
{
    const unsigned char *bytes = config;
    emulated_require(bytes[0] == 1 && bytes[1] == 0);
    memset(emulated_tiles, 0, sizeof(emulated_tiles));
    for (int i = 0; i < 8; i++) {
        emulated_tiles[i].row_bytes = bytes[16 + 2 * i] + 256 * bytes[17 + 2 * i];
        emulated_tiles[i].rows = bytes[48 + i];
        emulated_require(emulated_tiles[i].rows <= 16 && emulated_tiles[i].row_bytes <= 64);
        emulated_require((emulated_tiles[i].rows == 0) == (emulated_tiles[i].row_bytes == 0));
    }
}

static void _tile_release(void)
{
    memset(emulated_tiles, 0, sizeof(emulated_tiles));
}

static void _tile_zero(int tile)
{
    emulated_require(emulated_tiles[tile].rows > 0);
    memset(emulated_tiles[tile].bytes, 0, sizeof(emulated_tiles[tile].bytes));
}

static void _tile_loadd(int tile, const void *from, size_t stride)
{
    emulated_require(emulated_tiles[tile].rows > 0);
    memset(emulated_tiles[tile].bytes, 0, sizeof(emulated_tiles[tile].bytes));
    for (int i = 0; i < emulated_tiles[tile].rows; i++)
        memcpy(emulated_tiles[tile].bytes[i], (const char *)from + (size_t)i * stride,
               (size_t)emulated_tiles[tile].row_bytes);
}

static void _tile_stored(int tile, void *to, size_t stride)
{
    emulated_require(emulated_tiles[tile].rows > 0);
    for (int i = 0; i < emulated_tiles[tile].rows; i++)
        memcpy((char *)to + (size_t)i * stride, emulated_tiles[tile].bytes[i],
               (size_t)emulated_tiles[tile].row_bytes);
}

/* c [rows of a, n] += a [rows of a, 4 k] times b [k, 4 n] by fours, all signed. */
static void _tile_dpbssd(int c, int a, int b)
{
    int k = emulated_tiles[a].row_bytes / 4, n = emulated_tiles[b].row_bytes / 4;
    emulated_require(emulated_tiles[c].rows == emulated_tiles[a].rows && emulated_tiles[b].rows == k);
    emulated_require(emulated_tiles[c].row_bytes == 4 * n && k > 0 && emulated_tiles[a].rows > 0);
    for (int i = 0; i < emulated_tiles[c].rows; i++)
        for (int j = 0; j < n; j++) {
            int32_t sum;
            memcpy(&sum, &emulated_tiles[c].bytes[i][4 * j], 4);
            for (int l = 0; l < k; l++)
                for (int e = 0; e < 4; e++)
                    sum += (int8_t)emulated_tiles[a].bytes[i][4 * l + e] *
                           (int8_t)emulated_tiles[b].bytes[l][4 * j + e];
            memcpy(&emulated_tiles[c].bytes[i][4 * j], &sum, 4);
        }
}

static float emulated_bf16(const unsigned char *bytes)
{
    uint16_t half;
    memcpy(&half, bytes, sizeof(half));
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* c [rows of a, n] += a [rows of a, 2 k] times b [k, 2 n] by pairs, of bf16, in float. */
static inline void _tile_dpbf16ps(int c, int a, int b)
{
    int k = emulated_tiles[a].row_bytes / 4, n = emulated_tiles[b].row_bytes / 4;
    emulated_require(emulated_tiles[c].rows == emulated_tiles[a].rows && emulated_tiles[b].rows == k);
    emulated_require(emulated_tiles[c].row_bytes == 4 * n && k > 0 && emulated_tiles[a].rows > 0);
    for (int i = 0; i < emulated_tiles[c].rows; i++)
        for (int j = 0; j < n; j++) {
            float sum;
            memcpy(&sum, &emulated_tiles[c].bytes[i][4 * j], 4);
            for (int l = 0; l < k; l++)
                for (int e = 0; e < 2; e++)
                    sum += emulated_bf16(&emulated_tiles[a].bytes[i][4 * l + 2 * e]) *
                           emulated_bf16(&emulated_tiles[b].bytes[l][4 * j + 2 * e]);
            memcpy(&emulated_tiles[c].bytes[i][4 * j], &sum, 4);
        }
}

#endif
