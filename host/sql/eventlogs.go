package sql

import (
	"strings"
)

// EventLogs gives a SELECT that is no statement of a pipeline with a name in
// the place of each event_log(…), and what the names stand for. Everything else
// stays where it was, so errors are placed as before.
func EventLogs(text string) (string, map[string]*EventLogRef, error) {
	if !strings.Contains(strings.ToLower(text), "event_log") {
		return text, nil, nil
	}
	toks, err := lex(text)
	if err != nil {
		return text, nil, nil // the parser of the SELECT says it better
	}
	logs := map[string]*EventLogRef{}
	p := &parser{src: text, toks: toks, origin: newOrigin("", text, 1), file: &fileReader{}}
	out := []byte(text)
	for i := 1; i+1 < len(toks); i++ {
		if !strings.EqualFold(p.text(toks[i]), "event_log") || p.text(toks[i+1]) != "(" || !beginsRelation(p.text(toks[i-1])) {
			continue
		}
		ref := &SourceRef{}
		p.pos = i
		if err := p.eventLog(ref); err != nil {
			return "", nil, err
		}
		name := numbered(logPrefix, len(logs)+1)
		logs[name] = ref.EventLog
		// What stands there keeps its length and its line breaks.
		start, end := toks[i].start, toks[p.pos-1].end
		breaks := strings.Repeat("\n", strings.Count(text[start:end], "\n"))
		spaces := end - start - len(breaks) - len(name)
		if spaces < 0 {
			return "", nil, syntaxError(p.origin.where(start), "event_log(…) in a query is written in one line")
		}
		copy(out[start:end], breaks+name+strings.Repeat(" ", spaces))
		i = p.pos - 1
	}
	return string(out), logs, nil
}

// beginsRelation tells whether a relation may follow a word.
func beginsRelation(before string) bool {
	switch strings.ToUpper(before) {
	case "FROM", "JOIN", ",", "(":
		return true
	}
	return false
}
