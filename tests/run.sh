#!/bin/sh
# Runs all tests: the unit tests of the build folder TFM_BUILD and the executable scripts tests/check_*.sh and
# tests/cli/*.sh, JOBS at a time (2). Each is a program that prints TAP. Shows what failed, with its diagnosis, and ends
# with the line "N passed, N failed, N skipped". A program that crashes, hangs (TIME_LIMIT seconds), prints no plan or
# not as many results as its plan says counts as a failure. ONLY='attn*' runs the tests whose name fits the pattern.

# Runs one test into its log; the log's last line is the exit status.
run_one() {
    log=$TFM_BUILD/logs/$(basename "$1").log
    TMPDIR=$(mktemp -d) || exit 1
    export TMPDIR
    timeout -k 5 "${TIME_LIMIT:-600}" "$1" >"$log" 2>&1 </dev/null
    printf '\nexit %d\n' $? >>"$log"
    chmod -R u+rwX "$TMPDIR" && rm -rf "$TMPDIR"
}

# Reads logs; prints the failures and the sum.
summarise() {
    awk '
    function finish() {
        if (name == "")
            return
        why = ""
        if (status == 124 || status == 137)
            why = "ended for taking too long or killed (exit status " status ")"
        else if (status > 128)
            why = "ended by signal " (status - 128)
        else if (plan < 0)
            why = "printed no plan (exit status " status ")"
        else if (results != plan)
            why = "printed " results " results, its plan is " plan
        else if (status != 0 && bad == 0)
            why = "exit status " status " without a failed check"
        if (why != "") {
            failed++
            print name ": " why
            if (bad == 0)
                printf "%s", tail
        }
    }
    FNR == 1 {
        finish()
        name = FILENAME; sub(/.*\//, "", name); sub(/\.log$/, "", name)
        plan = -1; results = bad = status = show = n_tail = 0; tail = ""
    }
    /^exit [0-9]+$/ { status = $2; next }
    /^1\.\.[0-9]+/ {
        plan = substr($1, 4) + 0; show = 0
        if (plan == 0) skipped++
        next
    }
    /^ok / { results++; show = 0; if (/# SKIP/) skipped++; else passed++; next }
    /^not ok / { results++; bad++; failed++; show = 1; print name ": " $0; next }
    show && NF { print name ": " $0; next }
    !/^$/ { if (n_tail++ < 60) tail = tail name ": " $0 "\n" }
    END {
        finish()
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
        exit failed > 0
    }' "$@"
}

if [ "$1" = --one ]; then
    run_one "$2"
    exit 0
fi

cd "$(dirname "$0")/.." || exit 1
: "${TFM_BUILD:=$PWD/build}"
TFM_SHARED=$(dirname "$PWD")/shared
UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TFM_BUILD TFM_SHARED UBSAN_OPTIONS

rm -rf "$TFM_BUILD/logs"
mkdir -p "$TFM_BUILD/logs" || exit 1
list=$TFM_BUILD/logs/list
for source in tests/unit/*_test.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2254 # ONLY is a pattern
    case $name in ${ONLY:-*}) printf '%s\n' "$TFM_BUILD/tests/$name" ;; esac
done >"$list"
for script in tests/check_*.sh tests/cli/*.sh; do
    [ -f "$script" ] || continue
    if [ ! -x "$script" ]; then
        # A script that is only read by others has no #! line; one that has it was meant to run.
        head -n 1 "$script" | grep -q '^#!' || continue
        echo "$script: is not executable" >&2
        exit 1
    fi
    # shellcheck disable=SC2254
    case $(basename "$script") in ${ONLY:-*}) printf '%s\n' "$script" ;; esac
done >>"$list"
if [ ! -s "$list" ]; then
    echo "no test fits ONLY=$ONLY"
    exit 1
fi

xargs -n 1 -P "${JOBS:-2}" sh tests/run.sh --one <"$list"
# In the order of the list, so that two runs can be compared.
set --
while read -r test; do
    set -- "$@" "$TFM_BUILD/logs/$(basename "$test").log"
done <"$list"
summarise "$@"
