package delta

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

var background = context.Background()

// files makes data files with one row each, under names of their own.
func (f *fixture) files(s *Snapshot, names ...string) (out []AddFile) {
	opt := WriteOptions{Schema: plain}
	if s != nil {
		opt = WriteOptions{Snapshot: s}
	}
	for _, n := range names {
		opt.Name = n
		out = append(out, f.write(opt, fmt.Sprintf(`[{"s":%q}]`, n))...)
	}
	return out
}

func (f *fixture) create() *Snapshot {
	f.commit(Commit{Schema: plain})
	return f.snapshot()
}

// cells gives the values of column s, sorted.
func (f *fixture) cells() string {
	var out []string
	for _, r := range f.rows() {
		_, v, _ := strings.Cut(r, "s=")
		v, _, _ = strings.Cut(v, "|")
		out = append(out, v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestATableIsCreatedOnce(t *testing.T) {
	f := newFixture(t)
	if _, err := f.table.Snapshot(background); fault.CodeOf(err) != "DELTA_TABLE_NOT_FOUND" {
		t.Fatalf("before: %v", err)
	}
	s := f.create()
	if s.Version() != 0 || s.NumFiles() != 0 || !s.Schema().Equal(plain) {
		t.Errorf("%d %d %s", s.Version(), s.NumFiles(), s.Schema())
	}
	if p := s.Protocol(); p.MinReaderVersion != 1 || p.MinWriterVersion != 2 || p.ReaderFeatures != nil || p.WriterFeatures != nil {
		t.Errorf("protocol %+v", p)
	}
	if _, err := f.reopen().Commit(background, Commit{Schema: plain}); fault.CodeOf(err) != "DELTA_TABLE_ALREADY_EXISTS" {
		t.Errorf("twice: %v", err)
	}
	if _, err := Open(f.store).Commit(background, Commit{}); fault.CodeOf(err) != "DELTA_TABLE_ALREADY_EXISTS" {
		t.Errorf("%v", err)
	}
	if _, err := newFixture(t).table.Commit(background, Commit{}); fault.CodeOf(err) != "DELTA_EMPTY_SCHEMA" {
		t.Errorf("without columns: %v", err)
	}
}

func TestAppendsReplacementsAndRemovals(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a", "b")})
	f.commit(Commit{Read: f.snapshot(), Add: f.files(s, "c")})
	if got := f.cells(); got != "a b c" {
		t.Errorf("appended: %s", got)
	}
	b, err := f.snapshot().Files(background)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Read: f.snapshot(), Remove: b[1:2], Add: f.files(s, "d")})
	if got := f.cells(); got != "a c d" {
		t.Errorf("removed: %s", got)
	}
	f.commit(Commit{Read: f.snapshot(), ReplaceAll: true, Add: f.files(s, "e")})
	if got := f.cells(); got != "e" {
		t.Errorf("replaced: %s", got)
	}
	if n, err := f.snapshot().LiveRows(); n != 1 || err != nil {
		t.Errorf("%d live rows, %v", n, err)
	}
	// Time travel sees each version.
	for version, want := range []string{"", "a b", "a b c", "a c d", "e"} {
		s, err := f.table.SnapshotAt(background, int64(version))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := scanRows(background, s, ScanOptions{Columns: []string{"s"}}, nil)
		slices.Sort(rows)
		if got := strings.NewReplacer("s=", "", "|", "").Replace(strings.Join(rows, " ")); got != want || err != nil {
			t.Errorf("version %d: %q, %v", version, got, err)
		}
	}
	if _, err := f.table.SnapshotAt(background, 99); fault.CodeOf(err) != "DELTA_VERSION_NOT_FOUND" {
		t.Error(err)
	}
}

// covers B4: a batch is taken once.
func TestATransactionIsTakenOnce(t *testing.T) {
	f := newFixture(t)
	txn := func(v int64) *Txn { return &Txn{AppID: "pipeline/flow/0", Version: v} }
	f.commit(Commit{Schema: plain, Add: f.files(nil, "a"), Txn: txn(0)})
	s := f.snapshot()
	files := f.files(s, "b")
	f.commit(Commit{Read: s, Add: files, Txn: txn(1)})
	for name, c := range map[string]Commit{
		"again on the old snapshot": {Read: s, Add: files, Txn: txn(1)},
		"again on the new snapshot": {Read: f.snapshot(), Add: files, Txn: txn(1)},
		"an older one":              {Read: f.snapshot(), Add: files, Txn: txn(0)},
		"the creation again":        {Schema: plain, Txn: txn(0)},
	} {
		for _, table := range []*Table{f.table, f.reopen()} {
			_, err := table.Commit(background, c)
			var done *AlreadyCommitted
			if !errors.As(err, &done) || done.Version != 1 || done.TableVersion != 1 || fault.CodeOf(err) != "DELTA_ALREADY_COMMITTED" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if v, ok := f.snapshot().Txn("pipeline/flow/0"); v != 1 || !ok || f.snapshot().Version() != 1 || f.cells() != "a b" {
		t.Errorf("txn %d, version %d, %s", v, f.snapshot().Version(), f.cells())
	}
	f.commit(Commit{Read: s, Add: f.files(s, "c"), Txn: &Txn{AppID: "other", Version: 0}})
	if got := f.cells(); got != "a b c" {
		t.Error(got)
	}
}

// TestOtherApplicationsMoveInTheSameCommit: what Also says stands after the
// commit, in the log and in a checkpoint, and gates nothing.
func TestOtherApplicationsMoveInTheSameCommit(t *testing.T) {
	f := newFixture(t)
	state := func(v int64) []Txn { return []Txn{{AppID: "state", Version: v}, {AppID: "more", Version: v}} }
	f.commit(Commit{Schema: plain, Txn: &Txn{AppID: "flow", Version: 0}, Also: state(7)})
	// The same version again, and then an earlier one, of another flow.
	f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), "a"), Txn: &Txn{AppID: "flow", Version: 1}, Also: state(7)})
	f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), "b"), Txn: &Txn{AppID: "second", Version: 0}, Also: state(5)})
	for i := range 8 {
		f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"user.i": itoa(int64(i))}})
	}
	_, err := f.table.Commit(background, Commit{Read: f.snapshot(), Txn: &Txn{AppID: "flow", Version: 1}, Also: state(9)})
	if fault.CodeOf(err) != "DELTA_ALREADY_COMMITTED" {
		t.Errorf("a batch that the table has: %v", err)
	}
	for name, table := range map[string]*Table{"known": f.table, "from the checkpoint": f.reopen()} {
		s, err := table.Snapshot(background)
		if err != nil {
			t.Fatal(err)
		}
		for app, want := range map[string]int64{"state": 5, "more": 5, "flow": 1, "second": 0} {
			if got, ok := s.Txn(app); !ok || got != want {
				t.Errorf("%s: %s is at %d, want %d", name, app, got, want)
			}
		}
	}
	for name, c := range map[string]Commit{
		"twice in Also": {Also: []Txn{{AppID: "x", Version: 1}, {AppID: "x", Version: 2}}},
		"as Txn":        {Txn: &Txn{AppID: "x", Version: 1}, Also: []Txn{{AppID: "x", Version: 1}}},
	} {
		c.Read = f.snapshot()
		if _, err := f.table.Commit(background, c); fault.CodeOf(err) != "DELTA_COMMIT_FAILED" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := f.snapshot().Version(); v != 10 {
		t.Errorf("version %d", v)
	}
}

