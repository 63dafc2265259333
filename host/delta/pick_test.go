package delta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// foreignFile puts a Parquet file of small row groups and pages into the table, as another writer may.
func (f *fixture) foreignFile(name string, rec arrow.RecordBatch, groupRows int64) AddFile {
	f.t.Helper()
	var b bytes.Buffer
	props := parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(groupRows), parquet.WithDataPageSize(256), parquet.WithBatchSize(16),
		parquet.WithPageIndexEnabled(true), parquet.WithAllocator(f.mem))
	w, err := pqarrow.NewFileWriter(rec.Schema(), &b, props, pqarrow.NewArrowWriterProperties(pqarrow.WithDeprecatedInt96Timestamps(true)))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := w.Write(rec); err != nil {
		f.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
	if err := f.store.Put(background, name, b.Bytes()); err != nil {
		f.t.Fatal(err)
	}
	return AddFile{Path: name, Size: int64(b.Len()), PartitionValues: map[string]*string{}, DataChange: true,
		Stats: fmt.Sprintf(`{"numRecords":%d}`, rec.NumRows())}
}

// Rows that are picked by their positions are those that a scan of the file gives there.
func TestPickedRowsAreThoseOfTheWholeScan(t *testing.T) {
	f := newFixture(t)
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "st", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
		{Name: "ts", Type: utc, Nullable: true},
	}, nil)
	f.commit(Commit{Schema: schema, Operation: "CREATE TABLE"})
	rng := rand.New(rand.NewPCG(3, 3))
	const rows = 1000
	var json []string
	for i := range rows {
		fields := []string{fmt.Sprintf(`"id":%d`, i)}
		for _, v := range []string{fmt.Sprintf(`"s":"v%d"`, rng.IntN(40)), fmt.Sprintf(`"l":[%d,null,%d]`, i, i), `"l":[]`, fmt.Sprintf(`"st":{"a":%d}`, i),
			fmt.Sprintf(`"ts":"2020-01-01T00:00:%02d.000001Z"`, i%60)} {
			if rng.IntN(3) > 0 && !strings.Contains(strings.Join(fields, ","), v[:4]) {
				fields = append(fields, v)
			}
		}
		json = append(json, "{"+strings.Join(fields, ",")+"}")
	}
	rec := f.batch(schema, "["+strings.Join(json, ",")+"]")
	defer rec.Release()
	file := f.foreignFile("foreign.parquet", rec, 137)
	deleted := NewRowSet()
	for i := range int64(rows) {
		if rng.IntN(10) == 0 {
			deleted.Add(i)
		}
	}
	raw := encodeDV(uints(deleted)...)
	file.DeletionVector = &DeletionVector{StorageType: "i", PathOrInlineDv: encodeZ85(raw), SizeInBytes: int32(len(raw)), Cardinality: deleted.Len()}
	f.commit(Commit{Read: f.snapshot(), Add: []AddFile{file}})
	s := f.snapshot()
	whole, err := scanRows(background, s, ScanOptions{RowIndex: true}, nil)
	if err != nil || int64(len(whole)) != rows-deleted.Len() {
		t.Fatal(len(whole), err)
	}
	for round := range 60 {
		only := NewRowSet()
		switch round % 3 {
		case 0:
			for range 1 + rng.IntN(5) {
				only.Add(rng.Int64N(rows))
			}
		case 1:
			from := rng.Int64N(rows)
			only.AddRange(from, min(rows, from+rng.Int64N(300)))
		default:
			for i := range int64(rows) {
				if rng.IntN(3) == 0 {
					only.Add(i)
				}
			}
		}
		opt := ScanOptions{RowIndex: true, BatchRows: []int{1, 50, 137, 5000}[rng.IntN(4)]}
		r, err := s.pick(background, &file, only, opt)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for r.Next() {
			got = append(got, recordRows(r.RecordBatch(), nil)...)
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		r.Release()
		var want []string
		for _, row := range whole {
			var at int64
			if _, err := fmt.Sscanf(row[strings.LastIndex(row, RowIndexColumn+"=")+len(RowIndexColumn)+1:], "%d", &at); err != nil {
				t.Fatal(err)
			}
			if only.Contains(at) {
				want = append(want, row)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, batches of %d: got %d rows, want %d", round, opt.BatchRows, len(got), len(want))
		}
	}
}

func uints(s *RowSet) (out []uint64) {
	for r := range s.All() {
		out = append(out, uint64(r))
	}
	return out
}
