#!/bin/sh
# tfm inspect and tfm inspect attention: what they show, in which formats, and what they refuse.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model
sentence="the dog sees the house."

inspect() {
    "$tfm" inspect "$@"
}
attention() {
    "$tfm" inspect attention -m "$model" "$@"
}
# parses FILE: passed if it is JSON; the expression is about its content x
parses() {
    if command -v python3 >/dev/null; then
        python3 -c "import json, sys; x = json.load(open(sys.argv[1])); assert $2, x" "$1" 2>"$dir/python"
        parses_status=$?
        result $parses_status "$3"
        [ $parses_status -eq 0 ] || tail -n 1 "$dir/python" | cut -c 1-500 | sed 's/^/# /'
    else
        skip "$3" "no python3"
    fi
}

# ---- a model ----

run 0 "a model" inspect "$model"
has "its layers" "$dir/out" 'encoder 2, decoder 2'
has "a tensor with shape and type" "$dir/out" 'model.encoder.layers.0.fc1.weight  *64 x 32  *F16  *4096 '
cp "$dir/out" "$dir/expected"
run 0 "a model with -m" inspect -m "$model"
same "is the same" "$dir/out" "$dir/expected"
TFM_MODEL=$model inspect >"$dir/out"
same "so is one in TFM_MODEL" "$dir/out" "$dir/expected"
run 0 "a model into a file" inspect -o "$dir/file" "$model"
same "the file" "$dir/file" "$dir/expected"
is "nothing on standard output" "$(cat "$dir/out")" ""
run 0 "a model as JSON" inspect --format json "$model"
parses "$dir/out" "x['parameters']['total'] == sum(t['parameters'] for t in x['tensors'])" \
    "JSON counts the parameters of all tensors"
parses "$dir/out" "x['config'].keys() == json.load(open('$model/config.json')).keys() and x['config']['d_model'] == 32" "JSON holds config.json"
run 1 "a folder that is no model" inspect "$dir"
has "a folder that is no model: the message" "$dir/err" "$dir"
if [ "$(id -u)" -ne 0 ]; then
    cp -R "$model" "$dir/locked" && chmod 000 "$dir/locked"
    run 1 "a folder that may not be read" inspect "$dir/locked"
    has "a folder that may not be read: the reason" "$dir/err" "locked/config.json: Permission denied"
    chmod 755 "$dir/locked"
else
    skip "a folder that may not be read" "root can read everything"
