#!/bin/sh
# Checks the dependency ranks of the folders: an #include may point to the same folder or to a lower rank, commands see
# only the public header, cblas.h has one includer and C++ one file, and file names are unique. Prints TAP.
cd "$(dirname "$0")/.." || exit 1

count=0
# report NAME FINDINGS: passed if there are none
report() {
    count=$((count + 1))
    if [ -z "$2" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        echo "$2" | sed 's/^/# /'
    fi
}

sources=$(find lib cmd -name '*.[ch]' -o -name '*.cc' -o -name '*.def' | sort)

# Lines "file:line: included" of the project's own #includes.
# shellcheck disable=SC2086 # no file name has spaces
includes=$(awk '/^[ \t]*#[ \t]*include[ \t]*"/ { split($0, part, "\""); print FILENAME ":" FNR ": " part[2] }' $sources)

upward=$(echo "$includes" | awk '
    BEGIN {
        split("base 0 text 1 num 1 nn 2 model 3 train 4 decode 4 interop 4 inspect 5", pair, " ")
        for (i = 1; i in pair; i += 2)
            rank[pair[i]] = pair[i + 1]
    }
    $0 == "" { next }
    {
        split($1, place, ":")
        n = split(place[1], from, "/")
        folder = n == 3 && from[1] == "lib" ? from[2] : ""
        if (from[1] == "cmd") {
            if ($2 != "tfm.h" && $2 ~ /\//)
                print $1, "a command includes", $2 ", allowed are tfm.h and headers of cmd/"
            next
        }
        if ($2 == "tfm.h")
            next
        split($2, to, "/")
        if (!(to[1] in rank))
            print $1, "includes", $2 ", which names no folder of lib/"
        else if (n == 3 && !(folder in rank))
            print $1, "the folder", folder, "has no rank"
        else if (n == 3 && folder != to[1] && rank[to[1]] >= rank[folder])
            print $1, folder, "(rank", rank[folder] ") includes", $2, "(rank", rank[to[1]] ")"
    }')
report "includes point to the same folder or to a lower rank" "$upward"

foreign=$(echo "$includes" | awk '
    $1 ~ /^cmd\// && $2 != "tfm.h" && $2 !~ /\// { print $1, $2 }' | while read -r place header; do
    [ -f "cmd/$header" ] || echo "$place $header is not a header of cmd/"
done)
report "commands include only tfm.h and headers of their own" "$foreign"

report "tfm.h includes nothing of the project" "$(grep -n '#include "' lib/tfm.h)"

# shellcheck disable=SC2086
report "only lib/num/gemm.c includes cblas.h" \
    "$(grep -n '#[ ]*include[ ]*[<"]cblas' $sources | grep -v '^lib/num/gemm\.c:')"

report "only lib/text/spm.cc is C++" \
    "$(find lib cmd -name '*.cc' -o -name '*.cpp' -o -name '*.cxx' -o -name '*.hpp' | grep -v '^lib/text/spm\.cc$')"

report "file names are unique" "$(find lib cmd -type f | sed 's|.*/||' | sort | uniq -d)"

echo "1..$count"
