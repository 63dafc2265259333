package delta

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/weir-data/weir/host/fault"
)

// TestVoidColumnsAreInTheSchemaOnly writes and reads them, and gives them a type later.
func TestVoidColumnsAreInTheSchemaOnly(t *testing.T) {
	f := newFixture(t)
	with := func(v, u arrow.DataType) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{
			{Name: "v", Type: v, Nullable: true}, {Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			{Name: "st", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "u", Type: u, Nullable: true}, arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true})},
		}, nil)
	}
	voids := with(arrow.Null, arrow.Null)
	files := f.write(WriteOptions{Schema: voids, Name: "n"}, `[{"a":1,"st":{"x":2}},{"a":null,"st":null}]`)
	f.commit(Commit{Schema: voids, Add: files})
	if want := `{"numRecords":2,"minValues":{"a":1,"st":{"x":2}},"maxValues":{"a":1,"st":{"x":2}},"nullCount":{"a":1,"st":{"x":1}}}`; files[0].Stats != want {
		t.Errorf("statistics %s", files[0].Stats)
	}
	pf, err := f.table.openParquet(background, files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer pf.close()
	if got := pf.reader.MetaData().Schema.String(); strings.Contains(got, " v") || strings.Contains(got, " u") {
		t.Errorf("the file has %s", got)
	}
	want := []string{"v=(null)|a=1|st={u:(null),x:2,}|", "v=(null)|a=null|st=null|"}
	if got := f.rows(); !slices.Equal(got, want) || f.snapshot().schema.sparkName() != "struct<v: void, a: int, st: struct<u: void, x: int>>" {
		t.Errorf("%v", got)
	}
	merged, changed, err := f.snapshot().MergeSchema(with(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int64)))
	if err != nil || strings.Join(changed, " ") != "v st.u" {
		t.Fatalf("%v %v", changed, err)
	}
	s := f.snapshot()
	f.commit(Commit{Read: s, Schema: merged, Add: f.write(WriteOptions{Snapshot: s, Schema: merged, Name: "m"}, `[{"v":"now","st":{"u":[1]}}]`)})
	if got := f.rows(); !slices.Equal(got, []string{`v=now|a=null|st={u:["1"],x:null,}|`, "v=null|a=1|st={u:null,x:2,}|", "v=null|a=null|st=null|"}) || f.snapshot().schema.find("v").meta[typeChangesKey] != nil {
		t.Errorf("%v", got)
	}
	// A batch that has nothing but nulls in a column leaves its type.
	if merged, changed, err := f.snapshot().MergeSchema(voids); err != nil || changed != nil || !merged.Equal(f.snapshot().Schema()) {
		t.Errorf("%v %v", changed, err)
	}
	for name, dt := range map[string]arrow.DataType{
		"in an array": arrow.ListOf(arrow.Null), "in a map": arrow.MapOf(arrow.BinaryTypes.String, arrow.Null),
		"a struct of nothing else": arrow.StructOf(arrow.Field{Name: "u", Type: arrow.Null, Nullable: true}),
		"all there is":             arrow.Null,
	} {
		f := newFixture(t)
		schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
		f.commit(Commit{Schema: schema})
		if _, err := f.table.Write(background, WriteOptions{Snapshot: f.snapshot(), Name: "n"}); fault.CodeOf(err) != "DELTA_UNSUPPORTED_TYPE" {
			t.Errorf("%s: %v", name, err)
		}
		f.rows()
	}
}

// TestTheTableSaysHowLargeFilesBecomeAndHowTheyAreCompressed reads delta.targetFileSize
// and delta.parquet.compression.codec.
func TestTheTableSaysHowLargeFilesBecomeAndHowTheyAreCompressed(t *testing.T) {
	for text, want := range map[string]int64{"": 128 << 20, "1000": 1000, "64mb": 64 << 20, "1 GB": 1 << 30, "2kib": 2 << 10, "0": 0, "x": 0, "-1": 0, "1.5g": 0, "9999999999t": 0, "mb": 0, "5mm": 0} {
		n, err := targetSize(map[string]string{"delta.targetFileSize": text})
		if want == 0 && fault.CodeOf(err) != "DELTA_INVALID_PROPERTY" || want > 0 && (n != want || err != nil) {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	f := newFixture(t)
	rec := f.manyRows(0, 3*chunkRows)
	defer rec.Release()
	f.commit(Commit{Schema: rec.Schema(), Properties: map[string]string{"delta.targetFileSize": "1kb", "delta.parquet.compression.codec": "SNAPPY"}})
	w, err := f.table.Write(background, WriteOptions{Snapshot: f.snapshot(), Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(background, rec); err != nil {
		t.Fatal(err)
	}
	files, err := w.Close(background)
	if err != nil || len(files) < 2 || !strings.HasSuffix(files[0].Path, ".snappy.parquet") {
		t.Errorf("%d files, %v", len(files), err)
	}
	pf, err := f.table.openParquet(background, files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer pf.close()
	if chunk, err := pf.reader.MetaData().RowGroup(0).ColumnChunk(0); err != nil || chunk.Compression().String() != "SNAPPY" {
		t.Errorf("%v %v", chunk.Compression(), err)
	}
}

// TestNarrowIntegersMayBeStoredWide reads files whose schema says int where the table says byte and short.
func TestNarrowIntegersMayBeStoredWide(t *testing.T) {
	ints := func(a, b arrow.DataType) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{{Name: "a", Type: a, Nullable: true}, {Name: "b", Type: arrow.ListOf(b), Nullable: true}}, nil)
	}
	wide, narrow := ints(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32), ints(arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16)
	for rows, want := range map[string]string{
		`[{"a":-128,"b":[32767,null,-32768]},{"a":127},{"a":null}]`: `a=-128|b=["32767" "null" "-32768"]| a=127|b=null| a=null|b=null|`,
		`[{"a":128}]`:      "DELTA_VALUE_OUT_OF_RANGE",
		`[{"b":[-32769]}]`: "DELTA_VALUE_OUT_OF_RANGE",
	} {
		f := newFixture(t)
		f.commit(Commit{Schema: narrow, Add: f.write(WriteOptions{Schema: wide, Name: "n"}, rows)})
		got, err := scanRows(background, f.snapshot(), ScanOptions{}, nil)
		if text := strings.Join(got, " "); text != want && fault.CodeOf(err) != want {
			t.Errorf("%s: %s, %v", rows, text, err)
		}
	}
}
