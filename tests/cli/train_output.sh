#!/bin/sh
# What tfm train prints while it runs: log lines in Marian's form, JSON lines, the progress line of a terminal; and how
# signals end it.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
head -n 40 "$dir/toy/en" >"$dir/valid.en"
head -n 40 "$dir/toy/de" >"$dir/valid.de"
# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$folder" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 \
        --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --cpu-threads 1 "$@"
}
valid="--valid-sets $dir/valid.en $dir/valid.de"

# ---- log lines ----

# shellcheck disable=SC2086 # several options
run 0 "a training" train "$dir/a" $valid --valid-freq 20 --disp-freq 10 --after 40u --log "$dir/a/log" \
    --log-json "$dir/a/log.json"
is "nothing on standard output" "$(cat "$dir/out")" ""
stamp='^\[[0-9]\{4\}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]\]'
number='[0-9]*\.[0-9]*'
progress="$stamp Ep\. [0-9]* : Up\. [0-9]* : Sen\. [0-9,]* : Cost $number : Time ${number}s : $number words/s"
progress="$progress : gNorm $number : L\.r\. [0-9]\.[0-9]*e[-+][0-9]*\$"
has "a progress line in Marian's form" "$dir/err" "$progress"
is "one a report" "$(grep -c "$progress" "$dir/err")" 4
has "a validation line in Marian's form" "$dir/err" "$stamp \[valid\] Ep\. [0-9]* : Up\. 20 : ce : [0-9.]* : new best\$"
has "a validation by BLEU" "$dir/err" "$stamp \[valid\] Ep\. [0-9]* : Up\. 40 : bleu : [0-9.]* : \(new best\|stalled\)"
has "a save" "$dir/err" "$stamp Saved $dir/a/checkpoints/checkpoint-40\$"
same "--log has the same lines" "$dir/a/log" "$dir/err"
is "--log-json has as many" "$(wc -l <"$dir/a/log.json")" "$(wc -l <"$dir/err")"
if command -v python3 >/dev/null; then
    check "--log-json is JSON with the fields of the man page" python3 - "$dir/a/log.json" <<'END'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
place = {"update", "epoch", "sentences", "seconds"}
assert all({"time", "event"} <= e.keys() for e in events)
assert all(place <= e.keys() if e["event"] != "note" else not place & e.keys() for e in events)
progress = [e for e in events if e["event"] == "progress"]
assert [e["update"] for e in progress] == [10, 20, 30, 40]
assert all({"target_tokens", "loss", "learn_rate", "gradient_norm", "tokens_per_second", "seconds_left"} <= e.keys()
           for e in progress)
assert progress[0]["loss"] > progress[3]["loss"]
valid = [e for e in events if e["event"] == "valid"]
assert [(e["update"], e["metric"]) for e in valid] == [(20, "ce"), (20, "bleu"), (40, "ce"), (40, "bleu")]
assert all(isinstance(e["value"], float | int) and isinstance(e["best"], bool) for e in valid)
END
else
    skip "--log-json is JSON with the fields of the man page" "no python3"
fi
# shellcheck disable=SC2086
run 0 "all metrics, and a cosine" train "$dir/m" $valid --valid-freq 10 --after 20u --lr-decay cosine --disp-freq 5u \
    --valid-metrics ce,perplexity,bleu,chrf
for metric in ce perplexity bleu chrf; do
    has "a validation by $metric" "$dir/err" "Up\. 20 : $metric : [0-9.]*[0-9] : "
    check "its best is kept" test -e "$dir/m/checkpoints/best-$metric/state.json"
done
is "perplexity is the exponential of the cross-entropy" "$(awk '/ : ce : / { ce = exp($12) } / : perplexity : / {
    x = $12 / ce; if (x > 0.999 && x < 1.001) n++ } END { print n }' "$dir/err")" 2
