#!/bin/sh
# How all commands read their options: what is accepted, and that wrong usage is one line that names the option, what
# was found and what was expected, with status 2.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

# ---- help and version ----

run 2 "tfm alone is wrong usage" "$tfm"
has "tfm alone prints its usage on standard error" "$dir/err" '^usage: tfm COMMAND'
is "tfm alone prints nothing on standard output" "$(cat "$dir/out")" ""
run 0 "tfm -h" "$tfm" -h
has "tfm -h prints to standard output" "$dir/out" '^usage: tfm COMMAND'
cp "$dir/out" "$dir/help"
run 0 "tfm help" "$tfm" help
same "tfm help is tfm -h" "$dir/out" "$dir/help"
run 0 "tfm --version" "$tfm" --version
is "the version is that of tfm.h" "$(cat "$dir/out")" \
    "tfm $(sed -n 's/^#define TFM_VERSION "\(.*\)"/\1/p' lib/tfm.h)"
for command in train translate score shortlist inspect convert; do
    run 0 "tfm $command -h" "$tfm" "$command" -h
    cp "$dir/out" "$dir/help"
    is "tfm $command -h prints nothing on standard error" "$(cat "$dir/err")" ""
    run 0 "tfm help $command" "$tfm" help "$command"
    same "tfm help $command is tfm $command -h" "$dir/out" "$dir/help"
    check "tfm $command -h fits 80 columns" sh -c "! grep -q '.\{81\}' '$dir/help'"
done
run 0 "the help shows defaults, not what was given before -h" "$tfm" translate --beam-size 3 -h
has "the default beam size" "$dir/out" '(default 5)'

# ---- wrong usage ----

wrong "an unknown command" "found 'translat', expected a command" translat
wrong "help of an unknown command" "found 'x', expected a command" help x
wrong "an unknown option" "unknown option '--xyzzy'" translate --xyzzy
wrong "an unknown short option" "unknown option '-Z'" translate -Z
wrong "a prefix, with the name it begins" "unknown option '--beam'; is '--beam-size' meant" translate --beam 4
wrong "a slip of the fingers, with the nearest name" "is '--beam-size' meant" translate --baem-size=4
wrong "a missing value at the end" "option --beam-size needs N, found the end of the line" translate --beam-size
wrong "an option in place of a value" "option -o needs FILE, found the option '--quiet'" translate -o --quiet
wrong "no value of two" "option -t needs SRC \[TRG\], found the end" train -m x -t
wrong "no value of two before an option" "option --train-sets needs SRC \[TRG\], found the option '-m'" \
    train --train-sets -m x
wrong "one value of two" "option -t needs SRC TRG, found the end" shortlist -m x -t a
wrong "one value of two before an option" "option --valid-sets needs SRC TRG, found the option '-f'" \
    convert --valid-sets a -f x y
wrong "one file of a pair" "a corpus .* needs two files, source and target" train -m x -t a
wrong "one file of a pair to validate on" "a validation set .* needs two files, source and target" \
    train -m x -t a b --valid-sets c
wrong "a value for a flag" "option --quiet takes no value, found '1'" translate --quiet=1
wrong "a word for a number" "option -b: found 'x', expected a whole number from 1 to" translate -b x
wrong "a fraction for a whole number" "option -b: found '1.5', expected a whole number" translate -b1.5
wrong "a number with a tail" "option --max-length: found '5k', expected" translate --max-length 5k
wrong "a number that is too small" "option --beam_size: found '0'" translate --beam_size=0
wrong "a number that is too large" "option --layer: found '99999999999999999999'" \
    inspect attention --layer 99999999999999999999 x
wrong "a decimal comma" "option --normalize: found '0,6', expected a number" translate --normalize=0,6
wrong "a negative number" "option -n: found '-1', expected a number from 0" translate -n -1
wrong "an empty number" "option -b: found ''" translate -b ""
wrong "a word that is none of the choices" "option --preset: found 'huge', expected tiny|small|base|student" \
    train -m x -t a b --preset huge
