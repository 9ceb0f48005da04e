#!/bin/sh
# A recurrent unit in place of the decoder's self-attention: trained, stopped and gone on with, translated with on any
# processor and in any batch, exported, looked into.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
en=$dir/toy/en

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$dir/toy/de" -m "$folder" --dim-model 32 --dim-ffn 64 --heads 2 --enc-depth 2 --dec-depth 2 \
        --vocab-size 200 --cpu-threads 2 --quiet "$@"
}
translate() {
    "$tfm" translate -m "$dir/model" "$@" <"$en"
}

# ---- a model that learns ----

run 0 "a training" train "$dir/model" --dec-cell ssru --mini-batch-words 1000 --after 220u --learn-rate 0.01 \
    --lr-warmup 30 --dropout 0 --exponential-smoothing 0.05
has "its decoder's cell is in config.json" "$dir/model/config.json" '"decoder_cell": "ssru"'
learned_toy
translate --beam-size 1 >"$dir/greedy"
is "greedy search translates all lines" "$(wc -l <"$dir/greedy")" 512

run 0 "what it is" "$tfm" inspect "$dir/model"
has "a recurrent unit" "$dir/out" 'past in decoder  *SSRU'
has "its tensors" "$dir/out" 'model.decoder.layers.1.ssru.forget.weight  *32 x 32 '
run 0 "its attention to the source" "$tfm" inspect attention -m "$dir/model" "the dog sees the house."
run 0 "the encoder's attention" "$tfm" inspect attention -m "$dir/model" --part encoder "the dog sees the house."
run 2 "the decoder's self-attention" "$tfm" inspect attention -m "$dir/model" --part decoder "the dog sees the house."
has "is not there, and the message says why" "$dir/err" 'has no self-attention: a recurrent unit (SSRU)'

# ---- stopped and gone on with ----

mini="--dec-cell ssru --mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --dropout 0.1 --activation-dropout 0.1"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini --after 40u
    check "15 updates" train "$dir/parts" $mini --after 15u
    run 2 "with self-attention it does not go on" train "$dir/parts" $mini --dec-cell attention --after 40u
    has "and the message names the option" "$dir/err" 'began with --dec-cell ssru, and now it is attention'
    check "25 more, on one thread" train "$dir/parts" $mini --after 40u --cpu-threads 1
}
for file in weights ema moment1 moment2; do
    same "15 + 25 updates: $file" "$dir/whole/checkpoints/last/$file.safetensors" \
        "$dir/parts/checkpoints/last/$file.safetensors"
done
same "15 + 25 updates: exported weights" "$dir/whole/weights.safetensors.gz" "$dir/parts/weights.safetensors.gz"

# ---- watched ----

head -n 20 "$en" >"$dir/valid.en"
head -n 20 "$dir/toy/de" >"$dir/valid.de"
# shellcheck disable=SC2086
run 0 "a training whose attention is watched" train "$dir/watched" $mini --valid-sets "$dir/valid.en" "$dir/valid.de" \
    --valid-metrics ce --valid-freq 4u --after 4u --watch-attention --profile --log "$dir/log"
is "the parts that have attention are told" "$(sed -n 's/.*\[attention\] Up. 4 : \([a-z]*\) :.*/\1/p' "$dir/log" | tr '\n' ' ')" \
    "encoder cross "
is "and drawn" "$(cd "$dir/watched/attention/update-4" && echo *)" "1-cross.svg 1-encoder.svg 2-cross.svg 2-encoder.svg"
# shellcheck disable=SC2086
run 0 "what a training would be" train "$dir/dry" $mini --dry-run

# ---- the preset ----

check "the preset student" train "$dir/student" --preset student --after 1u
has "has a recurrent unit" "$dir/student/config.json" '"decoder_cell": "ssru"'
has "and norms behind sublayers" "$dir/student/config.json" '"normalize_before": false'
check "the preset with both otherwise" train "$dir/other" --preset student --dec-cell attention --norm-position pre \
    --after 1u
has "has norms before sublayers" "$dir/other/config.json" '"normalize_before": true'
check "and no recurrent unit" sh -c "! grep decoder_cell '$dir/other/config.json'"

finish
