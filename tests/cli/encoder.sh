#!/bin/sh
# An encoder alone, a masked language model: trained on plain text, stopped and gone on with, asked to fill gaps, looked
# into; the start of a translation model; and what does not go together.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
en=$dir/toy/en
cat "$en" "$dir/toy/de" >"$dir/both"
sizes="--dim-emb 32 --dim-ffn 64 --heads 2 --enc-depth 2 --positions sinusoidal --cpu-threads 2"

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    # shellcheck disable=SC2086 # several options
    "$tfm" train -m "$folder" --arch encoder $sizes "$@"
}
predict() {
    "$tfm" inspect predict -m "$dir/model" "$@"
}
# checkpoints NAME FOLDER FOLDER: the last ones have the same weights and moments
checkpoints() {
    for file in weights ema moment1 moment2; do
        same "$1: $file" "$2/checkpoints/last/$file.safetensors" "$3/checkpoints/last/$file.safetensors"
    done
}

# ---- a model that learns ----

run 0 "a training" train "$dir/model" -t "$dir/both" --vocab-type bpe --vocab-size 250 --mini-batch-words 1000 \
    --after 400u --learn-rate 0.01 --lr-warmup 30 --dropout 0 --exponential-smoothing 0.05 --valid-sets "$en" --valid-freq 200
has "reads one text" "$dir/err" "corpus: 1024 of 1024 lines, [0-9]* pieces; left out: 0 empty, 0 longer"
has "it is validated by what it predicts" "$dir/err" "\[valid\] .* : accuracy : 0.[0-9]* : new best"
is "and by nothing else" "$(sed -n 's/.*\[valid\] Ep. [0-9]* : Up. 400 : \([a-z]*\) .*/\1/p' "$dir/err" | tr '\n' ' ')" \
    "accuracy ce "
has "there is no decoder in config.json" "$dir/model/config.json" '"architecture": "encoder-only"'
has "but a mask" "$dir/model/config.json" '"mask_token_id": 2'
has "and where it comes from" "$dir/model/config.json" '"text": "both"'
has "with the rate of masks" "$dir/model/config.json" '"mask_rate": 0.15'

# finds TEXT PIECE: the most probable piece for its one mask
finds() {
    is "$1: $2" "$(predict -k 1 "$1" | sed -n 's/^  0\.[0-9]*  \([^ ]*\) .*/\1/p')" "$2"
}
finds "the dog sees a <mask> door." "▁red"
finds "the dog sees a red <mask>." "▁door"
finds "my friend has two <mask>." "▁cups"
finds "my <mask> knows the house." "▁friend"
finds "<mask> teacher knows the house." "▁our"
finds "ein Mann sieht das <mask>." "▁Haus"
run 0 "four that are as good" predict -k 4 "the <mask> likes some bread."
is "are the four" "$(sed -n 's/^  0\.[0-9]*  \(▁[a-z]*\) .*/\1/p' "$dir/out" | LC_ALL=C sort | tr '\n' ' ')" \
    "▁bird ▁cat ▁child ▁dog "
check "about alike" awk 'NR > 1 && ($1 < 0.1 || $1 > 0.4) { exit 1 }' "$dir/out"
run 0 "two gaps" predict -k 1 "my <mask> has two <mask>."
has "are filled each for itself" "$dir/out" "▁cups  my <mask> has two cups\.$"
has "with the other hidden" "$dir/out" "▁friend  my friend has two <mask>\.$"
printf 'the dog sees a <mask> door.\nmy friend has two <mask>.\n' >"$dir/lines"
predict --format json <"$dir/lines" >"$dir/json" 2>"$dir/err"
is "lines of standard input give a JSON object each" "$(grep -c '^{"text": ".*", "masks": \[{"place": [0-9]*, "predictions": \[{"piece": "▁' "$dir/json")" 2
predict --format json --cpu ref <"$dir/lines" >"$dir/ref"
same "the reference kernels predict the same" "$dir/json" "$dir/ref"
run 0 "into a file" sh -c "'$tfm' inspect predict -m '$dir/model' --format json -o '$dir/file' <'$dir/lines'"
same "the same" "$dir/file" "$dir/json"
run 0 "its weights in int8" "$tfm" convert "$dir/model" --precision int8 "$dir/model8"
run 0 "predict as well" "$tfm" inspect predict -m "$dir/model8" -k 1 "the dog sees a <mask> door."
has "the same piece" "$dir/out" "▁red"
run 2 "a text without a gap" predict "the dog"
has "is refused" "$dir/err" 'there is no <mask> in "the dog"'
printf 'a <mask>\n\n' >"$dir/gaps"
run 2 "a line without one" sh -c "'$tfm' inspect predict -m '$dir/model' <'$dir/gaps'"
has "is named" "$dir/err" 'standard input, line 2: there is no <mask>'
wrong "two texts" "unexpected argument 'b': quote a text" inspect predict -m "$dir/model" a b
mini_model
run 2 "a model that translates" "$tfm" inspect predict -m "$model" "a <mask>"
has "fills no gaps" "$dir/err" "architecture is encoder-decoder"

