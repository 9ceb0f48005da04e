#!/bin/sh
# tfm convert: other precisions, plain weights, checkpoints, and means of models, compared with numbers that od and awk
# find; what does not fit is refused, and nothing half-written is left.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
en=$dir/toy/en
de=$dir/toy/de
# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$de" -m "$folder" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 \
        --vocab-size 100 --mini-batch-words 500 --lr-warmup 10 --learn-rate 0.01 --cpu-threads 2 --quiet "$@"
}
convert() { "$tfm" convert "$@"; }

# values FILE: the numbers of a plain F32 safetensors file, one a line
values() {
    length=$(od -A n -t u8 -N 8 "$1")
    od -A n -v -w4 -t f4 -j $((8 + length)) "$1"
}

m=$dir/m
c=$m/checkpoints
check "a training that keeps its last checkpoints" train "$m" --after 40u --save-freq 10 --keep-last 3 \
    --valid-sets "$en" "$de" --valid-metrics ce --valid-freq 40
is "it has three of four" "$(cd "$c" && echo checkpoint-*)" "checkpoint-20 checkpoint-30 checkpoint-40"
cp -R "$m" "$dir/m_before"

# ---- one model ----

run 0 "a model as it is" convert "$m" "$dir/copy"
is "and nothing is printed" "$(cat "$dir/out" "$dir/err")" ""
same "its weights are the same bytes" "$m/weights.safetensors.gz" "$dir/copy/weights.safetensors.gz"
same "and its vocabulary" "$m/vocab.spm" "$dir/copy/vocab.spm"
has "it knows its training" "$dir/copy/config.json" '"pairs": 512'
has "how good it was" "$dir/copy/config.json" '"ce": '
has "and where it is from" "$dir/copy/config.json" '^ *"m"$'
"$tfm" translate -m "$m" "$en" >"$dir/expected"
"$tfm" translate -m "$dir/copy" "$en" >"$dir/out"
same "it translates the same" "$dir/out" "$dir/expected"
run 0 "the mean of one model" convert --average "$m/" "$dir/mean1/"
same "is that model" "$m/weights.safetensors.gz" "$dir/mean1/weights.safetensors.gz"

run 0 "in 32 bits" convert --precision fp32 "$m" "$dir/f32"
has "it is" "$dir/f32/config.json" '"precision": "fp32"'
run 0 "32 bits stay 32 bits" convert "$dir/f32" "$dir/f32b"
same "the same bytes" "$dir/f32/weights.safetensors.gz" "$dir/f32b/weights.safetensors.gz"
is "both steps are told" "$(grep -c '"precision": "fp32"' "$dir/f32b/config.json")" 2
run 0 "and back to 16" convert --precision fp16 "$dir/f32" "$dir/f16"
same "are the same as before" "$m/weights.safetensors.gz" "$dir/f16/weights.safetensors.gz"
run 0 "in whole numbers" convert --precision int8 "$m" "$dir/int8"
has "it says so" "$dir/int8/config.json" '"precision": "int8"'
run 0 "whole numbers stay whole numbers" convert "$dir/int8" "$dir/int8b"
same "the same" "$dir/int8/weights.safetensors.gz" "$dir/int8b/weights.safetensors.gz"
run 0 "to floats" convert --precision fp32 "$dir/int8" "$dir/int8f"
run 0 "and back" convert --precision int8 "$dir/int8f" "$dir/int8c"
same "the same again" "$dir/int8/weights.safetensors.gz" "$dir/int8c/weights.safetensors.gz"
"$tfm" translate -m "$m" --precision int8 "$en" >"$dir/int8.out"
run 0 "it translates by itself in whole numbers" "$tfm" translate -v -m "$dir/int8" "$en"
has "which --verbose says" "$dir/err" "in int8, "
same "as the model before does in int8" "$dir/out" "$dir/int8.out"
"$tfm" translate -m "$dir/int8f" "$en" >"$dir/expected"
"$tfm" translate -m "$dir/int8" --precision fp32 "$en" >"$dir/out"
same "and with floats as the one made of it" "$dir/out" "$dir/expected"
"$tfm" translate -m "$m" "$en" >"$dir/expected"
"$tfm" inspect "$dir/int8" >"$dir/out"
has "inspect shows matrices" "$dir/out" 'fc1.weight  *32 x 16  *I8  *640 '
has "and vectors" "$dir/out" 'fc1.bias  *32  *F32  *128 '
has "and the memory" "$dir/out" 'in memory .*, matrices as I8'

