package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// orderDocuments writes n order documents as NDJSON: the shape of the P5 input.
func orderDocuments(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"Ada Lovelace", "Grace Hopper", "Anna Müller", "José García", "O'Brien \"Pat\""}
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"order_id":"SO-%08d","order_ts":"2026-07-%02dT%02d:%02d:%02d.%03dZ","customer_id":%d,"customer_name":%q,"currency":"EUR","total_amount":%d.%02d,"paid":%t,"items":[`,
			i, 1+i%28, i%24, i%60, i%59, i%1000, rnd.IntN(100000), names[i%len(names)], rnd.IntN(2000), rnd.IntN(100), i%3 == 0)
		for k := range 1 + i%4 {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"sku":"ZO%010d","name":"Basic T-shirt - dark blue/white","quantity":%d,"price":%d.%02d}`, rnd.IntN(1e9), 1+rnd.IntN(5), rnd.IntN(300), rnd.IntN(100))
		}
		fmt.Fprintf(&b, `],"ship_to":{"street":"Main Street %d","city":"Cairo","zip":"%05d","country":"EG"}}`+"\n", rnd.IntN(500), rnd.IntN(99999))
	}
	return b.Bytes()
}

const orderHints = "order_id STRING, order_ts TIMESTAMP, total_amount DECIMAL(18,2)"

func BenchmarkReadOrders(b *testing.B) {
	data := orderDocuments(100_000)
	l := newLanding(b, nil)
	l.put("orders.json", string(data))
	s := l.source(ReadFiles, "format=json", "schemaHints="+orderHints)
	fs := files(b, s)
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		b.Fatal(err)
	}
	for _, parallel := range []int{1, 2} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			start, n := cpuTime(b), 0
			for b.Loop() {
				n++
				r, err := s.Read(context.Background(), schema, fs, ReadOptions{Parallel: parallel})
				if err != nil {
					b.Fatal(err)
				}
				rows := 0
				for r.Next() {
					rows += int(r.RecordBatch().NumRows())
				}
				if r.Err() != nil || rows != 100_000 {
					b.Fatal(r.Err(), rows)
				}
				r.Release()
			}
			b.ReportMetric(float64(n*len(data))/1e6/(cpuTime(b)-start).Seconds(), "cpu-MB/s")
		})
	}
}

