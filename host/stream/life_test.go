package stream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/relation"
)

// life changes a table at random in all the ways a table changes, and says in
// the plainest way what it holds.
type life struct {
	t     testing.TB
	r     *rand.Rand
	table *delta.Table
	next  int64
	// appended are the rows of versions that took none away.
	appended []string
	versions int64
}

var lifeColumns = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "part", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

// newLife makes the table, with three rows.
func newLife(t testing.TB, l *lake, r *rand.Rand, properties map[string]string) *life {
	t.Helper()
	f := &life{t: t, r: r, table: l.table(bronzeName)}
	var partition []string
	if r.IntN(3) == 0 {
		partition = []string{"part"}
	}
	if _, err := f.table.Commit(context.Background(), delta.Commit{Operation: "CREATE TABLE", Schema: lifeColumns, PartitionBy: partition, Properties: properties}); err != nil {
		t.Fatal(err)
	}
	f.append(3)
	return f
}

func (f *life) snapshot() *delta.Snapshot {
	f.t.Helper()
	snap, err := f.table.Snapshot(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return snap
}

type lifeRow struct {
	id   int64
	part string
	n    int64
}

func (f *life) batch(rows []lifeRow) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, lifeColumns)
	defer b.Release()
	for _, row := range rows {
		b.Field(0).(*array.Int64Builder).Append(row.id)
		b.Field(1).(*array.StringBuilder).Append(row.part)
		b.Field(2).(*array.Int64Builder).Append(row.n)
	}
	return b.NewRecordBatch()
}

func (f *life) fresh(n int) []lifeRow {
	rows := make([]lifeRow, n)
	for i := range rows {
		f.next++
		rows[i] = lifeRow{f.next, string('a' + rune(f.r.IntN(2))), f.r.Int64N(3)}
	}
	return rows
}

// write makes files of rows, and a commit that has them.
func (f *life) write(snap *delta.Snapshot, rows []lifeRow) delta.Commit {
	f.t.Helper()
	ctx := context.Background()
	w, err := f.table.Write(ctx, delta.WriteOptions{Snapshot: snap, Schema: lifeColumns, Name: fmt.Sprintf("life-%d-%d", snap.Version(), rows[0].id)})
	if err != nil {
		f.t.Fatal(err)
	}
	rec := f.batch(rows)
	defer rec.Release()
	if err := w.Write(ctx, rec); err != nil {
		f.t.Fatal(err)
	}
	c := delta.Commit{Read: snap, Operation: "WRITE"}
	if c.Add, err = w.Close(ctx); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *life) append(n int) {
	f.t.Helper()
	if _, err := f.table.Commit(context.Background(), f.write(f.snapshot(), f.fresh(n))); err != nil {
		f.t.Fatal(err)
	}
	f.noteAppended()
}

func (f *life) overwrite() {
	f.t.Helper()
	c := f.write(f.snapshot(), f.fresh(1+f.r.IntN(3)))
	c.ReplaceAll = true
	if _, err := f.table.Commit(context.Background(), c); err != nil {
		f.t.Fatal(err)
	}
	f.noteAppended()
}

