package stream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

const silverName = "dev.silver.orders"

// silver is a flow from the bronze table to another.
func (l *lake) silver(t testing.TB, options ...string) *Flow {
	t.Helper()
	opt := map[string]string{}
	for i := 0; i < len(options); i += 2 {
		opt[options[i]] = options[i+1]
	}
	src, err := NewDeltaSource(bronzeName, l.table(bronzeName), opt)
	if err != nil {
		t.Fatal(err)
	}
	f := l.flow(silverName, src)
	f.Schemas, f.Rules, f.Steps = nil, nil, nil
	return f
}

// land drops n files with one row each and brings them to bronze, one version each.
func (l *lake) land(t testing.TB, from, n int, more string) {
	t.Helper()
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	for i := from; i < from+n; i++ {
		l.mustDrop(t, fmt.Sprintf("%03d.json", i), fmt.Sprintf(`{"id":%d%s}`, i, more))
	}
	mustRun(t, l.mustBronze(t))
}

func ids(from, n int) []string {
	var out []string
	for i := from; i < from+n; i++ {
		out = append(out, fmt.Sprintf(`{"id":%d}`, i))
	}
	return out
}

// covers A2 A118: a table read as a stream gives each row once, whether it was
// there at the start or came later, and columns that came later too.
func TestATableStreamsItsRowsOnce(t *testing.T) {
	l := newLake(t)
	l.mem = memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer l.mem.(*memory.CheckedAllocator).AssertSize(t, 0)
	l.land(t, 100, 3, "")
	if res := mustRun(t, l.silver(t)); res.Batches != 1 || res.Metrics.InputRows != 3 || res.Metrics.InputFiles != 3 {
		t.Fatalf("%+v", res)
	}
	if res := mustRun(t, l.silver(t)); res.Batches != 0 {
		t.Fatalf("%+v", res)
	}
	l.land(t, 103, 2, "")
	if res := mustRun(t, l.silver(t)); res.Batches != 1 || res.Metrics.InputRows != 2 {
		t.Fatalf("%+v", res)
	}
	l.land(t, 105, 1, `,"note":"n"`)
	if res := mustRun(t, l.silver(t)); res.Batches != 1 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, silverName), append(ids(100, 5), `{"id":105,"note":"n"}`))
	f := l.silver(t)
	f.FullRefresh = true
	mustRun(t, f)
	same(t, "rows after a full refresh", l.mustRows(t, silverName), append(ids(100, 5), `{"id":105,"note":"n"}`))
}

func TestATableStreamKeepsToItsLimits(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 5, "")
	if res := mustRun(t, l.silver(t, "maxFilesPerTrigger", "2")); res.Batches != 3 {
		t.Fatalf("%+v", res)
	}
	l.land(t, 105, 5, "")
	if res := mustRun(t, l.silver(t, "maxFilesPerTrigger", "2")); res.Batches != 3 {
		t.Fatalf("%+v", res)
	}
	l.land(t, 110, 2, "")
	if res := mustRun(t, l.silver(t, "maxBytesPerTrigger", "1")); res.Batches != 2 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, silverName), ids(100, 12))
}

// Between two batches that stop within the snapshot, the source grows.
func TestASnapshotIsReadToItsEndWhateverComes(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 5, "")
	f := l.silver(t, "maxFilesPerTrigger", "2")
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Run(ctx, f, ObserverFunc(func(p Progress) {
		if p.Kind == BatchCommitted {
			cancel()
		}
	}))
	if err == nil {
		t.Fatal("not cancelled")
	}
	l.land(t, 105, 2, "")
	mustRun(t, l.silver(t, "maxFilesPerTrigger", "2"))
	same(t, "rows", l.mustRows(t, silverName), ids(100, 7))
}

// commitChange makes a version of bronze that removes one file and, if add is
// set, adds it again under another name.
func commitChange(t *testing.T, l *lake, add bool) {
	t.Helper()
	ctx := context.Background()
	table := l.table(bronzeName)
	snap, err := table.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	files, err := snap.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := delta.Commit{Read: snap, Operation: "DELETE", Remove: files[:1]}
	if add {
		r, err := snap.Scan(ctx, delta.ScanOptions{Files: files[:1]})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		w, err := table.Write(ctx, delta.WriteOptions{Schema: snap.Schema(), Snapshot: snap, Name: "changed"})
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
			if err := w.Write(ctx, r.RecordBatch()); err != nil {
				t.Fatal(err)
			}
		}
		if c.Add, err = w.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
}