run 0 "what it is" "$tfm" inspect "$dir/model"
has "an encoder" "$dir/out" 'layers  *encoder 2, a masked language model of one text'
has "with a mask" "$dir/out" 'ids  *</s> 0, <unk> 1, <mask> 2'
check "and nothing of a decoder" sh -c '! grep -q "model.decoder\|past in decoder\|both sides" "$1"' - "$dir/out"
run 0 "its attention" "$tfm" inspect attention -m "$dir/model" --format tsv "the <mask> sees the house."
has "of a gap to its neighbours" "$dir/out" '^0	0	1	<mask>	2	▁sees	0\.'
for command in translate score; do
    run 2 "tfm $command" "$tfm" $command -m "$dir/model" "$en" "$en"
    has "tells what it does instead" "$dir/err" 'encoder alone, which fills gaps in a text (tfm inspect predict)'
done
run 2 "translations to compare" "$tfm" convert --valid-sets "$en" "$en" "$dir/model" "$dir/compared"
has "which it has none of" "$dir/err" 'encoder alone, which fills gaps in a text'
check "and nothing is written" test ! -e "$dir/compared"

# ---- stopped and gone on with ----

mini="--mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --dropout 0.1 --layer-drop 0.2 --source-sampling 0.3
    --vocab-size 100 --valid-freq 10 --quiet --optimizer-delay 2"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini -t "$en" --valid-sets "$en" --after 40u
    check "15 updates" train "$dir/parts" $mini -t "$en" --valid-sets "$en" --after 15u
    run 2 "at another rate" train "$dir/parts" $mini -t "$en" --after 40u --mask-rate 0.3
    has "it does not go on" "$dir/err" 'began with --mask-rate 0.15, and now it is 0.3'
    run 2 "and not with a decoder" "$tfm" train -m "$dir/parts" $mini $sizes -t "$en" "$en" --after 40u
    has "or another kind of text" "$dir/err" 'began with --arch encoder'
    check "25 more, on one thread" train "$dir/parts" $mini -t "$en" --valid-sets "$en" --after 40u --cpu-threads 1
    checkpoints "15 + 25 = 40" "$dir/whole" "$dir/parts"
    is "scores: the same" "$(grep -o '"ce".*' "$dir/whole/checkpoints/last/state.json")" \
        "$(grep -o '"ce".*' "$dir/parts/checkpoints/last/state.json")"
    check "another rate" train "$dir/rate" $mini -t "$en" --after 40u --mask-rate 0.5
    check "is another training" sh -c "! cmp -s '$dir/whole/checkpoints/last/weights.safetensors' \
        '$dir/rate/checkpoints/last/weights.safetensors'"

    # ---- in which ways text comes ----

    awk '{ print "x\t" $0 "\t0.5" }' "$en" >"$dir/wide.tsv"
    gzip -c "$en" >"$dir/en.gz"
    check "gzip" train "$dir/way1" $mini -t "$dir/en.gz" -v "$dir/whole/vocab.spm" --valid-tsv "$dir/wide.tsv" --tsv-fields 2 --after 40u
    checkpoints "gzip and a column" "$dir/whole" "$dir/way1"
    check "a column" train "$dir/way2" $mini --tsv "$dir/wide.tsv" --tsv-fields 2 -v "$dir/whole/vocab.spm" --valid-sets "$dir/en.gz" --after 40u
    same "a column gives the same model" "$dir/whole/weights.safetensors.gz" "$dir/way2/weights.safetensors.gz"
    check "standard input" sh -c "'$tfm' train --arch encoder -m '$dir/way3' $sizes $(echo $mini) -t - -v '$dir/whole/vocab.spm' --valid-sets '$en' --after 40u <'$en'"
    checkpoints "standard input" "$dir/whole" "$dir/way3"
    check "a command, in windows, with weights" train "$dir/way4" $mini -t "cat $en |" -t "$en" --weights 1,0.5 --shuffle-window 100 --after 20u
    run 0 "what a training would be" train "$dir/dry" $mini -t "$en" --dry-run
    check "leaves nothing" test ! -e "$dir/dry"
    echo "the <mask> sees the house." >"$dir/lines"
    run 0 "attention is watched, and heads are held to something" train "$dir/watched" -t "$en" --valid-sets "$en" --valid-freq 4u \
        --after 4u --vocab-size 100 --watch-attention "$dir/lines" --head-loss encoder.0.1:entropy=0.1 --profile --log "$dir/log"
    is "the encoder's is told" "$(sed -n 's/.*\[attention\] Up. 4 : \([a-z]*\) :.*/\1/p' "$dir/log" | tr '\n' ' ')" "encoder "
    has "and drawn, of a sentence with a mask" "$dir/watched/attention/update-4/1-encoder.svg" '&lt;mask'
}

