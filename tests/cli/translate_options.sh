#!/bin/sh
# tfm translate: sampling, forced prefixes, repetitions, lengths, and where long lines are cut.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

translate() {
    "$tfm" translate -m "$model" "$@"
}

toy_corpus "$dir/toy"
awk 'NR % 8 == 3' "$dir/toy/en" >"$dir/64"
translate "$dir/64" >"$dir/beam"

# ---- sampling ----

translate --output-sampling full --temperature 2 --n-best 3 --cpu-threads 1 "$dir/64" >"$dir/expected"
is "three samples a line" "$(cut -d ' ' -f 1 "$dir/expected" | uniq -c | awk '{ print $1 }' | uniq | tr '\n' ' ')" "3 "
check "samples are not all alike" test "$(awk -F ' \\|\\|\\| ' '{ print $2 }' "$dir/expected" | sort -u | wc -l)" -gt 100
translate --output-sampling full --temperature 2 --n-best 3 --cpu-threads 3 --mini-batch 5 --maxi-batch 1 --cpu ref \
    "$dir/64" >"$dir/out"
same "samples do not depend on threads, batches, windows and kernels" "$dir/out" "$dir/expected"
translate --output-sampling full --temperature 2 --n-best 3 --seed 2 "$dir/64" >"$dir/out"
check "another seed gives others" sh -c "! cmp -s '$dir/out' '$dir/expected'"
translate --output-sampling topk 1 "$dir/64" >"$dir/out"
translate -b 1 "$dir/64" >"$dir/greedy"
same "the best piece alone is greedy search" "$dir/out" "$dir/greedy"
translate --output-sampling topk "$dir/64" >"$dir/out"
translate --output-sampling=topk 10 "$dir/64" >"$dir/out2"
same "topk draws from 10 unless told otherwise" "$dir/out" "$dir/out2"
translate --output-sampling nucleus 0.9 "$dir/64" >"$dir/out"
translate --output-sampling topp "$dir/64" >"$dir/out2"
same "nucleus is another name of topp, of 0.9" "$dir/out" "$dir/out2"
run 0 "more samples than the beam would hold" translate --output-sampling full --n-best 20 "$dir/64"
wrong "an unknown kind of sampling" "found 'x', expected full, topk or topp" translate --output-sampling x
wrong "a number for full" "full takes no number, found '3'" translate --output-sampling full 3
wrong "a fraction for topk" "topk: found '2.5', expected a whole number" translate --output-sampling topk 2.5
wrong "a probability above one" "topp: found '1.5'" translate --output-sampling topp 1.5
wrong "a seed without drawing" "option --seed is for --output-sampling, which is missing" translate -m "$model" --seed 2
wrong "a temperature without drawing" "option --temperature is for --output-sampling, which is missing" \
    translate -m "$model" --temperature 0.5
wrong "units of no alignment" "option --alignment-of is for --alignment, which is missing" \
    translate -m "$model" --alignment-of pieces
wrong "the layer of no alignment" "option --alignment-layer is for --alignment, --replace-unk and --glossary" \
    translate -m "$model" --alignment-layer 0
wrong "a temperature of nothing" "option --temperature: found '0'" translate --temperature 0

# ---- prefixes ----

awk 'NR % 2 { print $0 "\tmein Freund" } NR % 2 == 0' "$dir/64" >"$dir/forced"
translate --force-decode "$dir/forced" >"$dir/out"
is "a line begins with its prefix" "$(awk 'NR % 2' "$dir/out" | grep -c '^mein Freund ')" 32
awk 'NR % 2 == 0' "$dir/out" >"$dir/free"
awk 'NR % 2 == 0' "$dir/beam" >"$dir/expected"
same "a line without a prefix is translated freely" "$dir/free" "$dir/expected"
printf 'the dog\tder Hund der Hund der Hund\nthe cat\n' >"$dir/long"
run 0 "a prefix that is too long" translate --force-decode --max-length 4 "$dir/long"
has "a prefix that is too long is named" "$dir/err" "$dir/long: line 1: what is forced on it is longer"
is "a prefix that is too long is printed as it is" "$(sed -n 1p "$dir/out")-$(wc -l <"$dir/out")" "der Hund der Hund der Hund-2"
run 0 "a prefix that is too long, in a list" translate --force-decode --max-length 4 --n-best -b 2 --word-scores "$dir/long"
is "a list: one line of it" "$(grep -c '^0 ||| der Hund der Hund der Hund ||| WordScores= ||| F0= 0.000000 ||| 0.000000$' "$dir/out")" 1

