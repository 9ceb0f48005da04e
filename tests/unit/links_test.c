/*
 * links_test.c: word alignments on their way from a file to the rows of a batch: lines and their mistakes, pairs left
 * out, other segmentations, and weights between pieces.
 */
#include "train/links.h"

#include "base/mem.h"
#include "toy_vocab.h"
#include "train/bitext.h"
#include "train/guide.h"

static struct tfm_error err;

static struct span span_of(const char *text)
{
    return (struct span){ text, strlen(text) };
}

static enum tfm_status parse(struct links *links, const char *line)
{
    const struct span texts[] = { span_of("  one two\tthree "), span_of("eins zwei") };
    links_clear(links);
    return links_parse(links, 1, span_of(line), texts, "links", 7, &err);
}

static void test_lines(void)
{
    struct links links = { 0 };
    size_t n;
    CHECK_INT(parse(&links, "2-1 0-0  1-1\t0-0"), TFM_OK, "a line of links");
    const struct link *list = links_of(&links, 1, &n);
    CHECK_INT((long long)n, 3, "each once");
    CHECK(n == 3 && list[0].source == 0 && list[1].source == 1 && list[2].source == 2 && list[0].target == 0 &&
              list[1].target == 1 && list[2].target == 1,
          "by target, then by source");
    CHECK(links.pairs[1].n_words[0] == 3 && links.pairs[1].n_words[1] == 2, "spaces separate words");
    CHECK(links_of(&links, 0, &n) == NULL && n == 0, "a pair that was not named has none");
    CHECK(links_of(&links, 5, &n) == NULL && n == 0, "nor has one behind the last");
    CHECK_INT(parse(&links, ""), TFM_OK, "a line without links");
    CHECK(links_of(&links, 1, &n) == NULL && n == 0, "gives none");
    static const char *const wrong[] = { "0-", "-0", "0", "0-0-0", "a-0", "0-1x", "0:1", "0-0 1--1", "0 - 0", "?" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_INT(parse(&links, wrong[i]), TFM_EFORMAT, "\"%s\"", wrong[i]);
        CHECK(strstr(err.message, "links, line 7: found \"") != NULL, "is told: %s", err.message);
    }
    static const char *const outside[] = { "3-0", "0-2", "0-0 99999999999999999999-0", "0-2147483648" };
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
        CHECK_INT(parse(&links, outside[i]), TFM_EFORMAT, "\"%s\"", outside[i]);
    parse(&links, "0-0 3-0");
    CHECK(strstr(err.message, "found 3-0, but the pair of line 7 has 3 source and 2 target words") != NULL,
          "a word that is not there: %s", err.message);
    links_release(&links);
}

static const char *write_text(const char *name, const char *text)
{
    const char *path = check_path("%s", name);
    toy_must(file_write(path, text, strlen(text), &err), &err);
    return path;
}

/* All pairs of a text in blocks of two lines; of the first block only the second pair where `chosen`. */
static enum tfm_status read_text(struct text_block *block, const struct tfm_corpus *corpus, bool chosen)
{
    static const bool second[] = { false, true };
    struct columns columns = { 0, 0 };
    struct spool spool = { .folder = check_tmp(), .name = "spool" };
    struct bitext text;
    pairs_clear(block);
    TRY(bitext_open(&text, corpus, &columns, 2, &spool, NULL, &err));
    enum tfm_status status = TFM_OK;
    for (int i = 0; i < text.n_blocks && status == TFM_OK; i++)
        status = bitext_read(block, &text, i, chosen && i == 0 ? second : NULL, 0, &err);
    bitext_release(&text);
    return status;
}

