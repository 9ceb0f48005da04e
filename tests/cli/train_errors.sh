#!/bin/sh
# What can be wrong with a corpus, a model folder, a disk or a learning rate: one sentence that says what, where and what
# to do, before the first update where that is possible, and with whatever was saved before untouched.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
en=$dir/toy/en
de=$dir/toy/de
paste "$en" "$de" >"$dir/both.tsv"
mini="--preset tiny --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 --vocab-size 100
      --mini-batch-words 200 --lr-warmup 20 --cpu-threads 1 --after 3u"

# train STATUS NAME FOLDER OPTION...: its messages are in $dir/err
train() {
    train_status=$1
    train_name=$2
    train_folder=$3
    shift 3
    # shellcheck disable=SC2086 # several options
    run "$train_status" "$train_name" "$tfm" train -m "$train_folder" $mini "$@"
}

# untrained NAME FOLDER: no update was made, and the new folder is gone
untrained() {
    check "$1: nothing was trained" test ! -e "$2"
}

# ---- the corpus ----

head -n 511 "$de" >"$dir/short"
train 1 "files of unequal length" "$dir/m1" -t "$en" "$dir/short"
has "both files and both counts are named" "$dir/err" "toy/en.* 512\|short has 511 lines but .*toy/en has 512"
untrained "files of unequal length" "$dir/m1"
train 1 "the other way round" "$dir/m1" -t "$dir/short" "$de"
has "the counts again" "$dir/err" "short has 511 lines but .*toy/de has 512"

printf '%s' "$(cat "$de")" >"$dir/unended"
train 0 "one side lacks the last newline" "$dir/m2" -t "$en" "$dir/unended"
has "no pair is lost" "$dir/err" "512 of 512 pairs"

{ head -n 30 "$dir/both.tsv"; echo "no tab here"; cat "$dir/both.tsv"; } >"$dir/no_tab.tsv"
train 1 "a line without a tab" "$dir/m3" --tsv "$dir/no_tab.tsv"
has "file and line are named" "$dir/err" "no_tab.tsv, line 31: .*tab"
untrained "a line without a tab" "$dir/m3"
{ head -n 5 "$dir/both.tsv"; printf 'a\tb\tc\n'; } >"$dir/tabs.tsv"
train 1 "a line with two tabs" "$dir/m3" --tsv "$dir/tabs.tsv"
has "its place is named" "$dir/err" "tabs.tsv, line 6: .*more than one tab"

gzip -c "$dir/both.tsv" >"$dir/both.tsv.gz"
train 0 "tab-separated and gzip" "$dir/m4" --tsv "$dir/both.tsv.gz"
check "the corpus' plain text is removed" test ! -e "$dir/m4/source.txt.tmp" -a ! -e "$dir/m4/target.txt.tmp"
train 0 "from a pipe" "$dir/m5" --tsv - <"$dir/both.tsv"
same "the pipe gives the same vocabulary" "$dir/m4/vocab.spm" "$dir/m5/vocab.spm"
train 0 "two plain files" "$dir/m6" -t "$en" "$de"
same "two files give the same weights as one of pairs" "$dir/m4/checkpoints/last/weights.safetensors" \
    "$dir/m6/checkpoints/last/weights.safetensors"

for cut in 8 500; do
    size=$(wc -c <"$dir/both.tsv.gz")
    head -c $((size - cut)) "$dir/both.tsv.gz" >"$dir/cut.tsv.gz"
    train 1 "a gzip file without its last $cut bytes" "$dir/m7" --tsv "$dir/cut.tsv.gz"
    has "file and line are named" "$dir/err" "cut.tsv.gz.*line [0-9]"
    untrained "a truncated file" "$dir/m7"
done

{ printf '\tein Haus\nx\t\n'; head -n 100 "$dir/both.tsv"; awk 'BEGIN {
    for (i = 0; i < 300; i++) printf "dog ";  printf "\tHund\n" }'; } >"$dir/odd.tsv"
train 0 "empty sides and long pairs" "$dir/m8" --tsv "$dir/odd.tsv"
has "are left out and counted" "$dir/err" "100 of 103 pairs.* left out: 2 empty on a side, 1 longer than 150"
for option in "--valid-tsv" "-v $en" "--valid-sets $en"; do
    # shellcheck disable=SC2086
    train 1 "a missing file of $option" "$dir/m8b" --tsv "$dir/both.tsv" $option "$dir/nowhere"
    has "is told by name" "$dir/err" "cannot open $dir/nowhere: No such file"
    check "before any work" test ! -e "$dir/m8b"
done

# ---- what is no UTF-8 ----

