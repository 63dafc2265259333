package sql

import (
	"errors"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// spell turns a text as Spark spells it into one that DuckDB's parser takes:
// "x" is a text, a backslash escapes, `name` is a name, numbers may have the
// letter of their type, <=>, !, DIV, RLIKE and ^ are operators, LATERAL VIEW,
// FROM VALUES, types in <…> and the like. Whatever DuckDB's parser takes as it is
// waits for the tree.
func spell(text string, o *origin) (string, *origin, error) {
	toks, err := lex(text)
	if err != nil {
		return "", nil, placed(err, o)
	}
	s := &speller{text: text, toks: toks, merged: map[int]bool{}}
	for i := range toks {
		if s.merged[i] {
			continue
		}
		if err := s.token(i); err != nil {
			return "", nil, placedFault(err, o)
		}
	}
	e := newEdit(text)
	slices.SortStableFunc(s.changes, func(a, b change) int { return a.start - b.start })
	for _, c := range s.changes {
		e.replace(c.start, c.end, c.text)
	}
	text, o = e.finish(o)
	return text, o, nil
}

// placedFault places a lexError, and a fault that says at which byte it is.
func placedFault(err error, o *origin) error {
	var f *spellError
	if errors.As(err, &f) {
		return f.fault.At(o.where(f.at))
	}
	return placed(err, o)
}

// spellError is a fault at a byte of the text.
type spellError struct {
	at    int
	fault *fault.Error
}

func (e *spellError) Error() string { return e.fault.Error() }

// speller collects the changes to a text.
type speller struct {
	text    string
	toks    []token
	changes []change
	merged  map[int]bool // tokens that an earlier one has taken in
	open    []bracket
	// operators whose order of binding differs, since the last comma, bracket or keyword.
	loose string
}

// change puts text in the place of a part of the source.
type change struct {
	start, end int
	text       string
}

// bracket is one that is open: the character and what stands before it.
type bracket struct {
	char string
	at   int // token
	call string
}

// at gives the text of token i, "" beyond the ends.
func (s *speller) at(i int) string {
	if i < 0 || i >= len(s.toks) {
		return ""
	}
	return s.text[s.toks[i].start:s.toks[i].end]
}

// is reports whether token i is one of the words.
func (s *speller) is(i int, words ...string) bool {
	if i < 0 || i >= len(s.toks) || s.toks[i].kind != word {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(s.at(i), w) })
}

func (s *speller) change(i int, text string) {
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[i].end, text})
}

// drop takes out tokens i to j-1.
func (s *speller) drop(i, j int) {
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[j-1].end, ""})
}

func (s *speller) before(i int, text string) {
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[i].start, text})
}

func (s *speller) after(i int, text string) {
	s.changes = append(s.changes, change{s.toks[i].end, s.toks[i].end, text})
}

func (s *speller) refuse(i int, code, hint, format string, args ...any) error {
	return &spellError{s.toks[i].start, fault.New(code, format, args...).WithHint("%s", hint)}
}

// value reports whether token i ends a value, so that an operator may follow.
func (s *speller) value(i int) bool {
	if i < 0 {
		return false
	}
	switch s.toks[i].kind {
	case symbol:
		return s.at(i) == ")" || s.at(i) == "]"
	case word:
		return !s.is(i, "SELECT", "WHERE", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "ON", "HAVING", "QUALIFY", "BY", "IN", "BETWEEN", "DISTINCT", "AS",
			"LIKE", "ILIKE", "RLIKE", "REGEXP", "FROM", "INTERVAL", "DIV", "IS")
	}
	return true
}