wrong "the begin of a choice" "option --format: found 'js', expected text|json" translate --format js
wrong "an unknown unit" "option --after: found '3x', expected an amount of training" train -m x -t a b --after 3x
wrong "an exponent in an amount" "option --after: found '1e5'" train -m x -t a b --after 1e5
wrong "an amount without a number" "option --after: found 'Ku'" train -m x -t a b --after Ku
wrong "a negative seed" "option --seed: found '-1'" train -m x -t a b --seed=-1
wrong "a tier that does not exist" "unknown CPU tier" translate --cpu mmx
wrong "an argument where none is due" "unexpected argument 'c'" train -m x -t a b c

# ---- recipes ----

printf '# a comment\n\nseed 7\n  dropout 0.x  # no number\n' >"$dir/recipe"
wrong "a wrong value in a recipe" "^tfm train: $dir/recipe, line 4: option --dropout: found '0.x', expected a number" \
    train --recipe "$dir/recipe"
printf 'seed 7\ndrop 0.1\n' >"$dir/recipe"
wrong "an unknown name in a recipe" "recipe, line 2: unknown option '--drop'; is '--dropout' meant?" train --recipe "$dir/recipe"
printf 'seed 7 8\n' >"$dir/recipe"
wrong "a word too many in a recipe" "$dir/recipe, line 1: unexpected word '8'" train --recipe "$dir/recipe"
printf 'tsv %s/c\nweights 1,2\n' "$dir" >"$dir/recipe"
run 1 "a corpus in a recipe, and one on the command line" "$tfm" train --recipe "$dir/recipe" -m "$dir/m" -t "$dir/a" "$dir/b"
has "the recipe's is the first of both" "$dir/err" "cannot open $dir/c: No such file"
printf 'tsv "%s/c d\n' "$dir" >"$dir/recipe"
wrong "a quote without its end in a recipe" "$dir/recipe, line 1: .*a quote without its end" train --recipe "$dir/recipe"
printf 'tsv c\nrecipe other\n' >"$dir/recipe"
wrong "a recipe in a recipe" "$dir/recipe, line 2: a recipe cannot name another" train --recipe "$dir/recipe"
run 1 "a recipe that is not there" "$tfm" train --recipe "$dir/none"
has "is named" "$dir/err" "$dir/none: No such file\|cannot open $dir/none"
wrong "a training without a model" "option --model is missing" train -t a b
wrong "a training without a corpus" "option --train-sets (or --tsv) is missing" train -m x
wrong "a corpus without its file" "option --tsv needs FILE, found the end" train -m x -t a b --tsv
wrong "two validation sets" "both --valid-sets and --valid-tsv" train -m x -t a b --valid-sets c d --valid-tsv e
wrong "an odd width" "--dim-model is 33 and should be even" train -m "$dir/x" -t a b --dim-model 33
wrong "heads that do not fit the width" "--dim-model is 128, which --heads 3 does not divide" \
    train -m "$dir/x" -t a b --heads 3
wrong "an unknown metric" "valid-metrics" train -m "$dir/x" -t a b --valid-sets a b --valid-metrics bleurt
wrong "metrics without a validation" "option --valid-metrics is for --valid-sets and --valid-tsv, found none of them" \
    train -m "$dir/x" -t a b --valid-metrics ce
for option in "weight 1" "cost mse" "head 0.0"; do
    # shellcheck disable=SC2086
    wrong "a guide without an alignment" "option --guided-alignment-${option% *} is for --guided-alignment, which is missing" \
        train -m "$dir/x" -t a b --guided-alignment-$option
done
wrong "a file and --input" "found --input and the file 'b'" translate -i a b
wrong "an empty name of a file" "option -o: found '', expected the name of a file" translate -m "$model" -o "" a
wrong "an empty name of a glossary" "option --glossary: found '', expected the name of a file" translate --glossary= a
wrong "an empty name of a folder" "option --tensorboard: found '', expected the name of a folder" \
    train -m "$dir/x" -t a b --tensorboard ""
