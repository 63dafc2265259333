package ingest

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// endless is a store with one object: text before, size bytes of x, text behind.
type endless struct {
	storage.Store
	before, behind string
	size           int64
}

func (e endless) Open(context.Context, string) (storage.Object, error) {
	body := io.MultiReader(strings.NewReader(e.before), io.LimitReader(exes{}, e.size), strings.NewReader(e.behind))
	return &endlessObject{Reader: body, size: e.size + int64(len(e.before)+len(e.behind))}, nil
}

type exes struct{}

var block = bytes.Repeat([]byte{'x'}, 1<<20)

func (exes) Read(p []byte) (int, error) { return copy(p, block), nil }

type endlessObject struct {
	io.Reader
	io.ReaderAt
	size int64
}

func (o *endlessObject) Close() error       { return nil }
func (o *endlessObject) Size() int64        { return o.size }
func (o *endlessObject) ModTime() time.Time { return time.Unix(0, 0) }

// A single line of 1 GB is a malformed record, not 1 GB of memory.
func TestAHugeLineIsNotMemory(t *testing.T) {
	for _, set := range [][]string{{"format=json"}, {"format=json", "multiLine=true"}, {"format=csv", "header=false"}} {
		store := endless{before: "{\"a\":1}\n{\"a\":\"", behind: "\"}\n{\"a\":3}\n", size: 1 << 30}
		s, err := Parse(ReadFiles, "/landing", opts(append(set, "schema=a STRING, _rescued_data STRING")...), Env{Open: func(string) (storage.Store, error) { return store, nil }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Read(context.Background(), s.declared(), []File{{Path: "/landing/big", Size: 1<<30 + 30}}, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows, most := int64(0), uint64(0)
		done := make(chan struct{})
		peak := make(chan uint64)
		go func() {
			for {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
				select {
				case <-done:
					peak <- most
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		for r.Next() {
			rows += r.RecordBatch().NumRows()
		}
		close(done)
		if top := <-peak; top > 400<<20 {
			t.Errorf("%v: a heap of %d MiB", set, top>>20)
		}
		if err := r.Err(); err != nil || rows != 3 || r.Stats().Malformed != 1 {
			t.Errorf("%v: %v, %d rows, %+v", set, err, rows, r.Stats())
		}
		r.Release()
	}
}
