#!/bin/sh
# The corpora of a training: several with weights, columns, standard input and commands, windows of a corpus that is
# larger than them; and that a training goes on with the text that it began with, read once.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
en=$dir/toy/en
de=$dir/toy/de
paste "$en" "$de" >"$dir/both.tsv"
mini="--dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 --mini-batch-words 200 --lr-warmup 20
      --learn-rate 0.01 --disp-freq 1000 --save-freq 1000"

# train STATUS NAME FOLDER OPTION...: its messages are in $dir/err
train() {
    train_status=$1
    train_name=$2
    train_folder=$3
    shift 3
    # shellcheck disable=SC2086 # several options
    run "$train_status" "$train_name" "$tfm" train -m "$train_folder" $mini -v "$dir/spm" "$dir/spm" --cpu-threads 2 "$@"
}

# untrained NAME FOLDER: no update was made, and the new folder is gone
untrained() {
    check "$1: nothing was trained" test ! -e "$2"
}

# same_training NAME FOLDER FOLDER: all of their last checkpoints but the times
same_training() {
    for file in weights ema moment1 moment2; do
        same "$1: $file" "$2/checkpoints/last/$file.safetensors" "$3/checkpoints/last/$file.safetensors"
    done
    for folder in "$2" "$3"; do
        sed '/"seconds"/d' "$folder/checkpoints/last/state.json"
    done >"$dir/states"
    is "$1: state" "$(sort "$dir/states" | uniq -c | awk '$1 % 2' | wc -l)" 0
}

# ---- several corpora ----

# shellcheck disable=SC2086
run 0 "a vocabulary from two corpora" "$tfm" train -m "$dir/a" $mini -t "$en" "$de" --tsv "$dir/both.tsv" --vocab-size 100 \
    --after 1u --cpu-threads 1
has "all their pairs are trained on" "$dir/err" "corpus: 1024 of 1024 pairs, "
cp "$dir/a/vocab.spm" "$dir/spm"
if command -v python3 >/dev/null; then
    check "their names and weights are kept" python3 - "$dir/a/config.json" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))["training"]
assert t["corpora"] == [{"source": "en", "target": "de", "weight": 1}, {"tsv": "both.tsv", "weight": 1}] and t["pairs"] == 1024
PY
else
    skip "their names and weights are kept" "no python3"
