/*
 * checkpoint_test.c: what is written is read again, digit for digit; links name what is kept and the rest
 * goes; settings that changed, foreign files, half-written folders and a second training are noticed.
 */
#include "train/checkpoint.h"

#include <unistd.h>

#include "base/file.h"
#include "check.h"

static struct tfm_error err;
static struct params params;
static struct config config;

static void must(enum tfm_status status)
{
    if (status == TFM_OK)
        return;
    CHECK_STR(err.message, "", "a step that must work");
    exit(check_done());
}

static const char *path_of(const char *name)
{
    return check_path("model/checkpoints/%s", name);
}

static const char *model_folder(void)
{
    static char path[700];
    snprintf(path, sizeof(path), "%s/model", check_tmp());
    return path;
}

static void fill(struct optimizer *o, real by)
{
    real *blocks[] = { o->weights, o->average, o->moment1, o->moment2 };
    for (int b = 0; b < 4; b++) {
        for (size_t i = 0; i < o->size; i++)
            blocks[b][i] = by * (real)(b + 1) / (real)(i + 3);
    }
}

static bool same_blocks(const struct optimizer *a, const struct optimizer *b)
{
    size_t size = a->size * sizeof(real);
    return memcmp(a->weights, b->weights, size) == 0 && memcmp(a->average, b->average, size) == 0 &&
           memcmp(a->moment1, b->moment1, size) == 0 && memcmp(a->moment2, b->moment2, size) == 0;
}

static struct train_state make_state(long update)
{
    struct train_state s = { .update = update,
                             .epoch = 3,
                             .window = 2,
                             .batch = 17,
                             .epoch_pairs = 3000000000,
                             .tally = { 3000000001, 2, 3, 4, 5, 6 },
                             .target_tokens = 123456789,
                             .n_lanes = 5,
                             .loss_sum = 1234.5678901234567,
                             .loss_tokens = 333,
                             .valid_is_due = true,
                             .has_average = true,
                             .is_ended = true,
                             .seconds = 0.1 };
    s.scores[METRIC_BLEU] = (struct score){ true, 1.0 / 3, 4 };
    s.terms.n = 2;
    s.terms.list[0] = (struct head_term){ "encoder.0.1:entropy", { 1.0 / 7, 30 } };
    s.terms.list[1] = (struct head_term){ "cross.1.*:sparsity", { -2.5, 0 } };
    return s;
}

static bool same_state(const struct train_state *a, const struct train_state *b)
{
    bool same = a->update == b->update && a->epoch == b->epoch && a->batch == b->batch &&
                a->target_tokens == b->target_tokens && a->n_lanes == b->n_lanes &&
                a->loss_sum == b->loss_sum && a->loss_tokens == b->loss_tokens &&
                a->valid_is_due == b->valid_is_due && a->has_average == b->has_average &&
                a->is_ended == b->is_ended && a->seconds == b->seconds && a->window == b->window &&
                a->epoch_pairs == b->epoch_pairs && memcmp(&a->tally, &b->tally, sizeof(a->tally)) == 0;
    same = same && a->terms.n == b->terms.n;
    for (int i = 0; same && i < a->terms.n; i++)
        same = strcmp(a->terms.list[i].name, b->terms.list[i].name) == 0 &&
               a->terms.list[i].sum.value == b->terms.list[i].sum.value &&
               a->terms.list[i].sum.rows == b->terms.list[i].sum.rows;
    for (int m = 0; m < N_METRICS; m++)
        same = same && a->scores[m].has_best == b->scores[m].has_best &&
               a->scores[m].best == b->scores[m].best && a->scores[m].stalled == b->scores[m].stalled;
    return same;
}

static void write_last(const struct checkpoints *c, const struct train_state *state,
                       const struct settings *settings, const struct optimizer *o)
{
    must(checkpoint_write(c, state, settings, &params, o, NULL, &err));
    must(checkpoint_link(c, "last", state->update, &err));
    must(checkpoint_prune(c, 1, &err));
}

