#!/bin/sh
# ablation.sh: what the members of the model family are worth: one small model for each on Multi30k English-German
# (multi30k.sh), with about equal parameters, the same text, vocabulary, learning rate and number of updates: the default is 16
# passes over the corpus. The widths of members with fewer or larger matrices make up for them. Prints a CSV row for each:
#     val_bleu      best of the validations of the training (13a), whose model is the one that is scored
#     bleu, chrf    of the test sets, beam 5, sacreBLEU on the tokens as they are
#     tokens/s      source and target in training; words/s of the source in translation, fp32, beam 5: one thread each,
#                   medians of RUNS, taken in turns when all are trained
# The row seed-2 is base with another seed: what chance alone changes.
#   UPDATES=7000 THREADS=1 RUNS=3 ROWS="rope alibi" sh tests/bench/ablation.sh | tee table.csv
#   awk -f tests/bench/markdown.awk tests/bench/ablation.csv
# Hours: stop it with ^C and start it again with the same numbers as you like; two with other ROWS can run side by side, with
# RUNS=0 (no speeds) until the last one. THREADS is the number of lanes of each training, and decides its digits. What is kept
# lies in CACHE (~/.cache/tfm-peers), in a folder for each UPDATES and THREADS: remove it to train anew with another build.
set -eu
cd "$(dirname "$0")/../.."
. tests/bench/multi30k.sh
rows=${ROWS:-base rnn decoder unscaled none ssru rms-swiglu post rope alibi learned relative gelu one-head multi-query seed-2}

# options ROW: what makes it differ from base
options() {
    case $1 in
    base) ;;
    rnn) echo --arch rnn --enc-depth 2 --dec-depth 2 --dim-model 176 ;;
    decoder) echo --arch decoder --dec-depth 10 ;;
    unscaled) echo --attention-scale none ;;
    none) echo --positions none ;;
    ssru) echo --dec-cell ssru --dim-ffn 320 ;;
    rms-swiglu) echo --norm rms --activation swiglu --dim-ffn 176 ;;
    post) echo --norm-position post ;;
    rope | alibi | relative) echo --positions "$1" ;;
    learned) echo --positions learned --max-positions 64 ;;
    gelu) echo --activation gelu ;;
    one-head) echo --heads 1 ;;
    multi-query) echo --kv-heads 1 --dim-ffn 400 ;;
    seed-2) echo --seed 2 ;;
    *)
        echo "ablation.sh: there is no row '$1'" >&2
        exit 2
        ;;
    esac
    case $1 in
    rnn | none | rope | alibi | relative | learned) ;;
    *) echo --positions sinusoidal ;;
    esac
}

# number FIELD FORMAT: the first of this name in $new/model.json
number() {
    sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$new/model.json" | awk -v format="$2" 'NR == 1 { printf format, $1 }'
}

# judge ROW: its scores, as fields of CSV, to $work/ROW/scores
judge() {
    [ ! -e "$work/$1/scores" ] || return 0
    "$tfm" inspect "$work/$1/model" --format json >"$new/model.json"
    scores=$(number total %d),$updates,$(sed -n 's/.*"epoch": \([0-9]*\), "sentences": \([0-9]*\).*/\1 \2/p' "$work/$1/log.json" |
        awk -v pairs="$(wc -l <"$data/train.en")" '{ n = $1 - 1 + $2 / pairs } END { printf "%.1f", n }'),$(number bleu %.2f)
    for part in test_2016_flickr test_2017_flickr; do
        translate "$1" "$data/$part.en" "$work/$1/$part"
        scores=$scores,$(score bleu "$data/$part.de" "$work/$1/$part")
        scores=$scores,$(score chrf "$data/$part.de" "$work/$1/$part")
    done
    echo "$scores" >"$work/$1/scores.new"
    mv "$work/$1/scores.new" "$work/$1/scores"
    say "$1: $scores"
}

# measure ROW RUN: tokens/s of training and words/s of translation, to $work/ROW/speed.RUN
measure() {
    [ ! -e "$work/$1/speed.$2" ] || return 0
    say "speed of $1, run $2"
    # shellcheck disable=SC2046
    with_settings "$new/model" $(options "$1") --cpu-threads 1 --disp-freq 50u --after 100u --log-json "$new/log.json"
    tokens=$(sed -n 's/.*"progress", "update": 100,.*"tokens_per_second": \([0-9]*\).*/\1/p' "$new/log.json")
    rm -r "$new/model" "$new/log.json"
    translate "$1" "$data/test_2016_flickr.en" "$new/output" --stats 2>"$new/stats"
    echo "$tokens $(sed -n 's/.* \([0-9]*\)[0-9.]* words\/s.*/\1/p' "$new/stats")" >"$new/speed"
    mv "$new/speed" "$work/$1/speed.$2"
}

# median ROW COLUMN: of its speeds
median() {
    cat "$work/$1"/speed.* 2>/dev/null | sort -n -k "$2,$2" | awk -v c="$2" '{ x[NR] = $c } END { print x[int((NR + 1) / 2)] }'
}

for row in $rows; do
    options "$row" >"$new/options" # or ends here
done
for row in $rows; do
    # shellcheck disable=SC2046
    train "$row" --valid-sets "$data/val.en" "$data/val.de" --valid-freq 1000u --early-stopping 0 $(options "$row")
    judge "$row"
done
for i in $(seq "${RUNS:-3}"); do
    for row in $rows; do
        measure "$row" "$i"
    done
done
head -n 1 tests/bench/ablation.csv
for row in $rows; do
    echo "$row,$(options "$row"),$(cat "$work/$row/scores"),$(median "$row" 1),$(median "$row" 2)"
done
