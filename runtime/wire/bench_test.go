package wire

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

var benchTypes = []string{"bigint", "decimal(18,2)", "string", "date", "boolean", "timestamp", "array<bigint>"}

func BenchmarkEncode(b *testing.B) {
	schema := subsetSchema(b, benchTypes...)
	for _, rows := range []int{1, 65536} {
		rec := sample(memory.DefaultAllocator, schema, rows, 0.05, rand.New(rand.NewPCG(1, 1)))
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			b.Fatal(err)
		}
		size, err := enc.Layout(rec, 0, rec.NumRows())
		if err != nil {
			b.Fatal(err)
		}
		dst := make([]byte, size)
		b.Run(name(rows), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := enc.Layout(rec, 0, rec.NumRows()); err != nil {
					b.Fatal(err)
				}
				enc.Put(dst)
			}
		})
		enc.Release()
		rec.Release()
	}
}

func BenchmarkDecode(b *testing.B) {
	schema := subsetSchema(b, benchTypes...)
	for _, rows := range []int{1, 65536} {
		rec := sample(memory.DefaultAllocator, schema, rows, 0.05, rand.New(rand.NewPCG(1, 1)))
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			b.Fatal(err)
		}
		size, err := enc.Layout(rec, 0, rec.NumRows())
		if err != nil {
			b.Fatal(err)
		}
		msg := make([]byte, size)
		enc.Put(msg)
		d := NewDecoder(memory.DefaultAllocator, Limits{})
		if _, err := d.Next(enc.Schema()); err != nil {
			b.Fatal(err)
		}
		b.Run(name(rows), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				m, err := d.Next(msg)
				if err != nil {
					b.Fatal(err)
				}
				m.Batch.Release()
			}
		})
		enc.Release()
		rec.Release()
	}
}

func name(rows int) string {
	if rows == 1 {
		return "1 row"
	}
	return "64k rows"
}
