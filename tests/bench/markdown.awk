# markdown.awk: a table of CSV as one of Markdown, with columns of numbers on the right; no field holds a comma.
#   awk -f tests/bench/markdown.awk tests/bench/ablation.csv
BEGIN { FS = "," }
/^#/ { next }
{
    rows++
    columns = NF > columns ? NF : columns
    for (i = 1; i <= NF; i++) {
        cell[rows, i] = $i
        if (rows > 1 && $i !~ /^[0-9.]*$/)
            is_text[i] = 1
    }
}
END {
    for (r = 1; r <= rows; r++) {
        line = rule = "|"
        for (i = 1; i <= columns; i++) {
            if (r == 1)
                gsub(/_/, " ", cell[r, i])
            line = line " " cell[r, i] " |"
            rule = rule (i in is_text ? "---|" : "---:|")
        }
        print line
        if (r == 1)
            print rule
    }
}
