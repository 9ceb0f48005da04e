#!/bin/sh
# demo.sh: what tfm does, on a few sentences and one paragraph, with the English-German model that comes with it.
# Run by `make demo`.
set -eu
cd "$(dirname "$0")/.."
tfm=${TFM_BUILD:-build}/tfm
model=models/en-de

echo "Sentences through a pipe:  $tfm translate -m $model < data/demo-sentences.txt"
echo
"$tfm" translate -m "$model" < data/demo-sentences.txt | paste -d '\n' data/demo-sentences.txt - |
    sed 'n; s/^/    /'
echo
echo "A paragraph from a file, a sentence a line:  $tfm translate -m $model data/demo-paragraph.txt"
echo
"$tfm" translate -m "$model" data/demo-paragraph.txt
echo
echo "Which source words the last decoder layer looked at:  $tfm inspect attention -m $model --layer -1 ..."
echo
"$tfm" inspect attention -m "$model" --part cross --layer 0 --head 0 "Good morning, my friend."
