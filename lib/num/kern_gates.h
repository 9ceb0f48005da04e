/*
 * kern_gates.h: the kernels of recurrent networks beside kern_body.h's sigmoid and gate: tanh, and the
 * scores of additive attention (nn/additive.h), over each tier's vector V. kern_body.h includes it.
 *     tanh(x) = 2 / (1 + exp(-2x)) - 1 + (x - x)
 * is right to 2e-7 of 1; its end keeps what is not finite from passing for a number, as it would behind V_exp.
 * Every sum has the order that kern_body.h fixes, so all tiers give the same bits.
 */

static inline V V_tanh(V x)
{
    V one = V_set(1), two = V_set(2);
    V t = V_sub(V_div(two, V_add(one, V_exp(V_mul(x, V_set(-2))))), one);
    return V_add(t, V_sub(x, x));
}

static void body_gate_tanh(real *y, const real *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V_store_n(y + i, V_tanh(V_load_n(x + i, n_)), n_);
    }
}

static void body_gate_tanh_backward(real *dx, const real *y, size_t n)
{
    V one = V_set(1), zero = V_set(0);
    for (size_t i = 0; i < n; i += 16) {
        int n_ = n - i < 16 ? (int)(n - i) : 16;
        V t = V_load_n(y + i, n_);
        V_store_n(dx + i, V_mul(V_load_n(dx + i, n_), V_fma(V_sub(zero, t), t, one)), n_);
    }
}

static void body_additive(real *scores, const real *q, const real *keys, const real *v, int n_keys, int n)
{
    for (int k = 0; k < n_keys; k++, keys += n) {
        V sum = V_set(0);
        FOR_VECTORS(n)
        sum = V_fma(V_load_n(v + j, n_), V_tanh(V_add(V_load_n(q + j, n_), V_load_n(keys + j, n_))), sum);
        scores[k] = V_sum(sum);
    }
}

/* t = tanh(q + k): dv += dscore * t, and dscore * v * (1 - t^2) goes to both q and k. */
static void body_additive_backward(real *dq, real *dkeys, real *dv, const real *dscores, const real *q,
                                   const real *keys, const real *v, int n_keys, int n)
{
    V one = V_set(1), zero = V_set(0);
    for (int k = 0; k < n_keys; k++, keys += n, dkeys += n) {
        V up = V_set(dscores[k]);
        FOR_VECTORS(n)
        {
            V t = V_tanh(V_add(V_load_n(q + j, n_), V_load_n(keys + j, n_)));
            V d = V_mul(V_mul(up, V_load_n(v + j, n_)), V_fma(V_sub(zero, t), t, one));
            V_store_n(dv + j, V_fma(up, t, V_load_n(dv + j, n_)), n_);
            V_store_n(dq + j, V_add(V_load_n(dq + j, n_), d), n_);
            V_store_n(dkeys + j, V_add(V_load_n(dkeys + j, n_), d), n_);
        }
    }
}
