package stream

import (
	"context"
	"errors"
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

	"github.com/weir-data/weir/host/expect"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

// covers A1 A23 A29
func TestEachFileIsReadOnceWheneverItArrives(t *testing.T) {
	l := newLake(t)
	l.mem = memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer l.mem.(*memory.CheckedAllocator).AssertSize(t, 0)
	for i := range 7 {
		l.mustDrop(t, fmt.Sprintf("b%d.json", i), fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	f := l.mustBronze(t)
	if res := mustRun(t, f); res.Batches != 3 || res.Metrics.InputRows != 7 || res.Metrics.OutputRows != 7 || res.Metrics.InputFiles != 7 {
		t.Fatalf("%+v", res)
	}
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 0 || res.Metrics.InputRows != 0 {
		t.Fatalf("a second run read something: %+v", res)
	}
	// Late: an older name and an older time; then one of the same second as the last one read.
	if err := l.drop("a0.json", `{"id":100}`, 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	l.mustDrop(t, "b6x.json", `{"id":101}`)
	// A path that was read is not read again, whatever it holds now.
	l.mustDrop(t, "b3.json", `{"id":999}`)
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 1 || res.Metrics.InputRows != 2 {
		t.Fatalf("%+v", res)
	}
	want := []string{`{"id":100}`, `{"id":101}`}
	for i := range 7 {
		want = append(want, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
	}
	slices.Sort(want)
	same(t, "rows", l.mustRows(t, bronzeName), want)
	if states := l.mustStates(t, f); len(states) != 9 || !strings.HasPrefix(states[0], "a0.json INGESTED 10") {
		t.Fatal(states)
	}
}

// covers A16
func TestDefaultLimitOfFilesSplitsBatches(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxFilesPerTrigger"] = "1000"
	for i := range 1001 {
		l.mustDrop(t, fmt.Sprintf("%04d.json", i), fmt.Sprintf(`{"id":%d}`, i))
	}
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 2 || res.Metrics.InputRows != 1001 {
		t.Fatalf("%+v", res)
	}
	if rows := l.mustRows(t, bronzeName); len(rows) != 1000 { // 13 is dropped
		t.Fatal(len(rows))
	}
}

// covers B1: the limit of bytes is soft.
func TestLimitOfBytesIsSoft(t *testing.T) {
	l := newLake(t)
	l.options["cloudFiles.maxBytesPerTrigger"] = "25"
	l.options["cloudFiles.maxFilesPerTrigger"] = "100"
	for i := range 7 {
		l.mustDrop(t, fmt.Sprintf("%d.json", i), `{"id":1234}`) // 11 bytes
	}
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 3 {
		t.Fatalf("%+v", res)
	}
}

// dropStep drops a file into the landing folder when the first batch runs.
type dropStep struct {
	l    *lake
	done *bool
}

func (dropStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }
func (s dropStep) Run(_ context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	in.Retain()
	if *s.done {
		return in, nil
	}
	*s.done = true
	return in, s.l.drop("zz.json", `{"id":55}`, 0)
}

// covers A23
func TestWhatArrivesDuringARunWaitsForTheNext(t *testing.T) {
	l := newLake(t)
	for i := range 5 {
		l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
	}
	f := l.mustBronze(t)
	f.Steps = append([]Step{dropStep{l, new(bool)}}, f.Steps...)
	if res := mustRun(t, f); res.Metrics.InputFiles != 5 {
		t.Fatalf("%+v", res)
	}
	if res := mustRun(t, l.mustBronze(t)); res.Metrics.InputFiles != 1 {
		t.Fatalf("%+v", res)
	}
}

// covers A30 A35 A41 A204
func TestNewColumnsStopOnceAndHealOnRetry(t *testing.T) {
	first := func(t *testing.T) *lake {
		l := newLake(t)
		l.mustDrop(t, "1.json", `{"id":1}`)
		mustRun(t, l.mustBronze(t))
		l.mustDrop(t, "2.json", `{"id":2,"gift_note":"hello"}`)
		return l
	}
	want := []string{`{"gift_note":"hello","id":2}`, `{"id":1}`}

	t.Run("no retries", func(t *testing.T) {
		l := first(t)
		f := l.mustBronze(t)
		f.MaxRetries = 0
		res, err := Run(context.Background(), f, nil)
		if !fault.Is(err, "UNKNOWN_FIELD") || !slices.Equal(res.NewColumns, []string{"gift_note"}) {
			t.Fatal(res, err)
		}
		same(t, "rows after the stop", l.mustRows(t, bronzeName), []string{`{"id":1}`})
		f = l.mustBronze(t)
		f.MaxRetries = 0
		if res := mustRun(t, f); res.Batches != 1 || res.Retries != 0 {
			t.Fatalf("%+v", res)
		}
		same(t, "rows", l.mustRows(t, bronzeName), want)
	})
	t.Run("retries", func(t *testing.T) {
		l := first(t)
		var kinds []string
		f := l.mustBronze(t)
		res, err := Run(context.Background(), f, ObserverFunc(func(p Progress) { kinds = append(kinds, string(p.Kind)) }))
		if err != nil || res.Retries != 1 {
			t.Fatal(res, err)
		}
		same(t, "rows", l.mustRows(t, bronzeName), want)
		if got := strings.Join(kinds, " "); got != "listing_done batch_started schema_evolved batch_retried batch_started batch_committed" {
			t.Fatal(got)
		}
	})
	t.Run("the counter starts again with each batch", func(t *testing.T) {
		l := first(t)
		l.options["cloudFiles.maxFilesPerTrigger"] = "1"
		for i := 3; i < 8; i++ {
			l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d,"c%d":"x"}`, i, i))
		}
		f := l.mustBronze(t)
		f.MaxRetries = 1
		if res := mustRun(t, f); res.Batches != 6 || res.Retries != 6 {
			t.Fatalf("%+v", res)
		}
	})
	t.Run("all columns of a batch of several tasks at once", func(t *testing.T) {
		l := first(t)
		l.mustDrop(t, "3.json", `{"id":3,"extra":true}`)
		f := l.mustBronze(t)
		f.MaxRetries, f.TaskBytes, f.Parallel = 1, 1, 2
		if res := mustRun(t, f); res.Retries != 1 || !slices.Equal(res.NewColumns, []string{"gift_note", "extra"}) && !slices.Equal(res.NewColumns, []string{"extra", "gift_note"}) {
			t.Fatalf("%+v", res)
		}
		same(t, "rows", l.mustRows(t, bronzeName), append([]string{`{"extra":true,"id":3}`}, want...))
	})
}

func TestABatchReadsWithTheSchemaOfItsTime(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1}`)
	f := l.mustBronze(t)
	mustRun(t, f)
	ctx := context.Background()
	v, err := openSchemas(ctx, f.Schemas, f.flowID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	later := *v.versions[0]
	for _, batch := range []int64{3, 5} {
		if _, err := v.record(ctx, &later, batch); err != nil {
			t.Fatal(err)
		}
	}
	for batch, want := range map[int64]int{0: 0, 2: 0, 3: 1, 4: 1, 5: 2, 9: 2} {
		if got := v.at(batch).Version; got != want {
			t.Errorf("batch %d: version %d, want %d", batch, got, want)
		}
	}
}

// covers A147
func TestFullRefreshReplacesRowsColumnsAndStates(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1,"a":"x"}`)
	l.mustDrop(t, "2.json", `{"id":-2,"a":"y"}`)
	mustRun(t, l.mustBronze(t))
	same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine", "_quarantined_at", "_source", "_flow"), []string{`{"_batch_id":0,"_row":"{\"a\":\"y\",\"id\":-2,\"_rescued_data\":null}","_rule":["has_id"]}`})
	// The column changes its type, which only a full refresh lets through.
	if err := os.Remove(filepath.Join(l.dir, "landing", "1.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(l.dir, "landing", "2.json")); err != nil {
		t.Fatal(err)
	}
	l.mustDrop(t, "3.json", `{"id":3,"a":5}`)
	f := l.mustBronze(t)
	f.FullRefresh = true
	res := mustRun(t, f)
	if res.Generation != 1 || res.Batches != 1 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, bronzeName), []string{`{"a":5,"id":3}`})
	same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine"), nil)
	same(t, "states", l.mustStates(t, f), []string{"3.json INGESTED 14"})
	if res := mustRun(t, l.mustBronze(t)); res.Batches != 0 || res.Generation != 1 {
		t.Fatalf("%+v", res)
	}
}

func TestFullRefreshOfAnEmptySourceEmptiesTheTable(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1}`)
	mustRun(t, l.mustBronze(t))
	if err := os.Remove(filepath.Join(l.dir, "landing", "1.json")); err != nil {
		t.Fatal(err)
	}
	f := l.mustBronze(t)
	f.FullRefresh = true
	if res := mustRun(t, f); res.Batches != 1 || res.Metrics.OutputRows != 0 {
		t.Fatalf("%+v", res)
	}
	same(t, "rows", l.mustRows(t, bronzeName), nil)
	l.mustDrop(t, "2.json", `{"id":2}`)
	mustRun(t, l.mustBronze(t))
	same(t, "rows", l.mustRows(t, bronzeName), []string{`{"id":2}`})
}

func TestQuarantinedRowsNameTheirSource(t *testing.T) {
	for _, taskBytes := range []int64{0, 1} {
		l := newLake(t)
		l.mem = memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer l.mem.(*memory.CheckedAllocator).AssertSize(t, 0)
		l.mustDrop(t, "1.json", "{\"id\":1}\n{\"id\":-1}\n")
		l.mustDrop(t, "2.json", "{\"id\":13}\n{\"id\":2}\n{\"id\":-2,\"note\":\"n\"}\n{\"id\":-3}\n")
		l.mustDrop(t, "3.json", "{\"id\":3}\n")
		f := l.mustBronze(t)
		f.TaskBytes = taskBytes
		res := mustRun(t, f)
		if m := res.Metrics; m.InputRows != 7 || m.OutputRows != 3 || m.DroppedRows != 1 || m.QuarantinedRows != 3 {
			t.Fatalf("%+v", m)
		}
		if got := res.Expectations; len(got) != 2 || got[0] != (expect.RuleCounts{Name: "has_id", Passed: 4, Failed: 3}) || got[1] != (expect.RuleCounts{Name: "no_drop", Passed: 6, Failed: 1}) {
			t.Fatalf("%+v", got)
		}
		landing := filepath.Join(l.dir, "landing")
		same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine", "_quarantined_at"), []string{
			fmt.Sprintf(`{"_batch_id":0,"_flow":"orders","_row":"{\"id\":-1,\"note\":null,\"_rescued_data\":null}","_rule":["has_id"],"_source":"%s/1.json:2"}`, landing),
			fmt.Sprintf(`{"_batch_id":0,"_flow":"orders","_row":"{\"id\":-2,\"note\":\"n\",\"_rescued_data\":null}","_rule":["has_id"],"_source":"%s/2.json:3"}`, landing),
			fmt.Sprintf(`{"_batch_id":0,"_flow":"orders","_row":"{\"id\":-3,\"note\":null,\"_rescued_data\":null}","_rule":["has_id"],"_source":"%s/2.json:4"}`, landing),
		})
	}
}

// pickyStep refuses rows with an even id.
type pickyStep struct{}

func (pickyStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }
func (pickyStep) Run(_ context.Context, t *Task, in array.RecordReader) (array.RecordReader, error) {
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		rows, _ := relation.Int64Column(rec, relation.RowColumn)
		var kept []arrow.RecordBatch
		for i := range int(rec.NumRows()) {
			if id, _ := rowID(rec, i); id%2 == 0 {
				if err := t.RowError(rows.Value(i), "EVEN_ID", "the id is even"); err != nil {
					return nil, errors.New("lost by the step: " + err.Error())
				}
				continue
			}
			kept = append(kept, rec.NewSlice(int64(i), int64(i+1)))
		}
		t.Metric("odd", float64(len(kept)))
		return concat(rec.Schema(), kept)
	}), nil
}

func concat(schema *arrow.Schema, recs []arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, schema.NumFields())
	rows := int64(0)
	for c := range cols {
		var parts []arrow.Array
		for _, r := range recs {
			parts = append(parts, r.Column(c))
		}
		if len(parts) == 0 {
			cols[c] = array.MakeArrayOfNull(memory.DefaultAllocator, schema.Field(c).Type, 0)
			continue
		}
		col, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		cols[c] = col
	}
	for _, r := range recs {
		rows += r.NumRows()
		r.Release()
	}
	return array.NewRecordBatch(schema, cols, rows), nil
}

