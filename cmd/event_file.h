/*
 * event_file.h: a file of scalars over time, as TensorBoard reads it.
 */
#ifndef TFM_CMD_EVENT_FILE_H
#define TFM_CMD_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Begins a new file, of a name that TensorBoard knows, in a folder that is there; NULL and errno on
 * failure. `path` [size] gets its name. */
FILE *event_file_open(const char *folder, char *path, size_t size);

/* Appends one value; whoever writes looks for failures when the file is flushed. */
void event_file_add(FILE *file, double wall_time, long step, const char *tag, double value);

/* CRC-32C of RFC 3720 (Castagnoli): that of "123456789" is e3069283. */
uint32_t event_file_crc(const void *data, size_t size);

#endif