// covers A75
func TestChangesOfTheSourceAreNamedErrors(t *testing.T) {
	for name, c := range map[string]struct {
		add     bool
		options []string
		code    string
	}{
		"delete":                    {false, nil, "DELTA_SOURCE_IGNORE_DELETE"},
		"change":                    {true, nil, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"},
		"delete, ignoreDeletes":     {false, []string{"ignoreDeletes", "true"}, ""},
		"change, ignoreDeletes":     {true, []string{"ignoreDeletes", "true"}, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"},
		"delete, skipChangeCommits": {false, []string{"skipChangeCommits", "true"}, ""},
		"change, skipChangeCommits": {true, []string{"skipChangeCommits", "true"}, ""},
		"change, SKIPCHANGECOMMITS": {true, []string{"SKIPCHANGECOMMITS", "true"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			l.land(t, 100, 3, "")
			mustRun(t, l.silver(t))
			l.land(t, 103, 1, "")
			commitChange(t, l, c.add)
			l.land(t, 104, 1, "")
			_, err := Run(context.Background(), l.silver(t, c.options...), nil)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				same(t, "rows", l.mustRows(t, silverName), ids(100, 5))
				return
			}
			if !fault.Is(err, c.code) || !strings.Contains(err.Error(), bronzeName) ||
				!strings.Contains(err.Error(), "skipChangeCommits") || !strings.Contains(err.Error(), "readChangeFeed") {
				t.Fatalf("%v, want %s", err, c.code)
			}
			// What came before the change is in the table.
			same(t, "rows", l.mustRows(t, silverName), ids(100, 4))
		})
	}
}

func TestAFullRefreshUpstreamAsksForOneDownstream(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 3, "")
	mustRun(t, l.silver(t))
	f := l.mustBronze(t)
	f.FullRefresh = true
	mustRun(t, f)
	for _, options := range [][]string{nil, {"skipChangeCommits", "true"}} {
		if _, err := Run(context.Background(), l.silver(t, options...), nil); !fault.Is(err, "DELTA_SOURCE_TABLE_REPLACED") {
			t.Fatal(err)
		}
	}
	s := l.silver(t)
	s.FullRefresh = true
	mustRun(t, s)
	same(t, "rows", l.mustRows(t, silverName), ids(100, 3))
	l.land(t, 103, 1, "")
	mustRun(t, l.silver(t))
	same(t, "rows", l.mustRows(t, silverName), ids(100, 4))
}

func TestASourceMadeAgainIsANamedError(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 3, "")
	mustRun(t, l.silver(t))
	if err := os.RemoveAll(filepath.Join(l.dir, "lake/dev/bronze/orders")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "lake/_weir/dwh/checkpoints", bronzeName)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "lake/_weir/dwh/schemas", bronzeName)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, l.mustBronze(t))
	if _, err := Run(context.Background(), l.silver(t), nil); !fault.Is(err, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE") {
		t.Fatal(err)
	}
}

func TestAMissingSourceTableIsANamedError(t *testing.T) {
	l := newLake(t)
	if _, err := Run(context.Background(), l.silver(t), nil); !fault.Is(err, "DELTA_TABLE_NOT_FOUND") || !strings.Contains(err.Error(), bronzeName) {
		t.Fatal(err)
	}
}

func TestAnEmptySourceTableGivesAnEmptyTarget(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 1, "")
	commitChange(t, l, false)
	mustRun(t, l.silver(t))
	if snap, err := l.table(silverName).Snapshot(context.Background()); err != nil || len(snap.Schema().Fields()) != 2 {
		t.Fatal(snap, err)
	}
	f := l.silver(t)
	f.FullRefresh = true
	mustRun(t, f)
	l.land(t, 101, 1, "")
	mustRun(t, l.silver(t))
	same(t, "rows", l.mustRows(t, silverName), ids(101, 1))
}

