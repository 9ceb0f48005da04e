#!/bin/sh
# check_way.sh: the README's table "Follow a sentence" tells the truth: each function named is defined in the file named.
cd "$(dirname "$0")/.." || exit 1
n=0
rows=$(sed -n '/^## Follow a sentence/,/^## /s/^| \(`.*`\) | \(`.*`\) |.*/\1|\2/p' README.md | tr -d '` ')
while IFS='|' read -r calls files; do
    while [ -n "$calls" ]; do
        call=${calls%%,*} file=${files%%,*}
        n=$((n + 1))
        case $call in
        *.h) [ -f "$file" ] && [ "${file##*/}" = "$call" ] ;;
        *) grep -qE "^[a-z].*[ *]$call\(" "$file" ;;
        esac && echo "ok $n - $call is in $file" || echo "not ok $n - $call is in $file"
        [ "$calls" = "$call" ] && break
        calls=${calls#*,} files=${files#*,}
    done
done <<END
$rows
END
n=$((n + 1))
[ "$n" -gt 10 ] && echo "ok $n - the table was found" || echo "not ok $n - the table was found"
echo "1..$n"
