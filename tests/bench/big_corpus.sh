#!/bin/sh
# big_corpus.sh: a training on a corpus far larger than a window: time to the first update, and peak memory, beside those of
# a training on a corpus of 2,000 pairs; the vocabulary is given, since training one takes its own time. The corpus is
# generated, PAIRS pairs of made-up words, REPEAT times (which a training does not notice).
#   PAIRS=5000000 REPEAT=10 UPDATES=3 sh tests/bench/big_corpus.sh
set -eu
cd "$(dirname "$0")/../.."
tfm=$(cd "${TFM_BUILD:-build}" && pwd)/tfm
pairs=${PAIRS:-5000000} repeat=${REPEAT:-1} updates=${UPDATES:-3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# 4 to 21 words a sentence, of a vocabulary of 4,096, the frequent ones far more often: about 75 bytes a side.
awk -v pairs="$pairs" -v en="$dir/en" -v de="$dir/de" 'BEGIN {
    srand(1)
    n = split("ba de fi go lu ma ne pi ro su ta ve wi zo ka le", part, " ")
    for (i = 0; i < 4096; i++) {
        word[i] = part[i % 16 + 1] part[int(i / 16) % 16 + 1] (i < 256 ? "" : part[int(i / 256) % 16 + 1])
        wort[i] = part[15 - i % 16 + 1] part[int(i / 16) % 16 + 1] (i < 256 ? "n" : part[int(i / 256) % 16 + 1] "en")
    }
    for (p = 0; p < pairs; p++) {
        r = rand()
        length_ = 4 + int(18 * r)
        a = b = ""
        for (w = 0; w < length_; w++) {
            x = rand()
            i = int(4096 * x * x * x)
            a = a " " word[i]
            b = b " " wort[i]
        }
        print substr(a, 2) >en
        print substr(b, 2) >de
    }
}'
for side in en de; do
    mv "$dir/$side" "$dir/once"
    for _ in $(seq "$repeat"); do
        cat "$dir/once"
    done >"$dir/$side"
done
rm "$dir/once"
echo "corpus: $((pairs * repeat)) pairs, $(($(wc -c <"$dir/en") / 1000000)) + $(($(wc -c <"$dir/de") / 1000000)) MB"
head -n 20000 "$dir/en" >"$dir/some.en"
head -n 20000 "$dir/de" >"$dir/some.de"
head -n 2000 "$dir/en" >"$dir/few.en"
head -n 2000 "$dir/de" >"$dir/few.de"
"$tfm" train -t "$dir/some.en" "$dir/some.de" -m "$dir/vocab" --vocab-size 4000 --after 1u --quiet

# run NAME SRC TRG: seconds to the first update and the peak of memory
run() {
    python3 - "$1" "$dir/log" "$tfm" train -t "$2" "$3" -m "$dir/$1" -v "$dir/vocab/vocab.spm" "$dir/vocab/vocab.spm" \
        --max-length 60 --after "${updates}u" --disp-freq 1u <<'PY'
import resource, subprocess, sys, time
name, log, *command = sys.argv[1:]
begin, first = time.time(), None
with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as training, open(log, "w") as out:
    for line in training.stderr:
        out.write(line)
        if first is None and "Up. 1 " in line:
            first = time.time() - begin
assert training.returncode == 0, open(log).read()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{name}: first update after {first:.1f} s, peak memory {peak:.0f} MiB")
PY
}
run tiny "$dir/few.en" "$dir/few.de"
run big "$dir/en" "$dir/de"
grep 'corpus:' "$dir/log"