// TestLostRaces commits on a stale snapshot.
func TestLostRaces(t *testing.T) {
	wider := arrow.NewSchema(append(plain.Fields(), arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), nil)
	type play struct {
		winner, loser func(f *fixture, s *Snapshot, live []AddFile) Commit
		code          string // "" is success
		cells         string
	}
	add := func(name string) func(*fixture, *Snapshot, []AddFile) Commit {
		return func(f *fixture, s *Snapshot, _ []AddFile) Commit { return Commit{Read: s, Add: f.files(s, name)} }
	}
	replace := func(name string) func(*fixture, *Snapshot, []AddFile) Commit {
		return func(f *fixture, s *Snapshot, _ []AddFile) Commit {
			return Commit{Read: s, ReplaceAll: true, Add: f.files(s, name)}
		}
	}
	remove := func(i int, name string) func(*fixture, *Snapshot, []AddFile) Commit {
		return func(f *fixture, s *Snapshot, live []AddFile) Commit {
			return Commit{Read: s, Remove: live[i : i+1], Add: f.files(s, name)}
		}
	}
	widen := func(f *fixture, s *Snapshot, _ []AddFile) Commit { return Commit{Read: s, Schema: wider} }
	app := func(id string, version int64, name string) func(*fixture, *Snapshot, []AddFile) Commit {
		return func(f *fixture, s *Snapshot, _ []AddFile) Commit {
			return Commit{Read: s, Add: f.files(s, name), Txn: &Txn{AppID: id, Version: version}}
		}
	}
	also := func(id, other, name string) func(*fixture, *Snapshot, []AddFile) Commit {
		return func(f *fixture, s *Snapshot, _ []AddFile) Commit {
			return Commit{Read: s, Add: f.files(s, name), Txn: &Txn{AppID: id, Version: 1}, Also: []Txn{{AppID: other, Version: 1}}}
		}
	}
	upgrade := func(f *fixture, s *Snapshot, _ []AddFile) Commit {
		return Commit{Read: s, Properties: map[string]string{"delta.enableChangeDataFeed": "true"}}
	}
	for name, p := range map[string]play{
		"append after append":                   {add("w"), add("l"), "", "a b l w"},
		"append after replacement":              {replace("w"), add("l"), "", "l w"},
		"append after removal":                  {remove(0, "w"), add("l"), "", "b l w"},
		"append after new columns":              {widen, add("l"), "DELTA_METADATA_CHANGED", ""},
		"append after a new protocol":           {upgrade, add("l"), "DELTA_PROTOCOL_CHANGED", ""},
		"replacement after append":              {add("w"), replace("l"), "", "l"},
		"replacement after replacement":         {replace("w"), replace("l"), "", "l"},
		"removal after append":                  {add("w"), remove(0, "l"), "", "b l w"},
		"removal after removal of another file": {remove(1, "w"), remove(0, "l"), "", "l w"},
		"removal after removal of the same":     {remove(0, "w"), remove(0, "l"), "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"removal after replacement":             {replace("w"), remove(0, "l"), "DELTA_CONCURRENT_DELETE_DELETE", ""},
		"new columns after append":              {add("w"), widen, "", "a b w"},
		"new columns after new columns":         {widen, widen, "DELTA_METADATA_CHANGED", ""},
		"transactions of two applications":      {app("x", 1, "w"), app("y", 1, "l"), "", "a b l w"},
		"the same transaction":                  {app("x", 1, "w"), app("x", 1, "l"), "DELTA_ALREADY_COMMITTED", ""},
		"a later one of the same application":   {app("x", 1, "w"), app("x", 2, "l"), "DELTA_CONCURRENT_TRANSACTION", ""},
		"two that move a third application":     {also("x", "state", "w"), also("y", "state", "l"), "DELTA_CONCURRENT_TRANSACTION", ""},
		"one that moves what the winner is of":  {app("state", 1, "w"), also("y", "state", "l"), "DELTA_CONCURRENT_TRANSACTION", ""},
		"one that is of what the winner moves":  {also("x", "state", "w"), app("state", 2, "l"), "DELTA_CONCURRENT_TRANSACTION", ""},
		"two that move applications apart":      {also("x", "one", "w"), also("y", "two", "l"), "", "a b l w"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.create()
			f.commit(Commit{Read: s, Add: f.files(s, "a", "b")})
			s = f.snapshot()
			live, err := s.Files(background)
			if err != nil {
				t.Fatal(err)
			}
			loser := f.reopen() // it has not seen the winner
			if _, err := loser.Snapshot(background); err != nil {
				t.Fatal(err)
			}
			lost := p.loser(f, s, live)
			f.commit(p.winner(f, s, live))
			res, err := loser.Commit(background, lost)
			if fault.CodeOf(err) != p.code {
				t.Fatalf("%v, want %q", err, p.code)
			}
			if p.code == "" && (res.Version != 3 || f.cells() != p.cells) {
				t.Errorf("version %d: %s, want %s", res.Version, f.cells(), p.cells)
			}
		})
	}
}

func TestCommitsThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, s *Snapshot) Commit
		code   string
	}{
		"a file twice": {func(f *fixture, s *Snapshot) Commit {
			a := f.files(s, "x")
			return Commit{Read: s, Add: append(a, a...)}
		}, "DELTA_COMMIT_FAILED"},
		"a file that is there": {func(f *fixture, s *Snapshot) Commit {
			live, _ := s.Files(background)
			return Commit{Read: s, Add: live}
		}, "DELTA_COMMIT_FAILED"},
		"removing a file that is not there": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Remove: f.files(s, "x")}
		}, "DELTA_CONCURRENT_DELETE_DELETE"},
		"a file of other partitions": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Add: []AddFile{{Path: "x", PartitionValues: map[string]*string{"p": nil}}}}
		}, "DELTA_COMMIT_FAILED"},
		"dropping a column": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Schema: arrow.NewSchema(plain.Fields()[:1], nil)}
		}, "DELTA_UNSUPPORTED_SCHEMA_CHANGE"},
		"changing a type": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Schema: arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}, plain.Field(1)}, nil)}
		}, "DELTA_FAILED_TO_MERGE_FIELDS"},
		"a NOT NULL column to old rows": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Schema: arrow.NewSchema(append(plain.Fields(), arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64}), nil)}
		}, "DELTA_UNSUPPORTED_SCHEMA_CHANGE"},
		"a column that differs in case": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Schema: arrow.NewSchema(append(plain.Fields(), arrow.Field{Name: "ID", Type: arrow.PrimitiveTypes.Int64, Nullable: true}), nil)}
		}, "DELTA_DUPLICATE_COLUMNS_FOUND"},
		"other partitions": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, PartitionBy: []string{"id"}}
		}, "DELTA_PARTITION_COLUMNS_CHANGED"},
		"a comment on nothing": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, ColumnComments: map[string]string{"x": "y"}}
		}, "DELTA_COLUMN_NOT_FOUND"},
		"a feature we cannot write": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Properties: map[string]string{"delta.enableIcebergCompatV1": "true"}}
		}, "DELTA_UNSUPPORTED_FEATURE"},
		"a constraint": {func(f *fixture, s *Snapshot) Commit {
			return Commit{Read: s, Properties: map[string]string{"delta.constraints.c": "id > 0"}}
		}, "DELTA_ENGINE_REQUIRED"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.create()
			f.commit(Commit{Read: s, Add: f.files(s, "a")})
			_, err := f.table.Commit(background, c.change(f, f.snapshot()))
			if fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if c.code != "" && f.snapshot().Version() != 1 {
				t.Error("it was committed all the same")
			}
		})
	}
}