fi
mkdir "$dir/attention" && cp "$model"/* "$dir/attention"
(cd "$dir" && "$tfm" inspect ./attention >out)
has "a folder with the name of the subcommand" "$dir/out" "encoder 2, decoder 2"

cp -R "$model" "$dir/broken"
size=$(wc -c <"$model/weights.safetensors.gz")
head -c $((size - 8)) "$model/weights.safetensors.gz" >"$dir/broken/weights.safetensors.gz"
run 1 "weights without their last bytes" inspect "$dir/broken"
has "weights without their last bytes: the file is named" "$dir/err" "$dir/broken/weights.safetensors.gz"
printf 'X' | dd of="$dir/broken/weights.safetensors.gz" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
run 1 "weights with a wrong byte" inspect "$dir/broken"
rm "$dir/broken/vocab.spm"
run 1 "a model without its vocabulary" inspect "$dir/broken"

# ---- attention ----

run 0 "attention as text" attention "$sentence"
has "without a layer or head a map is the mean of a layer" "$dir/out" 'cross layer 1, mean of 2 heads'
check "text is no wider than 100 columns" sh -c "! LC_ALL=C.UTF-8 grep -q '.\{101\}' '$dir/out'"
check "no colours but on a terminal" sh -c "! grep -q '$(printf '\033')' '$dir/out'"

run 0 "attention of one layer as text" attention --layer 1 "$sentence"
has "with a layer there is a map a head" "$dir/out" 'cross layer 1 head 1'

run 0 "attention as TSV" attention --format tsv "$sentence" "der Hund sieht das Haus."
cp "$dir/out" "$dir/tsv"
is "the columns" "$(head -n 1 "$dir/tsv" | tr '\t' ' ')" "layer head query_index query key_index key weight"
rows_sum_to_one() {
    awk -F '\t' 'NR > 1 { sum[$1 "," $2 "," $3] += $7 }
        END { for (i in sum) { n++; if (sum[i] < 0.9999 || sum[i] > 1.0001) exit 1 } exit n == 0 }' "$1"
}
check "every row sums to 1" rows_sum_to_one "$dir/tsv"
is "2 layers of 2 heads" "$(awk -F '\t' 'NR > 1 { print $1 "," $2 }' "$dir/tsv" | sort -u | tr '\n' ' ')" \
    "0,0 0,1 1,0 1,1 "
for part in encoder decoder; do
    run 0 "attention of the $part" attention --part $part --format tsv "$sentence"
    check "attention of the $part: every row sums to 1" rows_sum_to_one "$dir/out"
done
is "the decoder does not look ahead" "$(awk -F '\t' 'NR > 1 && $5 > $3 && $7 != 0' "$dir/out")" ""
run 0 "one layer and head" attention --layer 1 --head 0 --format tsv "$sentence" "der Hund sieht das Haus."
awk -F '\t' 'NR == 1 || ($1 == 1 && $2 == 0)' "$dir/tsv" >"$dir/expected"
same "one layer and head are those of all" "$dir/out" "$dir/expected"
run 0 "-1 is all" attention --layer -1 --head=-1 --format tsv "$sentence" "der Hund sieht das Haus."
same "all" "$dir/out" "$dir/tsv"

run 0 "attention as JSON" attention --format json "$sentence"
parses "$dir/out" "''.join(x['target']).replace('\u2581', ' ').strip() == 'der Hund sieht das Haus.</s>'" \
    "without a target the translation is shown"
parses "$dir/out" "[h['head'] for l in x['layers'] for h in l['heads']] == [0, 1, 0, 1]" "JSON has all heads"
parses "$dir/out" "all(len(r) == len(x['keys']) for r in x['layers'][0]['heads'][0]['weights'])" \
    "JSON has a weight a key"
run 0 "attention as an array" attention --format npy -o "$dir/array.npy" "$sentence" "der Hund."
is "an array begins as NumPy has it" "$(head -c 6 "$dir/array.npy" | tr -d '\223')" NUMPY
n=$(attention --format tsv "$sentence" "der Hund." | tail -n +2 | wc -l)
is "an array has four bytes a weight" "$(($(wc -c <"$dir/array.npy") % 64 - n * 4 % 64))" 0
cp "$dir/array.npy" "$dir/expected"
attention --format npy "$sentence" "der Hund." >"$dir/out"
same "an array to standard output" "$dir/out" "$dir/expected"
attention --format npy --cpu ref "$sentence" "der Hund." >"$dir/out"
same "plain C kernels see the same" "$dir/out" "$dir/expected"
run 0 "attention as a picture" attention --format svg "$sentence" "der Hund."
is "a picture has all layers and heads" "$(grep -o 'layer [0-9] head [0-9]' "$dir/out" | tr '\n' ',')" \
    "layer 0 head 0,layer 0 head 1,layer 1 head 0,layer 1 head 1,"
is "a picture has the pieces" "$(sed -n 's/<text x="-4".*>\(.*\)<.text>/\1/p' "$dir/out" | tr -d '\n' | sed 's/▁/ /g')" \
    " der Hund.&lt;/s&gt;"
if script -qec true /dev/null >/dev/null 2>&1; then # there may be no pseudo-terminals
    script -qec "'$tfm' inspect attention -m '$model' --format npy x" /dev/null </dev/null >"$dir/out"
    is "no array on a terminal" $? 2
    script -qec "TERM=xterm '$tfm' inspect attention -m '$model' x" /dev/null </dev/null >"$dir/out"
    check "colours on a terminal" grep -q "$(printf '\033\\[')" "$dir/out"
    script -qec "TERM=xterm NO_COLOR=1 '$tfm' inspect attention -m '$model' x" /dev/null </dev/null >"$dir/out"
    check "no colours with NO_COLOR" sh -c "! grep -q '$(printf '\033')' '$dir/out'"
else
    skip "no array on a terminal" "no script"
fi

run 0 "an empty target" attention --format json "$sentence" ""
run 0 "an empty sentence" attention --format json ""
run 0 "a sentence that is not UTF-8" attention --format json "$(printf 'ok\303( bad')"
parses "$dir/out" "x" "JSON of it"
wrong "a layer that the model lacks" "there is no layer 7" inspect attention -m "$model" --layer 7 "$sentence"
wrong "a head that the model lacks" "there is no head 2" inspect attention -m "$model" --head 2 "$sentence"
if [ -e /dev/full ]; then
    attention --format json "$sentence" 2>"$dir/err" >/dev/full
    is "a full disk" $? 1
    is "a full disk: one line says so" "$(wc -l <"$dir/err")" 1
fi

finish
