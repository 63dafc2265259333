package sql

import (
	"errors"
	"maps"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// Settings are what a pipeline file is read with.
type Settings struct {
	Configuration map[string]string // fills ${key} and :key
	Catalog       string            // where USE has not said otherwise
	Schema        string
}

// ParsePipeline reads the statements of a pipeline file: CREATE … of datasets
// and flows. USE CATALOG, USE SCHEMA and SET act on the statements after them.
// docs/pipeline.md has the grammar; what belongs to a warehouse or comes later
// is refused by name, at its place, with what to do instead. The statements
// that could be read come with the error, too, which joins those of all others.
func ParsePipeline(file, text string, in Settings) ([]Statement, error) {
	f := &fileReader{conf: maps.Clone(in.Configuration), defaults: in}
	if f.conf == nil {
		f.conf = map[string]string{}
	}
	whole := newOrigin(file, text, 1)
	toks, err := lex(text)
	if err != nil {
		return nil, placed(err, whole)
	}
	var wrong []error
	for len(toks) > 0 {
		n := 0
		for n < len(toks) && text[toks[n].start:toks[n].end] != ";" {
			n++
		}
		if n > 0 {
			// Statements are cut before values are put in: no value can end one.
			start, end := toks[0].start, toks[n-1].end
			if err := f.statement(text[start:end], whole.within(start)); err != nil {
				wrong = append(wrong, err)
				if word := strings.ToUpper(text[toks[0].start:toks[0].end]); word == "USE" || word == "SET" {
					break // what follows would be read in the wrong light
				}
			}
		}
		toks = toks[min(n+1, len(toks)):]
	}
	if len(wrong) == 1 {
		return f.out, wrong[0]
	}
	return f.out, errors.Join(wrong...)
}

// fileReader holds what one statement of a file leaves for the next.
type fileReader struct {
	conf     map[string]string
	defaults Settings
	catalog  string // of USE CATALOG; "" before it
	schema   string // of USE SCHEMA, likewise
	out      []Statement
}

func (f *fileReader) statement(text string, o *origin) error {
	text, o, err := substitute(text, f.conf, o)
	if err != nil {
		return err
	}
	if text, o, err = parameters(text, f.conf, o); err != nil {
		return err
	}
	toks, err := lex(text)
	if err != nil {
		return placed(err, o)
	}
	if len(toks) == 0 {
		return nil // a ${key} that is empty
	}
	p := &parser{src: text, toks: toks, origin: o, file: f}
	for i, t := range toks {
		if p.text(t) == ";" {
			return syntaxError(o.where(t.start), "a value brings a semicolon into a statement").
				WithHint("A value of the configuration is part of one statement")
		}
		p.pos = i
	}
	p.pos = 0
	switch {
	case p.accept("USE"):
		return p.use()
	case p.accept("SET"):
		return p.set()
	}
	statements, err := p.statement()
	f.out = append(f.out, statements...)
	return err
}

// complete fills in what USE said of a name.
func (f *fileReader) complete(name string) string {
	if f.catalog == "" && f.schema == "" {
		return name
	}
	schema, catalog := f.schema, f.catalog
	if schema == "" {
		schema = f.defaults.Schema
	}
	switch strings.Count(name, ".") {
	case 0:
		name = schema + "." + name
		fallthrough
	case 1:
		if catalog != "" {
			name = catalog + "." + name
		}
	}
	return name
}

// use reads USE CATALOG c, USE SCHEMA s, USE DATABASE s and USE [c.]s.
func (p *parser) use() error {
	switch {
	case p.accept("CATALOG"):
		catalog, err := p.usedName(1)
		if err == nil {
			p.file.catalog = catalog[0]
		}
		return err
	case p.accept("SCHEMA"), p.accept("DATABASE"):
	}
	schema, err := p.usedName(2)
	if err != nil {
		return err
	}
	p.file.schema = schema[len(schema)-1]
	if len(schema) == 2 {
		p.file.catalog = schema[0]
	}
	return nil
}

func (p *parser) usedName(parts int) ([]string, error) {
	at := p.here()
	var name []string
	if s := p.peek(0); s != "" && s[0] == '\'' {
		text, err := p.stringValue("a name")
		if err != nil {
			return nil, err
		}
		name = strings.Split(text, ".")
	} else {
		text, err := p.name()
		if err != nil {
			return nil, err
		}
		name = strings.Split(text, ".")
	}
	if len(name) > parts || name[0] == "" {
		return nil, syntaxError(at, "USE takes a name of %d part", parts)
	}
	if !p.done() {
		return nil, p.unexpected("the end of the statement")
	}
	return name, nil
}

// ownSettings are the beginnings of keys that mean something to the engine: in
// one file they would be without effect, which must not happen in silence.
var ownSettings = []string{"spark.", "pipelines.", "weir.", "databricks."}

// set reads SET key = value: the value, as it is written, fills ${key} and :key
// from here on.
func (p *parser) set() error {
	at := p.here()
	key, err := p.propertyKey()
	if err != nil {
		return err
	}
	if !p.accept("=") {
		return p.unexpected("= and the value of " + key)
	}
	if p.done() {
		return p.unexpected("the value of " + key)
	}
	for _, prefix := range ownSettings {
		if strings.HasPrefix(strings.ToLower(key), prefix) {
			return fault.New("NOT_SUPPORTED", "SET %s would act on this file only", key).
				WithHint("Set it under configuration in the spec").At(at)
		}
	}
	p.file.conf[key] = p.src[p.toks[p.pos].start:p.toks[len(p.toks)-1].end]
	return nil
}
