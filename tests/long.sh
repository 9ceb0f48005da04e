#!/bin/sh
# The long tests: everything that tests/run.sh runs, built with the sanitizers for memory and undefined behaviour, with
# the one for threads, and under valgrind. `make check-long` calls it; the builds lie inside the build folder TFM_BUILD.
# ONLY='attn*' chooses tests as in tests/run.sh. Ends with 1 if any test failed.

cd "$(dirname "$0")/.." || exit 1
: "${TFM_BUILD:=$PWD/build}" "${MAKE:=make}" "${CC:=cc}" "${CXX:=c++}"
failed=0

# Runs the tests of one build folder.
run() {
    TFM_BUILD=$1 sh tests/run.sh || failed=1
}

# Builds with a sanitizer and runs the tests. Jobs of 2, since check-long may be called without -j.
run_sanitized() {
    build=$TFM_BUILD/san-$(echo "$1" | tr , -)
    echo "== SAN=$1"
    if "$MAKE" -j2 --no-print-directory BUILD="$build" SAN="$1" CC="$CC" CXX="$CXX" tests >"$build.log" 2>&1; then
        run "$build"
    else
        tail -n 30 "$build.log"
        failed=1
    fi
}

# A build folder in which every program is a script that runs the real one under valgrind.
run_valgrind() {
    echo "== valgrind"
    if ! command -v valgrind >/dev/null; then
        echo "valgrind is not installed: make deps-test"
        failed=1
        return
    fi
    folder=$TFM_BUILD/valgrind
    rm -rf "$folder"
    mkdir -p "$folder/tests"
    for program in "$TFM_BUILD"/tfm "$TFM_BUILD"/tests/*_test; do
        [ -x "$program" ] || continue
        script=$folder${program#"$TFM_BUILD"}
        printf '#!/bin/sh\nexec valgrind -q --leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99 "%s" "$@"\n' \
            "$program" >"$script"
        chmod +x "$script"
    done
    for file in "$TFM_BUILD"/libtfm* "$TFM_BUILD/flags"; do
        ln -s "$file" "$folder/"
    done
    # The model that the tests of the command line share, trained at full speed.
    (. tests/cli/lib.sh && mini_model && cp -R "$model" "$folder/tests/") || failed=1
    run "$folder"
}

# A sanitizer gives a process far more address space than it fills; a request that is refused is part of some tests.
ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
TSAN_OPTIONS=allocator_may_return_null=1:die_after_fork=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}
OPENBLAS_NUM_THREADS=1
export ASAN_OPTIONS TSAN_OPTIONS OPENBLAS_NUM_THREADS

mkdir -p "$TFM_BUILD"
run_sanitized address,undefined
run_sanitized thread
run_valgrind
exit $failed
