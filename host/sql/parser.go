package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// parser reads one statement.
type parser struct {
	src    string
	toks   []token
	pos    int
	origin *origin
	file   *fileReader
	legacy []Deprecated
}

func (p *parser) text(t token) string { return p.src[t.start:t.end] }

func (p *parser) done() bool { return p.pos >= len(p.toks) }

// peek gives the text of the token n ahead, or "".
func (p *parser) peek(n int) string {
	if p.pos+n >= len(p.toks) {
		return ""
	}
	return p.text(p.toks[p.pos+n])
}

// is reports whether the next tokens are these keywords or symbols.
func (p *parser) is(words ...string) bool {
	for i, w := range words {
		if !strings.EqualFold(p.peek(i), w) {
			return false
		}
	}
	return true
}

// accept takes the next tokens when they are these keywords or symbols.
func (p *parser) accept(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.pos += len(words)
	return true
}

func (p *parser) expect(words ...string) error {
	for _, w := range words {
		if !p.accept(w) {
			return p.unexpected(w)
		}
	}
	return nil
}

func (p *parser) unexpected(want string) error {
	if p.done() {
		return syntaxError(p.here(), "the statement ends where %s is due", want)
	}
	return syntaxError(p.here(), "%s stands where %s is due", p.peek(0), want)
}

// here is the place of the next token, or of the statement's end.
func (p *parser) here() fault.Where {
	if p.done() {
		return p.origin.where(p.toks[len(p.toks)-1].end)
	}
	return p.origin.where(p.toks[p.pos].start)
}

func (p *parser) notSupported(at fault.Where, what, hint string) error {
	return fault.New("NOT_SUPPORTED", "%s is not supported yet", what).WithHint("%s", hint).At(at)
}

// deprecated notes a spelling of older releases.
func (p *parser) deprecated(at fault.Where, what, instead string) {
	p.legacy = append(p.legacy, Deprecated{What: what, Instead: instead, Line: int(at.Line), Column: int(at.Column)})
}

// mentions reports whether a keyword is among the tokens to come.
func (p *parser) mentions(w string) bool {
	for i := range p.toks[p.pos:] {
		if strings.EqualFold(p.peek(i), w) {
			return true
		}
	}
	return false
}

// name reads a name of one to three parts. The LIVE schema of older releases
// is left out: it never was one.
func (p *parser) name() (string, error) {
	at := p.here()
	var parts []string
	for {
		part, err := p.identifier("a name")
		if err != nil {
			return "", err
		}
		if strings.Contains(part, ".") {
			return "", syntaxError(p.origin.where(p.toks[p.pos-1].start), "the name %q has a dot in one of its parts", part)
		}
		parts = append(parts, part)
		if !p.accept(".") {
			break
		}
	}
	if len(parts) == 2 && strings.EqualFold(parts[0], "live") {
		p.deprecated(at, "the prefix LIVE.", "Leave it out: names without a schema mean the pipeline's")
		parts = parts[1:]
	}
	if len(parts) > 3 {
		return "", syntaxError(p.here(), "the name %s has more than the three parts catalog.schema.table", strings.Join(parts, "."))
	}
	return strings.Join(parts, "."), nil
}

// tableName reads the name of a table, as USE completes it.
func (p *parser) tableName() (string, error) {
	name, err := p.name()
	if err != nil {
		return "", err
	}
	return p.file.complete(name), nil
}

func (p *parser) identifier(what string) (string, error) {
	if p.done() {
		return "", p.unexpected(what)
	}
	t := p.toks[p.pos]
	if t.kind != word && t.kind != quoted {
		return "", p.unexpected(what)
	}
	p.pos++
	name := unquote(p.text(t))
	if name == "" {
		return "", syntaxError(p.origin.where(t.start), "an empty name stands where %s is due", what)
	}
	return name, nil
}

// stringValue reads a text, or several joined by ||; "…" counts as one here, as
// in Spark.
func (p *parser) stringValue(what string) (string, error) {
	var out strings.Builder
	for {
		if p.done() {
			return "", p.unexpected(what)
		}
		s := p.peek(0)
		if s[0] != '\'' && s[0] != '"' {
			return "", p.unexpected(what)
		}
		p.pos++
		out.WriteString(unquote(s))
		if !p.accept("||") {
			return out.String(), nil
		}
	}
}

// parentheses moves past ( … ) and gives what is inside.
func (p *parser) parentheses() (token, error) {
	if err := p.expect("("); err != nil {
		return token{}, err
	}
	first, depth := p.pos, 1
	for !p.done() {
		switch p.peek(0) {
		case "(":
			depth++
		case ")":
			depth--
		}
		p.pos++
		if depth == 0 {
			last := p.pos - 2
			if last < first {
				return token{}, nil
			}
			return token{start: p.toks[first].start, end: p.toks[last].end}, nil
		}
	}
	return token{}, p.unexpected(")")
}

// expressionText checks that the piece of the statement is one expression.
func (p *parser) expressionText(t token, what string) (Expression, error) {
	if t.start == t.end {
		return Expression{}, p.unexpected(what)
	}
	at := p.origin.where(t.start)
	e := Expression{Text: p.text(t), Line: int(at.Line), Column: int(at.Column), origin: p.origin.within(t.start)}
	q := e.Select("")
	text, o := q.Text, q.origin
	if _, _, err := parseSelect(text, o); err != nil {
		return Expression{}, err
	}
	depth := 0
	for _, piece := range p.toks {
		if piece.start < t.start || piece.end > t.end {
			continue
		}
		switch p.text(piece) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case ",":
			if depth == 0 {
				return Expression{}, syntaxError(p.origin.where(piece.start), "a second expression stands where %s is due", what)
			}
		}
	}
	return e, nil
}