// BenchmarkDecodeOrders is the decoder alone: bytes in memory to columns, one
// goroutine. cpu-MB/s is by processor time, which a busy machine leaves alone.
func BenchmarkDecodeOrders(b *testing.B) {
	l := newLanding(b, nil)
	l.put("orders.json", string(orderDocuments(100)))
	s := l.source(ReadFiles, "format=json", "schemaHints="+orderHints)
	schema, err := s.Infer(context.Background(), files(b, s))
	if err != nil {
		b.Fatal(err)
	}
	var fresh atomic.Bool
	base, err := newDecoder(s, schema, memory.DefaultAllocator, &fresh)
	if err != nil {
		b.Fatal(err)
	}
	d := &jsonDecoder{decoder: *base}
	text := orderDocuments(10_000)
	ch := &chunk{file: &source{File: File{Path: "/f.json"}}, data: append(text, make([]byte, padding)...), n: len(text), line: 1}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	start, n := cpuTime(b), 0
	for b.Loop() {
		n++
		if err := d.decode(ch, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
		p := d.flush()
		p.release()
	}
	b.ReportMetric(float64(n*len(text))/1e6/(cpuTime(b)-start).Seconds(), "cpu-MB/s")
	d.release()
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkInferOrders(b *testing.B) {
	data := orderDocuments(50_000)
	l := newLanding(b, nil)
	l.put("orders.json", string(data))
	s := l.source(ReadFiles, "format=json", "schemaHints="+orderHints)
	fs := files(b, s)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := s.Infer(context.Background(), fs); err != nil {
			b.Fatal(err)
		}
	}
}

type orderItem struct {
	SKU      string  `json:"sku"`
	Name     string  `json:"name"`
	Quantity int64   `json:"quantity"`
	Price    float64 `json:"price"`
}

type orderDocument struct {
	OrderID      string      `json:"order_id"`
	OrderTS      string      `json:"order_ts"`
	CustomerID   int64       `json:"customer_id"`
	CustomerName string      `json:"customer_name"`
	Currency     string      `json:"currency"`
	TotalAmount  float64     `json:"total_amount"`
	Paid         bool        `json:"paid"`
	Items        []orderItem `json:"items"`
	ShipTo       struct {
		Street  string `json:"street"`
		City    string `json:"city"`
		Zip     string `json:"zip"`
		Country string `json:"country"`
	} `json:"ship_to"`
}

// BenchmarkOrdersEncodingJSON is the baseline: the standard library into structs, no columns.
func BenchmarkOrdersEncodingJSON(b *testing.B) {
	data := orderDocuments(20_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		dec := json.NewDecoder(bytes.NewReader(data))
		for dec.More() {
			var o orderDocument
			if err := dec.Decode(&o); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOrdersArrowJSON is arrow-go's own JSON reader over the same bytes.
func BenchmarkOrdersArrowJSON(b *testing.B) {
	data := orderDocuments(20_000)
	l := newLanding(b, nil)
	l.put("orders.json", string(data))
	s := l.source(ReadFiles, "format=json")
	schema, err := s.Infer(context.Background(), files(b, s))
	if err != nil {
		b.Fatal(err)
	}
	var fields []arrow.Field
	for _, f := range schema.Fields {
		fields = append(fields, arrow.Field{Name: f.Name, Type: f.Type, Nullable: true})
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := array.NewJSONReader(bytes.NewReader(data), arrow.NewSchema(fields, nil), array.WithChunk(8192), array.WithAllocator(memory.DefaultAllocator))
		for r.Next() {
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
		r.Release()
	}
}

func BenchmarkReadSmallFiles(b *testing.B) {
	l := newLanding(b, nil)
	docs := bytes.SplitAfter(orderDocuments(5_000), []byte("\n"))
	total := 0
	for i, d := range docs[:5_000] {
		l.put(fmt.Sprintf("dt=2026-07-%02d/order_%05d.json", 1+i%28, i), string(d))
		total += len(d)
	}
	s := l.source(CloudFiles, "cloudFiles.format=json", "cloudFiles.inferColumnTypes=true")
	fs := files(b, s)
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("plain loop", func(b *testing.B) {
		b.SetBytes(int64(total))
		for b.Loop() {
			for _, f := range fs {
				if _, err := os.ReadFile(f.Path); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(total))
		b.ReportAllocs()
		for b.Loop() {
			r, err := s.Read(context.Background(), schema, fs, ReadOptions{})
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
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range s.List(context.Background()) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 5_000 {
				b.Fatal(n)
			}
		}
	})
}

func BenchmarkReadCSV(b *testing.B) {
	var buf bytes.Buffer
	buf.WriteString("id,name,amount,day,note\n")
	for i := range 200_000 {
		fmt.Fprintf(&buf, "%d,customer %d,%d.%02d,2026-07-%02d,\"a \"\"quoted\"\" note, %d\"\n", i, i%1000, i%5000, i%100, 1+i%28, i)
	}
	l := newLanding(b, nil)
	l.put("a.csv", buf.String())
	s := l.source(ReadFiles, "format=csv", "schemaHints=amount DECIMAL(18,2)")
	fs := files(b, s)
	schema, err := s.Infer(context.Background(), fs)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.Read(context.Background(), schema, fs, ReadOptions{})
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

// BenchmarkList is the cost of a trigger that finds nothing new, against a walk
// that reads the names only.
func BenchmarkList(b *testing.B) {
	l := newLanding(b, nil)
	const count = 20_000
	for i := range count {
		l.put(fmt.Sprintf("dt=2026-%02d-%02d/order_%06d.json", 1+i%12, 1+i%28, i), "{}")
	}
	s := l.source(CloudFiles, "cloudFiles.format=json")
	b.Run("names", func(b *testing.B) {
		start, n := cpuTime(b), 0
		for b.Loop() {
			n++
			seen := 0
			for _, dir := range must(os.ReadDir(l.dir)) {
				seen += len(must(os.ReadDir(filepath.Join(l.dir, dir.Name()))))
			}
			if seen != count {
				b.Fatal(seen)
			}
		}
		b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(n)/count, "cpu-ns/file")
	})
	b.Run("list", func(b *testing.B) {
		start, n := cpuTime(b), 0
		for b.Loop() {
			n++
			seen := 0
			for _, err := range s.List(context.Background()) {
				if err != nil {
					b.Fatal(err)
				}
				seen++
			}
			if seen != count {
				b.Fatal(seen)
			}
		}
		b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(n)/count, "cpu-ns/file")
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
