package plugin

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// endless gives one batch over and over.
type endless struct {
	array.RecordReader
	rec  arrow.RecordBatch
	left int
}

func (e *endless) Next() bool                     { e.left--; return e.left >= 0 }
func (e *endless) RecordBatch() arrow.RecordBatch { return e.rec }
func (e *endless) Err() error                     { return nil }

// BenchmarkBatch is one more batch through a running call: input, guest,
// checked output, pass-through.
func BenchmarkBatch(b *testing.B) {
	for _, guestName := range []string{"c", "go"} {
		wasm := map[string]func(testing.TB) []byte{"c": buildC, "go": func(t testing.TB) []byte { return buildGo(t, "./testdata/go/conformance") }}[guestName](b)
		m := load(b, newEngine(b, Options{CacheDir: codeDir}), wasm, nil)
		for _, rows := range []int{1, 65536} {
			b.Run(fmt.Sprintf("%s/%d rows", guestName, rows), func(b *testing.B) {
				schema := schemaOf(b, "id BIGINT, v BIGINT")
				rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
				for i := range rows {
					rb.Field(0).(*array.Int64Builder).Append(int64(i))
					rb.Field(1).(*array.Int64Builder).Append(int64(i))
				}
				rec := rb.NewRecordBatch()
				rb.Release()
				defer rec.Release()
				empty, err := array.NewRecordReader(schema, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer empty.Release()
				r, err := m.Map(context.Background(), Call{Function: "double", Inputs: []array.RecordReader{&endless{empty, rec, 1 << 62}}})
				if err != nil {
					b.Fatal(err)
				}
				defer r.Release()
				b.SetBytes(int64(rows) * 8)
				b.ReportAllocs()
				for b.Loop() {
					if !r.Next() {
						b.Fatal(r.Err())
					}
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			})
		}
	}
}

// BenchmarkCall is a whole call over one row, in a fresh instance.
func BenchmarkCall(b *testing.B) {
	for _, guestName := range []string{"c", "go"} {
		wasm := map[string]func(testing.TB) []byte{"c": buildC, "go": func(t testing.TB) []byte { return buildGo(t, "./testdata/go/conformance") }}[guestName](b)
		m := load(b, newEngine(b, Options{CacheDir: codeDir}), wasm, nil)
		b.Run(guestName, func(b *testing.B) {
			schema := schemaOf(b, "id BIGINT, v BIGINT")
			rec := recordOf(b, memory.DefaultAllocator, schema, []byte(`[{"id": 1, "v": 2}]`))
			defer rec.Release()
			empty, err := array.NewRecordReader(schema, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer empty.Release()
			b.ReportAllocs()
			for b.Loop() {
				r, err := m.Map(context.Background(), Call{Function: "double", Inputs: []array.RecordReader{&endless{empty, rec, 1}}})
				if err != nil {
					b.Fatal(err)
				}
				for r.Next() {
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
				r.Release()
			}
		})
	}
}

// BenchmarkKeptCall is a whole call over one row in an instance that ran before.
func BenchmarkKeptCall(b *testing.B) {
	m := load(b, newEngine(b, Options{}), guest(reuseOneManifest, append([]string{"input_close"}, echoImports...), echo(nil)), nil)
	schema := schemaOf(b, "id BIGINT, v BIGINT")
	rec := recordOf(b, memory.DefaultAllocator, schema, []byte(`[{"id": 1, "v": 2}]`))
	defer rec.Release()
	empty, err := array.NewRecordReader(schema, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer empty.Release()
	b.ReportAllocs()
	for b.Loop() {
		r, err := m.Map(context.Background(), Call{Function: "f", Versions: []string{""}, Inputs: []array.RecordReader{&endless{empty, rec, 1}}})
		if err != nil {
			b.Fatal(err)
		}
		for r.Next() {
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
		r.Release()
	}
}

const reuseOneManifest = `{"abi": 1, "module": "m", "functions": [{"name": "f", "kind": "map", "reuse": true, "inputs": [{"dataset": "a", "mode": "stream"}], "output": [{"name": "id", "type": "bigint"}, {"name": "v", "type": "bigint"}]}]}`
