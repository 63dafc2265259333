package delta

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/variant"

	"github.com/weir-data/weir/host/fault"
)

// variants gives values as others write them, nil for null.
func variants(t *testing.T, texts ...string) (out []*variant.Value) {
	t.Helper()
	for _, text := range texts {
		if text == "" {
			out = append(out, nil)
			continue
		}
		v, err := variant.ParseJSON(text, false)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &v)
	}
	return out
}

func variantArray(mem memory.Allocator, vt *extensions.VariantType, values []*variant.Value) arrow.Array {
	b := extensions.NewVariantBuilder(mem, vt)
	defer b.Release()
	for _, v := range values {
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(*v)
		}
	}
	return b.NewArray()
}

// variantTexts gives the values of a variant column in the form that Scan gives.
func variantTexts(t *testing.T, arr arrow.Array) (out []string) {
	t.Helper()
	s := arr.(*array.Struct)
	for i := range s.Len() {
		if s.IsNull(i) {
			out = append(out, "null")
			continue
		}
		v, err := variant.New(s.Field(0).(*array.Binary).Value(i), s.Field(1).(*array.Binary).Value(i))
		if err != nil {
			t.Fatal(err)
		}
		text, err := v.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

var variantField = arrow.Field{Name: "v", Type: variantStorage, Nullable: true, Metadata: variantMark}

func scanColumn(t *testing.T, f *fixture, column string, check func(arrow.Array)) {
	t.Helper()
	r, err := f.snapshot().Scan(background, ScanOptions{Columns: []string{column}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	for r.Next() {
		check(r.RecordBatch().Column(0))
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
}

// TestVariantsAreWrittenAsTheirTwoFields takes them in all forms that Arrow has.
func TestVariantsAreWrittenAsTheirTwoFields(t *testing.T) {
	f := newFixture(t)
	schema := arrow.NewSchema([]arrow.Field{variantField, {Name: "list", Nullable: true,
		Type: arrow.ListOfField(arrow.Field{Name: "item", Type: variantStorage, Nullable: true, Metadata: variantMark})}}, nil)
	in := []string{`{"a":[1,2,{"b":null}]}`, "", `"text"`, `12.5`}
	ext := variantArray(f.mem, extensions.NewDefaultVariantType(), variants(t, in...))
	defer ext.Release()
	plainForm := ext.(array.ExtensionArray).Storage()
	w, err := f.table.Write(background, WriteOptions{Schema: schema, Name: "n", Properties: map[string]string{"delta.columnMapping.mode": "name"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, arr := range []arrow.Array{ext, plainForm} {
		rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil), []arrow.Array{arr}, int64(arr.Len()))
		err := w.Write(background, rec)
		rec.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := w.Close(background)
	if err != nil {
		t.Fatal(err)
	}
	f.commit(Commit{Schema: schema, Add: files, Properties: map[string]string{"delta.columnMapping.mode": "name"}})
	s := f.snapshot()
	if got := s.schema.sparkName(); got != "struct<v: variant, list: array<variant>>" || !slices.Contains(s.Protocol().ReaderFeatures, "variantType") || !s.Schema().Equal(schema) {
		t.Errorf("%s, %+v", got, s.Protocol())
	}
	if v := s.schema.find("v").physicalName(); !strings.Contains(files[0].Stats, `"minValues":{},"maxValues":{},"nullCount":{"`+v+`":2,`) {
		t.Errorf("statistics %s", files[0].Stats)
	}
	var got []string
	scanColumn(t, f, "v", func(arr arrow.Array) { got = append(got, variantTexts(t, arr)...) })
	want := []string{`{"a":[1,2,{"b":null}]}`, "null", `"text"`, `12.5`}
	if !slices.Equal(got, append(want, want...)) {
		t.Errorf("%q", got)
	}
	// A batch that has the plain form fits, and so does a schema that was merged with it.
	merged, added, err := s.MergeSchema(arrow.NewSchema([]arrow.Field{{Name: "V", Type: plainForm.DataType(), Nullable: true}}, nil))
	if err != nil || len(added) > 0 || !merged.Equal(schema) {
		t.Errorf("%v %v %v", merged, added, err)
	}
	if _, err := newFixture(t).table.Commit(background, Commit{Schema: schema, PartitionBy: []string{"v"}}); fault.CodeOf(err) != "DELTA_INVALID_PARTITION_COLUMN_TYPE" {
		t.Errorf("partitioned by a variant: %v", err)
	}
}

// TestShreddedVariantsArePutTogether reads what other engines may write.
func TestShreddedVariantsArePutTogether(t *testing.T) {
	in := []string{`{"a":1,"b":"x"}`, `{"a":"one","c":[1,{"d":2}]}`, "", `7`, `{"b":"y"}`, `null`, `[1,2]`}
	for name, shape := range map[string]arrow.DataType{
		"a struct": arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String}),
		"a number": arrow.PrimitiveTypes.Int8,
		"a list":   arrow.ListOf(arrow.PrimitiveTypes.Int8),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			arr := variantArray(f.mem, extensions.NewShreddedVariantType(shape), variants(t, in...))
			defer arr.Release()
			for i, arr := range []arrow.Array{arr, arr.(array.ExtensionArray).Storage()} {
				sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil)
				rec := array.NewRecordBatch(sc, []arrow.Array{arr}, int64(arr.Len()))
				var buf bytes.Buffer
				w, err := pqarrow.NewFileWriter(sc, &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Write(rec); err != nil {
					t.Fatal(err)
				}
				rec.Release()
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if err := f.store.PutIfAbsent(background, fmt.Sprintf("%d.parquet", i), buf.Bytes()); err != nil {
					t.Fatal(err)
				}
			}
			file := func(i int) AddFile {
				return AddFile{Path: fmt.Sprintf("%d.parquet", i), PartitionValues: map[string]*string{}, DataChange: true}
			}
			f.commit(Commit{Schema: arrow.NewSchema([]arrow.Field{variantField}, nil), Add: []AddFile{file(0), file(1)}})
			var got []string
			scanColumn(t, f, "v", func(arr arrow.Array) { got = append(got, variantTexts(t, arr)...) })
			want := slices.Clone(in)
			want[2] = "null"
			if !slices.Equal(got, append(want, want...)) {
				t.Errorf("%q", got)
			}
		})
	}
}
