package delta

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// withEngine gives the table the engine of the tests.
func (f *fixture) withEngine() *fixture {
	f.table = Open(f.store, WithAllocator(f.mem), WithEngine(miniEngine{f.mem}))
	f.t.Cleanup(func() {
		if openPrograms != 0 {
			f.t.Errorf("%d programs left open", openPrograms)
		}
		openPrograms = 0
	})
	return f
}

// tryWrite writes rows in one batch of their own columns.
func (f *fixture) tryWrite(opt WriteOptions, schema *arrow.Schema, rows string) ([]AddFile, error) {
	f.t.Helper()
	w, err := f.table.Write(background, opt)
	if err != nil {
		return nil, err
	}
	rec := f.batch(schema, rows)
	defer rec.Release()
	if err := w.Write(background, rec); err != nil {
		if err := w.Abort(background); err != nil {
			f.t.Error(err)
		}
		return nil, err
	}
	return w.Close(background)
}

func columnWith(name string, t arrow.DataType, meta ...string) arrow.Field {
	f := arrow.Field{Name: name, Type: t, Nullable: true}
	if len(meta) > 0 {
		f.Metadata = arrow.NewMetadata(meta[:1], meta[1:])
	}
	return f
}

var long = arrow.PrimitiveTypes.Int64

// Rows that are written meet CHECK constraints and invariants: FALSE and NULL violate both.
func TestConstraintsHoldForWhatIsWritten(t *testing.T) {
	f := newFixture(t).withEngine()
	schema := arrow.NewSchema([]arrow.Field{
		columnWith("id", long), columnWith("n", long, invariantKey, `{"expression": { "expression": "n > 3"} }`),
	}, nil)
	properties := map[string]string{"delta.constraints.id_Positive": "id > 0"}
	f.commit(Commit{Schema: schema, Properties: properties})
	s := f.snapshot()
	if p := s.Protocol(); p.MinWriterVersion != 3 || !p.has("checkConstraints") || !p.has("invariants") {
		t.Errorf("protocol %+v", p)
	}
	for rows, violated := range map[string]string{
		`[{"id":1,"n":4},{"id":2,"n":5}]`: "",
		`[{"id":1,"n":4},{"id":0,"n":5}]`: "CHECK constraint id_Positive (id > 0) is not true in 1 of 2 rows, first in row 1",
		`[{"id":null,"n":4}]`:             "CHECK constraint id_Positive",
		`[{"n":4}]`:                       "CHECK constraint id_Positive",
		`[{"id":1,"n":3}]`:                "invariant of column n",
		`[{"id":1}]`:                      "invariant of column n (n > 3) is not true in 1 of 1 rows, first in row 0",
		`[]`:                              "",
	} {
		_, err := f.tryWrite(WriteOptions{Snapshot: s, Name: "n"}, schema, rows)
		if violated == "" && err != nil || violated != "" && (!fault.Is(err, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES") || !strings.Contains(err.Error(), violated)) {
			t.Errorf("%s: %v", rows, err)
		}
	}
	// The first files of a table are written before it has the constraint.
	if _, err := f.tryWrite(WriteOptions{Schema: schema, Name: "n", Properties: properties}, schema, `[{"id":-1,"n":5}]`); !fault.Is(err, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES") {
		t.Error(err)
	}
	// Without an engine nothing is written, and nothing is left behind.
	f.table = f.reopen()
	before := len(f.dataFiles())
	if _, err := f.tryWrite(WriteOptions{Snapshot: f.snapshot(), Name: "unchecked"}, schema, `[{"id":1,"n":4}]`); !fault.Is(err, "DELTA_ENGINE_REQUIRED") {
		t.Error(err)
	}
	if n := len(f.dataFiles()); n != before {
		t.Errorf("%d files, before %d", n, before)
	}
}

// A constraint that is added holds for the rows that the table has.
func TestANewConstraintIsCheckedOnTheRowsThereAre(t *testing.T) {
	f := newFixture(t).withEngine()
	schema := arrow.NewSchema([]arrow.Field{columnWith("id", long)}, nil)
	f.commit(Commit{Schema: schema})
	s := f.snapshot()
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "a"}, `[{"id":1},{"id":7}]`)})
	s = f.snapshot()
	add := func(expr string) error {
		_, err := f.table.Commit(background, Commit{Read: s, Operation: "ADD CONSTRAINT", Properties: map[string]string{"delta.constraints.c": expr}})
		return err
	}
	if err := add("id > 1"); !fault.Is(err, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES") {
		t.Error(err)
	}
	if err := add("id + 1"); !fault.Is(err, "DATATYPE_MISMATCH") {
		t.Error(err)
	}
	if err := add("none > 1"); !fault.Is(err, "UNRESOLVED_COLUMN") {
		t.Error(err)
	}
	if v := f.snapshot().Version(); v != 1 {
		t.Errorf("version %d", v)
	}
	// An append in between has not been checked.
	f.commit(Commit{Read: s, Add: f.write(WriteOptions{Snapshot: s, Name: "b"}, `[{"id":-1}]`)})
	if err := add("id > 0"); !fault.Is(err, "DELTA_CONCURRENT_APPEND") {
		t.Error(err)
	}
	s = f.snapshot()
	if err := add("id > -5"); err != nil {
		t.Error(err)
	}
	if p := f.snapshot().Protocol(); !p.has("checkConstraints") {
		t.Errorf("protocol %+v", p)
	}
	f.table = f.reopen()
	if err := add("id > -9"); !fault.Is(err, "DELTA_ENGINE_REQUIRED") {
		t.Error(err)
	}
}

