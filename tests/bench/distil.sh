#!/bin/sh
# distil.sh: the best small model of Multi30k English-German that tests/bench/quality.csv tells of (multi30k-lc-distilled), in
# two rounds of data diversification (Nguyen et al. 2020). Nothing but the 29,000 pairs is read, and all models have one size.
#   1. Teachers of the pairs alone: two from English to German, two back. They translate the text that they were trained on.
#   2. Students of the pairs and these translations: one with ReLU, one with GELU.
#   3. Both students and a teacher translate the sources together: the best of their translations, and of the five best the
#      one that is nearest to the reference (sequence-level interpolation, Kim and Rush 2016). The second student goes on with
#      the pairs, these two texts and two that were translated backward.
# Each model is the best by validation BLEU. Prints the BLEU of the last on both test sets, beam 5. Some hours on one core;
# it can be stopped and started again, as ablation.sh. SHARE=0.01 makes a hundredth of the updates.
#   GEMM=bf16 THREADS=1 sh tests/bench/distil.sh
set -eu
cd "$(dirname "$0")/../.."
UPDATES=${SHARE:-1}
. tests/bench/multi30k.sh

# of N: so many updates of the share that is made, at least one
of() {
    awk -v n="$1" -v share="$updates" 'BEGIN { n = int(n * share + 0.5); print (n < 1 ? 1 : n) "u" }'
}

# learn NAME UPDATES WARM-UP OPTION...: a model whose vocabulary is in $pieces, of the corpora in $texts, from $from to $to
learn() {
    name=$1 n=$(of "$2") warmup=$(of "$3")
    shift 3
    [ ! -e "$work/$name/trained" ] || return 0
    mkdir -p "$work/$name"
    say "training $name"
    # shellcheck disable=SC2086
    run "$tfm" train --quiet -m "$work/$name/model" $texts $pieces --valid-sets "$data/val.$from" "$data/val.$to" --preset tiny \
        --positions rope --gemm "${GEMM:-own}" --dropout 0.15 --mini-batch-words 1024 --learn-rate 0.002 \
        --lr-warmup "$warmup" --lr-decay linear --after "$n" --valid-freq "$(of 2000)" --early-stopping 0 \
        --cpu-threads "$threads" --log "$work/$name/log" "$@"
    : >"$work/$name/trained"
    rm -r "$work/$name/model/checkpoints"
}

# make_text FILE SOURCE OPTION...: translates the text of the training
make_text() {
    file=$work/$1 source=$data/train.$2
    shift 2
    [ ! -e "$file" ] || return 0
    say "translating into $(basename "$file")"
    run "$tfm" translate -b 5 --precision fp32 --quiet -o "$file" "$@" "$source"
}

# choose FILE: of its five translations of each source, best.de and what is nearest to the reference, nearest.de
choose() {
    [ ! -e "$work/$1-nearest.de" ] || return 0
    "$cache/venv/bin/python" - "$data/train.de" "$work/$1" <<'PY'
import os, sys
from sacrebleu.metrics import BLEU
references, name = open(sys.argv[1]).read().splitlines(), sys.argv[2]
bleu = BLEU(tokenize="none", effective_order=True)
found = [[] for _ in references]
for line in open(name):
    number, text, *_ = line.split(" ||| ")
    found[int(number)].append(text)
with open(name + "-best.de", "w") as best, open(name + "-nearest.new", "w") as nearest:
    for texts, reference in zip(found, references):
        print(texts[0], file=best)
        print(max(texts, key=lambda text: bleu.sentence_score(text, [reference]).score), file=nearest)
os.rename(name + "-nearest.new", name + "-nearest.de")
PY
}

# pairs TEXT...: the corpora of the pairs and of others, a .de made of the sources or an .en made of the targets
pairs() {
    texts="-t $data/train.en $data/train.de"
    for text in "$@"; do
        case $text in
        *.de) texts="$texts -t $data/train.en $work/$text" ;;
        *.en) texts="$texts -t $work/$text $data/train.de" ;;
        esac
    done
}

pieces="-v $vocab $vocab"
pairs
from=en to=de
learn en-de 8000 1000
pieces="--vocab-type bpe --vocab-size 5000"
learn en-de-5000 8000 1000
pieces="-v $vocab $vocab"
from=de to=en texts="-t $data/train.de $data/train.en"
learn de-en 7000 1000 --seed 2
learn de-en-2 7000 1000 --seed 4 --dropout 0.2
make_text forward en -m "$work/en-de/model" --n-best
choose forward
make_text forward-2.de en -m "$work/en-de-5000/model"
make_text backward-1.en de -m "$work/de-en/model"
make_text backward-2.en de -m "$work/de-en-2/model"
make_text backward-both.en de -m "$work/de-en/model" -m "$work/de-en-2/model"

from=en to=de
pairs forward-nearest.de forward-2.de backward-1.en backward-2.en
learn relu 16000 1000
pairs forward-best.de forward-2.de backward-1.en backward-both.en
learn gelu 16000 1000 --seed 5 --activation gelu

make_text together en -m "$work/relu/model" -m "$work/gelu/model" -m "$work/en-de/model" --model-weights 2,2,1 --n-best
choose together
pairs together-best.de together-nearest.de backward-1.en backward-both.en
pieces="--pretrained $work/gelu/model"
learn distilled 20000 500 --activation gelu --learn-rate 0.0015
for part in test_2016_flickr test_2017_flickr; do
    translate distilled "$data/$part.en" "$work/$part"
    echo "$part,$(score bleu "$data/$part.de" "$work/$part")"
done
