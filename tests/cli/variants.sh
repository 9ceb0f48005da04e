#!/bin/sh
# Variants of positions and attention: each is trained, learns, is exported, translated with in any batch and on any processor, and
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
variant multi-query --kv-heads 1
described 'attention heads  *4 of width 8, 1 of keys and values'
described 'model.decoder.layers.0.encoder_attn.k_proj.weight  *8 x 32'
variant unscaled --attention-scale none --heads 32 --kv-heads 8
described 'attention scores  *dot products, not scaled'
variant window --attention-window 2 --positions alibi
described 'self-attention  *sees 2 pieces to each side'
variant additive --attention additive
described 'attention scores  *additive'
described 'model.encoder.layers.0.self_attn.score_proj.weight  *4 x 8'

# Nothing of another piece than those in the window is looked at.
"$tfm" inspect attention -m "$dir/window" --part encoder --format tsv "the dog sees the house. the cat likes a man." \
    >"$dir/weights"
far=$(awk -F '\t' 'NR > 1 && ($3 - $5 > 2 || $5 - $3 > 2) { n++; sum += $7 } END { print (n > 0), sum + 0 }' "$dir/weights")
is "window: weights outside are 0" "$far" "1 0"
"$tfm" train -t "$en" "$dir/toy/de" -m "$dir/full" --dim-model 32 --heads 4 --kv-heads 4 --vocab-size 200 --after 1u --quiet
check "as many heads of keys as of queries need no field" sh -c "! grep num_key_value_heads '$dir/full/config.json'"

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
has "is refused" "$dir/err" 'tfm train: --positions rope .* a head is 1 wide with --dim-model 32 and --heads 32'
run 2 "RoPE with additive attention" train "$dir/none" --positions rope --attention additive
has "is refused" "$dir/err" '--positions rope is for --attention dot, and this is additive'
run 2 "a number of positions that are not learned" train "$dir/none" --positions alibi --max-positions 16
has "is refused" "$dir/err" '--max-positions is for --positions learned, and this is alibi'

run 2 "heads that do not divide heads" train "$dir/none" --kv-heads 3
has "are refused" "$dir/err" '--kv-heads is 3; it can be a number that divides --heads 4'
run 2 "additive attention without a scale" train "$dir/none" --attention additive --attention-scale none
has "is refused" "$dir/err" 'tfm train: --attention-scale none .* there is no scale to leave out'

# ---- stopped and gone on with ----

check "an unbroken training of 30 updates" train "$dir/whole" --positions relative --dropout 0.1 --after 30u
check "12 updates" train "$dir/parts" --positions relative --dropout 0.1 --after 12u
run 2 "with other positions it does not go on" train "$dir/parts" --positions alibi --dropout 0.1 --after 30u
has "and the message names the option" "$dir/err" 'began with --positions relative, and now it is alibi'
check "18 more, on one thread" train "$dir/parts" --positions relative --dropout 0.1 --after 30u --cpu-threads 1
same "12 + 18 updates: weights" "$dir/whole/checkpoints/last/weights.safetensors" \
    "$dir/parts/checkpoints/last/weights.safetensors"

# ---- many heads and short pairs ----

awk 'BEGIN { srand(1)
    for (i = 0; i < 400; i++) {
        line = ""
        for (j = 0; j < 16; j++)
            line = line substr("abcdefghijklmnopqrst", int(rand() * 20) + 1, 1) " "
        print line
    } }' >"$dir/letters"
run 0 "the weights of many heads have room" "$tfm" train --quiet -m "$dir/heads" -t "$dir/letters" "$dir/letters" \
    --vocab-type bpe --vocab-size 44 --heads 128 --max-length 16 --mini-batch-words 4000 --cpu-threads 1 --after 1u

finish