has "the cosine ends at zero" "$dir/err" "Up\. 20 .*L\.r\. 0\.0*e+00"
lines=$(wc -l <"$dir/a/log")
run 0 "the same command again" train "$dir/a" --after 40u --log "$dir/a/log" --quiet
is "--quiet prints nothing" "$(cat "$dir/out" "$dir/err")" ""
check "--log appends" test "$(wc -l <"$dir/a/log")" -gt "$lines"
has "it says that the training is finished" "$dir/a/log" "finished"
run 1 "a log that cannot be written" train "$dir/b" --after 1u --log "$dir/toy/en/all"
has "it is named" "$dir/err" "cannot write $dir/toy/en/all: Not a directory"
check "before anything is trained" test ! -e "$dir/b"
if [ -e /dev/full ]; then
    run 0 "a log on a full disk does not end the training" train "$dir/b" --after 5u --log /dev/full
    has "but is reported" "$dir/err" "cannot write /dev/full: No space left"
    is "once" "$(grep -c 'cannot write' "$dir/err")" 1
else
    skip "a log on a full disk does not end the training" "no /dev/full"
fi

# ---- TensorBoard ----

# count FILE TAG: values of this name
count() {
    grep -a -o "$2" "$1" | wc -l
}

run 0 "numbers for TensorBoard" train "$dir/tb" --tensorboard "$dir/tb/logs" --after 4u --disp-freq 1
first=$(echo "$dir"/tb/logs/events.out.tfevents.*)
check "are in one file" test -f "$first"
is "which says what it is" "$(count "$first" 'brain\.Event:2')" 1
for tag in loss learn_rate gradient_norm tokens_per_second; do
    is "train/$tag: one a report" "$(count "$first" "train/$tag")" 4
done
cp "$first" "$dir/first"
# shellcheck disable=SC2086
run 0 "going on, with validations" train "$dir/tb" --tensorboard "$dir/tb/logs" --after 6u --disp-freq 1 $valid
is "makes another file" "$(find "$dir/tb/logs" -type f | wc -l)" 2
same "and leaves the first" "$first" "$dir/first"
find "$dir/tb/logs" -type f ! -path "$first" -exec cp {} "$dir/second" \;
is "with what is new" "$(count "$dir/second" train/loss)" 2
is "and the scores" "$(count "$dir/second" valid/ce) $(count "$dir/second" valid/bleu)" "1 1"
run 1 "a folder that cannot be made" train "$dir/b2" --after 1u --tensorboard "$dir/toy/en/there"
has "is named" "$dir/err" "cannot write a file in $dir/toy/en/there: Not a directory"

# ---- amounts ----

run 0 "an epoch" train "$dir/c" --after 1e --disp-freq 1e
is "one report" "$(grep -c "$progress" "$dir/err")" 1
has "all pairs were seen" "$dir/err" ": Sen\. 512 :"
run 0 "target tokens" train "$dir/d" --after 2Kt --disp-freq 1
is "about 500 of them an update" "$(grep -c "$progress" "$dir/err")" 5

# ---- where the time goes ----

# shellcheck disable=SC2086
run 0 "a training with --profile" train "$dir/p" $valid --after 4u --profile --log "$dir/p/log" --log-json "$dir/p/log.json"
has "the table has a head" "$dir/err" "$stamp Profile: $number s on 1 thread; matrices of 1024 x 1024 multiply with $number GFLOP/s\$"
has "a part with products" "$dir/err" "$stamp   feed-forward  *$number  *$number%  *$number  *$number  *[0-9]*%\$"
has "a part without" "$dir/err" "$stamp   validation  *$number  *$number%\$"
has "the memory" "$dir/err" "$stamp Memory: $number MiB at most\$"
is "shares add up" "$(awk '/%/ { for (i = 1; i <= NF; i++) if ($i ~ /%$/) { sum += $i; break } }
    END { print (sum > 99 && sum < 101) }' "$dir/err")" 1
same "--log has the table too" "$dir/p/log" "$dir/err"
is "--log-json has one object for it" "$(grep -c '"event": "profile".*"peak_flops": .*"parts": \[{"part": ' "$dir/p/log.json")" 1
if command -v python3 >/dev/null; then
    check "which is JSON" python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$dir/p/log.json"
else
    skip "which is JSON" "no python3"
fi

# ---- a terminal ----

