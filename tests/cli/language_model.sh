#!/bin/sh
# A decoder alone that is trained on one text, a language model: it learns a text and goes on with beginnings of it, in any
# batch, on any processor and in int8; draws; scores texts; is stopped and gone on with, and looked into; and what does not
# go together.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
toy_corpus "$dir/toy"
de=$dir/toy/de
sizes="--dim-emb 32 --dim-ffn 64 --heads 2 --dec-depth 2 --positions sinusoidal --cpu-threads 2"

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    # shellcheck disable=SC2086 # several options
    "$tfm" train -m "$folder" --arch decoder $sizes "$@"
}
tell() {
    "$tfm" translate -m "$dir/model" "$@"
}
# known FILE: how many of its lines are sentences of the text
known() {
    grep -c -x -F -f "$de" "$1"
}
# checkpoints NAME FOLDER FOLDER: the last ones have the same weights and moments
checkpoints() {
    for file in weights ema moment1 moment2; do
        same "$1: $file" "$2/checkpoints/last/$file.safetensors" "$3/checkpoints/last/$file.safetensors"
    done
}

# ---- a model that learns ----

run 0 "a training" train "$dir/model" -t "$de" --vocab-size 100 --mini-batch-words 1000 --after 300u --learn-rate 0.01 \
    --lr-warmup 30 --dropout 0 --label-smoothing 0 --exponential-smoothing 0.05 --valid-sets "$de" --valid-freq 300 --f32
has "reads one text" "$dir/err" "corpus: 512 of 512 lines, [0-9]* pieces; left out: 0 empty, 0 longer"
is "it is validated by what it predicts" \
    "$(sed -n 's/.*\[valid\] Ep. [0-9]* : Up. 300 : \([a-z]*\) .*/\1/p' "$dir/err" | tr '\n' ' ')" "ce perplexity "
valid=$(sed -n 's/.*Up. 300 : perplexity : \([0-9.]*\) .*/\1/p' "$dir/err")
has "config.json tells what it is" "$dir/model/config.json" '"task": "language-model"'
has "and where it comes from" "$dir/model/config.json" '"text": "de"'
check "without masks" sh -c '! grep -q mask "$1"' - "$dir/model/config.json"

cut -d ' ' -f 1-3 "$de" | sort -u >"$dir/begun"
tell -b 1 "$dir/begun" >"$dir/told"
is "a line of output for each of input" "$(wc -l <"$dir/told")" "$(wc -l <"$dir/begun")"
check "greedy search goes on as the text does: $(known "$dir/told") of 64" test "$(known "$dir/told")" -ge 62
check "each line begins with what was given" \
    sh -c 'paste -d "|" "$1" "$2" | awk -F "|" "index(\$2, \$1) != 1 { exit 1 }"' - "$dir/begun" "$dir/told"
tell "$dir/begun" >"$dir/beam"
check "so does a beam: $(known "$dir/beam")" test "$(known "$dir/beam")" -ge 62
tell --mini-batch 7 --cpu-threads 3 "$dir/begun" >"$dir/again"
same "other batches and threads" "$dir/again" "$dir/beam"
tell --cpu ref "$dir/begun" >"$dir/again"
same "the reference kernels" "$dir/again" "$dir/beam"
tell --precision int8 "$dir/begun" >"$dir/beam8"
check "in int8 too: $(known "$dir/beam8")" test "$(known "$dir/beam8")" -ge 60
tell --precision int8 --cpu ref --mini-batch 5 "$dir/begun" >"$dir/again"
same "the reference kernels and other batches in int8" "$dir/again" "$dir/beam8"

printf 'eine Frau hat\n\n \nder Vogel mag den Fl\n' >"$dir/lines"
tell "$dir/lines" >"$dir/told"
is "a blank line is the beginning of any text" "$(known "$dir/told")" 4
has "a word is gone on with" "$dir/told" '^der Vogel mag den Fluss\.$'
while read -r line; do echo "$line" | tell; done <"$dir/lines" >"$dir/again"
same "a line alone gives the same" "$dir/again" "$dir/told"
printf 'eine Frau \344\275\240 hat\n' | tell >"$dir/told"
has "what the vocabulary lacks stays" "$dir/told" "^eine Frau $(printf '\344\275\240') hat ."
printf '{"text": "eine Frau hat", "id": 7}\n' >"$dir/json"
run 0 "a field of JSON" tell --input-format jsonl "$dir/json"
has "gets the whole text" "$dir/out" '^{"text": "eine Frau hat .*\.", "id": 7}$'
echo >"$dir/blank"
run 0 "a length that ends it" tell --max-length 4 --min-length 1000 -v "$dir/blank"
has "is told by its option" "$dir/err" 'line 1: ended by the length limit (--max-length)'
printf 'eine\neine Frau hat das blaue Haus und\nder\n' >"$dir/longer"
run 0 "a beginning longer than that" tell --max-length 2 "$dir/longer"
has "is told with its line" "$dir/err" 'line 2: the beginning of a text is longer than --max-length, printed as it is'
is "comes out as it is, between the others" "$(sed -n 2p "$dir/out")-$(wc -l <"$dir/out")" "eine Frau hat das blaue Haus und-3"
run 0 "or cropped" tell --max-length 2 --max-length-crop "$dir/lines"

