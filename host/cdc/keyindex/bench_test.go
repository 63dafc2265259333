package keyindex

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/storage"
)

var benchSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "amount", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "seen", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

func benchRows(ids []int64, seen int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, benchSchema)
	defer b.Release()
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("customer %d of %d", id*7919%1000003, id%97))
		b.Field(2).(*array.Float64Builder).Append(float64(id*31%100000) / 100)
		b.Field(3).(*array.Int64Builder).Append(seen)
	}
	return b.NewRecordBatch()
}

func benchTable(b *testing.B, n int) *delta.Table {
	b.Helper()
	store, err := storage.OpenDir(filepath.Join(b.TempDir(), "table"))
	if err != nil {
		b.Fatal(err)
	}
	t := delta.Open(store)
	if _, err := t.Commit(background, delta.Commit{Schema: benchSchema, Properties: map[string]string{"delta.enableDeletionVectors": "true"}}); err != nil {
		b.Fatal(err)
	}
	s, err := t.Snapshot(background)
	if err != nil {
		b.Fatal(err)
	}
	w, err := t.Write(background, delta.WriteOptions{Snapshot: s, Name: "load"})
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]int64, 0, 1<<16)
	for from := 0; from < n; from += cap(ids) {
		ids = ids[:0]
		for i := from; i < min(n, from+cap(ids)); i++ {
			ids = append(ids, int64(i))
		}
		rec := benchRows(ids, 0)
		if err := w.Write(background, rec); err != nil {
			b.Fatal(err)
		}
		rec.Release()
	}
	add, err := w.Close(background)
	if err == nil {
		_, err = t.Commit(background, delta.Commit{Read: s, Add: add})
	}
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkChanges finds and replaces 10,000 random rows of tables of several
// sizes, each time as a new process would: what it costs must follow the change.
func BenchmarkChanges(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		t := benchTable(b, n)
		opt := Options{Cache: b.TempDir(), Table: "t", Keys: []string{"id"}}
		s, err := t.Snapshot(background)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("build/rows=%d", n), func(b *testing.B) {
			for b.Loop() {
				o := opt
				o.Cache = b.TempDir()
				x := Open(o)
				if err := x.Build(background, s); err != nil {
					b.Fatal(err)
				}
				_ = x.Close()
			}
		})
		rng := rand.New(rand.NewPCG(1, 1))
		pick := func() ([]int64, arrow.RecordBatch, []rowcode.Hash) {
			seen := map[int64]bool{}
			var ids []int64
			for len(ids) < 10_000 {
				if id := rng.Int64N(int64(n)); !seen[id] {
					seen[id] = true
					ids = append(ids, id)
				}
			}
			rec := benchRows(ids, 1)
			hashes, err := IDs(rec, []int{0}, -1)
			if err != nil {
				b.Fatal(err)
			}
			return ids, rec, hashes
		}
		x := Open(opt)
		if err := x.Build(background, s); err != nil {
			b.Fatal(err)
		}
		_ = x.Close()
		b.Run(fmt.Sprintf("locate/rows=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				_, rec, hashes := pick()
				rec.Release()
				x := Open(opt)
				b.StartTimer()
				if _, err := x.Locate(background, s, hashes); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = x.Close()
				b.StartTimer()
			}
		})
		b.Run(fmt.Sprintf("apply/rows=%d", n), func(b *testing.B) {
			x := Open(opt)
			defer x.Close()
			for b.Loop() {
				b.StopTimer()
				ids, rec, hashes := pick()
				rec.Release()
				b.StartTimer()
				s, err := t.Snapshot(background)
				if err != nil {
					b.Fatal(err)
				}
				places, err := x.Locate(background, s, hashes)
				if err != nil {
					b.Fatal(err)
				}
				m, err := s.Mutate(background, delta.MutateOptions{})
				if err != nil {
					b.Fatal(err)
				}
				for _, g := range Group(places) {
					some := make([]int64, len(g.At))
					for i, at := range g.At {
						some[i] = ids[at]
					}
					post := benchRows(some, 2)
					if err := m.Update(background, *g.File, g.Set(), post); err != nil {
						b.Fatal(err)
					}
					post.Release()
				}
				if _, err := m.Commit(background, delta.Commit{Operation: "MERGE"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