if script -qec true /dev/null >/dev/null 2>&1; then # there may be no pseudo-terminals
    # shellcheck disable=SC2086
    run 0 "a training on a terminal" script -qec "stty cols 66; '$tfm' train -t '$dir/toy/en' '$dir/toy/de' -m '$dir/e' \
        --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 --vocab-size 100 --mini-batch-words 500 \
        --cpu-threads 1 $valid --valid-freq 20 --disp-freq 10 --after 40u --log '$dir/e/log'" /dev/null
    tr '\r' '\n' <"$dir/out" | sed "s/$(printf '\033')\[K//" >"$dir/lines"
    has "a progress line" "$dir/lines" '^update 10  epoch [0-9]*  loss [0-9.]*  [0-9,]* tokens/s'
    has "with the time left, if it fits" "$dir/lines" '0:00:0[0-9]'
    check "no longer than the terminal is wide" sh -c "! grep '^update' '$dir/lines' | grep -q '.\{66\}'"
    has "validations above it" "$dir/lines" "$stamp \[valid\] .* : bleu : "
    check "no log lines of progress" sh -c "! grep -q 'Up\. 10 :' '$dir/lines'"
    has "but in --log" "$dir/e/log" 'Up\. 10 :'
else
    skip "a training on a terminal" "no script"
fi

# ---- signals ----

# ends_by SIGNAL STATUS: timeout gives the signal, and then the command's own status. The training is endless.
ends_by() {
    timeout --preserve-status -s "$1" 2 "$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$dir/f" --dim-model 16 \
        --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --cpu-threads 1 \
        --after 0 --disp-freq 1000 2>"$dir/err"
    is "SIG$1 ends a training: the status" $? "$2"
    has "SIG$1 ends a training: it was saved" "$dir/err" "stopped after update [0-9]*; saved as .*: the same command"
}
ends_by INT 130

"$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$dir/twice" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 \
    --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --cpu-threads 1 --after 0 --save-freq 0 2>"$dir/err" &
pid=$!
for i in $(seq 100); do
    grep -q 'Up\. 100 ' "$dir/err" || sleep 0.1
done
kill -TERM $pid
sleep 0.001
kill -TERM $pid 2>/dev/null
wait $pid
is "two signals at once are one: the status" $? 143
has "two signals at once are one: it was saved" "$dir/err" "stopped after update [0-9]*; saved as .*: the same command"
ends_by TERM 143
check "the model was written" test -s "$dir/f/weights.safetensors.gz"
{
    train "$dir/g" --after 0 --disp-freq 1 2>&1
    echo $? >"$dir/status"
} | head -n 4 >/dev/null
is "a closed pipe ends a training" "$(cat "$dir/status")" 141
check "which is saved" test -e "$dir/g/checkpoints/last/state.json"
mkfifo "$dir/fifo"
head -n 1 "$dir/fifo" >"$dir/line" &
run 0 "a log whose reader goes away" train "$dir/unread" --after 20u --disp-freq 1 --log-json "$dir/fifo"
wait $!
has "is given up" "$dir/err" "cannot write $dir/fifo: Broken pipe; going on without it"
has "and the training goes on" "$dir/err" "Up. 20 "

# ---- files in folders that are not there yet ----

run 0 "logs and numbers in folders of folders" train "$dir/runs/1/model" --after 2u --log "$dir/runs/1/model/log" \
    --log-json "$dir/runs/2/json/log" --tensorboard "$dir/runs/3/board"
check "the folders are made" sh -c "test -s '$dir/runs/1/model/log' && test -s '$dir/runs/2/json/log' &&
    ls '$dir'/runs/3/board/events.out.tfevents.* >/dev/null"

# ---- recipes ----

run 0 "options on the command line" train "$dir/said" --seed 5 --dropout 0.2 --learn-rate 0.01 --after 3u --quiet
printf '# two of them in a file\nlearn-rate 0.01 # peak\nseed 4\r\n\n dropout\t0.2' >"$dir/recipe"
run 0 "options in a recipe, one of them changed" train "$dir/kept" --seed 5 --recipe "$dir/recipe" --after 3u --quiet
same "are the same training" "$dir/said/weights.safetensors.gz" "$dir/kept/weights.safetensors.gz"
paste "$dir/toy/en" "$dir/toy/de" >"$dir/both pairs.tsv"
printf 'tsv "cat \047%s/both pairs.tsv\047 |" # a command\nafter "2u"\n' "$dir" >"$dir/recipe"
run 0 "a word with spaces in a recipe" "$tfm" train -m "$dir/quoted" --recipe "$dir/recipe" --dim-model 16 --dim-ffn 32 \
    --heads 2 --enc-depth 1 --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --cpu-threads 1
same "is one word" "$dir/both pairs.tsv" "$dir/quoted/checkpoints/corpus-1.tsv"

finish