run 0 "not compressed" convert --plain "$m" "$dir/plain"
gzip -dc "$m/weights.safetensors.gz" >"$dir/unpacked"
same "is what gunzip makes" "$dir/plain/weights.safetensors" "$dir/unpacked"
check "and is alone" test ! -e "$dir/plain/weights.safetensors.gz"
"$tfm" translate -m "$dir/plain" "$en" >"$dir/out"
same "it translates the same" "$dir/out" "$dir/expected"

# ---- what is lost ----

# comparison: the table in $dir/out as "BLEU chrF BLEU chrF lines of words of"
comparison() {
    awk '$1 == "IN" || $1 == "OUT" { printf "%s %s ", $2, $3 }
        $2 == "changed" { printf "%s %s%s", $3, $5, $1 == "lines" ? " " : "\n" }' "$dir/out"
}
# changes FILE FILE: lines and words that differ in the second, counted another way: with the whole table of distances
changes() {
    paste "$1" "$2" | awk -F '\t' '{
        lines += $1 != $2
        n = split($1, a, / +/)
        m = split($2, b, / +/)
        for (i = 0; i <= n; i++)
            for (j = 0; j <= m; j++) {
                best = i == 0 ? j : i
                if (i > 0 && j > 0) {
                    best = d[i - 1, j - 1] + (a[i] != b[j])
                    if (d[i - 1, j] + 1 < best) best = d[i - 1, j] + 1
                    if (d[i, j - 1] + 1 < best) best = d[i, j - 1] + 1
                }
                d[i, j] = best
            }
        words += n
        changed += d[n, m]
    }
    END { print lines + 0, NR, changed + 0, words }'
}

cat >"$dir/own.en" <<'END'
Where did you leave the keys to the garden shed?
My grandmother, who had never seen the sea, laughed when the first wave reached her feet.

The committee postponed its decision because three of the seven members were ill.
Don't touch the stove, it's still hot!
He repaired the old radio with a spoon and a piece of wire.
END
"$tfm" translate -m models/en-de "$dir/own.en" >"$dir/own.de"
run 0 "a model compared with itself" convert --valid-sets "$dir/own.en" "$dir/own.de" models/en-de "$dir/same"
words=$(wc -w <"$dir/own.de" | tr -d ' ')
is "is as good, and no line and no word is changed" "$(comparison)" "100.00 100.00 100.00 100.00 0 6 0 $words"
is "in a table of five lines" "$(wc -l <"$dir/out")" 5
has "with a heading" "$dir/out" '^  *BLEU  *chrF$'
has "and percentages" "$dir/out" "^lines changed   0 of 6 (0.00 %)\$"
is "and nothing else is told" "$(cat "$dir/err")" ""
run 0 "and with itself in whole numbers" convert --precision int8 --valid-sets "$dir/own.en" "$dir/own.de" \
    models/en-de "$dir/own8"
"$tfm" translate -m "$dir/own8" "$dir/own.en" >"$dir/own8.de"
is "changes what differs" "$(comparison | cut -d ' ' -f 5-)" "$(changes "$dir/own.de" "$dir/own8.de")"
comparison >"$dir/table"
check "and is near" awk '{ exit !($1 == 100 && $3 > 50 && $4 > 50) }' "$dir/table"

# A model that has learnt little changes many.
awk 'NR % 9 == 0' "$en" >"$dir/some.en"
"$tfm" translate -m "$m" "$dir/some.en" >"$dir/some.out"
"$tfm" translate -m "$dir/int8" "$dir/some.en" >"$dir/some8.out"
cp -R "$m" "$dir/both" && rm -r "$dir/both/checkpoints"
run 0 "a small model, in its own place" convert -f --precision int8 --valid-sets "$dir/some.en" "$dir/some8.out" \
    "$dir/both" "$dir/both"
same "is written" "$dir/both/weights.safetensors.gz" "$dir/int8/weights.safetensors.gz"
is "its changes are those counted otherwise" "$(comparison | cut -d ' ' -f 5-)" \
    "$(changes "$dir/some.out" "$dir/some8.out")"
