/*
 * schedule_test.c: when intervals fall due, in updates, epochs and tokens; ends; the learning rate's rise and
 * fall.
 */
#include "train/schedule.h"

#include "check.h"

static struct schedule_point at(long update, double epochs, double tokens)
{
    return (struct schedule_point){ update, epochs, tokens, (double)update / 10 };
}

static void test_intervals(void)
{
    struct tfm_interval every3 = { 3, TFM_UPDATES }, half_epoch = { 0.5, TFM_EPOCHS },
                        kilo = { 1000, TFM_TARGET_TOKENS }, never = { 0, TFM_UPDATES };
    int due[4] = { 0 };
    struct schedule_point before = at(0, 0, 0);
    for (long u = 1; u <= 12; u++) { /* four updates an epoch, 300 tokens each */
        struct schedule_point after = at(u, (double)u / 4, 300 * (double)u);
        due[0] += schedule_is_due(&every3, &before, &after);
        due[1] += schedule_is_due(&half_epoch, &before, &after);
        due[2] += schedule_is_due(&kilo, &before, &after);
        due[3] += schedule_is_due(&never, &before, &after);
        if (u == 2)
            CHECK(!schedule_is_due(&every3, &before, &after), "not due at update 2 of every 3");
        if (u == 3)
            CHECK(schedule_is_due(&every3, &before, &after), "due at update 3 of every 3");
        before = after;
    }
    CHECK_INT(due[0], 4, "every 3 of 12 updates");
    CHECK_INT(due[1], 6, "every half of 3 epochs");
    CHECK_INT(due[2], 3, "every 1000 of 3600 tokens");
    CHECK_INT(due[3], 0, "an interval of 0 is never due");
    struct schedule_point a = at(10, 1, 500), b = at(11, 1.1, 5500);
    CHECK(schedule_is_due(&kilo, &a, &b), "several multiples passed at once are due once");
}

static void test_ends(void)
{
    struct tfm_interval updates = { 40, TFM_UPDATES }, epochs = { 2, TFM_EPOCHS }, never = { 0, TFM_EPOCHS };
    struct schedule_point p = at(39, 2, 0), q = at(40, 1.999, 0);
    CHECK(!schedule_is_over(&updates, &p) && schedule_is_over(&updates, &q), "the end after 40 updates");
    CHECK(schedule_is_over(&epochs, &p) && !schedule_is_over(&epochs, &q), "the end after 2 epochs");
    CHECK(!schedule_is_over(&never, &p), "an end at 0 is none");
}

static double rate(enum tfm_decay decay, struct tfm_interval warmup, struct schedule_point point)
{
    struct tfm_train_options o = { .learn_rate = 0.002, .lr_warmup = warmup, .lr_decay = decay,
                                   .after = { 1000, TFM_UPDATES } };
    return schedule_learn_rate(&o, &point);
}

static void test_learn_rate(void)
{
    struct tfm_interval warmup = { 100, TFM_UPDATES }, by_tokens = { 5000, TFM_TARGET_TOKENS },
                        none = { 0, TFM_UPDATES };
    struct schedule_point first = at(1, 0, 50), peak = at(100, 0, 5000), late = at(400, 0, 20000);
    struct schedule_point end = at(1000, 0, 50000), beyond = at(1500, 0, 75000);
    CHECK_NEAR(rate(TFM_DECAY_INV_SQRT, warmup, first), 0.00002, 1e-18, "the first of 100 updates");
    CHECK_NEAR(rate(TFM_DECAY_INV_SQRT, warmup, peak), 0.002, 0, "the peak");
    CHECK_NEAR(rate(TFM_DECAY_INV_SQRT, warmup, late), 0.001, 1e-18, "half of it after four times as long");
    CHECK_NEAR(rate(TFM_DECAY_INV_SQRT, by_tokens, late), 0.001, 1e-18, "the same counted in tokens");
    CHECK_NEAR(rate(TFM_DECAY_INV_SQRT, none, late), 0.002, 0, "without warm-up it stays");
    CHECK_NEAR(rate(TFM_DECAY_LINEAR, none, late), 0.0012, 1e-18, "linear: three fifths left after two");
    CHECK_NEAR(rate(TFM_DECAY_LINEAR, warmup, first), 0.002 * 0.01 * 0.999, 1e-18, "linear, while it rises");
    CHECK_NEAR(rate(TFM_DECAY_COSINE, none, late), 0.001 * (1 + cos(0.4 * acos(-1))), 1e-18, "cosine");
    CHECK_NEAR(rate(TFM_DECAY_COSINE, none, end) + rate(TFM_DECAY_LINEAR, none, end), 0, 1e-18,
               "cosine and linear end at zero");
    CHECK_NEAR(rate(TFM_DECAY_LINEAR, none, beyond), 0, 0, "and stay there");
    CHECK_NEAR(rate(TFM_DECAY_NONE, warmup, beyond), 0.002, 0, "without decay it stays");
}

static void test_minutes(void)
{
    struct tfm_interval end = { 5, TFM_MINUTES };
    struct schedule_point before = at(49, 0, 0), then = at(50, 0, 0);
    CHECK(!schedule_is_over(&end, &before) && schedule_is_over(&end, &then), "an end in minutes");
}

int main(void)
{
    test_intervals();
    test_ends();
    test_learn_rate();
    test_minutes();
    return check_done();
}
