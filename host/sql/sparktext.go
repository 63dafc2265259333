package sql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// sparkText turns an expression as Spark spells it into the dialect of the
// queries: "x" is a text and a backslash escapes in texts and in LIKE, numbers
// may have the letter of their type, <=> compares NULL as a value, ! is NOT, and
// DIV, RLIKE and REGEXP are operators.
func sparkText(src string) (string, error) {
	o := newOrigin("", src, 1)
	if err := readable(src); err != nil {
		return "", placed(err, o)
	}
	w := &sparkWriter{}
	for i := 0; i < len(src); {
		t, err := sparkToken(src, i)
		if err == nil {
			err = w.token(t)
		}
		if err != nil {
			return "", placed(err, o)
		}
		i = t.end
	}
	if w.depth != 0 {
		return "", syntaxError(o.where(len(src)), "a parenthesis does not close")
	}
	return w.String(), nil
}

// sparkPiece is a token: what it is, where it ends, and how it is spelled here.
type sparkPiece struct {
	kind       tokenKind // 0: nothing that counts, such as a space
	start, end int
	text       string
}

// sparkWriter puts tokens together. Some mean another thing behind a certain word.
type sparkWriter struct {
	strings.Builder
	operator string // LIKE, ILIKE or RLIKE, whose pattern is due
	not      int    // where a NOT stands that came last; 0 when something else did
	value    bool   // what came last ends a value
	depth    int    // of parentheses
}

func (w *sparkWriter) token(t sparkPiece) error {
	if t.kind == 0 {
		w.WriteString(t.text)
		return nil
	}
	operator, not, value := w.operator, w.not, w.value
	w.operator, w.not, w.value = "", 0, t.kind != symbol || t.text == ")" || t.text == "]"
	switch {
	case t.text == "(":
		w.depth++
	case t.text == ")":
		if w.depth--; w.depth < 0 {
			return &lexError{t.start, "a parenthesis closes that was not opened"}
		}
	}
	switch {
	case operator == "RLIKE" && t.kind != literal:
		return &lexError{t.start, "RLIKE takes a text as its pattern; write rlike(value, pattern) for others"}
	case operator == "RLIKE":
		// DuckDB's operator matches the whole text.
		w.WriteString(quoteText("(?s).*(?:" + unquote(t.text) + ").*"))
		return nil
	case operator != "" && t.kind == literal && strings.Contains(t.text, `\`):
		w.WriteString(t.text + ` ESCAPE '\'`)
		return nil
	}
	if t.kind == word {
		switch upper := strings.ToUpper(t.text); upper {
		case "NOT":
			w.not = w.Len()
			w.value = value // "a NOT RLIKE b" is no call of rlike
		case "AND", "OR", "WHEN", "THEN", "ELSE", "CASE":
			w.value = false
		case "LIKE", "ILIKE":
			w.operator = upper
		case "DIV":
			t.text = "//"
		case "RLIKE", "REGEXP":
			if !value {
				break // the function of that name
			}
			w.operator, t.text = "RLIKE", "~"
			if not > 0 {
				head := w.String()[:not]
				w.Reset()
				w.WriteString(head)
				t.text = "!~"
			}
		}
	}
	w.WriteString(t.text)
	return nil
}

var typedNumber = regexp.MustCompile(`^((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(BD|[LSYDF])$`)

var numberTypes = map[string]string{"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT"}

// sparkToken reads the token at i.
func sparkToken(src string, i int) (sparkPiece, error) {
	piece := func(kind tokenKind, end int, text string) (sparkPiece, error) {
		return sparkPiece{kind, i, end, text}, nil
	}
	quote := func(at int, escapes bool) (int, error) {
		if escapes || src[at] == '`' {
			return skipQuoted(src, at, escapes)
		}
		end := strings.IndexByte(src[at+1:], src[at])
		if end < 0 {
			return 0, &lexError{at, "a quote that opens here does not close"}
		}
		return at + end + 2, nil
	}
	quoteFollows := i+1 < len(src) && (src[i+1] == '\'' || src[i+1] == '"')
	switch c := src[i]; {
	case isSpace(c):
		return piece(0, i+1, " ")
	case strings.HasPrefix(src[i:], "--") || strings.HasPrefix(src[i:], "/*"):
		end, err := skipComment(src, i)
		if err != nil {
			return sparkPiece{}, err
		}
		return piece(0, end, " ")
	case c == '\'' || c == '"':
		end, err := quote(i, true)
		if err != nil {
			return sparkPiece{}, err
		}
		return piece(literal, end, quoteText(unescape(src[i+1:end-1])))
	case (c|0x20 == 'r' || c|0x20 == 'x') && quoteFollows:
		end, err := quote(i+1, false)
		if err != nil {
			return sparkPiece{}, err
		}
		text := quoteText(src[i+2 : end-1])
		if c|0x20 == 'x' {
			return piece(symbol, end, "unhex("+text+")")
		}
		return piece(literal, end, text)
	case c == '`':
		end, err := quote(i, false)
		if err != nil {
			return sparkPiece{}, err
		}
		return piece(quoted, end, quoteName(unquote(src[i:end])))
	case isWordStart(c):
		end := i
		for end < len(src) && isWordPart(src[end]) {
			end++
		}
		return piece(word, end, src[i:end])
	case isDigit(c) || c == '.' && i+1 < len(src) && isDigit(src[i+1]):
		end := skipNumber(src, i)
		return piece(number, end, sparkNumber(src[i:end]))
	case strings.HasPrefix(src[i:], "<=>"):
		return piece(symbol, i+3, " IS NOT DISTINCT FROM ")
	case strings.HasPrefix(src[i:], "!="):
		return piece(symbol, i+2, "<>")
	case c == '!':
		return piece(symbol, i+1, " NOT ")
	}
	_, size := utf8.DecodeRuneInString(src[i:])
	return piece(symbol, i+size, src[i:i+size])
}

// sparkNumber gives a number with the letter of its type as a cast.
func sparkNumber(number string) string {
	m := typedNumber.FindStringSubmatch(strings.ToUpper(number))
	if m == nil {
		return number
	}
	if t, ok := numberTypes[m[2]]; ok {
		return fmt.Sprintf("CAST(%s AS %s)", m[1], t)
	}
	return m[1] // BD: without the letter it is a decimal, too
}

// unescape gives the text between quotes that Spark means by it
// (apache/spark sql/catalyst/src/main/scala/org/apache/spark/sql/catalyst/util/SparkParserUtils.scala).
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c == '\'' || c == '"') && i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c) // doubled
			i++
			continue
		}
		if c != '\\' || i+1 == len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		if n, size := codePoint(s[i:]); size > 0 {
			b.WriteRune(n)
			i += size - 1
			continue
		}
		switch c := s[i]; c {
		case 'b':
			b.WriteByte('\b')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'Z':
			b.WriteByte(0x1A)
		case '%', '_':
			b.WriteByte('\\') // kept for LIKE
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// codePoint reads what follows a backslash as \uXXXX, \UXXXXXXXX or three octal digits.
func codePoint(s string) (rune, int) {
	digits, base, skip := 0, 16, 1
	switch {
	case s[0] == 'u':
		digits = 4
	case s[0] == 'U':
		digits = 8
	case s[0] >= '0' && s[0] <= '1':
		digits, base, skip = 3, 8, 0
	}
	if digits == 0 || len(s) < skip+digits {
		return 0, 0
	}
	n, err := strconv.ParseUint(s[skip:skip+digits], base, 31)
	if err != nil || !utf8.ValidRune(rune(n)) {
		return 0, 0
	}
	return rune(n), skip + digits
}
