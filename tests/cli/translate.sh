#!/bin/sh
# tfm translate: one line out for each line in, whatever comes in and however it comes; where the output goes; and the
# formats it has.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

# translate ARGUMENT...: with the test model
translate() {
    "$tfm" translate -m "$model" "$@"
}
# translated TEXT: the translation of one line
translated() {
    printf '%s\n' "$1" | translate
}

# ---- lines ----

is "a sentence" "$(translated 'the dog sees the house.')" "der Hund sieht das Haus."

printf 'the cat has two cups.\n\nthe bird needs the river.\n' | translate >"$dir/out"
is "a blank line: as many lines come out" "$(wc -l <"$dir/out")" 3
is "a blank line stays blank" "$(sed -n 2p "$dir/out")" ""
is "the line before it" "$(sed -n 1p "$dir/out")" "$(translated 'the cat has two cups.')"
is "the line behind it" "$(sed -n 3p "$dir/out")" "$(translated 'the bird needs the river.')"
printf ' \t \n\302\240\n' | translate >"$dir/out"
printf '\n\n' >"$dir/expected"
same "white space alone gives an empty line" "$dir/out" "$dir/expected"
translate </dev/null >"$dir/out"
check "no input, no output" test ! -s "$dir/out"

printf 'the cat has two cups.\nthe bird needs the river.\n' >"$dir/in"
translate "$dir/in" >"$dir/expected"
printf 'the cat has two cups.\nthe bird needs the river.' >"$dir/no-end"
translate "$dir/no-end" >"$dir/out"
same "a last line without line end, from a file" "$dir/out" "$dir/expected"
translate <"$dir/no-end" >"$dir/out"
same "a last line without line end, from standard input" "$dir/out" "$dir/expected"
printf 'the cat has two cups.\r\nthe bird needs the river.\r\n' | translate >"$dir/out"
same "carriage returns are no part of a line, nor of its translation" "$dir/out" "$dir/expected"
{ printf '\357\273\277' && cat "$dir/in"; } | translate >"$dir/out"
same "a byte order mark is no part of the text" "$dir/out" "$dir/expected"
cat "$dir/in" "$dir/in" >"$dir/twice"
translate "$dir/twice" >"$dir/expected2"
translate "$dir/in" - <"$dir/in" >"$dir/out"
same "a file and standard input, one after the other" "$dir/out" "$dir/expected2"

printf 'ok\303( bad \377 end\nthe dog likes\000some bread.\nthe cat\342\202' >"$dir/invalid"
run 0 "bytes that are not UTF-8" translate "$dir/invalid"
is "bytes that are not UTF-8: a line each" "$(wc -l <"$dir/out")" 3
check "bytes that are not UTF-8: what comes out is" iconv -f UTF-8 -t UTF-8 "$dir/out" -o "$dir/iconv"
is "bytes that are not UTF-8: one warning a file" "$(wc -l <"$dir/err")" 1
has "bytes that are not UTF-8: the warning names file and line" "$dir/err" "$dir/invalid: line 1: not valid UTF-8"
is "a NUL byte is read as a space" "$(sed -n 2p "$dir/out")" "$(translated 'the dog likes some bread.')"
run 0 "--quiet" translate --quiet "$dir/invalid"
is "--quiet prints no warning" "$(cat "$dir/err")" ""

awk 'BEGIN { for (i = 0; i < 5000; i++) printf "%c", 97 + i * 7 % 26; print "" }' >"$dir/long"
run 0 "5,000 letters without a space" timeout 60 "$tfm" translate -m "$model" "$dir/long"
is "5,000 letters: one line" "$(wc -l <"$dir/out")" 1
has "5,000 letters: a note says that they were cut" "$dir/err" "$dir/long: line 1: longer than --max-length.* parts"
printf 'left\tright\n' | translate >"$dir/out"
is "a tab is white space within a line" "$(wc -l <"$dir/out")" 1
printf 'zumbrel\n- - - - - -\nha ha ha ha\nThe bus is late \360\237\232\214. We will walk home.\n' >"$dir/odd"
run 0 "words that no training had" translate -v "$dir/odd"
is "words that no training had: a line each" "$(wc -l <"$dir/out")" 4
run 0 "the length limit" translate -v --max-length-factor 0 "$dir/in"
has "the length limit shows with --verbose" "$dir/err" "$dir/in: line 2: ended by the length limit"
has "the model shows with --verbose" "$dir/err" "model $model"
echo word >"$dir/word"
run 0 "the time of one word" translate --stats --cpu-threads 1 "$dir/word"
has "is told of one" "$dir/err" '1 line, 1 word in .* on 1 thread: '
run 0 "where the time went" translate --stats "$dir/in"
has "lines, words, speed, time to start and memory show with --stats" "$dir/err" \
    "2 lines, 10 words in [0-9.]* s on [0-9]* threads*: .* words/s, products of [0-9.]* GFLOP/s; ready after 0[.][0-9]* s; [0-9.]* MiB at most"
