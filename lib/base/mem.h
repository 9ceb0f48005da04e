/*
 * mem.h: heap memory, 64-byte aligned, counted. Blocks are zeroed but those of mem_alloc_unset. On failure
 * they return NULL and write TFM_ENOMEM into err. mem_fail_after makes the n-th next allocation fail (tests
 * only).
 */
#ifndef TFM_BASE_MEM_H
#define TFM_BASE_MEM_H

#include "base/err.h"

void *mem_alloc(size_t size, struct tfm_error *err);
/* A block with anything in it: for large ones that are written as a whole, by several threads. */
void *mem_alloc_unset(size_t size, struct tfm_error *err);
/* Grows (never shrinks) a block of count elements. New bytes are zero. On failure the old block stays. */
void *mem_grow(void *block, size_t old_count, size_t new_count, size_t element, struct tfm_error *err);
char *mem_strdup(const char *text, struct tfm_error *err);
void mem_free(void *block);

/* The same in the form that zlib asks for. */
void *mem_zlib_alloc(void *user, unsigned int items, unsigned int size);
void mem_zlib_free(void *user, void *block);

/* The most memory that the process has had, in bytes; 0 where the system does not tell. */
double mem_peak(void);

long mem_allocations(void);  /* allocations so far, all threads */
void mem_fail_after(long n); /* n < 0: never */

#endif
