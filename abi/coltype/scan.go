package coltype

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokIdent
	tokQuoted // in backticks: a name, never a keyword
	tokText   // in quotes
	tokSymbol
)

type token struct {
	kind tokenKind
	text string
	at   int
}

// scanner cuts schema text into tokens; tok is the current one.
type scanner struct {
	text string
	pos  int
	tok  token
}

func identRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func (s *scanner) next() {
	for s.pos < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		s.pos += n
	}
	start := s.pos
	if start >= len(s.text) {
		s.tok = token{kind: tokEnd, at: start}
		return
	}
	switch c := s.text[start]; c {
	case '`':
		s.tok = s.quoted(tokQuoted, c)
		return
	case '\'', '"':
		s.tok = s.quoted(tokText, c)
		return
	}
	for s.pos < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.pos:])
		if !identRune(r) {
			break
		}
		s.pos += n
	}
	if s.pos > start {
		s.tok = token{tokIdent, s.text[start:s.pos], start}
		return
	}
	_, n := utf8.DecodeRuneInString(s.text[start:])
	s.pos += n
	s.tok = token{tokSymbol, s.text[start:s.pos], start}
}

// quoted reads to the closing quote; a doubled quote stands for one, and in
// text a backslash takes the next character as it is.
func (s *scanner) quoted(kind tokenKind, quote byte) token {
	start := s.pos
	var b strings.Builder
	for i := start + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == quote && i+1 < len(s.text) && s.text[i+1] == quote:
			b.WriteByte(c)
			i++
		case c == quote:
			s.pos = i + 1
			return token{kind, b.String(), start}
		case c == '\\' && kind == tokText && i+1 < len(s.text):
			i++
			b.WriteByte(s.text[i])
		default:
			b.WriteByte(c)
		}
	}
	s.pos = len(s.text)
	return token{tokSymbol, s.text[start:], start}
}

func (s *scanner) word(w string) bool {
	return s.tok.kind == tokIdent && strings.EqualFold(s.tok.text, w)
}

func (s *scanner) accept(symbol string) bool {
	if s.tok.kind != tokSymbol || s.tok.text != symbol {
		return false
	}
	s.next()
	return true
}

func (s *scanner) expect(symbol string) error {
	if !s.accept(symbol) {
		return s.unexpected("\"" + symbol + "\"")
	}
	return nil
}

func (s *scanner) number(what string) (int, error) {
	if s.tok.kind == tokIdent {
		if n, err := strconv.ParseUint(s.tok.text, 10, 31); err == nil {
			s.next()
			return int(n), nil
		}
	}
	return 0, s.unexpected(what)
}

func (s *scanner) unexpected(want string) error {
	found := "the end"
	if s.tok.kind != tokEnd {
		t := s.tok.text
		if len(t) > 40 {
			t = t[:40] + "…"
		}
		found = strconv.Quote(t)
	}
	return errorf(CodeSyntax, "expected %s, found %s at character %d", want, found, s.tok.at+1)
}