sed 's/ü/\xfc/' "$de" >"$dir/latin1"
line=$(grep -n 'ü' "$de" | head -n 1 | cut -d : -f 1)
train 0 "a text that is no UTF-8" "$dir/l1" -t "$en" "$dir/latin1" --valid-sets "$en" "$dir/latin1" --valid-metrics ce
is "is told of each file once" "$(grep -c "latin1: line $line: not valid UTF-8, read as U+FFFD here and in later lines" "$dir/err")" 2
is "and of no other" "$(grep -c 'not valid UTF-8' "$dir/err")" 2

: >"$dir/empty"
train 1 "an empty corpus" "$dir/m9" -t "$dir/empty" "$dir/empty" -v "$dir/m4/vocab.spm" "$dir/m4/vocab.spm"
has "no pair is told" "$dir/err" "no pair to train on"
train 1 "an empty corpus without a vocabulary" "$dir/m9" --tsv "$dir/empty"
has "it is told by its own name" "$dir/err" "$dir/empty: no text to train a vocabulary on"
train 1 "a missing file" "$dir/m9" -t "$en" "$dir/nowhere"
has "its name is told" "$dir/err" "nowhere"

# ---- schedules ----

train 2 "a warm-up in minutes" "$dir/s1" -t "$en" "$de" --lr-warmup 5min
has "is refused" "$dir/err" "--lr-warmup is in minutes"
train 2 "a cosine without an end" "$dir/s1" -t "$en" "$de" --lr-decay cosine --after 0
has "needs one" "$dir/err" "need an end in updates, epochs or tokens (--after)"
train 2 "a straight line to an end in hours" "$dir/s1" -t "$en" "$de" --lr-decay linear --after 2h
has "needs another" "$dir/err" "need an end in updates, epochs or tokens (--after)"
train 2 "a metric that is none" "$dir/s1" -t "$en" "$de" --valid-sets "$en" "$de" --valid-metrics ce,ter
has "all are named" "$dir/err" "ce, perplexity, accuracy, bleu and chrf"

# ---- vocabularies ----

train 0 "two vocabularies for untied embeddings" "$dir/v1" -t "$en" "$de" --tied-embeddings none
check "are trained side by side" test -s "$dir/v1/source.spm" -a -s "$dir/v1/target.spm" -a ! -e "$dir/v1/vocab.spm"
train 2 "two vocabularies for tied embeddings" "$dir/v2" -t "$en" "$de" -v "$dir/v1/source.spm" "$dir/v1/target.spm"
has "are refused with a way out" "$dir/err" "--tied-embeddings"
train 0 "a given vocabulary" "$dir/v3" -t "$en" "$de" -v "$dir/m4/vocab.spm" "$dir/m4/vocab.spm"
same "is copied byte for byte" "$dir/m4/vocab.spm" "$dir/v3/vocab.spm"
train 2 "another one later" "$dir/v3" -t "$en" "$de" -v "$dir/v1/source.spm" "$dir/v1/source.spm" --after 5u
has "is refused" "$dir/err" "began with another vocabulary"
train 1 "no vocabulary at all" "$dir/v4" -t "$en" "$de" -v "$en" "$en"
has "is told by name" "$dir/err" "toy/en"
untrained "it" "$dir/v4"

mkdir "$dir/v5" "$dir/v5/mine.tmp" && cp "$dir/v3/vocab.spm" "$dir/v5"
: >"$dir/v5/weights.safetensors.gz.tmp-1-2"
: >"$dir/v5/mine.tmp/file"
train 0 "vocabularies over one of an earlier start" "$dir/v5" -t "$en" "$de" --tied-embeddings target --vocab-size 60
has "are trained anew" "$dir/err" "training the vocabulary .*/v5/source.spm (unigram, up to 60 pieces)"
check "without the other kind" test ! -e "$dir/v5/vocab.spm"
check "half-written files of a model are removed" test ! -e "$dir/v5/weights.safetensors.gz.tmp-1-2"
check "files of the user's are not" test -e "$dir/v5/mine.tmp/file"

# ---- going on ----

cp -R "$dir/m6" "$dir/c1"
cp "$dir/c1/weights.safetensors.gz" "$dir/before.gz"
for option in "--dim-model 32" "--enc-depth 2" "--seed 2" "--mini-batch-words 300" "--max-length 99" "--tied-embeddings target"; do
    # shellcheck disable=SC2086
    train 2 "going on with another $option" "$dir/c1" -t "$en" "$de" --after 5u $option
    has "is refused by name: $option" "$dir/err" "began with ${option% *} .* now it is ${option#* }"
done
train 2 "going on with another corpus" "$dir/c1" -t "$dir/short" "$dir/short" --after 5u
has "is refused with both sizes" "$dir/err" "512 pairs.* now it is 511 pairs"
same "the model is as it was" "$dir/before.gz" "$dir/c1/weights.safetensors.gz"
: >"$dir/c1/weights.safetensors.gz.tmp-123-0"
: >"$dir/c1/notes.tmp-old"
train 0 "another learning rate, and no smoothing" "$dir/c1" -t "$en" "$de" --after 5u --learn-rate 0.001 \
    --exponential-smoothing 0 --disp-freq 1 --save-freq 1
