package delta

import (
	"reflect"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

func TestColumnsAreNamedByPaths(t *testing.T) {
	for text, want := range map[string][][]string{
		"":                       nil,
		" , ":                    nil,
		"a":                      {{"a"}},
		" a . b , c ":            {{"a", "b"}, {"c"}},
		"`a.b`.c,`d,e`":          {{"a.b", "c"}, {"d,e"}},
		"st.`a b`, ` x `":        {{"st", "a b"}, {" x "}},
		"`back``tick`":           {{"back`tick"}},
		"a.element.b, m.value.c": {{"a", "element", "b"}, {"m", "value", "c"}},
		"`open":                  {{"open"}},
	} {
		if got := parsePaths(text); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if _, err := ParseColumn("a,b"); fault.CodeOf(err) != "DELTA_COLUMN_NOT_FOUND" {
		t.Errorf("two columns: %v", err)
	}
	if _, err := ParseColumn(""); fault.CodeOf(err) != "DELTA_COLUMN_NOT_FOUND" {
		t.Errorf("none: %v", err)
	}
}

func FuzzPathsAreReadAsTheyAreWritten(f *testing.F) {
	f.Add("a", "b.c")
	f.Add("a`", " ")
	f.Add("ö,", "``")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" {
			return
		}
		path := []string{a, b}
		got, err := ParseColumn(formatPath(path))
		if err != nil || !reflect.DeepEqual(got, path) {
			t.Errorf("%q is written %s and read %q, %v", path, formatPath(path), got, err)
		}
		parsePaths(a + b) // whatever it says
	})
}
