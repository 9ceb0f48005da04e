/*
 * trainer_test.c: a small training through tfm_train: the events that a caller gets, the options that are
 * refused, the stop flag, and that every allocation of a training with validation may fail without harm.
 */
#include "base/mem.h"
#include "toy_vocab.h"

struct seen {
    int n[TFM_EVENT_SAVED + 1];
    double loss;
    long last_update;
    bool in_order;
    volatile int *stop; /* set at the first progress report */
};

static struct tfm_error err;
static struct tfm_corpus corpora[2];

static void see(void *user, const struct tfm_train_event *event)
{
    struct seen *seen = user;
    seen->n[event->kind]++;
    if (event->kind == TFM_EVENT_NOTE)
        return;
    seen->in_order = seen->in_order && event->update >= seen->last_update;
    seen->last_update = event->update;
    if (event->kind == TFM_EVENT_PROGRESS)
        seen->loss = event->loss;
    if (event->kind == TFM_EVENT_PROGRESS && seen->stop != NULL)
        *seen->stop = 15;
}

static struct tfm_train_options mini(const char *folder, struct seen *seen)
{
    struct tfm_train_options o;
    tfm_train_options_init(&o);
    *seen = (struct seen){ .in_order = true };
    o.model = check_path("%s", folder);
    corpora[0] = (struct tfm_corpus){ .source = toy_file("en", 60, 1), .target = toy_file("de", 60, 2) };
    o.corpora = corpora;
    o.n_corpora = 1;
    o.valid_source = toy_file("ven", 6, 3);
    o.valid_target = toy_file("vde", 6, 4);
    o.source_vocab = o.target_vocab = check_path("toy.spm");
    o.encoder_layers = o.decoder_layers = 1;
    o.dim_model = 16;
    o.dim_ffn = 16;
    o.heads = 2;
    o.mini_batch_words = 100;
    o.disp_freq.amount = 2;
    o.valid_freq.amount = 3;
    o.save_freq.amount = 4;
    o.after = (struct tfm_interval){ 6, TFM_UPDATES };
    o.threads = 2;
    o.event = see;
    o.user = seen;
    return o;
}

/* The same for an encoder alone. */
static struct tfm_train_options text_options(struct seen *seen)
{
    struct tfm_train_options o = mini("text", seen);
    o.arch = TFM_ARCH_ENCODER;
    corpora[0].target = NULL;
    o.valid_target = NULL;
    o.decoder_layers = 0;
    return o;
}

static void test_text(void)
{
    struct seen seen;
    struct tfm_train_options o = text_options(&seen);
    toy_must(tfm_train(&o, &err), &err);
    CHECK_INT(seen.n[TFM_EVENT_VALID], 4, "accuracy and cross-entropy every 3 updates");
    CHECK(seen.loss > 1 && seen.loss < 8, "a sensible loss: %g", seen.loss);
    o.mask_rate = 0;
    CHECK_INT(tfm_train(&o, &err), TFM_EINVAL, "nothing masked is refused: %s", err.message);
}

static void test_events(void)
{
    struct seen seen;
    struct tfm_train_options o = mini("events", &seen);
    toy_must(tfm_train(&o, &err), &err);
    CHECK_INT(seen.n[TFM_EVENT_PROGRESS], 3, "progress every 2 of 6 updates");
    CHECK_INT(seen.n[TFM_EVENT_VALID], 4, "two metrics every 3 updates");
    CHECK(seen.n[TFM_EVENT_SAVED] >= 2, "saved at update 4 and at the end");
    CHECK(seen.in_order, "in order");
    CHECK(seen.loss > 1 && seen.loss < 8, "a sensible loss: %g", seen.loss);
    struct tfm_model *model;
    toy_must(tfm_model_open(&model, o.model, &err), &err);
    CHECK(true, "the folder is a model");
    tfm_model_free(model);
}

