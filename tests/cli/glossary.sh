#!/bin/sh
# tfm translate --glossary: terms come in translations, also in lists, with shortlists, ensembles, int8 and greedy search;
# notes and messages.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

translate() {
    "$tfm" translate -m models/en-de "$@"
}

cat >"$dir/glossary" <<'END'
# What a customer wants.

train station	Hauptbahnhof
dog	Köter	a third column
old man	Greis
cat	Mieze🤖
END
cat >"$dir/in" <<'END'
Where is the train station?
My dog is here.
There is nothing here.
The old man (and the dog) went home.
Dogs are not cats.

I have a cat.
END
run 0 "a glossary" translate --glossary "$dir/glossary" "$dir/in"
is "no note" "$(cat "$dir/err")" ""
cp "$dir/out" "$dir/expected"
is "terms of each line" "$(grep -o -w -e Hauptbahnhof -e Köter -e Greis -e Mieze🤖 "$dir/out" | tr '\n' ' ')" \
    "Hauptbahnhof Köter Greis Köter Mieze🤖 "
translate "$dir/in" >"$dir/plain"
sed -n '3p;5,6p' "$dir/plain" >"$dir/plain-lines"
sed -n '3p;5,6p' "$dir/out" >"$dir/lines"
same "lines without terms are as ever" "$dir/lines" "$dir/plain-lines"
translate --glossary "$dir/glossary" --mini-batch 1 --cpu-threads 3 --cpu ref "$dir/in" >"$dir/out"
same "whatever batches, threads and kernels" "$dir/out" "$dir/expected"
for options in "-b 1" "--precision int8" "--shortlist off" "-m models/en-de" "--no-repeat-ngram-size 1" "--max-length 8 --quiet"; do
    # shellcheck disable=SC2086 # options are several
    translate --glossary "$dir/glossary" $options "$dir/in" >"$dir/out"
    is "terms with $options" "$(grep -o -w -e Hauptbahnhof -e Köter -e Greis -e Mieze🤖 "$dir/out" | sort | tr '\n' ' ')" \
        "Greis Hauptbahnhof Köter Köter Mieze🤖 "
done
translate --glossary "$dir/glossary" --n-best 3 --word-scores --alignment hard "$dir/in" >"$dir/out"
is "each hypothesis has its term" "$(grep -c '^1 ||| .*Köter' "$dir/out")" 3
check "scores of pieces add up" awk -F ' \\|\\|\\| ' '{
    n = split($4, s, " "); sum = 0
    for (i = 2; i <= n; i++) sum += s[i]
    d = substr($5, 5) - sum
    if (d > 1e-4 || d < -1e-4) exit 1 }' "$dir/out"
echo 'THE DOG SEES A CAT.' >"$dir/capitals"
translate --glossary "$dir/glossary" "$dir/capitals" >"$dir/out"
translate "$dir/capitals" >"$dir/plain"
same "capitals are other letters" "$dir/out" "$dir/plain"
translate --glossary "$dir/glossary" --glossary-ignore-case "$dir/capitals" >"$dir/out"
is "unless case is ignored" "$(grep -o -w -e Köter -e Mieze🤖 "$dir/out" | sort | tr '\n' ' ')" "Köter Mieze🤖 "

# More pieces than places in the beam.
echo dog cat house tree car book table door water fire sun moon star bread milk egg fish bird |
    tr ' ' '\n' >"$dir/nouns"
echo Köter Mieze Heim Pflanze Karre Schmöker Tafel Pforte Nass Glut Licht Mond Punkt Laib Sahne Gelege Tier Spatz | tr ' ' '\n' >"$dir/their"
paste "$dir/nouns" "$dir/their" >"$dir/dense"
awk '{ printf NR == 1 ? "I see the %s" : NR == 11 ? ", and I have the %s" : ", the %s", $0 } END { print "." }' "$dir/nouns" \
    >"$dir/dense.en"
run 0 "many terms in a line" translate --glossary "$dir/dense" "$dir/dense.en"
is "no note" "$(cat "$dir/err")" ""
is "all terms are there" "$(grep -o -w -f "$dir/their" "$dir/out" | sort -u | wc -l)" 18
cat "$dir/in" "$dir/dense.en" >"$dir/both"
translate --glossary "$dir/dense" --cpu-threads 2 "$dir/both" | tail -n 1 >"$dir/last"
same "beside other lines, too" "$dir/last" "$dir/out"

awk 'BEGIN { for (i = 0; i < 70; i++) printf "dog "; print "" }' >"$dir/many"
run 0 "more terms than may be" translate --glossary "$dir/glossary" "$dir/many"
has "more terms than may be: a note" "$dir/err" "$dir/many: line 1: the translation lacks [0-9]* of the terms that --glossary"
printf 'dog\tKöter\ncat\n' >"$dir/bad"
run 1 "a line without a tab" translate --glossary "$dir/bad" "$dir/in"
has "a line without a tab is named" "$dir/err" "$dir/bad: line 2: found no tab, expected a term, a tab and its translation"
printf 'dog\tHund\ncat\tKatze\ndog\tKöter\n' >"$dir/bad"
run 1 "two translations of a term" translate --glossary "$dir/bad" "$dir/in"
has "two translations of a term are named" "$dir/err" "$dir/bad: line 3: found 'Köter' as the translation of 'dog', expected 'Hund'"
run 1 "no such file" translate --glossary "$dir/none" "$dir/in"
has "no such file: its name" "$dir/err" "$dir/none"
gzip -c "$dir/glossary" >"$dir/glossary.gz"
translate --glossary "$dir/glossary.gz" "$dir/in" >"$dir/out"
same "a compressed file" "$dir/out" "$dir/expected"
run 2 "sampling" translate --glossary "$dir/glossary" --output-sampling full "$dir/in"
has "sampling: why not" "$dir/err" "a glossary needs beam search"
wrong "how terms are found, without terms" "option --glossary-ignore-case is for --glossary, which is missing" \
    translate -m "$model" --glossary-ignore-case "$dir/in"
wrong "standard input twice" "found standard input as the glossary and as text to translate" \
    translate -m "$model" --glossary - "$dir/in" -
wrong "standard input twice, once by default" "found standard input as the glossary and as text to translate" \
    translate -m "$model" --glossary -
translate --glossary - "$dir/in" <"$dir/glossary" >"$dir/out"
same "standard input once" "$dir/out" "$dir/expected"
printf 'dog\tKöter\n' >"$dir/one"
run 0 "another model" "$tfm" translate -m "$model" --glossary "$dir/one" "$dir/in"
is "another model: the term" "$(grep -c -w Köter "$dir/out")" 2

finish
