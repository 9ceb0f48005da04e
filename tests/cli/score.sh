#!/bin/sh
# tfm score: pairs have the scores that translation found them with; files, tabs and lists of hypotheses; messages where
# they do not fit.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

score() {
    "$tfm" score -m "$model" "$@"
}

toy_corpus "$dir/toy"
awk 'NR % 16 == 3' "$dir/toy/en" >"$dir/en"
"$tfm" translate -m "$model" --n-best 3 "$dir/en" >"$dir/list"
awk -F ' \\|\\|\\| ' 'NR == 1 || $1 != id { print substr($3, 5) "\t" $4 } { id = $1 }' "$dir/list" >"$dir/expected"
awk -F ' \\|\\|\\| ' 'NR == 1 || $1 != id { print $2 } { id = $1 }' "$dir/list" >"$dir/de"
score "$dir/en" "$dir/de" >"$dir/out"
same "translations have the scores that they were found with" "$dir/out" "$dir/expected"
score -t "$dir/en" "$dir/de" --mini-batch 3 --cpu-threads 2 --cpu ref >"$dir/out"
same "whatever the batches, threads and kernels" "$dir/out" "$dir/expected"
paste "$dir/en" "$dir/de" | gzip -c >"$dir/tsv.gz"
score --tsv "$dir/tsv.gz" >"$dir/out"
same "from one file with tabs" "$dir/out" "$dir/expected"
gunzip -c "$dir/tsv.gz" | score --tsv - -o "$dir/new"
same "from standard input, into a file" "$dir/new" "$dir/expected"

score --normalize 0 "$dir/en" "$dir/de" >"$dir/out"
check "--normalize 0" awk -F '\t' '$1 != $2 { exit 1 }' "$dir/out"
score --word-scores "$dir/en" "$dir/de" >"$dir/out"
check "--word-scores add up to the score" awk -F '\t' '{
    n = split($3, s, " "); sum = 0
    for (i = 1; i <= n; i++) sum += s[i]
    if (n < 2 || sum - $1 > 1e-4 || $1 - sum > 1e-4) exit 1 }' "$dir/out"
score --summary "$dir/en" "$dir/de" >"$dir/out"
check "--summary" awk -F '\t' -v sum="$(awk -F '\t' '{ s -= $1 } END { print s }' "$dir/expected")" '
    { v[$1] = $2 }
    END {
        if (v["pairs"] != 32 || v["ce-sum"] - sum > 1e-3 || sum - v["ce-sum"] > 1e-3) exit 1
        if (v["perplexity"] - exp(v["ce-sum"] / v["pieces"]) > 1e-4) exit 1
        if (v["cross-entropy"] - v["ce-sum"] / 32 > 1e-4) exit 1
    }' "$dir/out"
score --summary /dev/null /dev/null >"$dir/out"
has "--summary of nothing" "$dir/out" '^perplexity	1.000000$'

score --n-best "$dir/en" "$dir/list" >"$dir/out"
is "a list: as many lines" "$(wc -l <"$dir/out")" "$(wc -l <"$dir/list")"
sed 's/ Score= [-0-9.]*//' "$dir/out" >"$dir/stripped"
same "a list: the lines are as they were, but for a feature" "$dir/stripped" "$dir/list"
check "a list: the feature is the score" awk '{
    for (i = 1; i < NF; i++) { if ($i == "F0=") f = $(i + 1); if ($i == "Score=") s = $(i + 1) }
    same += f == s
    if (id[$1]++ == 0 && f != s) exit 1 }
    END { if (same < NR * 0.8) exit 1 }' "$dir/out"
score --n-best --n-best-feature B "$dir/en" "$dir/out" >"$dir/twice"
has "a list scored twice: two features" "$dir/twice" ' ||| F0= [-0-9.]* Score= [-0-9.]* B= [-0-9.]* ||| [-0-9.]*$'
wrong "both sides from standard input" "found standard input for both sides" score -m "$model" - -
for name in '' 'B C' 'a|||b' 'B='; do
    wrong "a feature named '$name'" "option --n-best-feature: found '$name', expected a name" \
        score -m "$model" --n-best --n-best-feature "$name" "$dir/en" "$dir/out"
