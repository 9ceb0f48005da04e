#!/bin/sh
# engines.sh: speed and memory of translation, tfm against CTranslate2 and Bergamot, in turns on the same machine, each pair
# with the same model and the same lines:
#     base     6+6 layers, D 512, F 2048, 32,000 pieces, random weights; lines of 24 pieces, exactly 30 pieces out
#     en-de    models/en-de: real weights, 1,000 lines of Tatoeba
#     student  6+2 layers with SSRU, D 256, F 1536, lexical shortlist: Firefox's English-Portuguese model, 1,000 lines
# One CSV row a measurement: source words a second without loading, MB of peak memory (of the whole process, Python included
# for the others), and tfm's speed over the other's in this turn. Then latency, start, the fraction of the machine's peak
# that is reached, and a long text.
#   RUNS=3 sh tests/bench/engines.sh        needs ../shared (SKIP without) and what is installed below from PyPI
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${TFM_BUILD:-build}" && pwd)
tfm=$build/tfm here=$PWD/tests/bench
shared=$(cd "${TFM_SHARED:-../shared}" 2>/dev/null && pwd) || { echo "SKIP: no ../shared"; exit 0; }
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tfm-peers}
python=$cache/venv/bin/python bergamot=$cache/venv310/bin/python
[ -x "$python" ] || python3 -m venv "$cache/venv"
"$python" -c "import ctranslate2, sentencepiece, sacrebleu, numpy" 2>/dev/null ||
    "$cache/venv/bin/pip" install -q ctranslate2==4.8.5 sentencepiece==0.2.3 sacrebleu==2.6.0 numpy
if [ ! -x "$bergamot" ]; then # its wheel is for Python 3.8 to 3.10
    for old in "${PY310:-python3.10}" "$HOME"/.pyenv/versions/3.10.*/bin/python python3.9 python3.8; do
        "$old" -m venv "$cache/venv310" 2>/dev/null && "$cache/venv310/bin/pip" install -q bergamot==0.4.5 && break
    done
fi
export OMP_NUM_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- models and lines ----

models=$cache/engines
mkdir -p "$models"
[ -s "$models/base.model" ] || gzip -dc "$shared/data/tatoeba/train.en-de.tsv.gz" | cut -f 1,2 | tr '\t' '\n' | "$python" -c "
import sys, sentencepiece
sentencepiece.SentencePieceTrainer.train(sentence_iterator=sys.stdin, model_prefix='$models/base', vocab_size=32000, eos_id=0,
    unk_id=1, bos_id=-1, pad_id=-1, character_coverage=1.0, minloglevel=2)"
[ -d "$models/base-fp32" ] || "$python" "$here/peer_models.py" base "$models/base.model" "$models/base-fp32"
[ -d "$models/base-ct2" ] || "$python" "$here/peer_models.py" ctranslate2 "$models/base-fp32" "$models/base-ct2"
[ -d "$models/base-int8" ] || "$tfm" convert --precision int8 "$models/base-fp32" "$models/base-int8"
rm -rf "$models/en-de-fp32" "$models/en-de-int8" "$models/en-de-ct2"
"$tfm" convert --precision fp32 --plain models/en-de "$models/en-de-fp32"
"$tfm" convert --precision int8 models/en-de "$models/en-de-int8"
"$python" "$here/peer_models.py" ctranslate2 "$models/en-de-fp32" "$models/en-de-ct2"
firefox=$shared/models/firefox-en-pt
[ -d "$models/student-fp32" ] || "$python" "$here/peer_models.py" firefox "$firefox" "$models/student-fp32"
[ -d "$models/student-int8" ] || "$tfm" convert --precision int8 "$models/student-fp32" "$models/student-int8"
cp "$models/student-fp32/shortlist.gz" "$models/student-int8/"
mkdir -p "$work/models"
ln -s "$firefox" "$work/models/enpt-firefox"

gzip -dc "$shared/data/tatoeba/train.en-de.tsv.gz" | cut -f 1 | "$python" -c "
import sys, sentencepiece
p = sentencepiece.SentencePieceProcessor(model_file='$models/base.model')
print(*[line for line in sys.stdin.read().splitlines() if len(p.encode(line)) == 24][:128], sep='\n')" >"$work/base.src"
gzip -dc "$shared/data/tatoeba/test.en-de.tsv.gz" | cut -f 1 >"$work/en-de.src"
gzip -dc "$shared/data/tatoeba/test.en-de.tsv.gz" | cut -f 2 >"$work/en-de.ref"
gzip -dc "$shared/data/ntrex/ntrex-a.eng.gz" | head -n 1000 >"$work/student.src"
gzip -dc "$shared/data/ntrex/ntrex-a.por-BR.gz" | head -n 1000 >"$work/student.ref"

# ---- measuring ----

# run_tfm MODEL PRECISION THREADS BEAM OPTIONS...: words a second and MB
run_tfm() {
    model=$1 precision=$2 threads=$3 beam=$4
    shift 4
    # shellcheck disable=SC2086
    $pin "$tfm" translate -m "$models/$model-$precision" -b "$beam" --cpu-threads "$threads" --stats "$@" -o "$work/$model.tfm" \
        "$work/$model.src" 2>"$work/stats"
    sed -n 's/.* \([0-9.]*\) words\/s, .*; \([0-9.]*\) MiB at most/\1 \2/p' "$work/stats" | awk '{ printf "%.0f %.0f\n", $1, $2 * 1.048576 }'
}