has "and the share of each part" "$dir/err" "text to pieces and back [0-9.]*%, .*feed-forward [0-9.]*%, .*search"

run 0 "products by OpenBLAS" translate --gemm blas --precision fp32 "$dir/in"
is "products by OpenBLAS: the same text" "$(cat "$dir/out")" "$(translate --precision fp32 "$dir/in")"
run 0 "products by OpenBLAS: with n-best and no shortlist" translate --gemm blas --n-best 2 --shortlist off "$dir/in"
run 2 "products by OpenBLAS are not of int8" translate --gemm blas --precision int8 "$dir/in"
has "products by OpenBLAS are not of int8: and that is told" "$dir/err" "whole numbers of 8 bits: open the model as fp32"

# ---- the same result however it is made ----

toy_corpus "$dir/toy"
awk 'NR % 8 == 3' "$dir/toy/en" >"$dir/64"
translate --cpu-threads 1 "$dir/64" >"$dir/expected"
is "64 lines" "$(wc -l <"$dir/expected")" 64
for threads in 2 8; do
    translate --cpu-threads $threads "$dir/64" >"$dir/out"
    same "64 lines with $threads threads" "$dir/out" "$dir/expected"
done
translate --mini-batch 1 "$dir/64" >"$dir/out"
same "64 lines one by one" "$dir/out" "$dir/expected"
translate --cpu ref "$dir/64" >"$dir/out"
same "64 lines with plain C kernels" "$dir/out" "$dir/expected"
run 0 "the precision shows with --verbose" translate -v --precision fp32 "$dir/64"
has "the precision shows with --verbose" "$dir/err" "model $model in fp32, "
same "64 lines in fp32" "$dir/out" "$dir/expected"
run 0 "64 lines in int8" translate -v --precision int8 --word-scores --n-best "$dir/64"
has "64 lines in int8" "$dir/err" "model $model in int8, "
cp "$dir/out" "$dir/int8"
translate --precision int8 "$dir/64" | diff "$dir/expected" - | grep -c '^>' >"$dir/out"
is "int8 changes at most 8 of 64 lines" "$([ "$(cat "$dir/out")" -le 8 ] && echo yes)" yes
for cpu in ref avx2; do
    [ $cpu = ref ] || grep -q avx2 /proc/cpuinfo || continue
    translate --precision int8 --cpu $cpu --mini-batch 7 --cpu-threads 2 --word-scores --n-best "$dir/64" >"$dir/out"
    same "64 lines in int8, scores too, with $cpu kernels, other batches and threads" "$dir/out" "$dir/int8"
done
dd bs=1 if="$dir/64" 2>/dev/null | translate >"$dir/out"
same "64 lines that come byte by byte through a pipe" "$dir/out" "$dir/expected"
mkfifo "$dir/fifo"
cat "$dir/64" >"$dir/fifo" &
translate "$dir/fifo" >"$dir/out"
same "64 lines from a named pipe" "$dir/out" "$dir/expected"
awk 'BEGIN { for (i = 0; i < 4500; i++) print i % 3 ? "" : "the cat has two cups." }' >"$dir/many"
translate -b 1 "$dir/many" >"$dir/out"
is "more lines than are taken in one go" "$(sort "$dir/out" | uniq -c | awk '{ print $1 }' | tr '\n' ' ')" "3000 1500 "

if can_limit; then
    for threads in 1 2 8; do # each in less than all would like to have
        (
            ulimit -v 2000000
            "$tfm" translate -m "$model" --cpu-threads $threads "$dir/64"
        ) >"$dir/out" 2>"$dir/err"
        same "64 lines in little address space with $threads threads" "$dir/out" "$dir/expected"
    done
    (ulimit -v 2000000; "$tfm" translate -m "$model" --cpu-threads 64 "$dir/64") >"$dir/out" 2>"$dir/err"
    is "64 threads in as much" $? 1
    has "64 threads in as much: the way out is told" "$dir/err" "fewer (--cpu-threads)\|threads could be started"
