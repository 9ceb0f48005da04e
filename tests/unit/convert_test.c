/*
 * convert_test.c: tfm_convert: the mean of models bit for bit, in any number; that a stop leaves nothing; and
 * that every allocation may fail without harm.
 */
#include "tiny_model.h"

enum {
    N_MODELS = 3
};

static struct tfm_error err;
static struct tfm_model *models[N_MODELS];
static const char *names[N_MODELS];

static struct tfm_convert_options make_options(size_t n, const char *output)
{
    struct tfm_convert_options o;
    tfm_convert_options_init(&o);
    o.inputs = names;
    o.n_inputs = n;
    o.output = output;
    o.average = true;
    return o;
}

static void test_mean(size_t n)
{
    const char *output = check_path("mean-%zu", n);
    struct tfm_convert_options o = make_options(n, output);
    struct tfm_model *mean = NULL;
    CHECK_INT(tfm_convert(&o, &err), TFM_OK, "the mean of %zu models", n);
    if (tfm_model_open(&mean, output, &err) != TFM_OK) {
        CHECK_STR(err.message, "", "it is a model");
        return;
    }
    size_t n_wrong = 0, size = mean->params.size;
    real *found = tiny_values(mean);
    double *sum = mem_alloc(size * sizeof(*sum), &err);
    for (size_t i = 0; i < n; i++) {
        real *values = tiny_values(models[i]);
        for (size_t j = 0; j < size; j++)
            sum[j] += (double)values[j];
        mem_free(values);
    }
    for (size_t j = 0; j < size; j++)
        n_wrong += found[j] != (float)(sum[j] / (double)n);
    mem_free(found);
    mem_free(sum);
    CHECK_INT((long)n_wrong, 0, "of %zu: all of %zu weights", n, mean->params.size);
    CHECK_INT(mean->type, TENSOR_F32, "in the precision of the models");
    tfm_model_free(mean);
}

static void test_copies(void)
{
    static char copies[N_MODELS][700];
    const char *before[N_MODELS];
    memcpy(before, names, sizeof(names));
    for (int i = 0; i < N_MODELS; i++) {
        snprintf(copies[i], sizeof(copies[i]), "%s", check_path("copy-%d", i));
        struct tfm_convert_options o = make_options(1, copies[i]);
        CHECK_INT(tfm_convert(&o, &err), TFM_OK, "copy %d", i);
    }
    for (int i = 0; i < N_MODELS; i++)
        names[i] = copies[i];
    const char *output = check_path("of-copies");
    struct tfm_convert_options o = make_options(N_MODELS, output);
    CHECK_INT(tfm_convert(&o, &err), TFM_OK, "the mean of copies");
    char a[800], b[800];
    snprintf(a, sizeof(a), "%s/weights.safetensors.gz", output);
    snprintf(b, sizeof(b), "%s/weights.safetensors.gz", before[0]);
    CHECK(check_same_files(a, b), "is what they are copies of, byte for byte");
    memcpy(names, before, sizeof(names));
}

static void test_stop(void)
{
    const char *output = check_path("stopped");
    struct tfm_convert_options o = make_options(2, output);
    volatile const int stop = 1;
    o.stop = &stop;
    CHECK_INT(tfm_convert(&o, &err), TFM_ESTOPPED, "a stop");
    CHECK(!file_exists(output), "nothing is written: %s", err.message);
}

static void test_refused(void)
{
    struct tfm_convert_options o = make_options(0, check_path("refused"));
    CHECK_INT(tfm_convert(&o, &err), TFM_EINVAL, "no model");
    o = make_options(1, NULL);
    CHECK_INT(tfm_convert(&o, &err), TFM_EINVAL, "no output");
    o = make_options(2, check_path("refused"));
    o.average = false;
    CHECK_INT(tfm_convert(&o, &err), TFM_EINVAL, "two that are not averaged");
}

static void test_memory(void)
{
    const char *output = check_path("memory");
    struct tfm_convert_options o = make_options(2, output);
    o.force = true; /* what fails last, fails when the folder has its name */
    int n_failed = 0;
    enum tfm_status status = TFM_ENOMEM;
    for (int n = 0; status == TFM_ENOMEM; n++) {
        mem_fail_after(n);
        status = tfm_convert(&o, &err);
        mem_fail_after(-1);
        n_failed += status != TFM_OK;
    }
    CHECK(status == TFM_OK && n_failed > 20, "%d allocations may fail: %s", n_failed,
          status == TFM_OK ? "" : err.message);
}

int main(void)
{
    static const char *const folders[N_MODELS] = { "one", "two", "three" };
    for (int i = 0; i < N_MODELS; i++) {
        struct tiny_options options = { .seed = (uint64_t)i + 1 };
        models[i] = tiny_open(folders[i], &options);
        names[i] = models[i]->folder;
    }
    for (size_t n = 1; n <= N_MODELS; n++)
        test_mean(n);
    test_copies();
    test_stop();
    test_refused();
    test_memory();
    for (int i = 0; i < N_MODELS; i++)
        tfm_model_free(models[i]);
    return check_done();
}
