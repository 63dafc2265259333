package sql

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-data/weir/host/fault"
)

type tokenKind uint8

const (
	word    tokenKind = iota + 1 // identifier or keyword
	quoted                       // `…`
	literal                      // '…', "…", r'…', x'…'
	number
	symbol
)

// token is one piece of SQL; its text is src[start:end].
type token struct {
	kind       tokenKind
	start, end int
}

// lex splits SQL into tokens, leaving out white space and comments. It knows
// just enough to tell text inside quotes and comments from text outside; the
// rest of the grammar is DuckDB's.
func lex(src string) ([]token, error) {
	if err := readable(src); err != nil {
		return nil, err
	}
	var toks []token
	for i := 0; i < len(src); {
		start, c := i, src[i]
		switch {
		case isSpace(c):
			i++
			continue
		case strings.HasPrefix(src[i:], "--") || strings.HasPrefix(src[i:], "/*"):
			end, err := skipComment(src, i)
			if err != nil {
				return nil, err
			}
			i = end
			continue
		case c == '\'' || c == '"':
			end, err := skipQuoted(src, i, true)
			if err != nil {
				return nil, err
			}
			i = end
			toks = append(toks, token{literal, start, i})
		case opensRaw(src[i:]):
			end, err := skipRaw(src, i+1)
			if err != nil {
				return nil, err
			}
			i = end
			toks = append(toks, token{literal, start, i})
		case c == '`':
			end, err := skipQuoted(src, i, false)
			if err != nil {
				return nil, err
			}
			i = end
			toks = append(toks, token{quoted, start, i})
		case isWordStart(c):
			for i < len(src) && isWordPart(src[i]) {
				i++
			}
			toks = append(toks, token{word, start, i})
		case isDigit(c) || c == '.' && i+1 < len(src) && isDigit(src[i+1]):
			i = skipNumber(src, i)
			toks = append(toks, token{number, start, i})
		default:
			i += symbolLength(src[i:])
			toks = append(toks, token{symbol, start, i})
		}
	}
	return toks, nil
}

// readable refuses bytes that no SQL has and DuckDB's parser does not take.
func readable(src string) error {
	for i, r := range src {
		if r == 0 {
			return &lexError{i, "the text has a NUL character"}
		}
		if r == utf8.RuneError && !strings.HasPrefix(src[i:], "\uFFFD") {
			return &lexError{i, "the text is not UTF-8"}
		}
	}
	return nil
}

// symbolLength keeps the operators together that the callers look for.
func symbolLength(s string) int {
	for _, op := range []string{"<=>", "=>", "::", ":=", "->>", "->", "==", "!=", "<>", "<=", ">=", "||", "<<"} {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	return 1
}

func isSpace(c byte) bool     { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool     { return c >= '0' && c <= '9' }
func isWordStart(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }
func isWordPart(c byte) bool  { return isWordStart(c) || isDigit(c) || c == '$' }

// skipComment gives the end of the comment that starts at i; block comments nest.
func skipComment(src string, i int) (int, error) {
	if src[i] == '-' {
		if n := strings.IndexByte(src[i:], '\n'); n >= 0 {
			return i + n, nil
		}
		return len(src), nil
	}
	depth, start := 0, i
	for i < len(src) {
		switch {
		case strings.HasPrefix(src[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(src[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i, nil
			}
		default:
			i++
		}
	}
	return 0, &lexError{start, "a comment that starts here does not end"}
}

// skipQuoted gives the end of the quoted text whose quote is at i. A doubled
// quote stands for itself; a backslash escapes only where the caller says so.
func skipQuoted(src string, i int, backslash bool) (int, error) {
	quote, start := src[i], i
	for i++; i < len(src); i++ {
		switch {
		case backslash && src[i] == '\\':
			i++
		case src[i] == quote:
			if i+1 < len(src) && src[i+1] == quote {
				i++
				continue
			}
			return i + 1, nil
		}
	}
	return 0, &lexError{start, "a quote that opens here does not close"}
}

// opensRaw reports r'…' and x'…', in which a backslash is one.
func opensRaw(s string) bool {
	return len(s) > 1 && (s[0]|0x20 == 'r' || s[0]|0x20 == 'x') && (s[1] == '\'' || s[1] == '"')
}

// skipRaw gives the end of the text whose quote is at i and that knows no escapes.
func skipRaw(src string, i int) (int, error) {
	end := strings.IndexByte(src[i+1:], src[i])
	if end < 0 {
		return 0, &lexError{i, "a quote that opens here does not close"}
	}
	return i + end + 2, nil
}

func skipNumber(src string, i int) int {
	for i < len(src) && (isWordPart(src[i]) || src[i] == '.') {
		exponent := src[i]|0x20 == 'e'
		i++
		if exponent && i+1 < len(src) && (src[i] == '+' || src[i] == '-') && isDigit(src[i+1]) {
			i++
		}
	}
	return i
}

// lexError is a text that cannot be split, at a byte offset.
type lexError struct {
	at  int
	msg string
}

func (e *lexError) Error() string { return e.msg }

// unquote gives the name or text inside a token's quotes.
func unquote(s string) string {
	if s == "" {
		return s
	}
	switch {
	case s[0] == '\'' || s[0] == '"':
		return unescape(s[1:len(s)-1], s[0])
	case opensRaw(s):
		return s[2 : len(s)-1]
	case s[0] == '`':
		return strings.ReplaceAll(s[1:len(s)-1], "``", "`")
	}
	return s
}

// quoteName writes a name so that DuckDB takes it as it is.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// quoteText writes a text as a SQL literal.
func quoteText(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// syntaxError is a fault at a place of the user's text.
func syntaxError(w fault.Where, format string, args ...any) *fault.Error {
	return fault.New("PARSE_SYNTAX_ERROR", format, args...).At(w)
}