else
    skip "little address space" "the program cannot run in it"
fi

# ---- a conversation ----

mkfifo "$dir/to" "$dir/from"
translate <"$dir/to" >"$dir/from" &
exec 3>"$dir/to" 4<"$dir/from"
for line in "the dog sees the house." "" "a man wants an old book."; do
    printf '%s\n' "$line" >&3
    answer=$(timeout 20 sh -c 'read -r answer && printf %s "$answer"' <&4) || answer="no answer"
    is "a line is answered before the next one is sent: '$line'" "$answer" "$(translated "$line")"
done
exec 3>&- 4<&-
wait

# ---- gzip ----

gzip -c "$dir/64" >"$dir/64.gz"
translate "$dir/64.gz" >"$dir/out"
same "a gzip file" "$dir/out" "$dir/expected"
translate <"$dir/64.gz" >"$dir/out"
same "a gzip file as standard input" "$dir/out" "$dir/expected"
{ head -n 20 "$dir/64" | gzip -c && tail -n 44 "$dir/64" | gzip -c; } >"$dir/joined.gz"
translate "$dir/joined.gz" >"$dir/out"
same "a gzip file of two members" "$dir/out" "$dir/expected"
size=$(wc -c <"$dir/64.gz")
head -c $((size / 2)) "$dir/64.gz" >"$dir/half.gz"
head -c $((size - 8)) "$dir/64.gz" >"$dir/no-sum.gz"
cp "$dir/64.gz" "$dir/flipped.gz"
printf 'X' | dd of="$dir/flipped.gz" bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
for kind in half no-sum flipped; do
    run 1 "a damaged gzip file ($kind)" translate -o "$dir/new" "$dir/$kind.gz"
    has "a damaged gzip file ($kind): the message names it" "$dir/err" "$dir/$kind.gz: line [0-9]*: .*gzip"
    check "a damaged gzip file ($kind): nothing is written" test ! -e "$dir/new"
done

# ---- where the output goes ----

echo old >"$dir/new"
chmod 640 "$dir/new"
run 1 "an input that fails" translate -o "$dir/new" "$dir/64" "$dir/half.gz"
is "an input that fails leaves the old output" "$(cat "$dir/new")" old
run 1 "an input that does not exist" translate -o "$dir/new" "$dir/64" "$dir/nothing"
has "an input that does not exist is named" "$dir/err" "$dir/nothing: No such file"
run 1 "a folder as input" translate -o "$dir/new" "$dir"
is "no temporary file stays" "$(find "$dir" -name '*.tmp-*')" ""
run 0 "--output" translate -o "$dir/new" "$dir/64"
same "--output has the translation" "$dir/new" "$dir/expected"
is "--output keeps the permissions" "$(stat -c %a "$dir/new")" 640
ln -s new "$dir/link"
run 0 "--output through a symbolic link" translate -o "$dir/link" "$dir/in"
check "the link stays a link" test -L "$dir/link"
is "its target has the translation" "$(wc -l <"$dir/new")" 2
translate -o - "$dir/64" >"$dir/out"
same "--output - is standard output" "$dir/out" "$dir/expected"
translate -o /dev/stdout "$dir/64" >>"$dir/out"
is "--output /dev/stdout appends where the shell does" "$(wc -l <"$dir/out")" 128
cat "$dir/fifo" >"$dir/out" &
translate -o "$dir/fifo" "$dir/64"
wait
same "--output to a named pipe" "$dir/out" "$dir/expected"
check "the named pipe is still one" test -p "$dir/fifo"
run 1 "--output into a folder that does not exist" translate -o "$dir/nothing/new" "$dir/64"
has "the folder is named" "$dir/err" "cannot write $dir/nothing/new: No such file"
if [ -e /dev/full ]; then
    translate "$dir/64" >/dev/full 2>"$dir/err"
    is "a full disk" $? 1
    is "a full disk: one line says so" "$(cat "$dir/err")" \
        "tfm translate: cannot write standard output: No space left on device"
    run 1 "a full disk behind --output" translate -o /dev/full "$dir/64"
    has "a full disk behind --output is named" "$dir/err" "cannot write /dev/full: No space left on device"
else
    skip "a full disk" "no /dev/full"
fi
run 1 "a file that may not grow" sh -c "ulimit -f 1; '$tfm' translate -m '$model' --n-best --word-scores \
    -o '$dir/limited' '$dir/64'"