static void test_round_trip(struct optimizer *a, struct optimizer *b)
{
    struct checkpoints c;
    struct settings settings = { 0 }, other = { 0 };
    struct train_state state = make_state(12), found;
    state_set(&settings, "--seed", "%d", 1);
    state_set(&settings, "--heads", "%d", 4);
    state_set(&other, "--seed", "%d", 2);
    fill(a, 0.7f);
    must(checkpoint_init(&c, model_folder(), &err));
    CHECK(!checkpoint_exists(&c, "last"), "a new folder has no checkpoint");
    must(checkpoint_write(&c, &state, &settings, &params, a, NULL, &err));
    CHECK(!checkpoint_exists(&c, "last"), "one without a name");
    must(checkpoint_link(&c, "last", state.update, &err));
    CHECK(checkpoint_exists(&c, "last"), "now it has one");
    must(checkpoint_read_state(&c, "last", &found, &settings, &err));
    CHECK(same_state(&state, &found), "the state is read as it was written");
    must(checkpoint_read_blocks(&c, "last", &found, &params, b, NULL, &err));
    CHECK(same_blocks(a, b), "and so are the blocks");

    CHECK_INT(checkpoint_read_state(&c, "last", &found, &other, &err), TFM_EINVAL, "a changed setting");
    CHECK(strstr(err.message, "--seed 1") && strstr(err.message, "is 2"), "is told: %s", err.message);
    state_set(&other, "--norm-position", "%s", "post");
    snprintf(other.list[0].value, sizeof(other.list[0].value), "1");
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &other, &err), TFM_EFORMAT,
              "a setting that is not there");
    other.list[other.n - 1].is_late = true;
    must(checkpoint_read_state(&c, "last", &found, &other, &err));
    CHECK(same_state(&state, &found), "but for one that there was not always");
    snprintf(other.list[0].value, sizeof(other.list[0].value), "2");
    other.list[0].is_late = true;
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &other, &err), TFM_EINVAL,
              "which is compared if it is there");

    state.loss_sum = 1;
    state.valid_is_due = false;
    must(checkpoint_rewrite(&c, &state, &settings, &err));
    must(checkpoint_read_state(&c, "last", &found, &settings, &err));
    CHECK(same_state(&state, &found), "the state alone is written anew");

    struct checkpoints second;
    CHECK_INT(checkpoint_init(&second, model_folder(), &err), TFM_EIO, "a second training in the folder");
    CHECK(strstr(err.message, "another training") != NULL, "is told: %s", err.message);
    checkpoint_release(&c);
}

static void test_links(struct optimizer *o)
{
    struct checkpoints c;
    struct settings settings = { 0 };
    struct train_state state = make_state(20);
    must(checkpoint_init(&c, model_folder(), &err));
    write_last(&c, &state, &settings, o);
    CHECK(!file_exists(path_of("checkpoint-12")), "what no link names is removed");
    must(checkpoint_link(&c, "best-ce", 20, &err));
    state.update = 30;
    write_last(&c, &state, &settings, o);
    must(checkpoint_link(&c, "best-bleu", 30, &err));
    state.update = 40;
    write_last(&c, &state, &settings, o);
    CHECK(file_exists(path_of("checkpoint-20/weights.safetensors")), "the best by cross-entropy is kept");
    CHECK(file_exists(path_of("checkpoint-30/weights.safetensors")), "the best by BLEU is kept");
    must(checkpoint_link(&c, "best-ce", 40, &err));
    must(checkpoint_prune(&c, 1, &err));
    CHECK(!file_exists(path_of("checkpoint-20")), "until there is a better one");
    struct train_state found;
    must(checkpoint_read_state(&c, "best-bleu", &found, &settings, &err));
    CHECK_INT(found.update, 30, "a link names its own");
    checkpoint_release(&c);
}

static bool has_checkpoint(int update)
{
    return file_exists(check_path("model/checkpoints/checkpoint-%d/state.json", update));
}

