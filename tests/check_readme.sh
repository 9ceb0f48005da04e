#!/bin/sh
# check_readme.sh: the commands of the README that use build/tfm do what it says, on small files of the names that it uses.
cd "$(dirname "$0")/.." || exit 1
. tests/cli/lib.sh
root=$PWD
if [ ! -e models/en-de/config.json ]; then
    echo "1..0 # SKIP no models/en-de"
    exit 0
fi
# A program that was built outside of the project does not find the model.
[ -e "$TFM_BUILD/../models/en-de" ] || export TFM_MODEL="$root/models/en-de"

toy_corpus "$dir/toy"
mkdir "$dir/work" && cd "$dir/work" || exit 1
ln -s "$root/models" models
head -n 300 ../toy/en >train.en
head -n 300 ../toy/de >train.de
tail -n 20 ../toy/en >val.en
tail -n 20 ../toy/de >val.de
printf 'Good evening.\n\nThe door is open.\n' >book.en
cp book.en lines.txt
cp book.en manual.txt
printf 'door\tTor\n' >terms.tsv
ln -s "$root/models/en-de" one
ln -s "$root/models/en-de" other
mkdir chapters out
cp book.en chapters/one.txt
cp book.en chapters/two.txt

# The indented lines that name the program; comments behind them are the shell's, too. One pass of training will do.
sed -n '/^    .*build\/tfm/s/^    //p' "$root/README.md" | sed "s|build/tfm|'$tfm'|g; s/--after 20e/--after 1e/" >commands
while IFS= read -r command; do
    run 0 "README: $(echo "$command" | sed 's/ *#.*//; s|.*/tfm.|tfm|')" sh -c "$command" </dev/null
done <commands
is "all commands were found" "$(wc -l <commands)" 14
is "a book has as many lines as before" "$(wc -l <book.de)" 3
check "chapters keep their names" test -s out/one.txt.de -a -s out/two.txt.de
check "the training left a model" test -s my-model/weights.safetensors.gz -a -e my-model/checkpoints/last/state.json
check "attention is an array" sh -c "head -c 6 attention.npy | grep -q NUMPY"
finish
