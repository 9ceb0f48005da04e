/*
 * head_terms.c: from --head-loss and --guided-alignment to the list that nn/head_loss.c works with, and back to
 * what is reported: for each term the mean over its rows since the last report, without its weight. The sums of
 * a report that has begun are kept in checkpoints, by name, since a training may go on with other terms.
 */
#include "train/head_terms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/limit.h"

#define MAX_WEIGHT 1000

static const char *kind_name(enum tfm_head_loss_kind kind)
{
    static const char *const names[] = { "entropy", "sparsity", "distance", "alignment-ce", "alignment-mse" };
    return names[kind];
}

static bool needs_alignment(const struct tfm_head_loss *loss)
{
    return loss->kind == TFM_HEAD_ALIGNMENT_CE || loss->kind == TFM_HEAD_ALIGNMENT_MSE;
}

static int layer_of(const struct tfm_head_loss *loss, const struct config *c)
{
    return loss->layer < 0 ? config_attention_layers(c, loss->part) - 1 : loss->layer;
}

static void name_of(char *name, size_t size, const struct tfm_head_loss *loss, const struct config *c)
{
    char head[16] = "*";
    if (loss->head >= 0)
        snprintf(head, sizeof(head), "%d", loss->head);
    snprintf(name, size, "%s.%d.%s:%s", config_part_name(loss->part), layer_of(loss, c), head,
             kind_name(loss->kind));
}

static enum tfm_status check_loss(const struct tfm_head_loss *loss, const struct config *c,
                                  struct tfm_error *err)
{
    char name[48];
    const struct limit choices[] = {
        { "the part of a head loss", (int)loss->part, 0, TFM_CROSS },
        { "the kind of a head loss", (int)loss->kind, 0, TFM_HEAD_ALIGNMENT_MSE },
    };
    TRY(LIMIT_CHECK(choices, err));
    int n_layers = config_attention_layers(c, loss->part);
    const char *part = config_part_name(loss->part);
    name_of(name, sizeof(name), loss, c);
    if (n_layers == 0)
        return err_set(err, TFM_EINVAL, "a loss on %s: the model has no self-attention there (part %s)", name,
                       part);
    if (loss->layer < -1 || loss->layer >= n_layers)
        return err_set(err, TFM_EINVAL, "a loss on %s: there are layers 0 to %d (part %s)", name,
                       n_layers - 1, part);
    if (loss->head < -1 || loss->head >= c->heads)
        return err_set(err, TFM_EINVAL, "a loss on %s: a layer has heads 0 to %d", name, c->heads - 1);
    if (loss->kind == TFM_HEAD_DISTANCE && loss->part == TFM_CROSS)
        return err_set(
            err, TFM_EINVAL,
            "a loss on %s: there is no distance between a target and a source place; distance is of "
            "encoder and decoder",
            name);
    if (needs_alignment(loss) && loss->part != TFM_CROSS)
        return err_set(err, TFM_EINVAL,
                       "a loss on %s: an alignment is between target and source; it is of cross", name);
    if (!(fabs(loss->weight) <= MAX_WEIGHT))
        return err_set(err, TFM_EINVAL, "a loss on %s: the weight is %g; it can be from -%d to %d", name,
                       loss->weight, MAX_WEIGHT, MAX_WEIGHT);
    return TFM_OK;
}

static enum tfm_status check_alignments(const struct tfm_train_options *o, struct tfm_error *err)
{
    bool has_loss = false, has_file = false;
    for (int i = 0; i < o->n_head_losses; i++)
        has_loss = has_loss || needs_alignment(&o->head_losses[i]);
    for (int i = 0; i < o->n_corpora; i++)
        has_file = has_file || o->corpora[i].alignment != NULL;
    if (has_loss != has_file)
        return err_set(
            err, TFM_EINVAL,
            "guided alignment needs both a corpus with an alignment (--guided-alignment) and a head to "
            "guide");
    return TFM_OK;
}

enum tfm_status head_terms_check(const struct tfm_train_options *o, const struct config *c,
                                 struct tfm_error *err)
{
    char name[48], other[48];
    for (int i = 0; i < o->n_head_losses; i++) {
        TRY(check_loss(&o->head_losses[i], c, err));
        name_of(name, sizeof(name), &o->head_losses[i], c);
        for (int j = 0; j < i; j++) {
            name_of(other, sizeof(other), &o->head_losses[j], c);
            if (strcmp(name, other) == 0)
                return err_set(err, TFM_EINVAL, "the loss on %s is given twice", name);
        }
    }
    return check_alignments(o, err);
}

void head_terms_bind(struct head_loss *list, struct head_terms *terms, const struct tfm_train_options *o,
                     const struct config *c)
{
    *terms = (struct head_terms){ .n = o->n_head_losses };
    for (int i = 0; i < o->n_head_losses; i++) {
        const struct tfm_head_loss *loss = &o->head_losses[i];
        name_of(terms->list[i].name, sizeof(terms->list[i].name), loss, c);
        list[i] = (struct head_loss){ .part = loss->part,
                                      .layer = layer_of(loss, c),
                                      .head = loss->head,
                                      .kind = loss->kind,
                                      .weight = (real)loss->weight };
    }
}

void head_terms_resume(struct head_terms *terms, const struct head_terms *from)
{
    for (int i = 0; i < terms->n; i++) {
        for (int j = 0; j < from->n; j++) {
            if (strcmp(terms->list[i].name, from->list[j].name) == 0)
                terms->list[i].sum = from->list[j].sum;
        }
    }
}

void head_terms_add(struct head_terms *terms, const struct head_sum *sums)
{
    for (int i = 0; i < terms->n; i++) {
        terms->list[i].sum.value += sums[i].value;
        terms->list[i].sum.rows += sums[i].rows;
    }
}

void head_terms_report(struct tfm_head_term *reports, struct head_terms *terms)
{
    for (int i = 0; i < terms->n; i++) {
        struct head_sum *sum = &terms->list[i].sum;
        double mean = sum->rows > 0 ? sum->value / sum->rows : (double)NAN;
        reports[i] = (struct tfm_head_term){ terms->list[i].name, mean };
        *sum = (struct head_sum){ 0 };
    }
}
