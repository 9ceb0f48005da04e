#!/bin/sh
# tfm train --watch-attention: what each head does, in the log; heat maps in files; and the digits of a training that
# nobody watches.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh

toy_corpus "$dir/toy"
head -n 40 "$dir/toy/en" >"$dir/valid.en"
head -n 40 "$dir/toy/de" >"$dir/valid.de"
# train FOLDER OPTION...
train() {
    folder=$1
    shift
    "$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$folder" --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 2 \
        --dec-depth 1 --vocab-size 100 --mini-batch-words 500 --valid-freq 4 --valid-metrics ce --cpu-threads 2 \
        --after 8u "$@"
}
valid="--valid-sets $dir/valid.en $dir/valid.de"

# shellcheck disable=SC2086 # several options
run 0 "a training" train "$dir/plain" $valid --quiet
# shellcheck disable=SC2086
run 0 "a training that is watched" train "$dir/watched" --watch-attention $valid --log-json "$dir/log.json"
same "it gives the same weights" "$dir/plain/weights.safetensors.gz" "$dir/watched/weights.safetensors.gz"
for block in weights moment1 moment2 ema; do
    same "and the same checkpoint: $block" "$dir/plain/checkpoints/last/$block.safetensors" \
        "$dir/watched/checkpoints/last/$block.safetensors"
done
for part in encoder decoder cross; do
    is "a line for the $part at each validation" \
        "$(grep -c "\[attention\] Up\. [48] : $part : entropy [0-9.]* ([0-9]*% of the most) : [a-z]" "$dir/err")" 2
done
is "two sentences of three parts are drawn" "$(cd "$dir/watched/attention/update-8" && echo *)" \
    "1-cross.svg 1-decoder.svg 1-encoder.svg 2-cross.svg 2-decoder.svg 2-encoder.svg"
check "at each validation" test -s "$dir/watched/attention/update-4/2-cross.svg"
has "the first sentence of the validation set" "$dir/watched/attention/update-8/1-encoder.svg" '>layer 1 head 1<'
if command -v python3 >/dev/null; then
    check "the log has all heads as JSON" python3 - "$dir/log.json" <<'END'
import json, math, sys
events = [json.loads(line) for line in open(sys.argv[1])]
events = [e for e in events if e["event"] == "attention"]
assert [e["update"] for e in events] == [4, 8]
for e in events:
    assert e["folder"].endswith("attention/update-%d" % e["update"])
    heads = e["heads"]
    assert [(h["part"], h["layer"], h["head"]) for h in heads] == [
        (part, l, h) for part, n in (("encoder", 2), ("decoder", 1), ("cross", 1)) for l in range(n) for h in (0, 1)]
    for h in heads:
        assert h["entropy"] > 0 and 0 <= h["relative_entropy"] <= 1 + 1e-6 and 0 <= h["on_first"] <= 1
        assert (h["on_end"] is None) == (h["part"] == "decoder")
        assert (h["distance"] is None) == (h["on_itself"] is None) == (h["part"] == "cross")
        assert h["verdict"] in ("live", "uniform", "on_end", "on_first", "on_itself")
        assert (h["verdict"] == "uniform") == (h["relative_entropy"] > 0.98)
END
    check "the pictures are XML" python3 -c 'import glob, sys, xml.etree.ElementTree as xml
files = glob.glob(sys.argv[1] + "/*.svg")
assert len(files) == 6
assert all(xml.parse(f).getroot().tag == "{http://www.w3.org/2000/svg}svg" for f in files)' \
        "$dir/watched/attention/update-8"
else
    skip "the log has all heads as JSON" "no python3"
    skip "the pictures are XML" "no python3"
fi

# ---- chosen sentences ----

printf 'the dog sees the house.\tder Hund sieht das Haus.\n' >"$dir/chosen"
# shellcheck disable=SC2086
run 0 "a chosen sentence" train "$dir/chose" $valid --watch-attention "$dir/chosen" --quiet
is "it is drawn" "$(cd "$dir/chose/attention/update-8" && echo *)" "1-cross.svg 1-decoder.svg 1-encoder.svg"
is "with its words" "$(sed -n 's/<text x="-4".*>\(.*\)<.text>/\1/p' "$dir/chose/attention/update-8/1-cross.svg" |
    tr -d '\n' | sed 's/▁/ /g')" " der Hund sieht das Haus.&lt;/s&gt;"
# shellcheck disable=SC2086
run 0 "a folder that cannot be written" sh -c "mkdir '$dir/blocked' && : >'$dir/blocked/attention' && '$tfm' train \
    -t '$dir/toy/en' '$dir/toy/de' -m '$dir/blocked' --dim-model 16 --heads 2 --enc-depth 1 --dec-depth 1 \
    --vocab-size 100 $valid --valid-metrics ce --after 1u --watch-attention --cpu-threads 1"
has "ends no training but is said" "$dir/err" 'attention is not shown: cannot make the folder .*/attention'

# ---- mistakes ----

wrong "no validation set" 'no validation set' train -m "$dir/none" -t "$dir/toy/en" "$dir/toy/de" --watch-attention
# shellcheck disable=SC2086
run 1 "a file that is not there" train "$dir/none" $valid --watch-attention="$dir/nothing"
has "a file that is not there: it is named" "$dir/err" "$dir/nothing: No such file"
printf 'no tab\n' >"$dir/bad"
# shellcheck disable=SC2086
run 1 "a line without a tab" train "$dir/none" $valid --watch-attention "$dir/bad"
has "a line without a tab: it is named" "$dir/err" "$dir/bad, line 1: "
: >"$dir/bad"
# shellcheck disable=SC2086
run 1 "no line" train "$dir/none" $valid --watch-attention "$dir/bad"
check "and no folder was made" test ! -e "$dir/none"

finish
