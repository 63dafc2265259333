package sql

import (
	"errors"
	"regexp"
	"strings"

	"github.com/weir-data/weir/host/fault"
)

var quotedName = regexp.MustCompile(`"((?:[^"]|"")*)"`)

// bindError gives an error of binding: DuckDB's is turned into a fault.
func (r *rewriter) bindError(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return r.bindFault(err.Error())
}

// codedMessage takes "[CODE] text" apart, which error() of ours gives.
func codedMessage(text string) (code, rest string, ok bool) {
	if !strings.HasPrefix(text, "[") {
		return "", "", false
	}
	code, rest, ok = strings.Cut(text[1:], "] ")
	return code, rest, ok && code != "" && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// bindFault turns DuckDB's message about a rewritten query into a fault at the
// place the name it speaks of has in the user's text.
func (r *rewriter) bindFault(msg string) *fault.Error {
	kind, text := splitMessage(msg)
	if over := boundFault(msg); over != nil {
		return over.At(r.origin.where(0))
	}
	if code, rest, ok := codedMessage(text); ok {
		return fault.New(code, "%s", rest).At(r.origin.where(0))
	}
	code := "INVALID_QUERY"
	where := r.origin.where(0)
	for _, m := range []struct{ phrase, code, kind string }{
		{"Referenced column", "UNRESOLVED_COLUMN", "column"},
		{"does not have a column named", "UNRESOLVED_COLUMN", "column"},
		{"Referenced table", "UNRESOLVED_COLUMN", "column"},
		{"Could not find key", "FIELD_NOT_FOUND", "column"},
		{"Ambiguous reference", "AMBIGUOUS_REFERENCE", "column"},
		{"No function matches", "DATATYPE_MISMATCH", "function"},
		{"Function with name", "UNRESOLVED_ROUTINE", "function"},
		{"Cannot compare values", "DATATYPE_MISMATCH", ""},
		{"Cannot mix values", "DATATYPE_MISMATCH", ""},
		{"Unimplemented type for cast", "DATATYPE_MISMATCH", ""},
	} {
		if !strings.Contains(text, m.phrase) {
			continue
		}
		code = m.code
		for _, name := range quotedNames(text) {
			if at, ok := r.places[m.kind+" "+strings.ToLower(name)]; ok {
				where = r.origin.where(at)
				break
			}
		}
		break
	}
	if kind == "Conversion Error" {
		code = "CAST_INVALID_INPUT"
	}
	text, candidates, found := strings.Cut(text, "; Candidate bindings: ")
	err := fault.New(code, "%s", strings.TrimSuffix(text, "!")).At(where)
	if found {
		err = err.WithHint("There are, among others, %s", candidates)
	}
	return err
}

// boundFault gives the fault of a bound that a query went over, or whose guard
// does not take what stands there.
func boundFault(msg string) *fault.Error {
	if _, over, ok := strings.Cut(msg, "["+limitCode+"] "); ok {
		over, _, _ = strings.Cut(over, "\n")
		return fault.New(limitCode, "%s", over).WithHint("Make smaller values: nothing can stop or count a function while it makes one")
	}
	if !strings.Contains(msg, "No function matches") || !strings.Contains(msg, roomFunction+"(") && !strings.Contains(msg, workFunction+"(") && !strings.Contains(msg, stepsFunction+"(") {
		return nil
	}
	if strings.Contains(msg, "[], DOUBLE)'") {
		return fault.New(limitCode, "a list is put together out of itself over the limit value_growth = %d", maxGrowth).
			WithHint("Let a dataset in between hold what the inner queries give")
	}
	return fault.New("DATATYPE_MISMATCH", "a function is given a count, size or text of a type that it does not take")
}

func (r *rewriter) placeOf(kind, name string) fault.Where {
	if at, ok := r.places[kind+" "+strings.ToLower(name)]; ok {
		return r.origin.where(at)
	}
	return r.origin.where(0)
}

// quotedNames lists the names a message speaks of: "name", and the f of 'f(…)'.
func quotedNames(text string) []string {
	var out []string
	for _, m := range quotedName.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.ReplaceAll(m[1], `""`, `"`))
	}
	if _, call, ok := strings.Cut(text, "'"); ok {
		if f, _, ok := strings.Cut(call, "("); ok {
			out = append(out, f)
		}
	}
	if _, f, ok := strings.Cut(text, "with name "); ok {
		f, _, _ = strings.Cut(f, " ")
		out = append(out, f)
	}
	return out
}

// splitMessage takes DuckDB's message apart: "Binder Error", and the first
// lines up to the excerpt of the rewritten text, which nobody wrote.
func splitMessage(msg string) (kind, text string) {
	msg, _, _ = strings.Cut(msg, "\n\nLINE ")
	msg, _, _ = strings.Cut(msg, "\nLINE ")
	if k, rest, ok := strings.Cut(msg, ": "); ok && strings.HasSuffix(k, "Error") {
		kind, msg = k, rest
	}
	lines := strings.FieldsFunc(msg, func(r rune) bool { return r == '\n' || r == '\t' })
	kept := lines[:0]
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && !strings.Contains(l, reservedPrefix) {
			kept = append(kept, l)
		}
	}
	if len(kept) > 4 {
		kept = append(kept[:4], "…")
	}
	return kind, strings.Join(kept, "; ")
}

var quotedValue = regexp.MustCompile(`'(?:[^']|'')*'`)

// runFault turns DuckDB's message about a running query into a fault. Values
// of rows are taken out: they do not belong into errors and logs.
func runFault(msg string, w fault.Where) *fault.Error {
	kind, text := splitMessage(msg)
	if over := boundFault(msg); over != nil {
		return over.At(w)
	}
	if strings.EqualFold(kind, "INTERRUPT Error") {
		// Nobody interrupted it: a row failed on one of DuckDB's threads, which
		// stops the others, and in a streaming result DuckDB 1.5 may report the
		// stop in place of the reason. The next attempt mostly gives the reason.
		return fault.New("SQL_FAILED", "the query failed, and DuckDB does not say why").
			WithHint("Run it again, which mostly tells").At(w).Retryable()
	}
	if code, rest, ok := codedMessage(text); ok {
		return fault.New(code, "%s", rest).At(w)
	}
	code := map[string]string{
		"Conversion Error":    "CAST_INVALID_INPUT",
		"Out of Range Error":  "ARITHMETIC_OVERFLOW",
		"Out of Memory Error": "OUT_OF_MEMORY",
		"Invalid Input Error": "INVALID_PARAMETER_VALUE",
	}[kind]
	switch code {
	case "":
		return fault.New("SQL_FAILED", "%s", text).At(w)
	case "OUT_OF_MEMORY":
		return fault.New(code, "%s", text).WithHint("Give the engine more memory or a temp_directory with room").At(w)
	case "CAST_INVALID_INPUT":
		text = quotedValue.ReplaceAllString(text, "'…'")
		return fault.New(code, "%s", text).WithHint("Use TRY_CAST, which gives NULL instead").At(w)
	}
	return fault.New(code, "%s", quotedValue.ReplaceAllString(text, "'…'")).At(w)
}
