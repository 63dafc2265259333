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

// covers "make interop": another engine reads the same rows.
func TestAnotherEngineReadsTheSameRows(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import deltalake").Run()
	}
	if err != nil {
		t.Skip("skipped, which is no pass: no Python package deltalake")
	}
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
	out, err := exec.Command(python, "-c", readElsewhere, f.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", firstDifference(got, want))
	}
}
