package delta

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// memObject is an open object in memory.
type memObject struct {
	*bytes.Reader
	storage.Object
}

func (o memObject) Read(p []byte) (int, error)              { return o.Reader.Read(p) }
func (o memObject) ReadAt(p []byte, off int64) (int, error) { return o.Reader.ReadAt(p, off) }
func (o memObject) Size() int64                             { return o.Reader.Size() }
func (o memObject) Close() error                            { return nil }

// coded fails the test when an error has no code.
func coded(t *testing.T, err error) {
	t.Helper()
	if err != nil && !strings.HasPrefix(fault.CodeOf(err), "DELTA_") {
		t.Errorf("no code: %v", err)
	}
}

// FuzzLog feeds one commit: it is a table, or an error with a code.
func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":["a"],"configuration":{"delta.columnMapping.mode":"id"}}}
{"add":{"path":"a=1/x%20y","partitionValues":{"a":"1"},"size":1,"modificationTime":1,"dataChange":true,"stats":"{\"numRecords\":3}","deletionVector":{"storageType":"i","pathOrInlineDv":"wi5b=","sizeInBytes":4,"cardinality":1}}}
{"txn":{"appId":"x","version":1}}`))
	f.Add([]byte(`{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":[]}} {"metaData":{"schemaString":"{\"type\":\"struct\",\"fields\":[]}"}}`))
	f.Add([]byte(`{"commitInfo":{"timestamp":"x","operationParameters":[1]}}{"remove":{"path":"%"}}{"domainMetadata":{"domain":"delta.clustering","configuration":"{","removed":false}}`))
	f.Add([]byte(`{"metaData":{"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"m\",\"type\":{\"type\":\"map\",\"keyType\":\"string\",\"valueType\":{\"type\":\"array\",\"elementType\":\"decimal(38,38)\"}}}]}"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			c, err := decodeActions(data)
			if err != nil {
				coded(t, err)
				return
			}
			r := newReplay(Open(nil), nil)
			if err := r.apply(c, 0); err != nil {
				coded(t, err)
				return
			}
			s, err := r.finish()
			if err != nil {
				coded(t, err)
				return
			}
			files, err := s.Files(context.Background())
			coded(t, err)
			for i := range files {
				files[i].NumRecords()
				_, err := s.partitionArrays(&files[i])
				coded(t, err)
			}
			coded(t, checkWritable(s.protocol, s.metadata, s.schema))
			// What was read can be written and read again.
			again, err := parseSchema(schemaString(s.schema))
			if err != nil || schemaString(again) != schemaString(s.schema) {
				t.Errorf("%s: %v", schemaString(s.schema), err)
			}
		})
	})
}

// partitionArrays reads the partition values of a file.
func (s *Snapshot) partitionArrays(add *AddFile) (int, error) {
	for _, f := range s.schema.fields {
		c, err := s.partitionColumn(add, f)
		if err != nil {
			return 0, err
		}
		arr, err := c.next(2)
		if err != nil {
			return 0, err
		}
		arr.Release()
	}
	return len(s.schema.fields), nil
}

// FuzzCheckpoint feeds a Parquet file as a checkpoint.
func FuzzCheckpoint(f *testing.F) {
	x := newFixture(f)
	s := x.create()
	for i := range 3 {
		x.commit(Commit{Read: x.snapshot(), Add: x.files(s, string(rune('a'+i))), Txn: &Txn{AppID: "x", Version: int64(i)}})
	}
	var b bytes.Buffer
	if _, err := x.table.Checkpoint(background, CheckpointClassic); err != nil {
		f.Fatal(err)
	}
	data, err := x.store.Get(background, checkpointName(3))
	if err != nil {
		f.Fatal(err)
	}
	b.Write(data)
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			table := Open(nil, WithAllocator(memory.NewGoAllocator()))
			pq, err := table.newParquetReader(memObject{Reader: bytes.NewReader(data)})
			if err != nil {
				return // openParquet gives it a code
			}
			c, err := table.decodeCheckpoint(context.Background(), pq, int64(len(data)))
			if err == nil {
				r := newReplay(table, nil)
				r.s.version = 3
				err = r.takeCheckpoint(c)
			}
			coded(t, err)
		})
	})
}

// FuzzDataFile feeds a Parquet file as a data file of a table.
func FuzzDataFile(f *testing.F) {
	x := newFixture(f)
	files := x.write(WriteOptions{Schema: allTypes(true), Name: "n"}, allTypesRows)
	x.commit(Commit{Schema: allTypes(true), Add: files})
	data, err := x.store.Get(background, files[0].Path)
	if err != nil {
		f.Fatal(err)
	}
	snapshot := x.snapshot()
	f.Add(data)
	f.Add(data[:len(data)-9])
	f.Fuzz(func(t *testing.T, data []byte) {
		frugally(t, len(data), func() {
			s := *snapshot
			s.table = Open(nil, WithOutside(func(context.Context, string) (storage.Object, error) {
				return memObject{Reader: bytes.NewReader(data)}, nil
			}))
			_, err := countRowsOf(&s, AddFile{Path: "/outside"})
			coded(t, err)
		})
	})
}

func countRowsOf(s *Snapshot, add AddFile) (n int64, err error) {
	r, err := s.Scan(background, ScanOptions{Files: []AddFile{add}})
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}