func TestColumnsAreAddedAndOldRowsReadAsNull(t *testing.T) {
	f := newFixture(t)
	inner := func(names ...string) arrow.DataType {
		var fields []arrow.Field
		for _, n := range names {
			fields = append(fields, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Int64, Nullable: true})
		}
		return arrow.StructOf(fields...)
	}
	schema := func(t arrow.DataType, more ...arrow.Field) *arrow.Schema {
		return arrow.NewSchema(append([]arrow.Field{{Name: "items", Type: arrow.ListOf(t), Nullable: true}}, more...), nil)
	}
	old := schema(inner("a"))
	f.commit(Commit{Schema: old, Add: f.write(WriteOptions{Schema: old, Name: "1"}, `[{"items":[{"a":1},null]}]`), ColumnComments: map[string]string{"items": "what was bought"}})
	wide, added, err := MergeSchema(f.snapshot().Schema(), schema(inner("b", "a"), arrow.Field{Name: "note", Type: arrow.BinaryTypes.String}))
	if err != nil || !slices.Equal(added, []string{"items.element.b", "note"}) {
		t.Fatalf("%v, %v", added, err)
	}
	files := f.write(WriteOptions{Snapshot: f.snapshot(), Schema: wide, Name: "2"}, `[{"items":[{"a":2,"b":3}],"note":"n"}]`)
	f.commit(Commit{Read: f.snapshot(), Schema: wide, Add: files})
	want := []string{`items=["{a:1,b:null,}" "null"]|note=null|`, `items=["{a:2,b:3,}"]|note=n|`}
	if got := f.rows(); !slices.Equal(got, want) {
		t.Errorf("%s", firstDifference(got, want))
	}
	if c, _ := f.snapshot().Schema().Field(0).Metadata.GetValue("comment"); c != "what was bought" {
		t.Errorf("the comment is lost: %q", c)
	}
	// The same schema again changes nothing.
	f.commit(Commit{Read: f.snapshot(), Schema: wide})
	if e, err := f.table.entry(background, 2); err != nil || e.Metadata != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestMergeSchema(t *testing.T) {
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	schema := func(f ...arrow.Field) *arrow.Schema { return arrow.NewSchema(f, nil) }
	dec := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	long, text := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	for name, c := range map[string]struct {
		table, batch *arrow.Schema
		added, code  string
	}{
		"nothing new":                     {schema(col("a", long)), schema(col("a", long)), "", ""},
		"fewer columns":                   {schema(col("a", long), col("b", long)), schema(col("b", long)), "", ""},
		"new ones come last":              {schema(col("a", long)), schema(col("x", text), col("a", long), col("y", text)), "x y", ""},
		"names match ignoring case":       {schema(col("Id", long)), schema(col("ID", long)), "", ""},
		"a narrower type fits":            {schema(col("a", long)), schema(col("a", arrow.PrimitiveTypes.Int16)), "", ""},
		"a smaller decimal fits":          {schema(col("a", dec(18, 4))), schema(col("a", dec(10, 2))), "", ""},
		"a wider type clashes":            {schema(col("a", arrow.PrimitiveTypes.Int32)), schema(col("a", long)), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
		"more digits after the point":     {schema(col("a", dec(18, 2))), schema(col("a", dec(18, 4))), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
		"another kind clashes":            {schema(col("a", long)), schema(col("a", text)), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
		"a struct for a text clashes":     {schema(col("a", text)), schema(col("a", arrow.StructOf(col("x", long)))), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
		"zones are not the same":          {schema(col("a", utc)), schema(col("a", &arrow.TimestampType{Unit: arrow.Microsecond})), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
		"two spellings in the batch":      {schema(col("a", long)), schema(col("b", long), col("B", long)), "", "DELTA_DUPLICATE_COLUMNS_FOUND"},
		"a type that no table has":        {schema(col("a", long)), schema(col("b", arrow.PrimitiveTypes.Uint64)), "", "DELTA_UNSUPPORTED_TYPE"},
		"nested in a map":                 {schema(col("m", arrow.MapOf(text, arrow.StructOf(col("x", long))))), schema(col("m", arrow.MapOf(text, arrow.StructOf(col("y", long))))), "m.value.y", ""},
		"a clash inside a struct is told": {schema(col("s", arrow.StructOf(col("x", long)))), schema(col("s", arrow.StructOf(col("x", text)))), "", "DELTA_FAILED_TO_MERGE_FIELDS"},
	} {
		t.Run(name, func(t *testing.T) {
			merged, added, err := MergeSchema(c.table, c.batch)
			if fault.CodeOf(err) != c.code || strings.Join(added, " ") != c.added {
				t.Fatalf("added %v, error %v", added, err)
			}
			if err != nil {
				return
			}
			for i, f := range c.table.Fields() {
				if merged.Field(i).Name != f.Name {
					t.Errorf("column %d is %s, was %s", i, merged.Field(i).Name, f.Name)
				}
			}
			for _, f := range merged.Fields()[c.table.NumFields():] {
				if !f.Nullable {
					t.Errorf("%s is new and NOT NULL", f.Name)
				}
			}
		})
	}
}

func TestCommentsNamesAndPropertiesAreKept(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Name: "orders", Comment: "all of them", Properties: map[string]string{"quality": "bronze"},
		ColumnComments: map[string]string{"id": "the key"}, Operation: "CREATE TABLE", Parameters: map[string]any{"isManaged": true, "partitionBy": []string{}},
		EngineInfo: "Weir/test", UserMetadata: "by hand", Timestamp: time.UnixMilli(1700000000123)})
	f.commit(Commit{Read: f.snapshot(), Properties: map[string]string{"quality": "silver", "x": "1"}})
	m := f.snapshot().Metadata()
	if m.Name != "orders" || m.Description != "all of them" || fmt.Sprint(m.Configuration) != "map[quality:silver x:1]" || m.Format.Provider != "parquet" || m.ID == "" {
		t.Errorf("%+v", m)
	}
	h, err := f.table.History(background, 0)
	if err != nil || len(h) != 2 || h[0].Version != 1 || h[1].Operation != "CREATE TABLE" || h[1].EngineInfo != "Weir/test" || h[1].UserMetadata != "by hand" ||
		h[1].OperationParameters["isManaged"] != "true" || h[1].OperationParameters["partitionBy"] != "[]" {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := f.table.History(background, 1); err != nil || len(h) != 1 || h[0].Version != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	e, err := f.table.entry(background, 0)
	if err != nil || e.CommitInfo.Timestamp != 1700000000123 || e.CommitInfo.TxnID == "" || *e.CommitInfo.IsBlindAppend != true {
		t.Errorf("%+v, %v", e.CommitInfo, err)
	}
	d, err := f.table.Describe(background)
	if err != nil || d.Version != 1 || d.MinReader != 1 || fmt.Sprint(d.Features) != "[appendOnly invariants]" || fmt.Sprint(d.Schema) != "[{id bigint true the key} {s string true }]" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestTheProtocolIsAsLowAsTheFeaturesAllow(t *testing.T) {
	for name, c := range map[string]struct {
		commit Commit
		want   string
	}{
		"plain":            {Commit{Schema: plain}, "1 2 [] []"},
		"append only":      {Commit{Schema: plain, Properties: map[string]string{"delta.appendOnly": "true"}}, "1 2 [] []"},
		"change data feed": {Commit{Schema: plain, Properties: map[string]string{"delta.enableChangeDataFeed": "true"}}, "1 4 [] []"},
		"without zone":     {Commit{Schema: allTypes(true)}, "3 7 [timestampNtz] [appendOnly invariants timestampNtz]"},
		"deletion vectors": {Commit{Schema: plain, Properties: map[string]string{"delta.enableDeletionVectors": "true"}}, "3 7 [deletionVectors] [appendOnly deletionVectors invariants]"},
		"clustered":        {Commit{Schema: plain, ClusterBy: []string{"id"}}, "1 7 [] [appendOnly clustering domainMetadata invariants]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.commit(c.commit)
			p := f.snapshot().Protocol()
			if got := fmt.Sprint(p.MinReaderVersion, p.MinWriterVersion, p.ReaderFeatures, p.WriterFeatures); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			// Every later writer must be able to append.
			f.commit(Commit{Read: f.snapshot()})
		})
	}
}

// A file from a checkpoint has lost its dataChange; removing it changes data all
// the same, unless what comes instead says that rows only moved.
func TestRemovalsChangeDataUnlessRowsOnlyMove(t *testing.T) {
	f := newFixture(t)
	f.create()
	for i := range 10 {
		f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("n", i))})
	}
	f.table = f.reopen() // from the checkpoint
	live, err := f.snapshot().Files(background)
	if err != nil || live[0].DataChange {
		t.Fatal(live, err)
	}
	moved := f.files(f.snapshot(), "moved")
	for i, c := range []struct {
		add  []AddFile
		want bool
	}{{nil, true}, {f.files(f.snapshot(), "new"), true}, {moved, false}} {
		v := f.commit(Commit{Read: f.snapshot(), Remove: live[i : i+1], Add: c.add, Rearranges: !c.want})
		e, err := f.table.entry(background, v)
		if err != nil || len(e.Removes) != 1 || e.Removes[0].DataChange != c.want || len(e.Adds) > 0 && e.Adds[0].DataChange != c.want {
			t.Errorf("commit %d: %+v, %v", v, e, err)
		}
	}
}

func TestAppendOnlyTablesKeepTheirRows(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, Add: f.files(nil, "a"), Properties: map[string]string{"delta.appendOnly": "true"}})
	if _, err := f.table.Commit(background, Commit{Read: f.snapshot(), ReplaceAll: true}); fault.CodeOf(err) != "DELTA_CANNOT_MODIFY_APPEND_ONLY" {
		t.Error(err)
	}
	f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), "b")})
	if got := f.cells(); got != "a b" {
		t.Error(got)
	}
}

