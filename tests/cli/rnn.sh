#!/bin/sh
# Recurrent layers in place of the Transformer's: trained, stopped and gone on with, translated with on any processor, in
# any batch and in int8, scored, looked into; and the options that do not go together.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
en=$dir/toy/en

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$dir/toy/de" -m "$folder" --arch rnn --dim-emb 32 --enc-depth 2 --dec-depth 2 \
        --vocab-size 200 --cpu-threads 2 --quiet "$@"
}
translate() {
    "$tfm" translate -m "$dir/model" "$@" <"$en"
}

# ---- a model that learns ----

run 0 "a training" train "$dir/model" --mini-batch-words 1000 --after 220u --learn-rate 0.01 --lr-warmup 30 \
    --dropout 0 --exponential-smoothing 0.05
has "its layers are in config.json" "$dir/model/config.json" '"layer_type": "rnn"'
learned_toy
learned_toy_int8
run 0 "scores of what was translated" "$tfm" score -m "$dir/model" "$en" "$dir/de"
is "one a line" "$(wc -l <"$dir/out")" 512

run 0 "what it is" "$tfm" inspect "$dir/model"
has "a recurrent network" "$dir/out" ': recurrent network, '
has "its cells" "$dir/out" 'cells  *GRU, in the encoder forwards and backwards, 16 wide each'
has "its attention" "$dir/out" 'attention  *additive'
has "its tensors" "$dir/out" 'model.encoder.layers.1.rnn.reverse.hidden.weight  *48 x 16 '
run 0 "its attention to the source" "$tfm" inspect attention -m "$dir/model" "the dog sees the house."
run 2 "the encoder's self-attention" "$tfm" inspect attention -m "$dir/model" --part encoder "the dog sees the house."
has "is not there, and the message says why" "$dir/err" 'the encoder of this model has no self-attention: recurrent'

# ---- stopped and gone on with ----

mini="--rnn-cell lstm --rnn-attention dot --mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --dropout 0.1
    --attention-dropout 0.1 --activation-dropout 0.1"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini --after 40u
    check "15 updates" train "$dir/parts" $mini --after 15u
    run 2 "with another cell it does not go on" train "$dir/parts" $mini --rnn-cell gru --after 40u
    has "and the message names the option" "$dir/err" 'began with --rnn-cell lstm, and now it is gru'
    run 2 "nor as a Transformer" train "$dir/parts" --arch transformer --after 40u --mini-batch-words 200
    has "which is what the message says" "$dir/err" 'began with --arch rnn, and now it is transformer'
    check "25 more, on one thread" train "$dir/parts" $mini --after 40u --cpu-threads 1
}
for file in weights ema moment1 moment2; do
    same "15 + 25 updates: $file" "$dir/whole/checkpoints/last/$file.safetensors" \
        "$dir/parts/checkpoints/last/$file.safetensors"
done

# ---- watched ----

head -n 20 "$en" >"$dir/valid.en"
head -n 20 "$dir/toy/de" >"$dir/valid.de"
# shellcheck disable=SC2086
run 0 "a training whose attention is watched" train "$dir/watched" $mini --valid-sets "$dir/valid.en" "$dir/valid.de" \
    --valid-metrics ce --valid-freq 4u --after 4u --watch-attention --profile --log "$dir/log"
is "only one attention is told" "$(sed -n 's/.*\[attention\] Up. 4 : \([a-z]*\) :.*/\1/p' "$dir/log" | tr '\n' ' ')" "cross "
# shellcheck disable=SC2086
run 0 "what a training would be" train "$dir/dry" $mini --dry-run

# ---- options that do not go together ----

run 2 "heads" train "$dir/none" --heads 4
has "are the Transformer's" "$dir/err" '--heads means nothing to --arch rnn'
printf 'heads 4\n' >"$dir/recipe"
run 2 "heads of a recipe" train "$dir/none" --recipe "$dir/recipe"
has "are too" "$dir/err" '--heads means nothing to --arch rnn'
run 2 "norms" train "$dir/none" --norm-position pre
has "too" "$dir/err" '--norm-position means nothing to --arch rnn'
run 2 "positions" train "$dir/none" --positions rope
has "as well" "$dir/err" '--positions means nothing to --arch rnn'
run 2 "learned positions" train "$dir/none" --max-positions 16
has "are as well" "$dir/err" '--max-positions means nothing to --arch rnn'
run 2 "an LSTM" train "$dir/none" --arch transformer --rnn-cell lstm
has "is not" "$dir/err" '--rnn-cell means nothing to --arch transformer'

finish
