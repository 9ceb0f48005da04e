#!/bin/sh
# tfm translate: columns and JSON objects of which one field is translated, and compressed output.
cd "$(dirname "$0")/../.." || exit 1
. tests/cli/lib.sh
mini_model

translate() {
    "$tfm" translate -m "$model" "$@"
}

toy_corpus "$dir/toy"
awk 'NR % 16 == 3' "$dir/toy/en" >"$dir/en"
translate "$dir/en" >"$dir/de"

# ---- columns ----

awk '{ print NR "\t" $0 "\t  x " }' "$dir/en" >"$dir/tsv"
translate --input-format tsv --field 2 "$dir/tsv" >"$dir/out"
awk '{ print NR "\t" $0 "\t  x " }' "$dir/de" >"$dir/expected"
same "a column is replaced, the others stay" "$dir/out" "$dir/expected"
translate --input-format tsv --field 2 --output-field 4 "$dir/tsv" >"$dir/out"
paste "$dir/tsv" "$dir/de" >"$dir/expected"
same "a new column" "$dir/out" "$dir/expected"
translate --input-format tsv --field 2 --output-field 1 "$dir/tsv" | cut -f 1 >"$dir/out"
same "another column" "$dir/out" "$dir/de"
translate --input-format tsv "$dir/en" >"$dir/out"
same "a file of one column" "$dir/out" "$dir/de"
printf 'the dog sees the house.\t1\n\t2\n\nthe dog sees the house.\n' >"$dir/odd"
translate --input-format tsv "$dir/odd" >"$dir/out"
printf 'der Hund sieht das Haus.\t1\n\t2\n\nder Hund sieht das Haus.\n' >"$dir/expected"
same "blank columns and lines" "$dir/out" "$dir/expected"
head -n 3 "$dir/odd" >"$dir/empty"
translate --input-format tsv --output-field 3 "$dir/empty" >"$dir/out"
printf 'the dog sees the house.\t1\tder Hund sieht das Haus.\n\t2\t\n\n' >"$dir/expected"
same "an empty line stays empty, also where a column is added" "$dir/out" "$dir/expected"
translate --input-format tsv --field 2 "$dir/empty" >"$dir/out"
is "and where another than the first is translated" "$(sed -n 3p "$dir/out" | od -An -c)" "  \n"
run 1 "a column that is not there" translate --input-format tsv --field 2 "$dir/odd"
has "a column that is not there: the line" "$dir/err" "$dir/odd: line 4: found 1 columns, expected at least 2"
run 1 "a new column that would not be the next" translate --input-format tsv --output-field 4 "$dir/odd"
has "a new column that would not be the next: the line" "$dir/err" "line 1: found 2 columns, expected at least 3"

# ---- JSON ----

cat >"$dir/jsonl" <<'END'
{"id":1,  "text":"the dog sees the house.", "n": 0.10, "big": 123456789012345678901234567890, "deep": {"text": ["}", "\""]}}
  {"a\"b": "}{", "\u0074ext" : "the dog sees the house." , "e": 1e5}

{"text": ""}
END
cat >"$dir/expected" <<'END'
{"id":1,  "text":"der Hund sieht das Haus.", "n": 0.10, "big": 123456789012345678901234567890, "deep": {"text": ["}", "\""]}}
  {"a\"b": "}{", "\u0074ext" : "der Hund sieht das Haus." , "e": 1e5}

