package delta

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
)

// keyedRows makes rows of dmlSchema with keys from first on.
func keyedRows(mem memory.Allocator, first, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, dmlSchema)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(first + i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("part ", i%97))
		b.Field(2).(*array.Int64Builder).Append(int64(i) * 31 % 1000)
	}
	return b.NewRecordBatch()
}

// benchTable makes a table of some files of as many rows each.
func benchTable(b *testing.B, properties map[string]string, files, rows int) *Table {
	b.Helper()
	store, err := storage.OpenDir(b.TempDir(), storage.NoSync)
	if err != nil {
		b.Fatal(err)
	}
	t := Open(store)
	if _, err := t.Commit(background, Commit{Schema: dmlSchema, Properties: properties}); err != nil {
		b.Fatal(err)
	}
	s, err := t.Snapshot(background)
	if err != nil {
		b.Fatal(err)
	}
	var add []AddFile
	for i := range files {
		w, err := t.Write(background, WriteOptions{Snapshot: s, Name: fmt.Sprintf("bench-%05d", i)})
		if err != nil {
			b.Fatal(err)
		}
		for from := 0; from < rows; from += 1 << 16 {
			rec := keyedRows(memory.DefaultAllocator, i*rows+from, min(1<<16, rows-from))
			err := w.Write(background, rec)
			rec.Release()
			if err != nil {
				b.Fatal(err)
			}
		}
		f, err := w.Close(background)
		if err != nil {
			b.Fatal(err)
		}
		add = append(add, f...)
	}
	if _, err := t.Commit(background, Commit{Read: s, Add: add}); err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkMutation changes 1,000 rows in 10 files: the cost must follow the
// change, whether the table has 10 files or 1,000, or files ten times as large.
func BenchmarkMutation(b *testing.B) {
	for _, feed := range []string{"false", "true"} {
		for _, size := range [][2]int{{10, 20_000}, {100, 20_000}, {1000, 20_000}, {10, 200_000}} {
			b.Run(fmt.Sprintf("feed=%s/files=%d/rows=%d", feed, size[0], size[1]), func(b *testing.B) {
				t := benchTable(b, map[string]string{"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": feed, "delta.checkpointInterval": "1000000"}, size[0], size[1])
				files, rows := 10, 100
				post := keyedRows(memory.DefaultAllocator, 0, rows)
				defer post.Release()
				round := 0
				for b.Loop() {
					s, err := t.Snapshot(background)
					if err != nil {
						b.Fatal(err)
					}
					m, err := s.Mutate(background, MutateOptions{})
					if err != nil {
						b.Fatal(err)
					}
					all, err := s.Files(background)
					if err != nil {
						b.Fatal(err)
					}
					at := NewRowSet()
					for i := range rows {
						at.Add(int64(round%150 + i*size[1]/rows))
					}
					touched := 0
					for _, f := range all {
						if n, _ := f.NumRecords(); n == int64(size[1]) && touched < files {
							touched++
							if err := m.Update(background, f, at, post); err != nil {
								b.Fatal(err)
							}
						}
					}
					round++
					if _, err := m.Commit(background, Commit{Operation: "MERGE"}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
