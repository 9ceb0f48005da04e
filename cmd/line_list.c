/*
 * line_list.c: a list of lines that grows by doubling.
 */
#include "line_list.h"

#include <stdlib.h>

static bool make_room(struct line_list *list)
{
    if (list->n < list->room)
        return true;
    size_t room = list->room > 0 ? 2 * list->room : 256;
    char **grown = realloc(list->line, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    list->line = grown;
    list->room = room;
    return true;
}

enum tfm_status line_list_add(struct line_list *list, char *line, struct tfm_error *err)
{
    if (line == NULL || !make_room(list)) {
        free(line);
        return cmd_error(err, TFM_ENOMEM, "no memory for %zu lines", list->n + 1);
    }
    list->line[list->n++] = line;
    return TFM_OK;
}

void line_list_release(struct line_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->line[i]);
    free(list->line);
    *list = (struct line_list){ 0 };
}
