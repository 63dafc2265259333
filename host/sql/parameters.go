package sql

import (
	"slices"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// parameters puts in what is known before a statement is read: :name is a text
// of the configuration, IDENTIFIER(text) the name that the text spells.
func parameters(src string, conf map[string]string, o *origin) (string, *origin, error) {
	src, o, err := named(src, conf, o)
	if err != nil {
		return "", nil, err
	}
	return identifiers(src, o)
}

func named(src string, conf map[string]string, o *origin) (string, *origin, error) {
	toks, err := lex(src)
	if err != nil {
		return "", nil, placed(err, o)
	}
	e := newEdit(src)
	for i, t := range toks {
		if !isParameter(src, toks, i) {
			continue
		}
		key := src[toks[i+1].start:toks[i+1].end]
		value, ok := conf[key]
		if !ok {
			known := make([]string, 0, len(conf))
			for k := range conf {
				known = append(known, k)
			}
			slices.Sort(known)
			return "", nil, fault.New("UNBOUND_SQL_PARAMETER", "the parameter :%s is not set", key).
				WithHint("Set %s under configuration in the spec, or with --conf %s=…; set are %s", key, key, strings.Join(known, ", ")).
				At(o.where(t.start))
		}
		e.replace(t.start, toks[i+1].end, sparkLiteral(value))
	}
	text, out := e.finish(o)
	return text, out, nil
}

// isParameter tells :name from a:b, a path into JSON, from x[a:b] and from
// {'a':b}: a parameter stands where a value may begin, its colon right before
// its name and not right behind another.
func isParameter(src string, toks []token, i int) bool {
	if src[toks[i].start:toks[i].end] != ":" || i+1 >= len(toks) {
		return false
	}
	if next := toks[i+1]; next.kind != word || next.start != toks[i].end {
		return false
	}
	if i == 0 {
		return true
	}
	switch before := toks[i-1]; before.kind {
	case literal, number, quoted:
		return false
	case word:
		return before.end < toks[i].start
	default:
		return !strings.ContainsAny(src[before.start:before.end], ")]}[:")
	}
}

func identifiers(src string, o *origin) (string, *origin, error) {
	toks, err := lex(src)
	if err != nil {
		return "", nil, placed(err, o)
	}
	p := &parser{src: src, toks: toks, origin: o}
	e := newEdit(src)
	for !p.done() {
		if !p.is("IDENTIFIER", "(") || p.toks[p.pos].kind != word || p.pos > 0 && p.text(p.toks[p.pos-1]) == "." {
			p.pos++
			continue
		}
		start, at := p.toks[p.pos].start, p.here()
		p.pos++
		first := p.pos + 1
		if _, err := p.parentheses(); err != nil {
			return "", nil, err
		}
		inner := &parser{src: src, origin: o, toks: toks[first : p.pos-1]}
		spelt, err := inner.constantText()
		if err != nil {
			return "", nil, fault.New("NOT_A_CONSTANT_STRING", "IDENTIFIER takes texts and :parameters, joined by ||").At(at)
		}
		name, err := dottedName(spelt, at)
		if err != nil {
			return "", nil, err
		}
		parts := strings.Split(name, ".")
		for i, part := range parts {
			parts[i] = "`" + strings.ReplaceAll(part, "`", "``") + "`"
		}
		e.replace(start, p.toks[p.pos-1].end, strings.Join(parts, "."))
	}
	text, out := e.finish(o)
	return text, out, nil
}

// constantText reads texts joined by ||, in parentheses or in concat(…).
func (p *parser) constantText() (string, error) {
	text, err := p.constantTerm(0)
	if err == nil && !p.done() {
		err = p.unexpected("the end")
	}
	return text, err
}

// deepestConstant bounds the parentheses in a constant: the parser recurses.
const deepestConstant = 100

func (p *parser) constantTerm(depth int) (string, error) {
	var out strings.Builder
	for {
		concat := p.is("CONCAT", "(")
		if concat {
			p.pos++
		}
		switch {
		case p.done() || depth > deepestConstant:
			return "", syntaxError(fault.Where{}, "no constant text stands here")
		case p.accept("("):
			for {
				text, err := p.constantTerm(depth + 1)
				if err != nil {
					return "", err
				}
				out.WriteString(text)
				if p.accept(")") {
					break
				}
				if !concat || !p.accept(",") {
					return "", p.unexpected(")")
				}
			}
		case p.peek(0)[0] == '\'', p.peek(0)[0] == '"':
			out.WriteString(unquote(p.peek(0)))
			p.pos++
		default:
			return "", p.unexpected("a text")
		}
		if !p.accept("||") {
			return out.String(), nil
		}
	}
}