is "OUT is the new one" "$(comparison | cut -d ' ' -f 3,4)" "100.00 100.00"
comparison >"$dir/table"
check "and IN the one before" awk '{ exit !($1 < 100 && $2 < 100 && $5 > 0 && $7 > 0) }' "$dir/table"
run 0 "one text from standard input" convert --precision fp32 --valid-sets - "$dir/own.de" models/en-de "$dir/own32" \
    <"$dir/own.en"
has "from 16 bits to 32 nothing is lost" "$dir/out" '^words changed   0 of '

# ---- calibrated ----

run 0 "calibrated" convert --precision int8 --calibrate "$dir/own.en" --valid-sets "$dir/own.en" "$dir/own8.de" models/en-de \
    "$dir/calibrated"
comparison >"$dir/table"
check "it is near" awk '{ exit !($3 > 50 && $4 > 50) }' "$dir/table"
check "a matrix has a scale for its inputs" grep -aq '"model.decoder.layers.0.fc1.weight.input_scale":{"dtype":"F32","shape":\[1\]' \
    <<END
$(gzip -dc "$dir/calibrated/weights.safetensors.gz" | head -c 60000 | tr -d '\000')
END
"$tfm" translate -m "$dir/calibrated" "$dir/own.en" >"$dir/calibrated.de"
"$tfm" translate -m "$dir/calibrated" --cpu ref --mini-batch 1 "$dir/own.en" | cmp -s - "$dir/calibrated.de"
result $? "the same text by the reference kernels, line by line"
"$tfm" inspect "$dir/calibrated" >"$dir/about"
run 0 "calibrated on standard input, in its own place" convert -f --precision int8 --calibrate - "$dir/calibrated" \
    "$dir/calibrated" <"$dir/own.en"
has "it says that it is calibrated" "$dir/about" 'matrices as I8, [1-9][0-9]* of them calibrated$'
printf '\n \n' >"$dir/blank"
run 1 "calibrated on blank lines" convert --precision int8 --calibrate "$dir/blank" models/en-de "$dir/no"
has "calibrated on blank lines: why" "$dir/err" 'cannot be calibrated on lines without text'
wrong "calibrated without int8" "option --calibrate is for --precision int8, which is missing" \
    convert --precision fp32 --calibrate "$dir/own.en" models/en-de "$dir/no"
wrong "calibrated mean" "option --calibrate goes with one model IN" \
    convert --average --precision int8 --calibrate "$dir/own.en" "$m" "$dir/f32" "$dir/no"
wrong "two texts from standard input" "found standard input for --calibrate and for --valid-sets" \
    convert --precision int8 --calibrate - --valid-sets "$dir/own.en" - "$m" "$dir/no"
: >"$dir/blank"
run 1 "calibrated on nothing" convert --precision int8 --calibrate "$dir/blank" "$m" "$dir/no"
has "is told" "$dir/err" "blank has no lines; expected some to translate"
is "and nothing is left" "$(find "$dir" -maxdepth 1 -name 'no*')" ""

# ---- checkpoints ----

run 0 "a checkpoint" convert "$c/best-ce" "$dir/best"
same "is the model that the training wrote" "$m/weights.safetensors.gz" "$dir/best/weights.safetensors.gz"
has "by its own name" "$dir/best/config.json" '^ *"checkpoint-40"$'
run 0 "an earlier one, smoothed, as it is" convert --precision fp32 --plain "$c/checkpoint-20" "$dir/c20"
same "with the same bytes" "$c/checkpoint-20/ema.safetensors" "$dir/c20/weights.safetensors"
has "it knows how far it was" "$dir/c20/config.json" '"updates": 20'
check "and no score, which was another's" sh -c "! grep -q '\"ce\"' '$dir/c20/config.json'"
run 0 "its weights without smoothing" convert --average --precision fp32 --plain "$c/checkpoint-20" "$dir/c20raw"
same "with the same bytes" "$c/checkpoint-20/weights.safetensors" "$dir/c20raw/weights.safetensors"

# ---- means ----