func TestRowErrorsFollowThePolicy(t *testing.T) {
	for policy, check := range map[RowErrorPolicy]func(*testing.T, *lake, Result, error){
		FailOnRowError: func(t *testing.T, l *lake, res Result, err error) {
			if !fault.Is(err, "EVEN_ID") || !strings.Contains(err.Error(), "1.json, line 2") {
				t.Fatal(err)
			}
			same(t, "rows", l.mustRows(t, bronzeName), nil)
		},
		SkipRowErrors: func(t *testing.T, l *lake, res Result, err error) {
			if err != nil || res.Metrics.SkippedRows != 1 || res.Metrics.QuarantinedRows != 0 || res.Metrics.RowErrors != 1 || res.Metrics.User["odd"] != 2 {
				t.Fatal(res, err)
			}
			same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine"), nil)
		},
		QuarantineRowErrors: func(t *testing.T, l *lake, res Result, err error) {
			if err != nil || res.Metrics.SkippedRows != 0 || res.Metrics.QuarantinedRows != 1 || res.Metrics.RowErrors != 1 {
				t.Fatal(res, err)
			}
			same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine", "_quarantined_at", "_source"), []string{
				`{"_batch_id":0,"_code":"EVEN_ID","_flow":"orders","_message":"the id is even","_row":"{\"id\":2,\"_rescued_data\":null}","_rule":[]}`})
			same(t, "rows", l.mustRows(t, bronzeName), []string{`{"id":1}`, `{"id":3}`})
		},
	} {
		t.Run(string(policy), func(t *testing.T) {
			l := newLake(t)
			l.mustDrop(t, "1.json", "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n")
			f := l.mustBronze(t)
			f.OnRowError = policy
			f.Steps = append([]Step{pickyStep{}}, f.Steps...)
			res, err := Run(context.Background(), f, nil)
			check(t, l, res, err)
		})
	}
}