// change updates or deletes about half of the rows.
func (f *life) change(update bool) {
	f.t.Helper()
	ctx := context.Background()
	snap := f.snapshot()
	m, err := snap.Mutate(ctx, delta.MutateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = m.Abort(ctx) }()
	files, err := snap.Files(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	touched := false
	for _, file := range files {
		at, post := delta.NewRowSet(), []lifeRow(nil)
		for _, row := range f.scan(snap, delta.ScanOptions{Files: []delta.AddFile{file}, RowIndex: true}) {
			if f.r.IntN(2) == 0 {
				at.Add(row.index)
				post = append(post, lifeRow{row.id, row.part, row.n + 10})
			}
		}
		if len(post) == 0 {
			continue
		}
		touched = true
		if !update {
			err = m.Delete(ctx, file, at)
		} else {
			rec := f.batch(post)
			err = m.Update(ctx, file, at, rec)
			rec.Release()
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if !touched {
		return
	}
	if _, err := m.Commit(ctx, delta.Commit{Operation: map[bool]string{true: "UPDATE", false: "DELETE"}[update]}); err != nil {
		f.t.Fatal(err)
	}
	f.noteAppended()
}

func (f *life) optimize() {
	f.t.Helper()
	if _, err := f.table.Optimize(context.Background(), delta.OptimizeOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.noteAppended()
}

func (f *life) restore() {
	f.t.Helper()
	if _, err := f.table.Restore(context.Background(), delta.RestoreOptions{Version: 1 + f.r.Int64N(f.snapshot().Version())}); err != nil {
		f.t.Fatal(err)
	}
	f.noteAppended()
}

// step does one of all that.
func (f *life) step() {
	switch f.r.IntN(8) {
	case 0, 1, 2:
		f.append(1 + f.r.IntN(3))
	case 3:
		f.change(false)
	case 4, 5:
		f.change(true)
	case 6:
		f.optimize()
	case 7:
		if f.r.IntN(2) == 0 {
			f.overwrite()
		} else {
			f.restore()
		}
	}
}

type scannedRow struct {
	lifeRow
	index int64
}

func (f *life) scan(snap *delta.Snapshot, opt delta.ScanOptions) []scannedRow {
	f.t.Helper()
	r, err := snap.Scan(context.Background(), opt)
	if err != nil {
		f.t.Fatal(err)
	}
	defer r.Release()
	var out []scannedRow
	for r.Next() {
		rec := r.RecordBatch()
		ids, _ := relation.Int64Column(rec, "id")
		ns, _ := relation.Int64Column(rec, "n")
		index, _ := relation.Int64Column(rec, delta.RowIndexColumn)
		parts := rec.Column(1).(*array.String)
		for i := range int(rec.NumRows()) {
			row := scannedRow{lifeRow: lifeRow{ids.Value(i), parts.Value(i), ns.Value(i)}}
			if index != nil {
				row.index = index.Value(i)
			}
			out = append(out, row)
		}
	}
	if r.Err() != nil {
		f.t.Fatal(r.Err())
	}
	return out
}

func (f *life) rows() []string {
	var out []string
	for _, row := range f.scan(f.snapshot(), delta.ScanOptions{}) {
		out = append(out, row.text())
	}
	slices.Sort(out)
	return out
}

func (r lifeRow) text() string { return fmt.Sprintf("%d %s %d", r.id, r.part, r.n) }

// noteAppended looks at what the newest version added, if it only added.
func (f *life) noteAppended() {
	f.t.Helper()
	snap := f.snapshot()
	if snap.Version() == f.versions {
		return // nothing was committed
	}
	f.versions = snap.Version()
	for entry, err := range f.table.Log(context.Background(), snap.Version(), snap.Version()) {
		if err != nil {
			f.t.Fatal(err)
		}
		if len(entry.Removes) > 0 || len(entry.Adds) == 0 {
			return
		}
		for _, row := range f.scan(snap, delta.ScanOptions{Files: entry.Adds}) {
			f.appended = append(f.appended, row.text())
		}
	}
}

// changes gives the flow of a table's changes to another table, without rules.
func (l *lake) changes(t testing.TB, options map[string]string) *Flow {
	t.Helper()
	src, err := NewDeltaSource(bronzeName, l.table(bronzeName), options)
	if err != nil {
		t.Fatal(err)
	}
	f := l.flow(silverName, src)
	f.Schemas, f.Rules, f.Steps, f.MaxRetries = nil, nil, nil, 0
	return f
}

// folded is what the rows of a change feed add up to.
func (l *lake) folded(t testing.TB) []string {
	t.Helper()
	snap, err := l.table(silverName).Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	r, err := snap.Scan(context.Background(), delta.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	counts := map[string]int{}
	for r.Next() {
		rec := r.RecordBatch()
		ids, _ := relation.Int64Column(rec, "id")
		ns, _ := relation.Int64Column(rec, "n")
		parts := rec.Column(1).(*array.String)
		types := rec.Column(3).(*array.String)
		versions := rec.Column(4).(*array.Int64)
		times := rec.Column(5).(*array.Timestamp)
		for i := range int(rec.NumRows()) {
			if versions.Value(i) < 1 || times.Value(i) < arrow.Timestamp(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()) {
				t.Fatalf("a change of version %d at %d", versions.Value(i), times.Value(i))
			}
			row := lifeRow{ids.Value(i), parts.Value(i), ns.Value(i)}.text()
			switch types.Value(i) {
			case "insert", "update_postimage":
				counts[row]++
			case "delete", "update_preimage":
				counts[row]--
			default:
				t.Fatal("change type", types.Value(i))
			}
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	var out []string
	for row, n := range counts {
		if n < 0 {
			t.Errorf("%s went more often than it came", row)
		}
		for range n {
			out = append(out, row)
		}
	}
	slices.Sort(out)
	return out
}

// withoutStep takes the columns of the feed away, and the old images with filter.
type withoutStep struct{ filter bool }

func (withoutStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	fields := append(slices.Clone(lifeColumns.Fields()), relation.RowField())
	return arrow.NewSchema(fields, nil), nil
}

func (s withoutStep) Run(ctx context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	schema, err := s.Schema(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	return mapReader(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		cols := append(slices.Clone(rec.Columns()[:3]), rec.Column(int(rec.NumCols())-1))
		out := array.NewRecordBatch(schema, cols, rec.NumRows())
		if !s.filter {
			return out, nil
		}
		defer out.Release()
		types, keep := rec.Column(3).(*array.String), int64(0)
		// Old images and new ones alternate in a change file; the first run of rows that stays is enough here.
		for keep < rec.NumRows() && types.Value(int(keep)) != "update_preimage" {
			keep++
		}
		return out.NewSlice(0, keep), nil
	}), nil
}

// allBadStep marks every row as violating the first rule.
type allBadStep struct{}

func (allBadStep) Schema(ctx context.Context, in *arrow.Schema) (*arrow.Schema, error) {
	return maskStep{}.Schema(ctx, in)
}

func (s allBadStep) Run(ctx context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	schema, err := s.Schema(ctx, in.Schema())
	if err != nil {
		return nil, err
	}
	return mapReader(in, schema, func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for range rec.NumRows() {
			b.Append(1)
		}
		mask := b.NewArray()
		defer mask.Release()
		return array.NewRecordBatch(schema, append(slices.Clone(rec.Columns()), mask), rec.NumRows()), nil
	}), nil
}
