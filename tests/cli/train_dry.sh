#!/bin/sh
# tfm train --dry-run: what a training would be, the mistakes that a real start finds, and no trace of it.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
head -n 40 "$dir/toy/en" >"$dir/valid.en"
head -n 40 "$dir/toy/de" >"$dir/valid.de"
mkdir "$dir/tmp" "$dir/models"
TMPDIR=$dir/tmp
export TMPDIR
# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$folder" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 \
        --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --cpu-threads 2 --valid-sets "$dir/valid.en" \
        "$dir/valid.de" --valid-metrics ce --after 8u "$@"
}
# snapshot FOLDER: all names, kinds, times and links in it, and the bytes of the files
snapshot() {
    (cd "$1" && find . -printf '%p %y %m %s %T@ %l\n' | sort && find . -type f -exec cksum {} + | sort)
}

snapshot "$dir/models" >"$dir/before"
run 0 "a training that is not there yet" train "$dir/models/sub/fresh" --dry-run --log "$dir/models/log" \
    --log-json "$dir/models/log.json"
snapshot "$dir/models" >"$dir/after"
same "no folder and no log is made" "$dir/before" "$dir/after"
is "no temporary file is left" "$(ls -A "$TMPDIR")" ""
number='[0-9]*\.[0-9]*'
has "pairs kept and left out" "$dir/err" "corpus: 512 of 512 pairs, [0-9]* source and [0-9]* target pieces; left out: 0 empty"
has "parameters" "$dir/err" "model: 1+1 layers, width 16, .* [0-9]* parameters; 2 lanes"
has "updates" "$dir/err" "updates: about [0-9]* a pass of [0-9]* target tokens"
has "memory" "$dir/err" "memory: at most [0-9]* MiB: weights and moments $number, gradients $number, activations $number"
has "disk" "$dir/err" "disk: $number MiB a checkpoint, of which 3 may be kept at once; $number MiB the model"
has "time" "$dir/err" "time: about 0:00:[0-9][0-9] a pass, 0:0[0-9]:[0-9][0-9] to --after, .*; from [0-9]* updates at [1-9][0-9]* target tokens a second"
has "the vocabulary has its name" "$dir/err" "training the vocabulary $dir/models/sub/fresh/vocab.spm"
check "temporary names do not show" sh -c "! grep -q dry-run-'[^ ]' '$dir/err'"
updates=$(sed -n 's/.*updates: about \([0-9]*\) a pass.*/\1/p' "$dir/err")

run 0 "the same in earnest" train "$dir/models/real" --after 1e --log-json "$dir/log.json"
is "a pass has as many updates" "$(readlink "$dir/models/real/checkpoints/last")" "checkpoint-$updates"

# ---- a training that is there ----

snapshot "$dir/models" >"$dir/before"
run 0 "one that is there" train "$dir/models/real" --after 3e --dry-run
has "it says where it stands" "$dir/err" "it stands at update $updates, 1.00 epochs; it would go on from there"
has "and what there is to do" "$dir/err" "time: about 0:00:[0-9][0-9] a pass, 0:0[0-9]:[0-9][0-9] to --after"
run 0 "one that is finished" train "$dir/models/real" --after 1e --dry-run
has "that it is finished" "$dir/err" "it is finished: nothing would be trained"
snapshot "$dir/models" >"$dir/after"
same "the folder is as it was" "$dir/before" "$dir/after"
run 0 "without an end" train "$dir/models/real" --after 0 --dry-run
has "there is only the time of a pass" "$dir/err" "time: about 0:00:[0-9][0-9] a pass, without"
run 0 "--quiet" train "$dir/models/real" --dry-run --quiet
is "--quiet prints nothing" "$(cat "$dir/err" "$dir/out")" ""

# ---- mistakes ----

# same_error NAME FOLDER OPTION...: the sentence of a real start
same_error() {
    error_name=$1
    shift
    train "$@" 2>&1 | tail -n 1 >"$dir/real"
    train "$@" --dry-run 2>&1 | tail -n 1 >"$dir/dry"
    has "$error_name: an error" "$dir/dry" "^tfm train: "
    same "$error_name: that of a real start" "$dir/real" "$dir/dry"
}
same_error "another seed" "$dir/models/real" --seed 2
same_error "another width" "$dir/models/real" --dim-model 32
mkdir "$dir/models/alone" && cp "$dir/models/real/config.json" "$dir/models/alone"
same_error "a model without checkpoints" "$dir/models/alone"
rm -r "$dir/models/alone"
mkdir "$dir/models/copied" && cp -RL "$dir/models/real/." "$dir/models/copied"
same_error "a copy that lost its links" "$dir/models/copied"
rm -r "$dir/models/copied"
same_error "a file in the place of the folder" "$dir/valid.en"
same_error "a validation set that is not there" "$dir/models/none" --valid-sets "$dir/nothing" "$dir/nothing"
head -n 500 "$dir/toy/de" >"$dir/short"
same_error "a corpus of unequal lengths" "$dir/models/none" -t "$dir/toy/en" "$dir/short"
rm -rf "$dir/models/none"
if command -v flock >/dev/null; then
    run 1 "a training that is running" flock "$dir/models/real/checkpoints" "$tfm" train -t "$dir/toy/en" "$dir/toy/de" \
        -m "$dir/models/real" --dry-run
    has "a training that is running: it says so" "$dir/err" "another training is running in $dir/models/real"
else
    skip "a training that is running" "no flock"
fi
snapshot "$dir/models" >"$dir/after"
# What the comparison itself made and removed has changed the time of the folder above.
sed '/^\. /d' "$dir/before" >"$dir/before1"
sed '/^\. /d' "$dir/after" >"$dir/after1"
same "after all that the folder is as it was" "$dir/before1" "$dir/after1"
is "and no temporary file is left" "$(ls -A "$TMPDIR")" ""

finish
