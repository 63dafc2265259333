package sql

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed functions.txt
var functionList string

// functionKind says what a query may do with a function.
type functionKind string

const (
	scalarFunction    functionKind = "scalar"
	clockFunction     functionKind = "clock"
	randomFunction    functionKind = "random"
	aggregateFunction functionKind = "aggregate"
	windowFunction    functionKind = "window"
	refusedFunction   functionKind = "refused"
)

// functions reads functions.txt.
var functions = sync.OnceValue(func() map[string]functionKind { return readFunctions(functionList) })

// readFunctions reads names under [kind]s.
func readFunctions(list string) map[string]functionKind {
	out := map[string]functionKind{}
	kind := refusedFunction
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			kind = functionKind(line[1 : len(line)-1])
		default:
			for _, name := range strings.Fields(line) {
				out[strings.ToLower(name)] = kind
			}
		}
	}
	return out
}

// tableFunctions are those that make rows out of their arguments alone.
var tableFunctions = map[string]bool{
	"unnest": true, "range": true, "generate_series": true, "json_each": true, "json_tree": true,
}