func TestClusteredTablesKeepTheirDomain(t *testing.T) {
	f := newFixture(t)
	f.commit(Commit{Schema: plain, ClusterBy: []string{"s"}})
	for i := range 12 { // past a checkpoint
		f.commit(Commit{Read: f.snapshot(), Add: f.files(f.snapshot(), fmt.Sprint("n", i))})
	}
	d, err := f.reopen().Describe(background)
	if err != nil || fmt.Sprint(d.ClusterColumns) != "[s]" || *d.LiveRows != 12 || *d.PhysicalRows != 12 {
		t.Errorf("%+v, %v", d, err)
	}
	g := newFixture(t)
	if _, err := g.table.Commit(background, Commit{Schema: plain, ClusterBy: []string{"nope"}}); fault.CodeOf(err) != "DELTA_COLUMN_NOT_FOUND" {
		t.Error(err)
	}
}

func TestInCommitTimestampsRise(t *testing.T) {
	f := newFixture(t)
	now := time.UnixMilli(1_700_000_000_000)
	f.table = Open(f.store, WithAllocator(f.mem), WithClock(func() time.Time { return now }))
	f.commit(Commit{Schema: plain, Properties: map[string]string{"delta.enableInCommitTimestamps": "true"}})
	now = now.Add(-time.Hour) // a clock that goes back
	for range 2 {
		f.commit(Commit{Read: f.snapshot()})
	}
	for i, want := range []int64{0, 1, 2} {
		s, err := f.reopen().SnapshotAt(background, int64(i))
		if err != nil || s.Timestamp().UnixMilli() != 1_700_000_000_000+want {
			t.Errorf("version %d: %v, %v", i, s.Timestamp(), err)
		}
	}
}