# ---- vocabularies ----

run 0 "a vocabulary without a mask" train "$dir/given" -t "$en" -v "$model/vocab.spm" --after 2u
n=$("$tfm" inspect --format json "$model" | sed -n 's/^ *"vocab_size": \([0-9]*\).*/\1/p')
has "gets one behind its last piece" "$dir/given/config.json" "\"mask_token_id\": $n"
run 0 "goes on with it" train "$dir/given" -t "$en" -v "$model/vocab.spm" --after 4u
run 0 "and is asked" "$tfm" inspect predict -m "$dir/given" "the <mask>."
run 2 "two vocabularies" train "$dir/none" -t "$en" -v "$model/vocab.spm" "$dir/model/vocab.spm"
has "are one too many" "$dir/err" "plain text has one vocabulary: found .* and .* (--vocabs)"
sed 's/"mask_token_id": 2/"mask_token_id": 3/' "$dir/model/config.json" >"$dir/config" && cp -R "$dir/model" "$dir/broken" &&
    mv "$dir/config" "$dir/broken/config.json"
run 1 "a mask that is another piece" "$tfm" inspect "$dir/broken"
has "is no mask" "$dir/err" "<mask> is piece 2 of the vocabulary .*, but mask_token_id in config.json is 3"

# ---- the start of a translation model ----

# pair FOLDER OPTION...
pair() {
    folder=$1
    shift
    # shellcheck disable=SC2086 # several options
    "$tfm" train -m "$folder" -t "$en" "$dir/toy/de" $sizes --dec-depth 2 --mini-batch-words 1000 --learn-rate 0.01 \
        --lr-warmup 30 --dropout 0 --exponential-smoothing 0 --disp-freq 1u "$@"
}
# cost N: that of update N in the last log
cost() {
    sed -n "s/.*Up. $1 : .* Cost \([0-9.]*\) .*/\1/p" "$dir/err"
}
run 0 "a translation model" pair "$dir/plain" -v "$dir/model/vocab.spm" --after 40u
plain=$(cost 40)
run 0 "the same, begun with the encoder" pair "$dir/begun" --pretrained "$dir/model" --after 30u
has "what was taken is told" "$dir/err" "pretrained: taken: [0-9]* parameters: model.shared.weight, .*model.encoder.layers.1$"
has "and what was not" "$dir/err" "at random: [0-9]* parameters: .*model.decoder.layers.0, model.decoder.layers.1$"
same "its vocabulary is the encoder's" "$dir/begun/vocab.spm" "$dir/model/vocab.spm"
has "the model says where it comes from" "$dir/begun/config.json" '"pretrained": "model"'
rm -rf "$dir/gone" && mv "$dir/model" "$dir/gone"
run 0 "it goes on where the encoder is gone" pair "$dir/begun" --pretrained "$dir/model" --after 40u
mv "$dir/gone" "$dir/model"
check "it has learned faster: $(cost 40) against $plain" sh -c "awk 'BEGIN { exit !($(cost 40) < $plain) }'"
has "and still says where it comes from" "$dir/begun/config.json" '"pretrained": "model"'
run 0 "without that option" pair "$dir/begun" --after 42u
has "it is remembered" "$dir/begun/config.json" '"pretrained": "model"'
run 0 "a model that goes on with other text" pair "$dir/tuned" --pretrained "$dir/begun/checkpoints/last" --after 1u
check "begins where that one was: $(cost 1) after $plain" sh -c "awk 'BEGIN { exit !($(cost 1) < $plain) }'"
has "the checkpoint is named" "$dir/tuned/config.json" '"pretrained": "checkpoint-42"'
run 0 "and an encoder with its" train "$dir/back" -t "$en" --pretrained "$dir/begun" --after 1u
has "leaves the decoder" "$dir/err" "of no use here: [0-9]* parameters: .*model.decoder.layers.1"
run 2 "other sizes" pair "$dir/none" --pretrained "$dir/model" --dim-ffn 32
has "are refused with the tensor and both shapes" "$dir/err" \
    "model.encoder.layers.0.fc1.weight is \[64, 32\], and should be \[32, 32\]"