static void test_files(void)
{
    struct text_block block = { 0 };
    struct tfm_corpus two = { .source = write_text("a", "ka na\nka\nka na ka\n"), .target = write_text("b", "x\ny\nz z\n") };
    struct tfm_corpus one = { .tsv = write_text("c", "ka na\tx\nka\ty\nka na ka\tz z\n") };
    size_t n;
    two.alignment = one.alignment = write_text("l", "1-0\n\n2-1 0-0\n");
    for (int tsv = 0; tsv <= 1; tsv++) {
        CHECK_INT(read_text(&block, tsv ? &one : &two, false), TFM_OK, "a text with its alignment");
        const struct link *links = links_of(&block.links, 0, &n);
        CHECK(n == 1 && links[0].source == 1, "the first pair's");
        links = links_of(&block.links, 2, &n);
        CHECK(n == 2 && links[1].source == 2 && links[1].target == 1, "the third pair's");
        CHECK_INT(read_text(&block, tsv ? &one : &two, true), TFM_OK, "some pairs of it");
        links_of(&block.links, 0, &n);
        CHECK(block.n == 2 && n == 0, "have their own");
    }
    two.alignment = write_text("l", "1-0\n");
    CHECK_INT(read_text(&block, &two, false), TFM_EFORMAT, "too few lines");
    CHECK(strstr(err.message, "/l has 1 line but") && strstr(err.message, "/a has 3: line n of one must be the alignment"),
          "are told: %s", err.message);
    two.alignment = write_text("l", "1-0\n\n2-1 3-0\n");
    CHECK_INT(read_text(&block, &two, false), TFM_EFORMAT, "a mistake in the second block");
    CHECK(strstr(err.message, "/l, line 3: found 3-0") != NULL, "is told: %s", err.message);
    pairs_release(&block);
}

/* Words of the vocabulary's training: some are one piece, some more. */
static void add_pair(struct text_block *text, const char *source, const char *target, const char *line)
{
    const struct span texts[] = { span_of(source), span_of(target) };
    toy_must(pairs_add(text, texts[0], texts[1], text->n, &err), &err);
    if (line != NULL)
        toy_must(links_parse(&text->links, text->n - 1, span_of(line), texts, "links", 1, &err), &err);
}

/* What the pieces of target word `word` of sentence s are told of source word `of`, in all; -1: they are told different
 * things. */
static double told(const struct guide_row *rows, const struct tokens *source, const struct tokens *target, int s,
                   int word, int of, const struct spm *spm)
{
    double found = -2;
    int w = -1;
    for (int i = target->start[s]; i < target->start[s + 1] - 1; i++) {
        w += i == target->start[s] || spm_is_word_start(spm, target->ids[i]);
        if (w != word)
            continue;
        double sum = 0;
        for (int l = 0; l < rows[i].n; l++) {
            int source_word = -1;
            for (int j = 0; j <= rows[i].links[l].key; j++)
                source_word += j == 0 || spm_is_word_start(spm, source->ids[source->start[s] + j]);
            sum += source_word == of ? (double)rows[i].links[l].weight : 0;
        }
        found = found == -2 || fabs(found - sum) < 1e-6 ? sum : -1;
    }
    return found;
}

static void check_rows(const struct corpus *corpus, const struct spm *spm, const char *name)
{
    struct arena arena;
    struct tokens source, target;
    const int pairs[] = { 2, 0 };
    toy_must(arena_init(&arena, 1 << 20, &err), &err);
    batch_take(&source, &target, corpus, pairs, 2, 2, 5, &arena);
    const struct guide_row *rows = guide_take(&source, &target, corpus, pairs, 2, &arena);
    CHECK(links_of(&corpus->links, 1, &(size_t){ 0 }) == NULL, "%s: a pair without an alignment", name);
    for (int s = 1; s < 4; s += 2) { /* both copies of pair 0 */
        CHECK_NEAR(told(rows, &source, &target, s, 0, 1, spm), 1, 1e-6, "%s: a word with one link", name);
        CHECK_NEAR(told(rows, &source, &target, s, 1, 0, spm), 0.5, 1e-6, "%s: one with two: half of it", name);
        CHECK_NEAR(told(rows, &source, &target, s, 1, 2, spm), 0.5, 1e-6, "%s: and half", name);
        CHECK_NEAR(told(rows, &source, &target, s, 2, 2, spm), 0, 1e-6, "%s: one without", name);
        CHECK_INT(rows[target.start[s + 1] - 1].n, 0, "%s: </s> has none", name);
    }
    for (int i = target.start[0]; i < target.start[1]; i++)
        CHECK_INT(rows[i].n, 0, "%s: nor has a pair whose words are other ones", name);
    arena_release(&arena);
}