wrong "an empty name of a model" "found '' as the name of the model" translate -m "" a
wrong "an empty name of a model to inspect" "found '' as the name of the model" inspect ""
wrong "two outputs" "both --output and --output-dir" translate -o x --output-dir y a
wrong "a suffix without --output-dir" "option --suffix is for --output-dir" translate --suffix .de a
wrong "standard input into --output-dir" "needs files with names" translate --output-dir x -
wrong "an empty name for --output-dir" "option --output-dir: found .., expected the name of a folder" \
    translate --output-dir= a
wrong "more hypotheses than the beam holds" "option --n-best: found 8, expected at most the beam size, 4" \
    translate -b 4 --n-best 8
wrong "attention without a sentence" "the source sentence is missing" inspect attention
wrong "a sentence without quotes" "unexpected argument 'c': quote" inspect attention a b c
wrong "two models" "unexpected argument 'b'" inspect a b
check "wrong usage leaves no folder behind" test ! -e "$dir/x"

# ---- what is accepted ----

mini_model
echo "the dog sees the house." >"$dir/in"
"$tfm" translate -m "$model" -b 3 -n 0.5 "$dir/in" >"$dir/expected"
translates() {
    name=$1
    shift
    run 0 "$name" "$tfm" translate "$@"
    same "$name: the result" "$dir/out" "$dir/expected"
}
translates "values behind equals signs" --model="$model" --beam-size=3 --normalize=0.5 "$dir/in"
translates "underscores for hyphens" --model "$model" --beam_size 3 --normalize 0.5 --max_length_factor=3 "$dir/in"
translates "joined values" -m"$model" -b3 -n0.5 "$dir/in"
translates "operands before options" "$dir/in" -m "$model" -b 3 -n 0.5
translates "-- ends the options" -m "$model" -b 3 -n 0.5 -- "$dir/in"
translates "the last of an option given twice" -b 9 -n 2 -m "$model" -b 3 -n 0.5 "$dir/in"
translates "--input for an operand" -m "$model" -b 3 -n 0.5 -i "$dir/in"
"$tfm" translate -m "$model" -n 1 "$dir/in" >"$dir/expected"
translates "an option whose value is left out" -m "$model" -n "$dir/in"
cp "$dir/in" "$dir/-in"
(cd "$dir" && "$tfm" translate -m "$model" -- -in >out)
same "a file whose name begins with a hyphen" "$dir/out" "$dir/expected"
TFM_MODEL=$model "$tfm" translate "$dir/in" >"$dir/out"
same "the model that TFM_MODEL names" "$dir/out" "$dir/expected"
run 1 "a model that does not exist" "$tfm" translate -m "$dir/nothing" "$dir/in"
has "its name is in the message" "$dir/err" "$dir/nothing"

# Without a model in any of the usual places: a copy of the program alone in a folder.
cp "$tfm" "$dir/tfm"
if [ ! -e /usr/local/share/tfm/models/en-de ]; then
    run 1 "no model to be found" "$dir/tfm" translate "$dir/in"
    has "the message says where it was looked for" "$dir/err" "no model was named.*-m.*TFM_MODEL.*$dir"
else
    skip "no model to be found" "a model is installed"
fi
mkdir -p "$dir/share/tfm/models" "$dir/bin" && cp "$tfm" "$dir/bin/tfm"
cp -R "$model" "$dir/share/tfm/models/en-de"
run 0 "the model in the share folder beside the program's" "$dir/bin/tfm" translate "$dir/in"
same "it translates" "$dir/out" "$dir/expected"

if [ -e /dev/full ]; then
    "$tfm" translate -h >/dev/full 2>"$dir/err"
    is "help to a full disk fails" "$?" 1
    has "and says so" "$dir/err" "cannot write standard output: No space left"
else
    skip "help to a full disk fails" "no /dev/full"
fi
"$tfm" translate -m "$model" "$dir/in" >&- 2>"$dir/err"
is "a closed standard output is an error" "$?" 1

finish