func TestOptionsOfATableStream(t *testing.T) {
	for _, c := range []struct{ key, value, code string }{
		{"maxFilesPerTrigger", "10", ""}, {"maxfilespertrigger", "10", ""}, {"maxBytesPerTrigger", "10g", ""},
		{"maxFilesPerTrigger", "0", "INVALID_OPTION"}, {"maxFilesPerTrigger", "x", "INVALID_OPTION"},
		{"maxBytesPerTrigger", "99999999999t", "INVALID_OPTION"}, {"skipChangeCommits", "maybe", "INVALID_OPTION"},
		{"cloudFiles.maxFilesPerTrigger", "1", "UNKNOWN_OPTION"}, {"skipChangeComits", "true", "UNKNOWN_OPTION"},
		{"readChangeFeed", "true", ""}, {"readChangeData", "true", ""}, {"startingVersion", "12", ""}, {"startingVersion", "LATEST", ""},
		{"startingVersion", "-1", "INVALID_OPTION"}, {"startingVersion", "earliest", "INVALID_OPTION"},
		{"startingTimestamp", "2026-11-30 10:00:00", ""}, {"startingTimestamp", "now", "INVALID_OPTION"},
		{"endingVersion", "3", "INVALID_OPTION"}, {"endingTimestamp", "2026-11-30", "INVALID_OPTION"},
		{"ignoreChanges", "true", "NOT_SUPPORTED"}, {"ignoreChanges", "false", ""},
		{"failOnDataLoss", "false", "NOT_SUPPORTED"}, {"failOnDataLoss", "true", ""},
	} {
		_, err := NewDeltaSource("t", nil, map[string]string{c.key: c.value})
		if c.code == "" && err != nil || c.code != "" && !fault.Is(err, c.code) {
			t.Errorf("%s=%s: %v, want %s", c.key, c.value, err, c.code)
		}
	}
	for code, options := range map[string]map[string]string{
		"DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET": {"startingVersion": "0", "startingTimestamp": "2026-11-30"},
		"INVALID_OPTION": {"readChangeFeed": "true", "skipChangeCommits": "true"},
	} {
		if err := CheckDeltaOptions("t", options); !fault.Is(err, code) {
			t.Errorf("%v: %v, want %s", options, err, code)
		}
	}
	if err := CheckDeltaOptions("t", map[string]string{"maxFilesPerTrigger": "1", "MAXFILESPERTRIGGER": "2"}); !fault.Is(err, "INVALID_OPTION") {
		t.Error(err)
	}
}

// sideStep adds the number of rows of a side input to each id.
type sideStep struct{ name string }

func (sideStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }
func (s sideStep) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	side, err := t.OpenSide(ctx, s.name)
	if err != nil {
		return nil, err
	}
	defer side.Release()
	rows := int64(0)
	for side.Next() {
		rows += side.RecordBatch().NumRows()
	}
	if err := side.Err(); err != nil {
		return nil, err
	}
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		at := rec.Schema().FieldIndices("id")[0]
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for i := range int(rec.NumRows()) {
			id, _ := rowID(rec, i)
			b.Append(id + 1000*rows)
		}
		col := b.NewArray()
		defer col.Release()
		return rec.SetColumn(at, col)
	}), nil
}

// A side input is read at the version that the offset entry pins, also when
// the batch runs again after the side table has grown.
func TestSideInputsArePinned(t *testing.T) {
	l := newLake(t)
	l.land(t, 100, 2, "")
	flow := func(steps ...Step) *Flow {
		other, err := NewDeltaSource(bronzeName, l.table(bronzeName), map[string]string{"maxFilesPerTrigger": "1"})
		if err != nil {
			t.Fatal(err)
		}
		f := l.flow(silverName, other)
		f.Schemas, f.Rules, f.Steps = nil, nil, append([]Step{sideStep{"rates"}}, steps...)
		f.Side = map[string]*delta.Table{"rates": l.table(bronzeName)}
		return f
	}
	// Planned with two rows in the side table, and failed.
	if _, err := Run(context.Background(), flow(badStep{"error"}), nil); err == nil {
		t.Fatal("the step did not fail")
	}
	l.land(t, 102, 1, "")
	mustRun(t, flow())
	same(t, "rows", l.mustRows(t, silverName), []string{`{"id":2100}`, `{"id":3101}`, `{"id":3102}`})
}