// Generated columns are computed when a batch lacks them and checked when it
// brings them; defaults stand where a batch lacks the column, not where it is NULL.
func TestGeneratedColumnsAndDefaults(t *testing.T) {
	f := newFixture(t).withEngine()
	schema := arrow.NewSchema([]arrow.Field{
		columnWith("id", long), columnWith("twice", long, generationKey, "id * 2"), columnWith("plus", long, generationKey, "n + 1"),
		columnWith("n", long, defaultKey, "42"), columnWith("s", arrow.BinaryTypes.String, defaultKey, "'none'"),
	}, nil)
	f.commit(Commit{Schema: schema})
	s := f.snapshot()
	if p := s.Protocol(); p.MinWriterVersion != 7 || !p.has("generatedColumns") || !p.has("allowColumnDefaults") {
		t.Errorf("protocol %+v", p)
	}
	only := func(names ...string) *arrow.Schema {
		var fields []arrow.Field
		for _, n := range names {
			f, _ := schema.FieldsByName(n)
			fields = append(fields, f[0])
		}
		return arrow.NewSchema(fields, nil)
	}
	for i, c := range []struct {
		schema *arrow.Schema
		rows   string
		want   string // the row, or a code
	}{
		{only("id"), `[{"id":1}]`, "id=1|twice=2|plus=43|n=42|s=none|"},
		{only("id", "n", "s"), `[{"id":2,"n":null,"s":null}]`, "id=2|twice=4|plus=null|n=null|s=null|"},
		{only("s"), `[{"s":"x"}]`, "id=null|twice=null|plus=43|n=42|s=x|"},
		{only("id", "twice"), `[{"id":3,"twice":6}]`, "id=3|twice=6|plus=43|n=42|s=none|"},
		{only("id", "twice"), `[{"id":3,"twice":7}]`, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"},
		{only("id", "twice"), `[{"id":3,"twice":null}]`, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"},
		{only("id", "twice"), `[{"id":null,"twice":null}]`, "id=null|twice=null|plus=43|n=42|s=none|"},
	} {
		add, err := f.tryWrite(WriteOptions{Snapshot: s, Name: "n" + itoa(int64(i))}, c.schema, c.rows)
		if err != nil {
			if fault.CodeOf(err) != c.want {
				t.Errorf("%s: %v", c.rows, err)
			}
			continue
		}
		rows, err := scanRows(background, s, ScanOptions{Files: add}, nil)
		if err != nil || strings.Join(rows, " ") != c.want {
			t.Errorf("%s: %v %v, want %s", c.rows, rows, err, c.want)
		}
	}
}

// dataFiles lists what lies in the table's folder outside the log.
func (f *fixture) dataFiles() (out []string) {
	f.t.Helper()
	for info, err := range f.store.List(background, "", storage.ListOptions{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		if !strings.HasPrefix(info.Name, logFolder) {
			out = append(out, info.Name)
		}
	}
	return out
}
