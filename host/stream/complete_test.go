package stream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/storage"
)

const viewName = "dev.gold.ids"

// idsStep is the batch query SELECT id FROM <table and files>.
type idsStep struct {
	table, files string
	column       string // what the id is called in the view
}

func (s idsStep) Schema(context.Context, *arrow.Schema) (*arrow.Schema, error) {
	return arrow.NewSchema([]arrow.Field{{Name: s.column, Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil), nil
}

func (s idsStep) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	if in != nil {
		return nil, fault.New("INTERNAL_ERROR", "a batch query got a stream")
	}
	schema, err := s.Schema(ctx, nil)
	if err != nil {
		return nil, err
	}
	var batches []arrow.RecordBatch
	take := func(r array.RecordReader, err error) error {
		if err != nil {
			return err
		}
		defer r.Release()
		for r.Next() {
			b := array.NewInt64Builder(memory.DefaultAllocator)
			for i := range int(r.RecordBatch().NumRows()) {
				if id, ok := rowID(r.RecordBatch(), i); ok {
					b.Append(id)
				} else {
					b.AppendNull()
				}
			}
			col := b.NewArray()
			b.Release()
			batches = append(batches, array.NewRecordBatch(schema, []arrow.Array{col}, int64(col.Len())))
			col.Release()
		}
		return r.Err()
	}
	if s.table != "" {
		err = take(t.OpenSide(ctx, s.table))
	}
	if err == nil && s.files != "" {
		err = take(t.OpenFiles(ctx, s.files))
	}
	if err != nil {
		return nil, err
	}
	return array.NewRecordReader(schema, batches)
}

// view is a materialized view of the ids of the bronze table.
func (l *lake) view() *Refresh {
	return &Refresh{
		Flow: Flow{
			Dataset: viewName, Name: "ids", Pipeline: l.pipeline, UpdateID: "update",
			Side:       map[string]*delta.Table{bronzeName: l.table(bronzeName)},
			Target:     Target{Table: l.table(viewName), Name: viewName},
			Quarantine: l.table(viewName + "_quarantine"),
			Checkpoint: l.open("_weir/dwh/checkpoints/" + viewName + "/ids"),
			Steps:      []Step{idsStep{table: bronzeName, column: "id"}, maskStep{}},
			Rules:      []expect.Rule{{Name: "has_id", Condition: "id >= 0", Action: expect.Quarantine}, {Name: "no_drop", Condition: "id <> 13", Action: expect.Drop}},
			Alloc:      l.mem,
		},
		Fingerprint: "1",
	}
}

// write appends ids to a table by a commit of another writer.
func (l *lake) write(t testing.TB, name string, ids ...int64) {
	t.Helper()
	ctx := context.Background()
	table := delta.Open(storage.Sub(l.store, strings.ReplaceAll(name, ".", "/")))
	snap, err := snapshot(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	w, err := table.Write(ctx, delta.WriteOptions{Schema: schema, Snapshot: snap, Name: fmt.Sprintf("w%d", time.Now().UnixNano())})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(ids, nil)
	col := b.NewArray()
	defer col.Release()
	rec := array.NewRecordBatch(schema, []arrow.Array{col}, int64(len(ids)))
	defer rec.Release()
	if err := w.Write(ctx, rec); err != nil {
		t.Fatal(err)
	}
	adds, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := delta.Commit{Read: snap, Operation: "WRITE", Parameters: map[string]any{}, Add: adds}
	if snap == nil {
		c.Schema = schema
	}
	if _, err := table.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
}

func mustComplete(t testing.TB, q *Refresh) Result {
	t.Helper()
	res, err := Complete(context.Background(), q, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func idRows(ids ...int) []string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"id":%d}`, id))
	}
	slices.Sort(out)
	return out
}

// covers A159 A175: each reason to compute a view anew, and that there is none
// when nothing that its rows follow from has changed.
func TestAViewIsRefreshedForAReason(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	l.write(t, bronzeName, 1, 2)
	ids := idRows(1, 2)
	step := func(what string, q *Refresh, technique Technique, reason Reason) Result {
		t.Helper()
		before := versionOf(t, l, viewName)
		res := mustComplete(t, q)
		if res.Decision.Technique != technique || res.Decision.Reason != reason {
			t.Fatalf("%s: %+v, want %s for %s", what, res.Decision, technique, reason)
		}
		if moved := versionOf(t, l, viewName) > before; moved != (technique != NoOp) {
			t.Fatalf("%s: %s, and the table moved: %v", what, technique, moved)
		}
		same(t, what, l.mustRows(t, viewName), ids)
		return res
	}
	step("the first time", l.view(), CompleteRecompute, FirstRefresh)
	step("nothing happened", l.view(), NoOp, NoSourceChanged)

	l.write(t, bronzeName, 3)
	ids = idRows(1, 2, 3)
	step("new rows", l.view(), CompleteRecompute, SourceDiffers)
	if _, err := l.table(bronzeName).Optimize(ctx, delta.OptimizeOptions{}); err != nil {
		t.Fatal(err)
	}
	step("the source was packed", l.view(), NoOp, NoSourceChanged)
	if _, err := l.table(viewName).Optimize(ctx, delta.OptimizeOptions{}); err != nil {
		t.Fatal(err)
	}
	step("the view was packed", l.view(), NoOp, NoSourceChanged)
	for range 12 { // a checkpoint of the table, and records swept away
		q := l.view()
		q.Volatile = "random() gives other values each time"
		if res := step("a volatile query", q, CompleteRecompute, NonDeterministic); res.Decision.Detail == "" {
			t.Error("no word on what is volatile")
		}
	}
	step("no longer volatile", l.view(), NoOp, NoSourceChanged)

	q := l.view()
	q.Policy = FullRefreshPolicy
	step("a policy", q, CompleteRecompute, FullPolicy)

	l.write(t, viewName, 77)
	step("somebody else wrote", l.view(), CompleteRecompute, TargetChanged)

	q = l.view()
	q.Fingerprint = "2"
	q.Steps = []Step{idsStep{table: bronzeName, column: "number"}}
	q.Rules = nil
	ids = []string{`{"number":1}`, `{"number":2}`, `{"number":3}`}
	id := tableIDOf(t, l, viewName)
	step("another query", q, CompleteRecompute, FingerprintChanged)
	if tableIDOf(t, l, viewName) != id {
		t.Error("the table is another one")
	}

	ids = idRows(1, 2, 3)
	q = l.view()
	q.FullRefresh = true
	if res := step("a full refresh", q, CompleteRecompute, FullRefreshAsked); res.Generation != 1 {
		t.Errorf("generation %d", res.Generation)
	}
	step("after it", l.view(), NoOp, NoSourceChanged)

	if err := os.RemoveAll(filepath.Join(l.dir, "lake", "dev", "gold", "ids")); err != nil {
		t.Fatal(err)
	}
	if res := mustComplete(t, l.view()); res.Decision.Reason != TargetChanged {
		t.Errorf("the table was removed: %+v", res.Decision)
	}
	same(t, "made again", l.mustRows(t, viewName), ids)
	if err := os.RemoveAll(filepath.Join(l.dir, "lake", "_weir")); err != nil {
		t.Fatal(err)
	}
	step("the checkpoint is gone", l.view(), CompleteRecompute, FirstRefresh)

	if err := os.RemoveAll(filepath.Join(l.dir, "lake", "dev", "bronze")); err != nil {
		t.Fatal(err)
	}
	l.write(t, bronzeName, 5)
	ids = idRows(5)
	step("the source was made again", l.view(), CompleteRecompute, SourceDiffers)
}

func versionOf(t testing.TB, l *lake, name string) int64 {
	t.Helper()
	snap, err := snapshot(context.Background(), l.table(name))
	if err != nil {
		t.Fatal(err)
	}
	if snap == nil {
		return -1
	}
	return snap.Version()
}

func tableIDOf(t testing.TB, l *lake, name string) string {
	t.Helper()
	snap, err := l.table(name).Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Metadata().ID
}

// A table that may be missing has no rows; any other that is missing stops the
// refresh before anything is written.
func TestAViewOfATableThatIsNotThere(t *testing.T) {
	l := newLake(t)
	q := l.view()
	if _, err := Complete(context.Background(), q, nil); fault.CodeOf(err) != "TABLE_OR_VIEW_NOT_FOUND" {
		t.Fatal(err)
	}
	q.Absent = map[string]*arrow.Schema{bronzeName: arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)}
	mustComplete(t, q)
	same(t, "rows", l.mustRows(t, viewName), nil)
	l.write(t, bronzeName, 4)
	q = l.view()
	if res := mustComplete(t, q); res.Decision.Reason != SourceDiffers {
		t.Errorf("%+v", res.Decision)
	}
	same(t, "rows", l.mustRows(t, viewName), idRows(4))
}

// The rows that a view refuses are those of its last refresh, not of all.
func TestAViewReplacesItsQuarantine(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 1, -1, 13)
	res := mustComplete(t, l.view())
	if m := res.Metrics; m.InputRows != 3 || m.OutputRows != 1 || m.QuarantinedRows != 1 || m.DroppedRows != 1 {
		t.Errorf("%+v", m)
	}
	l.write(t, bronzeName, -2, 13, 2)
	mustComplete(t, l.view())
	same(t, "rows", l.mustRows(t, viewName), idRows(1, 2))
	same(t, "quarantine", l.mustRows(t, viewName+"_quarantine", "_quarantined_at", "_batch_id", "_flow", "_rule"), []string{`{"_row":"{\"id\":-1}"}`, `{"_row":"{\"id\":-2}"}`})
}

// A rule that fails, and an error anywhere else, leave the rows there were.
//
// covers A102: FAIL UPDATE rolls back.
func TestAFailedRefreshLeavesTheView(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 1)
	mustComplete(t, l.view())
	l.write(t, bronzeName, -5, 2)
	q := l.view()
	q.Rules[0].Action = expect.Fail
	if _, err := Complete(context.Background(), q, nil); fault.CodeOf(err) != "EXPECTATION_VIOLATED" {
		t.Fatal(fault.CodeOf(err), err)
	}
	same(t, "rows", l.mustRows(t, viewName), idRows(1))
	mustComplete(t, l.view())
	same(t, "rows", l.mustRows(t, viewName), idRows(1, 2))
}

// A stream does not become a view, nor a view a stream: not even by a full refresh.
//
// covers A122
func TestATableKeepsItsKind(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	l.mustDrop(t, "a.json", `{"id":1}`)
	mustRun(t, l.mustBronze(t))
	mustComplete(t, l.view())
	for _, full := range []bool{false, true} {
		q := l.view()
		q.Flow.Dataset, q.Flow.Name, q.FullRefresh = bronzeName, "orders", full
		q.Target.Table, q.Checkpoint = l.table(bronzeName), l.open("_weir/dwh/checkpoints/"+bronzeName+"/orders")
		if _, err := Complete(ctx, q, nil); fault.CodeOf(err) != "CANNOT_CHANGE_DATASET_TYPE" {
			t.Errorf("full %v: %v", full, err)
		}
		f := l.mustBronze(t)
		f.Dataset, f.Name, f.FullRefresh = viewName, "ids", full
		f.Target.Table, f.Checkpoint = l.table(viewName), l.open("_weir/dwh/checkpoints/"+viewName+"/ids")
		if _, err := Run(ctx, f, nil); fault.CodeOf(err) != "CANNOT_CHANGE_DATASET_TYPE" {
			t.Errorf("full %v: %v", full, err)
		}
	}
}

// filesView reads a folder of files, not as a stream.
func (l *lake) filesView(t testing.TB) *Refresh {
	t.Helper()
	src, err := ingest.Parse(ingest.ReadFiles, filepath.Join(l.dir, "landing"), map[string]string{"format": "json"}, ingest.Env{})
	if err != nil {
		t.Fatal(err)
	}
	q := l.view()
	q.Side = nil
	q.Files = map[string]*FileInput{"landing": {Source: src}}
	q.Steps = []Step{idsStep{files: "landing", column: "id"}, maskStep{}}
	return q
}

// covers A26: files read as a batch are all read again when one of them is new,
// changed or gone, and not otherwise.
func TestAViewOfFiles(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "a.json", `{"id":1}`)
	l.mustDrop(t, "b.json", `{"id":2}`)
	step := func(what string, reason Reason, want ...int) Result {
		t.Helper()
		res := mustComplete(t, l.filesView(t))
		if res.Decision.Reason != reason {
			t.Fatalf("%s: %+v", what, res.Decision)
		}
		same(t, what, l.mustRows(t, viewName), idRows(want...))
		return res
	}
	if res := step("first", FirstRefresh, 1, 2); res.Metrics.InputFiles != 2 || res.Metrics.InputRows != 2 {
		t.Errorf("%+v", res.Metrics)
	}
	step("again", NoSourceChanged, 1, 2)
	l.mustDrop(t, "c.json", `{"id":3}`)
	step("one more", SourceDiffers, 1, 2, 3)
	if err := l.drop("a.json", `{"id":100}`, time.Hour); err != nil {
		t.Fatal(err)
	}
	step("one is another", SourceDiffers, 100, 2, 3)
	if err := os.Remove(filepath.Join(l.dir, "landing", "b.json")); err != nil {
		t.Fatal(err)
	}
	step("one is gone", SourceDiffers, 100, 3)
	step("again", NoSourceChanged, 100, 3)
}

// Columns that the sample did not show are read nevertheless.
func TestAViewOfFilesThatTheSampleDidNotShow(t *testing.T) {
	l := newLake(t)
	for i := range sampleFiles {
		l.mustDrop(t, fmt.Sprintf("a%05d.json", i), `{"other":1}`)
	}
	l.mustDrop(t, "b.json", `{"other":1,"id":7}`)
	q := l.filesView(t)
	q.Rules, q.Steps = nil, q.Steps[:1]
	res := mustComplete(t, q)
	rows := l.mustRows(t, viewName)
	if !slices.Contains(rows, `{"id":7}`) || len(rows) != sampleFiles+1 {
		t.Fatalf("%d rows, the first %s", len(rows), rows[0])
	}
	if !slices.Equal(res.NewColumns, []string{"id"}) {
		t.Errorf("%v", res.NewColumns)
	}
}

// covers A115: rows are appended one time; a full refresh lets the flow run again.
func TestAFlowThatRunsOnce(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 1, 2)
	once := func() *Refresh {
		q := l.view()
		q.Once = true
		return q
	}
	if res := mustComplete(t, once()); res.Decision.Technique != AppendOnce || res.Metrics.OutputRows != 2 {
		t.Fatalf("%+v", res)
	}
	l.write(t, viewName, 50) // rows of others stay
	l.write(t, bronzeName, 3)
	if res := mustComplete(t, once()); res.Decision != (Decision{NoOp, AlreadyRun, res.Decision.Detail}) {
		t.Fatalf("%+v", res.Decision)
	}
	same(t, "rows", l.mustRows(t, viewName), idRows(1, 2, 50))
	q := once()
	q.FullRefresh = true
	mustComplete(t, q)
	same(t, "after a full refresh", l.mustRows(t, viewName), idRows(1, 2, 3))
	if err := os.RemoveAll(filepath.Join(l.dir, "lake", "_weir")); err != nil {
		t.Fatal(err)
	}
	if _, err := Complete(context.Background(), once(), nil); fault.CodeOf(err) != "CHECKPOINT_MISSING" {
		t.Fatal(err)
	}
}

// A large result is dealt out to several files, always the same way; what the
// definition no longer names of partitions is ended.
func TestALargeResultIsSeveralFiles(t *testing.T) {
	ctx := context.Background()
	var ids []int64
	for i := range int64(20 * stripeRows) {
		ids = append(ids, i)
	}
	var before []string
	for range 2 {
		l := newLake(t)
		l.write(t, bronzeName, ids...)
		q := l.view()
		q.Rules, q.Steps, q.Parallel = nil, q.Steps[:1], 3
		mustComplete(t, q)
		snap, err := l.table(viewName).Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		files, err := snap.Files(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(l.dir, "lake", "dev", "gold", "ids", f.Path))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, f.Path+" "+digest(text))
		}
		slices.Sort(got)
		if rows, err := snap.LiveRows(); len(got) != 3 || err != nil || rows != int64(len(ids)) {
			t.Fatalf("%d files of %d rows, %v", len(got), rows, err)
		}
		if before != nil {
			same(t, "files", got, before)
		}
		before = got
	}
}

func TestAViewChangesItsLayout(t *testing.T) {
	l := newLake(t)
	l.write(t, bronzeName, 1)
	for i, layout := range []struct{ partition, cluster []string }{{nil, []string{"id"}}, {[]string{"twice"}, nil}, {nil, nil}, {nil, []string{"id"}}} {
		q := l.view()
		q.Fingerprint = fmt.Sprint(i)
		q.Rules = nil
		q.Steps = []Step{idsStep{table: bronzeName, column: "id"}, twiceStep{}}
		q.Target.PartitionBy, q.Target.ClusterBy = layout.partition, layout.cluster
		mustComplete(t, q)
		snap, err := l.table(viewName).Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(snap.PartitionColumns(), layout.partition) {
			t.Errorf("%d: partitioned by %v", i, snap.PartitionColumns())
		}
		if clustered := strings.Contains(snap.Domains()["delta.clustering"], "id"); clustered != (layout.cluster != nil) {
			t.Errorf("%d: clustering %s", i, snap.Domains()["delta.clustering"])
		}
		same(t, "rows", l.mustRows(t, viewName), []string{`{"id":1,"twice":1}`})
	}
}

// twiceStep gives the id under a second name.
type twiceStep struct{}

func (twiceStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	f := in.Field(0)
	f.Name = "twice"
	return arrow.NewSchema([]arrow.Field{in.Field(0), f}, nil), nil
}

func (s twiceStep) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	schema, err := s.Schema(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	return mapReader(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		return array.NewRecordBatch(schema, []arrow.Array{rec.Column(0), rec.Column(0)}, rec.NumRows()), nil
	}), nil
}
