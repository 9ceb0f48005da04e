#!/bin/sh
# lengths.sh: what kinds of positions do beyond the lengths of their training. Small models (multi30k.sh) that differ in
# --positions alone are trained on the pairs of Multi30k with at most CAP pieces on each side (a word has 1.06 pieces in the
# source and 1.13 in the target), and translate both test sets, by the number of words of the source; then 2, 3 and 4
# sentences at a time joined into one line, longer than any in the training, with their references joined too. Learned
# positions are as many as the training could use, so that longer lines are squeezed into them. Prints a CSV row for each
# group, with its lines, its mean length in words and the BLEU of each kind, beam 5, sacreBLEU on the tokens as they are.
# Each model is the last of its training, since validations would prefer models that fit their own lengths.
#   CAP=20 UPDATES=7000 THREADS=1 ROWS="rope alibi" sh tests/bench/lengths.sh | tee table.csv
#   awk -f tests/bench/markdown.awk tests/bench/lengths.csv
# It can be stopped and started again, as ablation.sh.
set -eu
cd "$(dirname "$0")/../.."
cap=${CAP:-20}
. tests/bench/multi30k.sh
rows=${ROWS:-sinusoidal learned rope alibi relative none}
groups="1-9 10-14 15-19 20-29 30-99 2-joined 3-joined 4-joined"

# The lines of each group: source, tab, target.
for part in test_2016_flickr test_2017_flickr; do
    paste "$data/$part.en" "$data/$part.de"
done >"$new/all"
for group in $groups; do
    case $group in
    *-joined)
        awk -F '\t' -v n="${group%-joined}" '{ s = s (s ? " " : "") $1; t = t (t ? " " : "") $2 }
            NR % n == 0 { print s "\t" t; s = t = "" }' "$new/all"
        ;;
    *) awk -F '\t' -v from="${group%-*}" -v to="${group#*-}" '{ n = split($1, words, " ") } n >= from && n <= to' "$new/all" ;;
    esac >"$new/$group"
    cut -f 1 "$new/$group" >"$new/$group.en"
    cut -f 2 "$new/$group" >"$new/$group.de"
done

# judge ROW GROUP: the BLEU, to $work/ROW-CAP/GROUP.bleu
judge() {
    dir=$work/$1-$cap
    [ ! -e "$dir/$2.bleu" ] || return 0
    translate "$1-$cap" "$new/$2.en" "$dir/$2"
    score bleu "$new/$2.de" "$dir/$2" >"$new/bleu"
    mv "$new/bleu" "$dir/$2.bleu"
}

for row in $rows; do
    positions="--positions $row"
    [ "$row" != learned ] || positions="$positions --max-positions $((cap + 1))"
    # shellcheck disable=SC2086
    train "$row-$cap" --max-length "$cap" $positions
    for group in $groups; do
        judge "$row" "$group"
    done
    say "$row-$cap: $(for group in $groups; do cat "$work/$row-$cap/$group.bleu"; done | tr '\n' ' ')"
done
echo "source_words,lines,mean_words,$(echo "$rows" | tr ' ' ,)"
for group in $groups; do
    line=$(wc -lw <"$new/$group.en" | awk -v group="$group" '{ printf "%s,%d,%.1f", group, $1, $2 / $1 }')
    for row in $rows; do
        line=$line,$(cat "$work/$row-$cap/$group.bleu")
    done
    echo "$line"
done
