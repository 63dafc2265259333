package sql

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

var (
	pageValue   = regexp.MustCompile("^\\| `(.+?)` \\| `([^`]*)` \\|")
	pageRefused = regexp.MustCompile("^\\| `(.+?)` \\| \\[`([A-Z_]+)`\\] \\|")
	pageName    = regexp.MustCompile("`([a-z_0-9]+)`")
)

// The page of the dialect is true: each example gives its value or is refused with
// its code, and every function it names is one that a query can call.
// covers A129
func TestThePageOfTheDialectIsTrue(t *testing.T) {
	e := openEngine(t)
	text, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]arrow.RecordBatch{"t": table(t, "i INT, s STRING", `[{"i":1,"s":"x"}]`)}
	examples, names := 0, 0
	for line := range strings.Lines(string(text)) {
		if m := pageRefused.FindStringSubmatch(line); m != nil {
			examples++
			if _, err := run(t, e, Query{Text: pageQuery(m[1])}, in); fault.CodeOf(err) != m[2] {
				t.Errorf("%s: %v, not %s", m[1], err, m[2])
			}
			continue
		}
		if m := pageValue.FindStringSubmatch(line); m != nil {
			examples++
			rows, err := run(t, e, Query{Text: pageQuery(m[1])}, in)
			if got := strings.Join(rows, ", "); err != nil || got != m[2] {
				t.Errorf("%s: %s (%v), not %s", m[1], got, err, m[2])
			}
			continue
		}
		if list, ok := strings.CutPrefix(line, "* **"); ok {
			_, list, _ = strings.Cut(list, "** ")
			for _, m := range pageName.FindAllStringSubmatch(list, -1) {
				names++
				if !callable(m[1]) {
					t.Errorf("the page names %s, which no query can call", m[1])
				}
			}
		}
	}
	if examples < 30 || names < 150 {
		t.Errorf("the page has %d examples and %d functions: is it read?", examples, names)
	}
	// And what the engine knows of Spark stands there.
	for key := range sparkFunctions {
		if name, _, _ := strings.Cut(key, "/"); !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

func pageQuery(text string) string {
	text = strings.ReplaceAll(text, `\|`, "|")
	if factQuery.MatchString(text) {
		return text
	}
	return "SELECT " + text + " AS v"
}

func callable(name string) bool {
	if _, ok := specials[name]; ok || castFunctions[name].id != "" || generators[name] || sparkAggregates[name] || higherOrder[name] || clockFunctions[name] != "" || operators[name] != "" {
		return true
	}
	kind, ok := functions()[name]
	if ok && kind != refusedFunction {
		return true
	}
	return slices.ContainsFunc(sparkKeys(), func(key string) bool { return strings.HasPrefix(key, name+"/") }) ||
		slices.Contains([]string{"if", "struct", "cast", "try_cast", "coalesce", "nullif", "exists", "any", "array", "grouping", "grouping_id", "input_file_name"}, name)
}

func sparkKeys() []string {
	var out []string
	for key := range sparkFunctions {
		out = append(out, key)
	}
	return out
}