# mean_is NAME FOLDER FILE FILE FILE: the folder's weights are the means
mean_is() {
    for file in "$3" "$4" "$5" "$2/weights.safetensors"; do
        values "$file" >"$dir/values.$((n_values = n_values + 1))"
    done
    paste "$dir"/values.* >"$dir/table"
    rm "$dir"/values.*
    n_values=0
    check "$1: the means" awk '{ mean = ($1 + $2 + $3) / 3; difference = mean - $4
        if (difference < 0) difference = -difference
        size = mean < 0 ? -mean : mean
        if (difference > 1e-6 * size + 1e-9) wrong++
        if ($1 != $2) other++ }
        END { exit !(NR > 1000 && wrong == 0 && other > NR / 2) }' "$dir/table"
}
n_values=0
run 0 "three checkpoints" convert --average --precision fp32 --plain "$c"/checkpoint-* "$dir/mean3"
mean_is "three checkpoints" "$dir/mean3" "$c"/checkpoint-*/weights.safetensors
run 0 "three smoothed" convert --average --smoothed --precision fp32 --plain "$c"/checkpoint-* "$dir/smooth3"
mean_is "three smoothed" "$dir/smooth3" "$c"/checkpoint-*/ema.safetensors
for name in checkpoint-20 checkpoint-30 checkpoint-40; do
    has "$name is told" "$dir/mean3/config.json" "\"$name\""
done
has "as a mean" "$dir/mean3/config.json" '"average": true'
has "of what they were" "$dir/smooth3/config.json" '"smoothed": true'
run 0 "a mean is written in 16 bits" convert --average "$c"/checkpoint-* "$dir/mean16"
run 0 "as it would be later" convert --precision fp16 "$dir/mean3" "$dir/mean3_16"
same "the same" "$dir/mean16/weights.safetensors.gz" "$dir/mean3_16/weights.safetensors.gz"
"$tfm" translate -m "$dir/mean16" "$en" >"$dir/out"
is "it translates" "$(wc -l <"$dir/out")" 512
run 0 "the mean of a model and a checkpoint" convert --average "$dir/c20" "$c/checkpoint-40" "$dir/mixed"

# ---- what is refused ----

# refused STATUS NAME PATTERN ARGUMENT...: and $dir/no is not there
refused() {
    refused_pattern=$3
    run "$1" "$2" convert "$4" "$5" "${6:-$dir/no}" ${7:+"$7"}
    has "$2: it is told" "$dir/err" "$refused_pattern"
    is "$2: in one line" "$(wc -l <"$dir/err")" 1
    is "$2: nothing is left" "$(find "$dir" -maxdepth 1 -name 'no*')" ""
}
wrong "no folder" "found no folder, expected" convert
wrong "one folder" "found one folder, expected" convert "$m"
wrong "two without --average" "found 2 folders to read, expected one; --average" convert "$m" "$dir/f32" "$dir/no"
wrong "a precision that does not exist" "found 'int3', expected fp32|fp16|int8" convert --precision int3 "$m" "$dir/no"
refused 2 "a link beside what it names" "checkpoint-40 and .*last are the same folder" \
    --average "$c/checkpoint-40" "$c/last" "$dir/no"
refused 2 "smoothed weights of a model" "is a model and no checkpoint" --smoothed "$m"
refused 1 "a folder that is no model" "toy holds neither config.json nor state.json" --average "$dir/toy"
refused 1 "a folder that is not there" "cannot open .*/nowhere: No such file" --average "$dir/nowhere"
train "$dir/other" --after 1u --dim-ffn 48 --exponential-smoothing 0
refused 2 "another width" "m/config.json and .*other/config.json differ in encoder_ffn_dim" \
    --average "$m" "$dir/other" "$dir/no"
refused 1 "smoothed weights that were not kept" "checkpoint-1 holds no smoothed weights" \
    --smoothed "$dir/other/checkpoints/checkpoint-1"
cp -R "$dir/copy" "$dir/words"
printf 'x' >>"$dir/words/vocab.spm"
refused 2 "another vocabulary" "m/vocab.spm and .*words/vocab.spm differ" --average "$m" "$dir/words" "$dir/no"
cp -R "$dir/plain" "$dir/cut"
head -c 3000 "$dir/plain/weights.safetensors" >"$dir/cut/weights.safetensors"
refused 1 "a damaged model" "cut/weights.safetensors: the file is cut short" --average "$m" "$dir/cut" "$dir/no"

