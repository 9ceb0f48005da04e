#!/bin/sh
# Compiles the example in the first comment of lib/tfm.h against libtfm.a, as C and as C++, and against libtfm.so, and
# runs each on a small model trained here. Prints TAP.
cd "$(dirname "$0")/.." || exit 1
: "${TFM_BUILD:=$PWD/build}"
own=
[ -n "$TMPDIR" ] || { TMPDIR=$(mktemp -d) && own=$TMPDIR; }
folder=$TMPDIR/example
mkdir -p "$folder" || exit 1
[ -z "$own" ] || trap 'rm -rf "$own"' EXIT

count=0
failed=0
# check NAME COMMAND...: passed if the command succeeds; shows what it said if not
check() {
    name=$1
    shift
    count=$((count + 1))
    if "$@" >"$folder/log" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        sed 's/^/# /' "$folder/log"
        failed=1
    fi
}

# The lines of the first comment that are indented as code are.
awk '/\*\// { exit } /^ \*     / { print substr($0, 8) }' lib/tfm.h >"$folder/example.c"
cp "$folder/example.c" "$folder/example.cc"
check "the example has under 40 lines" test "$(wc -l <"$folder/example.c")" -gt 10 -a "$(wc -l <"$folder/example.c")" -lt 40

for i in 1 2 3 4 5 6 7 8; do
    printf 'Good morning, number %d.\tGuten Morgen, Nummer %d.\n' $i $i
    printf 'Where is station %d?\tWo ist Bahnhof %d?\n' $i $i
done >"$folder/corpus.tsv"
check "a small model is trained" "$TFM_BUILD/tfm" train --tsv "$folder/corpus.tsv" -m "$folder/model" --vocab-size 60 \
    --dim-model 16 --dim-ffn 32 --heads 2 --enc-depth 1 --dec-depth 1 --after 2u --quiet

# The compilers and the sanitizer that the library was built with. A static library leaves it to the program to name the
# libraries that it needs itself.
flags=$(cat "$TFM_BUILD/flags")
cc=${flags%% *}
cxx=$(echo "$flags" | tr ' ' '\n' | grep -m 1 '++$')
san=$(echo "$flags" | tr ' ' '\n' | grep -m 1 '^-fsanitize=')
link=${san:+$cxx}
libs="$(pkg-config --libs sentencepiece zlib jansson) -lstdc++ -lm -pthread"
# shellcheck disable=SC2086 # lists of words
{
    check "it compiles as C" $cc $san -std=c11 -Wall -Wextra -Werror -Ilib -c "$folder/example.c" -o "$folder/c.o"
    check "it links with the static library" ${link:-$cc} $san "$folder/c.o" "$TFM_BUILD/libtfm.a" $libs -o "$folder/c"
    check "it links with the shared library" ${link:-$cc} $san "$folder/c.o" "-L$TFM_BUILD" -ltfm \
        "-Wl,-rpath,$TFM_BUILD" -o "$folder/so"
    check "it compiles as C++" $cxx $san -Wall -Wextra -Werror -Ilib "$folder/example.cc" "$TFM_BUILD/libtfm.a" $libs \
        -o "$folder/cc"
}

for program in c cc so; do
    check "the program '$program' runs" "$folder/$program" "$folder/model"
    cp "$folder/log" "$folder/out.$program"
    check "it prints two translations" test "$(wc -l <"$folder/out.$program")" -eq 2
    check "always the same" cmp "$folder/out.$program" "$folder/out.c"
done
"$folder/c" /no/such/model >"$folder/out" 2>"$folder/err"
check "a missing model makes it fail" test $? -eq 1
check "with a message that names it" grep -q /no/such/model "$folder/err"

echo "1..$count"
exit $failed
