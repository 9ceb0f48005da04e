#!/bin/sh
# Checks that each command's man page and its -h list exactly the options of its table (tfm COMMAND --list-options), in
# its order, with the same letters, values, second names and defaults; and that the pages are sound. Prints TAP.
cd "$(dirname "$0")/.." || exit 1
. tests/cli/lib.sh

# As the tables have them: "-b, --beam-size N<tab>5"; with a second name "--dim-model N, --dim-emb N<tab>...".
table_options() {
    "$tfm" "$@" --list-options | awk -F '\t' '{
        value = $3 == "-" ? "" : " " $3
        tag = ($2 == "-" ? "" : "-" $2 ", ") "--" $1 value
        if ($5 != "-")
            tag = tag ", --" $5 value
        print tag "\t" ($4 == "-" ? "" : $4)
    }'
}

# As a section of a man page has them: the tags of .TP that begin with a hyphen, and the line "Default: ...".
man_options() {
    awk -v section="$2" '
    # The text of a macro line: arguments of .BR and its kind follow each other without spaces, but for quoted ones.
    function text(line,   i, c, quoted, out) {
        sub(/^\.[A-Z]+ /, "", line)
        gsub(/\\-/, "-", line)
        gsub(/\\f[A-Z]/, "", line)
        if (line !~ /"/)
            return line
        for (i = 1; i <= length(line); i++) {
            c = substr(line, i, 1)
            if (c == "\"")
                quoted = !quoted
            else if (c != " " || quoted)
                out = out c
        }
        return out
    }
    function flush() {
        if (tag != "")
            print tag "\t" standard
        tag = standard = ""
    }
    /^\.SH/ { flush(); name = $0; sub(/^\.SH /, "", name); gsub(/"/, "", name); inside = name == section }
    !inside { next }
    /^\.TP/ { flush(); is_tag = 1; next }
    is_tag { is_tag = 0; tag = text($0); if (tag !~ /^-/) tag = ""; next }
    /^Default: .*\.$/ { standard = $0; sub(/^Default: /, "", standard); sub(/\.$/, "", standard); gsub(/\\-/, "-", standard) }
    END { flush() }' "$1"
}

# As -h has them, where second names do not show: "-b, --beam-size N".
help_options() {
    "$tfm" "$@" -h | sed -n 's/^  *\(-[^ ].*\)$/\1/p' | sed 's/   *[^ -].*//'
}

# agree NAME FOUND EXPECTED: two lists in files
agree() {
    diff "$3" "$2" >"$dir/diff"
    agree_status=$?
    result $agree_status "$1"
    [ $agree_status -eq 0 ] || sed 's/^/# /' "$dir/diff"
}

# check_command PAGE SECTION COMMAND...
check_command() {
    page=$1
    section=$2
    shift 2
    table_options "$@" >"$dir/table"
    check "tfm $*: the table has options" test -s "$dir/table"
    man_options "man/$page" "$section" >"$dir/man"
    agree "tfm $*: man/$page lists the options of the table" "$dir/man" "$dir/table"
    sed 's/\t.*//; s/\(--.*\), --.*/\1/' "$dir/table" >"$dir/names"
    help_options "$@" >"$dir/help"
    agree "tfm $*: -h lists the options of the table" "$dir/help" "$dir/names"
}

check_command tfm-train.1 OPTIONS train
check_command tfm-translate.1 OPTIONS translate
check_command tfm-shortlist.1 OPTIONS shortlist
check_command tfm-score.1 OPTIONS score
check_command tfm-inspect.1 OPTIONS inspect
check_command tfm-inspect.1 "OPTIONS OF ATTENTION" inspect attention
check_command tfm-inspect.1 "OPTIONS OF PREDICT" inspect predict
check_command tfm-convert.1 OPTIONS convert

# What a training that goes on must begin with is named one by one where it is recorded, and in the manual.
sed -n 's/^ *state_set(.*"\(--[a-z-]*\)".*/\1/p' lib/train/training.c | sort >"$dir/settings"
sed -n '/^Options that would make it another/,/^must be those/s/^\.BR* \([^ ]*\).*/\1/p' man/tfm-train.1 | sed 's/\\-/-/g' |
    sort >"$dir/man"
check "settings of a training are recorded" test -s "$dir/settings"
agree "man/tfm-train.1 names all options that a training must go on with" "$dir/man" "$dir/settings"

"$tfm" -h | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$dir/table"
sed -n '/^\.SH COMMANDS/,/^\.SH OPTIONS/s/^\.B \([a-z]*\)$/\1/p' man/tfm.1 >"$dir/man"
agree "man/tfm.1 lists the commands of tfm -h" "$dir/man" "$dir/table"

check "no page holds what should have been filled in" sh -c '! grep -n "@[A-Z]*@" man/*'

version=$("$tfm" --version)
for page in man/*.[1-8]; do
    has "$page is of this version" "$page" "^\\.TH [^ ]* [0-9] [0-9-]* \"$version\""
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$page" >"$dir/lint" 2>&1
        result $? "$page has no faults that mandoc finds"
        sed 's/^/# /' "$dir/lint"
    else
        skip "$page has no faults that mandoc finds" "no mandoc"
    fi
done

finish
