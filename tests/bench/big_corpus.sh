#!/bin/sh
# big_corpus.sh: a training on a corpus far larger than a window: time to the first update, and peak memory, beside those of
# a training on a corpus of a hundred pairs; the vocabulary is given, since training one takes its own time. The corpus is generated, PAIRS pairs of made-up words.
#   PAIRS=5000000 UPDATES=3 sh tests/bench/big_corpus.sh
set -eu
cd "$(dirname "$0")/../.."
tfm=$(cd "${TFM_BUILD:-build}" && pwd)/tfm
pairs=${PAIRS:-5000000} updates=${UPDATES:-3}
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
echo "corpus: $pairs pairs, $(($(wc -c <"$dir/en") / 1000000)) + $(($(wc -c <"$dir/de") / 1000000)) MB"
head -n 20000 "$dir/en" >"$dir/some.en"
head -n 20000 "$dir/de" >"$dir/some.de"
head -n 100 "$dir/en" >"$dir/few.en"
head -n 100 "$dir/de" >"$dir/few.de"
"$tfm" train -t "$dir/some.en" "$dir/some.de" -m "$dir/vocab" --vocab-size 4000 --after 1u --quiet

# run NAME SRC TRG: seconds to the first update and the peak of memory
run() {
    begin=$(date +%s.%N)
    "$tfm" train -t "$2" "$3" -m "$dir/$1" -v "$dir/vocab/vocab.spm" "$dir/vocab/vocab.spm" --max-length 60 \
        --after "${updates}u" --disp-freq 1u 2>"$dir/log" &
    pid=$!
    first='' peak=0
    while kill -0 $pid 2>/dev/null; do
        kib=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$pid/status 2>/dev/null) || kib=
        [ -z "$kib" ] || peak=$kib
        if [ -z "$first" ] && grep -q 'Up\. 1 ' "$dir/log"; then
            first=$(date +%s.%N)
        fi
        sleep 0.02
    done
    wait $pid
    awk -v name="$1" -v b="$begin" -v f="$first" -v kib="$peak" 'BEGIN {
        printf "%s: first update after %.1f s, peak memory %.0f MiB\n", name, f - b, kib / 1024 }'
}
run tiny "$dir/few.en" "$dir/few.de"
run big "$dir/en" "$dir/de"
grep 'corpus:' "$dir/log"
