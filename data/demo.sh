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
echo "Which source pieces the last decoder layer looks at:  $tfm inspect attention -m $model --layer 1 --head 3 ..."
echo
"$tfm" inspect attention -m "$model" --part cross --layer 1 --head 3 "Where is the train station?"