# ---- drawing ----

printf 'eine Frau\n\n' >"$dir/two"
# draw OPTION...: eight ways to go on from these
draw() {
    tell --output-sampling topp 0.95 --n-best 8 "$@" "$dir/two" | sed 's/^[01] ||| \(.*\) ||| F0=.*/\1/'
}
draw >"$dir/drawn"
is "all eight begin as they were told to" "$(head -n 8 "$dir/drawn" | grep -c '^eine Frau .')" 8
check "they differ" test "$(sort -u "$dir/drawn" | wc -l)" -gt 10
check "$(known "$dir/drawn") of 16 are sentences of the text" test "$(known "$dir/drawn")" -ge 12
draw --cpu-threads 1 --mini-batch 1 >"$dir/again"
same "the same seed tells the same" "$dir/drawn" "$dir/again"
draw --cpu ref >"$dir/again"
same "on any processor" "$dir/drawn" "$dir/again"
draw --seed 2 >"$dir/again"
check "another tells something else" sh -c '! cmp -s "$1" "$2"' - "$dir/drawn" "$dir/again"
draw --temperature 5 >"$dir/again"
check "heat tells nonsense" test "$(known "$dir/again")" -lt "$(known "$dir/drawn")"

# ---- scores ----

score() {
    "$tfm" score -m "$dir/model" "$@"
}
run 0 "scores of a text" score "$de"
is "one a line" "$(wc -l <"$dir/out")" 512
run 0 "their summary" score --summary -t "$de"
is "counts lines" "$(head -n 1 "$dir/out")" "lines	512"
is "and has the perplexity of the validation" "$(sed -n 's/^perplexity	\([0-9]*\.[0-9]\{3\}\).*/\1/p' "$dir/out")" \
    "$(echo "$valid" | sed 's/^\([0-9]*\.[0-9]\{3\}\).*/\1/')"
printf '\n' | tell --input-format tsv --n-best 3 >"$dir/out"
is "an empty line of columns stays one, also with --n-best" "$(wc -l <"$dir/out")" 1
tell --n-best 3 "$dir/begun" >"$dir/list"
run 0 "hypotheses scored again" score --n-best --n-best-feature S "$dir/list"
check "have the scores that they were found with" awk '
    { for (i = 1; i < NF; i++) if ($i == "F0=") found = $(i + 1); else if ($i == "S=") given = $(i + 1)
      if (found - given > 1e-4 || given - found > 1e-4) wrong++ }
    END { exit NR < 100 || wrong > NR / 50 }' "$dir/out"
printf 'der Hund sieht das Haus.\nHaus der das sieht Hund.\n\n' | score - >"$dir/out"
check "what is not like the text is less probable" \
    sh -c 'cut -f 1 "$1" | { read -r a; read -r b; read -r c; awk "BEGIN { exit !($a > $b + 5 && $c < $a) }"; }' - "$dir/out"
run 1 "a text that is too long" score --max-length 5 "$de"
has "is told with its line" "$dir/err" 'de: line 1: the text is of more than 5 pieces'

# ---- a look inside, other forms ----

run 0 "what it is" "$tfm" inspect "$dir/model"
has "a language model" "$dir/out" 'layers  *decoder 2, a language model of one text'
has "with one vocabulary" "$dir/out" 'of the text  *[0-9]* pieces'
check "and nothing of a source" sh -c '! grep -q "source and\|the target\|both sides\|encoder_attn" "$1"' - "$dir/out"
run 0 "its attention" "$tfm" inspect attention -m "$dir/model" --format tsv "der Hund"
has "is the decoder's to what it has read" "$dir/out" '^1	1	1	[^	]*	0	<start>	'
run 2 "of two sentences" "$tfm" inspect attention -m "$dir/model" "der Hund" "the dog"
has "there is none" "$dir/err" 'language model, which reads one text'
run 2 "gaps" "$tfm" inspect predict -m "$dir/model" "der <mask>"
has "are not for it" "$dir/err" 'only an encoder alone fills gaps'
run 0 "its weights in int8, calibrated" "$tfm" convert "$dir/model" --precision int8 --calibrate "$dir/begun" "$dir/model8"
"$tfm" translate -m "$dir/model8" "$dir/begun" >"$dir/beam8"
check "tell as well: $(known "$dir/beam8")" test "$(known "$dir/beam8")" -ge 60
run 0 "together with itself in fp32" "$tfm" translate -m "$dir/model" -m "$dir/model8" "$dir/lines"
is "it tells the same" "$(known "$dir/out")" 4

