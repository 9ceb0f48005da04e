/*
 * activation.c: the activation of a feed-forward layer, and back. The functions are the kernels'
 * (num/kern_act.h); here they meet the gate, whose rows [a, g] lie 2 f apart:
 *     y = act(a) * g     da = dy * g * act'(a)     dg = dy * act(a)
 */
#include "nn/activation.h"

#include <string.h>

struct activation activation_of(enum tfm_activation name)
{
    static const struct activation list[] = {
        [TFM_ACTIVATION_RELU] = { ACT_RELU, false },           [TFM_ACTIVATION_GELU] = { ACT_GELU, false },
        [TFM_ACTIVATION_GELU_TANH] = { ACT_GELU_TANH, false }, [TFM_ACTIVATION_SWISH] = { ACT_SWISH, false },
        [TFM_ACTIVATION_SWIGLU] = { ACT_SWISH, true },         [TFM_ACTIVATION_GEGLU] = { ACT_GELU, true },
    };
    return list[name];
}

int activation_width(enum tfm_activation name)
{
    return activation_of(name).is_gated ? 2 : 1;
}

void activation_forward(real *y, const real *x, const struct activation *activation, int n, int f,
                        const struct run *run)
{
    size_t width = (size_t)f;
    if (!activation->is_gated) {
        run->kern->act(y, x, (size_t)n * width, activation->act);
        return;
    }
    for (int i = 0; i < n; i++, x += 2 * width, y += width) {
        run->kern->act(y, x, width, activation->act);
        run->kern->multiply(y, x + width, width);
    }
}

void activation_backward(real *dx, const real *dy, const real *x, const struct activation *activation, int n,
                         int f, const struct run *run)
{
    size_t width = (size_t)f;
    if (!activation->is_gated) {
        if (dx != dy)
            memcpy(dx, dy, sizeof(real) * (size_t)n * width);
        run->kern->act_backward(dx, x, (size_t)n * width, activation->act);
        return;
    }
    for (int i = 0; i < n; i++, x += 2 * width, dx += 2 * width, dy += width) {
        memcpy(dx, dy, sizeof(real) * width);
        run->kern->multiply(dx, x + width, width);
        run->kern->act_backward(dx, x, width, activation->act);
        run->kern->act(dx + width, x, width, activation->act);
        run->kern->multiply(dx + width, dy, width);
    }
}
