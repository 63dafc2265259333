package delta

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// readElsewhere reads a table with the Python package deltalake, whole and
// through filters that its reader answers with our statistics.
const readElsewhere = `
import sys, deltalake
t = deltalake.DeltaTable(sys.argv[1])
for f in [None, [("n", ">", 7)], [("s", "=", "row 3")], [("s", ">", "row 8")], [("ts", ">=", __import__("datetime").datetime(2024, 1, 9, tzinfo=__import__("datetime").timezone.utc))], [("p", "=", "a/b 1")]]:
    rows = t.to_pyarrow_table(filters=f).to_pylist()
    print(t.version(), len(rows), sum(r["n"] or 0 for r in rows))
for r in sorted(t.to_pyarrow_table().to_pylist(), key=lambda r: (r["n"] is None, r["n"])):
    print(r["n"], r["s"], r["p"], r["d"], r["ts"].isoformat() if r["ts"] else None, r["dec"], r["st"], r["more"])
`

func pythonWithDeltalake(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import deltalake").Run()
	}
	if err != nil {
		t.Skip("skipped, which is no pass: no Python package deltalake")
	}
	return python
}

// elsewhere is the command that runs a script. It leaves without tearing the
// interpreter down: threads of pyarrow now and then abort the process at its end.
func elsewhere(python, script string, args ...string) *exec.Cmd {
	const leave = "\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n"
	return exec.Command(python, append([]string{"-c", script + leave}, args...)...)
}

// covers "make interop": another engine reads the same rows.
func TestAnotherEngineReadsTheSameRows(t *testing.T) {
	python := pythonWithDeltalake(t)
	f := newFixture(t)
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	schema := arrow.NewSchema([]arrow.Field{
		col("n", arrow.PrimitiveTypes.Int64), col("s", arrow.BinaryTypes.String), col("p", arrow.BinaryTypes.String), col("d", arrow.FixedWidthTypes.Date32),
		col("ts", utc), col("dec", &arrow.Decimal128Type{Precision: 12, Scale: 3}), col("st", arrow.StructOf(col("x", arrow.PrimitiveTypes.Int32))),
	}, nil)
	f.commit(Commit{Schema: schema, PartitionBy: []string{"p"}})
	wider := arrow.NewSchema(append(schema.Fields(), col("more", arrow.ListOf(arrow.BinaryTypes.String))), nil)
	want := []string{}
	sum, filtered := 0, [3]int{}
	for i := range 12 { // past a checkpoint, with a column added on the way
		s, row, more := schema, "", "None"
		if i > 5 {
			s, row, more = wider, `,"more":["m",null]`, "['m', None]"
		}
		rows := fmt.Sprintf(`[{"n":%d,"s":"row %d","p":"a/b %d","d":"2024-01-%02d","ts":"2024-01-%02dT00:00:00.0005Z","dec":"-%d.125","st":{"x":%d}%s}]`, i, i, i%2, i+1, i+1, i, i, row)
		f.commit(Commit{Read: f.snapshot(), Schema: s, Add: f.write(WriteOptions{Snapshot: f.snapshot(), Schema: s, Name: fmt.Sprint("n", i)}, rows)})
		want = append(want, fmt.Sprintf("%d row %d a/b %d 2024-01-%02d 2024-01-%02dT00:00:00.000500+00:00 -%d.125 {'x': %d} %s", i, i, i%2, i+1, i+1, i, i, more))
		sum += i
		if i%2 == 1 {
			filtered[2] += i
		}
	}
	want = append([]string{fmt.Sprint("12 12 ", sum), "12 4 38", "12 1 3", "12 1 9", "12 4 38", fmt.Sprint("12 6 ", filtered[2])}, want...)
	for version := range int64(10) { // only the checkpoint is left of them
		if err := os.Remove(filepath.Join(f.dir, commitName(version))); err != nil {
			t.Fatal(err)
		}
	}
	out, err := elsewhere(python, readElsewhere, f.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", firstDifference(got, want))
	}
}

const readChangesElsewhere = `
import sys, deltalake, pyarrow
t = deltalake.DeltaTable(sys.argv[1])
rows = pyarrow.table(deltalake.QueryBuilder().register("t", t).execute("select key, part, n from t").read_all()).to_pylist()
print(" ".join(sorted(str(r["key"]) + r["part"] + str(r["n"]) for r in rows)))
for r in sorted(pyarrow.table(t.load_cdf(starting_version=1).read_all()).to_pylist(), key=lambda r: (r["_commit_version"], r["key"], r["_change_type"])):
    print(r["_commit_version"], r["_change_type"], r["key"], r["part"], r["n"])
`

// Files of post-images and inserts are data files and change files at once,
// files of copies are not. Another engine reads rows and changes alike; Spark 4
// with Delta 4.0.1 did, row ids included, when this was written.
func TestAnotherEngineReadsTheSameChanges(t *testing.T) {
	python := pythonWithDeltalake(t)
	for i := range 8 {
		properties, parts := map[string]string{"delta.enableChangeDataFeed": "true"}, []string(nil)
		if i&1 > 0 {
			properties["delta.enableDeletionVectors"] = "true"
		}
		if i&2 > 0 {
			properties["delta.enableRowTracking"] = "true"
		}
		if i&4 > 0 {
			parts = []string{"part"}
		}
		f := newFixture(t).withEngine()
		f.commit(Commit{Schema: dmlSchema, PartitionBy: parts, Properties: properties})
		s := f.snapshot()
		f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"key":1,"part":"a","n":1},{"key":2,"part":"a","n":2},{"key":3,"part":"b","n":3},{"key":4,"part":"b","n":4},{"key":5,"part":"b","n":5}]`)})
		mustDML(t)(f.table.Update(background, UpdateOptions{Where: "key = 1 OR key = 4", Set: map[string]string{"n": "n * 100"}}))
		mustDML(t)(f.table.Delete(background, DeleteOptions{Where: "key = 3"}))
		mustDML(t)(f.table.Update(background, UpdateOptions{Where: "key = 1", Set: map[string]string{"part": "'b'"}}))
		out, err := elsewhere(python, readChangesElsewhere, f.dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		want := strings.Join([]string{
			"1b100 2a2 4b400 5b5",
			"1 insert 1 a 1", "1 insert 2 a 2", "1 insert 3 b 3", "1 insert 4 b 4", "1 insert 5 b 5",
			"2 update_postimage 1 a 100", "2 update_preimage 1 a 1", "2 update_postimage 4 b 400", "2 update_preimage 4 b 4",
			"3 delete 3 b 3",
			"4 update_postimage 1 b 100", "4 update_preimage 1 a 100",
		}, "\n")
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("%v by %v:\n%s\nwant\n%s", properties, parts, got, want)
		}
	}
}

func mustDML(t *testing.T) func(DMLResult, error) {
	return func(_ DMLResult, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}