is "are fine" "$(readlink "$dir/c1/checkpoints/last")" checkpoint-5
check "what a killed training left half-written is gone" test ! -e "$dir/c1/weights.safetensors.gz.tmp-123-0"
check "and nothing else" test -e "$dir/c1/notes.tmp-old"
rm -rf "$dir/c1/checkpoints"
train 2 "a model without checkpoints" "$dir/c1" -t "$en" "$de"
has "is not overwritten" "$dir/err" "holds a model but no checkpoints"
check "nor changed" test ! -e "$dir/c1/checkpoints"
mkdir "$dir/c0" && cp "$dir/m6/vocab.spm" "$dir/c0" && : >"$dir/c0/notes"
train 1 "a start that fails in a folder with other files" "$dir/c0" --tsv "$dir/no_tab.tsv"
is "leaves them alone" "$(ls -A "$dir/c0")" "$(printf 'notes\nvocab.spm')"
train 1 "one that fails behind its vocabularies" "$dir/c0" -t "$en" "$de" --tied-embeddings target --valid-sets "$en" \
    "$dir/short"
is "takes them away again" "$(ls -A "$dir/c0")" "notes"

cp -R "$dir/m6" "$dir/c2"
printf 'x' >>"$dir/c2/checkpoints/last/moment1.safetensors"
train 1 "a damaged checkpoint" "$dir/c2" -t "$en" "$de" --after 5u
has "is named" "$dir/err" "moment1.safetensors"
for file in ema.safetensors moment2.safetensors weights.safetensors state.json; do
    rm -rf "$dir/c2" && cp -R "$dir/m6" "$dir/c2" && rm "$dir/c2/checkpoints/last/$file"
    train 1 "a checkpoint without $file" "$dir/c2" -t "$en" "$de" --after 5u
    has "is told" "$dir/err" "cannot open .*$file: No such file"
done
cp -R "$dir/m6" "$dir/c4"
printf '\372\007\000' >>"$dir/c4/vocab.spm" # a field that means nothing
train 2 "another vocabulary of the same size" "$dir/c4" -t "$en" "$de" --after 5u
has "is refused" "$dir/err" "began with a vocabulary of 100 pieces (fingerprint .*now it is 100 pieces (fingerprint"
sed '/"a vocabulary of"/d' "$dir/c4/checkpoints/last/state.json" >"$dir/state"
cp "$dir/state" "$dir/c4/checkpoints/last/state.json"
train 0 "a training of an earlier tfm, which did not know it" "$dir/c4" -t "$en" "$de" --after 5u
has "knows it from then on" "$dir/c4/checkpoints/last/state.json" '"a vocabulary of": "100 pieces (fingerprint'
rm "$dir/c4/vocab.spm"
train 1 "a training without its vocabulary" "$dir/c4" -t "$en" "$de" --after 6u
has "is told as a model is" "$dir/err" "c4 holds no vocabulary: neither vocab.spm nor source.spm and target.spm"
cp -R "$dir/m6" "$dir/c3"
sed -i 's/"batch": [0-9]*/"batch": 99999/' "$dir/c3/checkpoints/last/state.json"
train 1 "a place that no window has" "$dir/c3" -t "$en" "$de" --after 5u
has "is told" "$dir/err" "checkpoint-3/state.json: batch 99999 of a window that has"

cp -RL "$dir/m6" "$dir/followed"
train 1 "a copy whose links are folders" "$dir/followed" -t "$en" "$de" --after 5u
has "is told, with a way out" "$dir/err" "checkpoints/last should be a symbolic link"
same "the model is as it was" "$dir/m6/weights.safetensors.gz" "$dir/followed/weights.safetensors.gz"

cp -R "$dir/m6" "$dir/unlinked" && rm "$dir/unlinked/checkpoints/last"
(cd "$dir/unlinked" && find . | sort && find . -type f -exec cksum {} + | sort) >"$dir/before"
train 1 "a copy without its last link" "$dir/unlinked" -t "$en" "$de" --after 5u
has "is told, with a way out" "$dir/err" "checkpoints/last, the link .*is missing.*ln -s checkpoint-3 "
train 1 "a copy without its last link, in a dry run" "$dir/unlinked" -t "$en" "$de" --after 5u --dry-run
has "the same" "$dir/err" "$dir/unlinked/checkpoints/last, the link .*is missing.*ln -s checkpoint-3 $dir/unlinked"
(cd "$dir/unlinked" && find . | sort && find . -type f -exec cksum {} + | sort) >"$dir/after"
same "and it stays as it was" "$dir/before" "$dir/after"
rm -f "$dir/unlinked/config.json"
train 1 "a copy without links and model" "$dir/unlinked" -t "$en" "$de" --after 5u
check "keeps its checkpoint" test -e "$dir/unlinked/checkpoints/checkpoint-3/state.json"

