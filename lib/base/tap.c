/*
 * tap.c: puts together the name under which an intermediate value is shown. Layers call tap_show with their
 * parts of the name, so that no name is built where nobody looks.
 */
#include "base/tap.h"

#include <stdio.h>

void tap_show(const struct tap *tap, const char *prefix, int layer, const char *name, int head, const real *x,
              int rows, int cols, int stride)
{
    if (tap == NULL)
        return;
    char full[256];
    if (layer >= 0)
        snprintf(full, sizeof(full), "%s.%d.%s", prefix, layer, name);
    else
        snprintf(full, sizeof(full), "%s.%s", prefix, name);
    tap->show(tap->user, full, layer, head, x, rows, cols, stride);
}