# ---- repetitions and lengths ----

printf 'the dog sees the dog sees the dog sees the dog sees the dog.\n' >"$dir/again"
translate --no-repeat-ngram-size 1 --format json "$dir/again" >"$dir/out"
is "no piece twice" "$(sed 's/.*"pieces": \[\([^]]*\)\].*/\1/' "$dir/out" | tr ',' '\n' | sed 's/ //g' | sort | uniq -d)" ""
translate --repetition-penalty 3 "$dir/again" >"$dir/out"
translate "$dir/again" >"$dir/out2"
check "a penalty changes what repeats itself" sh -c "! cmp -s '$dir/out' '$dir/out2'"
echo "the dog sees the house." >"$dir/one"
translate --min-length 20 --format json "$dir/one" >"$dir/out"
check "at least 20 pieces" test "$(sed 's/.*"piece_scores": \[\([^]]*\)\].*/\1/' "$dir/out" | tr ',' '\n' | wc -l)" -ge 21

# ---- long lines ----

run 0 "--max-length-crop" translate --max-length-crop --max-length 4 "$dir/64"
has "--max-length-crop: a note" "$dir/err" "$dir/64: line 1: longer than --max-length, cropped"
is "--max-length-crop: a line each" "$(wc -l <"$dir/out")" 64
head -n 6 "$dir/64" | tr '\n' ' ' >"$dir/paragraph"
run 0 "a paragraph" translate --max-length 40 "$dir/paragraph"
has "a paragraph: a note" "$dir/err" "line 1: longer than --max-length, translated in [0-9]* parts"
parts=$(sed 's/.*translated in \([0-9]*\) parts/\1/' "$dir/err")
check "a paragraph: $parts parts" test "$parts" -ge 2
head -n 1 "$dir/64" | tr '\n' ' ' | cat - "$dir/64" | head -n 1 >"$dir/two"
run 0 "two sentences" translate --max-length 20 "$dir/two"
is "two sentences are cut between them" "$(cat "$dir/out")" "$(head -n 1 "$dir/beam") $(head -n 1 "$dir/beam")"
real() {
    "$tfm" translate -m models/en-de "$@"
}
printf 'I like the red house with the green door, but my friend likes the blue one.\n' >"$dir/clauses"
printf 'I like the red house with the green door,\nbut my friend likes the blue one.\n' | real >"$dir/parts"
is "a sentence is cut behind a comma" "$(real --quiet --max-length 14 "$dir/clauses")" "$(paste -s -d ' ' "$dir/parts")"
printf 'He said: "I like it!" Then he went home.\n' >"$dir/quoted"
printf 'He said: "I like it!"\nThen he went home.\n' | real >"$dir/parts"
is "a sentence is cut behind a quotation mark" "$(real --quiet --max-length 12 "$dir/quoted")" \
    "$(paste -s -d ' ' "$dir/parts")"

# ---- alignments ----

printf 'the dog sees the house.\n\n' >"$dir/in"
translate --alignment hard "$dir/in" >"$dir/out"
has "a hard alignment" "$dir/out" '^der Hund sieht das Haus. ||| 0-0 1-1 2-2 [34]-3 4-4$'
is "that of a blank line" "$(sed -n 2p "$dir/out")" " ||| "
translate --alignment soft "$dir/in" >"$dir/out"
check "a soft alignment: a row a word, that sums to 1" awk -F ' \\|\\|\\| ' 'NR == 1 {
    n = split($2, rows, " ")
    for (i = 1; i <= n; i++) {
        m = split(rows[i], w, ","); sum = 0
        for (j = 1; j <= m; j++) sum += w[j]
        if (m != 5 || sum < 0.999 || sum > 1.001) bad = 1
    }
    if (n != 5 || bad) exit 1 }' "$dir/out"
