/*
 * kern_act.h: the activation functions and their derivatives, once, over each tier's vector V; kern_body.h includes
 * it. With s(z) = 1 / (1 + exp(-z)), the sigmoid:
 *     swish(x) = x s(x)     gelu(x) = x Phi(x)     its approximation by tanh: x s(2u), for (1 + tanh(u)) / 2 = s(2u),
 *     u = sqrt(2 / pi) (x + 0.044715 x^3)
 * (Ramachandran et al. 2017; Hendrycks and Gimpel 2016). Each rests on V_exp and operations in the order that stands
 * here, so that all tiers give the same bits; a NaN stays one, and what is far out meets no infinity.
 */

static inline V V_clamp(V x, real limit)
{
    return V_min(V_max(x, V_set(-limit)), V_set(limit));
}

/* exp(-z) */
static inline V V_decay(V z)
{
    return V_exp(V_sub(V_set(0), z));
}

/* x s(z) */
static inline V V_times_sigmoid(V x, V z)
{
    return V_div(x, V_add(V_set(1), V_decay(z)));
}

static inline V V_sigmoid(V z)
{
    return V_times_sigmoid(V_set(1), z);
}

/* dy/dx of y = x s(z), with the slope dz/dx: s (1 + x (1 - s) dz/dx), where 1 - s is exp(-z) s without cancelling. */
static inline V V_times_sigmoid_slope(V x, V z, V slope)
{
    V e = V_decay(z), s = V_div(V_set(1), V_add(V_set(1), e));
    return V_mul(s, V_fma(V_mul(x, V_mul(e, s)), slope, V_set(1)));
}

/* ---- swish ---- */

static inline V V_swish(V x)
{
    return V_times_sigmoid(x, x);
}

static inline V V_swish_slope(V x)
{
    x = V_clamp(x, 80);
    return V_times_sigmoid_slope(x, x, V_set(1));
}

/* ---- GELU by tanh ---- */

#define GELU_SCALE ((real)1.5957691216057308) /* 2 sqrt(2 / pi) */
#define GELU_CUBE  ((real)0.044715)
#define GELU_FAR   10 /* from here on s(2u) is 0 or 1 */

/* 2u = scale * (x + cube * x^3), for x that is not far out */
static inline V V_gelu_inner(V x)
{
    V bent = V_fma(V_mul(x, x), V_set(GELU_CUBE), V_set(1));
    return V_mul(V_mul(x, V_set(GELU_SCALE)), bent);
}

static inline V V_gelu_tanh(V x)
{
    return V_times_sigmoid(x, V_gelu_inner(V_clamp(x, GELU_FAR)));
}

static inline V V_gelu_tanh_slope(V x)
{
    x = V_clamp(x, GELU_FAR);
    V slope = V_fma(V_mul(x, x), V_set(3 * GELU_CUBE), V_set(1));
    return V_times_sigmoid_slope(x, V_gelu_inner(x), V_mul(slope, V_set(GELU_SCALE)));
}

/* ---- GELU ---- */

static inline V V_abs(V x)
{
    return V_max(x, V_sub(V_set(0), x));
}

/* exp(-a^2 / 2) */
static inline V V_bell(V a)
{
    return V_exp(V_mul(V_mul(a, a), V_set((real)-0.5)));
}

/* Phi(-a) for a >= 0, with bell = exp(-a^2 / 2): bell times a polynomial in t = 1 / (1 + 0.3 a) without constant
 * term, fitted here for the least relative error, 1.5e-7 up to a = 14. In double: libm's. */
static inline V V_tail(V a, V bell)
{
#ifdef REAL_IS_DOUBLE
    (void)bell;
    LANES a.v[l] = 0.5 * erfc(a.v[l] * 0.70710678118654752);
    return a;
#else
    V t = V_div(V_set(1), V_fma(a, V_set(0.3f), V_set(1)));
    V p = V_set(0.0356747728f);
    p = V_fma(p, t, V_set(-0.157203077f));
    p = V_fma(p, t, V_set(0.206353496f));
    p = V_fma(p, t, V_set(-0.0536836357f));
    p = V_fma(p, t, V_set(0.128561623f));
    p = V_fma(p, t, V_set(0.0999134929f));
    p = V_fma(p, t, V_set(0.120753956f));
    p = V_fma(p, t, V_set(0.119629299f));
    return V_mul(V_mul(p, t), bell);
#endif
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), where nothing cancels. */
static inline V V_gelu(V x)
{
    V a = V_abs(x);
    V tail = V_tail(a, V_bell(a));
    return V_fma(V_sub(V_set(0), a), tail, V_max(V_set(0), x));
}

/* Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi). Phi(x) is the tail below 0 and what lacks to 1 above: step is 0 and 1 there,
 * and at 0, where it is neither for numbers next to it, both are 1/2. */
static inline V V_gelu_slope(V x)
{
    V a = V_abs(x), bell = V_bell(a), tail = V_tail(a, bell);
    V step = V_min(V_max(V_mul(x, V_set((real)1e38)), V_set(0)), V_set(1));
    V phi = V_fma(tail, V_fma(step, V_set(-2), V_set(1)), step);
    return V_fma(V_mul(x, V_set((real)0.39894228040143268)), bell, phi);
}

/* ---- over n elements; the functions are constants where these are called ---- */

static inline __attribute__((always_inline)) void each(real *y, const real *x, size_t n, V f(V))
{
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V_store_n(y + i, f(V_load_n(x + i, n_)), n_);
    }
}

static inline __attribute__((always_inline)) void each_slope(real *dx, const real *x, size_t n, V slope(V))
{
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V_store_n(dx + i, V_mul(V_load_n(dx + i, n_), slope(V_load_n(x + i, n_))), n_);
    }
}

static void body_act(real *y, const real *x, size_t n, enum kern_act act)
{
    switch (act) {
    case ACT_NONE:
        if (y != x)
            memcpy(y, x, n * sizeof(real));
        break;
    case ACT_RELU:
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] > 0 ? x[i] : 0;
        break;
    case ACT_GELU: each(y, x, n, V_gelu); break;
    case ACT_GELU_TANH: each(y, x, n, V_gelu_tanh); break;
    case ACT_SWISH: each(y, x, n, V_swish); break;
    }
}

static void body_act_backward(real *dx, const real *x, size_t n, enum kern_act act)
{
    switch (act) {
    case ACT_NONE: break;
    case ACT_RELU:
        for (size_t i = 0; i < n; i++)
            dx[i] = x[i] > 0 ? dx[i] : 0;
        break;
    case ACT_GELU: each_slope(dx, x, n, V_gelu_slope); break;
    case ACT_GELU_TANH: each_slope(dx, x, n, V_gelu_tanh_slope); break;
    case ACT_SWISH: each_slope(dx, x, n, V_swish_slope); break;
    }
}
