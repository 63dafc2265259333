package stream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// newest is an Applier that keeps of each id the row with the highest seq, and
// writes the table anew each time.
type newest struct {
	begun *int               // how often a batch was begun
	race  func(*delta.Table) // before the first commit
}

type newestRow struct{ id, seq int64 }

func newestSchema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "seq", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
}

func (n newest) Schema(rows *arrow.Schema) (*arrow.Schema, error) {
	for _, f := range newestSchema().Fields() {
		if columnNamed(rows, f.Name) < 0 {
			return nil, fault.New("UNRESOLVED_COLUMN", "no column %s", f.Name)
		}
	}
	return newestSchema(), nil
}

func (n newest) Begin(_ context.Context, b ApplyBatch) (Application, error) {
	if n.begun != nil {
		*n.begun++
	}
	b.Tell(Notice{Code: "TOY", Text: "a toy"})
	return &newestOfRows{newest: n, b: b, rows: map[int64]int64{}}, nil
}

type newestOfRows struct {
	newest
	b    ApplyBatch
	mu   sync.Mutex
	rows map[int64]int64
}

func (a *newestOfRows) Take(_ context.Context, _ int, rec arrow.RecordBatch) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.merge(rec)
}

func (a *newestOfRows) merge(rec arrow.RecordBatch) error {
	id, ok1 := relation.Int64Column(rec, "id")
	seq, ok2 := relation.Int64Column(rec, "seq")
	if !ok1 || !ok2 {
		return fmt.Errorf("columns %s", rec.Schema())
	}
	for i := range id.Len() {
		if have, ok := a.rows[id.Value(i)]; !ok || have < seq.Value(i) {
			a.rows[id.Value(i)] = seq.Value(i)
		}
	}
	return nil
}

func (a *newestOfRows) Commit(ctx context.Context, c delta.Commit) (delta.Result, Counts, error) {
	n := Counts{Upserted: int64(len(a.rows))}
	if t := a.b.Target; t != nil && !a.b.Replace {
		r, err := t.Scan(ctx, delta.ScanOptions{})
		if err != nil {
			return delta.Result{}, n, err
		}
		defer r.Release()
		for r.Next() {
			if err := a.merge(r.RecordBatch()); err != nil {
				return delta.Result{}, n, err
			}
		}
		if r.Err() != nil {
			return delta.Result{}, n, r.Err()
		}
		c.ReplaceAll, c.Reads.Table = true, true
	}
	w, err := a.b.Table.Write(ctx, a.b.Write)
	if err != nil {
		return delta.Result{}, n, err
	}
	ids, seqs := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	defer seqs.Release()
	for _, id := range slices.Sorted(maps.Keys(a.rows)) {
		ids.Append(id)
		seqs.Append(a.rows[id])
	}
	columns := []arrow.Array{ids.NewArray(), seqs.NewArray()}
	rec := array.NewRecordBatch(newestSchema(), columns, int64(len(a.rows)))
	defer rec.Release()
	columns[0].Release()
	columns[1].Release()
	if err := w.Write(ctx, rec); err != nil {
		return delta.Result{}, n, errors.Join(err, w.Abort(ctx))
	}
	if c.Add, err = w.Close(ctx); err != nil {
		return delta.Result{}, n, err
	}
	if err := a.b.Settle(&c, n); err != nil {
		return delta.Result{}, n, err
	}
	if a.race != nil && a.b.Target != nil && *a.begun == 2 {
		a.race(a.b.Table)
	}
	res, err := a.b.Table.Commit(ctx, c)
	return res, n, err
}

func (a *newestOfRows) Release(context.Context) error { return nil }

// applied is the bronze flow with changes that are merged.
func (l *lake) applied(t testing.TB, n newest) *Flow {
	t.Helper()
	f := l.mustBronze(t)
	f.Apply = n
	return f
}

func newestRows(rows ...newestRow) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, fmt.Sprintf(`{"id":%d,"seq":%d}`, r.id, r.seq))
	}
	return out
}

func (l *lake) dropChanges(t testing.TB, name string, rows ...newestRow) {
	t.Helper()
	l.mustDrop(t, name, strings.Join(newestRows(rows...), "\n"))
}

