package sql

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// Volatile says what makes a query, or one of its expectations, give other rows
// when it runs again over the same inputs: "" when nothing does. It may call a
// query volatile that has such a word in a text only, which costs a refresh.
func (e *Engine) Volatile(ctx context.Context, q Query, inputs map[string]*arrow.Schema) (string, error) {
	p, err := e.plan(ctx, q, inputs)
	if err != nil {
		return "", err
	}
	if strings.Contains(p.text, clockText) {
		return "the query reads the clock", nil
	}
	if m := randomCall().FindStringSubmatch(p.text); m != nil {
		return m[1] + "() gives another value each time", nil
	}
	return "", nil
}

// randomCall finds a call of a random function in the text that DuckDB prints,
// which is that of its own functions whatever name Spark has for them.
var randomCall = sync.OnceValue(func() *regexp.Regexp {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(functions())) {
		if functions()[name] == randomFunction {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	return regexp.MustCompile(`(?i)"?\b(` + strings.Join(names, "|") + `)"?\(`)
})