has "a file that may not grow: the reason" "$dir/err" "cannot write $dir/limited: File too large"
check "a file that may not grow is not there in part" test ! -e "$dir/limited"
{
    sleep 0.2
    translate "$dir/64" 2>"$dir/err"
    echo $? >"$dir/status"
} | true
is "a closed pipe ends it quietly: the status" "$(cat "$dir/status")" 141
is "a closed pipe ends it quietly: no message" "$(cat "$dir/err")" ""

mkfifo "$dir/silent"
exec 3<>"$dir/silent"
timeout --preserve-status -s INT 1 "$tfm" translate -m "$model" -o "$dir/interrupted" <"$dir/silent"
is "SIGINT: the status" $? 130
exec 3>&-
is "SIGINT leaves no file behind" "$(find "$dir" -name 'interrupted*')" ""
if can_limit; then # under a sanitizer there may be a thread more
    exec 3<>"$dir/silent"
    "$tfm" translate -m "$model" --cpu-threads 1 <"$dir/silent" >"$dir/answer" 3>&- &
    echo "the cat has two cups." >&3
    for i in $(seq 100); do
        [ -s "$dir/answer" ] || sleep 0.1
    done
    is "one thread is one thread: no library has any" "$(sed -n 's/^Threads:[^0-9]*//p' /proc/$!/status)" 1
    exec 3>&-
    wait $!
else
    skip "one thread is one thread" "the program has others"
fi

for name in weights.safetensors weights.safetensors.gz; do # and then it would wait for a writer
    mkdir "$dir/$name" && cp "$model/config.json" "$model/vocab.spm" "$dir/$name" && mkfifo "$dir/$name/$name"
    run 1 "a pipe in place of $name" timeout 20 "$tfm" translate -m "$dir/$name" "$dir/in"
    has "a pipe in place of $name is named" "$dir/err" "$dir/$name/$name is not a regular file"
done

cp "$dir/in" "$dir/input"
for target in "$dir/input" "$dir/./input"; do
    wrong "the output is the input" "the output would overwrite the input $dir/input" \
        translate -m "$model" -o "$target" "$dir/input"
done
ln "$dir/input" "$dir/hard"
wrong "the output is the input by another name" "would overwrite" translate -m "$model" -o "$dir/hard" "$dir/input"
wrong "--output-dir is the folder of the input" "would overwrite the input $dir/input; give another --output-dir or" \
    translate -m "$model" --output-dir "$dir" "$dir/input"
same "the input is as it was" "$dir/input" "$dir/in"

mkdir "$dir/other" && cp "$dir/64" "$dir/other/input"
wrong "two inputs with one name" "$dir/input and $dir/other/input would both be translated into $dir/to-dir/input" \
    translate -m "$model" --output-dir "$dir/to-dir" "$dir/input" "$dir/other/input"
run 1 "many files, two of which fail" translate --output-dir "$dir/a/b" --suffix .de "$dir/input" "$dir/nothing" \
    "$dir/half.gz" "$dir/64.gz"
is "many files: a line for each that failed, and the sum" "$(wc -l <"$dir/err")" 3
has "many files: the sum" "$dir/err" "2 of 4 files failed"
same "many files: the last one is translated" "$dir/a/b/64.de" "$dir/expected"
is "many files: what is there in the end" "$(ls "$dir/a/b")" "64.de
input.de"
run 0 "--suffix lets the output lie beside the input" translate --output-dir "$dir" --suffix .de "$dir/input"
is "it has its lines" "$(wc -l <"$dir/input.de")" 2
run 0 "n-best into --output-dir" translate --n-best 1 --output-dir "$dir/ids" "$dir/input" "$dir/64"
is "ids count from 0 in each file" "$(head -c 6 "$dir/ids/64")" "0 ||| "

# ---- formats ----

run 0 "--n-best" translate -b 4 --n-best 3 "$dir/twice"
is "--n-best: the ids" "$(sed 's/ .*//' "$dir/out" | tr '\n' ' ')" "0 0 0 1 1 1 2 2 2 3 3 3 "
is "--n-best: the first is the translation" "$(awk -F ' \\|\\|\\| ' 'NR == 1 { print $2 }' "$dir/out")" \
    "$(translated 'the cat has two cups.')"
has "--n-best: the form" "$dir/out" \
    '^0 ||| [^|]* ||| F0= -[0-9]*\.[0-9]\{6\} ||| -[0-9]*\.[0-9]\{6\}$'
