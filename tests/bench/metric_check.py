#!/usr/bin/env python3
"""Compares bleu_score and chrf_score of the library with sacreBLEU.

    make && python3 tests/bench/metric_check.py HYPOTHESES REFERENCES [HYPOTHESES REFERENCES]...

The files (plain or gzip) are compared pair by pair, line by line. Needs the Python package sacrebleu and a C compiler;
TFM_BUILD names the build folder (build). Prints both scores of every pair and the largest difference; the exit status
is 1 where it exceeds 1e-9. No part of `make check`, whose expected scores were found with it.
"""
import gzip
import os
import subprocess
import sys
import tempfile

from sacrebleu.metrics import BLEU, CHRF

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TFM_BUILD", os.path.join(ROOT, "build"))
TOLERANCE = 1e-9

SCORER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/line.h"
#include "text/bleu.h"
#include "text/chrf.h"

static struct tfm_error err;

static void fail(void)
{
    fprintf(stderr, "%s\n", err.message);
    exit(1);
}

static size_t read_lines(const char *path, char ***lines)
{
    struct line_reader *reader;
    struct str line = { 0 };
    size_t n = 0, cap = 0;
    bool more;
    *lines = NULL;
    if (line_open(&reader, path, &err) != TFM_OK)
        fail();
    for (;;) {
        if (line_read(reader, &line, &more, &err) != TFM_OK)
            fail();
        if (!more)
            return n;
        if (n == cap)
            *lines = realloc(*lines, (cap = 2 * cap + 64) * sizeof(char *));
        (*lines)[n++] = strdup(line.data != NULL ? line.data : "");
    }
}

int main(int argc, char **argv)
{
    char **hypotheses, **references;
    double bleu, chrf;
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t n = read_lines(argv[i], &hypotheses);
        if (read_lines(argv[i + 1], &references) != n) {
            fprintf(stderr, "%s and %s differ in their number of lines\n", argv[i], argv[i + 1]);
            return 1;
        }
        if (bleu_score((const char *const *)hypotheses, (const char *const *)references, n, &bleu, &err) != TFM_OK ||
            chrf_score((const char *const *)hypotheses, (const char *const *)references, n, &chrf, &err) != TFM_OK)
            fail();
        printf("%.17g %.17g\n", bleu, chrf);
    }
    return 0;
}
"""


def own_scores(paths):
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "scorer.c"), os.path.join(folder, "scorer")
        with open(source, "w") as out:
            out.write(SCORER)
        subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-I", os.path.join(ROOT, "lib"), source,
                        os.path.join(BUILD, "libtfm.a"), "-lz", "-lm", "-pthread", "-o", program], check=True)
        text = subprocess.run([program] + paths, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(map(float, line.split())) for line in text.splitlines()]


def read_lines(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


def main():
    paths = sys.argv[1:]
    if not paths or len(paths) % 2:
        sys.exit(__doc__)
    worst = 0.0
    print(f"{'BLEU':>12} {'sacreBLEU':>12} {'chrF':>12} {'sacreBLEU':>12}  hypotheses")
    for (bleu, chrf), hypotheses, references in zip(own_scores(paths), paths[0::2], paths[1::2]):
        lines = read_lines(hypotheses), [read_lines(references)]
        expected = BLEU(force=True).corpus_score(*lines).score, CHRF().corpus_score(*lines).score
        worst = max(worst, abs(bleu - expected[0]), abs(chrf - expected[1]))
        print(f"{bleu:12.6f} {expected[0]:12.6f} {chrf:12.6f} {expected[1]:12.6f}  {hypotheses}")
    print(f"largest difference: {worst:.3g}")
    return worst > TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