// Rows that the expectations keep reach the application, batch after batch; a
// full refresh begins from nothing, and so does that of a source that is empty.
func TestRowsAreApplied(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	l.dropChanges(t, "a.json", newestRow{1, 5}, newestRow{2, 5}, newestRow{-1, 9}, newestRow{13, 1})
	l.dropChanges(t, "b.json", newestRow{1, 4}, newestRow{2, 6})
	var told []Notice
	res, err := Run(context.Background(), l.applied(t, newest{}), ObserverFunc(func(p Progress) {
		if p.Kind == Noticed {
			told = append(told, p.Notice)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if m := res.Metrics; res.Batches != 2 || m.Applied.Upserted != 4 || m.OutputRows != 0 || m.DroppedRows != 1 || m.QuarantinedRows != 1 || len(told) != 1 || told[0].Code != "TOY" {
		t.Fatalf("%+v, told %v", res, told)
	}
	same(t, "rows", l.mustRows(t, bronzeName), newestRows(newestRow{1, 5}, newestRow{2, 6}))
	if err := os.Remove(l.dir + "/landing/b.json"); err != nil {
		t.Fatal(err)
	}
	f := l.applied(t, newest{})
	f.FullRefresh = true
	mustRun(t, f)
	same(t, "rows after a full refresh", l.mustRows(t, bronzeName), newestRows(newestRow{1, 5}, newestRow{2, 5}))
	if err := os.Remove(l.dir + "/landing/a.json"); err != nil {
		t.Fatal(err)
	}
	f = l.applied(t, newest{})
	f.FullRefresh = true
	mustRun(t, f)
	same(t, "rows after one of nothing", l.mustRows(t, bronzeName), nil)
}

// A table whose rows another writer changed between the look and the commit is
// looked at again.
func TestAnApplicationIsMadeAgainOnWhatAnotherWriterLeft(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	l.dropChanges(t, "a.json", newestRow{1, 5})
	l.dropChanges(t, "b.json", newestRow{2, 6})
	begun := 0
	n := newest{begun: &begun, race: func(table *delta.Table) {
		ctx := context.Background()
		snap, err := table.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Commit(ctx, delta.Commit{Read: snap, Operation: "DELETE", ReplaceAll: true}); err != nil {
			t.Fatal(err)
		}
	}}
	f := l.applied(t, n)
	f.MaxRetries = 0
	if res := mustRun(t, f); res.Retries != 0 || begun != 3 {
		t.Fatalf("%+v, begun %d times", res, begun)
	}
	same(t, "rows", l.mustRows(t, bronzeName), newestRows(newestRow{2, 6}))
}

// A flow that runs once applies its rows, too.
func TestAFlowThatRunsOnceApplies(t *testing.T) {
	l := newLake(t)
	l.dropChanges(t, "a.json", newestRow{1, 5})
	l.dropChanges(t, "b.json", newestRow{1, 6}, newestRow{2, 2})
	mustRun(t, l.mustBronze(t))
	q := l.view()
	q.Once, q.Apply = true, newest{}
	q.Steps = []Step{wholeStep{bronzeName}, maskStep{}}
	if res := mustComplete(t, q); res.Metrics.Applied.Upserted != 2 {
		t.Fatalf("%+v", res)
	}
	if res := mustComplete(t, q); res.Decision.Technique != NoOp {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, viewName), newestRows(newestRow{1, 6}, newestRow{2, 2}))
}

// wholeStep reads a side table.
type wholeStep struct{ table string }

func (s wholeStep) Schema(context.Context, *arrow.Schema) (*arrow.Schema, error) {
	return newestSchema(), nil
}

func (s wholeStep) Run(ctx context.Context, t *Task, _ array.RecordReader) (array.RecordReader, error) {
	return t.OpenSide(ctx, s.table)
}

// The reset of a table that is merged into is an application of nothing.
func TestAResetIsApplied(t *testing.T) {
	l := newLake(t)
	l.dropChanges(t, "a.json", newestRow{1, 5})
	flows := func() []*Flow {
		fs := l.shared(t)
		for _, f := range fs {
			f.Apply = newest{}
		}
		return fs
	}
	for _, f := range flows() {
		mustRun(t, f)
	}
	begun := 0
	r := l.reset(t)
	r.Apply = newest{begun: &begun}
	if err := r.Run(context.Background()); err != nil || begun != 1 {
		t.Fatal(begun, err)
	}
	same(t, "rows", l.mustRows(t, bronzeName), nil)
	for _, f := range flows() {
		mustRun(t, f)
	}
	same(t, "rows", l.mustRows(t, bronzeName), newestRows(newestRow{1, 5}))
}

// Whatever operation of a run goes wrong, the next one ends with the same table
// and the same figures in the commit log.
func TestEveryStorageOperationOfAnApplicationMayFail(t *testing.T) {
	for mode := crashBefore; mode <= failAfter; mode++ {
		t.Run(fmt.Sprintf("mode %d", mode), func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k += stride(7) {
				if !applicationFails(t, k, mode) {
					if k < 40 {
						t.Fatalf("only %d operations", k)
					}
					return
				}
			}
		})
	}
}

func applicationFails(t *testing.T, k int, mode faultMode) bool {
	t.Helper()
	l := newLake(t)
	defer func() {
		if !t.Failed() {
			_ = os.RemoveAll(l.dir)
		}
	}()
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	l.dropChanges(t, "a.json", newestRow{1, 5}, newestRow{-1, 9})
	l.dropChanges(t, "b.json", newestRow{1, 4}, newestRow{2, 6}, newestRow{3, 1})
	f := &faulty{k: k, mode: mode}
	l.wrap = f.wrap
	_, err := Run(context.Background(), l.applied(t, newest{}), nil)
	if err != nil && (!f.hit || fault.CodeOf(err) == "") {
		t.Fatalf("operation %d: %v", k, err)
	}
	l.wrap = nil
	mustRun(t, l.applied(t, newest{}))
	if got := l.mustRows(t, bronzeName); !slices.Equal(got, newestRows(newestRow{1, 5}, newestRow{2, 6}, newestRow{3, 1})) {
		t.Fatalf("operation %d: rows %v", k, got)
	}
	flow := l.applied(t, newest{})
	gen, _, err := newestGeneration(context.Background(), flow.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	ck, err := loadCheckpoint(context.Background(), flow.Checkpoint, gen)
	if err != nil {
		t.Fatal(err)
	}
	var sum Metrics
	for n := int64(0); n <= ck.committed; n++ {
		e, err := ck.commit(context.Background(), n)
		if err != nil {
			t.Fatal(err)
		}
		sum.add(e.Metrics)
	}
	if sum.Applied.Upserted != 4 || sum.InputRows != 5 {
		t.Fatalf("operation %d: figures %+v", k, sum)
	}
	return f.hit
}
