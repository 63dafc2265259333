package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/relation"
)

const (
	auditName   = "dev.gold.audit"
	currentName = "dev.gold.current"
)

// newestOfBatch appends every row, with the number of its batch, to output 0,
// and merges the row with the greatest n of each id into output 1.
type newestOfBatch struct {
	keepAll bool // merge rows with the same id, too
}

var (
	auditColumns = arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "batch", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	currentColumns = arrow.NewSchema(auditColumns.Fields()[:2], nil)
)

func (newestOfBatch) Schemas(context.Context, *arrow.Schema) ([]*arrow.Schema, error) {
	return []*arrow.Schema{auditColumns, currentColumns}, nil
}

func (h newestOfBatch) Run(_ context.Context, t *Task, in array.RecordReader, write func(int, arrow.RecordBatch) error) error {
	newest := map[int64]int64{}
	var order []int64
	for in.Next() {
		rec := in.RecordBatch()
		ids, _ := relation.Int64Column(rec, "id")
		ns, _ := relation.Int64Column(rec, "n")
		rows, _ := relation.Int64Column(rec, relation.RowColumn)
		b := array.NewRecordBuilder(memory.DefaultAllocator, auditColumns)
		for i := range int(rec.NumRows()) {
			if ids.IsNull(i) {
				if err := t.RowError(rows.Value(i), "NO_ID", "a row without an id"); err != nil {
					return err
				}
				continue
			}
			b.Field(0).(*array.Int64Builder).Append(ids.Value(i))
			b.Field(1).(*array.Int64Builder).Append(ns.Value(i))
			b.Field(2).(*array.Int64Builder).Append(t.Batch)
			if _, known := newest[ids.Value(i)]; !known || h.keepAll {
				order = append(order, ids.Value(i))
			}
			newest[ids.Value(i)] = max(newest[ids.Value(i)], ns.Value(i))
		}
		out := b.NewRecordBatch()
		b.Release()
		err := write(0, out)
		out.Release()
		if err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	for _, part := range [][]int64{order[:len(order)/2], order[len(order)/2:]} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, currentColumns)
		for _, id := range part {
			b.Field(0).(*array.Int64Builder).Append(id)
			b.Field(1).(*array.Int64Builder).Append(newest[id])
		}
		out := b.NewRecordBatch()
		b.Release()
		err := write(1, out)
		out.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// fanOut is a flow from the landing folder to the handler.
func (l *lake) fanOut(t testing.TB, h Handler) *Flow {
	t.Helper()
	f, err := l.handled(h)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (l *lake) handled(h Handler) (*Flow, error) {
	l.options["cloudFiles.schemaHints"] = "id BIGINT, n BIGINT"
	f, err := l.bronze()
	if err != nil {
		return nil, err
	}
	f.Dataset, f.Name = "dev.gold.fanout", "fanout"
	f.Checkpoint, f.Schemas, f.Quarantine = l.open("_weir/dwh/checkpoints/dev.gold.fanout/fanout"), l.open("_weir/dwh/schemas/dev.gold.fanout"), nil
	f.Target, f.Rules, f.Steps, f.Handler, f.OnRowError = Target{}, nil, nil, h, SkipRowErrors
	f.Outputs = []Output{{auditName, l.table(auditName), nil}, {currentName, l.table(currentName), []string{"ID"}}}
	return f, nil
}

// covers A133: SIGKILL behind the first output of a batch and behind the
// second, of the first batch and of later ones.
func TestAHandlerKilledBetweenOutputs(t *testing.T) {
	for _, count := range []int{1, 2, 3, 6}[:4/stride(2)] {
		t.Run(strconv.Itoa(count), func(t *testing.T) {
			t.Parallel()
			l, s := newLake(t), newSales(rand.New(rand.NewPCG(41, 42)))
			for range 4 {
				if err := s.drop(l, 3); err != nil {
					t.Fatal(err)
				}
			}
			if !killedInChild(t, l, "handler", outputCommitted, count) {
				t.Fatal("no run came by")
			}
			if audit, current := len(l.mustRows(t, auditName)), len(l.mustRows(t, currentName)); count == 1 && (audit == 0 || current != 0) {
				t.Fatalf("%d rows in the first output and %d in the second", audit, current)
			}
			mustRun(t, l.fanOut(t, newestOfBatch{}))
			if err := s.check(l); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sales lands rows with rising n for ids from a few, one of them without, and
// remembers what must come of them.
type sales struct {
	r      *rand.Rand
	n      int64
	all    []string
	newest map[int64]int64
}

func newSales(r *rand.Rand) *sales { return &sales{r: r, newest: map[int64]int64{}} }

func (s *sales) drop(l *lake, rows int) error {
	var text strings.Builder
	for range rows {
		s.n++
		if s.r.IntN(9) == 0 {
			fmt.Fprintf(&text, `{"id":null,"n":%d}`+"\n", s.n)
			continue
		}
		id := s.r.Int64N(6)
		fmt.Fprintf(&text, `{"id":%d,"n":%d}`+"\n", id, s.n)
		s.all = append(s.all, fmt.Sprintf(`{"id":%d,"n":%d}`, id, s.n))
		s.newest[id] = s.n
	}
	return l.drop(fmt.Sprintf("%06d.json", s.n), text.String(), 0)
}

func (s *sales) check(l *lake) error {
	audit, err := l.rows(auditName, "batch")
	if err != nil {
		return err
	}
	current, err := l.rows(currentName)
	if err != nil {
		return err
	}
	var newest []string
	for id, n := range s.newest {
		newest = append(newest, fmt.Sprintf(`{"id":%d,"n":%d}`, id, n))
	}
	slices.Sort(newest)
	all := slices.Clone(s.all)
	slices.Sort(all)
	if err := differ("audit", audit, all); err != nil {
		return err
	}
	return differ("current", current, newest)
}

// covers A126 A132 A133: every storage operation of a handler's flow goes wrong
// once, also between two outputs; the next run ends where an undisturbed one ends.
func TestAHandlersOutputsSurviveAnyFault(t *testing.T) {
	for mode := crashBefore; mode <= failAfter; mode++ {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k += stride(13) {
				l, s := newLake(t), newSales(rand.New(rand.NewPCG(31, 32)))
				for range 5 {
					if err := s.drop(l, 4); err != nil {
						t.Fatal(err)
					}
				}
				l.options["cloudFiles.maxFilesPerTrigger"] = "2"
				f := &faulty{k: k, mode: mode}
				l.wrap = f.wrap
				if _, err := Run(context.Background(), l.fanOut(t, newestOfBatch{}), nil); err != nil && (!f.hit || fault.CodeOf(err) == "") {
					t.Fatalf("operation %d: %v", k, err)
				}
				l.wrap = nil
				mustRun(t, l.fanOut(t, newestOfBatch{}))
				if err := s.check(l); err != nil {
					t.Fatalf("operation %d: %v", k, err)
				}
				if res := mustRun(t, l.fanOut(t, newestOfBatch{})); res.Batches != 0 {
					t.Fatalf("operation %d: %+v", k, res)
				}
				_ = os.RemoveAll(l.dir)
				if !f.hit {
					if k < 60 && !raceDetector {
						t.Fatalf("only %d operations", k)
					}
					return
				}
			}
		})
	}
}

// covers A126 A133: random arrivals and faults, with a table that merges by
// vectors or by rewriting, and another writer that changes it meanwhile.
func TestHistoriesOfAHandlerEndAsTheModelSays(t *testing.T) {
	for seed := 0; seed < lives(); seed += stride(5) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 126))
			l, s := newLake(t), newSales(r)
			if r.IntN(2) == 0 {
				properties := map[string]string{"delta.enableDeletionVectors": strconv.FormatBool(r.IntN(2) == 0), "delta.enableChangeDataFeed": "true"}
				if _, err := l.table(currentName).Commit(context.Background(), delta.Commit{Operation: "CREATE TABLE", Schema: currentColumns, Properties: properties}); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 + r.IntN(6) {
				for range r.IntN(4) {
					if err := s.drop(l, 1+r.IntN(6)); err != nil {
						t.Fatal(err)
					}
				}
				l.options["cloudFiles.maxFilesPerTrigger"] = strconv.Itoa(1 + r.IntN(3))
				f := &faulty{k: 1 + r.IntN(150), mode: faultMode(r.IntN(4))}
				if r.IntN(3) == 0 {
					f.k = 0
				}
				l.wrap = f.wrap
				if _, err := Run(context.Background(), l.fanOut(t, newestOfBatch{}), nil); err != nil && !f.hit {
					t.Fatal(err)
				}
				l.wrap = nil
				if r.IntN(3) == 0 {
					if _, err := l.table(currentName).Optimize(context.Background(), delta.OptimizeOptions{}); err != nil && fault.CodeOf(err) != "DELTA_TABLE_NOT_FOUND" {
						t.Fatal(err)
					}
				}
			}
			mustRun(t, l.fanOut(t, newestOfBatch{}))
			if len(s.all) > 0 {
				if err := s.check(l); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// covers A133 A134: batches count from 0, after a full refresh again; what a
// handler wrote before stays, so that rows are appended again and merged once.
func TestAFullRefreshOfAHandlerKeepsWhatItWrote(t *testing.T) {
	l, s := newLake(t), newSales(rand.New(rand.NewPCG(1, 2)))
	l.options["cloudFiles.maxFilesPerTrigger"] = "1"
	for range 2 {
		if err := s.drop(l, 3); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, l.fanOut(t, newestOfBatch{}))
	f := l.fanOut(t, newestOfBatch{})
	f.FullRefresh = true
	if res := mustRun(t, f); res.Batches != 2 || res.Generation != 1 {
		t.Fatalf("%+v", res)
	}
	batches := map[string]int{}
	for _, row := range l.mustRows(t, auditName) {
		var v struct{ Batch int64 }
		if err := json.Unmarshal([]byte(row), &v); err != nil {
			t.Fatal(err)
		}
		batches[fmt.Sprint(v.Batch)]++
	}
	if batches["0"]+batches["1"] != 2*len(s.all) || batches["0"] == 0 || batches["1"] == 0 {
		t.Error(batches)
	}
	s.all = append(s.all, s.all...)
	if err := s.check(l); err != nil {
		t.Error(err)
	}
}

func TestWhatAHandlerCannotMergeIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		rows    string
		keepAll bool
		keys    []string
		table   *arrow.Schema
		code    string
	}{
		"a key twice":               {`{"id":1,"n":1}` + "\n" + `{"id":1,"n":2}`, true, []string{"id"}, nil, "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"},
		"a key that is no column":   {`{"id":1,"n":1}`, false, []string{"key"}, nil, "MERGE_KEY_NOT_FOUND"},
		"a table with more columns": {`{"id":1,"n":1}`, false, []string{"id"}, auditColumns, "DELTA_MERGE_UNRESOLVED_EXPRESSION"},
		"two keys":                  {`{"id":1,"n":1}` + "\n" + `{"id":1,"n":2}`, true, []string{"id", "n"}, nil, "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"},
	} {
		l := newLake(t)
		l.mustDrop(t, "a.json", c.rows)
		if c.table != nil {
			if _, err := l.table(currentName).Commit(context.Background(), delta.Commit{Operation: "CREATE TABLE", Schema: c.table}); err != nil {
				t.Fatal(err)
			}
		}
		f := l.fanOut(t, newestOfBatch{keepAll: c.keepAll})
		f.Outputs[1].Keys = c.keys
		_, err := Run(context.Background(), f, nil)
		if !fault.Is(err, c.code) || !strings.Contains(err.Error(), currentName) {
			t.Errorf("%s: %v", name, err)
		}
		if rows := l.mustRows(t, auditName); len(rows) > 0 && c.code != "" && name != "a table with more columns" {
			t.Errorf("%s: %v is committed", name, rows)
		}
	}
}

// Two values of a key column have the same bytes only when they are equal, and
// values of neighbouring columns do not run together.
func TestKeysAreEqualWhenTheirBytesAre(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.BinaryTypes.String}, {Name: "b", Type: arrow.BinaryTypes.String}, {Name: "c", Type: arrow.PrimitiveTypes.Int64},
		{Name: "d", Type: &arrow.Decimal128Type{Precision: 20, Scale: 2}}, {Name: "e", Type: arrow.FixedWidthTypes.Boolean}, {Name: "f", Type: arrow.FixedWidthTypes.Date32}}, nil))
	defer b.Release()
	if err := b.UnmarshalJSON([]byte(`{"a":"x","b":"yz","c":1,"d":"1.10","e":true,"f":"2026-11-30"}`)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`{"a":"xy","b":"z","c":1,"d":"1.10","e":true,"f":"2026-11-30"}`, `{"a":"x","b":"yz","c":-1,"d":"1.10","e":true,"f":"2026-11-30"}`,
		`{"a":"x","b":"yz","c":1,"d":"-1.10","e":true,"f":"2026-11-30"}`, `{"a":"x","b":"yz","c":1,"d":"1.10","e":false,"f":"2026-11-30"}`,
		`{"a":"x","b":"yz","c":1,"d":"1.10","e":true,"f":"2026-12-01"}`, `{"a":"x","b":"yz","c":1,"d":"1.10","e":true,"f":"2026-11-30"}`} {
		if err := b.UnmarshalJSON([]byte(row)); err != nil {
			t.Fatal(err)
		}
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	seen := map[string]int{}
	for i := range int(rec.NumRows()) {
		var key []byte
		for _, c := range rec.Columns() {
			key = appendKey(key, c, i)
		}
		if first, ok := seen[string(key)]; ok && (first != 0 || i != 6) {
			t.Errorf("rows %d and %d have one key", first, i)
		}
		seen[string(key)] = i
	}
	if len(seen) != 6 {
		t.Errorf("%d keys", len(seen))
	}
}
