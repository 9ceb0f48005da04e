#!/bin/sh
# A decoder alone, which reads source and target as one sequence: trained, stopped and gone on with, translated with on any
# processor, in any batch and in int8, scored, aligned, looked into; and the options that do not go together.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
en=$dir/toy/en

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$dir/toy/de" -m "$folder" --arch decoder --dim-emb 32 --dim-ffn 64 --heads 2 --dec-depth 3 \
        --vocab-size 200 --cpu-threads 2 --quiet "$@"
}
translate() {
    "$tfm" translate -m "$dir/model" "$@" <"$en"
}

# ---- a model that learns ----

run 0 "a training" train "$dir/model" --mini-batch-words 1000 --after 220u --learn-rate 0.01 --lr-warmup 30 \
    --dropout 0 --exponential-smoothing 0.05
has "there is no encoder in config.json" "$dir/model/config.json" '"architecture": "decoder-only"'
learned_toy
learned_toy_int8

run 0 "scores of what was translated" "$tfm" score -m "$dir/model" "$en" "$dir/de"
is "one a line" "$(wc -l <"$dir/out")" 512
printf 'the dog sees the house.\tein Mann\n' >"$dir/forced"
run 0 "a translation that goes on from a given prefix" "$tfm" translate -m "$dir/model" --force-decode "$dir/forced"
has "has it" "$dir/out" '^ein Mann '
printf 'the dog sees the house.\n' >"$dir/line"
run 0 "an alignment" "$tfm" translate -m "$dir/model" --alignment hard --alignment-layer 0 "$dir/line"
has "is words to words" "$dir/out" '[0-9]-[0-9]'
run 2 "of a layer that is not there" "$tfm" translate -m "$dir/model" --alignment hard --alignment-layer 3 "$dir/line"
has "is refused" "$dir/err" 'must be from 0 to 2'
run 0 "samples" "$tfm" translate -m "$dir/model" --output-sampling topk 5 --n-best 3 "$dir/line"
run 0 "a shortlist" "$tfm" shortlist -m "$dir/model" -t "$en" "$dir/toy/de" --quiet
translate >"$dir/delist"
right=$(paste -d '|' "$dir/delist" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l)
check "with a shortlist $right are right" test "$right" -gt 480
run 0 "its weights in int8" "$tfm" convert "$dir/model" --precision int8 "$dir/model8"
run 0 "translate as well" "$tfm" translate -m "$dir/model8" "$dir/line"
run 0 "together with itself in fp32" "$tfm" translate -m "$dir/model" -m "$dir/model8" "$dir/line"

run 0 "what it is" "$tfm" inspect "$dir/model"
has "a decoder" "$dir/out" 'layers  *decoder 3, over source and target as one sequence'
has "without cross-attention" "$dir/out" 'model.decoder.layers.2.self_attn.q_proj.weight  *32 x 32 '
check "which has no tensor" sh -c '! grep -q encoder_attn "$1"' - "$dir/out"
run 0 "its attention" "$tfm" inspect attention -m "$dir/model" --part decoder --format tsv "the dog sees the house."
has "of what it predicts to the source" "$dir/out" '^2	1	14	▁d	14	<start>	0\.'
run 0 "its map" "$tfm" inspect attention -m "$dir/model" "the dog sees the house."
has "says that the source comes first" "$dir/out" '^Self-attention of a decoder alone: rows are the pieces of the source, '
printf 'house\tFluss\n' >"$dir/terms"
run 0 "a glossary" "$tfm" translate -m "$dir/model" --glossary "$dir/terms" "$dir/line"
has "places its terms by self-attention" "$dir/out" 'Fluss'
run 2 "its cross-attention" "$tfm" inspect attention -m "$dir/model" --part cross "the dog sees the house."
has "is not there, and the message says what is" "$dir/err" 'it can show the part decoder'

# ---- stopped and gone on with ----

mini="--mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --dropout 0.1 --attention-dropout 0.1
    --activation-dropout 0.1 --layer-drop 0.2 --positions rope"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini --after 40u
    check "15 updates" train "$dir/parts" $mini --after 15u
    run 2 "with an encoder it does not go on" train "$dir/parts" $mini --arch transformer --after 40u
    has "and the message names the option" "$dir/err" 'began with --arch decoder'
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
    --valid-freq 4u --after 4u --watch-attention --profile --log "$dir/log"
is "only the decoder's attention is told" \
    "$(sed -n 's/.*\[attention\] Up. 4 : \([a-z]*\) :.*/\1/p' "$dir/log" | tr '\n' ' ')" "decoder "
# shellcheck disable=SC2086
run 0 "what a training would be" train "$dir/dry" $mini --dry-run

# ---- options that do not go together ----

run 2 "encoder layers" train "$dir/none" --enc-depth 4
has "are not there" "$dir/err" '--enc-depth means nothing to --arch decoder'
run 2 "a recurrent unit" train "$dir/none" --dec-cell ssru
has "could not keep the source" "$dir/err" '--dec-cell means nothing to --arch decoder'
run 2 "a window" train "$dir/none" --attention-window 5
has "would hide it" "$dir/err" '--attention-window means nothing to --arch decoder'
run 2 "recurrent cells" train "$dir/none" --rnn-cell lstm
has "are another architecture's" "$dir/err" '--rnn-cell means nothing to --arch decoder'
run 2 "losses on heads" train "$dir/none" --head-loss decoder.0.0:entropy=0.1
has "are an encoder's and its decoder's" "$dir/err" '--head-loss means nothing to --arch decoder'
run 2 "guided alignment" train "$dir/none" --guided-alignment "$dir/in"
has "wants attention to an encoder" "$dir/err" '--guided-alignment means nothing to --arch decoder'

finish