# ---- stopped and gone on with ----

mini="--mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --dropout 0.1 --layer-drop 0.2 --source-sampling 0.3
    --vocab-size 100 --valid-freq 10 --quiet --optimizer-delay 2 --positions rope --r-drop 1"
# shellcheck disable=SC2086 # several options
{
    check "an unbroken training of 40 updates" train "$dir/whole" $mini -t "$de" --valid-sets "$de" --after 40u
    check "15 updates" train "$dir/parts" $mini -t "$de" --valid-sets "$de" --after 15u
    run 2 "on pairs" train "$dir/parts" $mini --source-sampling 0 -t "$dir/toy/en" "$de" --after 40u
    has "it does not go on" "$dir/err" 'began with --arch decoder with plain text, and now it is decoder'
    check "25 more, on one thread" train "$dir/parts" $mini -t "$de" --valid-sets "$de" --after 40u --cpu-threads 1
    checkpoints "15 + 25 = 40" "$dir/whole" "$dir/parts"
    head -n 500 "$de" >"$dir/fewer"
    run 2 "on fewer lines" train "$dir/parts" $mini --source-sampling 0 -t "$dir/fewer" --after 41u
    has "lines are what is told" "$dir/err" "began with a text of [0-9]* lines (fing.* now it is 500 lines (fing"
    is "scores: the same" "$(grep -o '"ce".*' "$dir/whole/checkpoints/last/state.json")" \
        "$(grep -o '"ce".*' "$dir/parts/checkpoints/last/state.json")"

    # ---- in which ways text comes ----

    awk '{ print "x\t" $0 "\t0.5" }' "$de" >"$dir/wide.tsv"
    gzip -c "$de" >"$dir/de.gz"
    check "gzip" train "$dir/way1" $mini -t "$dir/de.gz" -v "$dir/whole/vocab.spm" --valid-tsv "$dir/wide.tsv" --tsv-fields 2 --after 40u
    checkpoints "gzip and a column" "$dir/whole" "$dir/way1"
    same "a given vocabulary stays as it is" "$dir/whole/vocab.spm" "$dir/way1/vocab.spm"
    check "a column" train "$dir/way2" $mini --tsv "$dir/wide.tsv" --tsv-fields 2 -v "$dir/whole/vocab.spm" --valid-sets "$dir/de.gz" --after 40u
    same "a column gives the same model" "$dir/whole/weights.safetensors.gz" "$dir/way2/weights.safetensors.gz"
    check "standard input" sh -c "'$tfm' train --arch decoder -m '$dir/way3' $sizes $(echo $mini) -t - -v '$dir/whole/vocab.spm' --valid-sets '$de' --after 40u <'$de'"
    checkpoints "standard input" "$dir/whole" "$dir/way3"
    check "a command, in windows, with weights" train "$dir/way4" $mini -t "cat $de |" -t "$de" --weights 1,0.5 --shuffle-window 100 --after 20u
    run 0 "what a training would be" train "$dir/dry" $mini -t "$de" --dry-run
    check "leaves nothing" test ! -e "$dir/dry"
    run 0 "a training whose attention is watched" train "$dir/watched" -t "$de" --valid-sets "$de" --valid-freq 4u --after 4u \
        --vocab-size 100 --valid-metrics accuracy,perplexity --watch-attention "$dir/two" --profile --log "$dir/log"
    has "the log has its one stack of layers and its one vocabulary" "$dir/log" "model: [0-9]* layers, width [0-9]*, [0-9]* pieces, "
    is "the decoder's is told" "$(sed -n 's/.*\[attention\] Up. 4 : \([a-z]*\) :.*/\1/p' "$dir/log" | tr '\n' ' ')" "decoder "
    is "and drawn for both" "$(find "$dir/watched/attention/update-4" -name '*-decoder.svg' | wc -l)" 2
}

# ---- the start of a translation model ----

