package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// readFiles reads read_files('path', option => value, …); legacy is cloud_files
// of older releases: ('path', 'format', map('option', 'value', …)).
func (p *parser) readFiles(ref *SourceRef, legacy bool) error {
	at := p.here()
	if legacy {
		return fault.New("NOT_SUPPORTED", "cloud_files is the older form of read_files").WithHint("Write STREAM read_files('path', format => 'json')").At(at)
	}
	p.pos += 2
	ref.Files = &FilesRef{Options: map[string]string{}}
	var err error
	if ref.Files.Path, err = p.stringValue("the path as a text in quotes"); err != nil {
		return err
	}
	for p.accept(",") {
		place := p.here()
		name, err := p.propertyKey()
		if err != nil {
			return err
		}
		if err := p.expect("=>"); err != nil {
			return err
		}
		value, err := p.scalar("the value of " + name + " (a text, number or boolean)")
		if err != nil {
			return err
		}
		for known := range ref.Files.Options {
			if strings.EqualFold(known, name) {
				return syntaxError(place, "the option %s of read_files is given twice", name)
			}
		}
		ref.Files.Options[name] = value
	}
	return p.expect(")")
}

// eventLog reads event_log('pipeline') and event_log(TABLE(name)).
func (p *parser) eventLog(ref *SourceRef) error {
	p.pos += 2
	ref.EventLog = &EventLogRef{}
	var err error
	if p.accept("TABLE", "(") {
		if ref.EventLog.Table, err = p.tableName(); err == nil {
			err = p.expect(")")
		}
	} else {
		ref.EventLog.Pipeline, err = p.stringValue("the name of a pipeline in quotes, or TABLE(name)")
	}
	if err != nil {
		return err
	}
	return p.expect(")")
}

// tableChanges reads table_changes('table', from[, to]).
func (p *parser) tableChanges(ref *SourceRef) error {
	p.pos += 2
	at := p.here()
	name, err := p.stringValue("the name of a table in quotes")
	if err != nil {
		return err
	}
	if ref.Written, err = dottedName(name, at); err != nil {
		return err
	}
	ref.Table, ref.Changes = p.file.complete(ref.Written), &ChangesRef{}
	for i := 0; p.accept(","); i++ {
		at := p.here()
		byTime := !p.done() && p.toks[p.pos].kind != number
		value, err := p.scalar("a version or a timestamp in quotes")
		switch {
		case err != nil:
			return err
		case i == 0:
			ref.Changes.From, ref.Changes.ByTime = value, byTime
		case i == 1 && byTime != ref.Changes.ByTime:
			return syntaxError(at, "table_changes takes two versions or two timestamps, not one of each")
		case i == 1:
			ref.Changes.To = value
		default:
			return syntaxError(at, "table_changes takes three arguments at most")
		}
	}
	if ref.Changes.From == "" {
		return p.unexpected(", and the version to begin with")
	}
	return p.expect(")")
}

// pluginFunction reads module.function([name =>] [STREAM] relation, …).
func (p *parser) pluginFunction(ref *SourceRef, name string) error {
	p.pos += 4
	ref.Function = &FunctionRef{Name: name}
	if p.accept(")") {
		return nil
	}
	for {
		arg, err := p.functionArgument()
		if err != nil {
			return err
		}
		if arg.Stream {
			if ref.Stream {
				return fault.New("NOT_SUPPORTED", "%s(…) is given two streams", name).WithHint("Only one input of a function may be a stream").
					At(fault.Where{File: p.origin.file, Line: int64(arg.Line), Column: int64(arg.Column)})
			}
			ref.Stream = true
		}
		ref.Function.Args = append(ref.Function.Args, *arg)
		if p.accept(")") {
			return nil
		}
		if !p.accept(",") {
			return p.unexpected(", or )")
		}
	}
}

func (p *parser) functionArgument() (*SourceRef, error) {
	called := ""
	if p.pos+1 < len(p.toks) && p.peek(1) == "=>" {
		var err error
		if called, err = p.identifier("the name of an argument"); err != nil {
			return nil, err
		}
		p.pos++
	}
	at := p.here()
	if !p.done() && (p.toks[p.pos].kind == literal || p.toks[p.pos].kind == number) {
		return nil, syntaxError(at, "a function of a plugin takes relations, not values").
			WithHint("Give it values through the configuration, which its manifest names under conf")
	}
	var ref *SourceRef
	var err error
	table := p.accept("TABLE", "(")
	if p.streamKeyword() {
		p.pos++
		ref, _, err = p.streamed(at, 0)
	} else if p.is("read_files", "(") {
		ref = &SourceRef{Line: int(at.Line), Column: int(at.Column)}
		err = p.readFiles(ref, false)
	} else {
		var name string
		name, err = p.name()
		ref = &SourceRef{Table: p.file.complete(name), Written: name, Line: int(at.Line), Column: int(at.Column)}
	}
	if err != nil {
		return nil, err
	}
	if !p.done() && p.is("(") {
		return nil, p.notSupported(at, "a function as the argument of a function", "Put the inner one into a temporary view")
	}
	ref.Alias = called
	if table {
		err = p.expect(")")
	}
	return ref, err
}

// dottedName reads the name of a table that stands in a text.
func dottedName(text string, at fault.Where) (string, error) {
	toks, err := lex(text)
	if err == nil && len(toks) > 0 {
		p := &parser{src: text, toks: toks, origin: newOrigin(at.File, text, int(at.Line)), file: &fileReader{}}
		if name, err := p.name(); err == nil && p.done() {
			return name, nil
		}
	}
	return "", syntaxError(at, "%q is not the name of a table", text)
}
