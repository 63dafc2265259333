package state

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/storage"
)

// entry is one entry as the tests write it.
type entry struct {
	key   string
	order string
	kind  uint8
	time  int64
	value string
}

func (e entry) hash() rowcode.Hash { return rowcode.HashOf([]byte(e.key)) }

func (e entry) compare(o entry) int {
	if c := e.hash().Compare(o.hash()); c != 0 {
		return c
	}
	if c := bytes.Compare([]byte(e.key), []byte(o.key)); c != 0 {
		return c
	}
	return bytes.Compare([]byte(e.order), []byte(o.order))
}

var valueFieldsOfTests = []arrow.Field{
	{Name: "text", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}), Nullable: true},
}

// batch makes a batch of sorted entries.
func batch(mem memory.Allocator, entries []entry, values ...arrow.Field) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, Schema(values...))
	defer b.Release()
	for _, e := range entries {
		h := e.hash()
		b.Field(Hash).(*array.FixedSizeBinaryBuilder).Append(h[:])
		b.Field(Key).(*array.BinaryBuilder).AppendString(e.key)
		b.Field(Order).(*array.BinaryBuilder).AppendString(e.order)
		b.Field(Kind).(*array.Uint8Builder).Append(e.kind)
		row := rowcode.HashOf([]byte(e.value))
		b.Field(Row).(*array.FixedSizeBinaryBuilder).Append(row[:])
		b.Field(Tracked).(*array.FixedSizeBinaryBuilder).Append(row[:])
		b.Field(Time).(*array.Int64Builder).Append(e.time)
		for i := range values {
			appendValue(b.Field(Values+i), e.value)
		}
	}
	return b.NewRecordBatch()
}

func appendValue(b array.Builder, v string) {
	switch b := b.(type) {
	case *array.StringBuilder:
		if v == "" {
			b.AppendNull()
		} else {
			b.Append(v)
		}
	case *array.ListBuilder:
		b.Append(true)
		for _, c := range v {
			b.ValueBuilder().(*array.StringBuilder).Append(string(c))
		}
	case *array.StructBuilder:
		b.Append(true)
		b.FieldBuilder(0).(*array.Int32Builder).Append(int32(len(v)))
		if v == "" {
			b.FieldBuilder(1).AppendNull()
		} else {
			b.FieldBuilder(1).(*array.BooleanBuilder).Append(v[0]%2 == 0)
		}
	}
}

// entriesOf reads entries back, checking that values agree with each other.
func entriesOf(t testing.TB, rec arrow.RecordBatch) []entry {
	t.Helper()
	var out []entry
	for i := range int(rec.NumRows()) {
		e := entry{
			key:   rec.Column(Key).(*array.Binary).ValueString(i),
			order: rec.Column(Order).(*array.Binary).ValueString(i),
			kind:  rec.Column(Kind).(*array.Uint8).Value(i),
			time:  rec.Column(Time).(*array.Int64).Value(i),
		}
		if h := e.hash(); !bytes.Equal(rec.Column(Hash).(*array.FixedSizeBinary).Value(i), h[:]) {
			t.Fatalf("row %d has a foreign hash", i)
		}
		if rec.NumCols() > Values {
			if c := rec.Column(Values).(*array.String); c.IsValid(i) {
				e.value = c.Value(i)
			}
			row := rowcode.HashOf([]byte(e.value))
			if !bytes.Equal(rec.Column(Row).(*array.FixedSizeBinary).Value(i), row[:]) || !bytes.Equal(rec.Column(Tracked).(*array.FixedSizeBinary).Value(i), row[:]) {
				t.Fatalf("row %d has values of another", i)
			}
			want := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(valueFieldsOfTests[1:], nil))
			appendValue(want.Field(0), e.value)
			appendValue(want.Field(1), e.value)
			for f := range 2 {
				a := want.Field(f).NewArray()
				if !array.SliceEqual(a, 0, 1, rec.Column(Values+1+f), int64(i), int64(i+1)) {
					t.Fatalf("row %d column %d is %s", i, f, rec.Column(Values+1+f).ValueStr(i))
				}
				a.Release()
			}
			want.Release()
		}
		out = append(out, e)
	}
	return out
}

// write writes sorted entries as a run, in batches of any size.
func write(t testing.TB, s *Store, mem memory.Allocator, rng *rand.Rand, entries []entry, values ...arrow.Field) RunInfo {
	t.Helper()
	slices.SortFunc(entries, entry.compare)
	var recs []arrow.RecordBatch
	for i := 0; i < len(entries) || i == 0; {
		n := min(len(entries)-i, 1+rng.IntN(50))
		recs = append(recs, batch(mem, entries[i:i+n], values...))
		i += max(n, 1)
	}
	rows, err := array.NewRecordReader(Schema(values...), recs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		r.Release()
	}
	defer rows.Release()
	info, err := s.Write(context.Background(), rows)
	if err != nil {
		t.Fatal(err)
	}
	if info.Entries != int64(len(entries)) {
		t.Fatalf("a run of %d entries has %d", len(entries), info.Entries)
	}
	return info
}

// merged is what runs of entries mean, oldest first, by the rules as they are told.
func merged(runs [][]entry, perKey bool) []entry {
	type id struct{ key, order string }
	newest := map[id]entry{}
	last := map[string]int{}
	from := map[id]int{}
	for r, run := range runs {
		for _, e := range run {
			newest[id{e.key, e.order}], from[id{e.key, e.order}] = e, r
			last[e.key] = r
		}
	}
	var out []entry
	for k, e := range newest {
		if e.kind != Removed && (!perKey || from[k] == last[e.key]) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, entry.compare)
	return out
}

func testStore(t testing.TB, mem memory.Allocator) (*Store, *storage.Dir) {
	t.Helper()
	dir, err := storage.OpenDir(t.TempDir(), storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	s := Open(dir, t.TempDir(), mem)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func scanAll(t testing.TB, st *State, parts int) []entry {
	t.Helper()
	var out []entry
	for p := range parts {
		rows, err := st.Scan(context.Background(), p, parts)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			out = append(out, entriesOf(t, rows.RecordBatch())...)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		rows.Release()
	}
	return out
}

// seeds is how many histories a test tries; WEIR_SOAK asks for more.
func seeds(usual uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("WEIR_SOAK"), 10, 64); err == nil {
		return n
	}
	return usual
}

func randomRuns(rng *rand.Rand, perKey, values bool) [][]entry {
	runs := make([][]entry, 1+rng.IntN(6))
	keys := 1 + rng.IntN(200)
	for r := range runs {
		seen := map[string]bool{}
		for range 1 + rng.IntN(300) {
			e := entry{key: fmt.Sprint("k", rng.IntN(keys)), order: fmt.Sprint(rng.IntN(8)), kind: uint8(rng.IntN(3)), time: int64(r)}
			id := e.key + "/" + e.order
			if perKey {
				id = e.key
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			if values {
				e.value = fmt.Sprintf("%.*s", rng.IntN(9), "value of an entry")
			}
			runs[r] = append(runs[r], e)
		}
	}
	return runs
}
