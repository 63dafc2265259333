package delta

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// The encoder takes columns apart by itself; pqarrow is the judge of that.
func TestFilesAreThoseOfPqarrowByteForByte(t *testing.T) {
	required := func(name string, typ arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: typ} }
	optional := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	amount := &arrow.Decimal128Type{Precision: 18, Scale: 2}
	item := arrow.StructOf(optional("sku", text), required("n", number), optional("price", amount), optional("tags", arrow.ListOf(text)))
	schema := arrow.NewSchema([]arrow.Field{
		required("id", number), optional("text", text), optional("amount", amount), optional("flag", arrow.FixedWidthTypes.Boolean),
		optional("day", arrow.FixedWidthTypes.Date32), optional("when", utc), optional("bytes", arrow.BinaryTypes.Binary),
		optional("one", item), required("must", arrow.StructOf(optional("a", text), optional("deep", arrow.StructOf(optional("b", number))))),
		optional("list", arrow.ListOf(number)), required("items", arrow.ListOfNonNullable(item)), optional("lists", arrow.ListOf(arrow.ListOf(item))),
		optional("map", arrow.MapOf(text, number)), optional("maps", arrow.ListOf(arrow.MapOf(text, item))),
	}, nil)
	for seed := range uint64(30) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		r := rand.New(rand.NewPCG(seed, 1))
		var batches []arrow.RecordBatch
		for range 1 + r.IntN(3) {
			batches = append(batches, randomBatch(t, mem, schema, r, 1+r.IntN(700)))
		}
		props := parquet.NewWriterProperties(parquet.WithAllocator(mem), parquet.WithCompression(compress.Codecs.Zstd), parquet.WithStoreDecimalAsInteger(true),
			parquet.WithDataPageSize(2000), parquet.WithBatchSize(64))
		var want, got bytes.Buffer
		w, err := pqarrow.NewFileWriter(schema, &want, props, pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(mem)))
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEncoder(schema, &got, props)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range batches {
			from := r.Int64N(b.NumRows())
			part := b.NewSlice(from, b.NumRows())
			countNulls(part.Columns())
			if i == 2 {
				if err := w.NewBufferedRowGroupChecked(); err != nil {
					t.Fatal(err)
				}
				if err := e.next(); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.WriteBuffered(part); err != nil {
				t.Fatal(err)
			}
			if err := e.write(background, part.Columns()); err != nil {
				t.Fatal(err)
			}
			part.Release()
			b.Release()
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := e.close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("seed %d: %d bytes differ from pqarrow's %d", seed, got.Len(), want.Len())
		}
		mem.AssertSize(t, 0)
	}
}

func randomBatch(t *testing.T, mem memory.Allocator, schema *arrow.Schema, r *rand.Rand, rows int) arrow.RecordBatch {
	t.Helper()
	var b strings.Builder
	for range rows {
		writeRandom(&b, arrow.StructOf(schema.Fields()...), r)
		b.WriteByte('\n')
	}
	rb := array.NewRecordBuilder(mem, schema)
	defer rb.Release()
	for line := range strings.Lines(b.String()) {
		if err := rb.UnmarshalJSON([]byte(line)); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	return rb.NewRecordBatch()
}

// writeRandom writes a value of the type as JSON.
func writeRandom(b *strings.Builder, typ arrow.DataType, r *rand.Rand) {
	value := func(f arrow.Field) {
		if f.Nullable && r.IntN(4) == 0 {
			b.WriteString("null")
		} else {
			writeRandom(b, f.Type, r)
		}
	}
	list := func(each func()) {
		b.WriteByte('[')
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteByte(',')
			}
			each()
		}
		b.WriteByte(']')
	}
	switch typ := typ.(type) {
	case *arrow.StructType:
		b.WriteByte('{')
		for i, f := range typ.Fields() {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(b, "%q:", f.Name)
			value(f)
		}
		b.WriteByte('}')
	case *arrow.MapType:
		list(func() {
			b.WriteString(`{"key":`)
			value(typ.KeyField())
			b.WriteString(`,"value":`)
			value(typ.ItemField())
			b.WriteByte('}')
		})
	case *arrow.ListType:
		list(func() { value(typ.ElemField()) })
	case *arrow.StringType:
		fmt.Fprintf(b, `"text %d"`, r.IntN(300))
	case *arrow.BinaryType:
		b.WriteString(`"AAEC"`)
	case *arrow.BooleanType:
		fmt.Fprint(b, r.IntN(2) == 0)
	case *arrow.Decimal128Type:
		fmt.Fprintf(b, `"%d.%02d"`, r.IntN(1000), r.IntN(100))
	case *arrow.Date32Type:
		fmt.Fprintf(b, `"2026-01-%02d"`, 1+r.IntN(28))
	case *arrow.TimestampType:
		fmt.Fprintf(b, `"2026-01-01T00:00:%02d.%06dZ"`, r.IntN(60), r.IntN(1_000_000))
	default:
		fmt.Fprint(b, r.IntN(5000))
	}
}
