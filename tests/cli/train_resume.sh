#!/bin/sh
# A training that was ended in any way goes on with the digits of an unbroken one: stopped between two commands, by a
# signal, killed, with other numbers of threads, in the middle of an epoch. Only times may differ.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
head -n 60 "$dir/toy/en" >"$dir/valid.en"
head -n 60 "$dir/toy/de" >"$dir/valid.de"

# About 24 updates an epoch.
mini="-t $dir/toy/en $dir/toy/de --preset tiny --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1
      --vocab-size 100 --mini-batch-words 200 --lr-warmup 20 --learn-rate 0.01 --quiet"

# train FOLDER OPTION...: validations and saves fall on different updates
train() {
    folder=$1
    shift
    # shellcheck disable=SC2086 # several options
    "$tfm" train -m "$folder" $mini --valid-sets "$dir/valid.en" "$dir/valid.de" --disp-freq 7 --valid-freq 10 \
        --save-freq 12 --log-json "$folder.log" "$@"
}

# log FOLDER: what was reported, without times and notes
log() {
    grep -v '"event": "note"\|"event": "saved"' "$1.log" |
        sed 's/"\(time\|seconds\|seconds_left\|tokens_per_second\)": [^,}]*,\{0,1\}//g'
}

# equal NAME FOLDER: the last checkpoint, the exported weights and the reports are those of the unbroken training
equal() {
    for file in weights ema moment1 moment2; do
        same "$1: $file" "$dir/whole/checkpoints/last/$file.safetensors" "$2/checkpoints/last/$file.safetensors"
    done
    sed '/"seconds"/d' "$dir/whole/checkpoints/last/state.json" >"$dir/state1"
    sed '/"seconds"/d' "$2/checkpoints/last/state.json" >"$dir/state2"
    same "$1: state" "$dir/state1" "$dir/state2"
    same "$1: exported weights" "$dir/whole/weights.safetensors.gz" "$2/weights.safetensors.gz"
    log "$dir/whole" >"$dir/log1"
    log "$2" >"$dir/log2"
    same "$1: losses and scores" "$dir/log1" "$dir/log2"
}

# last_loss FOLDER
last_loss() {
    sed -n 's/.*"event": "progress".*"loss": \([0-9.]*\),.*/\1/p' "$1.log" | tail -n 1
}

# differ FILE FILE
differ() {
    ! cmp -s "$1" "$2"
}

# wait_for_other LINK OLD PID: until the link names something else than before, or the process has ended
wait_for_other() {
    while [ "$(readlink "$1")" = "$2" ] && kill -0 "$3" 2>/dev/null; do
        sleep 0.02
    done
}

check "an unbroken training of 40 updates" train "$dir/whole" --cpu-threads 2 --after 40u
is "it saved after its last update" "$(readlink "$dir/whole/checkpoints/last")" checkpoint-40
is "nothing half-written and nothing unneeded is left" \
    "$(find "$dir/whole/checkpoints" -mindepth 1 -maxdepth 1 -type d | wc -l)" \
    "$(for l in "$dir"/whole/checkpoints/*; do [ ! -L "$l" ] || readlink "$l"; done | sort -u | wc -l)"

check "15 updates" train "$dir/parts" --cpu-threads 2 --after 15u
check "then 25 more" train "$dir/parts" --cpu-threads 2 --after 40u
# The end of the first part adds a validation of its own.
sed '/"event": "valid", "update": 15,/d' "$dir/parts.log" >"$dir/parts.log.new"
mv "$dir/parts.log.new" "$dir/parts.log"
equal "15 + 25 updates" "$dir/parts"

check "two lanes on one thread" train "$dir/threads" --cpu-threads 2 --after 5u
sed -i '/"event": "valid", "update": 5,/d' "$dir/threads.log"
check "and on three threads" train "$dir/threads" --cpu-threads 1 --after 30u
check "to the end" train "$dir/threads" --cpu-threads 3 --after 40u
equal "other numbers of threads" "$dir/threads"

