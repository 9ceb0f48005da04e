#!/bin/sh
# tfm translate and tfm score with several models: the same model twice, models of different shapes, with a shortlist,
# in int8; and what is said where models do not go together.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

toy_corpus "$dir/toy"
awk 'NR % 16 == 3' "$dir/toy/en" >"$dir/en"
other=$dir/other
"$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$other" --dim-model 16 --dim-ffn 32 --heads 1 --enc-depth 1 --dec-depth 1 \
    --dec-cell ssru -v "$model/vocab.spm" "$model/vocab.spm" --mini-batch-words 1000 --after 60u --learn-rate 0.01 \
    --lr-warmup 30 --dropout 0 --cpu-threads 2 --quiet
options="--n-best 3 --word-scores --alignment soft"

# shellcheck disable=SC2086 # options are several
"$tfm" translate -m "$model" $options "$dir/en" >"$dir/expected"
# shellcheck disable=SC2086
"$tfm" translate -m "$model" -m "$model" $options "$dir/en" >"$dir/out"
same "the same model twice" "$dir/out" "$dir/expected"
# shellcheck disable=SC2086
"$tfm" translate -m "$model" --model "$other" --model-weights 2,1 $options "$dir/en" >"$dir/expected"
# shellcheck disable=SC2086
"$tfm" translate -m "$model" -m "$other" --model-weights 1,0.5 --cpu ref --cpu-threads 3 --mini-batch 5 $options "$dir/en" \
    >"$dir/out"
same "two models, whatever batches, threads and kernels" "$dir/out" "$dir/expected"
run 0 "two models, one in int8" "$tfm" translate -v -m "$model" -m "$other" --precision int8 "$dir/en"
is "--verbose names both" "$(grep -c 'model .* in int8' "$dir/err")" 2
head -n 20 "$dir/en" | "$tfm" translate -m models/en-de --precision int8 >"$dir/expected"
head -n 20 "$dir/en" | "$tfm" translate -m models/en-de -m models/en-de --precision int8 >"$dir/out"
same "twice a model with a shortlist, in int8" "$dir/out" "$dir/expected"

"$tfm" translate -m "$model" -m "$other" --n-best 2 --word-scores "$dir/en" >"$dir/list"
awk -F ' \\|\\|\\| ' '$1 != id { print $2 >text; print $4 "\t" $5 >scores } { id = $1 }' text="$dir/de" \
    scores="$dir/expected" id=-1 "$dir/list"
sed -i 's/^F0= //' "$dir/expected"
"$tfm" score -m "$model" -m "$other" "$dir/en" "$dir/de" >"$dir/out"
same "tfm score gives the scores of the search" "$dir/out" "$dir/expected"
"$tfm" score -m "$model" "$dir/en" "$dir/de" >"$dir/a"
"$tfm" score -m "$other" "$dir/en" "$dir/de" >"$dir/b"
check "they are the means of the scores of each" sh -c "paste '$dir/a' '$dir/b' '$dir/out' |
    awk '{ d = (\$1 + \$3) / 2 - \$5; if (d > 1e-4 || d < -1e-4) exit 1 }'"

wrong "too few weights" "option --model-weights: found 1 weight, expected one for each model: 2" \
    translate -m "$model" -m "$other" --model-weights 1
wrong "a weight of nothing" "option --model-weights: found '1,0', expected numbers above 0" \
    score -m "$model" -m "$other" --model-weights 1,0 "$dir/en" "$dir/de"
run 1 "other vocabularies" "$tfm" translate -m "$model" -m models/en-de "$dir/en"
has "other vocabularies: both files and what differs" "$dir/err" \
    "same source vocabulary: piece [0-9]* is '.*' in $model/vocab.spm, but '.*' in models/en-de/vocab.spm"
run 1 "a model that is not there" "$tfm" translate -m "$model" -m "$dir/none" "$dir/en"
has "a model that is not there is named" "$dir/err" "$dir/none"

finish
