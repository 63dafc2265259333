package sql

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/abi/coltype"
)

// lateralView writes FROM t LATERAL VIEW [OUTER] explode(x) e AS c as a join with
// LATERAL (SELECT explode(x)) AS e(c).
func (s *speller) lateralView(i int) error {
	j := i + 2
	outer := s.is(j, "OUTER")
	if outer {
		j++
	}
	shut := -1
	if s.at(j+1) == "(" {
		shut = s.closing(j + 1)
	}
	if shut < 0 || s.toks[j].kind != word {
		return &lexError{s.toks[i].start, "LATERAL VIEW takes a function such as explode(x)"}
	}
	join, rest := " CROSS JOIN LATERAL (SELECT ", ""
	if outer {
		join, rest = " LEFT JOIN LATERAL (SELECT ", " ON true"
	}
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[j-1].end, join})
	alias, k := generatorAlias(strings.ToLower(s.at(j))), shut+1
	if k < len(s.toks) && !s.is(k, "AS") && (s.toks[k].kind == quoted || s.toks[k].kind == word && !endsView(s.at(k))) {
		alias = quoteName(unquote(s.at(k)))
		k++
	}
	var columns []string
	if s.is(k, "AS") {
		for k++; k < len(s.toks); k++ {
			columns = append(columns, quoteName(unquote(s.at(k))))
			if s.at(k+1) != "," {
				k++
				break
			}
			k++
		}
	}
	text := ") AS " + alias
	if len(columns) > 0 {
		text += "(" + strings.Join(columns, ", ") + ")"
	}
	if k > shut+1 {
		for m := shut + 1; m < k; m++ {
			s.merged[m] = true
		}
		s.changes = append(s.changes, change{s.toks[shut].end, s.toks[k-1].end, text + rest})
	} else {
		s.after(shut, text+rest)
	}
	return nil
}

// generatorAlias names a view that has no name of its own.
func generatorAlias(function string) string { return quoteName("lateral_" + function) }

// endsView reports the words that follow a LATERAL VIEW without a name.
func endsView(s string) bool {
	switch strings.ToUpper(s) {
	case "LATERAL", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "UNION", "EXCEPT", "MINUS", "INTERSECT", "JOIN", "LEFT", "RIGHT", "FULL",
		"INNER", "CROSS", "NATURAL", "ON", "WINDOW", "OFFSET", "SEMI", "ANTI":
		return true
	}
	return false
}

// values puts the rows of FROM VALUES (1, 2), … into parentheses, and calls their
// columns col1, col2 … when they have no other names.
func (s *speller) values(i int) error {
	if i > 0 && !s.is(i-1, "FROM", "JOIN") && s.at(i-1) != "," && s.at(i-1) != "(" {
		return nil
	}
	inside := s.at(i-1) == "("
	if inside && i > 1 && s.toks[i-2].kind == word && !s.is(i-2, "FROM", "JOIN", "IN", "AS", "ALL", "UNION", "EXCEPT", "INTERSECT") {
		return nil
	}
	count, j := 0, i+1
	for ; j < len(s.toks); j++ {
		shut := j
		n := 1
		if s.at(j) == "(" {
			if shut = s.closing(j); shut < 0 {
				return nil // DuckDB's parser says what is wrong
			}
			n = len(s.parts(j, shut))
		} else {
			for s.at(shut+1) != "," && shut+1 < len(s.toks) && s.at(shut+1) != ")" && !s.is(shut+1, "AS") {
				shut++
			}
			s.before(j, "(")
			s.after(shut, ")")
		}
		count = max(count, n)
		if j = shut; s.at(j+1) != "," {
			break
		}
		j++
	}
	names := make([]string, count)
	for c := range names {
		names[c] = fmt.Sprintf("col%d", c+1)
	}
	columns := "(" + strings.Join(names, ", ") + ")"
	last := min(j, len(s.toks)-1)
	switch {
	case i == 0:
		s.before(i, "SELECT * FROM (")
		s.after(last, ") AS inline_table"+columns)
	case inside:
		shut := s.closing(i - 1)
		if shut != last+1 || s.is(i-2, "IN", "AS", "ALL", "UNION", "EXCEPT", "INTERSECT") {
			return nil
		}
		s.nameValues(shut, columns)
	default:
		s.before(i, "(")
		s.after(last, ")")
		s.nameValues(last, columns)
	}
	return nil
}

