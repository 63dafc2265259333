package delta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/weir-data/weir/host/storage"
)

// readMetric reads a counter of the runtime, without stopping the world.
func readMetric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func heapBytes() uint64      { return readMetric("/memory/classes/heap/objects:bytes") }
func allocatedBytes() uint64 { return readMetric("/gc/heap/allocs:bytes") }

// heapUse is what work does to the heap: how far it grows at most, garbage that
// has not been collected yet included, and what stays of it.
type heapUse struct{ peak, kept uint64 }

func (u heapUse) String() string {
	return fmt.Sprintf("peak %d MiB, kept %d MiB", u.peak>>20, u.kept>>20)
}

// measureHeap runs work, with little room for garbage so that the peak tells of what is needed.
func measureHeap(work func()) heapUse {
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	runtime.GC()
	before := heapBytes()
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := before
		for {
			most = max(most, heapBytes())
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	work()
	close(done)
	most := <-peak
	runtime.GC()
	after := heapBytes()
	return heapUse{max(most, after) - before, max(after, before) - before}
}

func skipUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector has a memory of its own")
	}
}

// frugally runs work on some bytes from outside and fails when it allocates,
// all in all, out of proportion to them.
func frugally(t *testing.T, size int, work func()) {
	t.Helper()
	before := allocatedBytes()
	work()
	if used, most := allocatedBytes()-before, uint64(512<<20+4096*size); used > most {
		t.Errorf("%d bytes make it allocate %d MiB", size, used>>20)
	}
}