done
printf '1 ||| der &#124;&#124;&#124; Hund ||| a= 1\n' >"$dir/odd"
score --n-best "$dir/en" "$dir/odd" >"$dir/out"
has "a list without scores, one that skips lines" "$dir/out" '^1 ||| der &#124;&#124;&#124; Hund ||| a= 1 Score= -[0-9.]*$'
sed -n 2p "$dir/en" >"$dir/second"
echo 'der ||| Hund' >"$dir/bars"
is "its text has the bars" "$(score "$dir/second" "$dir/bars" | cut -f 1)" "$(sed 's/.*= //' "$dir/out")"

printf '\nx\n' >"$dir/a"
printf 'der Hund\n\n' >"$dir/b"
score "$dir/a" "$dir/b" >"$dir/out"
is "blank sides are scored" "$(grep -c '^-[0-9.]*	-[0-9.]*$' "$dir/out")" 2

head -n 9 "$dir/de" >"$dir/short"
run 1 "files of different lengths" score "$dir/en" "$dir/short"
has "files of different lengths: names and numbers" "$dir/err" "$dir/en has 32 lines and $dir/short has 9"
run 1 "the other way round" score "$dir/short" "$dir/de"
has "the other way round: names and numbers" "$dir/err" "$dir/short has 9 lines and $dir/de has 32"
printf 'a\tb\nc\n' >"$dir/tabs"
run 1 "a line without a tab" score --tsv "$dir/tabs"
has "a line without a tab is named" "$dir/err" "$dir/tabs: line 2: found no tab"
printf 'a\tb\tc\n' >"$dir/tabs"
run 1 "a line of three fields" score --tsv "$dir/tabs"
has "a line of three fields is named" "$dir/err" "$dir/tabs: line 1: found several tabs"
run 1 "a pair that is too long" score --max-length 3 "$dir/en" "$dir/de"
has "a pair that is too long is named" "$dir/err" "$dir/de: line 1: .*more than 3 pieces"
printf '0 ||| a ||| b ||| c\n99 ||| a ||| b ||| c\n' >"$dir/odd"
run 1 "an id beyond the source" score --n-best "$dir/en" "$dir/odd"
has "an id beyond the source is named" "$dir/err" "$dir/odd: line 2: the id is 99 and $dir/en has only 32 lines"
printf '1 ||| a ||| b ||| c\n0 ||| a ||| b ||| c\n' >"$dir/odd"
run 1 "an id that falls" score --n-best "$dir/en" "$dir/odd"
has "an id that falls is named" "$dir/err" "$dir/odd: line 2: the id 0 comes behind 1"
printf 'a line\n' >"$dir/odd"
run 1 "no list" score --n-best "$dir/en" "$dir/odd"
has "no list: what was expected" "$dir/err" "$dir/odd: line 1: expected 'id ||| text"

wrong "no files" "found 0 files" score
wrong "three files" "found 3 files" score a b c
wrong "files twice" "expected two files, or one text, or one of these" score --tsv a b c
wrong "a list with tabs" "option --n-best needs SRC and TRG, or TEXT" score --n-best --tsv a
wrong "units of no alignment" "option --alignment-of is for --alignment, which is missing" score --alignment-of pieces a b
wrong "the layer of no alignment" "option --alignment-layer is for --alignment, which is missing" score --alignment-layer 1 a b
wrong "the output is an input" "would overwrite" score -o "$dir/de" "$dir/en" "$dir/de"

{
    paste "$dir/en" "$dir/de" | head -n 3
    echo "no tab"
} >"$dir/odd"
run 1 "a bad line behind good ones" score --tsv "$dir/odd"
is "what was read before it is scored" "$(wc -l <"$dir/out")" 3
has "and it is named" "$dir/err" "$dir/odd: line 4: found no tab"
cp -R "$model" "$dir/listed"
echo damaged >"$dir/listed/shortlist.gz"
run 0 "a shortlist is nothing that scores need" "$tfm" score -m "$dir/listed" "$dir/en" "$dir/de"

finish
