/*
 * optimizer_test.c: steps of Adam with decoupled weight decay against the formula in double (Loshchilov and
 * Hutter 2019, algorithm 2): for matrices, not for vectors, whatever the slices; without decay the digits are
 * those of a plain step.
 */
#include "train/optimizer.h"

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"

enum {
    N_STEPS = 5
};

static struct tfm_error err;
static struct params params;
static const double learn_rate = 0.01, scale = 0.5;

static void must(enum tfm_status status)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err.message, "", "a step that must work");
    exit(check_done());
}

static real gradient_of(int step, size_t i)
{
    return (real)rng_normal(rng_key(9, (uint64_t)step, i, 0));
}

/* N_STEPS updates of blocks that params_init fills. */
static void run(struct optimizer *o, double weight_decay, bool has_params)
{
    struct pool *pool;
    struct lane lane = { .gradient = mem_alloc(params.size * sizeof(real), &err) };
    struct lanes lanes = { .n = 1, .lane = &lane };
    const struct kern *kern = kern_for(cpu_best());
    must(pool_new(&pool, 2, &err));
    must(optimizer_init(o, params.size, false, &err));
    params_init(&params, o->weights, 3);
    for (int u = 1; u <= N_STEPS; u++) {
        for (size_t i = 0; i < params.size; i++)
            lane.gradient[i] = gradient_of(u, i);
        struct optimizer_step step = { .update = u,
                                       .learn_rate = learn_rate,
                                       .gradient_scale = scale,
                                       .weight_decay = weight_decay,
                                       .params = has_params ? &params : NULL };
        optimizer_apply(o, &lanes, &step, kern, pool);
    }
    mem_free(lane.gradient);
    pool_free(pool);
}

/* One weight after the same steps. */
static double expected(double w, size_t i, double decay)
{
    double m = 0, v = 0;
    for (int u = 1; u <= N_STEPS; u++) {
        double g = scale * (double)gradient_of(u, i);
        m = 0.9 * m + 0.1 * g;
        v = 0.98 * v + 0.02 * g * g;
        double step = learn_rate * sqrt(1 - pow(0.98, u)) / (1 - pow(0.9, u));
        w = w - step * m / (sqrt(v) + 1e-9) - learn_rate * decay * w;
    }
    return w;
}

static void test_formula(const real *first, double decay)
{
    struct optimizer o;
    double worst = 0;
    run(&o, decay, true);
    for (int p = 0; p < params.n; p++) {
        const struct param *param = &params.list[p];
        for (size_t i = param->offset; i < param->offset + params_count(param); i++) {
            double difference =
                (double)o.weights[i] - expected((double)first[i], i, param->is_vector ? 0 : decay);
            worst = check_worse(worst, fabs(difference));
        }
    }
    CHECK(worst < 1e-6, "decay %g: every weight is that of the formula, within %g", decay, worst);
    optimizer_release(&o);
}

int main(void)
{
    struct config config;
    config_preset(&config, "tiny");
    config.encoder_layers = config.decoder_layers = 1;
    config.d_model = 12;
    config.ffn_dim = 20;
    config.heads = 2;
    config.source_vocab_size = config.vocab_size = 33;
    must(params_list(&params, &config, &err));
    real *first = mem_alloc(params.size * sizeof(real), &err);
    params_init(&params, first, 3);
    test_formula(first, 0);
    test_formula(first, 0.1);
    test_formula(first, 5);

    struct optimizer with, without;
    run(&with, 0, true);
    run(&without, 0, false);
    CHECK(memcmp(with.weights, without.weights, params.size * sizeof(real)) == 0,
          "no decay, the same digits");
    optimizer_release(&with);
    run(&with, 0.1, true);
    const struct param *norm = params_find(&params, "model.encoder.layers.0.final_layer_norm.weight");
    const struct param *matrix = params_find(&params, "model.encoder.layers.0.fc1.weight");
    CHECK(memcmp(with.weights + norm->offset, without.weights + norm->offset,
                 params_count(norm) * sizeof(real)) == 0,
          "a norm does not decay");
    CHECK(memcmp(with.weights + matrix->offset, without.weights + matrix->offset,
                 params_count(matrix) * sizeof(real)) != 0,
          "a matrix does");
    optimizer_release(&with);
    optimizer_release(&without);
    mem_free(first);
    params_release(&params);
    return check_done();
}
