/*
 * file.h: files and folders. Files are written under a temporary name beside the target, fsynced and renamed,
 * so that a reader sees the old or the new one, whole.
 */
#ifndef TFM_BASE_FILE_H
#define TFM_BASE_FILE_H

#include "base/str.h"

/* A whole file in memory; plain bytes, not inflated, with one NUL byte behind them. mem_free it. */
enum tfm_status file_read(const char *path, char **data, size_t *size, struct tfm_error *err);

/* The bytes of a regular file as the system has them, to be read only, and never written to a block of
 * their own; NULL where there are none. Nothing else can be mapped. */
enum tfm_status file_map(const char **data, size_t *size, const char *path, struct tfm_error *err);
void file_unmap(const char *data, size_t size);

/* Writes a file atomically (temporary name, fsync, rename). What is there and no regular file, such as a pipe
 * or /dev/stdout, is written to directly. */
enum tfm_status file_write(const char *path, const void *data, size_t size, struct tfm_error *err);

struct file_writer; /* the same for a file that grows in pieces */
enum tfm_status file_create(struct file_writer **writer, const char *path, struct tfm_error *err);
enum tfm_status file_add(struct file_writer *writer, const void *data, size_t size, struct tfm_error *err);
/* All three free the writer, also on failure. The temporary file is gone after each. */
enum tfm_status file_commit(struct file_writer *writer, struct tfm_error *err);
void file_abandon(struct file_writer *writer);
/* A file without a name, in the folder that `path` would be in; for file_detach. */
enum tfm_status file_create_unnamed(struct file_writer **writer, const char *path, struct tfm_error *err);
/* What was written, as an open file, to be read from: without a name it is gone when that is closed. */
enum tfm_status file_detach(struct file_writer *writer, int *fd, struct tfm_error *err);

bool file_exists(const char *path);

enum tfm_status dir_make(const char *path, struct tfm_error *err); /* with parents; fine if it is there */
/* Gives the folder `from` the name `to`, replacing a folder of that name, and makes both names durable. */
enum tfm_status dir_rename(const char *from, const char *to, struct tfm_error *err);
/* With all files in it and in the folders in it, but no deeper; fine if it is not there. */
enum tfm_status dir_remove(const char *path, struct tfm_error *err);

/* Replaces out by "folder/name". */
enum tfm_status path_join(struct str *out, const char *folder, const char *name, struct tfm_error *err);
const char *path_base(const char *path); /* what is behind the last slash */

#endif