static void test_rows(void)
{
    struct spm *spm = toy_vocab();
    struct text_block text = { 0 };
    struct corpus corpus, sampled;
    add_pair(&text, "", "ka", NULL);
    add_pair(&text, "tersun  vierpu na", "lomi sunka \xc3\xb6l", "1-0 2-1 0-1");
    add_pair(&text, "ka", "na", NULL);
    add_pair(&text, "ka\xc2\xa0na lomi", "ble na", "0-0 1-1"); /* a no-break space makes two words of one */
    toy_must(corpus_init(&corpus, spm, spm, 100, 0, &err), &err);
    toy_must(corpus_init(&sampled, spm, spm, 100, 0, &err), &err);
    toy_must(corpus_add(&corpus, &text, NULL, &err), &err);
    CHECK(corpus.n == 3 && corpus.n_unguided == 1, "%ld of %d pairs lost its alignment", corpus.n_unguided, corpus.n);
    check_rows(&corpus, spm, "as translated");
    const float alpha[] = { 0.1f, 0.1f };
    int longest = 0;
    for (uint64_t key = 1; key <= 5; key++) {
        toy_must(corpus_sample(&sampled, &corpus, alpha, key, NULL, &err), &err);
        check_rows(&sampled, spm, "drawn anew");
        int length = corpus_length(&sampled.source, 0);
        longest = length > longest ? length : longest;
    }
    CHECK(longest > corpus_length(&corpus.source, 0), "which makes %d pieces of %d", longest,
          corpus_length(&corpus.source, 0));
    pairs_release(&text);
    corpus_release(&corpus);
    corpus_release(&sampled);
    spm_free(spm);
}

static enum tfm_status fill(const struct spm *spm)
{
    const struct span texts[] = { span_of("ka na lomi"), span_of("na ka") };
    struct text_block text = { 0 };
    struct corpus corpus;
    enum tfm_status status = corpus_init(&corpus, spm, spm, 100, 0, &err);
    if (status != TFM_OK)
        return status;
    for (int i = 0; i < 40 && status == TFM_OK; i++) {
        status = pairs_add(&text, texts[0], texts[1], (uint64_t)i, &err);
        if (status == TFM_OK)
            status = links_parse(&text.links, text.n - 1, span_of("0-1 1-0 2-0"), texts, "links", 1, &err);
    }
    if (status == TFM_OK)
        status = corpus_add(&corpus, &text, NULL, &err);
    if (status == TFM_OK && corpus.links.n != 120)
        status = err_set(&err, TFM_EFORMAT, "%zu links arrive of 120", corpus.links.n);
    pairs_release(&text);
    corpus_release(&corpus);
    return status;
}

static void test_memory(void)
{
    struct spm *spm = toy_vocab();
    enum tfm_status status = TFM_ENOMEM;
    bool told = true;
    int n = 0;
    for (; status != TFM_OK && n < 5000; n++) {
        mem_fail_after(n);
        status = fill(spm);
        mem_fail_after(-1);
        told = told && (status == TFM_OK || status == TFM_ENOMEM);
    }
    CHECK(told && status == TFM_OK && n > 10, "each of %d allocations may fail", n - 1);
    spm_free(spm);
}

int main(void)
{
    test_memory();
    test_lines();
    test_files();
    test_rows();
    return check_done();
}
