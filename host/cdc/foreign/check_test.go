package foreign

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

const app = "pipeline/silver.customers/cdc-state"

type fixture struct {
	t     *testing.T
	dir   string
	table *delta.Table
	base  int64
	live  int64
	k     int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	store, err := storage.OpenDir(f.dir, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	f.table = delta.Open(store)
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	f.commit(delta.Commit{Schema: schema, Properties: map[string]string{"delta.enableDeletionVectors": "true"}})
	return f
}

func (f *fixture) commit(c delta.Commit) {
	f.t.Helper()
	if _, err := f.table.Commit(background, c); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) snapshot() *delta.Snapshot {
	f.t.Helper()
	s, err := f.table.Snapshot(background)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// file writes a file of some rows.
func (f *fixture) file(name string, n int) []delta.AddFile {
	f.t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, f.snapshot().Schema())
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	w, err := f.table.Write(background, delta.WriteOptions{Snapshot: f.snapshot(), Name: name})
	if err == nil {
		err = w.Write(background, rec)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	files, err := w.Close(background)
	if err != nil {
		f.t.Fatal(err)
	}
	return files
}

// batch is one of ours: it brings rows and the next number of the state.
func (f *fixture) batch(name string, n int) {
	f.t.Helper()
	s := f.snapshot()
	f.base, f.k = s.Version(), f.k+3
	f.live += int64(n)
	f.commit(delta.Commit{Read: s, Operation: "STREAMING UPDATE", Add: f.file(name, n), Txn: &delta.Txn{AppID: "flow", Version: f.k}, Also: []delta.Txn{{AppID: app, Version: f.k}}})
}

func (f *fixture) check() (warning, err error) {
	f.t.Helper()
	return Check(background, f.table, f.snapshot(), State{Dataset: "silver.customers", AppID: app, Base: f.base, Live: f.live})
}

func (f *fixture) deleteRows(n int64) {
	f.t.Helper()
	s := f.snapshot()
	files, err := s.Files(background)
	if err != nil {
		f.t.Fatal(err)
	}
	rows := delta.NewRowSet()
	rows.AddRange(0, n)
	f.commit(delta.Commit{Read: s, Operation: "DELETE", EngineInfo: "Apache-Spark/4.0.1", Delete: []delta.FileDelete{{File: files[0], Rows: rows}}})
}

func (f *fixture) optimize() {
	f.t.Helper()
	res, err := f.table.Optimize(background, delta.OptimizeOptions{})
	if err != nil || res.Commits == 0 {
		f.t.Fatalf("%+v, %v", res, err)
	}
}

func TestWhatOthersMayDo(t *testing.T) {
	type step = func(f *fixture)
	add := func(f *fixture) {
		f.commit(delta.Commit{Read: f.snapshot(), Operation: "WRITE", EngineInfo: "delta-rs", Add: f.file("foreign", 4)})
	}
	property := func(f *fixture) {
		f.commit(delta.Commit{Read: f.snapshot(), Operation: "SET TBLPROPERTIES", Properties: map[string]string{"user.x": "1"}})
	}
	del := func(f *fixture) { f.deleteRows(2) }
	restore := func(version int64) step {
		return func(f *fixture) {
			if _, err := f.table.Restore(background, delta.RestoreOptions{Version: version}); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	// The table is made by version 0, batches are versions 1 and 2.
	for name, p := range map[string]struct {
		steps []step
		says  string // "" passes
	}{
		"nothing":                                {nil, ""},
		"OPTIMIZE":                               {[]step{(*fixture).optimize}, ""},
		"properties":                             {[]step{property, property}, ""},
		"an append":                              {[]step{property, add}, "version 4 (WRITE by delta-rs, 4 rows written)"},
		"a deletion":                             {[]step{del}, "version 3 (DELETE by Apache-Spark/4.0.1, 2 rows deleted)"},
		"several":                                {[]step{del, add, (*fixture).optimize}, "version 4 (WRITE"},
		"a deletion that was taken back":         {[]step{del, restore(2)}, ""},
		"one that was taken back after OPTIMIZE": {[]step{(*fixture).optimize, del, restore(3)}, ""},
		"a deletion that was taken back too far": {[]step{del, restore(1)}, "version 3 (DELETE"},
		"a replacement": {[]step{func(f *fixture) {
			f.commit(delta.Commit{Read: f.snapshot(), Operation: "WRITE", ReplaceAll: true, Add: f.file("other", 5)})
		}}, "version 3 (WRITE"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.batch("one", 5)
			f.batch("two", 6)
			for _, step := range p.steps {
				step(f)
			}
			warning, err := f.check()
			if warning != nil {
				t.Errorf("warning %v", warning)
			}
			if p.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, "CDC_TARGET_CHANGED") || !strings.Contains(err.Error(), p.says) || !strings.Contains(err.Error(), "--full-refresh silver.customers") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestACommitBetweenTheBaseAndOurs: a blind append may win a race with our commit.
func TestACommitBetweenTheBaseAndOurs(t *testing.T) {
	f := newFixture(t)
	f.batch("one", 5)
	s := f.snapshot()
	f.base = s.Version()
	files := f.file("two", 6)
	f.commit(delta.Commit{Read: s, Operation: "WRITE", Add: f.file("foreign", 1)})
	f.commit(delta.Commit{Read: s, Add: files, Also: []delta.Txn{{AppID: app, Version: 9}}})
	if _, err := f.check(); !fault.Is(err, "CDC_TARGET_CHANGED") || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
}

func TestATargetWithRowsAndWithoutState(t *testing.T) {
	f := newFixture(t)
	if _, err := f.check(); err != nil {
		t.Errorf("an empty table: %v", err)
	}
	f.commit(delta.Commit{Read: f.snapshot(), Add: f.file("theirs", 3)})
	if _, err := f.check(); !fault.Is(err, "CDC_TARGET_CHANGED") || !strings.Contains(err.Error(), "3 rows") {
		t.Error(err)
	}
}

// TestALogThatIsGone: the rows are counted instead.
func TestALogThatIsGone(t *testing.T) {
	for _, deleted := range []int64{0, 2} {
		f := newFixture(t)
		f.batch("one", 5)
		f.batch("two", 6)
		if deleted > 0 {
			f.deleteRows(deleted)
		}
		for f.snapshot().Version() < 10 { // which writes a checkpoint
			f.commit(delta.Commit{Read: f.snapshot(), Operation: "SET TBLPROPERTIES", Properties: map[string]string{"user.x": string(rune('a' + f.snapshot().Version()))}})
		}
		for _, gone := range []string{"0", "1", "2", "3"} {
			if err := os.Remove(filepath.Join(f.dir, "_delta_log", strings.Repeat("0", 19)+gone+".json")); err != nil {
				t.Fatal(err)
			}
		}
		warning, err := f.check()
		switch {
		case deleted == 0 && (err != nil || !fault.Is(warning, "CDC_TARGET_LOG_GONE")):
			t.Errorf("%v, %v", warning, err)
		case deleted > 0 && (!fault.Is(err, "CDC_TARGET_CHANGED") || !strings.Contains(err.Error(), "it has 9 rows, its state has 11")):
			t.Error(err)
		}
	}
}
