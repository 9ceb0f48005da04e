#!/bin/sh
# Checks the checkers: the test runner counts every way in which a test can go wrong, and check_layers.sh finds each kind
# of forbidden #include. Both run in a small project of their own. Prints TAP.
here=$(cd "$(dirname "$0")" && pwd)
project=${TMPDIR:-/tmp}/tools-$$
trap 'rm -rf "$project"' EXIT
mkdir -p "$project/tests/unit" "$project/tests/cli" "$project/build/tests" "$project/lib/nn" "$project/lib/num" \
    "$project/lib/text" "$project/cmd" || exit 1
cp "$here/run.sh" "$here/check_layers.sh" "$project/tests/"
cd "$project" || exit 1

count=0
# expect NAME FOUND EXPECTED
expect() {
    count=$((count + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        printf 'found:\n%s\nexpected:\n%s\n' "$2" "$3" | sed 's/^/# /'
    fi
}

# run_script BODY: what the runner says about one test script, with its exit status.
run_script() {
    printf '#!/bin/sh\n%s\n' "$1" >tests/cli/x.sh
    chmod +x tests/cli/x.sh
    TFM_BUILD=$project/build TIME_LIMIT=1 ONLY=x.sh sh tests/run.sh >found 2>&1
    status=$?
    # Some shells also say in words by which signal a program ended.
    grep -v -e 'Segmentation fault' -e Killed -e Aborted found
    echo "exit $status"
}

expect "all is well" "$(run_script 'echo "ok 1 - a"; echo "# note"; echo "ok 2 - b # SKIP no"; echo 1..2')" \
    "1 passed, 0 failed, 1 skipped
exit 0"
expect "a failure is shown with its diagnosis" \
    "$(run_script 'echo "# before"; echo "not ok 1 - a"; echo "# why"; echo "ok 2 - b"; echo 1..2; exit 1')" \
    "x.sh: not ok 1 - a
x.sh: # why
1 passed, 1 failed, 0 skipped
exit 1"
expect "a crash" "$(run_script 'echo "ok 1 - a"; echo "last words"; kill -SEGV $$')" "x.sh: ended by signal 11
x.sh: last words
1 passed, 1 failed, 0 skipped
exit 1"
expect "a kill" "$(run_script 'echo "ok 1 - a"; echo 1..1; kill -KILL $$')" \
    "x.sh: ended for taking too long or killed (exit status 137)
1 passed, 1 failed, 0 skipped
exit 1"
expect "a hang" "$(run_script 'echo "ok 1 - a"; sleep 10')" \
    "x.sh: ended for taking too long or killed (exit status 124)
1 passed, 1 failed, 0 skipped
exit 1"
expect "no plan" "$(run_script 'echo "ok 1 - a"')" "x.sh: printed no plan (exit status 0)
1 passed, 1 failed, 0 skipped
exit 1"
expect "fewer results than planned" "$(run_script 'echo 1..2; echo "ok 1 - a"')" "x.sh: printed 1 results, its plan is 2
1 passed, 1 failed, 0 skipped
exit 1"
expect "a bad exit status alone" "$(run_script 'echo "ok 1 - a"; echo 1..1; exit 3')" \
    "x.sh: exit status 3 without a failed check
1 passed, 1 failed, 0 skipped
exit 1"
expect "a test that is skipped as a whole" "$(run_script 'echo "1..0 # SKIP nothing to test"')" \
    "0 passed, 0 failed, 1 skipped
exit 0"
expect "a failure and a crash" "$(run_script 'echo "not ok 1 - a"; kill -ABRT $$')" "x.sh: not ok 1 - a
x.sh: ended by signal 6
0 passed, 2 failed, 0 skipped
exit 1"
run_script : >/dev/null
touch tests/unit/gone_test.c
expect "a unit test that was not built" "$(TFM_BUILD=$project/build ONLY=gone_test sh tests/run.sh 2>&1 | tail -n 1)" \
    "0 passed, 1 failed, 0 skipped"
chmod -x tests/cli/x.sh
expect "a script that cannot be executed" "$(TFM_BUILD=$project/build sh tests/run.sh 2>&1 | head -n 1)" \
    "tests/cli/x.sh: is not executable"
rm -r tests/unit tests/cli

# layers FILE LINE...: the findings of check_layers.sh about one file.
layers() {
    file=$1
    shift
    printf '%s\n' "$@" >"$file"
    sh tests/check_layers.sh | grep -v -e '^ok' -e '^1\.\.'
    rm "$file"
}
touch lib/tfm.h lib/nn/linear.h lib/num/kern.h lib/text/utf8.h cmd/options.h

expect "downward, sideways and public includes are fine" \
    "$(layers lib/nn/a.c '#include "nn/linear.h"' '#include "num/kern.h"' '#include "tfm.h"' '#include <stdio.h>')" ""
expect "an upward include" "$(layers lib/num/a.c '#include "nn/linear.h"')" \
    "not ok 1 - includes point to the same folder or to a lower rank
# lib/num/a.c:1: num (rank 1) includes nn/linear.h (rank 2)"
expect "an include of another folder of the same rank" "$(layers lib/num/a.c '' ' # include "text/utf8.h"')" \
    "not ok 1 - includes point to the same folder or to a lower rank
# lib/num/a.c:2: num (rank 1) includes text/utf8.h (rank 1)"
expect "an include without its folder" "$(layers lib/nn/a.h '#include "linear.h"')" \
    "not ok 1 - includes point to the same folder or to a lower rank
# lib/nn/a.h:1: includes linear.h, which names no folder of lib/"
expect "commands may include tfm.h and their own headers" \
    "$(layers cmd/a.c '#include "options.h"' '#include "tfm.h"')" ""
expect "a command that looks into the library" "$(layers cmd/a.c '#include "nn/linear.h"')" \
    "not ok 1 - includes point to the same folder or to a lower rank
# cmd/a.c:1: a command includes nn/linear.h, allowed are tfm.h and headers of cmd/"
expect "a command's header that is not there" "$(layers cmd/a.c '#include "linear.h"')" \
    "not ok 2 - commands include only tfm.h and headers of their own
# cmd/a.c:1: linear.h is not a header of cmd/"
expect "cblas.h outside gemm.c" "$(layers lib/nn/a.c '#include <cblas.h>')" \
    "not ok 4 - only lib/num/gemm.c includes cblas.h
# lib/nn/a.c:1:#include <cblas.h>"
expect "C++ elsewhere" "$(layers lib/nn/a.cc '')" "not ok 5 - only lib/text/spm.cc is C++
# lib/nn/a.cc"
expect "two files of one name" "$(layers lib/nn/utf8.h '')" "not ok 6 - file names are unique
# utf8.h"

echo "1..$count"
