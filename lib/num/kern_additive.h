/*
 * kern_additive.h: the kernels of additive attention's scores, once for all tiers; part of kern_body.h. Keys lie
 * transposed, so that lanes are keys and each score is one chain of fma over the columns, whatever else is
 * computed beside it.
 */

static void body_additive(real *y, const real *q, const real *kt, int ldk, const real *v, int n, int d)
{
    FOR_VECTORS(n)
    {
        V sum = V_set(0);
        for (int c = 0; c < d; c++) {
            V t = V_tanh(V_add(V_set(q[c]), V_load_n(kt + (size_t)c * ldk + j, n_)));
            sum = V_fma(V_set(v[c]), t, sum);
        }
        V_store_n(y + j, sum, n_);
    }
}

/* With t = tanh(q_c + k_c): dv_c += sum(dy t), and what q_c and k_c get is dy v_c (1 - t^2). Lanes behind the last
 * key have dy = 0. */
static void body_additive_backward(real *dq, real *dkt, real *dv, const real *dy, const real *q,
                                   const real *kt, int ldk, const real *v, int n, int d)
{
    V one = V_set(1);
    for (int c = 0; c < d; c++) {
        V sum_q = V_set(0), sum_v = V_set(0);
        real *dk = dkt + (size_t)c * ldk;
        FOR_VECTORS(n)
        {
            V up = V_load_n(dy + j, n_);
            V t = V_tanh(V_add(V_set(q[c]), V_load_n(kt + (size_t)c * ldk + j, n_)));
            V g = V_mul(V_mul(up, V_set(v[c])), V_sub(one, V_mul(t, t)));
            sum_v = V_fma(up, t, sum_v);
            sum_q = V_add(sum_q, g);
            V_store_n(dk + j, V_add(V_load_n(dk + j, n_), g), n_);
        }
        dq[c] = V_sum(sum_q);
        dv[c] += V_sum(sum_v);
    }
}