static void test_stop(void)
{
    struct seen seen;
    volatile int stop = 2;
    struct tfm_train_options o = mini("stopped", &seen);
    o.stop = &stop;
    CHECK_INT(tfm_train(&o, &err), TFM_ESTOPPED, "stopped before it began");
    CHECK_INT(seen.n[TFM_EVENT_PROGRESS] + seen.n[TFM_EVENT_SAVED], 0, "nothing was done");
    stop = 0;
    seen.stop = &stop;
    CHECK_INT(tfm_train(&o, &err), TFM_ESTOPPED, "stopped on the way");
    CHECK_INT(seen.last_update, 2, "after the running update");
    CHECK_INT(seen.n[TFM_EVENT_SAVED], 1, "saved");
    stop = 0;
    seen.stop = NULL;
    CHECK_INT(tfm_train(&o, &err), TFM_OK, "it goes on to its end: %s", err.message);
    CHECK_INT(seen.last_update, 6, "six updates in all");
}

static void test_refused(void)
{
    struct seen seen;
    struct tfm_train_options o = mini("refused", &seen), bad;
#define REFUSED(name, ...)                              \
    bad = o;                                            \
    __VA_ARGS__;                                        \
    CHECK_INT(tfm_train(&bad, &err), TFM_EINVAL, name); \
    check_note("%s", err.message)
    REFUSED("no folder", bad.model = NULL);
    struct tfm_corpus corpus = corpora[0];
    REFUSED("no corpus", bad.n_corpora = 0);
    REFUSED("one side", bad.corpora = &corpus; corpus.target = NULL);
    REFUSED("no side", corpus.source = NULL; bad.corpora = &corpus);
    REFUSED("two files and one", corpus = corpora[0]; corpus.tsv = "x"; bad.corpora = &corpus);
    REFUSED("a negative weight", corpus = corpora[0]; corpus.weight = -1; bad.corpora = &corpus);
    REFUSED("a weight that is no number", corpus.weight = NAN; bad.corpora = &corpus);
    REFUSED("one column", bad.source_field = 1);
    REFUSED("standard input twice", corpus = (struct tfm_corpus){ .tsv = "-" }; bad.corpora = &corpus;
            bad.valid_source = "-");
    REFUSED("a ratio below 1", bad.max_length_ratio = 0.5);
    REFUSED("no window", bad.shuffle_window = 0);
    REFUSED("one side to validate on", bad.valid_target = NULL);
    REFUSED("an unknown preset", bad.preset = "huge");
    REFUSED("an unknown metric", bad.valid_metrics = "ce,ter");
    REFUSED("a metric twice", bad.valid_metrics = "ce,ce");
    REFUSED("no metric", bad.valid_metrics = "");
    REFUSED("an unknown kind of vocabulary", bad.vocab_type = "char");
    REFUSED("a negative learning rate", bad.learn_rate = -1);
    REFUSED("no words a batch", bad.mini_batch_words = -1);
    REFUSED("heads that do not divide the width", bad.heads = 3);
    REFUSED("an odd width", bad.dim_model = 33);
    REFUSED("too many layers", bad.encoder_layers = 65);
    REFUSED("a negative depth", bad.decoder_layers = -1);
    CHECK(!file_exists(o.model), "and no folder is made");
}

/* Three updates into folders of a name. */
static void test_memory(const char *name, struct tfm_train_options o)
{
    o.after.amount = 3;
    int n_failed = 0, step = 1;
    enum tfm_status status = TFM_ENOMEM;
    bool told = true;
    for (int n = 0; told && status != TFM_OK; n += step) {
        char folder[700]; /* a fresh one: what failed late may go on where it failed */
        snprintf(folder, sizeof(folder), "%s/%s-%d", check_tmp(), name, n);
        o.model = folder;
        mem_fail_after(n);
        status = tfm_train(&o, &err);
        mem_fail_after(-1);
        told = status == TFM_OK || status == TFM_ENOMEM;
        n_failed += status != TFM_OK;
        step = n / 40 + 1;
    }
    CHECK(told && n_failed > 20, "%s: allocations may fail, %d tried: %s", name, n_failed,
          told ? "" : err.message);
}

int main(void)
{
    spm_free(toy_vocab());
    test_events();
    test_stop();
    test_refused();
    test_text();
    struct seen seen;
    struct tfm_train_options o = mini("memory", &seen);
    test_memory("pairs", o);
    o.pretrained = check_path("events");
    o.source_vocab = o.target_vocab = NULL;
    test_memory("pretrained", o);
    test_memory("text", text_options(&seen));
    return check_done();
}
