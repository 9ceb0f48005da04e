/*
 * head_loss_options.c: reads the names of attention heads and of what is wanted of them:
 *     PART.LAYER.HEAD:KIND=WEIGHT   as in   encoder.2.3:entropy=0.01   or, for all heads of a layer,
 *                                           cross.0.*:sparsity=0.05
 * Whether the model has such a head is the library's to say, which knows the model.
 */
#include "head_loss_options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Takes one of the words off the front of the text; -1: it begins with none of them. */
static int take_word(const char **text, const char *const *words, int n)
{
    for (int i = 0; i < n; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(*text, words[i], len) == 0) {
            *text += len;
            return i;
        }
    }
    return -1;
}

static bool take_char(const char **text, char c)
{
    bool found = **text == c;
    *text += found;
    return found;
}

/* A number from 0 to 9999. */
static bool take_number(const char **text, int *number)
{
    const char *begin = *text;
    for (*number = 0; isdigit((unsigned char)**text) && *text - begin < 4; ++*text)
        *number = 10 * *number + (**text - '0');
    return *text > begin;
}

/* "2.3", or with a star for all heads. */
static bool take_head(const char **text, struct tfm_head_loss *loss, bool may_be_all)
{
    if (!take_number(text, &loss->layer) || !take_char(text, '.'))
        return false;
    if (may_be_all && take_char(text, '*')) {
        loss->head = -1;
        return true;
    }
    return take_number(text, &loss->head);
}

static bool parse_loss(const char *text, struct tfm_head_loss *loss)
{
    static const char *const parts[] = { "encoder.", "decoder.", "cross." };
    static const char *const kinds[] = { "entropy=", "sparsity=", "distance=" };
    char *end;
    int part = take_word(&text, parts, 3);
    if (part < 0 || !take_head(&text, loss, true) || !take_char(&text, ':'))
        return false;
    int kind = take_word(&text, kinds, 3);
    if (kind < 0 || (!isdigit((unsigned char)*text) && *text != '-' && *text != '.'))
        return false;
    loss->part = (enum tfm_part)part;
    loss->kind = (enum tfm_head_loss_kind)kind;
    loss->weight = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(loss->weight);
}

static int read_guided(struct tfm_head_loss *loss, struct corpus_list *corpora,
                       const struct head_loss_options *given, const struct option_table *table)
{
    if (given->files.n != corpora->n)
        return options_wrong(
            table,
            "option --guided-alignment: found %d file%s, expected one for each corpus, or none for "
            "one without: %d",
            given->files.n, given->files.n == 1 ? "" : "s", corpora->n);
    for (int i = 0; i < corpora->n; i++)
        corpora->list[i].alignment = strcmp(given->files.list[i], "none") != 0 ? given->files.list[i] : NULL;
    *loss = (struct tfm_head_loss){ .part = TFM_CROSS, .layer = -1, .weight = given->guided_weight };
    loss->kind = given->guided_cost == 0 ? TFM_HEAD_ALIGNMENT_CE : TFM_HEAD_ALIGNMENT_MSE;
    const char *head = given->guided_head;
    if (head != NULL && (!take_head(&head, loss, false) || *head != '\0'))
        return options_wrong(
            table,
            "option --guided-alignment-head: found '%s', expected LAYER.HEAD, both from 0, such as "
            "2.3",
            given->guided_head);
    return OPTIONS_GO_ON;
}

/* Without alignments. */
static int check_unguided(const struct head_loss_options *given, const struct option_table *table)
{
    const struct {
        const char *name;
        bool is_given;
    } uses[] = { { "cost", given->guided_cost != 0 },
                 { "weight", given->guided_weight != HEAD_LOSS_GUIDED_WEIGHT },
                 { "head", given->guided_head != NULL } };
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (uses[i].is_given)
            return options_wrong(table,
                                 "option --guided-alignment-%s is for --guided-alignment, which is missing",
                                 uses[i].name);
    }
    return OPTIONS_GO_ON;
}

int head_loss_options_read(struct tfm_head_loss *list, int *n, struct corpus_list *corpora,
                           const struct head_loss_options *given, const struct option_table *table)
{
    *n = 0;
    for (int i = 0; i < given->losses.n; i++) {
        if (!parse_loss(given->losses.list[i], &list[*n]))
            return options_wrong(
                table,
                "option --head-loss: found '%s', expected encoder|decoder|cross, layer and head (or "
                "*) from 0, entropy|sparsity|distance and a weight, such as encoder.2.3:entropy=0.01",
                given->losses.list[i]);
        ++*n;
    }
    if (given->files.n == 0)
        return check_unguided(given, table);
    return read_guided(&list[(*n)++], corpora, given, table);
}
