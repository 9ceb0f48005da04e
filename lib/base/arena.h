/*
 * arena.h: scratch memory, taken in order and given back all at once. The address range is reserved at
 * creation and gets real pages when it is first touched, so that taking never fails and never moves what was
 * taken before; layers can thus return void. A request beyond the reservation is a programmer's mistake
 * (limits on sentence length and batch size are checked before).
 */
#ifndef TFM_BASE_ARENA_H
#define TFM_BASE_ARENA_H

#include "base/err.h"

struct arena {
    char *base;
    size_t used, size, peak;
};

enum tfm_status arena_init(struct arena *arena, size_t reserve, struct tfm_error *err);
void arena_release(struct arena *arena);

void *arena_take(struct arena *arena, size_t size); /* 64-byte aligned, not zeroed */

static inline size_t arena_mark(const struct arena *arena)
{
    return arena->used;
}
void arena_reset(struct arena *arena, size_t mark); /* gives back all that was taken since the mark */

#define ARENA_TAKE(arena, type, count) ((type *)arena_take((arena), sizeof(type) * (size_t)(count)))

#endif