check "--n-best: best first" awk -F ' \\|\\|\\| ' '$1 == id && $4 > score { exit 1 } { id = $1; score = $4 }' "$dir/out"
translate -b 4 --n-best "$dir/in" >"$dir/out"
is "--n-best without a number gives the whole beam" "$(wc -l <"$dir/out")" 8
translate --n-best=2 --word-scores "$dir/in" >"$dir/out"
check "--word-scores add up to the score" awk -F ' \\|\\|\\| ' '{
    n = split($3, s, " "); sum = 0
    for (i = 2; i <= n; i++) sum += s[i]
    if (s[1] != "WordScores=" || sum - substr($4, 5) > 1e-4 || substr($4, 5) - sum > 1e-4) exit 1 }' "$dir/out"
translate --word-scores "$dir/in" >"$dir/out"
has "--word-scores alone" "$dir/out" '^die Katze hat zwei Tassen. ||| WordScores= -[-0-9. ]*$'
printf '\n' | translate --n-best 1 >"$dir/out"
is "--n-best of a blank line" "$(cat "$dir/out")" "0 |||  ||| F0= 0.000000 ||| 0.000000"
printf '\nthe cat has two cups.\n' | translate --format json >"$dir/out"
is "JSON: an object a line" "$(wc -l <"$dir/out")" 2
has "JSON of a blank line" "$dir/out" '^{"id": 0, "rank": 1, "text": "", .*"pieces": \[\], "piece_scores": \[\]'
has "JSON" "$dir/out" '^{"id": 1, "rank": 1, "text": "die Katze hat zwei Tassen.", "score": -[0-9.]*, "normalized'
if command -v python3 >/dev/null; then
    printf 'the "dog"\\ sees\t\001 the house.\n' | translate --format json --n-best >>"$dir/out"
    check "JSON can be parsed" python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' <"$dir/out"
else
    skip "JSON can be parsed" "no python3"
fi
translate --format text "$dir/64" >"$dir/out"
same "--format text is the default" "$dir/out" "$dir/expected"

# A model that learned to write bars shows that a record can still be split at them.
sed 's/ / ||| /' "$dir/toy/de" >"$dir/toy/bars"
"$tfm" train -t "$dir/toy/en" "$dir/toy/bars" -m "$dir/bars" --dim-model 32 --dim-ffn 64 --heads 2 --enc-depth 2 \
    --dec-depth 2 --vocab-size 200 --mini-batch-words 1000 --after 150u --learn-rate 0.01 --lr-warmup 30 --dropout 0 \
    --exponential-smoothing 0.05 --cpu-threads 2 --quiet
echo "the dog sees the house." >"$dir/in"
is "bars in plain text are as they are" "$("$tfm" translate -m "$dir/bars" "$dir/in")" \
    "der ||| Hund sieht das Haus."
"$tfm" translate -m "$dir/bars" --n-best --word-scores "$dir/in" >"$dir/out"
is "bars in n-best records: five fields each" \
    "$(awk -F ' \\|\\|\\| ' '{ print NF }' "$dir/out" | sort -u)" 5
has "bars in n-best records are escaped" "$dir/out" '^0 ||| der &#124;&#124;&#124; Hund sieht das Haus. ||| Word'
has "bars in JSON are as they are" "$("$tfm" translate -m "$dir/bars" --format json "$dir/in" >"$dir/out"; echo "$dir/out")" \
    '"text": "der ||| Hund sieht das Haus."'
printf 'Price | total ||| net\n' | translate --n-best --word-scores >"$dir/out"
is "bars in the source: five fields a record" "$(awk -F ' \\|\\|\\| ' '{ print NF }' "$dir/out" | sort -u)" 5

# ---- on a terminal ----

# screen COMMAND: what a terminal is sent, where translate is `translate` in the command
screen() {
    script -qec "$tfm translate -m models/en-de -b 1 --mini-batch 1 --maxi-batch 1 $1" /dev/null </dev/null | tr -d '\r'
}

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    printf 'One.\nTwo.\nThree.\n' >"$dir/three"
    for to in "-o $dir/out" "--output-dir $dir/outs" ">$dir/out"; do
        screen "$to $dir/three" >"$dir/screen"
        has "a line shows how far a file is: $to" "$dir/screen" "$dir/three: 2 lines, [0-9.]* a second"
    done
    screen "$dir/three" >"$dir/screen"
    is "none where translations go to the terminal" "$(wc -l <"$dir/screen")-$(grep -c 'a second' "$dir/screen")" 3-0
else
    skip "a line shows how far a file is" "script gives no terminal here"
fi

finish
