package delta

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

func int96(t *testing.T, text string) (out parquet.Int96) {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000000Z", text)
	if err != nil {
		t.Fatal(err)
	}
	micros := at.UnixMicro()
	day := floorDiv(micros, 86_400_000_000)
	binary.LittleEndian.PutUint64(out[:8], uint64(micros-day*86_400_000_000)*1000)
	binary.LittleEndian.PutUint32(out[8:], uint32(day+2440588))
	return out
}

// TestLegacyTimestampsAreReadAnywhere has timestamps of 96 bits, far outside the
// range of nanoseconds, in a struct, a list and a map, over several row groups.
func TestLegacyTimestampsAreReadAnywhere(t *testing.T) {
	legacy := func(name string) schema.Node { return schema.NewInt96Node(name, parquet.Repetitions.Optional, -1) }
	list, err := schema.ListOfWithName("list", legacy("element"), parquet.Repetitions.Optional, -1)
	if err != nil {
		t.Fatal(err)
	}
	key, err := schema.NewPrimitiveNodeLogical("key", parquet.Repetitions.Required, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := schema.MapOf("map", key, legacy("value"), parquet.Repetitions.Optional, -1)
	if err != nil {
		t.Fatal(err)
	}
	st := schema.MustGroup(schema.NewGroupNode("st", parquet.Repetitions.Optional, schema.FieldList{legacy("t")}, -1))
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, schema.FieldList{st, list, m}, -1))

	f := newFixture(t)
	to, err := f.store.Create(background, "old.parquet")
	if err != nil {
		t.Fatal(err)
	}
	early, late, middle := int96(t, "0001-01-01T00:00:00.000001Z"), int96(t, "9999-12-31T23:59:59.999999Z"), int96(t, "1582-10-15T12:00:00.000000Z")
	w := file.NewParquetWriter(struct{ io.Writer }{to}, root)
	for range 2 {
		rg, err := w.AppendRowGroupChecked()
		if err != nil {
			t.Fatal(err)
		}
		next := func() file.ColumnChunkWriter {
			c, err := rg.NextColumn()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		legacyColumn := func(values []parquet.Int96, def, rep []int16) {
			c := next().(*file.Int96ColumnChunkWriter)
			if _, err := c.WriteBatch(values, def, rep); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
		legacyColumn([]parquet.Int96{late}, []int16{2, 0, 1}, nil)
		legacyColumn([]parquet.Int96{early, late}, []int16{3, 2, 3, 0, 1}, []int16{0, 1, 1, 0, 0})
		keys := next().(*file.ByteArrayColumnChunkWriter)
		if _, err := keys.WriteBatch([]parquet.ByteArray{[]byte("k")}, []int16{2, 0, 1}, []int16{0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		if err := keys.Close(); err != nil {
			t.Fatal(err)
		}
		legacyColumn([]parquet.Int96{middle}, []int16{3, 0, 1}, []int16{0, 0, 0})
		if err := rg.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := to.Commit(); err != nil {
		t.Fatal(err)
	}

	ts := arrow.FixedWidthTypes.Timestamp_us
	f.commit(Commit{Schema: arrow.NewSchema([]arrow.Field{
		{Name: "st", Nullable: true, Type: arrow.StructOf(arrow.Field{Name: "t", Type: ts, Nullable: true})},
		{Name: "list", Nullable: true, Type: arrow.ListOf(ts)},
		{Name: "map", Nullable: true, Type: arrow.MapOf(arrow.BinaryTypes.String, ts)},
	}, nil), Add: []AddFile{{Path: "old.parquet", PartitionValues: map[string]*string{}, DataChange: true}}})
	want := []string{
		`st={t:9999-12-31T23:59:59.999999Z,}|list=["0001-01-01T00:00:00.000001Z" "null" "9999-12-31T23:59:59.999999Z"]|map=[k->1582-10-15T12:00:00Z]|`,
		`st=null|list=null|map=null|`,
		`st={t:null,}|list=[]|map=[]|`,
	}
	for _, rows := range []int{1, 2, 3, 4, 100} {
		got, err := scanRows(background, f.snapshot(), ScanOptions{BatchRows: rows}, nil)
		if err != nil || !slices.Equal(got, append(want, want...)) {
			t.Errorf("by %d: %v\n%s", rows, err, strings.Join(got, "\n"))
		}
	}
}
