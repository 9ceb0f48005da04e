/*
 * pairs.c: a growing list of pairs of lines. All texts lie end to end in one block of memory; what follows
 * takes them as C strings, so a NUL, which no text needs, becomes a space.
 */
#include "train/pairs.h"

#include "base/mem.h"
#include "train/links.h"

static enum tfm_status add_text(struct text_block *block, struct span line, size_t number,
                                struct tfm_error *err)
{
    size_t start = block->text.len;
    TRY(str_add(&block->text, line.data, line.len, err));
    TRY(str_add(&block->text, "", 1, err));
    block->start[number] = start;
    for (char *c = block->text.data + start; c < block->text.data + start + line.len; c++) {
        if (*c == '\0')
            *c = ' ';
    }
    return TFM_OK;
}

static enum tfm_status grow(struct text_block *block, struct tfm_error *err)
{
    size_t cap = block->cap > 0 ? 2 * block->cap : 1024;
    size_t *start = mem_grow(block->start, 2 * block->cap, 2 * cap, sizeof(*start), err);
    if (start == NULL)
        return TFM_ENOMEM;
    block->start = start;
    uint64_t *place = mem_grow(block->place, block->cap, cap, sizeof(*place), err);
    if (place == NULL)
        return TFM_ENOMEM;
    block->place = place;
    block->cap = cap;
    return TFM_OK;
}

enum tfm_status pairs_add(struct text_block *block, struct span source, struct span target, uint64_t place,
                          struct tfm_error *err)
{
    if (block->n == block->cap)
        TRY(grow(block, err));
    TRY(add_text(block, source, 2 * block->n, err));
    TRY(add_text(block, target, 2 * block->n + 1, err));
    block->place[block->n++] = place;
    return TFM_OK;
}

void pairs_clear(struct text_block *block)
{
    str_clear(&block->text);
    links_clear(&block->links);
    block->n = 0;
}

void pairs_release(struct text_block *block)
{
    str_release(&block->text);
    mem_free(block->start);
    mem_free(block->place);
    links_release(&block->links);
    *block = (struct text_block){ 0 };
}
