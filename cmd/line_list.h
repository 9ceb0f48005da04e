/*
 * line_list.h: lines of a text that is held as a whole.
 */
#ifndef TFM_CMD_LINE_LIST_H
#define TFM_CMD_LINE_LIST_H

#include "cmd.h"

struct line_list {
    char **line; /* [n] */
    size_t n, room;
};

/* Appends a line, which is the list's from then on, also on failure. NULL is a lack of memory. */
enum tfm_status line_list_add(struct line_list *list, char *line, struct tfm_error *err);
void line_list_release(struct line_list *list);

#endif
