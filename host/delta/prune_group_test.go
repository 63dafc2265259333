package delta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Row groups that are left out hold no row for which the condition is true, and
// the rows of the others keep their places, whoever wrote the file and how.
func TestRowGroupsThatAreLeftOutHoldNoRow(t *testing.T) {
	whole, read := 0, 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 9))
		f := newFixture(t)
		schema := arrow.NewSchema(prunedSchema.Fields()[1:], nil) // without the partition column
		f.commit(Commit{Schema: prunedSchema, PartitionBy: []string{"part"}})
		b := array.NewRecordBuilder(f.mem, schema)
		const rows = 20
		for range rows {
			for j, field := range schema.Fields() {
				appendRandom(r, b.Field(j), field.Type)
			}
		}
		rec := b.NewRecordBatch()
		b.Release()
		var out bytes.Buffer
		opts := []parquet.WriterProperty{parquet.WithMaxRowGroupLength(int64(1 + r.IntN(5))), parquet.WithCompression(compress.Codecs.Snappy), parquet.WithAllocator(f.mem)}
		if seed%3 == 0 {
			opts = append(opts, parquet.WithStoreDecimalAsInteger(true), parquet.WithVersion(parquet.V1_0))
		}
		arrowOpts := pqarrow.NewArrowWriterProperties(pqarrow.WithDeprecatedInt96Timestamps(seed%4 == 1))
		if seed%4 == 2 {
			arrowOpts = pqarrow.NewArrowWriterProperties(pqarrow.WithCoerceTimestamps(arrow.Millisecond), pqarrow.WithTruncatedTimestamps(true))
		}
		w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(opts...), arrowOpts)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.store.Put(background, "f.parquet", out.Bytes()); err != nil {
			t.Fatal(err)
		}
		part := "a"
		file := AddFile{Path: "f.parquet", Size: int64(out.Len()), PartitionValues: map[string]*string{"part": &part}, DataChange: true}
		if seed%2 == 0 {
			file = withRows(file, 3, 7, 11, 19)
		}
		f.commit(Commit{Read: f.snapshot(), Add: []AddFile{file}})
		s := f.snapshot()
		all, err := s.Scan(background, ScanOptions{RowIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		if !all.Next() {
			t.Fatal(all.Err())
		}
		text := recordRows(all.RecordBatch(), nil)
		for range 30 {
			p := randomPredicate(r, 2)
			got, err := scanRows(background, s, ScanOptions{RowIndex: true, Where: p, BatchRows: 3 + r.IntN(50)}, nil)
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, p, err)
			}
			whole += len(text)
			read += len(got)
			next := 0
			for i, row := range text {
				switch {
				case next < len(got) && got[next] == row:
					next++
				case holds(p, all.RecordBatch(), i, false) == maybeTrue:
					t.Fatalf("seed %d: %s %v leaves out %s", seed, p, p.values, row)
				}
			}
			if next != len(got) {
				t.Fatalf("seed %d: %s gives rows that the whole scan has not:\n%s", seed, p, strings.Join(got[next:], "\n"))
			}
		}
		all.Release()
	}
	if read > whole*3/4 {
		t.Errorf("%d of %d rows were read: nothing is proven", read, whole)
	}
}

// What a file lacks is NULL in its rows, which a condition may rule out.
func TestRowGroupsOfFilesWithoutTheColumnAreLeftOut(t *testing.T) {
	f := newFixture(t)
	long := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	more := arrow.NewSchema([]arrow.Field{long.Field(0), {Name: "more", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	f.commit(Commit{Schema: more, Add: []AddFile{f.dataFile("a.parquet", long, ids(0, 6))}}) // row groups of two
	for _, c := range []struct {
		where *Predicate
		want  []int
	}{
		{Compare([]string{"more"}, Equal, "x"), nil},
		{IsNull([]string{"more"}), []int{0, 1, 2, 3, 4, 5}},
		{Compare([]string{"id"}, Equal, 3), []int{2, 3}},
		{Or(Compare([]string{"id"}, Less, 1), Compare([]string{"id"}, Greater, 4)), []int{0, 1, 4, 5}},
	} {
		got, err := scanRows(background, f.snapshot(), ScanOptions{Where: c.where, Columns: []string{"id"}}, nil)
		var want []string
		for _, id := range c.want {
			want = append(want, fmt.Sprintf("id=%d|", id))
		}
		if err != nil || !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %v, %v, want %v", c.where, got, err, want)
		}
	}
}
