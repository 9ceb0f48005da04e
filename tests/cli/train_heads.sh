#!/bin/sh
# Losses on single heads (tfm train --head-loss) and guided alignment: heads become what they are told to be, by the
# numbers of --watch-attention; trainings are stopped and gone on with; mistakes are told.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
en=$dir/toy/en
de=$dir/toy/de
head -n 40 "$en" >"$dir/valid.en"
head -n 40 "$de" >"$dir/valid.de"
# Target words are told to look at the source from its end to its beginning, which no training would do by itself.
awk '{ for (i = 1; i <= NF; i++) printf "%s%d-%d", (i > 1 ? " " : ""), NF - i, i - 1; print "" }' "$de" >"$dir/links"

# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$en" "$de" -m "$folder" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 2 --dec-depth 1 \
        --vocab-size 100 --mini-batch-words 1000 --learn-rate 0.01 --lr-warmup 20 --dropout 0.05 --disp-freq 7 \
        --cpu-threads 2 "$@"
}
valid="--valid-sets $dir/valid.en $dir/valid.de --valid-freq 100 --valid-metrics ce --watch-attention --exponential-smoothing 0"

# ---- heads become what they are told to be ----

# shellcheck disable=SC2086 # several options
run 0 "a training that only looks at a head" train "$dir/plain" $valid --after 100u --log-json "$dir/plain.json" \
    --head-loss encoder.1.0:entropy=0 --head-loss decoder.0.1:distance=0 --head-loss cross.0.0:sparsity=0
has "what was seen stands in the log" "$dir/err" \
    'Up. 98 .* : encoder.1.0:entropy [0-9.]* : decoder.0.1:distance [0-9.]* : cross.0.0:sparsity [0-9.]*$'
# shellcheck disable=SC2086
run 0 "one without" train "$dir/without" $valid --after 100u --quiet
same "gives the same weights" "$dir/plain/checkpoints/last/weights.safetensors" \
    "$dir/without/checkpoints/last/weights.safetensors"
# shellcheck disable=SC2086
run 0 "a training with losses on heads" train "$dir/told" $valid --after 100u --log-json "$dir/told.json" --head-loss \
    encoder.1.0:entropy=0.3 --head-loss encoder.1.1:entropy=-0.3 --head-loss encoder.0.0:distance=0.1 --head-loss \
    encoder.0.1:distance=-0.1 --head-loss 'decoder.0.*:sparsity=0.3' --guided-alignment "$dir/links" --tensorboard "$dir/board"
has "each stands in the log" "$dir/err" \
    'Up. 98 .* : encoder.1.0:entropy [0-9.]* : .* : decoder.0.\*:sparsity [0-9.]* : cross.0.0:alignment-ce [0-9.]*$'
check "and in what TensorBoard reads" grep -q 'train/decoder.0.\*:sparsity' "$dir/board/"*
if command -v python3 >/dev/null; then
    check "heads are sharper and wider, nearer and farther, than they would be" python3 - "$dir/plain.json" "$dir/told.json" <<'END'
import json, sys
def read(path):
    events = [json.loads(line) for line in open(path)]
    heads = [e for e in events if e["event"] == "attention"][-1]["heads"]
    return events, {(h["part"], h["layer"], h["head"]): h for h in heads}
(events, plain), (_, told) = read(sys.argv[1]), read(sys.argv[2])
print({k: (plain[k]["entropy"], told[k]["entropy"], plain[k]["distance"], told[k]["distance"]) for k in plain}, file=sys.stderr)
assert told["encoder", 1, 0]["entropy"] < 0.5 * plain["encoder", 1, 0]["entropy"]
assert told["encoder", 1, 1]["relative_entropy"] > 0.95 and told["encoder", 1, 0]["relative_entropy"] < 0.4
assert told["encoder", 0, 0]["distance"] < 0.6 * plain["encoder", 0, 0]["distance"]
assert told["encoder", 0, 1]["distance"] > plain["encoder", 0, 1]["distance"] + 0.5
for head in 0, 1:
    assert told["decoder", 0, head]["entropy"] < plain["decoder", 0, head]["entropy"]
# What a term reports is what the validation sees, but for rows with one key, which count here.
last = [e for e in events if e["event"] == "progress"][-1]["head_losses"]
assert list(last) == ["encoder.1.0:entropy", "decoder.0.1:distance", "cross.0.0:sparsity"]
assert abs(last["encoder.1.0:entropy"] - plain["encoder", 1, 0]["entropy"]) < 0.4
END
    check "weights and alignment are in the provenance" python3 - "$dir/told/config.json" <<'END'
