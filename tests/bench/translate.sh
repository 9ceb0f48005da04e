#!/bin/sh
# translate.sh: time and memory of `tfm translate` over a file, beam 5 and greedy, one and two threads; and BLEU and chrF
# by sacrebleu where PyPI's package is at hand. Prints one CSV row a run.
#   MODEL=folder SOURCE=file REFERENCE=file RUNS=3 sh tests/bench/translate.sh
# Without SOURCE: test_2016_flickr of Multi30k under ../shared, if it is there.
set -eu
cd "$(dirname "$0")/../.."
tfm=${TFM_BUILD:-build}/tfm
model=${MODEL:-models/en-de}
shared=${TFM_SHARED:-../shared}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "${SOURCE:-}" ]; then
    [ -e "$shared/data/multi30k/test_2016_flickr.en.gz" ] || { echo "SKIP: no SOURCE and no $shared/data"; exit 0; }
    gzip -dc "$shared/data/multi30k/test_2016_flickr.en.gz" > "$work/source"
    gzip -dc "$shared/data/multi30k/test_2016_flickr.de.gz" > "$work/reference"
    SOURCE=$work/source REFERENCE=$work/reference
fi
words=$(wc -w < "$SOURCE")
cpu=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
echo "# $(wc -l < "$SOURCE") lines, $words words; $cpu; medians of ${RUNS:-3} runs"
echo "threads,beam,seconds,words_per_second,peak_mb"
for threads in 1 2; do
    for beam in 1 5; do
        for run in $(seq "${RUNS:-3}"); do
            /usr/bin/time -f '%e %M' -o "$work/time" \
                "$tfm" translate -m "$model" -b $beam --cpu-threads $threads --quiet -o "$work/out.$beam" "$SOURCE"
            cat "$work/time"
        done | sort -n | awk -v t=$threads -v b=$beam -v w="$words" '{ s[NR] = $1; m[NR] = $2 }
            END { k = int((NR + 1) / 2); printf "%d,%d,%.2f,%.0f,%.0f\n", t, b, s[k], w / s[k], m[k] / 1024 }'
    done
done
if [ -n "${REFERENCE:-}" ] && command -v "${SACREBLEU:-sacrebleu}" >/dev/null; then
    for beam in 1 5; do
        echo "# beam $beam: $("${SACREBLEU:-sacrebleu}" "$REFERENCE" -i "$work/out.$beam" -m bleu chrf -b -w 2 | tr '\n' ' ')"
    done
fi
