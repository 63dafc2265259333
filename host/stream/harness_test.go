package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/relation"
	"github.com/weir-data/weir/host/storage"
)

// lake is a storage root and a landing folder in one directory.
type lake struct {
	dir   string
	store storage.Store
	// wrap lets a test put a failing store between the flow and the lake.
	wrap func(storage.Store) storage.Store
	// options are those of the file source beyond the harness's own.
	options map[string]string
	mem     memory.Allocator
	// pipeline is the id of the pipeline.
	pipeline string
	// counted adds a step with state to the flows.
	counted bool
}

func openLake(dir string) (*lake, error) {
	store, err := storage.OpenDir(filepath.Join(dir, "lake"), storage.NoSync)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "landing"), 0o755); err != nil {
		return nil, err
	}
	return &lake{dir: dir, store: store, options: map[string]string{}, pipeline: testPipeline}, nil
}

func newLake(t testing.TB) *lake {
	t.Helper()
	l, err := openLake(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// drop puts a file into the landing folder, as old as age says.
func (l *lake) drop(name, content string, age time.Duration) error {
	p := filepath.Join(l.dir, "landing", name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		return err
	}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(-age)
	return os.Chtimes(p, at, at)
}

func (l *lake) mustDrop(t testing.TB, name, content string) {
	t.Helper()
	if err := l.drop(name, content, 0); err != nil {
		t.Fatal(err)
	}
}

const (
	testPipeline = "6f1c2d3e-8f49-4f0e-9f4c-5a0a0c1f7b11"
	bronzeName   = "dev.bronze.orders"
)

func (l *lake) open(path string) storage.Store {
	s := l.store
	if l.wrap != nil {
		s = l.wrap(s)
	}
	return storage.Sub(s, path)
}

func (l *lake) table(name string) *delta.Table {
	return delta.Open(l.open(strings.ReplaceAll(name, ".", "/")))
}

// bronze is a flow from the landing folder to a table, with one rule that
// quarantines and one that drops.
func (l *lake) bronze() (*Flow, error) {
	options := map[string]string{"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true", "cloudFiles.maxFilesPerTrigger": "3"}
	for k, v := range l.options {
		options[k] = v
	}
	src, err := ingest.Parse(ingest.CloudFiles, filepath.Join(l.dir, "landing"), options, ingest.Env{})
	if err != nil {
		return nil, err
	}
	return l.flow(bronzeName, NewFileSource(src)), nil
}

func (l *lake) mustBronze(t testing.TB) *Flow {
	t.Helper()
	f, err := l.bronze()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (l *lake) flow(dataset string, src Source) *Flow {
	name := dataset[strings.LastIndexByte(dataset, '.')+1:]
	f := &Flow{
		Dataset: dataset, Name: name, Pipeline: l.pipeline, UpdateID: "update", Source: src,
		Target:     Target{Table: l.table(dataset), Name: dataset},
		Quarantine: l.table(dataset + "_quarantine"),
		Checkpoint: l.open("_weir/dwh/checkpoints/" + dataset + "/" + name),
		Schemas:    l.open("_weir/dwh/schemas/" + dataset),
		MaxRetries: 2, Alloc: l.mem,
		Rules: []expect.Rule{{Name: "has_id", Condition: "id >= 0", Action: expect.Quarantine}, {Name: "no_drop", Condition: "id <> 13", Action: expect.Drop}},
		Steps: []Step{maskStep{}},
	}
	if l.counted {
		f.Steps = []Step{countStep{}, maskStep{}}
	}
	return f
}

// countStep passes rows on and keeps how many there were in all batches.
type countStep struct{}

const countName = "test/count"

func (countStep) StateName() string { return countName }

func (countStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }

func (countStep) Run(_ context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	var count int64
	if state := t.State(countName); state != nil {
		var err error
		if count, err = strconv.ParseInt(string(state), 10, 64); err != nil {
			return nil, err
		}
	}
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		count += rec.NumRows()
		rec.Retain()
		return rec, t.SetState(countName, strconv.AppendInt(nil, count, 10))
	}), nil
}

// checkCount compares the state with the rows there are.
func (l *lake) checkCount(f *Flow, rows int64) error {
	ctx := context.Background()
	flow := storage.Sub(l.store, "_weir/dwh/checkpoints/"+f.Dataset+"/"+f.Name)
	gen, ok, err := newestGeneration(ctx, flow)
	if err != nil || !ok {
		return err
	}
	ck, err := loadCheckpoint(ctx, flow, gen)
	if err != nil || ck.committed < 0 {
		return err
	}
	e, err := ck.commit(ctx, ck.committed)
	if err != nil {
		return err
	}
	got, err := ck.store.Get(ctx, statePath(e.States[countName].Batch, countName))
	if err == nil && string(got) != strconv.FormatInt(rows, 10) {
		err = fmt.Errorf("the state counts %s rows, want %d", got, rows)
	}
	return err
}

func mustRun(t testing.TB, f *Flow) Result {
	t.Helper()
	res, err := Run(context.Background(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// maskStep marks the rows whose id is negative (bit 0) or 13 (bit 1).
type maskStep struct{}

func (maskStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	return arrow.NewSchema(append(slices.Clone(in.Fields()), relation.MaskField()), nil), nil
}

func (s maskStep) Run(ctx context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	schema, err := s.Schema(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	return mapReader(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for i := range int(rec.NumRows()) {
			id, ok := rowID(rec, i)
			switch {
			case !ok || id < 0:
				b.Append(1)
			case id == 13:
				b.Append(2)
			default:
				b.Append(0)
			}
		}
		mask := b.NewArray()
		defer mask.Release()
		return array.NewRecordBatch(schema, append(slices.Clone(rec.Columns()), mask), rec.NumRows()), nil
	}), nil
}

func rowID(rec arrow.RecordBatch, i int) (int64, bool) {
	col, ok := relation.Int64Column(rec, "id")
	if !ok || col.IsNull(i) {
		return 0, false
	}
	return col.Value(i), true
}

// mapReader applies fn to each batch of in.
func mapReader(in array.RecordReader, schema *arrow.Schema, fn func(arrow.RecordBatch) (arrow.RecordBatch, error)) array.RecordReader {
	return &mapped{in: in, schema: schema, fn: fn}
}

type mapped struct {
	in     array.RecordReader
	schema *arrow.Schema
	fn     func(arrow.RecordBatch) (arrow.RecordBatch, error)
	cur    arrow.RecordBatch
	err    error
}

func (m *mapped) Retain()               {}
func (m *mapped) Schema() *arrow.Schema { return m.schema }
func (m *mapped) Release() {
	if m.cur != nil {
		m.cur.Release()
		m.cur = nil
	}
}
func (m *mapped) Next() bool {
	m.Release()
	if m.err != nil || !m.in.Next() {
		return false
	}
	m.cur, m.err = m.fn(m.in.RecordBatch())
	return m.err == nil
}
func (m *mapped) RecordBatch() arrow.RecordBatch { return m.cur }
func (m *mapped) Record() arrow.RecordBatch      { return m.cur }
func (m *mapped) Err() error                     { return errors.Join(m.err, m.in.Err()) }

// rows gives the rows of a table as JSON, sorted; nulls and the columns named
// are left out, so that tables with columns added in another order compare.
func (l *lake) rows(name string, without ...string) ([]string, error) {
	ctx := context.Background()
	snap, err := snapshot(ctx, delta.Open(storage.Sub(l.store, strings.ReplaceAll(name, ".", "/"))))
	if err != nil || snap == nil {
		return nil, err
	}
	r, err := snap.Scan(ctx, delta.ScanOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			var row map[string]any
			if err := json.Unmarshal(relation.RowJSON(rec, i), &row); err != nil {
				return nil, err
			}
			for k, v := range row {
				if v == nil || slices.Contains(without, k) {
					delete(row, k)
				}
			}
			text, err := json.Marshal(row)
			if err != nil {
				return nil, err
			}
			out = append(out, string(text))
		}
	}
	slices.Sort(out)
	return out, r.Err()
}

func (l *lake) mustRows(t testing.TB, name string, without ...string) []string {
	t.Helper()
	rows, err := l.rows(name, without...)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// states gives path, state and size of every known file, relative to the landing folder.
func (l *lake) states(f *Flow) ([]string, error) {
	var out []string
	last := ""
	for s, err := range FileStates(context.Background(), storage.Sub(l.store, "_weir/dwh/checkpoints/"+f.Dataset+"/"+f.Name)) {
		if err != nil {
			return nil, err
		}
		if s.Path <= last {
			return nil, fmt.Errorf("%s after %s", s.Path, last)
		}
		if (s.State == Processing) != s.CommitTime.IsZero() || s.DiscoveryTime.IsZero() || s.FlowName != f.Name {
			return nil, fmt.Errorf("state %+v", s)
		}
		last = s.Path
		rel, err := filepath.Rel(filepath.Join(l.dir, "landing"), s.Path)
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s %s %d", rel, s.State, s.Size))
	}
	return out, nil
}

func (l *lake) mustStates(t testing.TB, f *Flow) []string {
	t.Helper()
	s, err := l.states(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d, want %d", what, len(got), len(want))
	for _, g := range got {
		if !slices.Contains(want, g) {
			t.Errorf("  not wanted: %s", g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("  missing:    %s", w)
		}
	}
	if len(got) != len(want) {
		t.FailNow()
	}
}
