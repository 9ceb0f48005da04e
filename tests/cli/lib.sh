# lib.sh: what the tests of the command line share; read with `.` from the root of the project. Results are TAP.
# TFM_BUILD is the build folder; each script works in a folder of its own, $dir, removed at the end.

: "${TFM_BUILD:=$PWD/build}"
tfm=$TFM_BUILD/tfm
[ -x "$tfm" ] || { echo "Bail out! there is no program $tfm"; exit 1; }
unset TFM_MODEL TFM_CPU
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
count=0
failures=0

# result STATUS NAME: one result; passed if STATUS is 0
result() {
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failures=$((failures + 1))
    fi
}

# check NAME COMMAND...: passed if the command succeeds
check() {
    check_name=$1
    shift
    "$@"
    result $? "$check_name"
}

# is NAME FOUND EXPECTED: passed if both are the same text
is() {
    [ "$2" = "$3" ]
    result $? "$1"
    [ "$2" = "$3" ] || printf '# found    "%s"\n# expected "%s"\n' "$2" "$3"
}

# same NAME FILE FILE: passed if the files have the same bytes
same() {
    cmp "$2" "$3" >"$dir/cmp" 2>&1
    same_status=$?
    result $same_status "$1"
    [ $same_status -eq 0 ] || sed 's/^/# /' "$dir/cmp"
}

# has NAME FILE PATTERN: passed if a line of the file fits the basic regular expression
has() {
    grep -q -e "$3" "$2"
    has_status=$?
    result $has_status "$1"
    [ $has_status -eq 0 ] || { echo "# no line fits \"$3\" in:"; sed 's/^/# /' "$2"; }
}

# run EXPECTED NAME COMMAND...: runs a command with its output in $dir/out and $dir/err; passed if its exit status is
# as expected
run() {
    run_expected=$1
    run_name=$2
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    run_status=$?
    [ $run_status -eq "$run_expected" ]
    result $? "$run_name"
    [ $run_status -eq "$run_expected" ] ||
        { echo "# exit status $run_status, expected $run_expected: $*"; sed 's/^/# /' "$dir/err"; }
}

# wrong NAME PATTERN ARGUMENT...: passed if tfm refuses the arguments as wrong usage: status 2, nothing on standard
# output, and one line on standard error that fits the pattern
wrong() {
    wrong_name=$1
    wrong_pattern=$2
    shift 2
    "$tfm" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    wrong_status=$?
    [ $wrong_status -eq 2 ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] &&
        grep -q -e "$wrong_pattern" "$dir/err"
    wrong_ok=$?
    result $wrong_ok "wrong usage: $wrong_name"
    [ $wrong_ok -eq 0 ] || { echo "# exit status $wrong_status, expected 2 and \"$wrong_pattern\""; sed 's/^/# /' "$dir/err"; }
}

# skip NAME WHY
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

finish() {
    echo "1..$count"
    [ $failures -eq 0 ]
    exit
}

# can_limit: whether a program runs in 2 GB of address space; under a sanitizer it cannot
can_limit() {
    (ulimit -v 2000000 && "$tfm" --version) >/dev/null 2>&1
}

# toy_corpus FOLDER: 512 pairs of a toy English and German, en and de
toy_corpus() {
    mkdir -p "$1"
    awk -v en="$1/en" -v de="$1/de" 'BEGIN {
        n = split("the dog,the cat,a man,a woman,the child,my friend,our teacher,the bird", who, ",")
        split("der Hund,die Katze,ein Mann,eine Frau,das Kind,mein Freund,unser Lehrer,der Vogel", wer, ",")
        split("sees,hears,finds,likes,has,needs,knows,wants", does, ",")
        split("sieht,hört,findet,mag,hat,braucht,kennt,will", tut, ",")
        split("a red door,the house,two cups,a green tree,the blue lamp,some bread,an old book,the river", what, ",")
        split("eine rote Tür,das Haus,zwei Tassen,einen grünen Baum,die blaue Lampe,etwas Brot,ein altes Buch,den Fluss",
              was, ",")
        for (i = 1; i <= n; i++)
            for (j = 1; j <= n; j++)
                for (k = 1; k <= n; k++) {
                    print who[i], does[j], what[k] "." >en
                    print wer[i], tut[j], was[k] "." >de
                }
    }'
}

# train_mini FOLDER: trains a very small model on the toy corpus, in a second or two
train_mini() {
    toy_corpus "$dir/toy"
    "$tfm" train -t "$dir/toy/en" "$dir/toy/de" -m "$1" --positions sinusoidal --dim-model 32 --dim-ffn 64 --heads 2 --enc-depth 2 \
        --dec-depth 2 --vocab-size 200 --mini-batch-words 1000 --after 150u --learn-rate 0.01 --lr-warmup 30 \
        --dropout 0 --exponential-smoothing 0.05 --cpu-threads 2 --quiet
}

# learned_toy: checks that $dir/model, which `translate` (a function of the script) runs over the toy corpus, has learned it, and
# gives the same text in any batch and by the reference kernels; the text is in $dir/de
learned_toy() {
    translate >"$dir/de"
    right=$(paste -d '|' "$dir/de" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l)
    check "it has learned what follows on what: $right of 512 are right" test "$right" -gt 480
    translate --mini-batch 7 --cpu-threads 3 >"$dir/de7"
    same "other batches and threads" "$dir/de7" "$dir/de"
    translate --cpu ref >"$dir/deref"
    same "the reference kernels" "$dir/deref" "$dir/de"
}

# learned_toy_int8: the same in int8, where a few lines more may be wrong
learned_toy_int8() {
    translate --precision int8 >"$dir/de8"
    right=$(paste -d '|' "$dir/de8" "$dir/toy/de" | awk -F '|' '$1 == $2' | wc -l)
    check "in int8 $right are right" test "$right" -gt 470
    translate --precision int8 --cpu ref --mini-batch 5 >"$dir/de8ref"
    same "the reference kernels and other batches in int8" "$dir/de8ref" "$dir/de8"
}

# mini_model: sets $model to a model to test with: a very small one that is trained once for each build of tfm
mini_model() {
    model=$TFM_BUILD/tests/mini-model
    mkdir -p "$TFM_BUILD/tests"
    (
        flock 9
        if [ ! -f "$model/config.json" ] || [ "$tfm" -nt "$model/config.json" ]; then
            rm -rf "$model" && train_mini "$dir/mini-model" && rm -rf "$dir/mini-model/checkpoints" &&
                mv "$dir/mini-model" "$model"
        fi
    ) 9>"$TFM_BUILD/tests/mini-model.lock"
    [ -f "$model/config.json" ] || { echo "Bail out! no model to test with"; exit 1; }
}
