package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encodeStream writes batches as a guest would receive them, and a guest's
// view of garbage in its buffer: every gap has to be cleared.
func encodeStream(t testing.TB, enc *Encoder, batches ...arrow.RecordBatch) []byte {
	t.Helper()
	out := bytes.Clone(enc.Schema())
	for _, rec := range batches {
		size, err := enc.Layout(rec, 0, rec.NumRows())
		if err != nil {
			t.Fatal(err)
		}
		dst := bytes.Repeat([]byte{0xAA}, int(size))
		if n := enc.Put(dst); n != size || size%8 != 0 {
			t.Fatalf("Put wrote %d, Layout said %d", n, size)
		}
		out = append(out, dst...)
	}
	enc.Release()
	return out
}

func decodeStream(d *Decoder, p []byte) (batches []arrow.RecordBatch, err error) {
	for len(p) > 0 {
		m, err := d.Next(p)
		if err != nil {
			return batches, err
		}
		if m.Kind == KindBatch {
			batches = append(batches, m.Batch)
		}
		p = p[m.Size:]
	}
	return batches, nil
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

func slices(rec arrow.RecordBatch) []arrow.RecordBatch {
	n := rec.NumRows()
	var out []arrow.RecordBatch
	for _, r := range [][2]int64{{0, n}, {0, 0}, {1, n}, {3, 4}, {7, n - 3}, {8, 16}, {n, n}} {
		if r[0] <= r[1] && r[1] <= n {
			out = append(out, rec.NewSlice(r[0], r[1]))
		}
	}
	return out
}

func equalBatches(t *testing.T, what string, want, got arrow.RecordBatch) {
	t.Helper()
	if got.NumRows() != want.NumRows() || got.NumCols() != want.NumCols() {
		t.Fatalf("%s: %d rows and %d columns instead of %d and %d", what, got.NumRows(), got.NumCols(), want.NumRows(), want.NumCols())
	}
	for i := range int(want.NumCols()) {
		if !array.Equal(want.Column(i), got.Column(i)) {
			t.Errorf("%s: column %s differs:\n%v\n%v", what, want.Schema().Field(i).Name, want.Column(i), got.Column(i))
		}
		walk(got.Column(i))
	}
}

func TestArrowReadsWhatTheEncoderWrites(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for _, nulls := range []float64{0, 0.3, 1} {
		schema := subsetSchema(t, subset...)
		rec := sample(mem, schema, 67, nulls, r)
		batches := slices(rec)
		rec.Release()
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := ipc.NewReader(bytes.NewReader(encodeStream(t, enc, batches...)), ipc.WithAllocator(mem))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range batches {
			got, err := reader.Read()
			if err != nil {
				t.Fatal(err)
			}
			equalBatches(t, "arrow-go reads", want, got)
		}
		if _, err := reader.Read(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last batch: %v", err)
		}
		reader.Release()
		release(batches)
	}
}

func TestTheDecoderReadsWhatTheEncoderAndArrowWrite(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(3, 4))
	for _, nulls := range []float64{0, 0.3, 1} {
		schema := subsetSchema(t, subset...)
		rec := sample(mem, schema, 67, nulls, r)
		batches := slices(rec)
		rec.Release()
		enc, err := NewEncoder(schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		var arrowWritten bytes.Buffer
		w := ipc.NewWriter(&arrowWritten, ipc.WithSchema(schema), ipc.WithAllocator(mem))
		for _, b := range batches {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for what, stream := range map[string][]byte{"encoder": encodeStream(t, enc, batches...), "arrow-go": arrowWritten.Bytes()} {
			d := NewDecoder(mem, Limits{})
			got, err := decodeStream(d, stream)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if err := SameSchema(schema, d.Schema()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if len(got) != len(batches) {
				t.Fatalf("%s: %d batches instead of %d", what, len(got), len(batches))
			}
			for i := range got {
				equalBatches(t, what, batches[i], got[i])
			}
			release(got)
		}
		release(batches)
	}
}

func TestProjectionKeepsTheOrderAskedFor(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	schema := subsetSchema(t, "int", "string", "date")
	rec := sample(mem, schema, 5, 0.2, rand.New(rand.NewPCG(1, 1)))
	defer rec.Release()
	for _, c := range []struct{ columns []int }{{[]int{2, 0}}, {[]int{}}, {[]int{1}}} {
		enc, err := NewEncoder(schema, c.columns)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeStream(NewDecoder(mem, Limits{}), encodeStream(t, enc, rec))
		if err != nil {
			t.Fatal(err)
		}
		if got[0].NumRows() != 5 || int(got[0].NumCols()) != len(c.columns) {
			t.Fatalf("columns %v gave %v", c.columns, got[0])
		}
		for i, col := range c.columns {
			if got[0].ColumnName(i) != schema.Field(col).Name || !array.Equal(got[0].Column(i), rec.Column(col)) {
				t.Errorf("column %d of %v: %v", i, c.columns, got[0].Column(i))
			}
		}
		release(got)
	}
	if _, err := NewEncoder(schema, []int{3}); err == nil {
		t.Error("column 3 of 3 was accepted")
	}
}

func TestDictionariesCrossAsTheirValues(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	for _, value := range []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.LargeString, arrow.FixedWidthTypes.Boolean} {
		for _, index := range []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64} {
			vb := array.NewBuilder(mem, value)
			for _, s := range []string{"1", "0", ""} {
				if s == "" {
					vb.AppendNull()
				} else if err := vb.AppendValueFromString(s); err != nil {
					t.Fatal(err)
				}
			}
			values := vb.NewArray()
			vb.Release()
			ib := array.NewBuilder(mem, index)
			for _, s := range []string{"0", "1", "1", "2", "", "0", "1"} {
				if s == "" {
					ib.AppendNull()
				} else if err := ib.AppendValueFromString(s); err != nil {
					t.Fatal(err)
				}
			}
			indices := ib.NewArray()
			ib.Release()
			dt := &arrow.DictionaryType{IndexType: index, ValueType: value}
			whole := array.NewDictionaryArray(dt, indices, values)
			a := array.NewSlice(whole, 1, 7)
			schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: dt, Nullable: true}}, nil)
			rec := array.NewRecordBatch(schema, []arrow.Array{a}, 6)
			enc, err := NewEncoder(schema, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeStream(NewDecoder(mem, Limits{}), encodeStream(t, enc, rec))
			if err != nil {
				t.Fatal(err)
			}
			col := got[0].Column(0)
			if !arrow.TypeEqual(col.DataType(), value) {
				t.Errorf("%s arrived as %s", dt, col.DataType())
			}
			for i, want := range []string{"0", "0", "", "", "1", "0"} {
				if want == "" != col.IsNull(i) || want != "" && value.ID() != arrow.BOOL && col.ValueStr(i) != want {
					t.Errorf("%s: row %d is %s, want %q", dt, i, col.ValueStr(i), want)
				}
			}
			release(got)
			for _, x := range []arrow.Array{values, indices, whole, a} {
				x.Release()
			}
			rec.Release()
		}
	}
	nested := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int8)}
	if _, err := NewEncoder(arrow.NewSchema([]arrow.Field{{Name: "d", Type: nested}}, nil), nil); err == nil {
		t.Error("a dictionary of lists was accepted")
	}
}

func TestTypesOutsideTheSubsetAreRefusedByName(t *testing.T) {
	for _, dt := range []arrow.DataType{arrow.PrimitiveTypes.Date64, arrow.FixedWidthTypes.Float16, arrow.BinaryTypes.StringView,
		arrow.FixedWidthTypes.MonthInterval, arrow.ListOf(arrow.PrimitiveTypes.Date64), arrow.ListViewOf(arrow.PrimitiveTypes.Int8)} {
		_, err := NewEncoder(arrow.NewSchema([]arrow.Field{{Name: "col", Type: dt}}, nil), nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeType || e.Path == "" {
			t.Errorf("%s: %v", dt, err)
		}
	}
}
