/*
 * api_test.c: the library as a program sees it, through tfm.h alone: version, choice of kernels, a small
 * training that validates with translations, the model it leaves, and messages where something is missing.
 */
#include <tfm.h>

#include "check.h"

static char folder[600];

static void test_version(void)
{
    CHECK_STR(tfm_version(), TFM_VERSION, "library and header agree");
}

static void test_cpu(void)
{
    struct tfm_error err;
    CHECK(tfm_set_cpu("ref", &err) == TFM_OK, "the plain kernels can be had anywhere");
    CHECK_STR(tfm_cpu(), "ref", "and are then in use");
    CHECK(tfm_set_cpu("z80", &err) == TFM_EINVAL && strstr(err.message, "z80") != NULL,
          "an unknown tier is refused by name");
    CHECK_STR(tfm_cpu(), "ref", "and changes nothing");
    CHECK(tfm_set_cpu("auto", &err) == TFM_OK, "back to the best");
}

/* ---- training ---- */

struct log { /* what a training told */
    int progress, valid, saved;
    bool has_bleu;
};

static void note_event(void *user, const struct tfm_train_event *event)
{
    struct log *log = user;
    log->progress += event->kind == TFM_EVENT_PROGRESS;
    log->saved += event->kind == TFM_EVENT_SAVED;
    if (event->kind == TFM_EVENT_VALID) {
        log->valid++;
        log->has_bleu |= strcmp(event->metric, "bleu") == 0;
    }
}

static void write_corpus(const char *path, int n)
{
    static const char *const words[][2] = { { "red", "rot" },   { "car", "Auto" },   { "green", "grün" },
                                            { "tree", "Baum" }, { "house", "Haus" }, { "old", "alt" },
                                            { "big", "groß" },  { "dog", "Hund" } };
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        for (int side = 0; side < 2; side++)
            fprintf(file, "%s %s %s.%s", words[i % 8][side], words[i / 8 % 8][side], words[i / 3 % 8][side],
                    side == 0 ? "\t" : "\n");
    }
    fclose(file);
}

static bool train(const char *model, const char *tsv, struct log *log, struct tfm_error *err)
{
    struct tfm_train_options o;
    tfm_train_options_init(&o);
    o.model = model;
    struct tfm_corpus corpus = { .tsv = tsv };
    o.corpora = &corpus;
    o.n_corpora = 1;
    o.valid_tsv = tsv;
    o.vocab_size = 60;
    o.encoder_layers = o.decoder_layers = 1;
    o.dim_model = 16;
    o.dim_ffn = 32;
    o.heads = 2;
    o.mini_batch_words = 200;
    o.after = (struct tfm_interval){ 4, TFM_UPDATES };
    o.valid_freq = o.save_freq = (struct tfm_interval){ 4, TFM_UPDATES };
    o.disp_freq = (struct tfm_interval){ 1, TFM_UPDATES };
    o.threads = 2;
    o.event = note_event;
    o.user = log;
    return tfm_train(&o, err) == TFM_OK;
}

static void test_training(void)
{
    char tsv[640];
    snprintf(tsv, sizeof(tsv), "%s/corpus.tsv", check_tmp());
    snprintf(folder, sizeof(folder), "%s/model", check_tmp());
    write_corpus(tsv, 60);
    struct log log = { 0 };
    struct tfm_error err = { 0 };
    if (!CHECK(train(folder, tsv, &log, &err), "a model is trained"))
        check_note("%s", err.message);
    CHECK_INT(log.progress, 4, "it told of each update");
    CHECK(log.valid == 2 && log.has_bleu, "it validated with translations");
    CHECK(log.saved >= 1, "it saved");

    struct log refused = { 0 };
    snprintf(tsv, sizeof(tsv), "%s/missing.tsv", check_tmp());
    CHECK(!train(folder, tsv, &refused, &err) && strstr(err.message, "missing.tsv") != NULL,
          "a missing corpus is named");
}

/* ---- translation ---- */

static void test_translation(void)
{
    static const char *const lines[] = { "red car house.", "", "big green tree." };
    struct tfm_error err = { 0 };
    struct tfm_model *model = NULL;
    struct tfm_translator *translator = NULL;
    struct tfm_translate_options options;
    const struct tfm_translation *result;
    tfm_translate_options_init(&options);
    if (!CHECK(tfm_model_open(&model, folder, &err) == TFM_OK, "the trained model opens") ||
        !CHECK(tfm_translator_new(&translator, model, &options, &err) == TFM_OK, "it gives a translator") ||
        !CHECK(tfm_translate(translator, lines, 3, &result, &err) == TFM_OK, "which translates"))
        check_note("%s", err.message);
    else
        CHECK(result[0].n_hypotheses == 1 && result[0].hypotheses[0].n_pieces > 0 &&
                  strcmp(result[1].hypotheses[0].text, "") == 0 && result[2].hypotheses[0].score < 0,
              "line by line");
    tfm_translator_free(translator);
    tfm_model_free(model);

    tfm_translator_free(NULL);
    tfm_model_free(NULL);
    CHECK(tfm_model_open(&model, "/no/such/folder", &err) != TFM_OK && model == NULL &&
              strstr(err.message, "/no/such/folder") != NULL,
          "a missing model is named");
}

int main(void)
{
    test_version();
    test_cpu();
    test_training();
    test_translation();
    return check_done();
}