// nameValues names the columns of a VALUES that ends at token i, unless it has names.
func (s *speller) nameValues(i int, columns string) {
	k := i + 1
	if s.is(k, "AS") {
		k++
	}
	switch {
	case k < len(s.toks) && (s.toks[k].kind == quoted || s.toks[k].kind == word && (k > i+1 || !endsView(s.at(k)))):
		if s.at(k+1) != "(" {
			s.after(k, columns)
		}
	default:
		s.after(i, " AS inline_table"+columns)
	}
}

// columnAliases takes f(x) AS (a, b), which names the columns that a generator
// makes, into one alias that the tree takes apart again.
func (s *speller) columnAliases(i int) error {
	shut := s.closing(i + 1)
	if shut < 0 || startsQuery(s.at(i+2)) {
		return nil
	}
	var names []string
	for _, p := range s.parts(i+1, shut) {
		if p[1] != p[0]+1 || s.toks[p[0]].kind != word && s.toks[p[0]].kind != quoted {
			return nil
		}
		names = append(names, unquote(s.at(p[0])))
	}
	for m := i; m <= shut; m++ {
		s.merged[m] = true
	}
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[shut].end, "AS " + quoteName(columnsAlias+strings.Join(names, "\x01"))})
	return nil
}

// columnsAlias begins the alias that stands for several.
const columnsAlias = reservedPrefix + "columns "

// nestedType writes ARRAY<…>, MAP<…> and STRUCT<…> as DuckDB does.
func (s *speller) nestedType(i int) error {
	depth, j := 0, i+1
	for ; j < len(s.toks); j++ {
		switch t := s.at(j); t {
		case "<":
			depth++
		case ">":
			depth--
		case ">=", "<>":
			return nil
		}
		if depth == 0 {
			break
		}
	}
	if j == len(s.toks) {
		return &lexError{s.toks[i].start, "the type does not end"}
	}
	dt, err := coltype.Parse(s.text[s.toks[i].start:s.toks[j].end])
	if err != nil {
		return &lexError{s.toks[i].start, err.Error()}
	}
	name, err := duckType(dt)
	if err != nil {
		return &lexError{s.toks[i].start, err.Error()}
	}
	for m := i + 1; m <= j; m++ {
		s.merged[m] = true
	}
	s.changes = append(s.changes, change{s.toks[i].start, s.toks[j].end, name})
	return nil
}

// structure writes struct(a, b AS c, 1) with the names that Spark gives the fields.
func (s *speller) structure(i int) error {
	shut := s.closing(i + 1)
	if shut < 0 {
		return nil
	}
	s.change(i, "struct_pack")
	for n, p := range s.parts(i+1, shut) {
		from, to := p[0], p[1]
		if from >= to {
			continue
		}
		name := fmt.Sprintf("col%d", n+1)
		last := s.toks[to-1].kind == word || s.toks[to-1].kind == quoted
		switch {
		case s.at(to-1) == "*":
			return s.refuse(to-1, "NOT_SUPPORTED", "Name the columns: struct(a, b)", "struct(*) is not supported")
		case to-from > 2 && last && s.is(to-2, "AS"):
			name = unquote(s.at(to - 1))
			s.drop(to-2, to)
			s.merged[to-1] = true
		case last && s.dotted(from, to):
			name = unquote(s.at(to - 1))
		}
		s.before(from, quoteName(name)+" := ")
	}
	return nil
}

// dotted reports a name such as t.c from token i to j-1.
func (s *speller) dotted(i, j int) bool {
	for k := i; k < j; k++ {
		isName := s.toks[k].kind == word && !s.is(k, "NULL", "TRUE", "FALSE", "END") || s.toks[k].kind == quoted
		if (k-i)%2 == 0 && !isName || (k-i)%2 == 1 && s.at(k) != "." {
			return false
		}
	}
	return (j-i)%2 == 1
}

