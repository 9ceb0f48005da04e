#!/bin/sh
# Variants of positions: each is trained, learns, is exported, translated with in any batch and on any processor, and
# looked into; a training goes on with the same and with no other.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
en=$dir/toy/en

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$dir/toy/de" -m "$folder" --dim-model 32 --dim-ffn 64 --heads 4 --enc-depth 1 --dec-depth 1 \
        --vocab-size 200 --cpu-threads 2 --mini-batch-words 1000 --learn-rate 0.01 --lr-warmup 30 --dropout 0 \
        --exponential-smoothing 0.05 --quiet "$@"
}

# variant NAME OPTION...: trains, translates and inspects a model
variant() {
    name=$1
    shift
    check "$name: is trained" train "$dir/$name" --after 150u "$@"
    "$tfm" translate -m "$dir/$name" <"$en" >"$dir/de"
    right=$(paste -d '|' "$dir/de" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l)
    check "$name: has learned what follows on what: $right of 512 are right" test "$right" -gt 400
    "$tfm" translate -m "$dir/$name" --mini-batch 7 --cpu-threads 3 --cpu ref <"$en" >"$dir/de7"
    same "$name: other batches, threads and kernels" "$dir/de7" "$dir/de"
    "$tfm" translate -m "$dir/$name" --precision int8 <"$en" >"$dir/de8"
    right=$(paste -d '|' "$dir/de8" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l)
    check "$name: in int8 $right are right" test "$right" -gt 400
    run 0 "$name: its attention" "$tfm" inspect attention -m "$dir/$name" --part decoder "the dog sees the house."
    run 0 "$name: what it is" "$tfm" inspect "$dir/$name"
}

# described PATTERN: of the model that was inspected last
described() {
    has "$name: inspect says $1" "$dir/out" "$1"
}

variant interleaved --positions interleaved
described 'positions  *interleaved'
variant learned --positions learned --max-positions 16
described 'positions  *learned, 16 a side'
described 'model.decoder.embed_positions.weight  *16 x 32'
variant rope --positions rope
described 'positions  *rope'
variant alibi --positions alibi
described 'positions  *alibi'
variant relative --positions relative
described 'model.encoder.relative_attention_bias.weight  *32 x 4'

# ---- lines longer than any in training ----

head -n 12 "$en" | tr '\n' ' ' >"$dir/long"
run 0 "learned: a line longer than the table" "$tfm" translate -m "$dir/learned" "$dir/long"
cp "$dir/out" "$dir/long.de"
cat "$en" "$dir/long" | "$tfm" translate -m "$dir/learned" | tail -n 1 >"$dir/long.among"
same "learned: among others it is translated alike" "$dir/long.among" "$dir/long.de"
run 0 "learned: tables stretched" "$tfm" translate -m "$dir/learned" --max-positions 40 "$dir/long"
run 0 "learned: as they were" "$tfm" translate -m "$dir/learned" --max-positions 16 "$en"
"$tfm" translate -m "$dir/learned" "$en" >"$dir/de"
same "learned: which changes nothing" "$dir/out" "$dir/de"
run 2 "rope: has no number of positions" "$tfm" translate -m "$dir/rope" --max-positions 40 "$dir/long"
has "rope: and says so" "$dir/err" 'its positions are "rope"'

# ---- refused ----

run 2 "RoPE in heads of one column" train "$dir/none" --positions rope --heads 32
has "is refused" "$dir/err" 'a head is 1 wide'

# ---- stopped and gone on with ----

check "an unbroken training of 30 updates" train "$dir/whole" --positions relative --dropout 0.1 --after 30u
check "12 updates" train "$dir/parts" --positions relative --dropout 0.1 --after 12u
run 2 "with other positions it does not go on" train "$dir/parts" --positions alibi --dropout 0.1 --after 30u
has "and the message names the option" "$dir/err" 'began with --positions relative, and now it is alibi'
check "18 more, on one thread" train "$dir/parts" --positions relative --dropout 0.1 --after 30u --cpu-threads 1
same "12 + 18 updates: weights" "$dir/whole/checkpoints/last/weights.safetensors" \
    "$dir/parts/checkpoints/last/weights.safetensors"

finish
