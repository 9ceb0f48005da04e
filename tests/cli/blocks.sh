#!/bin/sh
# What layers are made of: norms, activations, first values, layers left out. Models of each kind learn, translate the
# same on any processor and in any batch, also in int8, go on where they were stopped, and are what inspect says.
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
    "$tfm" translate "$@"
}

# right FILE: its lines that are as the toy language has them
right() {
    paste -d '|' "$1" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l
}
awk 'NR % 12 == 1' "$en" >"$dir/some.en"

# learns NAME OPTION...: a training with the options learns the toy language
learns() {
    name=$1
    shift
    run 0 "$name: a training" train "$dir/$name" --mini-batch-words 1000 --after 200u --learn-rate 0.01 --lr-warmup 30 \
        --dropout 0 --exponential-smoothing 0.05 "$@"
    for precision in fp32 int8; do
        translate -m "$dir/$name" --precision $precision <"$en" >"$dir/de"
        check "$name, $precision: $(right "$dir/de") of 512 are right" test "$(right "$dir/de")" -gt 440
        awk 'NR % 12 == 1' "$dir/de" >"$dir/some.de"
        translate -m "$dir/$name" --precision $precision --cpu ref --mini-batch 7 <"$dir/some.en" >"$dir/ref.de"
        same "$name, $precision: the same with the reference kernels in other batches" "$dir/ref.de" "$dir/some.de"
    done
}

learns swiglu --norm rms --norm-position pre --activation swiglu --dim-ffn 48
learns geglu --norm rms --norm-position post --activation geglu
learns gelu --norm-position post --activation gelu --init depth-scaled
learns gelu-tanh --norm rms --activation gelu-tanh --layer-drop 0.05
learns swish --norm-position pre --transformer-ffn-activation swish

has "swiglu in config.json" "$dir/swiglu/config.json" '"activation_function": "swiglu"'
has "RMS in config.json" "$dir/swiglu/config.json" '"normalization": "rms"'
has "gelu-tanh has Hugging Face's name in config.json" "$dir/gelu-tanh/config.json" '"activation_function": "gelu_new"'
has "layers left out" "$dir/gelu-tanh/config.json" '"decoder_layerdrop": 0.05,'
has "first values" "$dir/gelu/config.json" '"initialization": "depth-scaled"'
check "layer norm is not mentioned" sh -c "! grep normalization '$dir/gelu/config.json'"

run 0 "what a model is" "$tfm" inspect "$dir/swiglu"
has "its norm" "$dir/out" '  RMS norm  *pre-norm: before each sublayer'
has "its activation" "$dir/out" '  feed-forward width  48, swiglu'
has "its gate" "$dir/out" 'model.decoder.layers.1.fc3.weight  *48 x 32 '
check "no norm has a bias" sh -c "! grep 'norm.bias' '$dir/out'"
run 0 "another model" "$tfm" inspect "$dir/gelu-tanh"
has "its layer drop" "$dir/out" '  layers left out  *encoder 0.05, decoder 0.05 '
run 0 "a model's attention" "$tfm" inspect attention -m "$dir/geglu" "the dog sees the house."
run 0 "a conversion" "$tfm" convert "$dir/swiglu" "$dir/swiglu8" --precision int8
translate -m "$dir/swiglu" --precision int8 <"$dir/some.en" >"$dir/de8"
translate -m "$dir/swiglu8" <"$dir/some.en" >"$dir/de2"
same "translates as the model did in int8" "$dir/de2" "$dir/de8"

# ---- first values ----

# deep FOLDER OPTION...: 12 + 12 layers with post-norm; its loss after 80 updates
deep() {
    folder=$1
    shift
    train "$folder" --enc-depth 12 --dec-depth 12 --norm-position post --mini-batch-words 1000 --learn-rate 0.004 \
        --lr-warmup 50 --dropout 0 --after 80u --disp-freq 80u --log-json "$folder.log" "$@" &&
        sed -n 's/.*"event": "progress".*"loss": \([0-9.]*\),.*/\1/p' "$folder.log"
}
xavier=$(deep "$dir/deep-xavier")
scaled=$(deep "$dir/deep-scaled" --init depth-scaled)
check "deep post-norm learns with depth-scaled first values: the loss is $scaled, with others $xavier" \
    awk "BEGIN { exit !($scaled < $xavier - 0.5) }"

# ---- stopped and gone on with ----

mini="--norm rms --activation geglu --layer-drop 0.3 --init depth-scaled --mini-batch-words 200 --lr-warmup 20
      --learn-rate 0.01 --dropout 0.1 --activation-dropout 0.1"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini --after 40u
    check "15 updates" train "$dir/parts" $mini --after 15u
    run 2 "with another activation it does not go on" train "$dir/parts" $mini --activation swiglu --after 40u
    has "and the message names the option" "$dir/err" 'began with --activation geglu, and now it is swiglu'
    run 2 "nor with another norm" train "$dir/parts" $mini --norm layer --after 40u
    run 2 "nor with other first values" train "$dir/parts" $mini --init xavier --after 40u
    check "25 more, on one thread" train "$dir/parts" $mini --after 40u --cpu-threads 1
    check "without layer drop" train "$dir/undropped" $mini --layer-drop 0 --after 40u
}
for file in weights ema moment1 moment2; do
    same "15 + 25 updates: $file" "$dir/whole/checkpoints/last/$file.safetensors" \
        "$dir/parts/checkpoints/last/$file.safetensors"
done
check "layer drop decides digits" sh -c "! cmp -s '$dir/whole/checkpoints/last/weights.safetensors' \
    '$dir/undropped/checkpoints/last/weights.safetensors'"

# ---- wrong usage, wrong models ----

wrong "an unknown activation" "option --activation: .*tanh" train -m "$dir/x" -t "$en" "$en" --activation tanh
wrong "an unknown norm" "option --norm: .*batch" train -m "$dir/x" -t "$en" "$en" --norm batch
wrong "an unknown initialisation" "option --init: " train -m "$dir/x" -t "$en" "$en" --init zero
wrong "too high a probability" "option --layer-drop: " train -m "$dir/x" -t "$en" "$en" --layer-drop 1
cp -R "$dir/swiglu" "$dir/broken"
sed -i 's/"swiglu"/"swish"/' "$dir/broken/config.json"
run 1 "a model whose gate config.json does not know" translate -m "$dir/broken" "$en"
has "is refused by the name of a tensor" "$dir/err" 'fc3.weight'
sed -i 's/"swish"/"tanh"/' "$dir/broken/config.json"
run 1 "a model with an unknown activation" translate -m "$dir/broken" "$en"
has "is refused with those that are known" "$dir/err" 'activation_function is "tanh"; this version of tfm knows "relu", '

finish
