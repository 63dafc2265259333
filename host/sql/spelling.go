package sql

import (
	"strings"
)

// spell turns the tokens Spark writes otherwise than DuckDB into DuckDB's:
// `name` is "name", DECIMAL without precision is DECIMAL(10,0), and EXCEPT after
// a star is EXCLUDE. Types and functions that DuckDB's parser takes as they are
// wait for the tree.
func spell(text string, o *origin) (string, *origin, error) {
	toks, err := lex(text)
	if err != nil {
		return "", nil, placed(err, o)
	}
	e := newEdit(text)
	at := func(i int) string {
		if i < 0 || i >= len(toks) {
			return ""
		}
		return text[toks[i].start:toks[i].end]
	}
	var casts []bool // per open parenthesis: is it that of a CAST
	for i, t := range toks {
		switch s := at(i); {
		case s == "(":
			casts = append(casts, strings.EqualFold(at(i-1), "CAST") || strings.EqualFold(at(i-1), "TRY_CAST"))
		case s == ")":
			casts = casts[:max(len(casts)-1, 0)]
		case s[0] == '`':
			e.replace(t.start, t.end, quoteName(unquote(s)))
		case leavesOut(s) && at(i-1) == "*" && at(i+1) == "(" && !startsQuery(at(i+2)):
			e.replace(t.start, t.end, "EXCLUDE")
		case t.kind == word && isDecimal(s) && at(i+1) != "(":
			inCast := len(casts) > 0 && casts[len(casts)-1] && strings.EqualFold(at(i-1), "AS")
			if inCast || at(i-1) == "::" {
				e.replace(t.end, t.end, "(10,0)")
			}
		}
	}
	text, o = e.finish(o)
	return text, o, nil
}

func isDecimal(s string) bool {
	return strings.EqualFold(s, "decimal") || strings.EqualFold(s, "dec") || strings.EqualFold(s, "numeric")
}

// leavesOut reports the word between a star and the columns it leaves out. As
// a set operation it never follows a star: that one has a FROM.
func leavesOut(s string) bool { return strings.EqualFold(s, "except") }

// startsQuery reports the words after a parenthesis that make it a query.
func startsQuery(s string) bool {
	switch strings.ToLower(s) {
	case "select", "with", "from", "values", "table", "(":
		return true
	}
	return false
}
