package delta

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// queryElsewhere reads a table through the SQL of the Python package deltalake,
// whose other readers know no column mapping.
const queryElsewhere = `
import sys, json, deltalake, pyarrow
t = deltalake.DeltaTable(sys.argv[1])
for where in ["true", "part = 'one'", "s['ab'] > 5 and part = 'one'"]:
    q = deltalake.QueryBuilder().register("t", t).execute("select * from t where " + where + " order by id")
    for r in pyarrow.table(q.read_all()).to_pylist():
        print(json.dumps(r))
`

// TestAnotherEngineReadsMappedTables follows renames, drops and additions, by
// name and by id, with deltalake.
func TestAnotherEngineReadsMappedTables(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import deltalake, pyarrow").Run()
	}
	if err != nil {
		t.Skip("skipped, which is no pass: no Python packages deltalake and pyarrow")
	}
	for _, mode := range []string{"name", "id"} {
		t.Run(mode, func(t *testing.T) {
			f := mappedTable(t, mode)
			f.commit(Commit{Read: f.snapshot(), Change: SchemaChange{
				Rename: []Rename{{[]string{"p"}, "part"}, {[]string{"st"}, "s"}, {[]string{"st", "a b"}, "ab"}, {[]string{"list", "element", "y"}, "yy"}, {[]string{"map", "value", "z"}, "zz"}},
				Drop:   [][]string{{"st", "in"}},
			}})
			s := f.snapshot()
			wide := arrow.NewSchema(append(s.Schema().Fields(), arrow.Field{Name: "in", Type: arrow.BinaryTypes.String, Nullable: true}), nil)
			f.commit(Commit{Read: s, Schema: wide, Add: f.write(WriteOptions{Snapshot: s, Schema: wide, Name: "m"}, `[{"part":"two","id":9,"in":"new","s":{"ab":5},"list":[{"yy":4}],"map":[{"key":"q","value":{"zz":1}}]}]`)})
			out, err := elsewhere(python, queryElsewhere, f.dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			first := `{"part": "one", "id": 1, "s": {"ab": 10}, "list": [{"yy": 1}, null, {"yy": 3}], "map": [["k", {"zz": 7}]], "in": null}`
			third := `{"part": "one", "id": 3, "s": null, "list": null, "map": [], "in": null}`
			want := []string{first, `{"part": null, "id": 2, "s": {"ab": null}, "list": [], "map": null, "in": null}`, third,
				`{"part": "two", "id": 9, "s": {"ab": 5}, "list": [{"yy": 4}], "map": [["q", {"zz": 1}]], "in": "new"}`,
				first, third, first}
			if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
				t.Errorf("%s", firstDifference(strings.Split(got, "\n"), want))
			}
		})
	}
}