type badStep struct{ how string }

func (badStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }
func (s badStep) Run(_ context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		if s.how == "panic" {
			panic("boom")
		}
		return nil, errors.New("broken")
	}), nil
}

func TestAFailingStepCommitsNothing(t *testing.T) {
	for how, code := range map[string]string{"panic": "INTERNAL_ERROR", "error": "FLOW_FAILED"} {
		l := newLake(t)
		l.mustDrop(t, "1.json", `{"id":1}`)
		f := l.mustBronze(t)
		f.Steps = append([]Step{badStep{how}}, f.Steps...)
		_, err := Run(context.Background(), f, nil)
		if !fault.Is(err, code) {
			t.Fatal(err)
		}
		same(t, "rows", l.mustRows(t, bronzeName), nil)
		same(t, "states", l.mustStates(t, f), []string{"1.json PROCESSING 8"})
		mustRun(t, l.mustBronze(t))
		same(t, "rows", l.mustRows(t, bronzeName), []string{`{"id":1}`})
	}
}

func TestFilesThatVanishFollowIgnoreMissingFiles(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", `{"id":1}`)
	mustRun(t, l.mustBronze(t))
	l.mustDrop(t, "2.json", `{"id":2}`)
	l.mustDrop(t, "3.json", `{"id":3}`)
	// Planned, then gone before it is read.
	vanish := func(p Progress) {
		if p.Kind == BatchStarted {
			_ = os.Remove(filepath.Join(l.dir, "landing", "2.json"))
		}
	}
	if _, err := Run(context.Background(), l.mustBronze(t), ObserverFunc(vanish)); err == nil || !strings.Contains(err.Error(), "2.json") {
		t.Fatal(err)
	}
	l.options["ignoreMissingFiles"] = "true"
	f := l.mustBronze(t)
	mustRun(t, f)
	same(t, "rows", l.mustRows(t, bronzeName), []string{`{"id":1}`, `{"id":3}`})
	same(t, "states", l.mustStates(t, f), []string{"1.json INGESTED 8", "2.json SKIPPED_MISSING 8", "3.json INGESTED 8"})
}