# ---- on other processors, and with other products ----

# has_tier TIER
has_tier() {
    "$tfm" translate -m models/en-de --cpu "$1" </dev/null >/dev/null 2>&1
}

for tier in ref avx2 vnni; do
    if ! has_tier $tier; then
        skip "training with $tier" "this machine has none"
        continue
    fi
    check "with the kernels of $tier" train "$dir/$tier" --cpu-threads 2 --cpu $tier --after 40u
    equal "with $tier" "$dir/$tier"
done
for gemm in blas bf16x3 bf16; do
    case $gemm in
    bf16*)
        if ! has_tier amx; then
            skip "products of $gemm" "this machine has none"
            continue
        fi
        ;;
    esac
    check "products by $gemm" train "$dir/$gemm" --cpu-threads 2 --gemm $gemm --after 40u
    [ $gemm != blas ] || has "and the log says whose kernels" "$dir/blas.log" "products by OpenBLAS ([A-Za-z0-9_]* kernels)"
    echo "# loss $(last_loss "$dir/whole") with own products, $(last_loss "$dir/$gemm") by $gemm"
    check "learn as well" awk -v own="$(last_loss "$dir/whole")" -v other="$(last_loss "$dir/$gemm")" \
        'BEGIN { exit !(other > 0.98 * own && other < 1.02 * own) }'
done
if train "$dir/none" --cpu avx2 --gemm bf16x3 --after 1u 2>"$dir/err"; then
    not_refused=1
fi
is "products of bf16 without AMX are refused" "${not_refused-}" ""
has "and that is told" "$dir/err" 'need a processor with AMX.*this one.s is "avx2"'

# ---- with every random choice there is ----

# random FOLDER OPTION...: pieces drawn at random on both sides, R-Drop, all dropouts
random() {
    folder=$1
    shift
    train "$folder" --vocab-type bpe --source-sampling 0.2 --target-sampling 0.1 --r-drop 5 --dropout 0.1 \
        --attention-dropout 0.1 --activation-dropout 0.1 "$@"
}

check "drawn pieces and R-Drop: 40 updates" random "$dir/drawn" --cpu-threads 2 --after 40u
check "15 updates" random "$dir/drawn2" --cpu-threads 2 --after 15u
check "then 25 more, on one thread" random "$dir/drawn2" --cpu-threads 1 --after 40u
for file in weights ema moment1 moment2; do
    same "the same digits: $file" "$dir/drawn/checkpoints/last/$file.safetensors" \
        "$dir/drawn2/checkpoints/last/$file.safetensors"
done
check "without drawing" random "$dir/best" --cpu-threads 2 --source-sampling 0 --target-sampling 0 --after 40u
check "without R-Drop" random "$dir/once" --cpu-threads 2 --r-drop 0 --after 40u
for other in best once; do
    check "other digits: $other" differ "$dir/drawn/checkpoints/last/weights.safetensors" \
        "$dir/$other/checkpoints/last/weights.safetensors"
done

# ---- updates of several batches ----

# delayed FOLDER OPTION...: two batches an update, one at the end of an epoch of an odd number
delayed() {
    folder=$1
    shift
    train "$folder" --optimizer-delay 2 --mini-batch-words 100 --weight-decay 0.1 "$@"
}

check "two batches an update: 40 updates" delayed "$dir/two" --cpu-threads 2 --after 40u
check "15 updates" delayed "$dir/two2" --cpu-threads 2 --after 15u
check "then 25 more" delayed "$dir/two2" --cpu-threads 2 --after 40u
for file in weights ema moment1 moment2; do
    same "the same digits: $file" "$dir/two/checkpoints/last/$file.safetensors" \
        "$dir/two2/checkpoints/last/$file.safetensors"
done
echo "# loss $(last_loss "$dir/two") with two batches of 100 words, $(last_loss "$dir/whole") with one of 200"
check "they learn as much as one of twice the size" awk -v two="$(last_loss "$dir/two")" \
    -v one="$(last_loss "$dir/whole")" 'BEGIN { exit !(two > 0.9 * one && two < 1.1 * one) }'