fi
train 0 "weights" "$dir/b" --tsv "$dir/both.tsv" -t "$en" "$de" --weights 2,0.25 --after 1e
has "count in an epoch" "$dir/err" "corpus: 1152 of 1152 pairs, "
has "all of it is seen" "$dir/b/checkpoints/last/state.json" '"sentences": 1152'
train 2 "other weights later" "$dir/b" --tsv "$dir/both.tsv" -t "$en" "$de" --weights 2,0.5 --after 2e
has "are refused" "$dir/err" "began with --weights 2,0.25, and now it is 2,0.5"
thirty=$(for i in 1 2 3 4 5 6 7 8 9 10; do printf ' --tsv %s --tsv %s --tsv %s' "$dir/both.tsv" "$dir/both.tsv" "$dir/both.tsv"; done)
ones=$(printf '0.1,%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29)
# shellcheck disable=SC2086
train 0 "thirty weights" "$dir/thirty" $thirty --weights "${ones}1.5" --after 1u
# shellcheck disable=SC2086
train 2 "another last one" "$dir/thirty" $thirty --weights "${ones}1" --after 2u
has "is refused" "$dir/err" "began with --weights 30 (fingerprint .*), and now it is 30 (fingerprint "
wrong "too few weights" "found 1 weight, expected one for each corpus: 2" train -m x --tsv a --tsv b --weights 1
for bad in 0 -- x 1,,2 1,2, 2000 "1 2"; do
    wrong "--weights=$bad" "expected numbers above 0" train -m x --tsv a --tsv b "--weights=$bad"
done
train 2 "weights that leave no pair" "$dir/x" --tsv "$dir/both.tsv" --weights 0.001
has "are told" "$dir/err" "both.tsv: a pass sees none of 512 pairs: raise --weights"
for bad in 1 0,1 1,2,3 a,b 1, ,1 -1,2; do
    wrong "--tsv-fields=$bad" "expected two numbers of columns" train -m x --tsv a "--tsv-fields=$bad"
done
train 2 "standard input twice" "$dir/x" --tsv - --tsv -
has "is refused" "$dir/err" "is named 2 times; it can be read once"
train 2 "standard input on both sides" "$dir/x" -t - -
has "is refused with a way out" "$dir/err" "both sides .*use --tsv - there"
train 1 "a mistake in the second corpus" "$dir/x" --tsv "$dir/both.tsv" -t "$en" "$dir/both.nowhere"
has "is told by name" "$dir/err" "cannot open $dir/both.nowhere"

# ---- columns, and pairs left out ----

awk -F '\t' '{ print $2 "\t0.9\t" $1 }' "$dir/both.tsv" >"$dir/three.tsv"
train 0 "two files" "$dir/c1" -t "$en" "$de" --after 5u
train 0 "columns of a file" "$dir/c2" --tsv "$dir/three.tsv" --tsv-fields 3,1 --valid-tsv "$dir/three.tsv" --after 5u \
    --valid-metrics ce
for file in weights ema moment1 moment2; do
    same "the same training as on two files: $file" "$dir/c1/checkpoints/last/$file.safetensors" \
        "$dir/c2/checkpoints/last/$file.safetensors"
done
{ cat "$dir/three.tsv"; printf 'a\tb\n'; } >"$dir/short.tsv"
train 1 "a line with too few columns" "$dir/x" --tsv "$dir/short.tsv" --tsv-fields 3,1
has "all is told" "$dir/err" "short.tsv, line 513: found 2 columns, expected at least 3 (--tsv-fields 3,1)"
untrained "a line with too few columns" "$dir/x"
{ cat "$dir/both.tsv"; printf 'the dog sees a red door.\tHund\n'; } >"$dir/unequal.tsv"
train 0 "an unequal pair" "$dir/c3" --tsv "$dir/unequal.tsv" --max-length-ratio 3 --after 1u
has "is left out and counted" "$dir/err" \
    "corpus: 512 of 513 pairs.*, 1 over 3 times as long as the other side (--max-length-ratio)"

# ---- windows ----

windows="--shuffle-window 100 --weights 1,0.5 --mini-batch-words 500 --source-sampling 0.3"
# shellcheck disable=SC2086
train 0 "40 updates in windows" "$dir/w1" $windows --tsv "$dir/both.tsv" --tsv "$dir/both.tsv" --after 40u \
    --max-length 18
has "they are told" "$dir/err" "corpus: 1024 pairs; a pass has 768 in 8 windows (--shuffle-window)"
is "what was left out is told once, after the first pass" "$(grep -c "left out: 0 empty on a side, [1-9]" "$dir/err")" 1
state=$dir/w1/checkpoints/last/state.json
check "the end is in a second epoch, and in a later window" \
    sh -c "grep -q '\"epoch\": 2' '$state' && grep -q '\"window\": [1-7]' '$state'"
# shellcheck disable=SC2086
train 0 "15 of them" "$dir/w2" $windows --tsv "$dir/both.tsv" --tsv "$dir/both.tsv" --after 15u --max-length 18
# shellcheck disable=SC2086
train 0 "25 more on one thread" "$dir/w2" $windows --tsv "$dir/both.tsv" --tsv "$dir/both.tsv" --after 40u \
    --max-length 18 --cpu-threads 1
same_training "15 + 25 = 40 in windows" "$dir/w1" "$dir/w2"
# shellcheck disable=SC2086
train 2 "another window" "$dir/w2" $windows --shuffle-window 200 --tsv "$dir/both.tsv" --tsv "$dir/both.tsv" \
    --max-length 18
has "is refused" "$dir/err" "began with --shuffle-window 100, and now it is 200"
sed 's/"window": [0-9]*/"window": 8/' "$state" >"$dir/state" && mv "$dir/state" "$dir/w2/checkpoints/last/state.json"
# shellcheck disable=SC2086
train 1 "a window that no epoch has" "$dir/w2" $windows --tsv "$dir/both.tsv" --tsv "$dir/both.tsv" --max-length 18
has "is told" "$dir/err" "state.json: window 8 of an epoch that has 8"
train 0 "a dry run of windows" "$dir/dry" --tsv "$dir/both.tsv" --shuffle-window 64 --dry-run
check "counts the updates of the whole pass" \
    awk '/updates: about/ { n = $0; sub(/.*about /, "", n); split(n, w, " "); ok = w[1] * 200 > w[5] && w[5] > 7000 && w[5] < 12000 }
        END { exit !ok }' "$dir/err"
train 0 "an epoch of windows" "$dir/w3" --tsv "$dir/both.tsv" --shuffle-window 64 --after 1e
has "sees all pairs" "$dir/w3/checkpoints/last/state.json" '"sentences": 512'
is "is one epoch" "$(sed -n 's/.*"epochs": \([0-9.]*\).*/\1/p' "$dir/w3/config.json")" 1.0
awk '{ print "\t" $0 }' "$en" >"$dir/empty.tsv"
train 1 "windows with nothing but empty sides" "$dir/x" --tsv "$dir/empty.tsv" --shuffle-window 64 --after 1e
has "end the training" "$dir/err" "no pair to train on: of 512 read, 512 are empty on a side"

train 0 "an epoch of short pieces but for its end" "$dir/d1" --tsv "$dir/both.tsv" --source-sampling 0.1 \
    --target-sampling 0.1 --after 0.99e --save-freq 0
train 0 "then of whole ones, in fewer batches" "$dir/d1" --tsv "$dir/both.tsv" --after 2e
check "goes on" test -s "$dir/d1/weights.safetensors.gz"

# ---- text that is read once ----

train 0 "an unbroken training" "$dir/s1" --tsv "$dir/both.tsv" --shuffle-window 100 --after 40u
train 0 "15 updates on standard input" "$dir/s2" --tsv - --shuffle-window 100 --after 15u <"$dir/both.tsv"
same "the text is kept" "$dir/both.tsv" "$dir/s2/checkpoints/corpus-1.tsv"
train 0 "25 more without it" "$dir/s2" --tsv - --shuffle-window 100 --after 40u </dev/null
same_training "standard input, 15 + 25 = 40" "$dir/s1" "$dir/s2"

gzip -c "$en" >"$dir/en.gz"
left="echo x >>$dir/ran; zcat $dir/en.gz |"
train 0 "15 updates on commands" "$dir/s3" -t "$left" "cat $de |" --shuffle-window 100 --after 15u
train 0 "25 more" "$dir/s3" -t "$left" "cat $de |" --shuffle-window 100 --after 40u
is "the commands were run once" "$(cat "$dir/ran")" x
for file in weights ema moment1 moment2; do
    same "commands, 15 + 25 = 40: $file" "$dir/s1/checkpoints/last/$file.safetensors" \
        "$dir/s3/checkpoints/last/$file.safetensors"
done
rm "$dir/s3/checkpoints/corpus-1.target"
train 1 "going on without the kept text" "$dir/s3" -t "$left" "cat $de |" --shuffle-window 100 --after 41u
has "is refused" "$dir/err" "cannot open $dir/s3/checkpoints/corpus-1.target, the text of cat .* as this training read it"
sed 's/dog/dig/' "$dir/both.tsv" >"$dir/other.tsv"
train 2 "going on with another text of as many lines" "$dir/s1" --tsv "$dir/other.tsv" --shuffle-window 100 --after 41u
has "is refused" "$dir/err" "512 pairs (fingerprint .*now it is 512 pairs (fingerprint"

train 1 "a command that fails" "$dir/x" -t "cat $en; exit 5 |" "$de"
has "its status is told" "$dir/err" "exit 5 |\" failed with exit status 5"
untrained "a command that fails" "$dir/x"

# shellcheck disable=SC2016 # the command's own
train 130 "a signal that ends a command too, as ^C does" "$dir/x" -t 'kill -INT $PPID; kill -INT $$ |' "$de"
has "is a stop" "$dir/err" "stopped while the corpus was read"

gzip -c "$de" >"$dir/de.gz"
train 0 "gzip files" "$dir/s4" -t "$dir/en.gz" "$dir/de.gz" --after 3u
is "leave no text behind" "$(ls "$dir/s4/checkpoints")" "$(printf 'checkpoint-3\nlast')"

# ---- stopped and killed while it is written down ----

mkfifo "$dir/fifo"
# wait_for_text FOLDER PID: until some of it was written
wait_for_text() {
    while [ -z "$(find "$1/checkpoints" -name 'corpus-1.tsv.tmp-*' -size +0)" ] && kill -0 "$2"; do
        sleep 0.02
    done
}
# shellcheck disable=SC2086
"$tfm" train -m "$dir/stopped" $mini -v "$dir/spm" "$dir/spm" --tsv "$dir/fifo" 2>"$dir/err.stopped" &
pid=$!
{
    awk '{ for (i = 0; i < 20; i++) print }' "$dir/both.tsv" # more than pipes and buffers hold
    wait_for_text "$dir/stopped" $pid
    kill -TERM $pid
    for _ in 1 2 3 4 5 6 7 8 9; do
        kill -0 $pid && cat "$dir/both.tsv" && sleep 0.1
    done
} >"$dir/fifo" 2>"$dir/err"
wait $pid
is "a training is stopped while it reads a pipe" $? 143
has "which is told" "$dir/err.stopped" "stopped while the corpus was read"
untrained "a stopped one" "$dir/stopped"

# shellcheck disable=SC2086
"$tfm" train -m "$dir/k" $mini -v "$dir/spm" "$dir/spm" --tsv "$dir/fifo" --quiet &
pid=$!
{
    awk '{ for (i = 0; i < 20; i++) print }' "$dir/both.tsv" # more than pipes and buffers hold
    wait_for_text "$dir/k" $pid
    kill -KILL $pid
} >"$dir/fifo" 2>"$dir/err"
wait $pid
is "a training is killed while it reads a pipe" $? 137
check "half of the text is no text" test ! -e "$dir/k/checkpoints/corpus-1.tsv"
cat "$dir/both.tsv" >"$dir/fifo" &
train 0 "it begins again" "$dir/k" --tsv "$dir/fifo" --after 3u
same "with the whole text" "$dir/both.tsv" "$dir/k/checkpoints/corpus-1.tsv"
check "and nothing half-written is left" sh -c "! ls '$dir/k/checkpoints' | grep -q tmp"

finish