run 0 "a model that translates, begun with it" train "$dir/begins" -t "$dir/toy/en" "$de" --pretrained "$dir/model" --after 1u
has "takes all it has" "$dir/err" "pretrained: taken: [0-9]* parameters: model.shared.weight, .*model.decoder.layers.1$"
run 2 "together" "$tfm" translate -m "$dir/model" -m "$dir/begins" "$dir/lines"
has "they are no ensemble" "$dir/err" 'need the same task: it is language-model of .*model, but translation of .*begins'

# ---- what does not go together ----

en=$dir/toy/en
run 2 "a pair behind a text" train "$dir/none" -t "$de" -t "$en" "$de"
has "is refused" "$dir/err" "a corpus .* of --arch decoder is one text where the first is: found $en and $de"
run 2 "a text behind a pair" train "$dir/none" -t "$en" "$de" -t "$de"
has "is refused, too" "$dir/err" "a corpus .* needs two files, source and target, where the first has them: found $de alone"
run 2 "a pair to validate on" train "$dir/none" -t "$de" --valid-sets "$en" "$de"
has "is none" "$dir/err" "a validation set .* of --arch decoder is one text"
run 2 "a text to validate on" train "$dir/none" -t "$en" "$de" --valid-sets "$de"
has "is no pair" "$dir/err" "a validation set .* needs two files, .*: found $de alone"
run 2 "a column beside pairs" train "$dir/none" -t "$en" "$de" --tsv "$dir/wide.tsv" --tsv-fields 2
has "is one too few" "$dir/err" "--tsv-fields is 2, the column of a text, and the first corpus is of pairs"
run 2 "columns beside a text" train "$dir/none" -t "$de" --tsv "$dir/wide.tsv"
has "are to be named" "$dir/err" "of plain text need the column of the text: --tsv-fields N"
run 2 "metrics of translations" train "$dir/none" -t "$de" --valid-sets "$de" --valid-metrics ce,bleu
has "there are none" "$dir/err" "--valid-metrics names bleu, which is of translations: a model of plain text makes none"
run 2 "two vocabularies" train "$dir/none" -t "$de" -v "$dir/model/vocab.spm" "$dir/whole/vocab.spm"
has "are one too many" "$dir/err" "plain text has one vocabulary: found .* and .* (--vocabs)"
for option in "--enc-depth 2" "--mask-rate 0.2" "--max-length-ratio 2" "--target-sampling 0.1" "--tied-embeddings target" \
    "--tied-embeddings none" "--attention-window 5"; do
    # shellcheck disable=SC2086
    run 2 "$option" train "$dir/none" -t "$de" $option
    has "is for others" "$dir/err" "${option% *}.* means nothing to --arch decoder with plain text"
done
printf 'der Hund\tdas\n' >"$dir/forced"
wrong "something forced beside the line" "a language model goes on from its line itself" \
    translate -m "$dir/model" --force-decode "$dir/forced"
for option in "--alignment hard" "--replace-unk" "--glossary $dir/forced" "--max-length-factor 2" "--shortlist $dir/forced"; do
    # shellcheck disable=SC2086
    run 2 "${option%% *}" tell $option "$dir/lines"
    has "is for translations" "$dir/err" "of translations, which have a source: this model is a language model"
done
run 2 "a pair to score" score "$en" "$de"
has "is no text" "$dir/err" "is a language model: expected one text, found pairs, of "
run 2 "pairs with tabs" score --tsv "$dir/forced"
has "are none either" "$dir/err" "is a language model: expected one text, found pairs, of "
run 2 "a text to score by a model that translates" "$tfm" score -m "$dir/begins" "$de"
has "is no pair" "$dir/err" "is no language model: expected two files, source and target, found .*de alone"
run 2 "a shortlist" "$tfm" shortlist -m "$dir/model" -t "$en" "$de"
has "is of translations" "$dir/err" "is a model of plain text, which makes no translations to list pieces for"
run 2 "a comparison" "$tfm" convert "$dir/model" --precision int8 --valid-sets "$en" "$de" "$dir/none"
has "is of translations, too" "$dir/err" "is a language model, which makes no translations to compare"
check "nothing was converted" test ! -e "$dir/none"
cp -R "$dir/model" "$dir/broken"
sed 's/"tie_embeddings": "all"/"tie_embeddings": "none"/' "$dir/model/config.json" >"$dir/broken/config.json"
run 1 "a config that does not fit" "$tfm" inspect "$dir/broken"
has "is told" "$dir/err" 'tie_embeddings should be "all" for the task "language-model"'
: >"$dir/empty"
run 1 "an empty text" train "$dir/none3" -t "$dir/empty" -v "$dir/model/vocab.spm"
has "has nothing to train on" "$dir/err" "empty: no line to train on: of 0 read, 0 are empty, 0 longer"

finish