# ---- ended from outside ----

# long FOLDER UPDATES: a training of many updates and saves, in the background; $pid is its process
long() {
    # shellcheck disable=SC2086
    "$tfm" train -m "$1" $mini --cpu-threads 2 --save-freq 4 --valid-sets "$dir/valid.en" "$dir/valid.de" \
        --valid-freq 6 --valid-metrics ce --early-stopping 0 --after "$2" &
    pid=$!
}

# equal_blocks NAME FOLDER FOLDER: the checkpoints in both hold the same
equal_blocks() {
    for file in weights ema moment1 moment2; do
        same "$1: $file" "$2/$file.safetensors" "$3/$file.safetensors"
    done
}

mkdir -p "$dir/killed/checkpoints/.checkpoint-99.tmp"
: >"$dir/killed/checkpoints/.checkpoint-99.tmp/weights.safetensors"
kills=0
for _ in 1 2 3; do
    before=$(readlink "$dir/killed/checkpoints/last")
    long "$dir/killed" 100u
    wait_for_other "$dir/killed/checkpoints/last" "$before" $pid
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? -ne 137 ] || kills=$((kills + 1))
done
echo "# killed $kills times, last at $(readlink "$dir/killed/checkpoints/last")"
long "$dir/killed" 100u
check "after kills it goes on to its end" wait $pid
check "half-written checkpoints are removed" test ! -e "$dir/killed/checkpoints/.checkpoint-99.tmp"
long "$dir/unkilled" 100u
check "an unbroken training as long" wait $pid
equal_blocks "killed" "$dir/unkilled/checkpoints/last" "$dir/killed/checkpoints/checkpoint-100"
is "killed: the best one" "$(readlink "$dir/killed/checkpoints/best-ce")" \
    "$(readlink "$dir/unkilled/checkpoints/best-ce")"
same "killed: exported weights" "$dir/unkilled/weights.safetensors.gz" "$dir/killed/weights.safetensors.gz"

long "$dir/signal" 1000000u
wait_for_other "$dir/signal/checkpoints/last" "" $pid
kill -TERM $pid
wait $pid
is "a signal ends a training with 128 + its number" $? 143
stopped=$(readlink "$dir/signal/checkpoints/last")
long "$dir/unstopped" "${stopped#checkpoint-}u"
check "an unbroken training up to there" wait $pid
equal_blocks "stopped by a signal" "$dir/unstopped/checkpoints/last" "$dir/signal/checkpoints/last"

# ---- finished ----

cp "$dir/parts/weights.safetensors.gz" "$dir/before.gz"
rm "$dir/parts/weights.safetensors.gz"
check "a finished training ends well" train "$dir/parts" --cpu-threads 2 --after 40u
has "and says so" "$dir/parts.log" 'is finished (update 40)'
same "the model is written again" "$dir/before.gz" "$dir/parts/weights.safetensors.gz"
# snapshot FOLDER: all names, times and links in it, and the bytes of the files
snapshot() {
    (cd "$1" && find . -mindepth 1 -printf '%p %y %m %s %T@ %l\n' | sort && find . -type f -exec cksum {} + | sort)
}
# unchanged NAME OPTION FOLDER ARGUMENT...: the same command again changes nothing, says so and validates nothing
unchanged() {
    unchanged_name=$1
    option=$2
    shift 2
    snapshot "$1" >"$dir/snapshot1"
    check "$unchanged_name, again" train "$@"
    snapshot "$1" >"$dir/snapshot2"
    same "changes nothing" "$dir/snapshot1" "$dir/snapshot2"
    has "and is told" "$1.log" "is finished (update [0-9]*), and nothing was changed; it goes on with a larger $option"
    check "without a validation" sh -c "! tail -n 2 '$1.log' | grep -q '\"valid\"'"
}
unchanged "with its model" --after "$dir/parts" --cpu-threads 2 --after 40u
unchanged "one that ended at once" --after "$dir/whole" --cpu-threads 2 --after 40u
check "one that stalls" train "$dir/stalled" --cpu-threads 2 --learn-rate 1e-9 --valid-freq 1 --early-stopping 2
unchanged "one that stalled" --early-stopping "$dir/stalled" --cpu-threads 2 --learn-rate 1e-9 --valid-freq 1 --early-stopping 2
check "it goes on as told" train "$dir/stalled" --cpu-threads 2 --learn-rate 1e-9 --valid-freq 1 --early-stopping 4
check "it has more updates" test "$(readlink "$dir/stalled/checkpoints/last")" != checkpoint-3