translate --alignment 0 "$dir/in" >"$dir/out"
is "all pairs above 0" "$(sed -n '1s/.*||| //p' "$dir/out" | wc -w)" 25
is "no pair above 1" "$(translate --alignment 1 "$dir/in" | sed -n 1p)" "der Hund sieht das Haus. ||| "
translate --alignment hard --alignment-of pieces --alignment-layer 0 --word-scores --n-best 2 "$dir/in" >"$dir/out"
has "alignments in a list stand before the scores" "$dir/out" '^0 ||| [^|]* ||| [0-9 -]* ||| WordScores= [^|]* ||| F0= '
translate --alignment hard --format json "$dir/in" >"$dir/out"
has "alignments in JSON" "$dir/out" '"alignment": \[\[0, 0\], \[1, 1\], \[2, 2\], \[[34], 3\], \[4, 4\]\]'
translate --alignment soft --format json "$dir/in" >"$dir/out"
if command -v python3 >/dev/null; then
    check "weights in JSON" python3 -c 'import json, sys
a = [json.loads(line)["alignment"] for line in sys.stdin]
sys.exit(len(a[0]) != 5 or any(abs(sum(row) - 1) > 1e-3 for row in a[0]) or a[1] != [])' <"$dir/out"
else
    skip "weights in JSON" "no python3"
fi
translate --alignment hard "$dir/in" | sed -n '1s/.* ||| //p' >"$dir/expected"
printf 'the dog sees the house.\tder Hund sieht das Haus.\n' >"$dir/pair"
"$tfm" score -m "$model" --alignment hard --tsv "$dir/pair" | cut -f 3 >"$dir/out"
same "the alignment of a given pair" "$dir/out" "$dir/expected"
wrong "an unknown form of alignments" "found 'firm', expected hard, soft or a number" translate --alignment firm
run 2 "a layer that is not there" translate --alignment hard --alignment-layer 2 "$dir/in"
has "a layer that is not there: what there is" "$dir/err" "it must be from 0 to 1"
printf 'the dog sees \360\237\232\214.\n' >"$dir/in"
run 0 "--replace-unk" translate --replace-unk "$dir/in"
check "--replace-unk leaves no mark" sh -c "! grep -q '⁇' '$dir/out'"
printf 'the dog sees \360\237\232\214.\t«\360\237\230\200» mein \360\237\230\200x\360\237\230\200\n' >"$dir/in"
for options in --replace-unk --allow-unk --quiet; do
    translate --force-decode $options "$dir/in" >"$dir/out"
    has "$options leaves forced characters as they are" "$dir/out" '^«😀» mein 😀x😀'
done

# ---- more results than a call has room for ----

if (ulimit -v 450000 && "$tfm" --version) >/dev/null 2>&1; then
    awk 'BEGIN { split("the dog sees a house and that man goes", word, " ")
        srand(3)
        for (i = 0; i < 24; i++) {
            line = ""
            for (j = 0; j < 400; j++)
                line = line word[int(rand() * 8) + 1] " "
            print line
        } }' >"$dir/in"
    many="--n-best -b 4 --max-length 450 --max-length-factor 1 --alignment hard --cpu-threads 1"
    # shellcheck disable=SC2086
    translate $many "$dir/in" >"$dir/expected"
    # shellcheck disable=SC2086
    (ulimit -v 450000 && "$tfm" translate -m "$model" $many "$dir/in") >"$dir/out" 2>"$dir/err"
    is "little memory: the status" $? 0
    same "little memory: the same text" "$dir/out" "$dir/expected"
else
    skip "little memory" "the program takes more than there would be"
fi

finish
