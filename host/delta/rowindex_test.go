package delta

import (
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
)

func TestTheRowIndexIsThePlaceInTheFile(t *testing.T) {
	f := newFixture(t)
	s := f.create()
	add := f.write(WriteOptions{Snapshot: s, Name: "n"}, `[{"s":"a"},{"s":"b"},{"s":"c"},{"s":"d"},{"s":"e"}]`)
	raw := encodeDV(1, 2)
	add[0].DeletionVector = &DeletionVector{StorageType: "i", PathOrInlineDv: encodeZ85(raw), SizeInBytes: int32(len(raw)), Cardinality: 2}
	add = append(add, f.write(WriteOptions{Snapshot: s, Name: "o"}, `[{"s":"f"},{"s":"g"}]`)...)
	f.commit(Commit{Read: s, Add: add})
	for _, rows := range []int{1, 2, 3, 100} {
		for _, columns := range [][]string{{"s"}, {}} {
			r, err := f.snapshot().Scan(background, ScanOptions{Columns: columns, RowIndex: true, BatchRows: rows})
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			last := r.Schema().NumFields() - 1
			if name := r.Schema().Field(last).Name; name != RowIndexColumn {
				t.Error(name)
			}
			for r.Next() {
				got = slices.Concat(got, r.RecordBatch().Column(last).(*array.Int64).Int64Values())
			}
			if r.Err() != nil || fmt.Sprint(got) != "[0 3 4 0 1]" {
				t.Errorf("batches of %d: %v, %v", rows, got, r.Err())
			}
			r.Release()
		}
	}
}
