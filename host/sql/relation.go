package sql

import (
	"strings"

	"github.com/weir-data/weir/host/fault"
)

// relation reads what stands in a FROM when it is no table read as it is: then
// it gives the source and the text that takes its place. A nil source with a
// text is only written otherwise; neither is left to DuckDB.
func (p *parser) relation(n int) (*SourceRef, string, error) {
	at := p.here()
	if p.streamKeyword() {
		p.pos++
		return p.streamed(at, n)
	}
	if p.is("LIVE", ".") && p.pos+2 < len(p.toks) && p.toks[p.pos+2].kind != symbol && p.peek(3) != "." {
		p.pos += 2
		p.deprecated(at, "the prefix LIVE.", "Leave it out: names without a schema mean the pipeline's")
		text := p.peek(0)
		p.pos++
		return nil, text, nil
	}
	ref, err := p.function(at, n, false)
	if ref == nil || err != nil {
		return nil, "", err
	}
	return ref, ref.Alias, nil
}

// streamKeyword reports whether the next word is STREAM before a relation.
func (p *parser) streamKeyword() bool {
	if !p.is("STREAM") || p.toks[p.pos].kind != word || p.pos+1 >= len(p.toks) {
		return false
	}
	next := p.toks[p.pos+1]
	return p.peek(1) == "(" || next.kind == quoted || next.kind == word && !endsRelation(p.peek(1))
}

// streamed reads what follows STREAM and gives the text that stands for it.
func (p *parser) streamed(at fault.Where, n int) (*SourceRef, string, error) {
	ref, err := p.function(at, n, true)
	if err != nil {
		return nil, "", err
	}
	if ref != nil {
		ref.Stream = true
		return ref, ref.Alias, nil
	}
	open := p.accept("(")
	if open {
		switch {
		case p.is("SELECT"), p.is("WITH"), p.is("("):
			return nil, "", syntaxError(at, "STREAM takes the name of a table, not a query").WithHint("Put the query into a temporary view and read that")
		case p.functionName() != "":
			name := p.functionName()
			return nil, "", syntaxError(at, "%s stands in parentheses after STREAM", name).WithHint("Write STREAM %s(…), without them", name)
		}
	}
	start := p.pos
	name, err := p.name()
	if err != nil {
		return nil, "", err
	}
	text := p.src[p.toks[start].start:p.toks[p.pos-1].end]
	if strings.EqualFold(p.peek(start-p.pos), "live") && p.pos-start == 3 {
		text = p.text(p.toks[p.pos-1])
	}
	if open {
		if err := p.expect(")"); err != nil {
			return nil, "", err
		}
	}
	ref = &SourceRef{Alias: name, Stream: true, Table: p.file.complete(name), Written: name, Line: int(at.Line), Column: int(at.Column)}
	if p.is("WITH", "(") {
		if ref.Options, err = p.streamOptions(); err != nil {
			return nil, "", err
		}
	}
	return ref, text, nil
}

// streamOptions reads WITH (option [= value], …); an option alone is true.
func (p *parser) streamOptions() (map[string]string, error) {
	p.pos += 2
	out := map[string]string{}
	for {
		at := p.here()
		key, err := p.propertyKey()
		if err != nil {
			return nil, err
		}
		value := "true"
		if p.accept("=") || p.accept("==") || p.accept("=>") {
			if value, err = p.scalar("the value of " + key); err != nil {
				return nil, err
			}
		}
		for known := range out {
			if strings.EqualFold(known, key) {
				return nil, syntaxError(at, "the option %s is given twice", key)
			}
		}
		out[key] = value
		if p.accept(")") {
			return out, nil
		}
		if !p.accept(",") {
			return nil, p.unexpected(", or )")
		}
	}
}

// functionName gives the dotted name before a parenthesis, or "".
func (p *parser) functionName() string {
	name := ""
	for i := 0; p.pos+i < len(p.toks); i += 2 {
		t := p.toks[p.pos+i]
		if t.kind != word && t.kind != quoted {
			return ""
		}
		name += unquote(p.text(t))
		switch p.peek(i + 1) {
		case ".":
			name += "."
		case "(":
			return name
		default:
			return ""
		}
	}
	return ""
}

// absentSources are the table functions of Lakeflow that Weir does not have, with what to do instead.
var absentSources = map[string]string{
	"read_kafka":        "Land the messages as files and read them with STREAM read_files(…)",
	"read_kinesis":      "Land the messages as files and read them with STREAM read_files(…)",
	"read_pubsub":       "Land the messages as files and read them with STREAM read_files(…)",
	"read_pulsar":       "Land the messages as files and read them with STREAM read_files(…)",
	"read_state":        "State lies in the checkpoint; docs/formats.md has its form",
	"read_statestore":   "State lies in the checkpoint; docs/formats.md has its form",
	"cloud_files_state": "weir files FLOW lists the files a flow knows",
	"remote_query":      "Land the rows as files and read them with read_files(…)",
	"list_secrets":      "Secrets are never printed",
}

// function reads a table function that is a source of a pipeline. Others, such
// as range(…), are left to the rewriter.
func (p *parser) function(at fault.Where, n int, stream bool) (*SourceRef, error) {
	name := p.functionName()
	if name == "" || name == "lateral" {
		return nil, nil
	}
	lower := strings.ToLower(name)
	ref := &SourceRef{Line: int(at.Line), Column: int(at.Column)}
	switch {
	case lower == "read_files" || lower == "cloud_files":
		ref.Alias = numbered(filesPrefix, n)
		return ref, p.readFiles(ref, lower == "cloud_files")
	case absentSources[lower] != "":
		return nil, p.notSupported(at, lower+"(…)", absentSources[lower])
	case lower == "event_log":
		if stream {
			return nil, syntaxError(at, "event_log is not read with STREAM").WithHint("Leave STREAM out")
		}
		ref.Alias = numbered(logPrefix, n)
		return ref, p.eventLog(ref)
	case lower == "table_changes":
		if stream {
			return nil, syntaxError(at, "table_changes is not read with STREAM").WithHint("Write STREAM t WITH (readChangeFeed = true)")
		}
		ref.Alias = numbered(changesPrefix, n)
		return ref, p.tableChanges(ref)
	case strings.Count(name, ".") == 1:
		ref.Alias = numbered(functionPrefix, n)
		return ref, p.pluginFunction(ref, name)
	case strings.Contains(name, "."), stream:
		return nil, fault.New("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "%s(…) is no source that is known", name).
			WithHint("Read files with read_files(…), a table by its name, a function of a plugin with module.function(…)").At(at)
	case p.takesStream():
		return nil, fault.New("UNRESOLVABLE_TABLE_VALUED_FUNCTION", "%s(…) is no source that is known", name).
			WithHint("A function of a plugin is called module.function(STREAM …)").At(at)
	}
	return nil, nil
}

// takesStream reports whether the function at hand has STREAM as its first argument.
func (p *parser) takesStream() bool {
	i := 0
	for p.peek(i) != "(" {
		i++
	}
	return strings.EqualFold(p.peek(i+1), "STREAM") && p.peek(i+2) != ")" && p.peek(i+2) != ","
}
