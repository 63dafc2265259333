package relation

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The hidden columns.
const (
	// RowColumn is the ordinal of the source row within its task, from 0.
	RowColumn = "__weir_row"
	// MaskColumn has bit i set when the row violates expectation i.
	MaskColumn = "__weir_mask"
	// MetadataColumn says which file a row came from.
	MetadataColumn = "_metadata"
)

// MaskBits is how many expectations a mask can tell of.
const MaskBits = 62

// MetadataType is the type of MetadataColumn: Spark's file metadata.
func MetadataType() *arrow.StructType {
	str, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	return arrow.StructOf(
		arrow.Field{Name: "file_path", Type: str, Nullable: true},
		arrow.Field{Name: "file_name", Type: str, Nullable: true},
		arrow.Field{Name: "file_size", Type: i64, Nullable: true},
		arrow.Field{Name: "file_block_start", Type: i64, Nullable: true},
		arrow.Field{Name: "file_block_length", Type: i64, Nullable: true},
		arrow.Field{Name: "file_modification_time", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	)
}

// RowField is the field of RowColumn.
func RowField() arrow.Field {
	return arrow.Field{Name: RowColumn, Type: arrow.PrimitiveTypes.Int64}
}

// MaskField is the field of MaskColumn.
func MaskField() arrow.Field {
	return arrow.Field{Name: MaskColumn, Type: arrow.PrimitiveTypes.Int64}
}

// MetadataField is the field of MetadataColumn.
func MetadataField() arrow.Field {
	return arrow.Field{Name: MetadataColumn, Type: MetadataType(), Nullable: true}
}

// Hidden reports whether a top-level column of that name is none of the user's.
func Hidden(name string) bool {
	return name == RowColumn || name == MaskColumn || name == MetadataColumn
}

// SourceColumns gives the schema of a source: the data fields, _metadata when
// the source is made of files, and __weir_row.
func SourceColumns(data []arrow.Field, files bool) *arrow.Schema {
	fields := append([]arrow.Field(nil), data...)
	if files {
		fields = append(fields, MetadataField())
	}
	return arrow.NewSchema(append(fields, RowField()), nil)
}

// DataSchema gives the schema without the hidden columns.
func DataSchema(s *arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, 0, s.NumFields())
	for _, f := range s.Fields() {
		if !Hidden(f.Name) {
			fields = append(fields, f)
		}
	}
	if len(fields) == s.NumFields() {
		return s
	}
	meta := s.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// Data gives the batch without the hidden columns. The caller releases it;
// rec stays the caller's too.
func Data(rec arrow.RecordBatch) arrow.RecordBatch {
	schema := DataSchema(rec.Schema())
	cols := make([]arrow.Array, 0, schema.NumFields())
	for i, f := range rec.Schema().Fields() {
		if !Hidden(f.Name) {
			cols = append(cols, rec.Column(i))
		}
	}
	return array.NewRecordBatch(schema, cols, rec.NumRows())
}

// Int64Column gives the column of that name when the batch has it as BIGINT.
func Int64Column(rec arrow.RecordBatch, name string) (*array.Int64, bool) {
	idx := rec.Schema().FieldIndices(name)
	if len(idx) == 0 {
		return nil, false
	}
	col, ok := rec.Column(idx[len(idx)-1]).(*array.Int64)
	return col, ok
}