func TestReplacementMayChangeEverything(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a")})
	other := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "p", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	files := f.write(WriteOptions{Snapshot: f.snapshot(), Schema: other, PartitionBy: []string{"p"}, Replace: true, Name: "n"}, `[{"s":1,"p":"x"},{"s":2,"p":null}]`)
	f.commit(Commit{Read: f.snapshot(), Schema: other, PartitionBy: []string{"p"}, ReplaceAll: true, Add: files})
	if got, want := f.rows(), []string{"s=1|p=x|", "s=2|p=null|"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if p := f.snapshot().PartitionColumns(); !slices.Equal(p, []string{"p"}) {
		t.Error(p)
	}
}

// covers A4: of many concurrent writers none is lost and none is doubled.
func TestManyWritersCommitEachOnce(t *testing.T) {
	f := newFixture(t)
	f.create()
	const writers, commits = 8, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			table := f.reopen() // like another process
			for c := range commits {
				name := fmt.Sprintf("w%d-%d", w, c)
				err := func() error {
					s, err := table.Snapshot(background)
					if err != nil {
						return err
					}
					fw, err := table.Write(background, WriteOptions{Snapshot: s, Name: name})
					if err != nil {
						return err
					}
					rec := f.batch(plain, fmt.Sprintf(`[{"s":%q}]`, name))
					defer rec.Release()
					if err := fw.Write(background, rec); err != nil {
						return err
					}
					files, err := fw.Close(background)
					if err != nil {
						return err
					}
					res, err := table.Commit(background, Commit{Read: s, Add: files, Txn: &Txn{AppID: fmt.Sprint(w), Version: int64(c)}})
					return errors.Join(err, res.CheckpointError)
				}()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s, err := f.reopen().Snapshot(background)
	if err != nil || s.Version() != writers*commits {
		t.Fatalf("version %d, %v", s.Version(), err)
	}
	want := map[string]bool{}
	for _, c := range strings.Fields(f.cells()) {
		if want[c] {
			t.Errorf("%s is there twice", c)
		}
		want[c] = true
	}
	if len(want) != writers*commits {
		t.Errorf("%d rows, want %d", len(want), writers*commits)
	}
}

func TestASnapshotSeesATableMadeAnew(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	f.commit(Commit{Read: s, Add: f.files(s, "a")})
	f.snapshot()
	if err := os.RemoveAll(filepath.Join(f.dir, logFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.table.Snapshot(background); fault.CodeOf(err) != "DELTA_TABLE_NOT_FOUND" {
		t.Fatalf("%v", err)
	}
	other := f.reopen()
	if _, err := other.Commit(background, Commit{Schema: plain}); err != nil {
		t.Fatal(err)
	}
	if s := f.snapshot(); s.Version() != 0 || s.NumFiles() != 0 {
		t.Errorf("version %d with %d files", s.Version(), s.NumFiles())
	}
	if _, err := f.table.Commit(background, Commit{Read: s, Add: f.files(s, "b")}); fault.CodeOf(err) != "DELTA_TABLE_REPLACED" {
		t.Errorf("%v", err)
	}
}
