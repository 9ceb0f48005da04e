/*
 * diverge.c: stops a training that can only get worse. A loss or a gradient that is not finite is traced to
 * the first tensor that holds such a value. A loss far above log V, what an even guess over the vocabulary
 * costs, is no training either: weights have grown so large that the model is sure of wrong pieces. A start
 * is at about log V + 1.
 */
#include "train/diverge.h"

#include <math.h>

#define MOST_TIMES_LOG_V 4

enum tfm_status diverge_check(const struct diverge *found, const struct params *params, const real *weights,
                              const real *gradient, struct tfm_error *err)
{
    double guess = log(found->vocab_size);
    bool is_finite = isfinite(found->loss) && isfinite(found->gradient_norm);
    if (is_finite && found->loss <= MOST_TIMES_LOG_V * guess)
        return TFM_OK;
    char what[200];
    const struct param *weight = is_finite ? NULL : params_find_broken(params, weights);
    const struct param *slope = is_finite || weight != NULL ? NULL : params_find_broken(params, gradient);
    if (weight != NULL)
        snprintf(what, sizeof(what), "the weights %s are not finite", weight->name);
    else if (slope != NULL)
        snprintf(what, sizeof(what), "the gradient of %s is not finite", slope->name);
    else if (!is_finite)
        snprintf(what, sizeof(what), "the loss is not finite");
    else
        snprintf(what, sizeof(what), "the loss is %.4g a target token, where guessing costs %.2f",
                 found->loss, guess);
    char saved[600];
    if (found->saved != NULL)
        snprintf(saved, sizeof(saved), "the last checkpoint (%.500s) is untouched", found->saved);
    else
        snprintf(saved, sizeof(saved), "nothing was saved yet");
    return err_set(err, TFM_EDIVERGED, "training diverged at update %ld: %s; %s; lower --learn-rate (now %g)",
                   found->update, what, saved, found->learn_rate);
}