func TestDeclaredColumnsMustFitTheQuery(t *testing.T) {
	str, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	col := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	for name, c := range map[string]struct {
		columns []arrow.Field
		code    string
	}{
		"the same, in another order": {[]arrow.Field{col("_rescued_data", str), col("ID", i64)}, ""},
		"one too many":               {[]arrow.Field{col("id", i64), col("_rescued_data", str), col("x", str)}, "USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE"},
		"one too few":                {[]arrow.Field{col("id", i64)}, "USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE"},
		"another type":               {[]arrow.Field{col("id", str), col("_rescued_data", str)}, "USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE"},
		"not null":                   {[]arrow.Field{{Name: "id", Type: i64}, {Name: "_rescued_data", Type: str}}, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			l.mustDrop(t, "1.json", `{"id":1}`)
			f := l.mustBronze(t)
			f.Target.Columns = arrow.NewSchema(c.columns, nil)
			_, err := Run(context.Background(), f, nil)
			if c.code == "" && err != nil || c.code != "" && !fault.Is(err, c.code) {
				t.Fatal(err)
			}
		})
	}
}

func TestProgressTellsTheBacklog(t *testing.T) {
	l := newLake(t)
	for i := range 7 {
		l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
	}
	var left []int64
	_, err := Run(context.Background(), l.mustBronze(t), ObserverFunc(func(p Progress) {
		if p.Kind == ListingDone || p.Kind == BatchCommitted {
			left = append(left, p.Backlog.Files)
		}
	}))
	if err != nil || !slices.Equal(left, []int64{7, 4, 1, 0}) {
		t.Fatal(left, err)
	}
}