// longLog writes commits by hand that add files files in all, which exist by name only.
func longLog(t *testing.T, dir string, files, commits int) {
	t.Helper()
	quote := func(v any) string {
		text, _ := json.Marshal(v) // strings
		return string(text)
	}
	if err := os.MkdirAll(filepath.Join(dir, logFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	columns := schemaString(&structType{[]*field{{name: "id", typ: &primitive{"long", primitives["long"]}, nullable: true}, {name: "customer", typ: &primitive{"string", primitives["string"]}, nullable: true}}})
	file := 0
	for v := range commits {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"commitInfo":{"timestamp":%d,"operation":"WRITE","operationParameters":{},"isBlindAppend":true}}`+"\n", 1_700_000_000_000+v)
		if v == 0 {
			b.WriteString(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint"],"writerFeatures":["v2Checkpoint"]}}` + "\n")
			fmt.Fprintf(&b, `{"metaData":{"id":"long","format":{"provider":"parquet","options":{}},"schemaString":%s,"partitionColumns":[],"configuration":{"delta.enableExpiredLogCleanup":"false","delta.checkpointInterval":"1000000"}}}`+"\n", quote(columns))
		}
		for ; file < (v+1)*files/commits; file++ {
			h := uint64(file+1) * 0x9E3779B97F4A7C15
			stats := fmt.Sprintf(`{"numRecords":1000,"minValues":{"id":%d,"customer":"customer-%06d"},"maxValues":{"id":%d,"customer":"customer-%06d"},"nullCount":{"id":0,"customer":%d}}`,
				file*1000, h%1000000, file*1000+999, h>>44, h%7)
			fmt.Fprintf(&b, `{"add":{"path":"part-00000-%016x-c000.zstd.parquet","partitionValues":{},"size":%d,"modificationTime":%d,"dataChange":true,"stats":%s}}`+"\n",
				h, 100_000+h%100_000, 1_700_000_000_000+file, quote(stats))
		}
		if err := os.WriteFile(filepath.Join(dir, commitName(int64(v))), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// covers the acceptance line "a 100,000-file, 10,000-commit table opens in
// bounded memory". A table of 100,000 files and 10,000 commits is opened in memory for its files,
// about half a kilobyte each: what the log says on the way is not held. Later
// versions and listings take what they add.
func TestAVeryLargeTableOpensInBoundedMemory(t *testing.T) {
	skipUnderRace(t)
	if testing.Short() {
		t.Skip("writes 10,000 commits")
	}
	const files, commits = 100_000, 10_000
	dir := t.TempDir()
	longLog(t, dir, files, commits)
	store, err := storage.OpenDir(dir, storage.NoSync)
	if err != nil {
		t.Fatal(err)
	}
	open := func(what string) *Table {
		t.Helper()
		table := Open(store)
		var s *Snapshot
		use := measureHeap(func() {
			if s, err = table.Snapshot(background); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %v", what, use)
		if s.NumFiles() != files || s.Version() < commits-1 {
			t.Fatalf("%s: %d files at version %d", what, s.NumFiles(), s.Version())
		}
		if use.kept > 120<<20 || use.peak > 300<<20 {
			t.Errorf("%s: %v", what, use)
		}
		use = measureHeap(func() {
			r, err := s.FileStats(background)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			n := int64(0)
			for r.Next() {
				n += r.RecordBatch().NumRows()
			}
			if n != files || r.Err() != nil {
				t.Errorf("%s: %d files are listed, %v", what, n, r.Err())
			}
		})
		t.Logf("%s, listed: %v", what, use)
		if use.peak > 200<<20 {
			t.Errorf("%s, listed: %v", what, use)
		}
		return table
	}
	table := open("commits alone")
	for _, form := range []CheckpointForm{CheckpointV2, CheckpointClassic} {
		use := measureHeap(func() {
			if _, err := table.Checkpoint(background, form); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("writing the %s checkpoint: %v", form, use)
		if use.peak > 300<<20 {
			t.Errorf("writing the %s checkpoint: %v", form, use)
		}
		table = open(string(form))
	}
	s, err := table.Snapshot(background)
	if err != nil {
		t.Fatal(err)
	}
	more := AddFile{Path: "one-more.parquet", PartitionValues: map[string]*string{}, Size: 1, DataChange: true}
	before := allocatedBytes()
	if _, err := table.Commit(background, Commit{Read: s, Add: []AddFile{more}}); err != nil {
		t.Fatal(err)
	}
	if s, err = table.Snapshot(background); err != nil || s.NumFiles() != files+1 {
		t.Fatal(s.NumFiles(), err)
	}
	if grew := allocatedBytes() - before; grew > 4<<20 {
		t.Errorf("one more commit allocates %d KiB", grew>>10)
	}
}

// largeFile puts a file of one row group into the table, with texts of a size:
// each its own, or all the same, which are stored once.
func (f *fixture) largeFile(name string, rows, size int, same bool) AddFile {
	f.t.Helper()
	out, err := f.store.Create(background, name)
	if err != nil {
		f.t.Fatal(err)
	}
	props := parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(1<<40), parquet.WithDictionaryDefault(same), parquet.WithDictionaryPageSizeLimit(4<<20))
	w, err := pqarrow.NewFileWriter(plain, struct{ io.Writer }{out}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		f.t.Fatal(err)
	}
	text := bytes.Repeat([]byte{'x'}, size)
	for from := 0; from < rows; {
		b := array.NewRecordBuilder(memory.NewGoAllocator(), plain)
		for n := 0; n < 4<<20 && from < rows; n += size {
			if !same {
				copy(text, fmt.Sprintf("%09d", from))
			}
			b.Field(0).(*array.Int64Builder).Append(int64(from))
			b.Field(1).(*array.StringBuilder).Append(string(text))
			from++
		}
		rec := b.NewRecordBatch()
		err := w.WriteBuffered(rec)
		rec.Release()
		b.Release()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), out.Commit()); err != nil {
		f.t.Fatal(err)
	}
	info, err := f.store.Stat(background, name)
	if err != nil {
		f.t.Fatal(err)
	}
	return AddFile{Path: name, Size: info.Size, PartitionValues: map[string]*string{}, DataChange: true, Stats: fmt.Sprintf(`{"numRecords":%d}`, rows)}
}

// A file is read by pieces of its row groups, however large those are, and
// batches are as small as large rows make them.
func TestALargeFileIsScannedInBoundedMemory(t *testing.T) {
	skipUnderRace(t)
	const most = 224 << 20 // less than the files and what they unfold to
	for _, c := range []struct {
		name       string
		rows, size int
		same       bool
	}{
		{"one row group of 300 MiB", 300_000, 1 << 10, false},
		{"rows of 1 MiB", 300, 1 << 20, false},
		{"one value of 64 KiB again and again", 20_000, 64 << 10, true},
		{"one value of 1 MiB again and again", 1_000, 1 << 20, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.commit(Commit{Schema: plain})
			add := f.largeFile("large.parquet", c.rows, c.size, c.same)
			f.commit(Commit{Read: f.snapshot(), Add: []AddFile{add}})
			s := f.snapshot()
			rows := int64(0)
			use := measureHeap(func() {
				r, err := s.Scan(context.Background(), ScanOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Release()
				for r.Next() {
					rec := r.RecordBatch()
					if first := rec.Column(0).(*array.Int64).Value(0); first != rows {
						t.Fatalf("row %d comes for %d", first, rows)
					}
					rows += rec.NumRows()
				}
				if err := r.Err(); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("a file of %d MiB: %v", add.Size>>20, use)
			if rows != int64(c.rows) || use.peak > most {
				t.Errorf("%d rows, %v", rows, use)
			}
		})
	}
}

// Values that the schema of a file makes a gigabyte long are refused before there is memory for them.
func TestAFileThatPromisesHugeValuesIsRefused(t *testing.T) {
	f := newFixture(t)
	columns := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{
		schema.NewFixedLenByteArrayNode("s", parquet.Repetitions.Optional, 1<<30, -1),
	}, -1))
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, columns, file.WithWriterProps(parquet.NewWriterProperties(parquet.WithDictionaryDefault(false), parquet.WithStats(false))))
	group, err := w.AppendRowGroupChecked()
	if err != nil {
		t.Fatal(err)
	}
	col, err := group.NextColumn()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := col.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch(nil, make([]int16, 100), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Put(background, "huge.parquet", b.Bytes()); err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Schema: plain})
	f.commit(Commit{Read: f.snapshot(), Add: []AddFile{{Path: "huge.parquet", Size: int64(b.Len()), PartitionValues: map[string]*string{}, DataChange: true}}})
	s := f.snapshot()
	use := measureHeap(func() { _, err = scanRows(background, s, ScanOptions{}, nil) })
	if err == nil || use.peak > 128<<20 {
		t.Errorf("%v, %v", err, use)
	}
	coded(t, err)
	t.Log(err, use)
}