head -n 5 "$dir/own.de" >"$dir/five.de"
: >"$dir/blank"
# refused_pair NAME PATTERN SRC TRG IN
refused_pair() {
    run 1 "$1" convert --precision int8 --valid-sets "$3" "$4" "$5" "$dir/no"
    has "$1: it is told" "$dir/err" "$2"
    is "$1: nothing is printed or left" "$(cat "$dir/out"; find "$dir" -maxdepth 1 -name 'no')" ""
}
refused_pair "texts of other lengths" "own.en has 6 lines and .*five.de has 5" "$dir/own.en" "$dir/five.de" "$m"
refused_pair "texts without lines" "blank have no lines" "$dir/blank" "$dir/blank" "$m"
refused_pair "a text that is not there" "cannot open .*/nothing" "$dir/own.en" "$dir/nothing" "$m"
refused_pair "a checkpoint" "checkpoint-40 holds no config.json" "$dir/own.en" "$dir/own.de" "$c/checkpoint-40"
wrong "two models to compare with" "found 2 folders to read, expected one; --valid-sets" \
    convert --average --valid-sets "$dir/own.en" "$dir/own.de" "$m" "$dir/f32" "$dir/no"
wrong "two texts from standard input" "both files of --valid-sets are standard input" \
    convert --valid-sets - - "$m" "$dir/no"

# ---- the folder to write ----

run 2 "a model that is there" convert "$m" "$dir/copy"
has "is not replaced" "$dir/err" "copy is there already and not empty: .*--force"
run 0 "unless by force" convert --force --plain --precision fp32 "$c/last" "$dir/copy"
check "then as a whole" test -e "$dir/copy/weights.safetensors" -a ! -e "$dir/copy/weights.safetensors.gz"
run 0 "a model by itself" convert -f --precision fp16 "$dir/f32b" "$dir/f32b"
same "it is half the size" "$dir/f32b/weights.safetensors.gz" "$m/weights.safetensors.gz"
run 2 "a training is not replaced by force" convert --force "$dir/f32" "$m"
has "for what it holds" "$dir/err" "m holds checkpoints, which is no file of a model and would be lost"
check "it is as it was" diff -r "$m" "$dir/m_before"
run 2 "a folder with other files" convert --force "$m" "$dir/toy"
has "for what they are" "$dir/err" "toy holds [de][en], which is no file of a model"
run 2 "a file" convert --force "$m" "$en"
has "is no folder" "$dir/err" "en is no folder"
mkdir "$dir/empty"
run 0 "an empty folder" convert "$m" "$dir/empty"
printf 'listed' >"$dir/empty/shortlist.gz"
run 0 "a model with a shortlist" convert "$dir/empty" "$dir/listed"
same "has it afterwards, too" "$dir/listed/shortlist.gz" "$dir/empty/shortlist.gz"
ln -s empty "$dir/link"
run 0 "a link to a model" convert --force --precision fp32 "$m" "$dir/link"
check "is followed" test -L "$dir/link" -a -e "$dir/empty/config.json"
has "to what it names" "$dir/empty/config.json" '"precision": "fp32"'
run 0 "folders above are made" convert "$m" "$dir/new/er/model"

(ulimit -f 8 && exec "$tfm" convert --plain --precision fp32 "$m" "$dir/no") >"$dir/out" 2>"$dir/err" # blocks of 512 bytes
is "a file that cannot grow: status" $? 1
has "its name and the reason are told" "$dir/err" "cannot write .*/no.tmp.*/vocab.spm.*: File too large"
is "and nothing is left" "$(find "$dir" -maxdepth 1 -name 'no*')" ""
run 0 "over a model" convert "$m" "$dir/full"
(ulimit -f 8 && exec "$tfm" convert --force --plain --precision fp32 "$m" "$dir/full") 2>"$dir/err"
is "a file that cannot grow: status" $? 1
same "leaves the old one" "$dir/full/weights.safetensors.gz" "$m/weights.safetensors.gz"
is "and nothing else" "$(find "$dir" -maxdepth 1 -name 'full*')" "$dir/full"

# A signal, at whatever moment: all or nothing. The vocabulary is a pipe, so that it waits to be stopped there.
mkdir "$dir/slow" && cp "$m/config.json" "$m/weights.safetensors.gz" "$dir/slow" && mkfifo "$dir/slow/vocab.spm"
"$tfm" convert "$dir/slow" "$dir/no" 2>"$dir/err" &
pid=$!
exec 3>"$dir/slow/vocab.spm" # returns when it is being read
kill -TERM $pid
exec 3>&-
wait $pid
is "a signal ends it with 128 + its number" $? 143
has "it says so" "$dir/err" "stopped; .*/no was not written"
is "and nothing is left" "$(find "$dir" -maxdepth 1 -name 'no*')" ""

finish