// closing gives the token that closes the bracket at i, or -1.
func (s *speller) closing(i int) int {
	depth := 0
	for j := i; j < len(s.toks); j++ {
		switch s.at(j) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// parts splits what stands in the bracket at open at its commas: [from, to) each.
func (s *speller) parts(open, shut int) [][2]int {
	var out [][2]int
	from := open + 1
	for j := open + 1; j < shut; j++ {
		switch s.at(j) {
		case "(", "[", "{":
			if c := s.closing(j); c > 0 {
				j = c
			}
		case ",":
			out = append(out, [2]int{from, j})
			from = j + 1
		}
	}
	if from < shut || len(out) > 0 {
		out = append(out, [2]int{from, shut})
	}
	return out
}

func (s *speller) token(i int) error {
	t := s.at(i)
	switch s.toks[i].kind {
	case literal:
		return s.literal(i)
	case quoted:
		s.change(i, quoteName(unquote(t)))
	case number:
		return s.number(i)
	case symbol:
		return s.symbol(i)
	case word:
		return s.word(i)
	}
	return nil
}

// literal writes a text as DuckDB does; texts side by side are one.
func (s *speller) literal(i int) error {
	t := s.at(i)
	if t[0]|0x20 == 'x' {
		s.change(i, "unhex("+quoteText(unquote(t))+")")
		return nil
	}
	text, j := unquote(t), i+1
	for ; j < len(s.toks) && s.toks[j].kind == literal && s.at(j)[0]|0x20 != 'x'; j++ {
		text += unquote(s.at(j))
		s.merged[j] = true
		s.drop(j, j+1)
	}
	if strings.Contains(text, "\x00") {
		return &lexError{s.toks[i].start, "the text has a NUL character"}
	}
	if s.is(i-1, "INTERVAL") {
		return s.interval(i, text)
	}
	if quotedText := quoteText(text); quotedText != t {
		s.change(i, quotedText)
	}
	return nil
}

func (s *speller) number(i int) error {
	if s.is(i-1, "INTERVAL") && s.toks[min(i+1, len(s.toks)-1)].kind == word {
		return s.interval(i, s.at(i))
	}
	if text := sparkNumber(s.at(i)); text != s.at(i) {
		s.change(i, text)
	}
	return nil
}

func (s *speller) symbol(i int) error {
	switch t := s.at(i); t {
	case "(", "[", "{":
		call := ""
		if i > 0 && s.toks[i-1].kind == word {
			call = strings.ToLower(s.at(i - 1))
		}
		s.open = append(s.open, bracket{t, i, call})
		s.loose = ""
	case ")", "]", "}":
		s.open = s.open[:max(len(s.open)-1, 0)]
		s.loose = ""
		if t == ")" && s.is(i+1, "IGNORE", "RESPECT") && s.is(i+2, "NULLS") {
			s.before(i, " "+s.at(i+1)+" NULLS")
			s.drop(i+1, i+3)
		}
		if t == ")" && s.is(i+1, "AS") && s.at(i+2) == "(" {
			return s.columnAliases(i + 1)
		}
	case ",", ";", "=", "==", "<", ">", "<=", ">=", "<>", "!=":
		s.loose = ""
	case "<=>":
		s.loose = ""
		s.change(i, " IS NOT DISTINCT FROM ")
	case "!":
		s.change(i, " NOT ")
	case "^":
		s.change(i, xorOperator)
		return s.binds(i)
	case "&", "|", "||":
		return s.binds(i)
	case "+", "-":
		if s.value(i - 1) {
			return s.binds(i)
		}
		// The sign is part of a number: -128Y is one, 128Y is not.
		if t == "-" && i+1 < len(s.toks) && s.toks[i+1].kind == number {
			if text := sparkNumber("-" + s.at(i+1)); text != "-"+s.at(i+1) {
				s.merged[i+1] = true
				s.changes = append(s.changes, change{s.toks[i].start, s.toks[i+1].end, text})
			}
		}
	case "~":
		if s.value(i - 1) {
			return s.refuse(i, "NOT_SUPPORTED", "Write RLIKE", "~ between texts is not supported")
		}
	case ":":
		return s.colon(i)
	}
	return nil
}

// xorOperator stands for Spark's ^ until the tree: to DuckDB that is a power.
const xorOperator = " |&| "

// binds refuses operators side by side that Spark and DuckDB put together in
// another order: Spark's | binds less than ^, that less than &, and that less than
// + and ||; DuckDB takes |, ^, & and || from left to right and + first.
func (s *speller) binds(i int) error {
	t := s.at(i)
	if t == "-" {
		t = "+"
	}
	if s.loose != "" && s.loose != t {
		return s.refuse(i, "NOT_SUPPORTED", "Put the operation that comes first into parentheses", "%s stands beside another of | ^ & || + - without parentheses", s.at(i))
	}
	s.loose = t
	return nil
}

// colon refuses column:path. Inside {…} and […], behind a lambda's names and as ::, := it is another thing.
func (s *speller) colon(i int) error {
	for j := i - 1; j > 0 && (s.toks[j].kind == word || s.at(j) == ","); j-- {
		if s.is(j, "lambda") {
			return nil
		}
	}
	if n := len(s.open); n > 0 && s.open[n-1].char != "(" {
		return nil
	}
	return s.refuse(i, "NOT_SUPPORTED", "Write get_json_object(column, '$.path')", "column:path is not supported")
}

func (s *speller) word(i int) error {
	next := s.at(i + 1)
	switch strings.ToUpper(s.at(i)) {
	case "AND", "OR", "WHEN", "THEN", "ELSE", "CASE", "FROM", "WHERE", "SELECT", "AS", "ON", "BETWEEN", "IN", "IS", "NOT":
		s.loose = ""
	case "EXCEPT":
		if s.at(i-1) == "*" && next == "(" && !startsQuery(s.at(i+2)) {
			s.change(i, "EXCLUDE")
		}
	case "MINUS":
		if s.is(i+1, "SELECT", "ALL", "DISTINCT", "TABLE", "VALUES", "FROM") || next == "(" && startsQuery(s.at(i+2)) {
			s.change(i, "EXCEPT")
		}
	case "DECIMAL", "DEC", "NUMERIC":
		if next != "(" && s.ofCast(i) {
			s.after(i, "(10,0)")
		}
		if next == "(" {
			return s.typeCall(i)
		}
	case "DIV":
		if s.value(i-1) && next != "(" || s.value(i-1) && next == "(" && s.toks[i-1].kind != symbol {
			s.change(i, "//")
		}
	case "SIMILAR":
		if s.is(i+1, "TO") {
			return s.refuse(i, "NOT_SUPPORTED", "Write RLIKE '^(?:…)$'", "SIMILAR TO is not supported")
		}
	case "RLIKE", "REGEXP":
		if s.value(i-1) || s.is(i-1, "NOT") && s.value(i-2) {
			s.change(i, "SIMILAR TO")
		}
	case "LEFT":
		if s.is(i+1, "SEMI", "ANTI") {
			s.drop(i, i+1)
		}
	case "LATERAL":
		if s.is(i+1, "VIEW") {
			return s.lateralView(i)
		}
	case "VALUES":
		return s.values(i)
	case "ARRAY":
		switch {
		case next == "(" && !startsQuery(s.at(i+2)):
			s.change(i, "list_value")
		case next == "<" && s.ofCast(i):
			return s.nestedType(i)
		}
	case "MAP", "STRUCT":
		switch {
		case next == "<" && s.ofCast(i):
			return s.nestedType(i)
		case next == "(" && strings.EqualFold(s.at(i), "struct") && !s.ofCast(i):
			return s.structure(i)
		}
	case "ANY", "SOME":
		if next == "(" && !startsQuery(s.at(i+2)) && (s.is(i-1, "SELECT", "HAVING", "QUALIFY", "WHERE", "AND", "OR", "NOT", "BY") || s.at(i-1) == "," || s.at(i-1) == "(") {
			s.change(i, "bool_or")
		}
	case "INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "FLOAT", "BOOLEAN", "CHAR", "TIMESTAMP", "EXISTS", "OVERLAY":
		return s.typeCall(i)
	case "TRIM", "LTRIM", "RTRIM":
		if next == "(" {
			if shut := s.closing(i + 1); shut > 0 && len(s.parts(i+1, shut)) > 1 {
				return s.refuse(i, "NOT_SUPPORTED", "Write TRIM(LEADING 'x' FROM text), or btrim(text, 'x')", "%s with two arguments is not supported: Spark takes them the other way round", s.at(i))
			}
		}
	case "WITHIN":
		if s.is(i+1, "GROUP") && s.at(i+2) == "(" && s.at(i-1) == ")" && s.is(s.opening(i-1)-1, "STRING_AGG", "LISTAGG") {
			s.drop(i-1, i)
			s.drop(i, i+3)
			s.merged[i+1], s.merged[i+2] = true, true
		}
	case "POSITION":
		if next == "(" {
			if shut := s.closing(i + 1); shut > 0 && len(s.parts(i+1, shut)) > 1 {
				s.change(i, "locate")
			}
		}
	}
	return nil
}

// typeCall quotes the name of a function that is a keyword to DuckDB's parser.
func (s *speller) typeCall(i int) error {
	if s.at(i+1) != "(" || s.ofCast(i) || s.value(i-1) || startsQuery(s.at(i+2)) {
		return nil
	}
	if s.is(i, "OVERLAY") {
		if shut := s.closing(i + 1); shut < 0 || len(s.parts(i+1, shut)) < 2 {
			return nil
		}
	}
	s.change(i, quoteName(strings.ToLower(s.at(i))))
	return nil
}

// opening gives the token that opens the bracket which token i closes, or -1.
func (s *speller) opening(i int) int {
	depth := 0
	for j := i; j >= 0; j-- {
		switch s.at(j) {
		case ")", "]", "}":
			depth++
		case "(", "[", "{":
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return -1
}

// ofCast reports whether the type at token i is that of a CAST or of ::.
func (s *speller) ofCast(i int) bool {
	n := len(s.open)
	inCast := n > 0 && (s.open[n-1].call == "cast" || s.open[n-1].call == "try_cast") && s.is(i-1, "AS")
	return inCast || s.at(i-1) == "::"
}

// startsQuery reports the words after a parenthesis that make it a query.
func startsQuery(s string) bool {
	switch strings.ToLower(s) {
	case "select", "with", "from", "values", "table", "(":
		return true
	}
	return false
}
