package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-data/weir/abi"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/sql"
)

// addCalledFunctions makes a temporary view of each function of a module that
// SQL calls as a table, and lets the query read that view. It gives the
// statements whose calls are right.
func addCalledFunctions(g *graph, s *Spec, statements []sql.Statement, modules []*module, wrong *flaws) []sql.Statement {
	var good []sql.Statement
	for i := range statements {
		st := &statements[i]
		failed := false
		for k := range st.Sources {
			src := &st.Sources[k]
			if src.Function == nil {
				continue
			}
			view, err := calledFunction(g, s, st, src, modules)
			if wrong.add(err) {
				failed = true
				continue
			}
			src.Table, src.Written, src.Function = view, view, nil
		}
		if !failed {
			good = append(good, *st)
		}
	}
	return good
}

// calledFunction adds the view of one call and gives its name, which no user
// can write.
func calledFunction(g *graph, s *Spec, st *sql.Statement, src *sql.SourceRef, modules []*module) (string, error) {
	place := fault.Where{File: st.File, Line: int64(src.Line), Column: int64(src.Column)}
	moduleName, function, _ := strings.Cut(src.Function.Name, ".")
	var m *module
	var names []string
	for _, other := range modules {
		names = append(names, other.name)
		if strings.EqualFold(other.name, moduleName) {
			m = other
		}
	}
	if m == nil {
		err := fault.New("PLUGIN_NOT_FOUND", "there is no plugin %s whose function %s could be called", moduleName, function).At(place)
		return "", suggest(err, moduleName, names, "Name its module under plugins in the spec")
	}
	at := fault.Where{Dataset: st.Name, File: place.File, Line: place.Line, Column: place.Column}
	b, err := functionBody(s, m, functionName(m, function), at)
	if err != nil {
		return "", err
	}
	if err := giveArguments(b, st, src.Function); err != nil {
		return "", fault.Place(err, "INVALID_ARGUMENT", at)
	}
	key := strings.ToLower(fmt.Sprintf("%s@%s:%d:%d", src.Function.Name, filepath.Base(st.File), src.Line, src.Column))
	for n := 2; g.views[key] != nil; n++ {
		key = fmt.Sprintf("%s#%d", strings.TrimSuffix(key, fmt.Sprintf("#%d", n-1)), n)
	}
	d := &dataset{kind: temporaryView, id: key, place: place}
	d.flows = []*flow{{kind: viewFlow, name: key, target: d, body: *b, place: place}}
	g.views[key] = d
	return key, nil
}

// functionName gives the spelling of the manifest.
func functionName(m *module, written string) string {
	for _, f := range m.manifest.Functions {
		if strings.EqualFold(f.Name, written) {
			return f.Name
		}
	}
	return written
}

// giveArguments puts what the call names in the place of the datasets that the
// manifest declares: by place, or by the declared name or its last part. What
// the call does not give stays as declared.
func giveArguments(b *body, st *sql.Statement, call *sql.FunctionRef) error {
	given := make([]bool, len(b.inputs))
	for i := range call.Args {
		arg := &call.Args[i]
		place := fault.Where{File: st.File, Line: int64(arg.Line), Column: int64(arg.Column)}
		at := i
		if arg.Alias != "" {
			at = inputCalled(b, arg.Alias)
		}
		if at < 0 || at >= len(b.inputs) {
			return fault.New("WRONG_NUM_ARGS", "%s has %d inputs, and none for argument %d", call.Name, len(b.inputs), i+1).
				WithHint("Its inputs are %s", strings.Join(declaredInputs(b), ", ")).At(place)
		}
		declared := b.inputs[at]
		if given[at] {
			return fault.New("WRONG_NUM_ARGS", "input %s of %s is given twice", declared.alias, call.Name).At(place)
		}
		given[at] = true
		if arg.Stream && !declared.stream {
			return fault.New("INVALID_ARGUMENT", "input %s of %s is read whole, not as a stream", declared.alias, call.Name).
				WithHint("Leave STREAM out").At(place)
		}
		if !arg.Stream && declared.stream && b.function.Kind == abi.KindStateful {
			return fault.New("INVALID_ARGUMENT", "input %s of %s is a stream: the function has state", declared.alias, call.Name).
				WithHint("Write STREAM before it").At(place)
		}
		in := inputOf(st.File, arg)
		in.alias, in.columns = declared.alias, declared.columns
		b.inputs[at] = in
	}
	if len(call.Args) > 0 || len(b.inputs) == 0 || !b.inputs[0].stream {
		return nil
	}
	return fault.New("WRONG_NUM_ARGS", "%s is given no input", call.Name).WithHint("Write %s(STREAM table)", call.Name)
}

func inputCalled(b *body, name string) int {
	for i, in := range b.inputs {
		short := in.alias[strings.LastIndex(in.alias, ".")+1:]
		if strings.EqualFold(in.alias, name) || strings.EqualFold(short, name) {
			return i
		}
	}
	return -1
}

func declaredInputs(b *body) []string {
	var names []string
	for _, in := range b.inputs {
		names = append(names, in.alias)
	}
	return names
}
