# Lists the small mistakes that can be made in Swift sources, one on a line: the file, the line's number, what is done wrong, the old
# line and the new one, with tabs between them.
#
#   awk -f .ci/mutations.awk Sources/AccessTokens/**/*.swift
#
# It knows no more of Swift than what is a comment and what is a string. So some of its mistakes don't compile; `mutants`, which
# makes them, then takes another one.

# The line with spaces in place of comments and of the texts of strings.
function code_of(line,    result, i, n, c, two, three) {
    result = ""; n = length(line)
    for (i = 1; i <= n; i++) {
        c = substr(line, i, 1); two = substr(line, i, 2); three = substr(line, i, 3)
        if (comment > 0) {
            if (two == "*/") { comment--; i++; result = result " " } else if (two == "/*") { comment++; i++; result = result " " }
            result = result " "
        } else if (three == "\"\"\"") {
            isLongText = !isLongText; i += 2; result = result "   "
        } else if (isLongText) {
            result = result " "
        } else if (isText) {
            if (c == "\\" && substr(line, i + 1, 1) != "(") { i++; result = result " " } else if (c == "\"") isText = 0
            result = result " "
        } else if (two == "//") {
            while (length(result) < n) result = result " "
            return result
        } else if (two == "/*") {
            comment++; i++; result = result "  "
        } else if (c == "\"") {
            isText = 1; result = result " "
        } else result = result c
    }
    isText = 0
    return result
}

function count(text, part,    i, sum) {
    sum = 0
    while ((i = index(text, part)) > 0) { sum++; text = substr(text, i + length(part)) }
    return sum
}

function is_balanced(text) {
    return count(text, "(") == count(text, ")") && count(text, "[") == count(text, "]") && count(text, "{") == count(text, "}")
}

function say(what, changed) {
    if (changed != line) print FILENAME "\t" FNR "\t" what "\t" line "\t" changed
}

# Each place where the code has a text: something else in place of it.
function replace_each(old, new, what,    from, at) {
    from = 1
    while ((at = index(substr(code, from), old)) > 0) {
        at += from - 1
        say(what, substr(line, 1, at - 1) new substr(line, at + length(old)))
        from = at + length(old)
    }
}

# The same for a word, which no letter, digit or dot stands beside.
function replace_word(old, new, what,    from, at, before, after) {
    from = 1
    while ((at = index(substr(code, from), old)) > 0) {
        at += from - 1
        before = at > 1 ? substr(code, at - 1, 1) : " "; after = substr(code, at + length(old), 1)
        if (before !~ /[A-Za-z0-9_.$]/ && after !~ /[A-Za-z0-9_.]/)
            say(what, substr(line, 1, at - 1) new substr(line, at + length(old)))
        from = at + length(old)
    }
}

# A condition that decides nothing, where it is the only one and declares nothing.
function loosen(keyword, ending, otherwise,    start, stop, condition) {
    if (code !~ "^ *" keyword " " || code !~ ending " *$") return
    start = index(code, keyword " ") + length(keyword) + 1
    stop = match(code, ending " *$") - 1
    condition = substr(code, start, stop - start + 1)
    if (condition ~ /(^| )(let|var|case) / || condition ~ /^#/ || index(condition, ",") > 0 || !is_balanced(condition)) return
    say("a condition that decides nothing",
        substr(line, 1, start - 1) "(" substr(line, start, stop - start + 1) ")" otherwise substr(line, stop + 1))
}

# The last one of several conditions is forgotten.
function forget_condition(    stop, from, at, condition) {
    if (code !~ /^ *(if|guard|while|} else if) / || code !~ /( \{| else( \{.*)?) *$/) return
    stop = match(code, /( \{| else( \{.*)?) *$/)
    from = 0
    while ((at = index(substr(code, from + 1), ", ")) > 0 && from + at < stop) from += at
    if (from == 0) return
    condition = substr(code, from + 2, stop - from - 2)
    if (condition ~ /(^| )(let|var|case) / || !is_balanced(condition)) return
    say("a condition is forgotten", substr(line, 1, from - 1) substr(line, stop))
}

# A statement is left out: a call, or an assignment, that is a line of its own.
function leave_out() {
    if (code ~ /^ *(let|var|return|throw|case|if|guard|for|while|switch|func|init|deinit|import|default|else|do|repeat|struct|enum|actor|class|extension|package|public|private|static|typealias|override|mutating|nonisolated|indirect|subscript|set|get|unsafe let)( |\(|$|:)/) return
    if (code !~ /^ *(_ = )?(try[?!]? )?(await )?[a-z_][A-Za-z0-9_.?!]*(\[[^]]*\])?(\.[A-Za-z0-9_.?!]+)?(\(.*\)| [-+*]?= .*[^ {(,])$/ && code !~ /^ *(defer|continue|break) .*\}? *$/) return
    if (!is_balanced(code) || code ~ /[,({:=&|?+]$/ || ending ~ /[,(\[:=?+&|]$/) return
    held = FILENAME "\t" FNR "\ta statement is left out\t" line "\t"
}

FNR == 1 { comment = 0; isLongText = 0; ending = ""; held = "" }

{
    line = $0
    code = code_of(line)
    # What goes on in the next line is no statement of its own.
    if (held != "") { if (code !~ /^ *[.?:&|+)\]]/) print held; held = "" }
    if (code !~ /[^ ]/ || code ~ /^ *(import|@available|#)/) next
    if (code !~ /(static )?func [^ ]+ *[<(]/) {
        replace_each(" < ", " <= ", "a bound is moved"); replace_each(" <= ", " < ", "a bound is moved")
        replace_each(" > ", " >= ", "a bound is moved"); replace_each(" >= ", " > ", "a bound is moved")
        replace_each(" == ", " != ", "a comparison is turned round"); replace_each(" != ", " == ", "a comparison is turned round")
        replace_each(" && ", " || ", "and for or"); replace_each(" || ", " && ", "and for or")
        replace_each(" + ", " - ", "an operator's opposite"); replace_each(" - ", " + ", "an operator's opposite")
        replace_each(" += ", " -= ", "an operator's opposite"); replace_each(" -= ", " += ", "an operator's opposite")
        replace_each("min(", "max(", "the other extreme"); replace_each("max(", "min(", "the other extreme")
        if (code !~ / != /) replace_each(" !", " ", "a negation is forgotten")
        replace_each("(!", "(", "a negation is forgotten")
        replace_each(".first", ".last", "the other end"); replace_each(".last", ".first", "the other end")
        replace_each("removeFirst(", "removeLast(", "the other end"); replace_each("popLast(", "popFirst(", "the other end")
        replace_word("true", "false", "the other value"); replace_word("false", "true", "the other value")
        replace_word("0", "1", "one more"); replace_word("1", "2", "one more"); replace_word("1", "0", "one less")
        loosen("guard", " else( \\{.*)?", " || true"); loosen("if", " \\{.*", " && false")
        forget_condition()
        leave_out()
    }
    ending = code; sub(/ *$/, "", ending)
}