import json, sys
t = json.load(open(sys.argv[1]))["training"]
assert t["alignment"] == "links" and abs(t["head_losses"]["cross.0.0:alignment-ce"] - 0.1) < 1e-6, t
assert t["head_losses"]["encoder.1.1:entropy"] == -0.3 and len(t["head_losses"]) == 6, t
END
else
    skip "heads are sharper and wider, nearer and farther, than they would be" "no python3"
    skip "weights and alignment are in the provenance" "no python3"
fi

# ---- guided alignment ----

# guided FOLDER HEAD: in percent, how much of the weight of the first word's first piece lies on the last word and its stop
guided() {
    "$tfm" inspect attention -m "$1" --part cross --layer 0 --head "$2" --format tsv "the dog sees the house." \
        "der Hund sieht das Haus." | awk -F '\t' 'NR > 1 && $3 == 0 { if ($6 ~ /^▁/) sum = 0; if ($6 !~ /s>$/) sum += $7 }
            END { printf "%d", 100 * sum }'
}
run 0 "guided alignment of a head" train "$dir/guided" --after 200u --guided-alignment "$dir/links" \
    --guided-alignment-weight 1 --guided-alignment-head 0.1 --exponential-smoothing 0 --quiet
found=$(guided "$dir/guided" 1)
check "the head looks where it was told: $found %" test "$found" -gt 60
other=$(guided "$dir/without" 1)
check "which it would not do by itself: $other %" test "$other" -lt 40
run 0 "by squared differences" train "$dir/squared" --after 200u --guided-alignment "$dir/links" \
    --guided-alignment-cost mse --guided-alignment-weight 4 --guided-alignment-head 0.1 --exponential-smoothing 0 --quiet
found=$(guided "$dir/squared" 1)
check "it does as well: $found %" test "$found" -gt 60
run 0 "a recurrent decoder" "$tfm" train -t "$en" "$de" -m "$dir/rnn" --arch rnn --dim-model 32 --enc-depth 1 --dec-depth 1 \
    --vocab-size 100 --after 200u --learn-rate 0.02 --lr-warmup 20 --guided-alignment "$dir/links" \
    --guided-alignment-weight 1 --head-loss cross.0.0:entropy=0.1 --mini-batch-words 1000 --quiet --exponential-smoothing 0
found=$(guided "$dir/rnn" 0)
check "has a head to guide: $found %" test "$found" -gt 60

# ---- stopped and gone on with ----

# Windows smaller than the corpus, segmentations drawn anew, two corpora of which one has no alignment.
resumed() {
    train "$@" --tsv "$dir/both.tsv" --guided-alignment "$dir/links" --guided-alignment none --shuffle-window 200 \
        --source-sampling 0.2 --target-sampling 0.2 --r-drop 1 --head-loss encoder.0.0:entropy=0.1 --log-json "$1.json" --quiet
}
paste "$en" "$de" | head -n 100 >"$dir/both.tsv"
check "an unbroken training of 40 updates" resumed "$dir/whole" --after 40u
check "17 updates" resumed "$dir/parts" --after 17u
check "23 more, on one thread" resumed "$dir/parts" --after 40u --cpu-threads 1
for block in weights moment1 moment2 ema; do
    same "17 + 23 updates: $block" "$dir/whole/checkpoints/last/$block.safetensors" \
        "$dir/parts/checkpoints/last/$block.safetensors"
done
for run in whole parts; do
    grep '"event": "progress"' "$dir/$run.json" | sed 's/.*"update": \([0-9]*\).*\("head_losses".*\)/\1 \2/' >"$dir/$run.heads"
done
same "and the same reports of heads" "$dir/parts.heads" "$dir/whole.heads"
is "of which there are all" "$(wc -l <"$dir/whole.heads")" 5
sed '5s/.*/0-0/' "$dir/links" >"$dir/other"
cp "$dir/links" "$dir/kept" && cp "$dir/other" "$dir/links"
run 2 "with another alignment" resumed "$dir/parts" --after 41u
has "it does not go on" "$dir/err" 'began with a corpus of 612 pairs (fingerprint'
cp "$dir/kept" "$dir/links"
run 0 "from standard input" sh -c "'$tfm' train -m '$dir/stream' -t '$en' '$de' --guided-alignment - --dim-model 16 --heads 2 \
    --enc-depth 1 --dec-depth 1 --vocab-size 100 --after 1u --quiet <'$dir/links'"