run 2 "other heads" pair "$dir/none" --pretrained "$dir/model" --heads 4
has "would compute something else" "$dir/err" "encoder_attention_heads of its config.json is not that of this training"
run 2 "a vocabulary of its own" pair "$dir/none" --pretrained "$dir/model" -v "$dir/model/vocab.spm"
has "is not for it" "$dir/err" "found --pretrained and --vocabs"
run 1 "no such model" pair "$dir/none" --pretrained "$dir/nowhere"
has "is told by name" "$dir/err" "cannot open $dir/nowhere"
run 2 "a model without a mask" train "$dir/none2" -t "$en" --pretrained "$model"
has "cannot begin one" "$dir/err" "its vocabulary has no <mask>"

# ---- what does not go together ----

run 2 "two files" train "$dir/none" -t "$en" "$en"
has "are a pair" "$dir/err" "a corpus .* of --arch encoder is one text: found $en and $en"
run 2 "two files to validate on" train "$dir/none" -t "$en" --valid-sets "$en" "$en"
has "are a pair, too" "$dir/err" "a validation set .* of --arch encoder is one text"
run 2 "one file" "$tfm" train -m "$dir/none" -t "$en"
has "is no pair" "$dir/err" "a corpus .* needs two files, source and target"
run 2 "columns that nobody named" train "$dir/none" --tsv "$dir/wide.tsv"
has "are asked for" "$dir/err" "need the column of the text: --tsv-fields N"
run 2 "two columns" train "$dir/none" --tsv "$dir/wide.tsv" --tsv-fields 1,2
has "are one too many" "$dir/err" "found '1,2', expected the number of one column"
run 1 "a column that is not there" train "$dir/none" --tsv "$dir/wide.tsv" --tsv-fields 5
has "is told with its line" "$dir/err" "wide.tsv, line 1: found 3 columns, expected at least 5 (--tsv-fields 5)"
run 2 "metrics of translations" train "$dir/none" -t "$en" --valid-sets "$en" --valid-metrics ce,bleu
has "there are none" "$dir/err" "--valid-metrics names bleu, which is of translations"
for option in "--dec-depth 2" "--dec-cell ssru" "--rnn-cell lstm" "--max-length-ratio 2" "--target-sampling 0.1" \
    "--tied-embeddings target"; do
    # shellcheck disable=SC2086
    run 2 "$option" train "$dir/none" -t "$en" $option
    has "is for others" "$dir/err" "${option% *}.* means nothing to --arch encoder"
done
run 2 "--mask-rate" pair "$dir/none" --mask-rate 0.2
has "is for it alone" "$dir/err" "--mask-rate means nothing to --arch transformer"
wrong "a rate above 1" "option --mask-rate: found '2', expected a number from 0.001 to 1" train -m x --arch encoder -t a --mask-rate 2
: >"$dir/empty"
run 1 "an empty text" train "$dir/none3" -t "$dir/empty" -v "$dir/model/vocab.spm"
has "has nothing to train on" "$dir/err" "empty: no line to train on: of 0 read, 0 are empty, 0 longer"

finish