run_ctranslate2() {
    kind=$2
    [ "$kind" = int8 ] || kind=float32
    model=$1 threads=$3 beam=$4
    shift 4
    # shellcheck disable=SC2086
    $pin "$python" "$here/ctranslate2_run.py" "$models/$model-ct2" "$kind" "$threads" "$beam" "${batch:-32}" "$work/$model.src" \
        "$work/$model.other" "$@" | awk -v n="$(wc -w <"$work/$model.src")" '{ printf "%.0f %.0f\n", n / $1, $3 }'
}

run_bergamot() {
    # shellcheck disable=SC2086
    MODELS=$work/models WORK=$work $pin "$bergamot" "$shared/peers/infer/engines.py" bergamot enpt "$work/student.src" \
        "$work/student.other" --threads "$3" $latency >"$work/bergamot.json" 2>"$work/err"
    sed 's/.*"words_per_s": \([0-9.]*\).*"rss_mb": \([0-9.]*\).*/\1 \2/' "$work/bergamot.json" | awk '{ printf "%.0f %.0f\n", $1, $2 }'
}

bleu() {
    "$cache/venv/bin/sacrebleu" "$work/$1.ref" -i "$work/$1.$2" -b -w 2
}

# compare MODEL PRECISION THREADS BEAM OTHER [tfm's OPTIONS --] [the other's]
compare() {
    model=$1 precision=$2 threads=$3 beam=$4 other=$5
    shift 5
    pin=
    [ "$threads" != 1 ] || pin="taskset -c 1"
    ours=
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        ours="$ours $1"
        shift
    done
    [ $# -eq 0 ] || shift
    for run in $(seq "${RUNS:-3}"); do
        # shellcheck disable=SC2086
        a=$(run_tfm "$model" "$precision" "$threads" "$beam" $ours)
        b=$("run_$other" "$model" "$precision" "$threads" "$beam" "$@")
        scores=,
        [ ! -e "$work/$model.ref" ] || scores=$(bleu "$model" tfm),$(bleu "$model" other)
        echo "$model,$precision,$threads,$beam,$run,tfm,${a% *},${a#* },${scores%,*},1"
        echo "$model,$precision,$threads,$beam,$run,$other,${b% *},${b#* },${scores#*,},$(awk -v a="${a% *}" -v b="${b% *}" 'BEGIN { printf "%.2f", a / b }')"
    done
}

echo "# $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
echo "model,precision,threads,beam,run,engine,words_per_second,peak_mb,bleu,tfm_ratio"
latency=--no-latency
for threads in 1 2; do
    compare student int8 "$threads" 1 bergamot
done
for precision in int8 fp32; do
    for threads in 1 2; do
        for beam in 1 5; do
            for batch in 32 64; do
                compare base "$precision" "$threads" "$beam" ctranslate2 --min-length 30 --max-length-factor 0.8333 --mini-batch "$batch" -- 30
            done
        done
    done
    batch=32
    compare en-de "$precision" 1 5 ctranslate2 --shortlist off
done

echo "# latency of a line, student, one thread, 100 lines: median and 95th percentile in ms"
pin="taskset -c 1" latency=
echo "tfm $($pin "$python" "$here/latency.py" 100 "$work/student.src" "$tfm" translate -m "$models/student-int8" -b 1 --cpu-threads 1)"
run_bergamot student int8 1 1 >"$work/err"
echo "bergamot $(sed 's/.*"lat_p50_ms": \([0-9.]*\), "lat_p95_ms": \([0-9.]*\).*/\1 \2/' "$work/bergamot.json")"

echo "# ms of a start (start.c), student: weights in gzip, and plain"
[ -d "$models/student-plain" ] || "$tfm" convert --plain --precision int8 "$models/student-fp32" "$models/student-plain"
cp "$models/student-fp32/shortlist.gz" "$models/student-plain/"
TFM_BUILD=$build sh "$here/start.sh" "$models/student-int8" "$models/student-plain" | sed "s|^$models/||"

tier=$("$tfm" translate --verbose -m "$models/student-int8" </dev/null 2>&1 | sed 's/.*, \([a-z0-9]*\) kernels/\1/')
echo "# 10^9 operations/s of one thread, $tier: the most of int8 instructions, and of fp32 products of any size; and what whole"
echo "# translations reach (all of their time counted)"
taskset -c 1 "$build/tests/bench/kernels" "$tier" | awk -F , 'NR > 1 { if ($5 > a) a = $5; for (i = 8; i < 10; i++) if ($i > b) b = $i }
    END { print "peak int8", a; print "peak fp32", b }'
for precision in int8 fp32; do
    for model in student base; do
        run_tfm "$model" "$precision" 1 1 >"$work/err"
        sed -n "s/.*products of \\([0-9.]*\\) GFLOP.*/$model $precision \\1/p" "$work/stats"
    done
done

echo "# models/en-de in int8 on $(gzip -dc "$shared/data/mixed/throughput.en.gz" | wc -l) lines of mixed text"
for threads in 1 2; do
    "$tfm" translate -m "$models/en-de-int8" -b 1 --cpu-threads "$threads" --quiet --stats -o "$work/long" \
        "$shared/data/mixed/throughput.en.gz" 2>&1 | sed -n 's/^tfm translate: \([0-9]* lines.*\)/\1/p'
done
