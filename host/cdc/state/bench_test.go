package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/weir-data/weir/host/cdc/rowcode"
)

// generated is a sorted run of n keys of 8 bytes with orders of 8 bytes.
type generated struct {
	hashes []rowcode.Hash
	keys   map[rowcode.Hash]uint64
	at     int
	rec    arrow.RecordBatch
}

func generate(n int, seed uint64) *generated {
	g := &generated{hashes: make([]rowcode.Hash, n), keys: make(map[rowcode.Hash]uint64, n)}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range g.hashes {
		k := uint64(i)
		if seed > 0 {
			k = rng.Uint64N(uint64(n) * 100)
		}
		h := rowcode.HashOf(binary.BigEndian.AppendUint64(nil, k))
		g.hashes[i], g.keys[h] = h, k
	}
	slices.SortFunc(g.hashes, rowcode.Hash.Compare)
	g.hashes = slices.Compact(g.hashes)
	return g
}

func (g *generated) Retain()                        {}
func (g *generated) Release()                       {}
func (g *generated) Schema() *arrow.Schema          { return Schema() }
func (g *generated) Err() error                     { return nil }
func (g *generated) Record() arrow.RecordBatch      { return g.rec }
func (g *generated) RecordBatch() arrow.RecordBatch { return g.rec }

func (g *generated) Next() bool {
	n := min(len(g.hashes)-g.at, blockRows)
	if n == 0 {
		return false
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema())
	defer b.Release()
	for _, h := range g.hashes[g.at : g.at+n] {
		b.Field(Hash).(*array.FixedSizeBinaryBuilder).Append(h[:])
		b.Field(Key).(*array.BinaryBuilder).Append(binary.BigEndian.AppendUint64(nil, g.keys[h]))
		b.Field(Order).(*array.BinaryBuilder).Append(binary.BigEndian.AppendUint64(nil, g.keys[h]))
		b.Field(Kind).(*array.Uint8Builder).Append(Upsert)
		b.Field(Row).(*array.FixedSizeBinaryBuilder).Append(h[:])
		b.Field(Tracked).(*array.FixedSizeBinaryBuilder).Append(h[:])
		b.Field(Time).(*array.Int64Builder).Append(0)
	}
	g.at += n
	g.rec = b.NewRecordBatch()
	return true
}

func benchState(b *testing.B, n, later int) (*Store, int64) {
	b.Helper()
	s, _ := testStore(b, memory.DefaultAllocator)
	m := &Manifest{PerKey: true}
	for r := range 1 + later {
		size := n
		if r > 0 {
			size = 10_000
		}
		info, err := s.Write(context.Background(), generate(size, uint64(r)))
		if err != nil {
			b.Fatal(err)
		}
		m.Runs = append(m.Runs, info)
	}
	k, err := s.Put(context.Background(), m)
	if err != nil {
		b.Fatal(err)
	}
	return s, k
}

// The first lookup of a process maps the pages it touches, the following ones find them mapped.
func BenchmarkFind10k(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		for _, later := range []int{0, 8} {
			s, k := benchState(b, n, later)
			rng := rand.New(rand.NewPCG(7, 7))
			hashes := make([]rowcode.Hash, 10_000)
			for i := range hashes {
				hashes[i] = rowcode.HashOf(binary.BigEndian.AppendUint64(nil, rng.Uint64N(uint64(n))))
			}
			slices.SortFunc(hashes, rowcode.Hash.Compare)
			find := func(b *testing.B, s *Store) {
				st, err := s.Load(context.Background(), k)
				if err != nil {
					b.Fatal(err)
				}
				rec, err := st.Find(context.Background(), hashes)
				if err != nil {
					b.Fatal(err)
				}
				if rec.NumRows() < 5000 {
					b.Fatalf("%d rows", rec.NumRows())
				}
				rec.Release()
				if err := st.Release(); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("entries=%d/runs=%d/first", n, 1+later), func(b *testing.B) {
				for b.Loop() {
					fresh := Open(s.files, "", memory.DefaultAllocator)
					find(b, fresh)
					if err := fresh.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("entries=%d/runs=%d/next", n, 1+later), func(b *testing.B) {
				for b.Loop() {
					find(b, s)
				}
			})
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, later := range []int{0, 8} {
		s, k := benchState(b, 1_000_000, later)
		b.Run(fmt.Sprintf("entries=1000000/runs=%d", 1+later), func(b *testing.B) {
			for b.Loop() {
				st, err := s.Load(context.Background(), k)
				if err != nil {
					b.Fatal(err)
				}
				rows, err := st.Scan(context.Background(), 0, 1)
				if err != nil {
					b.Fatal(err)
				}
				n := int64(0)
				for rows.Next() {
					n += rows.RecordBatch().NumRows()
				}
				if rows.Err() != nil || n < 1_000_000 {
					b.Fatal(n, rows.Err())
				}
				rows.Release()
				if err := st.Release(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/entry")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	g := generate(1_000_000, 0)
	s, _ := testStore(b, memory.DefaultAllocator)
	var recs []arrow.RecordBatch
	for g.Next() {
		recs = append(recs, g.rec)
	}
	for b.Loop() {
		rows, err := array.NewRecordReader(Schema(), recs)
		if err != nil {
			b.Fatal(err)
		}
		info, err := s.Write(context.Background(), rows)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.files.Delete(context.Background(), info.Name); err != nil {
			b.Fatal(err)
		}
		rows.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/entry")
}

// Batches of 10,000 changes one after the other, with what stands beside each of them.
func BenchmarkBatches(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("entries=%d", n), func(b *testing.B) {
			ctx := context.Background()
			s, k := benchState(b, n, 0)
			var load, find, write, compact, sweep time.Duration
			seed, deepest := uint64(100), 0
			for b.Loop() {
				seed++
				g := generate(10_000, seed)
				at := time.Now()
				lap := func(d *time.Duration) { now := time.Now(); *d += now.Sub(at); at = now }
				st, err := s.Load(ctx, k)
				if err != nil {
					b.Fatal(err)
				}
				m := st.Manifest()
				lap(&load)
				rec, err := st.Find(ctx, g.hashes)
				if err != nil {
					b.Fatal(err)
				}
				rec.Release()
				lap(&find)
				c, err := s.Compact(ctx, &m, CompactOptions{Entries: 256 << 10})
				if err != nil {
					b.Fatal(err)
				}
				lap(&compact)
				info, err := s.Write(ctx, g)
				if err != nil {
					b.Fatal(err)
				}
				m.Runs = append(m.Runs, info)
				if c != nil {
					if _, err := s.Adopt(ctx, &m, c); err != nil {
						b.Fatal(err)
					}
				}
				if k, err = s.Put(ctx, &m); err != nil {
					b.Fatal(err)
				}
				lap(&write)
				if err := st.Release(); err != nil {
					b.Fatal(err)
				}
				if err := s.Sweep(ctx, k); err != nil {
					b.Fatal(err)
				}
				lap(&sweep)
				deepest = max(deepest, len(m.Runs))
			}
			for name, d := range map[string]time.Duration{"load": load, "find": find, "write": write, "compact": compact, "sweep": sweep} {
				b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms")
			}
			b.ReportMetric(float64(deepest), "runs")
		})
	}
}