func TestACancelledRunStopsAndGoesOnLater(t *testing.T) {
	l := newLake(t)
	for i := range 7 {
		l.mustDrop(t, fmt.Sprintf("%d.json", i), fmt.Sprintf(`{"id":%d}`, i))
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Run(ctx, l.mustBronze(t), ObserverFunc(func(p Progress) {
		if p.Kind == BatchStarted && p.Batch == 1 {
			cancel()
		}
	}))
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustRun(t, l.mustBronze(t))
	if rows := l.mustRows(t, bronzeName); len(rows) != 7 {
		t.Fatal(rows)
	}
}

func TestADeclaredSchemaMayChangeBetweenRuns(t *testing.T) {
	l := newLake(t)
	l.options["schema"] = "id BIGINT"
	l.mustDrop(t, "1.json", `{"id":1,"a":"x"}`)
	f := l.mustBronze(t)
	mustRun(t, f)
	l.options["schema"] = "id BIGINT, a STRING"
	l.mustDrop(t, "2.json", `{"id":2,"a":"y"}`)
	mustRun(t, l.mustBronze(t))
	same(t, "rows", l.mustRows(t, bronzeName, "_rescued_data"), []string{`{"a":"y","id":2}`, `{"id":1}`})
	v, err := openSchemas(context.Background(), f.Schemas, f.flowID(), 0)
	if err != nil || len(v.versions) != 2 || v.versions[1].Batch != 1 {
		t.Fatal(v, err)
	}
}

// lostStep gives rows that come from no source row in particular, as an
// aggregating function does.
type lostStep struct{}

func (lostStep) Schema(_ context.Context, in *arrow.Schema) (*arrow.Schema, error) { return in, nil }
func (lostStep) Run(_ context.Context, _ *Task, in array.RecordReader) (array.RecordReader, error) {
	return mapReader(in, in.Schema(), func(rec arrow.RecordBatch) (arrow.RecordBatch, error) {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for range rec.NumRows() {
			b.Append(-1)
		}
		col := b.NewArray()
		defer col.Release()
		return rec.SetColumn(rec.Schema().FieldIndices(relation.RowColumn)[0], col)
	}), nil
}

func TestARowWithoutASourceRowIsQuarantinedAsItIs(t *testing.T) {
	l := newLake(t)
	l.mustDrop(t, "1.json", "{\"id\":1}\n{\"id\":-2}\n")
	f := l.mustBronze(t)
	f.Steps = append([]Step{lostStep{}}, f.Steps...)
	mustRun(t, f)
	same(t, "quarantine", l.mustRows(t, bronzeName+"_quarantine", "_quarantined_at"), []string{
		`{"_batch_id":0,"_flow":"orders","_row":"{\"id\":-2,\"_rescued_data\":null}","_rule":["has_id"]}`})
}
