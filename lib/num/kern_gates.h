/*
 * kern_gates.h: the hyperbolic tangent beside kern_body.h's sigmoid and gate, over each tier's vector V, for
 * recurrent cells and additive attention. kern_body.h includes it.
 *     tanh(x) = 2 / (1 + exp(-2x)) - 1 + (x - x)
 * is right to 2e-7 of 1; its end keeps what is not finite from passing for a number, as it would behind V_exp.
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