check "an alignment is kept" cmp -s "$dir/stream/checkpoints/corpus-1.alignment" "$dir/links"

# ---- mistakes ----

for bad in encoder.0.0 0.0:entropy=1 enc.0.0:entropy=1 encoder.0:entropy=1 encoder.x.0:entropy=1 encoder.0.0:entropy \
    encoder.0.0:entropy= encoder.0.0:entropy=x encoder.0.0:entropy=1x encoder.0.0:l1=1 'encoder.*.0:entropy=1' \
    encoder.0.0:entropy=nan encoder.0.0:alignment-ce=1 encoder.12345.0:entropy=1; do
    wrong "--head-loss $bad" "option --head-loss: found '$bad', expected .*such as encoder.2.3:entropy=0.01" \
        train -m x -t a b --head-loss "$bad"
done
for bad in 0 0. .0 0.0.0 x.0 '0.*'; do
    wrong "--guided-alignment-head $bad" "option --guided-alignment-head: found '$bad', expected LAYER.HEAD" \
        train -m x -t a b --guided-alignment l --guided-alignment-head "$bad"
done
wrong "an alignment too few" "found 1 file, expected one for each corpus, or none .*: 2" \
    train -m x -t a b --tsv c --guided-alignment l
# refused NAME PATTERN OPTION...: before a file is looked at
refused() {
    name=$1
    pattern=$2
    shift 2
    wrong "$name" "$pattern" train -m "$dir/none" -t a b "$@"
}
refused "a layer too many" 'a loss on encoder.4.0:entropy: there are layers 0 to 3 (part encoder)' --head-loss encoder.4.0:entropy=1
refused "a head too many" 'a loss on cross.0.4:sparsity: a layer has heads 0 to 3' --head-loss cross.0.4:sparsity=1
refused "a distance between languages" 'a loss on cross.0.0:distance: there is no distance' --head-loss cross.0.0:distance=1
refused "a head that is not there" 'a loss on decoder.0.0:entropy: the model has no self-attention there' \
    --head-loss decoder.0.0:entropy=1 --dec-cell ssru
refused "no encoder attention in a recurrent network" 'a loss on encoder.0.\*:entropy: the model has no self-attention' \
    --head-loss 'encoder.0.*:entropy=1' --arch rnn
refused "the same twice" 'the loss on encoder.0.0:entropy is given twice' --head-loss encoder.0.0:entropy=1 \
    --head-loss encoder.0.0:entropy=2
refused "too large a weight" 'the weight is 1001; it can be from -1000 to 1000' --head-loss encoder.0.0:entropy=1001
refused "no alignment at all" 'guided alignment needs both' --guided-alignment none
refused "a guided head that is not there" 'a loss on cross.5.0:alignment-ce: there are layers 0 to 3' --guided-alignment l \
    --guided-alignment-head 5.0

# faulty NAME PATTERN: an alignment with a mistake
faulty() {
    run 1 "$1" train "$dir/none" --guided-alignment "$dir/faulty"
    has "$1: is told" "$dir/err" "$2"
}
sed '300s/.*/0-0 1_1/' "$dir/links" >"$dir/faulty"
faulty "a word that is no link" \
    'faulty, line 300: found "1_1", expected links such as 0-0 or 3-2'
sed '301s/.*/0-0 6-1/' "$dir/links" >"$dir/faulty"
faulty "a word outside of the line" \
    'faulty, line 301: found 6-1, but the pair of line 301 has [0-9] source and [0-9] target words'
head -n 511 "$dir/links" >"$dir/faulty"
faulty "a line too few" 'faulty has 511 lines but .*en has 512: line n of one must be the alignment'
run 1 "an alignment that is not there" train "$dir/none" --guided-alignment "$dir/nothing"
has "is named" "$dir/err" "cannot open $dir/nothing"
check "nothing was trained" test ! -e "$dir/none/config.json"

# Words that are others in pieces.
awk '{ print "0-0" }' "$de" >"$dir/diagonal"
{ sed 1d "$en"; printf 'the\302\240dog sees the house.\n'; } >"$dir/spaced.en"
run 0 "a line with a no-break space" "$tfm" train -m "$dir/spaced" -t "$dir/spaced.en" "$de" --guided-alignment "$dir/diagonal" \
    --dim-model 16 --heads 2 --enc-depth 1 --dec-depth 1 --vocab-size 100 --after 1u
has "is trained without its alignment" "$dir/err" 'guided alignment: 1 of 512 pairs are trained without'

finish
