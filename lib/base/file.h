/*
 * file.h: files. Lines are read from plain or gzip files (told by their first bytes, concatenated members included),
 * pipes and "-" (stdin); a truncated or corrupt gzip file is an error that names file and line. Files are written
 * under a temporary name beside the target, fsynced and renamed, so that a reader sees the old or the new one, whole.
 */
#ifndef TFM_BASE_FILE_H
#define TFM_BASE_FILE_H

#include "base/str.h"

struct line_reader;

enum tfm_status line_open(struct line_reader **reader, const char *path, struct tfm_error *err);
void line_close(struct line_reader *reader);
const char *line_path(const struct line_reader *reader);
long line_number(const struct line_reader *reader); /* of the line read last, from 1 */

/* Reads the next line into `line` (replacing it) without its line end (\n or \r\n; the last may lack one) and, on the
 * first line, without a UTF-8 byte order mark. *more is false at the end of the file. The line may hold NUL bytes. */
enum tfm_status line_read(struct line_reader *reader, struct str *line, bool *more, struct tfm_error *err);

/* True when line_read would have to wait for the other end of a pipe. */
bool line_would_wait(struct line_reader *reader);

/* A whole file in memory; plain bytes, not inflated. mem_free it. */
enum tfm_status file_read(const char *path, char **data, size_t *size, struct tfm_error *err);

/* Writes a file atomically (temporary name, fsync, rename). */
enum tfm_status file_write(const char *path, const void *data, size_t size, struct tfm_error *err);

struct file_writer; /* the same for a file that grows in pieces */
enum tfm_status file_create(struct file_writer **writer, const char *path, struct tfm_error *err);
enum tfm_status file_add(struct file_writer *writer, const void *data, size_t size, struct tfm_error *err);
enum tfm_status file_commit(struct file_writer *writer, struct tfm_error *err); /* frees the writer, also on failure */
void file_abandon(struct file_writer *writer);                                  /* removes the temporary file */

bool file_exists(const char *path);
enum tfm_status dir_make(const char *path, struct tfm_error *err);   /* with parents; fine if it is there */
enum tfm_status dir_rename(const char *from, const char *to, struct tfm_error *err); /* fsyncs the parent; replaces */
enum tfm_status dir_remove(const char *path, struct tfm_error *err); /* with all files in it, one level of folders */
enum tfm_status path_join(struct str *out, const char *folder, const char *name, struct tfm_error *err);

#endif
