package delta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/storage"
)

// orders makes a batch like a bronze table's: keys, texts, numbers, a list of items.
func orders(rows int) arrow.RecordBatch {
	col := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	item := arrow.StructOf(col("sku", arrow.BinaryTypes.String), col("qty", arrow.PrimitiveTypes.Int64))
	schema := arrow.NewSchema([]arrow.Field{
		col("order_id", arrow.BinaryTypes.String), col("customer", arrow.PrimitiveTypes.Int64), col("status", arrow.BinaryTypes.String),
		col("total", &arrow.Decimal128Type{Precision: 18, Scale: 2}), col("created", utc), col("score", arrow.PrimitiveTypes.Float64),
		col("items", arrow.ListOf(item)), col("_rescued_data", arrow.BinaryTypes.String),
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range rows {
		h := uint64(i) * 0x9E3779B97F4A7C15
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("ord-%016x", h))
		b.Field(1).(*array.Int64Builder).Append(int64(h >> 44))
		b.Field(2).(*array.StringBuilder).Append([]string{"open", "paid", "shipped"}[h>>62%3])
		if err := b.Field(3).AppendValueFromString(fmt.Sprintf("%d.%02d", h>>50, h%100)); err != nil {
			panic(err)
		}
		b.Field(4).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(h>>30)))
		b.Field(5).(*array.Float64Builder).Append(float64(h>>40) / 1000)
		l := b.Field(6).(*array.ListBuilder)
		l.Append(true)
		s := l.ValueBuilder().(*array.StructBuilder)
		for j := range h >> 61 % 4 {
			s.Append(true)
			s.FieldBuilder(0).(*array.StringBuilder).Append(fmt.Sprintf("sku-%d", (h>>20+j)%5000))
			s.FieldBuilder(1).(*array.Int64Builder).Append(int64(j + 1))
		}
		b.Field(7).AppendNull()
	}
	return b.NewRecordBatch()
}

func BenchmarkWrite(b *testing.B) {
	store, err := storage.OpenDir(b.TempDir(), storage.NoSync)
	if err != nil {
		b.Fatal(err)
	}
	const rows, batch = 256 << 10, 16 << 10
	rec := orders(batch)
	defer rec.Release()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		w, err := Open(store).Write(background, WriteOptions{Schema: rec.Schema(), Name: "n"})
		if err != nil {
			b.Fatal(err)
		}
		for range rows / batch {
			if err := w.Write(background, rec); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Close(background); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkScan(b *testing.B) {
	store, err := storage.OpenDir(b.TempDir(), storage.NoSync)
	if err != nil {
		b.Fatal(err)
	}
	t := Open(store)
	rec := orders(64 << 10)
	defer rec.Release()
	w, err := t.Write(background, WriteOptions{Schema: rec.Schema(), Name: "n"})
	if err != nil {
		b.Fatal(err)
	}
	for range 4 {
		if err := w.Write(background, rec); err != nil {
			b.Fatal(err)
		}
	}
	files, err := w.Close(background)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := t.Commit(background, Commit{Schema: rec.Schema(), Add: files}); err != nil {
		b.Fatal(err)
	}
	s, err := t.Snapshot(background)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if n, err := countRows(background, s, 0); err != nil || n != 256<<10 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(256<<10)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkOpen opens a table of many files behind a checkpoint and lists them with statistics.
func BenchmarkOpen(b *testing.B) {
	store, err := storage.OpenDir(b.TempDir(), storage.NoSync)
	if err != nil {
		b.Fatal(err)
	}
	t := Open(store)
	const files = 100_000
	add := make([]AddFile, files)
	for i := range add {
		add[i] = AddFile{Path: fmt.Sprintf("part-00000-%08d-c000.zstd.parquet", i), PartitionValues: map[string]*string{}, Size: 1000, ModificationTime: 1, DataChange: true,
			Stats: fmt.Sprintf(`{"numRecords":%d,"minValues":{"id":%d,"s":"abc"},"maxValues":{"id":%d,"s":"xyz"},"nullCount":{"id":0,"s":3}}`, 100+i%7, i, i+1000)}
	}
	for i := range 10 {
		c := Commit{Schema: plain, Add: add[i*files/10 : (i+1)*files/10]}
		if i > 0 {
			if c.Read, err = t.Snapshot(background); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := t.Commit(background, c); err != nil {
			b.Fatal(err)
		}
	}
	for _, mode := range []string{"commits", "checkpoint"} {
		b.Run(mode, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(store).Snapshot(background)
				if err != nil {
					b.Fatal(err)
				}
				if list, err := s.Files(background); err != nil || len(list) != files {
					b.Fatal(len(list), err)
				}
				if _, err := s.LiveRows(); err != nil {
					b.Fatal(err)
				}
			}
		})
		s, err := t.Snapshot(background)
		if err != nil {
			b.Fatal(err)
		}
		if res, err := t.Commit(background, Commit{Read: s}); err != nil || res.CheckpointError != nil {
			b.Fatal(err, res.CheckpointError)
		}
	}
}

// BenchmarkPruneFiles asks 10,000 files with statistics of ten columns whether
// they may hold a row: what a query of a large table does before it reads.
func BenchmarkPruneFiles(b *testing.B) {
	var fields, low, high, nulls []string
	for i := range 10 {
		fields = append(fields, fmt.Sprintf(`{"name":"column_%d","type":"long","nullable":true,"metadata":{}}`, i))
		low, high, nulls = append(low, fmt.Sprintf(`"column_%d":%%[1]d`, i)), append(high, fmt.Sprintf(`"column_%d":%%[2]d`, i)), append(nulls, fmt.Sprintf(`"column_%d":0`, i))
	}
	schema, err := parseSchema(`{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`)
	if err != nil {
		b.Fatal(err)
	}
	s := &Snapshot{schema: schema, mapping: "none", metadata: &Metadata{}}
	stats := `{"numRecords":1000,"minValues":{` + strings.Join(low, ",") + `},"maxValues":{` + strings.Join(high, ",") + `},"nullCount":{` + strings.Join(nulls, ",") + `}}`
	files := make([]AddFile, 10_000)
	for i := range files {
		files[i].Stats = fmt.Sprintf(stats, i*1000, i*1000+999)
	}
	pr, err := s.prune(And(Compare([]string{"column_3"}, GreaterOrEqual, 5_000_500), Compare([]string{"column_7"}, Less, 5_001_500)))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		kept := 0
		for i := range files {
			if pr.mayHold(&files[i]) {
				kept++
			}
		}
		if kept != 2 {
			b.Fatal(kept)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(files)), "ns/file")
}