# ---- divergence ----

cp -R "$dir/m6" "$dir/d1"
train 1 "a learning rate of a million" "$dir/d1" -t "$en" "$de" --learn-rate 1e6 --after 50u --save-freq 1
has "ends the training" "$dir/err" "diverged at update [0-9]*: .*checkpoint-3) is untouched; lower --learn-rate (now 1e+06)"
for file in weights ema moment1 moment2; do
    same "nothing was saved over: $file" "$dir/m6/checkpoints/last/$file.safetensors" \
        "$dir/d1/checkpoints/last/$file.safetensors"
done
same "nor the model" "$dir/m6/weights.safetensors.gz" "$dir/d1/weights.safetensors.gz"
train 1 "the same from the start" "$dir/d2" -t "$en" "$de" --learn-rate 1e6 --after 50u --save-freq 1
has "says that nothing was saved" "$dir/err" "diverged.*nothing was saved yet"
untrained "that is so" "$dir/d2"
train 1 "without clipping" "$dir/d3" -t "$en" "$de" --learn-rate 1e9 --clip-norm 0 --after 50u
has "the same" "$dir/err" "diverged"

# ---- disk and folder ----

cp -R "$dir/m6" "$dir/f1"
(
    ulimit -f 40 # blocks of 512 bytes: fewer than a block of weights takes
    # shellcheck disable=SC2086
    "$tfm" train -m "$dir/f1" $mini -t "$en" "$de" --after 6u
) >"$dir/out" 2>"$dir/err"
is "a file that cannot grow: status" $? 1
has "path and cause are told" "$dir/err" "f1/checkpoints/.checkpoint-6.*File too large"
same "the last checkpoint is as it was" "$dir/m6/checkpoints/last/weights.safetensors" \
    "$dir/f1/checkpoints/last/weights.safetensors"
is "and still the last" "$(readlink "$dir/f1/checkpoints/last")" checkpoint-3
check "the half-written one is gone" test ! -e "$dir/f1/checkpoints/.checkpoint-6.tmp"
train 0 "with room again it goes on" "$dir/f1" -t "$en" "$de" --after 6u

# OpenBLAS asks for memory without an end where it gets none: nobody shall wait for that.
if can_limit; then
    for limit in 250000 400000 700000; do # KiB
        (
            ulimit -v $limit
            # shellcheck disable=SC2086
            timeout 30 "$tfm" train -m "$dir/a$limit" $mini -t "$en" "$de" -v "$dir/m4/vocab.spm" "$dir/m4/vocab.spm"
        ) >"$dir/out" 2>"$dir/err"
        train_status=$?
        check "little address space ($limit): an end" test $train_status -le 1
        [ $train_status -eq 0 ] || has "and a reason" "$dir/err" "no address space\|scratch memory\|no memory"
    done
    (ulimit -v 120000 && exec timeout 30 "$tfm" --version) >"$dir/out" 2>&1
    check "less than OpenBLAS takes when it is loaded: an end" test $? -ne 124
else
    skip "little address space" "the program cannot run in it"
fi

: >"$dir/file"
train 1 "a folder name that is a file" "$dir/file" -t "$en" "$de"
has "is told" "$dir/err" "$dir/file"
if [ "$(id -u)" -ne 0 ]; then
    mkdir "$dir/locked" && chmod 555 "$dir/locked"
    train 1 "a folder that cannot be written" "$dir/locked" -t "$en" "$de"
    has "is found before the first update" "$dir/err" "locked.*ermission"
    cp -R "$dir/m6" "$dir/half" && chmod 555 "$dir/half"
    train 1 "a model folder that cannot be written, whose checkpoints can" "$dir/half" -t "$en" "$de" --after 6u
    has "is found then, too" "$dir/err" "cannot write to the folder .*half: .*ermission"
    is "before the first update" "$(readlink "$dir/half/checkpoints/last")" checkpoint-3
    chmod 755 "$dir/half"
else
    skip "a folder that cannot be written" "root can write everywhere"
fi

mkfifo "$dir/fifo"
# shellcheck disable=SC2086
"$tfm" train -m "$dir/busy" $mini --tsv "$dir/fifo" --quiet 2>/dev/null &
pid=$!
exec 3>"$dir/fifo" # returns when the training reads: it has its lock then
train 1 "two trainings in one folder" "$dir/busy" -t "$en" "$de"
has "the second is refused" "$dir/err" "another training is running"
exec 3>&-
wait $pid

finish