static void test_newest(struct optimizer *o)
{
    struct checkpoints c;
    struct settings settings = { 0 };
    must(checkpoint_init(&c, model_folder(), &err));
    for (int update = 60; update <= 120; update += 20) { /* 100 has a digit more than 80 */
        struct train_state state = make_state(update);
        must(checkpoint_write(&c, &state, &settings, &params, o, NULL, &err));
        must(checkpoint_link(&c, "last", update, &err));
        must(checkpoint_prune(&c, 3, &err));
    }
    CHECK(!has_checkpoint(60) && has_checkpoint(80) && has_checkpoint(100) && has_checkpoint(120),
          "the newest three by number are kept");
    CHECK(has_checkpoint(30) && has_checkpoint(40), "and the best");
    must(checkpoint_link(&c, "last", 100, &err));
    must(checkpoint_prune(&c, 2, &err));
    CHECK(!has_checkpoint(120), "one that is later than the last is not");
    CHECK(has_checkpoint(80) && has_checkpoint(100), "and does not count");
    must(checkpoint_prune(&c, 50, &err));
    CHECK(has_checkpoint(80) && has_checkpoint(100) && has_checkpoint(30), "more than there are: all stay");
    must(checkpoint_link(&c, "last", 40, &err));
    must(checkpoint_prune(&c, 1, &err));
    CHECK(!has_checkpoint(80) && !has_checkpoint(100) && has_checkpoint(40), "one again");

    struct train_state state = make_state(130);
    must(dir_make(path_of("checkpoint-40-mine"), &err));
    must(dir_make(path_of("checkpoint-40.old-123"), &err));
    must(checkpoint_prune(&c, 1, &err));
    CHECK(file_exists(path_of("checkpoint-40-mine")), "a folder of the user's stays");
    CHECK(!file_exists(path_of("checkpoint-40.old-123")), "one that was replaced does not");
    must(file_write(path_of(".checkpoint-130.tmp"), "x", 1, &err));
    CHECK_INT(checkpoint_write(&c, &state, &settings, &params, o, NULL, &err), TFM_EIO,
              "no room for its name");
    CHECK(strstr(err.message, "/.checkpoint-130.tmp") != NULL, "checkpoint-* names no half-written one: %s",
          err.message);
    checkpoint_release(&c);
}

static void test_damage(struct optimizer *o)
{
    struct checkpoints c;
    struct settings settings = { 0 };
    struct train_state found;
    must(dir_make(path_of(".checkpoint-50.tmp"), &err));
    must(file_write(path_of(".checkpoint-50.tmp/weights.safetensors"), "x", 1, &err));
    must(dir_make(path_of("other"), &err));
    must(checkpoint_init(&c, model_folder(), &err));
    CHECK(!file_exists(path_of(".checkpoint-50.tmp")), "what was half-written is removed");
    CHECK(file_exists(path_of("other")), "foreign things stay");

    struct train_state unaveraged = { .has_average = false };
    found = (struct train_state){ .has_average = true };
    unlink(path_of("checkpoint-40/ema.safetensors"));
    CHECK_INT(checkpoint_read_blocks(&c, "last", &found, &params, o, NULL, &err), TFM_EIO,
              "a lost running mean");
    CHECK(strstr(err.message, "ema.safetensors") != NULL, "is named: %s", err.message);
    must(checkpoint_read_blocks(&c, "last", &unaveraged, &params, o, NULL, &err));
    CHECK(memcmp(o->average, o->weights, o->size * sizeof(real)) == 0, "where there was none it begins");
    must(file_write(path_of("checkpoint-40/moment2.safetensors"), "\3\0\0\0\0\0\0\0{}", 10, &err));
    CHECK_INT(checkpoint_read_blocks(&c, "last", &found, &params, o, NULL, &err), TFM_EFORMAT,
              "damaged tensors");
    CHECK(strstr(err.message, "moment2.safetensors") != NULL, "are named: %s", err.message);
    must(file_write(path_of("checkpoint-40/state.json"), "{\"format_version\": 1}", 21, &err));
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &settings, &err), TFM_EFORMAT,
              "a state of another version");
    state_set(&settings, "--seed", "%d", 1);
    must(file_write(path_of("checkpoint-40/state.json"), "{\"format_version\": 2}", 21, &err));
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &settings, &err), TFM_EFORMAT,
              "a state without its fields");
    CHECK(strstr(err.message, "\"--seed\"") != NULL, "is told: %s", err.message);
    must(file_write(path_of("checkpoint-40/state.json"), "{\"format_version\": 99}", 22, &err));
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &settings, &err), TFM_EFORMAT,
              "a state from the future");
    CHECK(strstr(err.message, "newer tfm") != NULL, "is told: %s", err.message);
    must(dir_remove(path_of("checkpoint-40"), &err));
    CHECK_INT(checkpoint_read_state(&c, "last", &found, &settings, &err), TFM_EIO,
              "a link that names nothing");
    checkpoint_release(&c);
}

int main(void)
{
    struct optimizer a, b;
    config_preset(&config, "tiny");
    config.encoder_layers = config.decoder_layers = 1;
    config.d_model = 8;
    config.ffn_dim = 8;
    config.heads = 2;
    config.source_vocab_size = config.vocab_size = 20;
    must(params_list(&params, &config, &err));
    must(optimizer_init(&a, params.size, true, &err));
    must(optimizer_init(&b, params.size, true, &err));
    test_round_trip(&a, &b);
    test_links(&a);
    test_newest(&a);
    test_damage(&b);
    optimizer_release(&a);
    optimizer_release(&b);
    params_release(&params);
    return check_done();
}