// intervalUnits are the months or microseconds of a unit.
var intervalUnits = map[string]struct{ months, micros int64 }{
	"YEAR": {12, 0}, "QUARTER": {3, 0}, "MONTH": {1, 0}, "WEEK": {0, 7 * day}, "DAY": {0, day}, "HOUR": {0, day / 24}, "MINUTE": {0, day / 1440},
	"SECOND": {0, 1_000_000}, "MILLISECOND": {0, 1_000}, "MICROSECOND": {0, 1},
}

const day = 24 * int64(time.Hour/time.Microsecond)

// interval writes an interval literal, whose first number is token i, as the call
// of a function that the tree knows: INTERVAL 1 DAY 2 HOURS, INTERVAL '1-2' YEAR
// TO MONTH, INTERVAL '1 02:03:04' DAY TO SECOND, INTERVAL '3 months 2 days'.
func (s *speller) interval(i int, text string) error {
	var months, micros int64
	bad := &lexError{s.toks[i].start, "the interval cannot be read"}
	add := func(count, unit string) bool {
		u, ok := intervalUnits[strings.TrimSuffix(strings.ToUpper(unit), "S")]
		f, err := strconv.ParseFloat(count, 64)
		if !ok || err != nil || u.months > 0 && f != float64(int64(f)) || f > 1e12 || f < -1e12 {
			return false
		}
		months += u.months * int64(f)
		whole, fraction, _ := strings.Cut(strings.TrimLeft(count, "+-"), ".")
		n, err := strconv.ParseInt("0"+whole, 10, 64)
		if err != nil {
			return false
		}
		part := u.micros * n
		if fraction != "" {
			if u.micros != 1_000_000 || len(fraction) > 6 {
				return false
			}
			m, err := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
			if err != nil {
				return false
			}
			part += m
		}
		if strings.HasPrefix(count, "-") {
			part = -part
		}
		micros += part
		return true
	}
	j := i + 1
	literalValue := s.toks[i].kind == literal
	switch {
	case literalValue && s.is(j+1, "TO"):
		if !intervalParts(text, strings.ToUpper(s.at(j)), strings.ToUpper(s.at(j+2)), add) {
			return bad
		}
		j += 3
	case literalValue && !s.isUnit(j):
		words := strings.Fields(text)
		if len(words)%2 != 0 || len(words) == 0 {
			return bad
		}
		for k := 0; k < len(words); k += 2 {
			if !add(words[k], words[k+1]) {
				return bad
			}
		}
	default:
		for k := i; s.isUnit(k + 1); k += 2 {
			count := s.at(k)
			if s.toks[k].kind == literal {
				count = strings.TrimSpace(unquote(count))
			}
			if !add(count, s.at(k+1)) {
				return bad
			}
			if j = k + 2; j >= len(s.toks)-1 || s.toks[j].kind != number && s.toks[j].kind != literal {
				break
			}
		}
		if j == i+1 {
			return bad
		}
	}
	for m := i + 1; m < j; m++ {
		s.merged[m] = true
	}
	s.changes = append(s.changes, change{s.toks[i-1].start, s.toks[j-1].end, fmt.Sprintf("%s(%d, %d)", intervalFunction, months, micros)})
	return nil
}

// intervalFunction is the call that stands for an interval: of months and microseconds.
const intervalFunction = reservedPrefix + "interval"

func (s *speller) isUnit(i int) bool {
	if i >= len(s.toks) || s.toks[i].kind != word {
		return false
	}
	_, ok := intervalUnits[strings.TrimSuffix(strings.ToUpper(s.at(i)), "S")]
	return ok
}

// intervalParts reads '1-2' YEAR TO MONTH and '1 02:03:04.5' DAY TO SECOND.
func intervalParts(text, from, to string, add func(count, unit string) bool) bool {
	text = strings.TrimSpace(text)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	order := []string{"YEAR", "MONTH"}
	parts := strings.Split(text, "-")
	if from != "YEAR" {
		order = []string{"DAY", "HOUR", "MINUTE", "SECOND"}
		parts = strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ':' })
	}
	for len(order) > 0 && order[0] != from {
		order = order[1:]
	}
	for len(order) > 0 && order[len(order)-1] != to {
		order = order[:len(order)-1]
	}
	if len(order) < 2 || len(parts) != len(order) {
		return false
	}
	for k, p := range parts {
		if !add(sign+p, order[k]) {
			return false
		}
	}
	return true
}
