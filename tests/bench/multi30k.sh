# multi30k.sh: what ablation.sh and lengths.sh share; read with `.` from the root of the project. Small models are trained on
# Multi30k English-German, lower-cased and tokenised, all with one joint BPE vocabulary of 10,000 pieces and the settings of
# the preset tiny; sacreBLEU judges the tokens as they are. A training that was stopped goes on, one that ended is left alone.
# GEMM=bf16 trains with other products (tfm train --gemm).
#   $build $tfm $data (text) $vocab $updates $threads $work (what is kept, a folder for these numbers)
build=$(cd "${TFM_BUILD:-build}" && pwd)
tfm=$build/tfm
shared=$(cd "${TFM_SHARED:-../shared}" 2>/dev/null && pwd) || { echo "SKIP: no ../shared"; exit 0; }
cache=${CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tfm-peers}
updates=${UPDATES:-7000} threads=${THREADS:-1}
work=${WORK:-$cache/$(basename "$0" .sh)}/${updates}u-${threads}t
data=$cache/multi30k-lc vocab=$cache/multi30k-lc/vocab.spm
child=
mkdir -p "$work" "$data"

# run COMMAND...: so that a signal to the shell ends the command too, once, whoever else of the group it was sent to: tfm
# saves a training at the first signal, and gives up at the second.
run() {
    setsid "$@" </dev/null &
    child=$!
    wait "$child"
    child=
}

stop() {
    trap '' HUP INT TERM
    [ -z "$child" ] || { kill -TERM "$child" && wait "$child"; } || true
    exit "$1"
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM

say() {
    echo "# $(date +%H:%M:%S) $*" >&2
}

# with_settings MODEL OPTION...: a training of the model on the text
with_settings() {
    model=$1
    shift
    run "$tfm" train --quiet -m "$model" -t "$data/train.en" "$data/train.de" -v "$vocab" "$vocab" --preset tiny --dropout 0.15 \
        --gemm "${GEMM:-own}" --mini-batch-words 1024 --learn-rate 0.002 --lr-warmup "$((updates / 7 + 1))u" "$@"
}

# train NAME OPTION...: into $work/NAME/model
train() {
    name=$1
    shift
    [ ! -e "$work/$name/trained" ] || return 0
    mkdir -p "$work/$name"
    say "training $name"
    with_settings "$work/$name/model" --lr-decay linear --after "${updates}u" --cpu-threads "$threads" \
        --log "$work/$name/log" --log-json "$work/$name/log.json" "$@"
    : >"$work/$name/trained"
    rm -r "$work/$name/model/checkpoints"
}

# translate NAME SOURCE OUTPUT OPTION...: beam 5, one thread
translate() {
    name=$1 source=$2 output=$3
    shift 3
    run "$tfm" translate -m "$work/$name/model" -b 5 --precision fp32 --cpu-threads 1 --quiet -o "$output" "$@" "$source"
}

# score METRIC REFERENCE HYPOTHESES
score() {
    "$cache/venv/bin/sacrebleu" "$2" -i "$3" -m "$1" -b -w 2 --tokenize none --force
}

# ---- text, vocabulary, sacreBLEU ----

new=$(mktemp -d "$work/new.XXXXXX")
trap 'rm -rf "$new"' EXIT
for part in train val test_2016_flickr test_2017_flickr; do
    for side in en de; do
        [ ! -s "$data/$part.$side" ] || continue
        gzip -dc "$shared/data/multi30k/lc.norm.tok/$part.$side.gz" >"$new/text"
        mv "$new/text" "$data/$part.$side"
    done
done
if [ ! -s "$vocab" ]; then
    run "$tfm" train --quiet -m "$new/vocab" -t "$data/train.en" "$data/train.de" --vocab-type bpe --vocab-size 10000 --after 1u
    mv "$new/vocab/vocab.spm" "$vocab"
fi
[ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv"
[ -x "$cache/venv/bin/sacrebleu" ] || "$cache/venv/bin/pip" install -q sacrebleu==2.6.0
