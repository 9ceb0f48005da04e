#!/bin/sh
# tfm shortlist: a file beside the model, the same for any number of threads and any way to give the corpus; and
# tfm translate with it, without it, and with one that is damaged or of another model.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model
toy_corpus "$dir/toy"
cp -R "$model" "$dir/m"
m=$dir/m
en=$dir/toy/en
de=$dir/toy/de
paste "$en" "$de" >"$dir/pairs.tsv"
head -n 40 "$en" >"$dir/in"

"$tfm" translate -m "$m" -b 1 "$dir/in" >"$dir/plain"
run 0 "a shortlist is made" "$tfm" shortlist -m "$m" -t "$en" "$de" --first 20 --best 10
check "it lies in the model's folder" test -s "$m/shortlist.gz"
has "what it holds is told" "$dir/err" "learnt from 512 pairs; a source piece lists [0-9.]* target pieces, a sentence [0-9]* of [0-9]*; [19][0-9.]* %"
is "nothing on standard output" "$(cat "$dir/out")" ""
run 0 "one thread" "$tfm" shortlist -m "$m" --tsv "$dir/pairs.tsv" --first 20 --best 10 --cpu-threads 1 --quiet -o "$dir/one.gz"
is "--quiet" "$(cat "$dir/err")" ""
same "the same for any number of threads, from one file or two" "$dir/one.gz" "$m/shortlist.gz"
awk -F '\t' '{ print $2 "\t" $1 }' "$dir/pairs.tsv" >"$dir/swapped.tsv"
run 0 "from a pipe, other columns" sh -c "'$tfm' shortlist -m '$m' --tsv - --tsv-fields 2,1 --first 20 --best 10 -o '$dir/two.gz' <'$dir/swapped.tsv'"
same "give the same, too" "$dir/two.gz" "$dir/one.gz"
is "nothing else is left in the folder" "$(find "$m" -name '*shortlist*')" "$m/shortlist.gz"
run 0 "what the model is" "$tfm" inspect "$m"
has "tells the size of the list" "$dir/out" "shortlist.gz  *$(($(wc -c <"$m/shortlist.gz"))) bytes"

# Greedy search finds the same, as long as its pieces are listed.
run 0 "translating with the model's own list" "$tfm" translate -m "$m" -b 1 "$dir/in"
same "what is known is translated as before" "$dir/out" "$dir/plain"
run 0 "--shortlist FILE" "$tfm" translate -m "$model" -b 1 --shortlist "$dir/one.gz" "$dir/in"
same "the same with the list as a file" "$dir/out" "$dir/plain"
run 0 "a list of almost nothing" "$tfm" shortlist -m "$m" -t "$en" "$de" --first 1 --best 0 -o "$dir/few.gz"
has "has little of the corpus" "$dir/err" "; [0-5]*[0-9][0-9.]* %"
run 0 "it is used" "$tfm" translate -m "$m" -b 1 --shortlist "$dir/few.gz" "$dir/in"
check "and changes what comes out" sh -c "! cmp -s '$dir/out' '$dir/plain'"
cp "$dir/few.gz" "$m/shortlist.gz"
run 0 "--shortlist off" "$tfm" translate -m "$m" -b 1 --shortlist off "$dir/in"
same "is the translation without a list" "$dir/out" "$dir/plain"
"$tfm" translate -m "$m" --output-sampling topk --shortlist "$dir/few.gz" "$dir/in" >"$dir/drawn"
"$tfm" translate -m "$model" --output-sampling topk --shortlist off "$dir/in" >"$dir/out"
same "drawing uses no list" "$dir/drawn" "$dir/out"

# ---- what is refused ----

head -c 60 "$dir/one.gz" >"$m/shortlist.gz"
run 1 "a damaged list" "$tfm" translate -m "$m" "$dir/in"
has "is named" "$dir/err" "m/shortlist.gz: the gzip data"
run 1 "a file that is none" "$tfm" translate -m "$m" --shortlist "$en" "$dir/in"
has "is named" "$dir/err" "toy/en: is not a gzip file"
run 1 "no such file" "$tfm" translate -m "$m" --shortlist "$dir/nowhere" "$dir/in"
has "is told" "$dir/err" "cannot open .*nowhere"
run 1 "of another model" "$tfm" translate -m models/en-de --shortlist "$dir/one.gz" "$dir/in"
has "is told" "$dir/err" "is for vocabularies of [0-9]* and [0-9]* pieces, those of the model have 8000 and 8000"
head -n 9 "$de" >"$dir/short"
run 1 "files of unequal length" "$tfm" shortlist -m "$m" -t "$en" "$dir/short" -o "$dir/no.gz"
has "are told" "$dir/err" "short has 9 lines but .*en has 512"
check "nothing is written" test ! -e "$dir/no.gz"
gzip -c "$dir/pairs.tsv" >"$dir/pairs.tsv.gz"
run 1 "compressed text and no place for it" env TMPDIR="$dir/nowhere" "$tfm" shortlist -m "$m" --tsv "$dir/pairs.tsv.gz" \
    -o "$dir/no.gz"
has "is told" "$dir/err" "cannot write $dir/nowhere/"
printf '\t\n \t \n' >"$dir/blank.tsv"
run 1 "a corpus of nothing" "$tfm" shortlist -m "$m" --tsv "$dir/blank.tsv" -o "$dir/no.gz"
has "is told" "$dir/err" "there is no pair to make a shortlist from: of 2 pairs 2 lack a side"
run 1 "a model that is not there" "$tfm" shortlist -m "$dir/nowhere" --tsv "$dir/pairs.tsv"
has "is told" "$dir/err" "there is no model folder"
wrong "no model" "option --model is missing" shortlist --tsv "$dir/pairs.tsv"
wrong "no corpus" "option --train-sets (or --tsv) is missing" shortlist -m "$m"
wrong "an operand" "unexpected argument 'x'" shortlist -m "$m" --tsv "$dir/pairs.tsv" x
wrong "columns" "option --tsv-fields: found '1'" shortlist -m "$m" --tsv "$dir/pairs.tsv" --tsv-fields 1

finish