check "a training whose only validation is at its end" train "$dir/end" --cpu-threads 1 --valid-freq 0 --after 5u
cp -R "$dir/end" "$dir/unended"
rm "$dir/unended/config.json" "$dir/unended/weights.safetensors.gz" "$dir/unended/checkpoints/best-"*
check "the same, killed while it validates" train "$dir/unended" --cpu-threads 1 --valid-freq 0 --after 5u
is "has its best checkpoints again" "$(cd "$dir/unended/checkpoints" && echo *)" "$(cd "$dir/end/checkpoints" && echo *)"
sed '/"seconds"/d' "$dir/end/config.json" >"$dir/config1"
sed '/"seconds"/d' "$dir/unended/config.json" >"$dir/config2"
same "and its scores" "$dir/config1" "$dir/config2"

# ---- what a killed run left ----

cp -R "$dir/parts/checkpoints/checkpoint-40" "$dir/parts/checkpoints/checkpoint-44"
check "going on from before a checkpoint that did not count" train "$dir/parts" --cpu-threads 2 --after 46u --keep-last 5
check "it is gone" test ! -e "$dir/parts/checkpoints/checkpoint-44" -a -e "$dir/parts/checkpoints/checkpoint-46"
rm "$dir/parts/checkpoints/last"
run 1 "checkpoints of which none is the last" train "$dir/parts" --cpu-threads 2 --after 48u
command=$(sed -n 's/.*make it with \(ln -s [^;]*\);.*/\1/p' "$dir/err")
is "are told how to go on" "$command" "ln -s checkpoint-46 $dir/parts/checkpoints/last"
# shellcheck disable=SC2086
check "which makes the link" $command
check "and the training goes on" train "$dir/parts" --cpu-threads 2 --after 48u
is "from there" "$(readlink "$dir/parts/checkpoints/last")" checkpoint-48

# A first save that cannot export the model, as on a full disk, has no checkpoint to go on from.
mkdir -p "$dir/first/weights.safetensors.gz"
run 1 "a first save that fails" train "$dir/first" --cpu-threads 2 --after 15u
check "leaves no checkpoint that counts" test ! -e "$dir/first/checkpoints/last"
rmdir "$dir/first/weights.safetensors.gz"
check "the same command begins again" train "$dir/first" --cpu-threads 2 --after 15u
check "and 15 updates from the start" train "$dir/again" --cpu-threads 2 --after 15u
equal_blocks "the first save" "$dir/again/checkpoints/last" "$dir/first/checkpoints/last"
check "nothing is left of it" test ! -e "$dir/first/checkpoints/last.tmp" -a ! -h "$dir/first/checkpoints/last.tmp"

# ---- time ----

check "a training of a second or so" train "$dir/timed" --cpu-threads 2 --after 0.02min
ended=$(readlink "$dir/timed/checkpoints/last")
check "the same command" train "$dir/timed" --cpu-threads 2 --after 0.02min
is "finds its time to be over" "$(readlink "$dir/timed/checkpoints/last")" "$ended"
check "with validations and saves by the clock" train "$dir/timed" --cpu-threads 2 --after 0.02min --valid-freq 0.01min \
    --save-freq 0.01min
is "nothing is due that has been done" "$(readlink "$dir/timed/checkpoints/last")" "$ended"

finish
