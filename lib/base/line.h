/*
 * line.h: reads text line by line from plain or gzip files (told by their first bytes, concatenated members
 * included), pipes and "-" (standard input). A line that has arrived is returned without waiting for more. A
 * truncated or corrupt gzip file is an error that names file and line.
 */
#ifndef TFM_BASE_LINE_H
#define TFM_BASE_LINE_H

#include "base/str.h"

#define LINE_LONGEST ((size_t)64 << 20) /* bytes; what is longer is no text */

struct line_reader;

enum tfm_status line_open(struct line_reader **reader, const char *path, struct tfm_error *err);
/* Of an open file, which is closed with the reader, also after a failure; `name` is for messages. */
enum tfm_status line_open_fd(struct line_reader **reader, int fd, const char *name, struct tfm_error *err);
void line_free(struct line_reader *reader);
const char *line_path(const struct line_reader *reader); /* for messages: "standard input" for "-" */
long line_number(const struct line_reader *reader);      /* of the line read last, from 1 */

/* Reads the next line into `line` (replacing it) without its line end (\n or \r\n; the last may lack one)
 * and, on the first line, without a UTF-8 byte order mark. *more is false at the end of the file. The line
 * may hold NUL bytes. */
enum tfm_status line_read(struct line_reader *reader, struct str *line, bool *more, struct tfm_error *err);

/* True when line_read would have to wait for the other end of a pipe. */
bool line_would_wait(struct line_reader *reader);

#endif