{"text": ""}
END
translate --input-format jsonl "$dir/jsonl" >"$dir/out"
same "a field is replaced, all else stays" "$dir/out" "$dir/expected"
printf '{"deep": {"de": 1}, "t": "the dog sees the house.", "x": []}\n{"de": {"a": [1]}, "t": "the dog sees the house."}\n' >"$dir/new"
translate --input-format jsonl --field t --output-field de "$dir/new" >"$dir/out"
cat >"$dir/expected" <<'END'
{"deep": {"de": 1}, "t": "the dog sees the house.", "de": "der Hund sieht das Haus.", "x": []}
{"de": "der Hund sieht das Haus.", "t": "the dog sees the house."}
END
same "a field is added, or replaced where it is there" "$dir/out" "$dir/expected"
for bad in '{"text": "a"' '{"text": 1}' '{"other": "a"}' '["text"]' 'text' '{"text": "a"} x' '{"text": "a", "text": "b"}'; do
    printf '{"text": "a"}\n%s\n' "$bad" >"$dir/bad"
    run 1 "malformed: $bad" translate --input-format jsonl "$dir/bad"
    has "malformed: the line is named" "$dir/err" "$dir/bad: line 2[:,]"
done

wrong "a field of plain text" "option --field needs --input-format" translate --field 2
wrong "a name for a column" "found 'x', expected the number of a column" translate --input-format tsv --field x
wrong "columns and scores" "goes with none of --word-scores" translate --input-format tsv --word-scores

# ---- lists ----

cut -f 1 "$dir/odd" | translate --n-best 2 - |
    awk -F ' \\|\\|\\| ' '{ print $2 ($1 < 2 ? "\t" $1 + 1 : "") }' >"$dir/expected"
translate --input-format tsv --n-best 2 "$dir/odd" >"$dir/out"
same "a line for each hypothesis, with all its columns" "$dir/out" "$dir/expected"
printf '{"id": 7, "text": "the dog sees the house."}\n' >"$dir/one"
translate --input-format jsonl --n-best 3 "$dir/one" >"$dir/out"
is "an object for each hypothesis" "$(grep -c '^{"id": 7, "text": ".*"}$' "$dir/out")" 3
is "the first is the best" "$(head -n 1 "$dir/out")" '{"id": 7, "text": "der Hund sieht das Haus."}'
is "they differ" "$(sort -u "$dir/out" | wc -l)" 3

# ---- compressed output ----

run 0 "a compressed file" translate -o "$dir/de.gz" "$dir/en"
gunzip -c "$dir/de.gz" >"$dir/out"
same "a compressed file holds the translation" "$dir/out" "$dir/de"
run 0 "compressed files in a folder" translate --output-dir "$dir/folder" --suffix .gz "$dir/en"
gunzip -c "$dir/folder/en.gz" >"$dir/out"
same "a compressed file in a folder" "$dir/out" "$dir/de"
gzip -c "$dir/en" >"$dir/en.gz"
run 0 "a compressed file of a compressed one" translate -o "$dir/de2.gz" "$dir/en.gz"
check "it is sound" gzip -t "$dir/de2.gz"
run 1 "a compressed file that may not grow" sh -c "ulimit -f 1; '$tfm' translate -m '$model' --n-best --format json \
    -o '$dir/limited.gz' '$dir/toy/en'"
has "a compressed file that may not grow: the message" "$dir/err" "cannot write $dir/limited.gz"
is "no part of it stays" "$(find "$dir" -name 'limited*')" ""

printf '{"text": "the \377 dog", "id": "\303"}\n{"text": "the dog"}\n' >"$dir/malformed"
run 0 "objects in malformed UTF-8" translate --input-format jsonl "$dir/malformed"
is "one note" "$(cat "$dir/err")" "tfm translate: $dir/malformed: line 1: not valid UTF-8, read as U+FFFD here and in later lines"
is "and an object for each" "$(grep -c '^{"text": ".*}$' "$dir/out")" 2
has "other fields are repaired, too" "$dir/out" "\"id\": \"$(printf '\357\277\275')\""

printf '{"text": "the\\u0000dog", "raw": "a\\u0000b"}\n' >"$dir/nul"
run 0 "NUL bytes in strings" translate --input-format jsonl "$dir/nul"
has "come out as they were" "$dir/out" '"raw": "a\\u0000b"}$'
printf 'the dog\n' | translate >"$dir/plain"
has "or are read as spaces" "$dir/out" "\"text\": \"$(cat "$dir/plain")\""

finish
